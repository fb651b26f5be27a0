"""Proofs by enumeration for mechanisms that ask for a mean: ratio, no bias, variance. Fractions only, and rivals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import MECHANISMS, Integers, Interval, Piecewise, StochasticRounding
from veil.checks import CheckError, check, worst_ratio
from veil.entropy import Source, outcomes
from veil.mechanisms import MeanMechanism
from veil.numeric.means import HybridMean
from veil.privacy import WORD, coin_threshold, exp_below, exp_near
from veil.reports.columns import Reports
from veil.survey import SurveyTally

EPSILONS = (0.1, 0.5, 1.0, 2.5, 6.0)
CELLS = range(2, 7)

SMALL: list[MeanMechanism] = [
    *(StochasticRounding(epsilon, cells) for epsilon in EPSILONS for cells in CELLS),
    *(Piecewise(epsilon, cells, steps=steps) for epsilon in EPSILONS for cells in CELLS for steps in (2, 8, 11, 12)),
    *(Piecewise(1.0, 5, steps=9, window=window) for window in range(1, 9)),
    Piecewise(1.0, Interval(-1.5, 2.25, 6), steps=12),
]


@cache
def channel_of(mechanism: MeanMechanism) -> dict[bytes, list[Fraction]]:
    return mechanism.channel()


def place_of(mechanism: MeanMechanism, report: bytes) -> Fraction:
    """What the shipped estimator makes of one report, before it becomes a double."""
    tally = mechanism.tally(Reports.from_bytes(mechanism.digest, mechanism.layout, report))
    return mechanism.moments(tally).place


def moments_of(mechanism: MeanMechanism, held: int) -> tuple[Fraction, Fraction]:
    """The exact mean and variance of one person's estimate."""
    chances = {place_of(mechanism, report): chance[held] for report, chance in channel_of(mechanism).items()}
    mean = sum((place * chance for place, chance in chances.items()), start=Fraction(0))
    return mean, sum((place**2 * chance for place, chance in chances.items()), start=Fraction(0)) - mean**2


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_the_ratio_is_exact_and_every_report_is_possible_for_every_value(mechanism: MeanMechanism) -> None:
    channel = channel_of(mechanism)
    assert len(channel) == mechanism.levels
    for held in range(mechanism.cells):
        assert sum(chances[held] for chances in channel.values()) == 1
    for chances in channel.values():
        assert min(chances) > 0  # every report under every value, the ends included
    assert worst_ratio(channel) == mechanism.guarantee.ratio <= exp_below(mechanism.epsilon)
    assert float(worst_ratio(channel)) == pytest.approx(np.exp(mechanism.epsilon), rel=1e-9)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_every_estimate_is_unbiased_and_its_variance_is_the_declared_one(mechanism: MeanMechanism) -> None:
    last = mechanism.cells - 1
    spreads = []
    for held in range(mechanism.cells):
        mean, variance = moments_of(mechanism, held)
        assert mean == Fraction(held, last)
        assert variance == mechanism.spread(Fraction(held, last))
        spreads.append(variance)
    assert mechanism.least_spread <= min(spreads)
    assert max(spreads) <= mechanism.worst_spread <= mechanism.most_spread
    fine = [mechanism.spread(Fraction(i, 360)) for i in range(181)]  # the other half is a mirror image
    assert mechanism.least_spread <= min(fine)
    assert max(fine) <= mechanism.worst_spread
    value = mechanism.domain.label(last)
    assert mechanism.variance(3, value) == pytest.approx(float(spreads[-1]) / 3 * _length(mechanism) ** 2, rel=1e-12)


def _length(mechanism: MeanMechanism) -> float:
    first, last = mechanism.domain.decode([0, mechanism.cells - 1])
    return float(last - first)


@pytest.mark.parametrize("mechanism", SMALL[::7], ids=repr)
def test_the_variance_is_largest_for_halves_at_both_bounds(mechanism: MeanMechanism) -> None:
    """The scatter of a random person's report: within the bounds that a standard error is held in."""
    last = mechanism.cells - 1
    rng = np.random.default_rng(1)
    halves = [1, *[0] * (last - 1), 1]
    for people in (halves, *rng.integers(0, 9, (50, last + 1)).tolist(), *np.eye(last + 1, dtype=int).tolist()):
        shares = [Fraction(count, sum(people) or 1) for count in people]
        mean = sum(share * Fraction(u, last) for u, share in enumerate(shares))
        square = sum(
            share * (mechanism.spread(Fraction(u, last)) + Fraction(u, last) ** 2) for u, share in enumerate(shares)
        )
        scatter = square - mean**2
        if sum(people):
            assert mechanism.least_spread <= scatter <= mechanism.most_spread
        if people == halves:
            assert scatter == mechanism.most_spread


def test_stochastic_rounding_is_piecewise_with_two_steps() -> None:
    for epsilon in EPSILONS:
        for cells in CELLS:
            one, two = StochasticRounding(epsilon, cells), Piecewise(epsilon, cells, steps=2)
            assert channel_of(one) == channel_of(two)
            assert (one.guarantee, one.worst_spread) == (two.guarantee, two.worst_spread)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 12.0])
