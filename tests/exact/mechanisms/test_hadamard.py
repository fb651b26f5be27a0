"""Proofs for HadamardResponse by enumeration, and rivals that the same functions reject."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import HadamardResponse
from veil.checks import exact_supports, worst_ratio
from veil.entropy import Source
from veil.privacy import exp_below
from veil.reports.columns import Reports

EPSILONS = (0.1, 0.5, 1.0, 2.5)
SIZES = range(2, 9)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_ratio_bias_and_pairs(size: int, epsilon: float) -> None:
    oracle = HadamardResponse(epsilon, size)
    channel = oracle.channel()
    assert len(channel) == 2 * oracle.order
    assert worst_ratio(channel) == oracle.guarantee.ratio == oracle.p / (1 - oracle.p) <= exp_below(epsilon)
    single, pair = exact_supports(oracle)
    for held in range(size):
        assert sum(chances[held] for chances in channel.values()) == 1
        for value in range(size):
            assert single[held][value] == (oracle.p if value == held else Fraction(1, 2))
            for other in range(size):
                if other != value:
                    expected = oracle.p / 2 if held in (value, other) else Fraction(1, 4)
                    assert pair.get((held, value, other), Fraction(0)) == expected


@dataclass(frozen=True, init=False)
class NarrowRows(HadamardResponse):
    """A matrix smaller than the domain: values that differ by its order have the same column."""

    @property
    def order(self) -> int:
        return 1 << (self.domain.size - 1).bit_length() - 1


@dataclass(frozen=True, init=False)
class NoRowZero(HadamardResponse):
    """Rows 1 .. K - 1 only, as many papers have it: columns then agree in fewer than half of the rows."""

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        rows = source.below(self.order - 1, len(codes)) + np.uint64(1)
        bits = (np.bitwise_count(rows & codes) & 1).astype(np.bool_) ^ ~source.coin(self._keep, len(codes))
        return {"signed_row": (2 * rows + bits).astype(self.layout.fields[0].dtype)}


@pytest.mark.parametrize("rival", [NarrowRows, NoRowZero])
def test_rivals_are_biased(rival: type[HadamardResponse]) -> None:
    oracle = rival(1.0, 6)
    wide = HadamardResponse(1.0, 6)
    columns_of = {
        report: Reports.from_bytes(oracle.digest, oracle.layout, report).columns for report in oracle.channel()
    }
    every = np.arange(6, dtype=np.uint64)
    supported = Fraction(0)
    for report, chances in oracle.channel().items():
        supported += chances[1] * int(wide.incidence(columns_of[report], every)[0][5])
    assert supported != wide.q
