"""The shape of trees: the levels of `Ancestor`, the fewest nodes of a range, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.domain import Categories
from veil.entropy import Words
from veil.errors import InputError, ParameterError
from veil.tree import NodeRun, Tree, admm, consistent, project
from veil.view import Ancestor

shapes = st.builds(Tree, st.integers(1, 70), st.integers(2, 17))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Tree, int, int]:
    tree = draw(shapes)
    lo = draw(st.integers(0, tree.leaves))
    return tree, lo, draw(st.integers(lo, tree.leaves))


def fewest(tree: Tree, lo: int, hi: int) -> int:
    """Nodes needed for [lo, hi), by trying every node as the last one."""
    best = {lo: 0}
    spans = [tree.span(level, node) for level, size in enumerate(tree.sizes) for node in range(size)]
    for end in range(lo + 1, hi + 1):
        best[end] = 1 + min(best[start] for start, stop in spans if stop == end and start >= lo)
    return best[hi]


@given(ranges())
def test_a_range_is_made_of_the_fewest_nodes(case: tuple[Tree, int, int]) -> None:
    tree, lo, hi = case
    runs = tree.decompose(lo, hi)
    leaves = [
        leaf for run in runs for node in range(run.start, run.stop) for leaf in range(*tree.span(run.level, node))
    ]
    assert leaves == list(range(lo, hi))  # exactly, once each, from left to right
    assert sum(run.stop - run.start for run in runs) == fewest(tree, lo, hi)
    assert all(run.start < run.stop for run in runs)
    assert len(runs) <= 2 * tree.height + 1


def test_all_ranges_of_an_odd_tree() -> None:
    tree = Tree(23, 3)
    for lo in range(24):
        for hi in range(lo, 24):
            assert sum(run.stop - run.start for run in tree.decompose(lo, hi)) == fewest(tree, lo, hi)


def test_leaves_alone_are_not_the_fewest() -> None:
    assert fewest(Tree(16, 4), 3, 13) == 4 != 10
    assert Tree(16, 4).decompose(3, 13) == [NodeRun(2, 3, 4), NodeRun(1, 1, 3), NodeRun(2, 12, 13)]


def test_a_last_node_is_whole_with_the_children_that_it_has() -> None:
    assert Tree(5, 2).decompose(4, 5) == [NodeRun(1, 1, 2)]
    assert Tree(10, 4).decompose(8, 10) == [NodeRun(1, 2, 3)]
    assert Tree(10, 4).decompose(8, 9) == [NodeRun(2, 8, 9)]
    assert Tree(10, 4).decompose(0, 10) == [NodeRun(0, 0, 1)]


def test_a_range_within_neighbouring_nodes_is_one_run() -> None:
    assert Tree(16, 4).decompose(3, 6) == [NodeRun(2, 3, 6)]


@given(st.integers(2, 200), st.integers(2, 17))
def test_levels_are_those_of_ancestor(leaves: int, branching: int) -> None:
    tree = Tree(leaves, branching)
    codes = np.arange(leaves, dtype=np.uint64)
    for level in range(1, tree.height + 1):
        view = Ancestor(Categories.range(leaves), branching, level)
        assert (view.height, view.domain.size) == (tree.height, tree.sizes[level])
        for node in range(tree.sizes[level]):
            held = np.flatnonzero(view.apply(codes, Words(b"")) == node)
            assert tree.span(level, node) == (held[0], held[-1] + 1)


@given(shapes)
def test_children_divide_their_parent(tree: Tree) -> None:
    assert tree.sizes[0] == 1
    assert tree.sizes[-1] == tree.leaves
    assert tree.nodes == sum(tree.sizes) == tree.offsets[-1]
    for level in range(tree.height):
        seen = [child for node in range(tree.sizes[level]) for child in tree.children(level, node)]
        assert seen == list(range(tree.sizes[level + 1]))
        for node in range(tree.sizes[level]):
            spans = [tree.span(level + 1, child) for child in tree.children(level, node)]
            assert (spans[0][0], spans[-1][1]) == tree.span(level, node)
    assert list(tree.children(tree.height, 0)) == []


@given(shapes)
def test_sums_are_those_of_the_leaves(tree: Tree) -> None:
    leaves = np.arange(tree.leaves) ** 2
    for level, sums in enumerate(tree.sums(leaves)):
        spans = [tree.span(level, node) for node in range(tree.sizes[level])]
        assert sums.tolist() == [leaves[lo:hi].sum() for lo, hi in spans]


def test_one_leaf_is_the_root() -> None:
    tree = Tree(1, 2)
    assert (tree.height, tree.sizes, tree.nodes) == (0, (1,), 1)
    assert tree.decompose(0, 1) == [NodeRun(0, 0, 1)]
    assert tree.decompose(0, 0) == tree.decompose(1, 1) == []


def test_trees_are_values() -> None:
    assert Tree(np.int64(10), np.int32(4)) == Tree(10, 4)  # type: ignore[arg-type]
    assert len({Tree(10, 4), Tree(10, 4), Tree(10, 5)}) == 2


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(0, 2), (-1, 2), (2.0, 2), (True, 2), (4, 1), (4, 0), (4, 2.5), ("4", 2)])
def test_shapes_that_are_none(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError):
        Tree(*arguments)


@pytest.mark.parametrize("bad", [(-1, 3), (3, 2), (0, 11), (0.0, 3), (0, True), (None, 3), (11, 11)])
def test_ranges_that_are_none(bad: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError, match="10 leaves"):
        Tree(10, 4).decompose(*bad)


@pytest.mark.parametrize(("level", "node"), [(-1, 0), (3, 0), (1, 3), (1, -1), (1.0, 0), (0, 0.0)])
def test_nodes_that_are_none(level: Any, node: Any) -> None:
    for ask in (Tree(10, 4).span, Tree(10, 4).children):
        with pytest.raises(ParameterError):
            ask(level, node)


TREE = Tree(5, 4)
GOOD: list[Any] = [[1.0], [0.5, 0.5], [0.2] * 5]
BAD_VALUES: list[Any] = [
    None,
    1.0,
    "abc",
    GOOD[:2],
    [*GOOD, [1.0]],
    [[1.0], [0.5, 0.5], [0.2] * 4],
    [[1.0], [[0.5, 0.5]], [0.2] * 5],
    [1.0, 0.5, 0.2],
    [[1.0], [0.5, np.nan], [0.2] * 5],
    [[1.0], [0.5, np.inf], [0.2] * 5],
    [[1.0], [0.5, -1e51], [0.2] * 5],
    [[np.nan], [0.5, 0.5], [0.2] * 5],
    [[1.0], ["a", "b"], [0.2] * 5],
    [[1.0], [True, False], [0.2] * 5],
    [[1.0], [0.5, 0.5j], [0.2] * 5],
    [[1.0], [[0.5], [0.5, 0.1]], [0.2] * 5],
    [[1.0], [None, 0.5], [0.2] * 5],
]


@pytest.mark.parametrize("values", BAD_VALUES)
def test_values_that_do_not_fit_the_tree(values: Any) -> None:
    with pytest.raises(InputError, match="levels of 1, 2, 5"):
        consistent(TREE, values, [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="levels of 1, 2, 5"):
        project(TREE, values)
    with pytest.raises(InputError, match="levels of 1, 2, 5"):
        admm(TREE, values)


def test_errors_show_no_values() -> None:
    with pytest.raises(InputError) as caught:
        project(TREE, [[1.0], [0.123456, np.nan], [0.2] * 5])
    assert "0.123456" not in str(caught.value)


@pytest.mark.parametrize("leaves", [[0.2] * 4, 0.2, [[0.2] * 5], ["a"] * 5, None])
def test_leaves_that_do_not_fit_the_tree(leaves: Any) -> None:
    with pytest.raises(InputError):
        TREE.sums(leaves)


MISSHAPEN: list[Any] = [1.0, "abc", [1.0], [1.0] * 4, [1.0, [1.0], 1.0], [1.0, [1.0, "x"], 1.0], [1.0, True, 1.0]]


@pytest.mark.parametrize(
    "variances", [*MISSHAPEN, [1, 0, 1], [1, -1, 1], [1, np.nan, 1], [1, [1, 0], 1], [1, 1e51, 1], None]
)
def test_variances_that_are_none(variances: Any) -> None:
    with pytest.raises(ParameterError, match="variances"):
        consistent(TREE, GOOD, variances)


@pytest.mark.parametrize(
    "weights",
    [*MISSHAPEN, [1, -1, 1], [1, 1, 0], [1, np.nan, 1], [1, np.inf, 1], [1, 1, 1e-51], [1, 1, [1, 1, 0, 1, 1]]],
)
def test_weights_that_are_none(weights: Any) -> None:
    with pytest.raises(ParameterError, match="weights"):
        project(TREE, GOOD, weights)
    with pytest.raises(ParameterError, match="weights"):
        admm(TREE, GOOD, weights)


@pytest.mark.parametrize("total", [0, -1.0, np.nan, np.inf, 10**400, None, "1", True])
def test_totals_that_are_none(total: Any) -> None:
    with pytest.raises(ParameterError, match="total"):
        project(TREE, GOOD, total=total)
    with pytest.raises(ParameterError, match="total"):
        admm(TREE, GOOD, total=total)


@pytest.mark.parametrize("total", [np.nan, np.inf, "1", True])
def test_a_consistent_total_is_a_number(total: Any) -> None:
    with pytest.raises(ParameterError, match="total"):
        consistent(TREE, GOOD, [1.0, 1.0, 1.0], total=total)


@pytest.mark.parametrize(
    "option",
    [
        {"rho": 0.0},
        {"rho": -1.0},
        {"rho": np.inf},
        {"relaxation": 0.0},
        {"relaxation": 2.0},
        {"relaxation": np.nan},
        {"tolerance": 0.0},
        {"tolerance": np.nan},
        {"most": 0},
        {"most": 1.5},
    ],
)
def test_options_of_admm_that_are_none(option: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        admm(TREE, GOOD, **option)


def test_leaves_that_nobody_asked_about_need_a_total() -> None:
    for variances in ([np.inf] * 3, [np.inf, [np.inf, 1.0], [np.inf, 1.0, 1.0, 1.0, 1.0]]):
        with pytest.raises(InputError, match="give the total"):
            consistent(TREE, GOOD, variances)
        assert consistent(TREE, GOOD, variances, total=2.0)[0].tolist() == [2.0]
