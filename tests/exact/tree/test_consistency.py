"""Consistency by passes over the tree is generalised least squares: against a dense solve, and as a linear map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.tree import Levels, Tree, consistent

Floats = NDArray[np.float64]

SHAPES = [
    *[(1, 2), (2, 2), (3, 2), (8, 2), (11, 2), (33, 2), (27, 3), (28, 3), (50, 3), (16, 4), (17, 4), (61, 4), (64, 4)],
    *[(4, 5), (25, 5), (26, 5), (124, 5), (7, 16), (16, 16), (17, 16), (100, 16)],
]


def members(tree: Tree) -> Floats:
    """Nodes by leaves: 1 where the leaf is under the node."""
    spans = [tree.span(level, node) for level, size in enumerate(tree.sizes) for node in range(size)]
    leaves = np.arange(tree.leaves)
    return np.array([(lo <= leaves) & (leaves < hi) for lo, hi in spans], float)


def cut(tree: Tree, nodes: Floats) -> Levels:
    return np.split(nodes, tree.offsets[1:-1])


def least_squares(
    tree: Tree, values: Floats, variances: Floats, total: float | None, among: NDArray[np.bool_] | None = None
) -> Floats:
    """The same over the leaves (`among` them those that may differ from 0) by the normal equations, in 80-bit numbers.

    A total borders them. numpy's own solver in doubles is the less accurate side where variances differ much.
    """
    every = members(tree).astype(np.longdouble)
    rows = every if among is None else every[:, among]
    weights = 1 / variances.astype(np.longdouble)  # 0 where a node was not asked
    free = rows.shape[1]
    size = free + (total is not None)
    system = np.zeros((size, size + 1), np.longdouble)
    system[:free, :free] = rows.T @ (rows * weights[:, None])
    system[:free, size] = rows.T @ (values * weights)
    if total is not None:
        system[-1, :free] = system[:free, -2] = 1
        system[-1, size] = total
    for k in range(size):
        pivot = k + int(np.abs(system[k:, k]).argmax())
        system[[k, pivot]] = system[[pivot, k]]
        system[k] /= system[k, k]
        others = np.arange(size) != k
        system[others] -= system[others, k, None] * system[k]
    return np.asarray(rows @ system[:free, size], float)


def drawn(tree: Tree, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    return random.normal(0, 1, tree.nodes), 10 ** random.uniform(-2, 2, tree.nodes)


@pytest.mark.parametrize("total", [None, 1.0, -3.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_least_squares_solution(shape: tuple[int, int], total: float | None) -> None:
    tree = Tree(*shape)
    for seed in range(5):
        values, variances = drawn(tree, seed)
        made = np.concatenate(consistent(tree, cut(tree, values), cut(tree, variances), total))
        assert np.allclose(made, least_squares(tree, values, variances, total), rtol=0, atol=1e-12)
        assert np.allclose(made, np.concatenate(tree.sums(made[tree.offsets[-2] :])), rtol=0, atol=1e-12)


def test_rivals_are_not() -> None:
    tree = Tree(61, 4)
    values, variances = drawn(tree, 0)
    best = least_squares(tree, values, variances, None)
    unweighted = np.concatenate(consistent(tree, cut(tree, values), [1.0] * 4))
    leaves_only = np.concatenate(tree.sums(values[tree.offsets[-2] :]))
    for rival in (unweighted, leaves_only):
        assert np.abs(rival - best).max() > 0.1


@pytest.mark.parametrize("total", [None, 1.0])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[0] > 1])
def test_nodes_that_were_not_asked(shape: tuple[int, int], total: float | None) -> None:
    """The root, a whole level, and inner nodes here and there; every leaf is asked, so there is one solution."""
    tree = Tree(*shape)
    random = np.random.default_rng(1)
    for left_out in (
        range(1),
        range(tree.offsets[-3], tree.offsets[-2]),
        np.flatnonzero(random.random(tree.offsets[-2]) < 0.5),
    ):
        values, variances = drawn(tree, 2)
        variances[left_out] = np.inf
        made = np.concatenate(consistent(tree, cut(tree, values), cut(tree, variances), total))
        assert np.allclose(made, least_squares(tree, values, variances, total), rtol=0, atol=1e-12)
        values[left_out] = 1e9  # not read
        assert np.array_equal(made, np.concatenate(consistent(tree, cut(tree, values), cut(tree, variances), total)))


@pytest.mark.parametrize("shape", [(3, 2), (11, 2), (28, 3), (26, 5), (17, 16)])
def test_a_leaf_that_was_not_asked_is_what_its_siblings_leave(shape: tuple[int, int]) -> None:
    tree = Tree(*shape)
    values, variances = drawn(tree, 3)
    for leaf in (0, tree.leaves - 1):
        some = variances.copy()
        some[tree.offsets[-2] + leaf] = np.inf
        made = np.concatenate(consistent(tree, cut(tree, values), cut(tree, some)))
        assert np.allclose(made, least_squares(tree, values, some, None), rtol=0, atol=1e-11)


@pytest.mark.parametrize("total", [None, 2.0])
@pytest.mark.parametrize("shape", [(8, 2), (11, 2), (28, 3), (61, 4), (26, 5), (17, 16)])
def test_leaves_known_through_ancestors_share_equally(shape: tuple[int, int], total: float | None) -> None:
    """The limit of leaves that are asked, answer 0 and have ever larger variances."""
    tree = Tree(*shape)
    random = np.random.default_rng(4)
    for level_unasked in (True, False):
        values, variances = drawn(tree, 5)
        unasked = tree.offsets[-2] + (
            np.arange(tree.leaves) if level_unasked else np.flatnonzero(random.random(tree.leaves) < 0.6)
        )
        limit, zeros = variances.copy(), values.copy()
        limit[unasked], zeros[unasked] = 1e9, 0.0
        variances[unasked] = np.inf
        made = np.concatenate(consistent(tree, cut(tree, values), cut(tree, variances), total))
        assert np.allclose(made, least_squares(tree, zeros, limit, total), rtol=0, atol=1e-6)
    only_root = consistent(tree, cut(tree, values), [1.0, *[np.inf] * tree.height], total)
    expected = values[0] if total is None else total
    assert np.allclose(only_root[-1], expected / tree.leaves, rtol=1e-12)


def linear_map(tree: Tree, variances: Floats, total: float | None) -> Floats:
    """Its matrix, one column for each unit answer; with a total of 0 where there is a total."""
    columns = [
        np.concatenate(consistent(tree, cut(tree, unit), cut(tree, variances), total)) for unit in np.eye(tree.nodes)
    ]
    return np.array(columns).T


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[0] <= 64])
def test_it_is_linear_and_unbiased(shape: tuple[int, int], fixed: bool) -> None:
    tree = Tree(*shape)
    values, variances = drawn(tree, 6)
    if tree.height > 1:
        variances[0] = variances[2] = np.inf
    made = linear_map(tree, variances, 0.0 if fixed else None)
    given = np.concatenate(consistent(tree, cut(tree, values), cut(tree, variances), 0.0 if fixed else None))
    assert np.allclose(made @ values, given, rtol=0, atol=1e-12)
    held = members(tree)
    if fixed:
        held = held - held.mean(axis=1, keepdims=True)  # columns that add up to 0: what a total of 0 allows
    assert np.allclose(made @ held, held, rtol=0, atol=1e-12)


def test_no_unbiased_rival_has_a_smaller_variance() -> None:
    tree = Tree(61, 4)
    _, variances = drawn(tree, 7)
    best = (linear_map(tree, variances, None) ** 2) @ variances
    leaves_only = (members(tree) ** 2) @ variances[tree.offsets[-2] :]
    unweighted = (linear_map(tree, np.ones(tree.nodes), None) ** 2) @ variances
    for rival in (leaves_only, unweighted, variances):
        assert (best <= rival * (1 + 1e-12)).all()
        assert (best < 0.9 * rival).any()


def test_uniform_noise_gives_hays_weights() -> None:
    """Hay et al., VLDB 2010, theorem 3: binary, equal variances; 2^(l-1) / (2^l - 1) of a node's own answer."""
    tree = Tree(8, 2)
    values, _ = drawn(tree, 8)
    levels = cut(tree, values)
    combined = levels[3]
    for size in (2, 3, 4):  # levels from a node down to its leaves
        own = 2 ** (size - 1) / (2**size - 1)
        combined = own * levels[4 - size] + (1 - own) * combined.reshape(-1, 2).sum(axis=1)
    assert np.allclose(consistent(tree, levels, [1.0] * 4)[0], combined, rtol=0, atol=1e-14)


def test_inputs_stay_as_they_are() -> None:
    tree = Tree(11, 2)
    values, variances = drawn(tree, 9)
    kept = values.copy(), variances.copy()
    consistent(tree, cut(tree, values), cut(tree, variances), 1.0)
    assert np.array_equal(values, kept[0])
    assert np.array_equal(variances, kept[1])
