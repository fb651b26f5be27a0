"""The model of maximum entropy: its gradient, its minimum by another optimiser, with and without noise."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from veil.errors import ParameterError
from veil.kernels.transforms import combine, contrast
from veil.marginals.evidence import gather, pool
from veil.marginals.graphical import Objective, fit_graphical, fit_model
from veil.marginals.tables import Views, contrasts, marginal_of

Floats = NDArray[np.float64]


def scaled(size: int) -> Floats:
    """The contrasts of one attribute as the kernel scales them: each has the mean square 1 over the values."""
    return contrasts(size) * np.where(np.arange(size) > 0, math.sqrt(size), 1.0)[:, None]


def features(sizes: tuple[int, ...]) -> Floats:
    """All products of contrasts, one row for each coefficient."""
    rows: Floats = np.ones((1, 1))
    for size in sizes:
        rows = np.asarray(np.kron(rows, scaled(size)), dtype=np.float64)
    return rows


def flat(views: Views, joint: Floats) -> Floats:
    """The tables of the views of a joint distribution."""
    return np.concatenate([marginal_of(joint, one).reshape(-1) for one in views.sets])


def some_joint(sizes: tuple[int, ...], seed: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(math.prod(sizes), 0.7)).reshape(sizes)


def pairs(sizes: tuple[int, ...], order: int = 2) -> Views:
    return Views(sizes, tuple(combinations(range(len(sizes)), order)))


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 4, 2, 2), (5, 2, 3), (4,), (7, 3)])
def test_kernels_are_the_products_of_contrasts(sizes: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).normal(size=math.prod(sizes))
    there, back = values.copy(), values.copy()
    contrast(there, np.array(sizes))
    combine(back, np.array(sizes))
    np.testing.assert_allclose(there, features(sizes) @ values, atol=1e-12)
    np.testing.assert_allclose(back, features(sizes).T @ values, atol=1e-12)


def test_evidence_of_one_table_is_its_coefficients() -> None:
    """Exact tables give the coefficients of their joint distribution; variances are those of independent cells."""
    sizes = (3, 2, 4)
    joint, views = some_joint(sizes, 2), pairs(sizes)
    found = gather(views, flat(views, joint), np.array([10.0, 20.0, 40.0]))
    every = (features(sizes) @ joint.reshape(-1)).reshape(sizes)
    for subset, start in views.begins.items():
        at = tuple(slice(1, None) if place in subset else 0 for place in range(3))
        block = np.ravel(every[at])
        np.testing.assert_allclose(found.means[start : start + len(block)], block, atol=1e-12)
    # place 0 is in (0, 1) of 6 cells and (0, 2) of 12; a scaled contrast has L_S sum of w / L as its information
    assert found.variances[views.begins[(0,)]] == pytest.approx(1 / (10 / 6 + 20 / 12))
    assert found.variances[views.begins[(1, 2)]] == pytest.approx(1 / (40 / 8))


def test_evidence_variances_match_the_noise() -> None:
    """Independent noise of known variance on cells scatters coefficients by the stated variance, and not by another."""
    views = pairs((2, 3, 2))
    weights = np.array([1.0, 0.5, 0.25])
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(4_000, views.total)) * np.sqrt(views.of_views(1 / weights))
    drawn = np.array([gather(views, one, weights).means for one in noise])[:, 1:]
    ratios = drawn.var(axis=0) / gather(views, noise[0], weights).variances[1:]
    assert np.all(np.abs(ratios - 1) < 0.12)  # 5 standard errors of a variance from 4,000 draws
    assert not np.all(np.abs(1.5 * ratios - 1) < 0.12)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 4)])
def test_gradient_matches_finite_differences(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    places = rng.permutation(np.arange(1, math.prod(sizes)))[:9]
    objective = Objective(sizes, places, rng.normal(size=9) * 0.3, rng.random(9))
    theta, step = rng.normal(size=9) * 0.4, 1e-5
    _, slope = objective(theta)
    for i, unit in enumerate(np.eye(9)):
        rise = objective(theta + step * unit)[0] - objective(theta - step * unit)[0]
        assert slope[i] == pytest.approx(rise / (2 * step), abs=1e-8)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 4), (2, 5, 2)])
@pytest.mark.parametrize("penalty", [0.003, 0.3])
def test_minimum_matches_a_generic_optimiser(sizes: tuple[int, ...], penalty: float) -> None:
    """Noisy and impossible means: the same table as by Newton's method on the written-out features."""
    rng = np.random.default_rng(5)
    every = (features(sizes) @ some_joint(sizes, 6).reshape(-1)).reshape(sizes)
    places = np.flatnonzero([0 < np.count_nonzero(index) <= 2 for index in np.ndindex(sizes)])
    means = every.reshape(-1)[places] + rng.normal(size=len(places)) * 0.2
    rows, penalties = features(sizes)[places], penalty * (1 + rng.random(len(places)))

    def shares(theta: Floats) -> Floats:
        weights = np.exp(theta @ rows)
        return np.asarray(weights / weights.sum())

    def value(theta: Floats) -> tuple[float, Floats]:
        total = float(np.log(np.exp(theta @ rows).sum()) - theta @ means + 0.5 * (penalties * theta) @ theta)
        return total, rows @ shares(theta) - means + penalties * theta

    def curvature(theta: Floats) -> Floats:
        there = shares(theta)
        mean = rows @ there
        return np.asarray((rows * there) @ rows.T - np.outer(mean, mean) + np.diag(penalties))

    best = minimize(value, np.zeros(len(places)), jac=True, hess=curvature, method="trust-exact", tol=1e-12)
    np.testing.assert_allclose(fit_model(sizes, places, means, penalties), shares(best.x), atol=3e-5)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2, 2), (3, 2, 4, 2)])
