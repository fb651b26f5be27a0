"""The projection onto trees: conditions of optimality, general solvers, and rivals that fail both; ADMM as well.

Seen from the leaves, a point is the optimum if the objective's slope is the same at all leaves above 0 and not smaller
at the others (Karush, Kuhn and Tucker; a node's multiplier is then the slope less what its own descendants add).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import osqp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from tests.exact.tree.test_consistency import cut, least_squares

from veil.post.consistency import norm_sub
from veil.tree import Levels, Tree, admm, consistent, project

Floats = NDArray[np.float64]

SHAPES = [
    *[(1, 2), (2, 2), (3, 2), (8, 2), (11, 2), (33, 2), (27, 3), (28, 3), (50, 3), (16, 4), (17, 4), (61, 4), (64, 4)],
    *[(4, 5), (25, 5), (26, 5), (124, 5), (7, 16), (16, 16), (17, 16), (100, 16), (1000, 4), (1024, 4), (1024, 2)],
]


def noisy(tree: Tree, seed: int, noise: float = 0.05) -> Levels:
    random = np.random.default_rng(seed)
    held = tree.sums(random.dirichlet(np.full(tree.leaves, 0.3)))
    return [level + random.normal(0, noise, len(level)) for level in held]


def some_weights(tree: Tree, seed: int, decades: float = 2.0) -> Levels:
    """Some inner nodes have none."""
    random = np.random.default_rng(seed)
    weights = [10 ** random.uniform(-decades / 2, decades / 2, size) for size in tree.sizes]
    for level in weights[:-1]:
        level[random.random(len(level)) < 0.1] = 0.0
    return weights


def ones(tree: Tree) -> Levels:
    return [np.ones(size) for size in tree.sizes]


def slopes(tree: Tree, x: Levels, values: Any, weights: Any) -> Floats:
    """Of the objective, by the leaves: what the nodes above each leaf add, the root aside."""
    found = np.zeros(tree.leaves)
    for level in range(1, tree.height + 1):
        steps = np.asarray(weights[level]) * (x[level] - np.asarray(values[level]))
        found += steps[np.arange(tree.leaves) // tree.width(level)]
    return found


def off_optimum(tree: Tree, x: Levels, values: Any, weights: Any, total: float = 1.0) -> float:
    """The largest violation of a condition of optimality, against the size of what it is made of."""
    leaves = x[-1]
    scale = max(total, *(float(np.abs(level).max()) for level in values[1:])) if tree.height else total
    heavy = max((float(np.max(level)) for level in weights[1:]), default=1.0)
    slope = slopes(tree, x, values, weights)
    spare = slope - slope[np.argmax(leaves)]  # the multipliers of x >= 0
    unfit = max(float(np.abs(level - sums).max()) for level, sums in zip(x, tree.sums(leaves), strict=True))
    return max(
        unfit / total,
        abs(float(leaves.sum()) - total) / total,
        max(0.0, -float(leaves.min())) / total,
        float(np.abs(np.minimum(leaves / scale, spare / (scale * heavy))).max()),
        max(0.0, -float(spare.min())) / (scale * heavy),
    )


def apart(one: Levels, other: Levels) -> float:
    return max(float(np.abs(left - right).max()) for left, right in zip(one, other, strict=True))


def objective(x: Levels, values: Levels, weights: Levels) -> float:
    return 0.5 * sum(
        float((w * (level - y) ** 2).sum()) for level, y, w in zip(x[1:], values[1:], weights[1:], strict=True)
    )


# -- conditions of optimality ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.3, 10.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_conditions_of_optimality(shape: tuple[int, int], noise: float) -> None:
    tree = Tree(*shape)
    for seed in range(4):
        values, weights = noisy(tree, seed, noise), some_weights(tree, seed)
        assert off_optimum(tree, project(tree, values), values, ones(tree)) < 1e-12
        assert off_optimum(tree, project(tree, values, weights), values, weights) < 1e-12
        assert off_optimum(tree, project(tree, values, weights, 7.5), values, weights, 7.5) < 1e-12


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tree, Levels, Levels, float]:
    """Values with many ties, weights that differ by eight orders, among inner ones 0."""
    tree = Tree(draw(st.integers(1, 30)), draw(st.integers(2, 6)))
    value = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3), st.floats(-1e-3, 1e-3))
    weight = st.one_of(st.just(1.0), st.floats(1e-4, 1e4))

    def levels(leaf: Any, inner: Any) -> Levels:
        kinds = [inner] * tree.height + [leaf]
        return [
            np.array(draw(st.lists(kind, min_size=size, max_size=size)))
            for kind, size in zip(kinds, tree.sizes, strict=True)
        ]

    return (
        tree,
        levels(value, value),
        levels(weight, st.one_of(st.just(0.0), weight)),
        draw(st.sampled_from([1.0, 1e-3, 1e3])),
    )


@given(cases())
def test_conditions_of_optimality_anywhere(case: tuple[Tree, Levels, Levels, float]) -> None:
    tree, values, weights, total = case
    assert off_optimum(tree, project(tree, values, weights, total), values, weights, total) < 1e-10


@pytest.mark.parametrize("decades", [0.0, 2.0, 8.0])
@pytest.mark.parametrize("shape", SHAPES[:-3])
def test_it_is_exact_to_rounding(shape: tuple[int, int], decades: float) -> None:
    """Over the leaves above 0 it is the least squares solution in 80-bit numbers, and none of the others would rise."""
    tree = Tree(*shape)
    for noise in (0.05, 1.0, 30.0):
        values, weights = noisy(tree, 15, noise), some_weights(tree, 15, decades)
        made = project(tree, values, weights)
        above = made[-1] > 0
        with np.errstate(divide="ignore"):
            variances = 1 / np.concatenate(weights)
        variances[0] = np.inf
        best = least_squares(tree, np.concatenate(values), variances, 1.0, among=above)
        assert apart(made, cut(tree, best)) < 1e-12 * max(1.0, noise)
        slope = slopes(tree, cut(tree, best), values, weights)
        spare = (slope - slope[np.argmax(made[-1])]) / weights[-1]
        assert (spare[~above] > -1e-12 * max(1.0, noise)).all()


def test_rivals_do_not_meet_them() -> None:
    tree = Tree(61, 4)
    values, weights = noisy(tree, 1), some_weights(tree, 1)
    free = consistent(tree, values, [1.0] * 4, total=1.0)
    clipped = np.maximum(free[-1], 0.0)
    rivals = {
        "negative": free,
        "clipped and multiplied": tree.sums(clipped / clipped.sum()),
        "clipped and shifted": tree.sums(norm_sub(free[-1], 1.0)),
        "leaves alone": tree.sums(norm_sub(values[-1], 1.0)),
        "weighted": project(tree, values, weights),
    }
    for name, rival in rivals.items():
        assert off_optimum(tree, rival, values, ones(tree)) > 1e-4, name
    assert off_optimum(tree, project(tree, values), values, weights) > 1e-4  # unweighted where weights matter


@pytest.mark.parametrize("seed", range(5))
def test_nothing_feasible_is_better(seed: int) -> None:
    tree = Tree(28, 3)
    values, weights = noisy(tree, seed, 0.2), some_weights(tree, seed)
    made = project(tree, values, weights)
    least = objective(made, values, weights)
    random = np.random.default_rng(seed)
    for reach in (1.0, 1e-2, 1e-4):
        for _ in range(50):
            rival = tree.sums((1 - reach) * made[-1] + reach * random.dirichlet(np.full(28, 0.2)))
            assert objective(rival, values, weights) > least


# -- general solvers ---------------------------------------------------------------------------------------------------


def by_osqp(tree: Tree, values: Levels, weights: Levels) -> Floats:
    """Leaves as variables: the objective is a dense square."""
    leaves = np.arange(tree.leaves)
    nodes = np.concatenate(
        [leaves // tree.width(level) == np.arange(size)[:, None] for level, size in enumerate(tree.sizes)]
    )
    scales = np.concatenate([[0.0], *weights[1:]])
    squares = nodes.T @ (nodes * scales[:, None])
    linear = -(nodes.T @ (scales * np.concatenate(values)))
    rows = sparse.vstack([np.ones((1, tree.leaves)), sparse.eye(tree.leaves)], format="csc")
    low, high = np.eye(1, tree.leaves + 1)[0], np.append(1.0, np.full(tree.leaves, np.inf))
    solver = osqp.OSQP()
    options = {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000, "verbose": False}
    solver.setup(sparse.csc_matrix(np.triu(squares)), linear, rows, low, high, **options)
    found = solver.solve()
    assert found.info.status == "solved"
    return np.asarray(found.x)


@pytest.mark.filterwarnings("ignore:The default value of raise_error:PendingDeprecationWarning")
@pytest.mark.parametrize("shape", [(8, 2), (33, 2), (28, 3), (61, 4), (26, 5), (100, 16)])
def test_osqp_finds_the_same(shape: tuple[int, int]) -> None:
    tree = Tree(*shape)
    values, weights = noisy(tree, 2), some_weights(tree, 2)
    for scales in (ones(tree), weights):
        assert np.abs(project(tree, values, scales)[-1] - by_osqp(tree, values, scales)).max() < 1e-7
    assert np.abs(project(tree, values)[-1] - by_osqp(tree, values, weights)).max() > 1e-3


def test_sequential_quadratic_programming_finds_the_same() -> None:
    tree = Tree(11, 2)
    values, weights = noisy(tree, 3, 0.2), some_weights(tree, 3)
    found = minimize(
        lambda x: objective(tree.sums(x), values, weights),
        np.full(11, 1 / 11),
        jac=lambda x: slopes(tree, tree.sums(x), values, weights),
        bounds=[(0, 1)] * 11,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    assert np.abs(found.x - project(tree, values, weights)[-1]).max() < 1e-6


# -- special cases -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [2, 5, 16])
def test_a_tree_of_leaves_alone_is_norm_sub(leaves: int) -> None:
    values = noisy(Tree(leaves, 16), 4, 0.5)
    assert np.allclose(project(Tree(leaves, 16), values)[-1], norm_sub(values[-1], 1.0), rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape", [(11, 2), (61, 4), (1024, 4)])
def test_without_inner_weights_it_is_norm_sub(shape: tuple[int, int]) -> None:
    tree = Tree(*shape)
    values = noisy(tree, 5)
    made = project(tree, values, [*[0.0] * tree.height, 1.0])
    assert np.allclose(made[-1], norm_sub(values[-1], 1.0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_feasible_stays(shape: tuple[int, int]) -> None:
    tree = Tree(*shape)
    for seed in range(3):
        made = project(tree, noisy(tree, seed))
        assert apart(project(tree, made), made) < 1e-14
        assert apart(project(tree, made, some_weights(tree, seed)), made) < 1e-13
    inside = tree.sums(np.full(tree.leaves, 1 / tree.leaves))
    assert apart(project(tree, inside), inside) < 1e-15


@pytest.mark.parametrize("shape", SHAPES)
def test_all_below_zero(shape: tuple[int, int]) -> None:
    tree = Tree(*shape)
    values = [-np.abs(level) - 0.1 for level in noisy(tree, 6, 1.0)]
    assert off_optimum(tree, project(tree, values), values, ones(tree)) < 1e-12


@pytest.mark.parametrize("shape", [(8, 2), (27, 3), (64, 4), (7, 16)])
def test_equal_leaves_below_zero_share_the_total(shape: tuple[int, int]) -> None:
    tree = Tree(*shape)
    assert np.allclose(project(tree, tree.sums(np.full(tree.leaves, -1.0)))[-1], 1 / tree.leaves, rtol=1e-12)


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("shape", SHAPES)
def test_huge_values(shape: tuple[int, int], size: float) -> None:
    tree = Tree(*shape)
    random = np.random.default_rng(7)
    values = [random.normal(0, size, nodes) for nodes in tree.sizes]
    for weights in (ones(tree), some_weights(tree, 7)):
        assert off_optimum(tree, project(tree, values, weights), values, weights) < 1e-13
        assert off_optimum(tree, project(tree, values, weights, size), values, weights, size) < 1e-12


def test_values_that_swallow_the_total() -> None:
    tree = Tree(5, 2)
    values = tree.sums([1e20, -1e20, 1e20, 0.0, 1e19])
    made = project(tree, values)
    assert abs(made[0][0] - 1.0) < 1e-15
    assert (made[-1] >= 0).all()


def test_the_largest_values_and_weights() -> None:
    """Far beyond what can be exact; what comes out is feasible all the same."""
    tree = Tree(61, 4)
    signs = [np.where(level > 0, 1.0, -1.0) for level in noisy(tree, 17)]
    for weights in ([1e50, 1e50, 1e50, 1e-50], [0.0, 1e-50, 1e50, 1e50], [1e-50] * 4):
        for work in (project, lambda *given: admm(*given, most=100).values):
            made = work(tree, [1e50 * level for level in signs], weights)
            assert abs(made[-1].sum() - 1.0) < 1e-12
            assert (made[-1] >= 0).all()


def test_a_common_size_of_values_is_a_matter_of_units() -> None:
    tree = Tree(28, 3)
    values = noisy(tree, 8)
    made = project(tree, [4.0 * level for level in values], total=4.0)
    assert apart([level / 4.0 for level in made], project(tree, values)) < 1e-15
    weighted = project(tree, values, [8.0] * 5)
    assert apart(weighted, project(tree, values)) < 1e-14


def test_the_root_s_own_answer_plays_no_part() -> None:
    tree = Tree(28, 3)
    values = noisy(tree, 9)
    other = [np.array([1e6]), *values[1:]]
    assert apart(project(tree, other, [123.0, 1.0, 1.0, 1.0, 1.0]), project(tree, values)) == 0.0
    assert apart(admm(tree, other).values, admm(tree, values).values) == 0.0


def test_one_leaf_has_the_total() -> None:
    assert [level.tolist() for level in project(Tree(1, 2), [[-3.0]], total=2.5)] == [[2.5]]
    found = admm(Tree(1, 2), [[-3.0]], total=2.5)
    assert found.converged
    assert [level.tolist() for level in found.values] == [[2.5]]


def test_inputs_stay_as_they_are() -> None:
    tree = Tree(28, 3)
    values, weights = noisy(tree, 10), some_weights(tree, 10)
    kept = [level.copy() for level in (*values, *weights)]
    project(tree, values, weights)
    admm(tree, values, weights)
    assert all(np.array_equal(one, other) for one, other in zip(kept, (*values, *weights), strict=True))


# -- ADMM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.002, 0.05, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_admm_finds_the_same(shape: tuple[int, int], noise: float) -> None:
    tree = Tree(*shape)
    values = noisy(tree, 11, noise)
    for weights in (ones(tree), some_weights(tree, 11)):
        found = admm(tree, values, weights)
        assert found.converged
        assert off_optimum(tree, found.values, values, weights) < 1e-6
        assert apart(found.values, project(tree, values, weights)) < 1e-6
        assert all((level >= 0).all() for level in found.values)
        assert found.lowest >= -found.primal[-1]


@pytest.mark.parametrize("options", [{"rho": 0.5}, {"rho": 5.0}, {"relaxation": 1.0}, {"relaxation": 1.8}])
def test_admm_finds_the_same_whatever_its_steps(options: dict[str, float]) -> None:
    tree = Tree(61, 4)
    values = noisy(tree, 12)
    assert apart(admm(tree, values, **options).values, project(tree, values)) < 1e-6  # type: ignore[arg-type]


def test_admm_says_how_it_went() -> None:
    tree = Tree(1024, 4)
    values = noisy(tree, 13, 0.01)
    found = admm(tree, values)
    limit = 1e-9
    assert found.iterations == len(found.primal) == len(found.dual) < 100
    assert max(found.primal[-1], found.dual[-1]) <= limit
    assert (np.maximum(found.primal, found.dual)[:-1] > limit).all()
    early = admm(tree, values, most=5)
    assert (early.converged, early.iterations) == (False, 5)
    assert np.array_equal(early.primal, found.primal[:5])
    assert off_optimum(tree, early.values, values, ones(tree)) > 1e-6
    assert abs(early.values[-1].sum() - 1.0) < 1e-12  # feasible even so
    assert (early.values[-1] >= 0).all()


def test_admm_does_the_steps_that_it_states() -> None:
    """Its docstring once more, with `consistent` as the tree's part of x."""
    tree, rho, relaxation = Tree(28, 3), 0.7, 1.6
    values, weights = noisy(tree, 18), some_weights(tree, 18)
    found = admm(tree, values, weights, rho=rho, relaxation=relaxation, most=20)
    y = np.concatenate(values)
    w = np.concatenate(weights) / np.concatenate(weights)[1:].mean()
    z, u = np.maximum(y, 0.0), np.zeros(tree.nodes)
    z[0] = 1.0
    for step in range(20):
        target = (w * y + rho * (z - u)) / (w + rho)
        x = np.concatenate(consistent(tree, cut(tree, target), cut(tree, 1 / (w + rho)), total=1.0))
        relaxed, before = relaxation * x + (1 - relaxation) * z, z
        z = np.maximum(0.0, relaxed + u)
        u = u + relaxed - z
        assert abs(found.primal[step] - np.abs(x - z).max()) < 1e-13
        assert abs(found.dual[step] - rho * np.abs(z - before).max()) < 1e-13
    assert abs(found.lowest - x[tree.offsets[-2] :].min()) < 1e-13


def test_admm_does_not_claim_what_rounding_took() -> None:
    found = admm(Tree(61, 4), [1e20 * level for level in noisy(Tree(61, 4), 16)])
    assert not found.converged
    assert abs(found.values[-1].sum() - 1.0) < 1e-12


def test_admm_in_any_units() -> None:
    tree = Tree(61, 4)
    values, weights = noisy(tree, 14), some_weights(tree, 14)
    found = admm(tree, values, weights)
    other = admm(tree, [1e5 * level for level in values], [1e6 * level for level in weights], total=1e5)
    assert other.converged
    assert abs(other.iterations - found.iterations) <= 1
    assert apart([level / 1e5 for level in other.values], found.values) < 1e-8
