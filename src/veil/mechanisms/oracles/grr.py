"""GRR: generalized randomized response, the thesis's direct encoding (DE, 3.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms.oracle import PureOracle, histogram, stay_or_move
from veil.privacy import WORD, Guarantee, inside_threshold
from veil.reports.layout import Columns, Field, Layout
from veil.results.laws import SupportNoise


@dataclass(frozen=True, init=False)
class GRR(PureOracle):
    """Report the value itself with probability p, else another one uniformly.

    Guarantee: p / q <= e^eps exactly, with p = T / 2^64 rounded down and q = (1 - p) / (d - 1).
    Best where the domain is small, d < 3 e^eps + 2. Thesis 3.3.1.

    >>> oracle = GRR(epsilon=1.0, domain=["tea", "coffee", "water"])
    >>> oracle.guarantee.within(1.0), len(oracle.randomize(["tea", "water", "water"]))
    (True, 3)
    """

    name: ClassVar[str] = "GRR"
    disjoint: ClassVar[bool] = True

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        super().__init__(epsilon, domain)
        if self.domain.size > 2**32 or self.domain.code_bytes:
            raise ParameterError("GRR takes at most 2^32 values, each with an index (text: through a Segment)")

    @cached_property
    def _stay(self) -> int:
        return inside_threshold(self.epsilon, 1, self.domain.size - 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"stay": self._stay}

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self._stay, WORD)

    @cached_property
    def q(self) -> Fraction:
        return (1 - self.p) / (self.domain.size - 1)

    @cached_property
    def noise(self) -> SupportNoise:
        return SupportNoise(self.p, self.q, hit=Fraction(0), miss=Fraction(0))

    @property
    def fake_support(self) -> Fraction:
        return Fraction(1, self.domain.size)

    @property
    def fake_pair(self) -> Fraction:
        return Fraction(0)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.p / self.q)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("value", self.domain.size),))

    @property
    def decode_pairs(self) -> float:
        return 1.0

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        reported = stay_or_move(codes.astype(np.uint64), self._stay, self.domain.size, source)
        return {"value": reported.astype(self.layout.fields[0].dtype)}

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        values = columns["value"]
        if candidates is None:
            return histogram(values, self.domain.size, weights)
        order = np.argsort(candidates)
        place = np.minimum(np.searchsorted(candidates[order], values), len(order) - 1)
        found = candidates[order][place] == values
        kept = None if weights is None else weights[found]
        return histogram(order[place[found]], len(candidates), kept)

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        matches: NDArray[np.bool_] = columns["value"][:, None] == candidates[None, :]
        return matches.astype(np.uint8)
