"""Conditions on private cells: runs, boxes that do not overlap, and the tree nodes of a box."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.errors import InputError
from veil.sql.language.query import FALSE, TRUE, And, Box, Condition, InRanges, Or, PublicCondition, Runs
from veil.sql.language.regions import LARGEST, complement, disjoint_boxes, either, intersect, patterns, union
from veil.tree import NodeRun, Tree

SIZES = (7, 4, 5)
TREES = (Tree(7, 2), Tree(4, 4), Tree(5, 3))


def codes(runs: Runs) -> set[int]:
    return {code for start, stop in runs for code in range(start, stop)}


def as_runs(chosen: set[int]) -> Runs:
    return union(tuple((code, code + 1) for code in chosen))


def holds(condition: Condition, cell: tuple[int, ...]) -> bool:
    """Cell by cell, straight from the words: the reading that everything else is compared with."""
    if isinstance(condition, InRanges):
        return any(start <= cell[condition.place] < stop for start, stop in condition.runs)
    assert not isinstance(condition, PublicCondition)
    return (all if isinstance(condition, And) else any)(holds(part, cell) for part in condition.parts)


def inside(box: Box, cell: tuple[int, ...]) -> bool:
    return all(side is None or cell[i] in codes(side) for i, side in enumerate(box))


def decompose(box: Box, trees: list[Tree]) -> list[list[NodeRun]]:
    """For each dimension the fewest nodes of its tree whose leaves are the box's side."""
    sides = [((0, tree.leaves),) if side is None else side for side, tree in zip(box, trees, strict=True)]
    return [[run for ends in side for run in tree.decompose(*ends)] for side, tree in zip(sides, trees, strict=True)]


def node_count(box: Box, trees: list[Tree]) -> int:
    """The number of products of tree nodes that make up the box."""
    return math.prod(sum(run.stop - run.start for run in side) for side in decompose(box, trees))


def cells(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(product(*map(range, sizes)))


sides = st.integers(0, len(SIZES) - 1).flatmap(
    lambda place: st.sets(st.integers(0, SIZES[place] - 1)).map(lambda chosen: InRanges(place, as_runs(chosen)))
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    sides,
    lambda parts: st.lists(parts, max_size=4).flatmap(
        lambda held: st.sampled_from([And(tuple(held)), Or(tuple(held))])
    ),
    max_leaves=10,
)


@given(st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_operations_on_runs_match_sets_of_codes(one: set[int], other: set[int]) -> None:
    a, b = as_runs(one), as_runs(other)
    assert codes(a) == one
    assert codes(union(a, b)) == one | other
    assert codes(intersect(a, b)) == one & other
    assert codes(complement(a, 12)) == set(range(12)) - one
    for runs in (union(a, b), intersect(a, b), complement(a, 12)):  # disjoint, increasing, with gaps
        ends = [end for run in runs for end in run]
        assert ends == sorted(set(ends))


@given(conditions)
def test_disjoint_boxes_hold_exactly_the_cells_of_the_condition(condition: Condition) -> None:
    boxes = disjoint_boxes(condition, SIZES)
    for cell in cells(SIZES):
        assert sum(inside(box, cell) for box in boxes) == holds(condition, cell)
    if boxes:  # the rival: any box left out is missed
        assert any(sum(inside(box, cell) for box in boxes[1:]) != holds(condition, cell) for cell in cells(SIZES))
    assert not any(() in box for box in boxes)
    assert not any(side == ((0, size),) for box in boxes for side, size in zip(box, SIZES, strict=True))


@given(st.data(), st.lists(st.tuples(st.integers(1, 40), st.integers(2, 6)), min_size=1, max_size=3))
def test_a_box_decomposes_into_disjoint_nodes_that_cover_it_exactly(
    data: st.DataObject, shapes: list[tuple[int, int]]
) -> None:
    trees = [Tree(leaves, branching) for leaves, branching in shapes]
    box = tuple(
        data.draw(st.none() | st.sets(st.integers(0, tree.leaves - 1), min_size=1).map(as_runs)) for tree in trees
    )
    for side, tree, runs in zip(box, trees, decompose(box, trees), strict=True):
        spans = [tree.span(run.level, node) for run in runs for node in range(run.start, run.stop)]
        covered = [leaf for start, stop in spans for leaf in range(start, stop)]
        assert len(covered) == len(set(covered))
        assert set(covered) == (set(range(tree.leaves)) if side is None else codes(side))
        most = max(1, 2 * (tree.branching - 1) * tree.height)
        assert len(spans) <= most * (1 if side is None else len(side))


@given(st.data(), st.integers(2, 6), st.integers(1, 5))
def test_one_run_needs_at_most_2_b_minus_2_nodes_per_level(data: st.DataObject, branching: int, height: int) -> None:
    tree = Tree(branching**height, branching)
    start = data.draw(st.integers(0, tree.leaves - 1))
    stop = data.draw(st.integers(start + 1, tree.leaves))
    assert node_count((((start, stop),),), [tree]) <= 2 * (branching - 1) * height


def test_range_of_figure_7_1_of_the_thesis_needs_four_nodes() -> None:
    assert node_count((((1, 7),),), [Tree(8, 2)]) == 4


def test_a_condition_that_needs_too_many_boxes_is_refused() -> None:
    odd = tuple((code, code + 1) for code in range(1, 40, 2))
    chain = Or(tuple(And((InRanges(i, odd), InRanges(i + 1, odd), InRanges(i + 2, odd))) for i in range(0, 60, 3)))
    with pytest.raises(InputError, match=f"more than {LARGEST:,} boxes"):
        disjoint_boxes(chain, (40,) * 60)


def test_ranges_that_overlap_and_touch_stay_few_boxes() -> None:
    ages = either([InRanges(0, ((start, start + 10),)) for start in range(0, 90, 9)])
    assert disjoint_boxes(ages, (100, 3)) == ((((0, 91),), None),)
    grid = Or(tuple(And((InRanges(0, ((i, i + 1),)), InRanges(1, ((0, 2),)))) for i in range(50)))
    assert disjoint_boxes(grid, (100, 3)) == ((((0, 50),), ((0, 2),)),)


@given(conditions, st.integers(0, 7))
@settings(max_examples=50)
def test_patterns_substitute_public_conditions(condition: Condition, bits: int) -> None:
    mixed = Or(
        (
            And((PublicCondition("a"), condition)),
            And((PublicCondition("b"), PublicCondition("a"), TRUE)),
            And((FALSE, PublicCondition("c"))),
        )
    )
    found = patterns(mixed)
    assert found.atoms == ("a", "b", "c")
    a, b = bits & 1, bits >> 1 & 1
    left = found.where(bits)
    assert all(holds(left, cell) == bool((a and holds(condition, cell)) or (b and a)) for cell in cells(SIZES))


def test_public_conditions_have_no_boxes() -> None:
    with pytest.raises(InputError, match="private dimensions alone"):
        disjoint_boxes(And((PublicCondition("a"), TRUE)), SIZES)
