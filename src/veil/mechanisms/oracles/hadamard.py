"""HadamardResponse: one sign of one random row of the Hadamard matrix, decoded by a fast transform."""

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
from veil.mechanisms.oracle import PureOracle, SignResponse
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.laws import SupportNoise

_LARGEST = 2**63  # 2 j + bit must fit into 64 bits


@dataclass(frozen=True, init=False)
class HadamardResponse(SignResponse, PureOracle):
    """Draw a row j of the Hadamard matrix of order K >= d, and report the sign H[j, v] = (-1)^popcount(j & v) of the
    held value v in it: kept with probability p, flipped otherwise.

    Guarantee: j does not depend on the value, and for every j the sign is binary randomized response: p / (1 - p) <=
    e^eps exactly, with p = T / 2^64 rounded down. A report is the integer 2 j + bit, bit 1 for the sign -1: the fewest
    bytes, and one step for each at the collector. The error is that of binary local hashing: next to the best up to
    eps = 1, far from it above.

    >>> oracle = HadamardResponse(epsilon=1.0, domain=1000)
    >>> oracle.order, oracle.layout.size
    (1024, 2)
    """

    name: ClassVar[str] = "HadamardResponse"

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        super().__init__(epsilon, domain)
        if self.domain.size > _LARGEST or self.domain.code_bytes:
            raise ParameterError("HadamardResponse takes at most 2^63 values, each with an index")

    @property
    def order(self) -> int:
        """Rows of the matrix, K: the smallest power of two that is not below the number of values."""
        return 1 << (self.domain.size - 1).bit_length()

    @property
    def q(self) -> Fraction:
        # Columns u and v of H agree in exactly half of the rows: their product is the column u ^ v, which is not 0.
        return Fraction(1, 2)

    @cached_property
    def noise(self) -> SupportNoise:
        # One of two values is held: supported with p, and the other column agrees with it in half of the rows. Neither
        # is: times the held column theirs are two different ones, u ^ w and v ^ w, whose four pairs of signs come in a
        # quarter of the rows each; whether the sign is kept or flipped, one of the four supports both.
        return SupportNoise(self.p, self.q, hit=self.p / 2, miss=Fraction(1, 4))

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("signed_row", 2 * self.order),))

    @property
    def decode_pairs(self) -> float:
        return 1.0

    # -- on the device ---------------------------------------------------------------------------------------------

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        rows = source.below(self.order, len(codes))
        bits = (np.bitwise_count(rows & codes) & 1).astype(np.bool_)
        bits ^= ~source.coin(self._keep, len(codes))
        return {"signed_row": (2 * rows + bits).astype(self.layout.fields[0].dtype)}

    # -- at the collector ------------------------------------------------------------------------------------------

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        return self.order if candidates is None else len(candidates)

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """For the whole domain the signed histogram over the rows, which adds up; `shares` transforms the sum once."""
        from veil.kernels.transforms import signed_histogram

        if candidates is None:
            return signed_histogram(_wide(columns), weights, self.order)
        return self.support(columns, candidates, weights)

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        if tally.candidates is not None:
            return super().shares(tally)
        # Twice the support less all reports, so that (3.1) with q = 1/2 loses its constant.
        return np.asarray(self._transformed(tally.counts) / tally.weight / float(2 * self.p - 1))

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        from veil.kernels.counting import halves
        from veil.kernels.parallel import sum_over_threads
        from veil.kernels.transforms import count_parities, count_parities_weighted

        reports = _wide(columns)
        if candidates is None:
            total = len(reports) if weights is None else int(weights.sum())
            return (total + self._transformed(self.counts(columns, None, weights))) // 2
        count = count_parities if weights is None else count_parities_weighted
        codes = candidates.astype(np.uint64)
        return sum_over_threads(count, (reports, weights), *halves(codes), work=len(codes))

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        reports = _wide(columns)[:, None]
        differ = np.bitwise_count((reports >> np.uint64(1)) & candidates[None, :]) ^ reports.astype(np.uint8)
        return np.asarray((differ & 1) ^ 1, dtype=np.uint8)

    def _transformed(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """For every value, the reports whose sign is that of its column less those whose is not."""
        from veil.kernels.transforms import transform

        signs = histogram.copy()
        transform(signs)
        return signs[: self.domain.size]


def _wide(columns: Columns) -> NDArray[np.uint64]:
    """The reports in 64 bits, whatever they travel in: the kernels are compiled once."""
    return columns["signed_row"].astype(np.uint64)
