"""Metrics of distributions of numbers: compared with plain definitions on a fine grid, with scipy, and with rivals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.significance import mean_fits

from veil.errors import InputError
from veil.metrics import ks, mean_error, quantile_error, range_mae, variance_error, wasserstein

Floats = NDArray[np.float64]
FINE = 3 * 5 * 1024  # a grid that holds the edges of all histograms here


def histogram(buckets: int, seed: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(buckets, 0.3))


def with_negatives(buckets: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return histogram(buckets, seed) + rng.normal(0.0, 0.05, buckets)


def cumulative(masses: Floats) -> Floats:
    """P at the edges of the fine grid, by hand: each bucket is cut into equal parts."""
    parts = FINE // len(masses)
    return np.array([0.0, *np.cumsum([mass / parts for mass in masses for _ in range(parts)])])


PAIRS = [
    (histogram(16, 1), histogram(16, 2)),
    (histogram(16, 1), histogram(1024, 3)),
    (histogram(1024, 3), histogram(64, 4)),
    (histogram(15, 5), histogram(64, 6)),
    (with_negatives(64, 7), histogram(256, 8)),
]


def test_distances_of_the_papers_example_grow_with_the_shift() -> None:
    """Section 3.1: both estimates have the same L1 distance; one moved the mass by one place, the other by three."""
    truth, near, far = [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]
    assert wasserstein(near, truth) == pytest.approx(0.6)
    assert wasserstein(far, truth) == pytest.approx(1.8)
    assert wasserstein(near, truth, length=1.0) == pytest.approx(0.15)
    assert wasserstein(far, truth, length=40.0) == pytest.approx(18.0)
    assert ks(near, truth) == pytest.approx(0.6)


@pytest.mark.parametrize(("estimate", "truth"), PAIRS[:1])
def test_distances_of_as_many_buckets_are_sums_over_buckets(estimate: Floats, truth: Floats) -> None:
    errors = np.abs(np.cumsum(estimate - truth))
    assert wasserstein(estimate, truth) == errors.sum()
    assert ks(estimate, truth) == errors.max()
    middles = (np.arange(16) + 0.5) / 16
    by_scipy = stats.wasserstein_distance(middles, middles, estimate, truth)
    assert wasserstein(estimate, truth, length=1.0) == pytest.approx(by_scipy, rel=1e-12)


@pytest.mark.parametrize(("estimate", "truth"), PAIRS)
def test_distances_on_a_fine_grid(estimate: Floats, truth: Floats) -> None:
    errors = cumulative(estimate) - cumulative(truth)
    assert ks(estimate, truth) == pytest.approx(np.abs(errors).max(), rel=1e-9)
    # the sum is the integral, but for what crosses 0 within a bucket, and half of what is left at the end
    common = np.lcm(len(estimate), len(truth))
    crossed = np.count_nonzero(np.diff(np.sign(errors[:: FINE // common])))
    integral = float(np.mean((np.abs(errors[1:]) + np.abs(errors[:-1])) / 2))
    most = (crossed + 1) / common * np.abs(np.diff(errors[:: FINE // common])).max() + abs(errors[-1]) / common
    assert integral - 1e-12 <= wasserstein(estimate, truth, length=1.0) <= integral + most
    assert wasserstein(estimate, truth, length=2.0) == pytest.approx(2 * wasserstein(truth, estimate, length=1.0))


def test_results_do_not_depend_on_the_number_of_buckets() -> None:
    coarse, other = histogram(16, 1), np.array([0.8, 0.2])
    fine = np.repeat(coarse / 64, 64)
    assert ks(fine, other) == pytest.approx(ks(coarse, other))
    for metric in (mean_error, variance_error, quantile_error):
        assert metric(fine, other) == pytest.approx(metric(coarse, other))
        assert metric(fine, coarse) == pytest.approx(0.0, abs=1e-12)
    assert range_mae(fine, other, 0.1) == pytest.approx(range_mae(coarse, other, 0.1))


def test_wasserstein_depends_on_buckets_only_where_laws_cross() -> None:
    coarse = histogram(16, 1)
    fine = np.repeat(coarse / 64, 64)
    lowest = [1.0, *[0.0] * 15]  # all in the first bucket: its law is never below another
    assert wasserstein(fine, lowest, length=1.0) == pytest.approx(wasserstein(coarse, lowest, length=1.0), rel=1e-12)
    crossing = np.array([0.8, 0.2])
    errors = np.abs(cumulative(coarse) - cumulative(crossing))
    integral = float(np.mean((errors[1:] + errors[:-1]) / 2))
    assert integral < wasserstein(fine, crossing, length=1.0) < integral * (1 + 1e-4)
    assert integral * (1 + 1e-2) < wasserstein(coarse, crossing, length=1.0)


@pytest.mark.parametrize(("estimate", "truth"), PAIRS)
@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_ranges_drawn_at_random_have_the_same_error(estimate: Floats, truth: Floats, alpha: float) -> None:
    grid = np.linspace(0.0, 1.0, FINE + 1)
    law = cumulative(estimate) - cumulative(truth)

    def drawn(length: float) -> Floats:
        starts = np.random.default_rng(5).random(400_000) * (1 - length)
        return np.abs(np.interp(starts + length, grid, law) - np.interp(starts, grid, law))

    found = range_mae(estimate, truth, alpha)
    errors = drawn(alpha)
    assert mean_fits(errors.mean(), found, errors.std() / np.sqrt(len(errors)))
    rival = drawn(alpha * 0.75)
    assert not mean_fits(rival.mean(), found, rival.std() / np.sqrt(len(rival)))
    assert range_mae(estimate, truth, alpha, queries=100_000) == pytest.approx(found, rel=1e-3)


def test_range_error_over_the_whole_domain() -> None:
    assert range_mae([0.5, 0.7], [0.5, 0.5], 1.0) == pytest.approx(0.2)
    assert range_mae([0.75, 0.25], [0.25, 0.75], 1.0) == pytest.approx(0.0)


def test_moments_are_those_of_mass_that_is_even_within_buckets() -> None:
    truth, estimate = histogram(1024, 3), histogram(16, 1)

    def moments(masses: Floats) -> tuple[float, float]:
        law = stats.rv_histogram((masses, np.linspace(0, 1, len(masses) + 1)), density=False)
        return law.mean(), law.var()

    (mean, variance), (known_mean, known_variance) = moments(estimate), moments(truth)
    assert mean_error(estimate, truth) == pytest.approx(abs(mean - known_mean), rel=1e-9)
    assert variance_error(estimate, truth) == pytest.approx(abs(variance - known_variance), rel=1e-9)
    # the rival takes all mass to be in the middles, and finds an error between two ways to write the uniform law
    middles = (np.arange(16) + 0.5) / 16
    assert abs(np.var(middles) - 1 / 12) > 1e-4
    assert variance_error(np.full(16, 1 / 16), np.full(1024, 1 / 1024)) < 1e-14


@pytest.mark.parametrize(("estimate", "truth"), PAIRS)
def test_quantiles_on_a_fine_grid(estimate: Floats, truth: Floats) -> None:
    levels = [0.1, 0.25, 0.5, 0.9]

    def largest(masses: Floats, level: float) -> float:
        return float(np.flatnonzero(cumulative(masses) <= level).max()) / FINE

    for level in levels:
        by_hand = abs(largest(estimate, level) - largest(truth, level))
        assert quantile_error(estimate, truth, [level]) == pytest.approx(by_hand, abs=1.01 / FINE)
    together = np.mean([quantile_error(estimate, truth, [level]) for level in levels])
    assert quantile_error(estimate, truth, levels) == pytest.approx(together)


def test_a_quantile_is_the_largest_value() -> None:
    """Where nobody is between 0.25 and 0.75, half of the people are below 0.75; a rival would say 0.25."""
    sure = [0.0, 0.0, 0.0, 1.0]  # its median is 0.875
    assert quantile_error([0.5, 0.0, 0.0, 0.5], sure, [0.5]) == pytest.approx(0.125)
    thirds = [0.1, 0.1, 0.1, 0.0, 0.7]  # 0.1 + 0.1 + 0.1 > 0.3 in doubles
    assert quantile_error(thirds, [0.3, 0.7], [0.3]) == pytest.approx(0.8 - 0.5)
    falling = [0.6, -0.2, 0.2, 0.4]  # P is 0.6, 0.4, 0.6, 1: it is 0.5 three times, last at 0.625
    assert quantile_error(falling, sure, [0.5]) == pytest.approx(0.875 - 0.625)
    assert quantile_error([0.5, 0.3], sure, [0.9]) == pytest.approx(1.0 - 0.975)  # it never gets there


@pytest.mark.parametrize(
    "call",
    [
        lambda: ks([], [1.0]),
        lambda: wasserstein([0.5, 0.5], [1.0]),
        lambda: wasserstein([0.5, 0.5], [1.0], length=0.0),
        lambda: wasserstein([0.5, 0.5], [1.0], length="a"),  # type: ignore[arg-type]
        lambda: wasserstein(np.ones(65_537), np.ones(65_536), length=1.0),
        lambda: range_mae([1.0], [1.0], 0.0),
        lambda: range_mae([1.0], [1.0], 1.1),
        lambda: range_mae([1.0], [1.0], float("nan")),
        lambda: range_mae([1.0], [1.0], 0.1, queries=0),
        lambda: range_mae([1.0], [[1.0]], 0.1),
        lambda: mean_error([float("nan")], [1.0]),
        lambda: mean_error("ab", [1.0]),
        lambda: variance_error([1.0], [float("inf")]),
        lambda: quantile_error([1.0], [1.0], []),
        lambda: quantile_error([1.0], [1.0], [0.5, 1.0]),
    ],
)
def test_bad_input_is_refused(call: Callable[[], float]) -> None:
    with pytest.raises(InputError):
        call()
