"""Means and variances against theory on fixed seeds: no bias, the declared error, and rivals that are rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.significance import mean_fits, variance_fits

from veil import Interval, Piecewise, StochasticRounding, simulate
from veil.entropy import SeededForExperiments
from veil.mechanisms.numbers.moments import MeanMechanism
from veil.numeric.means import HybridMean, TwoPhaseVariance
from veil.results.mean import Mean

KINDS = (StochasticRounding, Piecewise, HybridMean)
DOMAIN = Interval(-40.0, 160.0, cells=1 << 16)
SEEDS = 300


def population(people: int) -> Any:
    """Skewed, so that the mean is not the middle, and rounded to the grid that devices have."""
    values = -40 + 200 * np.random.default_rng(3).beta(2, 6, people)
    return np.array(DOMAIN.decode(DOMAIN.encode(values)))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_means_are_unbiased_with_the_declared_error(kind: Any, epsilon: float) -> None:
    values, asked = population(2000), kind(epsilon, DOMAIN)
    theory = float(np.mean([asked.variance(2000, value) for value in values[:500]]))
    found: list[Mean] = [simulate(asked, values, seed=seed) for seed in range(SEEDS)]
    means = np.array([mean.value for mean in found])
    error = np.sqrt(theory / SEEDS)
    assert mean_fits(float(means.mean()), float(values.mean()), error)
    assert not mean_fits(float(means.mean()), float(values.mean()) + 8 * error, error)
    assert variance_fits(float(means.var(ddof=1)), SEEDS, theory)
    for rival in (theory / 2, theory * 2):
        assert not variance_fits(float(means.var(ddof=1)), SEEDS, rival)
    # the error bars speak of a larger population: they hold the people's own scatter too
    stated = np.mean([mean.stderr**2 for mean in found])
    assert stated == pytest.approx(theory + values.var() / 2000, rel=0.03)


def test_a_window_start_without_randomness_is_biased() -> None:
    """Rounding every value to the nearer end first: the bias is many standard errors."""
    values = population(200_000)
    ends = np.where(values > 60.0, 160.0, -40.0)
    asked = StochasticRounding(2.0, DOMAIN)
    right, wrong = (simulate(asked, held, seed=1) for held in (values, ends))
    assert mean_fits(right.value, float(values.mean()), right.stderr)
    assert not mean_fits(wrong.value, float(values.mean()), wrong.stderr)


def test_intervals_cover() -> None:
    """Fresh people every time, because an interval speaks of the population that they come from."""
    rng, asked, hits = np.random.default_rng(4), Piecewise(1.0, Interval(0, 1)), 0
    for seed in range(600):
        low, high = simulate(asked, rng.beta(2, 6, 500), seed=seed).interval()
        hits += low <= 0.25 <= high
    assert 0.91 < hits / 600 < 0.985


def test_the_better_mechanism_depends_on_epsilon() -> None:
    """Wang et al., in the worst case: stochastic rounding below eps = 1.29, piecewise above, the hybrid always."""
    values = population(20_000)

    def error(kind: Any, epsilon: float) -> float:
        asked = kind(epsilon, DOMAIN)
        return float(np.mean([(simulate(asked, values, seed=seed).value - values.mean()) ** 2 for seed in range(60)]))

    assert error(Piecewise, 4.0) < 0.5 * error(StochasticRounding, 4.0)
    assert Piecewise(0.3, DOMAIN).variance(1) > 1.2 * StochasticRounding(0.3, DOMAIN).variance(1)
    assert Piecewise(1.28, DOMAIN).variance(1) > StochasticRounding(1.28, DOMAIN).variance(1)
    assert Piecewise(1.30, DOMAIN).variance(1) < StochasticRounding(1.30, DOMAIN).variance(1)
    for epsilon in (0.1, 0.6, 0.7, 1.0, 2.0, 5.0, 12.0):
        either = min(kind(epsilon, DOMAIN).variance(1) for kind in (StochasticRounding, Piecewise))
        assert HybridMean(epsilon, DOMAIN).variance(1) <= either * (1 + 1e-9)
    for epsilon in (14.0, 20.0, 25.0, 30.0, 40.0):  # shares are parts of 2^16: up to 2 % above, and never more
        either = min(kind(epsilon, DOMAIN).variance(1) for kind in (StochasticRounding, Piecewise))
        assert HybridMean(epsilon, DOMAIN).variance(1) <= either * 1.02


@pytest.mark.parametrize("kind", KINDS)
def test_variance_in_two_phases(kind: Any) -> None:
    """The paper's way to a variance; its bias is the squared error of the first phase, which is small here."""
    values = population(40_000)
    truth, seeds = float(values.var()), 40
    found = [simulate(TwoPhaseVariance(kind, 2.0, DOMAIN), values, seed=seed) for seed in range(seeds)]
    variances = np.array([result.variance.value for result in found])
    error = float(np.sqrt(np.mean([result.variance.stderr**2 for result in found]) / seeds))
    bias = float(np.mean([(result.mean.value - values.mean()) ** 2 for result in found]))
    assert bias < error
    assert mean_fits(float(variances.mean()), truth + bias, error)
    assert not mean_fits(float(variances.mean()), truth * 0.5, error)
    assert not mean_fits(float(variances.mean()), float(np.mean((values - 60.0) ** 2)), error)  # a centre not told
    assert np.mean([result.std for result in found]) == pytest.approx(np.sqrt(truth), rel=0.1)


def test_one_seed_gives_one_answer() -> None:
    for kind in KINDS:
        campaign = TwoPhaseVariance(kind, 1.0, DOMAIN)
        assert simulate(campaign, population(3000), seed=5) == simulate(campaign, population(3000), seed=5)
        assert simulate(campaign, population(3000), seed=5) != simulate(campaign, population(3000), seed=6)


def test_weights_count_like_people() -> None:
    """Three times the weight of some people: the mean of a population with three of each of them."""
    values = population(60_000)
    weights = np.where(values > 0, 3, 1)
    for kind in (StochasticRounding, Piecewise):
        asked = kind(2.0, DOMAIN)
        mean = asked.estimate(asked.tally(asked.randomize(values, SeededForExperiments(1)), weights=weights))
        assert mean_fits(mean.value, float(np.average(values, weights=weights)), mean.stderr)
        assert not mean_fits(mean.value, float(values.mean()), mean.stderr)


@pytest.mark.parametrize(("kind", "epsilon"), [(StochasticRounding, 8.0), (Piecewise, 8.0)])
def test_intervals_of_few_people_near_a_bound_cover(kind: type[MeanMechanism], epsilon: float) -> None:
    """Reports that agree by chance say too little about their scatter: the rival, that scatter alone, is caught."""
    asked = kind(epsilon, Interval(0.0, 1.0, cells=1024))
    held = np.full(100, 0.02)
    first, last = asked.line
    truth = first + (last - first) * float(asked.place_of(0.02))
    found = [asked.estimate(asked.tally(asked.randomize(held, SeededForExperiments(seed)))) for seed in range(200)]
    assert np.mean([low <= truth <= high for low, high in (one.interval() for one in found)]) >= 0.93
    assert all(0.0 <= low <= high <= 1.0 for low, high in (one.interval() for one in found))
    assert np.mean([abs(one.value - truth) <= 1.96 * one.stderr for one in found]) < 0.9