def test_many_steps_are_the_papers_continuous_mechanism(epsilon: float) -> None:
    """Wang et al., equation 8, on [-1, 1]: t^2 / (e^(eps/2) - 1) + (e^(eps/2) + 3) / (3 (e^(eps/2) - 1)^2)."""
    mechanism, root = Piecewise(epsilon, Integers(-100, 100)), np.exp(epsilon / 2)
    for value in (-100, -40, 0, 70):
        paper = (value / 100) ** 2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        assert mechanism.variance(1, value) / 100**2 == pytest.approx(paper, rel=5e-4)
    rounding, power = StochasticRounding(epsilon, Integers(-100, 100)), np.exp(epsilon)
    for value in (-100, -40, 0, 70):
        paper = ((power + 1) / (power - 1)) ** 2 - (value / 100) ** 2
        assert rounding.variance(1, value) / 100**2 == pytest.approx(paper, rel=1e-9)


# -- the hybrid --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class SmallHybrid(HybridMean):
    """Few steps and few shares, so that every path can be followed."""

    @cached_property
    def shares(self) -> tuple[int, int]:
        return 2, 3

    @cached_property
    def mechanisms(self) -> tuple[MeanMechanism, ...]:
        return Piecewise(self.epsilon, self.domain, steps=8), StochasticRounding(self.epsilon, self.domain)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("cells", [2, 3, 6])
def test_the_hybrid_is_private_and_unbiased(epsilon: float, cells: int) -> None:
    hybrid = SmallHybrid(epsilon, cells)
    survey, channel = hybrid.survey, {}
    for held in range(cells):
        code = np.array([held], dtype=np.uint64)
        drawn = outcomes(lambda source, code=code: survey.reports(code, source).to_bytes())
        for report, chance in drawn.items():
            channel.setdefault(report, [Fraction(0)] * cells)[held] = chance
    assert worst_ratio(channel) == hybrid.guarantee.ratio <= exp_below(epsilon)
    for held in range(cells):
        mean = Fraction(0)
        for report, chances in channel.items():
            tally = survey.tally(Reports.from_bytes(survey.task, survey.layout, report))
            mean += chances[held] * _place(hybrid, tally)
        assert mean == Fraction(held, cells - 1)


def _place(hybrid: HybridMean, tally: SurveyTally) -> Fraction:
    """As `estimate` adds it up; the double it ends in is compared with this."""
    first, second = (asked.moments(part) for asked, part in zip(hybrid.mechanisms, tally.parts, strict=True))
    place = (first + second).place
    assert hybrid.read(tally).value == pytest.approx(float(place) * (hybrid.domain.size - 1), abs=1e-12)
    return place


def test_the_hybrids_shares_are_those_of_the_paper() -> None:
    star = np.log((-5 + 2 * np.cbrt(6353 - 405 * np.sqrt(241)) + 2 * np.cbrt(6353 + 405 * np.sqrt(241))) / 27)
    assert star == pytest.approx(0.61, abs=0.005)
    for epsilon in (0.01, star * (1 - 1e-12)):
        assert HybridMean(epsilon, 9).shares == (0, 2**16)
        assert HybridMean(epsilon, 9).mechanisms == (StochasticRounding(epsilon, 9),)
    for epsilon in (star * (1 + 1e-12), 1.0, 4.0, 12.0):
        assert HybridMean(epsilon, 9).shares[0] / 2**16 == pytest.approx(1 - np.exp(-epsilon / 2), abs=1e-5)
    assert HybridMean(40.0, 9).shares == (2**16, 0)
    assert [asked.name for asked in HybridMean(30.0, 9).mechanisms] == ["Piecewise"]


# -- rivals ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class RoundsToTheNearer(StochasticRounding):
    """Rounds to the nearer end, always."""

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        high = 2 * codes >= self.cells
        return {"sign": (high ^ ~source.coin(self.inside, len(codes))).astype(np.uint8)}


@dataclass(frozen=True, init=False)
class SwappedRounding(StochasticRounding):
    """p and 1 - p confused in the estimator."""

    @cached_property
    def p(self) -> Fraction:
        return 1 - Fraction(self.inside, WORD)

    @cached_property
    def guarantee(self) -> Any:
        return StochasticRounding(self.epsilon, self.domain).guarantee


@dataclass(frozen=True, init=False)
class WholeSteps(Piecewise):
    """The start of the window rounded down, always."""

    def draw_starts(self, codes: NDArray[Any], source: Source) -> NDArray[np.uint64]:
        return codes * np.uint64(self.travel) // np.uint64(self.cells - 1)


@dataclass(frozen=True, init=False)
class NearestPiecewise(Piecewise):
    """A rounded exponential and a threshold rounded to nearest: above eps in about half of all settings."""

    @cached_property
    def inside(self) -> int:
        odds = exp_near(Fraction(repr(self.epsilon))) * self.window
        return coin_threshold(odds / (odds + self.travel) + Fraction(1, 2 * WORD))


@dataclass(frozen=True, init=False)
class CutOff(Piecewise):
    """Nothing outside of the window: the range of the reports gives the value away."""

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        starts = self.draw_starts(codes, source)
        drawn = source.below(self.window, len(codes))
        return {"step": (starts + drawn).astype(self.layout.fields[0].dtype)}


BROKEN = [
    (RoundsToTheNearer, "biased"),
    (SwappedRounding, "biased"),
    (WholeSteps, "biased"),
    (NearestPiecewise, "exceeds e\\^epsilon"),
    (CutOff, "impossible under some value"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=lambda part: getattr(part, "__name__", part))
def test_rivals_are_rejected(broken: type[MeanMechanism], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, broken.name, broken)
    with pytest.raises(CheckError, match=message):
        check(broken)
