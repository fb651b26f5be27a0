"""Intervals of marginals, conditionals and correlations: without noise, and without information."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.marginals.association import correlation_between, correlation_of
from veil.marginals.intervals import MEASURED, PARTS, cell_bounds, conditional_bounds, conditional_intervals
from veil.marginals.scatter import Scatter
from veil.mechanisms import GRR

Floats = NDArray[np.float64]
MANY = 10**15


def of_joint(joint: Floats, size: int = 2, people: int = MANY) -> Scatter:
    """All sets of so many attributes, asked of so many people each, with the true tables."""
    sets = tuple(combinations(range(joint.ndim), size))
    tables = [joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in one)).reshape(-1) for one in sets]
    noises = tuple(GRR(2.0, len(table)).noise for table in tables)
    each = np.full(len(sets), people)
    return Scatter(joint.shape, sets, np.ones(len(sets)), np.concatenate(tables), each, noises, people * len(sets))


def at_random(seed: int, shape: tuple[int, ...]) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), 0.3)).reshape(shape)


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 2, 4), (2, 3, 2, 2)])
def test_bounds_hold_for_every_joint_distribution(shape: tuple[int, ...]) -> None:
    for seed in range(6):
        joint = at_random(seed, shape)
        scatter = of_joint(joint)
        bounds = cell_bounds(scatter, scatter.tables, tuple(range(len(shape))))
        assert bounds.rests_on == PARTS
        assert (bounds.low <= joint.reshape(-1) + 1e-6).all()
        assert (bounds.high >= joint.reshape(-1) - 1e-6).all()


def test_bounds_of_three_attributes_are_those_of_all_pairs() -> None:
    joint = at_random(3, (2, 3, 2))
    scatter = of_joint(joint)
    bounds = cell_bounds(scatter, scatter.tables, (0, 1, 2))
    for number, (a, b, c) in enumerate(product(range(2), range(3), range(2))):
        ab, bc, ac = joint.sum(axis=2)[a, b], joint.sum(axis=0)[b, c], joint.sum(axis=1)[a, c]
        one = [joint.sum(axis=axes) for axes in ((1, 2), (0, 2), (0, 1))]
        least = max(0.0, ab + bc - one[1][b], ab + ac - one[0][a], ac + bc - one[2][c])
        assert bounds.low[number] == pytest.approx(least, abs=1e-6)
        assert bounds.high[number] == pytest.approx(min(ab, bc, ac), abs=1e-6)


def test_bounds_do_not_rest_on_maximum_entropy() -> None:
    """Three coins of which the third is the parity of the others: no pair shows it, and no interval denies it."""
    joint = np.zeros((2, 2, 2))
    for a, b in product(range(2), repeat=2):
        joint[a, b, a ^ b] = 0.25
    scatter = of_joint(joint, people=10_000)
    bounds = cell_bounds(scatter, scatter.tables, (0, 1, 2))
    assert (bounds.low == 0).all()
    assert (bounds.high >= 0.25).all()
    assert abs(0.125 - 0.25) > 10 * np.sqrt(scatter.variance((0, 1)).max())  # the rival: 1/8, and the errors of pairs


def test_many_attributes_have_a_lower_bound_where_one_cell_has_most_people() -> None:
    joint = np.full((2,) * 5, 0.05 / 31)
    joint[0, 0, 0, 0, 0] = 0.95
    scatter = of_joint(joint)
    bounds = cell_bounds(scatter, scatter.tables, (0, 1, 2, 3, 4))
    assert 0.85 < bounds.low[0] <= 0.95 <= bounds.high[0]
    assert (bounds.low[1:] == 0).all()


def test_intervals_of_measured_cells() -> None:
    joint = at_random(5, (2, 3, 2))
    scatter = of_joint(joint, people=500)
    bounds = cell_bounds(scatter, scatter.tables, (0, 1))
    assert bounds.rests_on == MEASURED
    assert bounds.low.shape == bounds.high.shape == (6,)
    truth = joint.sum(axis=2).reshape(-1)
    assert ((bounds.low <= truth) & (truth <= bounds.high)).all()
    wider = cell_bounds(scatter, scatter.tables, (0, 1), 0.99)
    assert (wider.low <= bounds.low).all()
    assert (wider.high >= bounds.high).all()
    below = np.where(np.arange(len(scatter.tables)) == 0, scatter.tables - 2, scatter.tables)
    for found in (cell_bounds(scatter, below, (0, 1)), cell_bounds(scatter, -below, (0, 1))):
        assert ((found.low >= 0) & (found.high <= 1) & (found.low < found.high)).all()
    with pytest.raises(ParameterError, match="level"):
        cell_bounds(scatter, scatter.tables, (0, 1), 1.5)


def test_intervals_of_conditionals() -> None:
    joint = at_random(6, (3, 2, 4))
    scatter = of_joint(joint)
    pair = joint.sum(axis=1)
    for given, places, table in (((0,), (2,), pair), ((2,), (0,), pair.T)):
        bounds = conditional_bounds(scatter, scatter.tables, given, places)
        truth = (table / table.sum(axis=1, keepdims=True)).reshape(-1)
        assert bounds.rests_on == MEASURED
        assert bounds.low == pytest.approx(truth, abs=1e-5)
        assert bounds.high == pytest.approx(truth, abs=1e-5)
    bounds = conditional_bounds(scatter, scatter.tables, (2, 0), (1,))
    truth = joint.transpose(2, 0, 1) / joint.sum(axis=1).T[:, :, None]
    assert bounds.rests_on == PARTS
    assert (bounds.low <= truth.reshape(-1) + 1e-5).all()
    assert (bounds.high >= truth.reshape(-1) - 1e-5).all()


def test_conditionals_given_a_possibly_empty_group_are_unbounded() -> None:
    low, high = conditional_intervals(np.array([[0.01, -0.005], [0.5, 0.495]]), np.eye(4) * 1e-4)
    assert low[0].tolist() == [0, 0]
    assert high[0].tolist() == [1, 1]
    assert (high[1] - low[1] < 0.1).all()
    # a cell far below 0 still leaves an interval
    low, high = conditional_intervals(np.array([[-0.2, 0.7], [0.3, 0.2]]), np.eye(4) * 1e-4)
    assert low[0, 0] == 0
    assert high[0, 0] > 0.005


def test_correlations_without_noise() -> None:
    joint = at_random(7, (2, 3))
    nothing = np.zeros((6, 6)) + 1e-18 * np.eye(6)
    people = np.repeat(np.arange(6), np.rint(joint.reshape(-1) * 1e6).astype(int))
    expected = np.corrcoef(people // 3, people % 3)[0, 1]
    found = correlation_of(joint, nothing, ordered=True)
    assert (found.value, found.low, found.high) == pytest.approx((expected,) * 3, abs=1e-4)
    from scipy.stats.contingency import association

    counts = np.rint(joint * 1e6).astype(int)
    found = correlation_of(joint, nothing, ordered=False)
    assert (found.value, found.low, found.high) == pytest.approx((association(counts, "cramer"),) * 3, abs=1e-4)
    assert found.p_value < 1e-6
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert correlation_of(alone, np.eye(6) * 1e-6, ordered=False).p_value > 0.999


def test_correlations_without_information_are_unbounded() -> None:
    joint = at_random(8, (3, 3))
    found = correlation_of(joint, np.eye(9), ordered=True)
    assert (found.low, found.high) == (-1, 1)
    found = correlation_of(joint, np.eye(9), ordered=False)
    assert (found.low, found.high) == (0, 1)
    apart = Scatter((2, 2), ((0,), (1,)), np.ones(2), np.full(4, 0.5), np.full(2, 9), (GRR(1.0, 2).noise,) * 2, 18)
    found = correlation_between(apart, apart.tables, (0, 1), ordered=True, shown=np.full((2, 2), 0.25))
    assert (found.value, found.low, found.high, found.p_value) == (0, -1, 1, 1)


def test_correlations_of_rare_values_have_wide_valid_intervals() -> None:
    joint = np.array([[0.5, 0.1, 0.0], [0.1, 0.297, 0.0], [0.0, 0.0, 0.003]])
    exact = correlation_of(joint, np.eye(9) * 1e-16, ordered=False)
    vague = correlation_of(joint, np.eye(9) * 1e-5, ordered=False)
    assert vague.low < exact.value < vague.high
    assert exact.high - exact.low < 0.01 < vague.high - vague.low


def test_correlations_of_1() -> None:
    table = np.array([[0.5, 0.0], [0.0, 0.5]])
    for error in (0.0, 1e-6):
        found = correlation_of(table, np.eye(4) * error, ordered=True)
        assert found.high == 1
        assert found.value == pytest.approx(1.0, abs=1e-5)
        assert found.low == pytest.approx(1.0, abs=0.03)


def test_shown_correlation_lies_inside_its_interval() -> None:
    joint = at_random(9, (2, 2))
    shown = np.array([[0.5, 0.0], [0.0, 0.5]])
    found = correlation_of(joint, np.eye(4) * 1e-6, ordered=True, shown=shown)
    assert found.value == found.high == pytest.approx(1.0)
    assert replace(found).measure == "pearson"
