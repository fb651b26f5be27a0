"""HaarResponse: the sign of a Haar coefficient, by Hadamard randomized response (Kulkarni et al., VLDB 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms.oracle import SignResponse
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.mean import Coefficients

_LARGEST = 1 << 24


@dataclass(frozen=True, init=False)
class HaarResponse(SignResponse):
    """Codes are nodes of one level of a binary tree: pair a = code >> 1, on the left (0) or right (1) side of it.

    Draw a row j of the Hadamard matrix of order K >= pairs, and report the sign (-1)^(popcount(j & a) + side): kept
    with probability p, flipped otherwise. That is HadamardResponse over the nodes with odd rows only, the ones that
    tell the sides apart: the same variance for a difference as it has for one frequency, half of what all rows give.

    Guarantee: j does not depend on the value, and for every j the sign is binary randomized response: p / (1 - p) <=
    e^eps exactly, with p = T / 2^64 rounded down. A report is the integer 2 j + bit, bit 1 for the sign -1. For two
    nodes there is one row: plain randomized response.

    >>> from veil.entropy import SeededForExperiments
    >>> asked = HaarResponse(epsilon=4.0, domain=4)
    >>> held = [0] * 6000 + [1] * 2000 + [3] * 2000
    >>> found = asked.estimate(asked.tally(asked.randomize(held, SeededForExperiments(1))))
    >>> found.differences.round(1).tolist()
    [0.4, -0.2]
    """

    name: ClassVar[str] = "HaarResponse"

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        super().__init__(epsilon, domain)
        if self.domain.size > _LARGEST or self.domain.code_bytes:
            raise ParameterError("HaarResponse takes at most 2^24 values, each with an index")

    @property
    def pairs(self) -> int:
        """How many differences there are; the last may be of a value that has no partner."""
        return -(-self.domain.size // 2)

    @property
    def order(self) -> int:
        """Rows of the matrix, K: the smallest power of two that is not below the number of pairs."""
        return 1 << (self.pairs - 1).bit_length()

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("signed_row", 2 * self.order),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        pairs, right = codes >> np.uint64(1), codes & np.uint64(1)
        rows = source.below(self.order, len(codes))
        bits = ((np.bitwise_count(rows & pairs) & 1) ^ right).astype(np.bool_)
        bits ^= ~source.coin(self._keep, len(codes))
        return {"signed_row": (2 * rows + bits).astype(self.layout.fields[0].dtype)}

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        return self.order

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """For each row, the reports with the sign +1 less those with -1; `estimate` transforms the sum once."""
        from veil.kernels.transforms import signed_histogram

        return signed_histogram(columns["signed_row"].astype(np.uint64), weights, self.order)

    def estimate(
        self, tally: Tally, *, population: int | None = None, scale: Fraction = Fraction(1), lineage: str = ""
    ) -> Coefficients:
        """Runs at the collector: the differences with their variance, never clipped.

        Of all reports, the share whose sign is that of the pair's column less the others, over 2 p - 1: a report of
        somebody in another pair has either sign in half of the rows, and adds 0 on average.
        """
        from veil.kernels.transforms import transform

        tally = self.own(tally)
        signs = tally.counts.copy()
        transform(signs)
        gain = float(scale / (2 * self.p - 1))
        return Coefficients(
            domain=self.domain,
            differences=signs[: self.pairs] / tally.weight * gain,
            n=tally.people,
            population=tally.people if population is None else max(population, tally.people),
            effective=tally.weight**2 / tally.square,
            moment=gain**2,
            lineage=(lineage or self.signature,),
        )
