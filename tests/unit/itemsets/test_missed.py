"""Intervals for items missed by padding: against enumeration, equations and possible ranges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from veil import GRR, OLH, Estimate
from veil.itemsets.missed import divided, shown_interval, update_interval
from veil.reports.tally import Tally


def reported(counts: list[int], epsilon: float) -> Estimate:
    """Sizes as GRR's collector sees them where every report is as expected: no noise, but an error all the same."""
    oracle = GRR(epsilon, len(counts))
    people, held = sum(counts), np.array(counts)
    support = np.round(held * float(oracle.p) + (people - held) * float(oracle.q)).astype(np.int64)
    return oracle.estimate(Tally(oracle.digest, support, people, people, people))


def update_of(shares: NDArray[np.float64], length: int) -> float:
    sizes = np.arange(len(shares))
    return float(sizes @ shares / (np.minimum(sizes, length) @ shares))


@pytest.mark.parametrize("counts", [[100, 500, 300, 100], [50, 200, 50, 700], [600, 300, 100, 0]])
@pytest.mark.parametrize("length", [1, 2])
def test_update_interval_matches_a_grid_of_all_shares(counts: list[int], length: int) -> None:
    sizes = reported(counts, 3.0)
    steps = 125
    noise = math.sqrt(sizes.noise.variance(0.0) / sizes.effective)
    clear = [i for i in (1, 2, 3) if sizes.frequencies[i] > 2.13 * noise]  # 0.05 over three sizes, one-sided
    parts = np.indices([steps + 1] * 3).reshape(3, -1).T
    shares = np.column_stack([steps - parts.sum(axis=1), parts]) / steps
    shares = shares[(shares[:, 0] >= 0) & (shares[:, 0] < 1) & np.all(np.diff(shares[:, max(clear) :]) <= 0, axis=1)]
    distances = ((shares - sizes.frequencies) ** 2 / sizes.variance).sum(axis=1)
    fitting = [update_of(one, length) for one in shares[distances <= distances.min() + 1.96**2]]
    low, high = update_interval(sizes, length)
    assert low == pytest.approx(min(fitting), abs=0.02)
    assert high == pytest.approx(max(fitting), abs=0.02)


def test_update_interval_is_1_at_the_largest_size() -> None:
    assert update_interval(reported([100, 500, 300, 100], 3.0), 3) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("rate", [0.6, 0.85])
def test_update_interval_covers_the_true_factor(rate: float) -> None:
    """The rival: what the visible part of the sizes says by itself."""
    shares = rate ** np.arange(1, 33)
    held = np.round(4_000 * np.concatenate([[0.2], 0.8 * shares / shares.sum()])).astype(np.int64)
    people, oracle, rng = int(held.sum()), OLH(2.0, len(held)), np.random.default_rng(3)
    true, inside, visible = update_of(held / people, 4), [], []
    for _ in range(40):
        support = rng.binomial(held, float(oracle.p)) + rng.binomial(people - held, float(oracle.q))
        sizes = oracle.estimate(Tally(oracle.digest, support, people, people, people))
        low, high = update_interval(sizes, 4)
        inside.append(low < true < high)
        clear = np.where(sizes.frequencies > sizes.threshold(), sizes.frequencies, 0.0)
        visible.append(abs(update_of(clear, 4) / true - 1) < 0.02)
    assert np.mean(inside) >= 0.9
    assert np.mean(visible) < 0.5


def test_update_interval_of_extreme_sizes() -> None:
    for counts in ([1_000, 0, 0, 0], [0, 0, 0, 1_000]):
        low, high = update_interval(reported(counts, 2.0), 2)
        assert 1.0 <= low <= high <= 1.5 + 1e-6


FACTORS = st.floats(1.0, 50.0)


@given(FACTORS, FACTORS, FACTORS, st.floats(0.5, 0.999))
def test_shown_interval_is_ordered_and_grows_with_the_level(
    update: float, one: float, another: float, level: float
) -> None:
    low, high = sorted((one, another))
    least, lower, upper, most = shown_interval(update, low, high, level)
    assert 0 <= least <= lower + 1e-9
    assert lower <= 1 + 1e-9  # the factor that was used is one of the two middles
    assert upper >= 1 - 1e-9
    assert upper - 1e-9 <= most <= update + 1e-9  # g(v) is 1 at most
    assert [lower, upper] == pytest.approx(sorted([1.0, update * (low * high) ** -0.5]))
    wider = shown_interval(update, low, high, (1 + level) / 2)
    assert wider[0] <= least + 1e-9
    assert wider[3] >= most - 1e-9


@given(st.floats(-0.2, 1.2), st.floats(0.0, 0.3), st.lists(st.floats(0.01, 3), min_size=4, max_size=4))
def test_divided_intervals_solve_their_equations_within_0_and_1(
    frequency: float, reach: float, numbers: list[float]
) -> None:
    interval = np.clip([frequency - reach, frequency + reach], 0, 1)
    least, lower, upper, most = sorted(numbers)
    ((low, high),) = divided(np.array([frequency]), interval[None], (least, lower, upper, most))
    assert 0 <= low <= high <= 1
    middle = min(max(frequency, interval[0]), interval[1])
    if low < 1:
        expected = math.hypot(middle - interval[0], low * (most - upper))
        assert middle - upper * low == pytest.approx(expected, abs=1e-5)
    if high < 1:
        expected = math.hypot(interval[1] - middle, high * (lower - least))
        assert lower * high - middle == pytest.approx(expected, abs=1e-5)
