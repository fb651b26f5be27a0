"""Proofs for SHE by enumeration on a small reach: the ratio at every report and clamped end, mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import pytest

from veil import MECHANISMS, SHE
from veil.checks import CheckError, check, worst_ratio
from veil.entropy import SeededForExperiments
from veil.errors import InputError, ParameterError
from veil.privacy import WORD, coin_threshold, exp_below, exp_near
from veil.reports.columns import Reports

SMALL = [
    SHE(epsilon, size, grid=grid, reach=reach)
    for epsilon in (0.1, 1.0, 2.5)
    for size, grid, reach in [(2, 1, 1), (2, 1, 5), (2, 3, 2), (2, 4, 1), (3, 1, 1), (3, 1, 2), (3, 2, 1), (4, 1, 1)]
]


@cache
def channel_of(oracle: SHE) -> dict[bytes, list[Fraction]]:
    return oracle.channel()


def coordinate(oracle: SHE, channel: dict[bytes, list[Fraction]], held: int, value: int) -> dict[int, Fraction]:
    """The distribution of one coordinate, in steps of the grid, when `held` is held."""
    found: dict[int, Fraction] = {}
    for report, chances in channel.items():
        columns = Reports.from_bytes(oracle.digest, oracle.layout, report).columns
        steps = int(oracle.counts(columns, None, None)[value])
        found[steps] = found.get(steps, Fraction(0)) + chances[held]
    return found


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_the_ratio_is_exact_at_every_report(oracle: SHE) -> None:
    channel = channel_of(oracle)
    assert len(channel) == oracle.levels**oracle.domain.size  # every report is possible, under every value
    for held in range(oracle.domain.size):
        assert sum(chances[held] for chances in channel.values()) == 1
    assert worst_ratio(channel) == oracle.guarantee.ratio == oracle.alpha ** (-2 * oracle.grid)
    assert worst_ratio(channel) <= exp_below(oracle.epsilon)
    assert float(worst_ratio(channel)) == pytest.approx(np.exp(oracle.epsilon), rel=1e-9)


@pytest.mark.parametrize("oracle", SMALL[:8], ids=repr)
def test_each_clamped_bound_keeps_half_of_the_ratio(oracle: SHE) -> None:
    channel = channel_of(oracle)
    mine, other = coordinate(oracle, channel, 0, 0), coordinate(oracle, channel, 1, 0)
    half = oracle.alpha**-oracle.grid
    low, high = -oracle.reach, oracle.grid + oracle.reach
    assert (min(mine), max(mine)) == (low, high)
    assert other[low] / mine[low] == half == mine[high] / other[high]
    assert max(max(mine[s] / other[s], other[s] / mine[s]) for s in mine) == half


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_mean_and_variance_are_exact(oracle: SHE) -> None:
    channel, grid, clamped = channel_of(oracle), oracle.grid, oracle.bias_bound
    for value, expected in ((0, 1 - clamped), (1, clamped)):
        steps = coordinate(oracle, channel, 0, value)
        mean = sum(Fraction(s, grid) * chance for s, chance in steps.items())
        square = sum(Fraction(s, grid) ** 2 * chance for s, chance in steps.items())
        assert mean == expected  # the plain sum is off by the bound, inwards; the estimator is not off at all:
        assert (mean - clamped) / (1 - 2 * clamped) == (value == 0)
        assert (square - mean**2) / (1 - 2 * clamped) ** 2 == oracle.noise.per_value


def test_coordinates_are_independent() -> None:
    oracle = SHE(1.0, 3, reach=1)
    channel = channel_of(oracle)
    margins = [coordinate(oracle, channel, 0, value) for value in range(3)]
    for report, chances in channel.items():
        steps = oracle.counts(Reports.from_bytes(oracle.digest, oracle.layout, report).columns, None, None)
        assert chances[0] == margins[0][steps[0]] * margins[1][steps[1]] * margins[2][steps[2]]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("grid", [1, 2, 64])
def test_thresholds_are_rounded_toward_privacy(epsilon: float, grid: int) -> None:
    oracle = SHE(epsilon, 5, grid=grid)
    assert oracle.alpha ** (-2 * grid) <= exp_below(epsilon) < (oracle.alpha - Fraction(1, WORD)) ** (-2 * grid)
    zero = Fraction(oracle.thresholds["zero"], WORD)
    one = (1 - zero) / 2 * (1 - oracle.alpha)
    assert oracle.alpha <= zero / one <= 1 / oracle.alpha
    if oracle.levels < 2**16 - 1:
        assert oracle.alpha**oracle.reach <= Fraction(1, 2**40) < oracle.alpha ** (oracle.reach - 1)
        assert 0 < oracle.bias_bound < Fraction(1, 2**40)
        geometric = 2 * oracle.alpha / (1 - oracle.alpha) ** 2 / grid**2
        assert oracle.variance(1) == pytest.approx(float(geometric), rel=1e-7)


@dataclass(frozen=True, init=False)
class NearestSHE(SHE):
    """alpha from a rounded exponential, rounded to nearest: above eps in about half of all settings."""

    @cached_property
    def _further(self) -> int:
        nearest = exp_near(-Fraction(repr(self.epsilon)) / (2 * self.grid))
        return coin_threshold(nearest + Fraction(1, 2 * WORD))


@dataclass(frozen=True, init=False)
class SharpSHE(SHE):
    """Noise for one coordinate's difference where two coordinates differ: twice the declared epsilon."""

    @cached_property
    def _further(self) -> int:
        return coin_threshold(1 / exp_below(self.epsilon), up=True)


def test_rivals_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [e for e in (0.1, 0.3, 0.7, 1.0, 1.5, 1.9) if NearestSHE(e, 2).guarantee.ratio > exp_below(e)]
    assert broken
    for epsilon in broken:
        assert worst_ratio(NearestSHE(epsilon, 2, reach=1).channel()) > exp_below(epsilon)
    monkeypatch.setitem(MECHANISMS, "SHE", SharpSHE)
    with pytest.raises(CheckError, match="exceeds e\\^epsilon"):
        check(SharpSHE)


@pytest.mark.parametrize(
    "given",
    [{"grid": 0}, {"grid": 1025}, {"grid": True}, {"grid": 1.5}, {"reach": 0}, {"reach": 2**15}, {"reach": "9"}],
)
def test_bad_parameters_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        SHE(1.0, 4, **given)


@pytest.mark.parametrize("grid", [1, 64, 1024])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 20.0, 40.0])
def test_coins_express_the_smallest_and_the_largest_epsilon(epsilon: float, grid: int) -> None:
    """The step between 0 and 1 keeps the ratio of all other steps: 0 is neither too likely nor too unlikely."""
    oracle = SHE(epsilon, 4, grid=grid)
    assert oracle.guarantee.within(epsilon)
    zero = Fraction(oracle.thresholds["zero"], 2**64)
    one = (1 - zero) / 2 * (1 - oracle.alpha)
    assert oracle.alpha <= zero / one <= 1 / oracle.alpha


def test_weights_whose_sums_could_overflow_are_refused() -> None:
    oracle = SHE(4.0, 2, reach=2**15 - 1)  # two bytes a coordinate
    reports = oracle.randomize([0] * 70_000, SeededForExperiments(1))
    largest = 2**31 - 1
    some = oracle.tally(reports[:60_000], weights=[largest] * 60_000)
    assert some.counts.tolist() == [largest * int(c) for c in oracle.tally(reports[:60_000]).counts]
    with pytest.raises(InputError, match="64 bits"):
        oracle.tally(reports, weights=[largest] * 70_000)
