"""Tables of overlapping sets of attributes: coefficients, least squares over overlaps, non-negative tables."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from veil.marginals.tables import Views, averaged, contrasts, marginal_of, repaired

MIXED = Views((2, 3, 4, 2), ((0, 1), (1, 2), (0, 2, 3), (3,)))
PAIRS = Views((2,) * 6, tuple(combinations(range(6), 2)))


def tables_of(views: Views, joint: np.ndarray) -> np.ndarray:
    """The tables of all views of one joint distribution."""
    return np.concatenate([marginal_of(joint, one).reshape(-1) for one in views.sets])


def joint_of(views: Views, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).gamma(0.3, size=views.sizes)
    return drawn / drawn.sum()


def noisy(views: Views, scale: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return tables_of(views, joint_of(views)) + scale * rng.normal(size=views.total)


def disagreement(views: Views, tables: np.ndarray) -> float:
    """Return the largest difference between two views about a shared coefficient, or about the total of 1."""
    found = views.to_coefficients(tables)
    high, low = np.full(views.count, -np.inf), np.full(views.count, np.inf)
    high[0] = low[0] = 1.0
    np.maximum.at(high, views.groups, found)
    np.minimum.at(low, views.groups, found)
    return float((high - low).max())


@pytest.mark.parametrize("size", [2, 3, 7])
def test_contrasts_are_orthogonal_to_each_other_and_to_ones(size: int) -> None:
    rows = contrasts(size)
    assert np.allclose(rows @ rows.T, np.diag([size, *[1] * (size - 1)]), atol=1e-14)


@pytest.mark.parametrize("views", [MIXED, PAIRS])
def test_a_coefficient_is_the_same_in_every_view(views: Views) -> None:
    flat = views.to_coefficients(tables_of(views, joint_of(views)))
    assert np.allclose(views.from_coefficients(flat), tables_of(views, joint_of(views)), atol=1e-15)
    means = np.bincount(views.groups, flat) / np.bincount(views.groups)
    assert np.abs(means[views.groups] - flat).max() < 1e-15
    assert means[0] == pytest.approx(1)
    strange = tables_of(views, joint_of(views, 5))  # half of one joint and half of another share no coefficients
    strange[: views.total // 2] = tables_of(views, joint_of(views))[: views.total // 2]
    assert disagreement(views, strange) > 1e-3


def test_coefficients_are_numbered_by_sets_of_attributes() -> None:
    subsets = {sub for one in MIXED.sets for size in range(len(one) + 1) for sub in combinations(one, size)}
    assert set(MIXED.begins) == subsets
    sizes = {sub: int(np.prod([MIXED.sizes[place] - 1 for place in sub])) for sub in subsets}
    assert sum(sizes.values()) == MIXED.count
    assert sorted(MIXED.begins.values()) == sorted(MIXED.begins[sub] for sub in subsets)
    assert MIXED.begins[()] == 0


def least_squares(views: Views, tables: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The nearest tables that come from one (signed) joint of total 1, by a generic solver over the whole joint."""
    rows = []
    for one in views.sets:
        for cell in product(*(range(views.sizes[place]) for place in one)):
            hit = np.zeros(views.sizes)
            hit[tuple(cell[one.index(i)] if i in one else slice(None) for i in range(len(views.sizes)))] = 1
            rows.append(hit.reshape(-1))
    matrix, scale = np.array(rows), np.sqrt(views.of_views(weights))
    size = matrix.shape[1]
    inside = np.linalg.svd(np.ones((1, size)))[2][1:].T  # what keeps the total
    start = np.full(size, 1 / size)
    moved = np.linalg.lstsq(scale[:, None] * (matrix @ inside), scale * (tables - matrix @ start), rcond=None)[0]
    return matrix @ (start + inside @ moved)


@pytest.mark.parametrize("views", [MIXED, PAIRS])
def test_averages_are_the_weighted_least_squares_solution(views: Views) -> None:
    tables, weights = noisy(views, 0.1), np.random.default_rng(2).uniform(0.2, 5, len(views.sets))
    found = averaged(views, tables, weights)
    assert np.abs(found - least_squares(views, tables, weights)).max() < 1e-12
    assert disagreement(views, found) < 1e-12
    even = averaged(views, tables, np.ones(len(views.sets)))  # other weights are another solution
    assert np.abs(found - even).max() > 1e-3


def test_consistent_tables_are_unchanged() -> None:
    tables = tables_of(MIXED, joint_of(MIXED))
    assert np.abs(averaged(MIXED, tables, np.ones(4)) - tables).max() < 1e-15
    assert np.abs(repaired(MIXED, tables, np.ones(4)).tables - tables).max() < 1e-12


@pytest.mark.parametrize("views", [MIXED, PAIRS, Views((2,) * 10, tuple(combinations(range(10), 3)))])
@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
def test_repaired_tables_agree_and_are_not_negative(views: Views, scale: float) -> None:
    tables = noisy(views, scale)
    found = repaired(views, tables, np.ones(len(views.sets)))
    assert found.tables.min() >= 0
    for (a, one), (b, other) in combinations(enumerate(views.sets), 2):
        common = tuple(place for place in one if place in other)
        first, second = (
            marginal_of(views.table(found.tables, i), [views.sets[i].index(place) for place in common]) for i in (a, b)
        )
        assert np.abs(first - second).max() < 1e-9
    assert all(table.sum() == pytest.approx(1, abs=1e-9) for table in views.split(found.tables))
    if scale == 1.0:  # averages alone, and non-negative tables alone, do not do
        assert averaged(views, tables, np.ones(len(views.sets))).min() < -0.01
        assert disagreement(views, np.maximum(tables, 0)) > 0.01


def test_view_of_weight_0_has_no_influence() -> None:
    tables = noisy(MIXED, 0.05)
    weights = np.array([1.0, 0.0, 1.0, 1.0])
    changed = tables.copy()
    changed[MIXED.offsets[1] : MIXED.offsets[2]] = 7.0
    assert np.array_equal(averaged(MIXED, tables, weights), averaged(MIXED, changed, weights))
    only = Views((2, 2), ((0, 1),))
    assert averaged(only, np.array([0.9, 0.3, 0.1, 0.2]), np.zeros(1)).tolist() == [0.25] * 4