def test_without_noise_it_is_the_maximum_entropy_of_proportional_fitting(sizes: tuple[int, ...]) -> None:
    joint, views = some_joint(sizes, 7), pairs(sizes)
    model = fit_graphical(views, flat(views, joint), np.full(len(views.sets), 1e9))
    table = np.full(sizes, 1.0 / math.prod(sizes))
    for _ in range(2_000):
        for one in views.sets:
            rest = tuple(place for place in range(len(sizes)) if place not in one)
            wanted, have = joint.sum(axis=rest, keepdims=True), table.sum(axis=rest, keepdims=True)
            table = table * wanted / have
    for one in views.sets:
        np.testing.assert_allclose(model.marginal(one), marginal_of(joint, one), atol=2e-5)
    np.testing.assert_allclose(model.joint(), table, atol=2e-5)
    assert np.abs(model.joint() - joint).max() > 1e-3  # a model of pairs is not the joint distribution itself


def test_marginals_follow_the_order_asked_for_and_agree() -> None:
    sizes = (3, 2, 4)
    views = pairs(sizes)
    model = fit_graphical(views, flat(views, some_joint(sizes, 8)), np.full(3, 1e4))
    np.testing.assert_array_equal(model.marginal((2, 0)), model.marginal((0, 2)).T)
    np.testing.assert_allclose(model.marginal((2, 0)).sum(axis=0), model.marginal((0,)))
    assert model.joint().min() > 0
    assert model.joint().sum() == pytest.approx(1)


def test_view_without_people_has_no_influence() -> None:
    sizes = (2, 2, 2)
    views = pairs(sizes)
    tables = flat(views, some_joint(sizes, 9))
    unasked = tables.copy()
    unasked[views.offsets[2] :] = np.array([9.0, -8.0, 7.0, -7.0])
    weights = np.array([1e4, 1e4, 0.0])
    found = fit_graphical(views, unasked, weights).joint()
    np.testing.assert_allclose(found, fit_graphical(views, tables, weights).joint(), atol=1e-12)


def test_model_without_answers_is_uniform() -> None:
    views = pairs((3, 2, 2))
    found = fit_graphical(views, np.zeros(views.total), np.zeros(len(views.sets))).joint()
    np.testing.assert_allclose(found, 1 / 12)


def noisy(views: Views, joint: Floats, deviation: float, seed: int) -> Floats:
    """Tables with normal noise on every cell, which adds up to 0 within a view."""
    noise = deviation * np.random.default_rng(seed).normal(size=views.total)
    centred = [table - table.mean() for table in views.split(noise)]
    return np.asarray(flat(views, joint) + np.concatenate([table.reshape(-1) for table in centred]))


def basket(many: int, seed: int) -> Floats:
    """A joint distribution of rare items that come together: two kinds of customers."""
    rng = np.random.default_rng(seed)
    joint: Floats = np.zeros((2,) * many)
    for share, rates in ((0.7, 0.05 + 0.05 * rng.random(many)), (0.3, 0.3 + 0.2 * rng.random(many))):
        one = np.array(1.0)
        for rate in rates:
            one = np.multiply.outer(one, np.array([1 - rate, rate]))
        joint += share * one
    return joint


def error(views: Views, joint: Floats, tables: Floats, weights: Floats, distrust: float) -> float:
    model = fit_graphical(views, tables, weights, distrust=distrust)
    asked = list(combinations(range(joint.ndim), 3))[::3]
    return float(np.mean([((model.marginal(one) - marginal_of(joint, one)) ** 2).sum() for one in asked]))


@pytest.mark.parametrize(("order", "factor"), [(2, 1.5), (3, 50)])
def test_without_a_penalty_noise_is_taken_for_dependence(order: int, factor: float) -> None:
    joint = basket(10, 1)
    views = pairs((2,) * 10, order)
    deviation = 0.08
    weights = np.full(len(views.sets), deviation**-2)
    errors = {
        distrust: np.mean(
            [error(views, joint, noisy(views, joint, deviation, seed), weights, distrust) for seed in range(4)]
        )
        for distrust in (30.0, 1e-3)
    }
    assert errors[1e-3] > factor * errors[30.0], errors


