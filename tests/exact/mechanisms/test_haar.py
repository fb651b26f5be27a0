"""Proofs for HaarResponse by enumeration: ratio, bias and variance; rivals that the same functions tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from veil import HaarResponse, HadamardResponse
from veil.checks import worst_ratio
from veil.mechanisms import Mechanism
from veil.privacy import exp_below
from veil.reports.columns import Reports

EPSILONS = (0.1, 1.0, 2.5)
SIZES = range(2, 10)
Moments = list[list[Fraction]]


def held_difference(code: int, pair: int) -> int:
    """What one person adds to a pair's true difference."""
    return 0 if code >> 1 != pair else 1 - 2 * (code & 1)


def differences(asked: Mechanism, columns: object) -> list[Fraction]:
    """What one report adds to each pair's estimated difference, exactly, by the shipped integers."""
    tally = asked.tally_columns(columns, None)  # type: ignore[arg-type]
    if isinstance(asked, HaarResponse):
        signs = np.rint(asked.estimate(tally).differences * float(2 * asked.p - 1)).astype(int)
        return [int(sign) / (2 * asked.p - 1) for sign in signs]
    assert isinstance(asked, HadamardResponse)
    support = [2 * int(s) - 1 for s in asked.support(columns, None, None)]  # type: ignore[arg-type]
    support += [0] * (len(support) % 2)
    return [(a - b) / (2 * asked.p - 1) for a, b in zip(support[::2], support[1::2], strict=True)]


def moments(asked: Mechanism) -> tuple[Moments, Moments]:
    """The exact mean and mean square of what a report adds, by the value that is held and the pair."""
    size = asked.domain.size
    pairs = range(-(-size // 2))
    first = [[Fraction(0) for _ in pairs] for _ in range(size)]
    second = [[Fraction(0) for _ in pairs] for _ in range(size)]
    for report, chances in asked.channel().items():
        added = differences(asked, Reports.from_bytes(asked.digest, asked.layout, report).columns)
        for held, chance in enumerate(chances):
            for pair in pairs:
                first[held][pair] += chance * added[pair]
                second[held][pair] += chance * added[pair] ** 2
    return first, second


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_ratio_bias_and_variance(size: int, epsilon: float) -> None:
    asked = HaarResponse(epsilon, size)
    channel = asked.channel()
    assert len(channel) == 2 * asked.order
    assert worst_ratio(channel) == asked.guarantee.ratio == asked.p / (1 - asked.p) <= exp_below(epsilon)
    first, second = moments(asked)
    for held in range(size):
        assert sum(chances[held] for chances in channel.values()) == 1
        assert first[held] == [held_difference(held, pair) for pair in range(asked.pairs)]
        assert set(second[held]) == {1 / (2 * asked.p - 1) ** 2}


@pytest.mark.parametrize("size", [4, 6, 8])
def test_all_rows_have_twice_the_second_moment(size: int) -> None:
    """The rival: HadamardResponse over the nodes, whose even rows say the same of both sides."""
    rival = HadamardResponse(1.0, size)
    first, second = moments(rival)
    for held in range(size):
        assert first[held] == [held_difference(held, pair) for pair in range(size // 2)]
        assert set(second[held]) == {2 / (2 * rival.p - 1) ** 2}


def test_two_values_are_plain_randomized_response() -> None:
    asked = HaarResponse(1.0, 2)
    assert asked.order == 1
    assert asked.channel() == {b"\x00": [asked.p, 1 - asked.p], b"\x01": [1 - asked.p, asked.p]}


@dataclass(frozen=True, init=False)
class NarrowRows(HaarResponse):
    """A matrix smaller than the number of pairs: pairs that differ by its order have the same column."""

    @property
    def order(self) -> int:
        return 1 << (self.pairs - 1).bit_length() - 1


def test_a_narrow_matrix_is_biased() -> None:
    """Its reports read by the right matrix: somebody in the last pair counts for the first one too."""
    rival, right = NarrowRows(1.0, 8), HaarResponse(1.0, 8)
    mean = Fraction(0)
    for report, chances in rival.channel().items():
        columns = Reports.from_bytes(rival.digest, rival.layout, report).columns
        mean += chances[4] * differences(right, columns)[0]
    assert mean == 1
    assert held_difference(4, 0) == 0


def test_the_stated_variance_is_that_of_a_large_population() -> None:
    """People drawn at random: E X^2 - (E X)^2, exactly, whatever the shares of the values."""
    asked = HaarResponse(0.7, 5)
    shares = [Fraction(part, 20) for part in (9, 1, 4, 4, 2)]
    first, second = moments(asked)
    for pair in range(asked.pairs):
        mean = sum((share * row[pair] for share, row in zip(shares, first, strict=True)), Fraction(0))
        square = sum((share * row[pair] for share, row in zip(shares, second, strict=True)), Fraction(0))
        reports = asked.randomize([0, 1, 2, 3, 4])
        found = asked.estimate(asked.tally(reports))
        assert found.moment == pytest.approx(float(square), rel=1e-12)
        assert mean == [Fraction(8, 20), Fraction(0), Fraction(2, 20)][pair]
    assert found.variance == pytest.approx(np.maximum(found.moment - found.differences**2, 0) / 5, abs=1e-12)
