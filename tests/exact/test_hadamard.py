"""Proofs for HadamardResponse by enumeration, with and without signs, and rivals that the same functions reject."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import HadamardResponse
from veil.checks import exact_supports, worst_ratio
from veil.entropy import Source, outcomes
from veil.privacy import exp_below
from veil.report import Reports

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


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_signs_keep_the_ratio_and_estimate_the_signed_mean(size: int, epsilon: float) -> None:
    """A person is a value and a sign. Over all of them: the ratio, and (support - 1/2) / (p - 1/2) = sign * [held]."""
    oracle = HadamardResponse(epsilon, size)
    people = [(value, sign) for value in range(size) for sign in (1, -1)]
    channel = signed_channel(oracle, people)
    assert worst_ratio(channel) == oracle.guarantee.ratio
    every = np.arange(size, dtype=np.uint64)
    support = [[Fraction(0)] * size for _ in people]
    for report, chances in channel.items():
        columns = Reports.from_bytes(oracle.digest, oracle.layout, report).columns
        for value in np.flatnonzero(oracle.supports(columns, every)[0]):
            for person, chance in enumerate(chances):
                support[person][value] += chance
    for (held, sign), row in zip(people, support, strict=True):
        assert [(s - oracle.q) / (oracle.p - oracle.q) for s in row] == [sign * (v == held) for v in range(size)]


def signed_channel(oracle: HadamardResponse, people: list[tuple[int, int]]) -> dict[bytes, list[Fraction]]:
    matrix: dict[bytes, list[Fraction]] = {}
    for i, (value, sign) in enumerate(people):

        def report(source: Source, value: int = value, sign: int = sign) -> bytes:
            return oracle.randomize([value], source, signs=[sign]).to_bytes()

        for sent, chance in outcomes(report).items():
            matrix.setdefault(sent, [Fraction(0)] * len(people))[i] = chance
    return matrix


@dataclass(frozen=True, init=False)
class NarrowRows(HadamardResponse):
    """A matrix smaller than the domain: values that differ by its order have the same column."""

    @property
    def order(self) -> int:
        return 1 << (self.domain.size - 1).bit_length() - 1


@dataclass(frozen=True, init=False)
class NoRowZero(HadamardResponse):
    """Rows 1 .. K - 1 only, as many papers have it: columns then agree in fewer than half of the rows."""

    def draw(
        self, codes: NDArray[Any], source: Source, negative: NDArray[np.bool_] | None = None
    ) -> dict[str, NDArray[Any]]:
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
        supported += chances[1] * int(wide.supports(columns_of[report], every)[0][5])
    assert supported != wide.q
