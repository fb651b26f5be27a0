"""SubsetSelection: report a subset of fixed size that is likely to contain the value (Ye and Barg; Wang et al.)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.mechanisms.oracle import PureOracle, bit_support, bit_supports, histogram
from veil.privacy import WORD, Guarantee, exp_below, inside_threshold
from veil.reports.layout import Columns, Field, Layout, byte_width
from veil.results.laws import SupportNoise
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int

_DRAWS_AT_ONCE = 1 << 17  # a megabyte of draws stays in the second-level cache


@dataclass(frozen=True, init=False)
class SubsetSelection(PureOracle):
    """A uniform subset of `subset_size` values, which contains the held one with probability p.

    Guarantee: a subset that contains the value has p / C(d-1, w-1), one that does not (1 - p) / C(d-1, w), so the ratio
    is p (d - w) / ((1 - p) w) <= e^eps exactly, with p = T / 2^64 rounded down. The subset travels as packed bits, or
    as an increasing list where that is shorter: a set has no order, so no position carries information.

    Never worse than GRR (size 1), OUE or OLH. The best size is the integer next to d / (e^eps + 1) with the smaller
    variance, compared exactly.

    >>> SubsetSelection(epsilon=1.0, domain=1024).subset_size
    275
    """

    subset_size: int
    name: ClassVar[str] = "SubsetSelection"

    def __init__(self, epsilon: float, domain: DomainLike, subset_size: int | None = None) -> None:
        super().__init__(epsilon, domain)
        if not self.domain.listable:
            raise ParameterError("SubsetSelection needs a listable domain (2^24 values)")
        chosen = best_size(self.epsilon, self.domain.size) if subset_size is None else subset_size
        if not is_int(chosen) or not 1 <= chosen < self.domain.size:
            raise ParameterError("a subset holds at least one value and not all of them")
        object.__setattr__(self, "subset_size", int(chosen))

    def parameters(self) -> Json:
        return {"subset_size": self.subset_size}

    @cached_property
    def _inside(self) -> int:
        return inside_threshold(self.epsilon, self.subset_size, self.domain.size - self.subset_size)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"inside": self._inside}

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self._inside, WORD)

    @cached_property
    def q(self) -> Fraction:
        return (self.subset_size - self.p) / (self.domain.size - 1)

    @cached_property
    def noise(self) -> SupportNoise:
        w, others = self.subset_size, self.domain.size - 1
        hit = self.p * (w - 1) / others
        pairs = others * (others - 1)
        miss = (self.p * (w - 1) * (w - 2) + (1 - self.p) * w * (w - 1)) / pairs if pairs else Fraction(0)
        return SupportNoise(self.p, self.q, hit, miss)

    @cached_property
    def guarantee(self) -> Guarantee:
        w, d = self.subset_size, self.domain.size
        return Guarantee(self.p * (d - w) / ((1 - self.p) * w))

    @property
    def as_bits(self) -> bool:
        """Whether a report is packed bits: when a list of the values would be longer."""
        return -(-self.domain.size // 8) <= self.subset_size * byte_width(self.domain.size)

    @cached_property
    def layout(self) -> Layout:
        if self.as_bits:
            return Layout((Field.packed("bits", self.domain.size),))
        return Layout((Field("subset", self.domain.size, count=self.subset_size),))

    @property
    def decode_pairs(self) -> float:
        return float(self.domain.size if self.as_bits else self.subset_size)

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        from veil.kernels.draws import subset_bits, subset_lists

        build: Callable[..., NDArray[Any]] = subset_bits if self.as_bits else subset_lists
        inside = source.coin(self._inside, len(codes))
        field = self.layout.fields[0]
        columns = self.layout.empty(len(codes))
        for with_held in (True, False):
            rows = np.flatnonzero(inside == with_held)
            drawn = self.subset_size - with_held
            step = max(1, _DRAWS_AT_ONCE // max(drawn, 1))
            bounds = np.arange(self.domain.size - drawn, self.domain.size, dtype=np.uint64)
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                draws = source.below(bounds, len(some) * drawn).reshape(len(some), drawn)
                subsets = build(draws, codes[some], with_held, self.domain.size)
                columns[field.name][some] = subsets.reshape(field.shape(len(some)))
        return columns

    def check(self, columns: Columns) -> None:
        super().check(columns)
        if self.as_bits:
            proper = np.bitwise_count(columns["bits"]).sum(axis=1, dtype=np.int64) == self.subset_size
        else:
            lists = self._lists(columns)
            proper = (lists[:, 1:] > lists[:, :-1]).all(axis=1)
        if not proper.all():
            raise WireError(f"a subset has {self.subset_size} different values, in increasing order")

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        if self.as_bits:
            return bit_support(columns["bits"], self.domain.size, candidates, weights)
        each = None if weights is None else np.repeat(weights, self.subset_size)
        counts = histogram(self._lists(columns).ravel(), self.domain.size, each)
        return counts if candidates is None else counts[candidates.astype(np.int64)]

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        if self.as_bits:
            return bit_supports(columns["bits"], candidates)
        matches: NDArray[np.bool_] = self._lists(columns)[:, :, None] == candidates[None, None, :]
        return np.asarray(matches.any(axis=1), dtype=np.uint8)

    def _lists(self, columns: Columns) -> NDArray[Any]:
        return columns["subset"].reshape(-1, self.subset_size)


def best_size(epsilon: float, values: int) -> int:
    """The subset size with the smallest Var* among the integers next to d / (e^eps + 1), compared exactly.

    >>> best_size(1.0, 4), best_size(0.5, 100)
    (1, 38)
    """
    near = values / (exp_below(epsilon) + 1)
    sizes = {min(max(int(near) + step, 1), values - 1) for step in (0, 1)}

    def variance(size: int) -> Fraction:
        p = Fraction(inside_threshold(epsilon, size, values - size), WORD)
        q = (size - p) / (values - 1)
        return q * (1 - q) / (p - q) ** 2

    return min(sorted(sizes), key=variance)