def test_similar_coefficients_are_pooled() -> None:
    """Rare items with little evidence each: their rates come closer to the truth; other records stay as they are."""
    joint = basket(10, 2)
    views = pairs((2,) * 10)
    weights = np.full(len(views.sets), 0.05**-2)
    truth = gather(views, flat(views, joint), weights)
    raw = [gather(views, noisy(views, joint, 0.05, seed), weights) for seed in range(5)]
    for order in (1, 2):
        _, which = truth.numbers_of_two(order)
        before = np.mean([((one.means - truth.means)[which] ** 2).sum() for one in raw])
        after = np.mean([((pool(one).means - truth.means)[which] ** 2).sum() for one in raw])
        assert after < 0.6 * before

    few = pairs((2,) * 7)
    found = gather(few, flat(few, basket(7, 2)), np.full(len(few.sets), 100.0))
    assert pool(found) is found


def test_pairs_that_no_view_has_get_the_common_correlation() -> None:
    """Every other pair is asked for. The rest come nearer to the truth than independence, which they had before."""
    joint = basket(10, 2)
    every = pairs((2,) * 10)
    asked = Views(every.sizes, every.sets[::2])
    weights = np.full(len(asked.sets), 0.02**-2)
    found = pool(gather(asked, noisy(asked, joint, 0.02, 1), weights))
    truth = gather(every, flat(every, joint), np.ones(len(every.sets)))
    apart, together = 0.0, 0.0
    for one in every.sets[1::2]:
        product = math.prod(found.means[asked.begins[(place,)]] for place in one)
        wanted = truth.means[every.begins[one]]
        apart += (product - wanted) ** 2
        together += (found.means[found.views.begins[one]] - wanted) ** 2
    assert together < 0.5 * apart


def test_sixteen_attributes_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,536 cells: a step takes about a millisecond, and in centred coordinates no more than 200 are needed."""
    calls = []
    original = Objective.__call__

    def counted(self: Objective, theta: Floats) -> tuple[float, Floats]:
        calls.append(len(theta))
        return original(self, theta)

    monkeypatch.setattr(Objective, "__call__", counted)
    joint, quads = basket(16, 6), [one for one in combinations(range(16), 4) if np.bitwise_xor.reduce(one) == 0]
    views = Views((2,) * 16, tuple(quads))
    model = fit_graphical(views, noisy(views, joint, 0.02, 7), np.full(len(quads), 0.02**-2))
    assert model.joint().shape == (2,) * 16
    assert calls[0] == 16 + 120 + 560 + 140
    assert len(calls) <= 200


def test_pooling_keeps_accurate_coefficients() -> None:
    joint = basket(10, 3)
    views = pairs((2,) * 10)
    found = gather(views, flat(views, joint), np.full(len(views.sets), 1e9))
    np.testing.assert_allclose(pool(found).means, found.means, atol=1e-6)


def test_pooling_needs_a_mean_that_stands_out() -> None:
    """With every other attribute told the other way round, correlations have no common mean, and stay as they are."""
    joint = np.flip(basket(10, 2), axis=(0, 2, 4, 6, 8))
    views = pairs((2,) * 10)
    found = gather(views, noisy(views, joint, 0.05, 1), np.full(len(views.sets), 0.05**-2))
    _, which = found.numbers_of_two(2)
    np.testing.assert_array_equal(pool(found).means[which], found.means[which])


def test_many_attributes_have_a_model_for_each_marginal() -> None:
    """24 attributes, three blocks that are independent of each other: marginals are near the truth, and positive."""
    block = basket(8, 4)
    views = Views((2,) * 24, tuple(combinations(range(24), 2)))
    weights = np.full(len(views.sets), 0.01**-2)

    def truth(places: tuple[int, ...]) -> Floats:
        table = np.array(1.0)
        for first in (0, 8, 16):
            table = np.multiply.outer(table, marginal_of(block, [p - first for p in places if first <= p < first + 8]))
        return table

    exact = np.concatenate([truth(one).reshape(-1) for one in views.sets])
    tables = exact + 0.01 * np.random.default_rng(5).normal(size=views.total)
    model = fit_graphical(views, tables, weights)
    assert not model.whole
    for one in ((0, 1, 2), (0, 9, 17), (5, 6, 23)):
        found = model.marginal(one)
        assert found.sum() == pytest.approx(1)
        assert found.min() > 0
        assert ((found - truth(one)) ** 2).sum() < 5e-4
    np.testing.assert_allclose(model.marginal((9, 0)), model.marginal((0, 9)).T)
    with pytest.raises(ParameterError, match="16,777,216 cells"):
        model.joint()
    with pytest.raises(ParameterError, match="2,097,152 cells"):
        model.marginal(tuple(range(21)))
