"""Contrasts of levels: boxes read from levels without bias and with the least variance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.domain import Categories, Integers, Record
from veil.errors import EmptyError
from veil.sql import HIO
from veil.sql.designs.decomposition import Combination, NodeReads, contrasts_read, nodes_read
from veil.sql.designs.fanouts import trees_of
from veil.sql.designs.grouped import combination_of, oracle_for
from veil.tree import Tree


def groups_of(sizes: list[int], fan_outs: list[int], epsilon: float = 2.0) -> Combination:
    record = Record(tuple((f"d{i}", Integers(0, size - 1)) for i, size in enumerate(sizes)))
    design = HIO(tuple(fan_outs)).fitted(record, epsilon)
    trees, levels = design.levels(record, epsilon)
    oracles = [oracle_for("OLH", epsilon, Categories.range(max(2, _cells(trees, level)))) for level in levels.tolist()]
    return combination_of(trees, levels, oracles)


def _cells(trees: tuple[Tree, ...], level: list[int]) -> int:
    return math.prod(tree.sizes[depth] for tree, depth in zip(trees, level, strict=True))


def seen(groups: Combination, read: NodeReads, counts: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What the estimator expects of one person, for every combination of values that they may hold."""
    every = np.indices(shape).reshape(len(shape), -1)
    total = np.full(every.shape[1], read.constant)
    for group, (cells, coefficients) in read.parts.items():
        index = np.zeros(every.shape[1], np.int64)
        for tree, depth, codes in zip(groups.trees, groups.levels[group], every, strict=True):
            index = index * tree.sizes[depth] + codes // tree.width(int(depth))
        dense = np.zeros(int(groups.cells[group]))
        dense[cells] = coefficients
        total += counts[group] / counts.sum() * dense[index]
    return total.reshape(shape)


def inside(boxes: list, shape: tuple[int, ...]) -> np.ndarray:
    phi = np.zeros(shape)
    for box in boxes:
        mask = np.ones(shape, bool)
        for place, runs in enumerate(box):
            if runs is not None:
                codes = np.indices(shape)[place]
                mask &= np.any([(codes >= a) & (codes < b) for a, b in runs], axis=0)
        phi += mask
    return phi


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(2, 9), min_size=1, max_size=3))
    fan_outs = [draw(st.integers(2, max(2, size))) for size in sizes]
    cut = draw(st.integers(0, len(sizes) - 1))  # two boxes that differ in this dimension
    middle = draw(st.integers(1, sizes[cut] - 1))
    boxes = []
    for ends in ((0, middle), (middle, sizes[cut])):
        box = []
        for place, size in enumerate(sizes):
            lo, hi = ends if place == cut else (0, size)
            start = draw(st.integers(lo, hi - 1))
            stop = draw(st.integers(start + 1, hi))
            box.append(None if place != cut and draw(st.booleans()) else ((start, stop),))
        boxes.append(tuple(box))
    return sizes, fan_outs, boxes[: draw(st.integers(1, 2))], draw(st.integers(0, 2**32 - 1))


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from([1.0, 1e-7]))
def test_reading_is_unbiased_for_the_boxes(case, effort):
    sizes, fan_outs, boxes, seed = case
    groups = groups_of(sizes, fan_outs)
    counts = np.random.default_rng(seed).integers(1, 50, len(groups.levels))
    for read in (contrasts_read(groups, boxes, counts, effort), nodes_read(groups, boxes, counts)):
        assert np.allclose(seen(groups, read, counts, tuple(sizes)), inside(boxes, tuple(sizes)), atol=1e-9)


def test_reading_without_one_contrast_is_biased():
    groups = groups_of([9, 4], [3, 2])
    counts = np.full(len(groups.levels), 7)
    boxes = [(((2, 7),), ((1, 3),))]
    read = contrasts_read(groups, boxes, counts)
    less = NodeReads(read.constant, dict(list(read.parts.items())[1:]), read.variance)
    assert not np.allclose(seen(groups, less, counts, (9, 4)), inside(boxes, (9, 4)), atol=1e-3)


def test_no_linear_unbiased_reading_of_all_levels_has_less_variance():
    """Least squares over everything that was asked, with the exact total, solved densely."""
    shape, boxes = (8, 9), [(((1, 6),), ((2, 8),))]
    groups = groups_of([8, 9], [2, 3])
    counts = np.random.default_rng(0).integers(500, 1500, len(groups.levels))
    people, cells = counts.sum(), math.prod(shape)
    normal = np.zeros((cells, cells))
    every = np.indices(shape).reshape(2, -1)
    for group, level in enumerate(groups.levels):
        index = np.zeros(cells, np.int64)
        for tree, depth, codes in zip(groups.trees, level, every, strict=True):
            index = index * tree.sizes[depth] + codes // tree.width(int(depth))
        size = int(groups.cells[group])
        answered = np.zeros((size, cells))
        answered[index, np.arange(cells)] = 1
        noise = groups.noises[group] + groups.holders[group] / size
        normal += answered.T @ answered * counts[group] / noise
    phi = inside(boxes, shape).ravel()
    contrast = phi - phi.mean()
    basis = np.linalg.svd(np.ones((1, cells)))[2][1:]  # what the exact total does not say
    solved = np.linalg.solve(basis @ normal @ basis.T, basis @ contrast)
    best = people**2 * float(basis @ contrast @ solved)
    read = contrasts_read(groups, boxes, counts)
    predicted = read.variance + people * phi.mean() * (1 - phi.mean())
    assert predicted == pytest.approx(best, rel=1e-9)
    plain = nodes_read(groups, boxes, counts).variance + people * phi.mean() * (1 - phi.mean())
    assert plain > 1.5 * best


def test_levels_without_answers_are_not_read():
    groups = groups_of([9], [3])
    counts = np.array([5, 0])
    with pytest.raises(EmptyError, match="too few people"):
        contrasts_read(groups, [(((1, 2),),)], counts)
    assert contrasts_read(groups, [(((0, 3),),)], counts).parts.keys() == {0}


def test_box_of_all_cells_needs_no_report():
    groups = groups_of([9, 4], [3, 2])
    read = contrasts_read(groups, [(None, None)], np.full(len(groups.levels), 3))
    assert (read.constant, read.parts, read.variance) == (1.0, {}, 0.0)


def test_trees_are_those_of_the_record():
    record = Record.of(age=Integers(0, 99), sex=2)
    assert [tree.branching for tree in trees_of(record, HIO(5).fitted(record, 1.0).fan_outs)] == [5, 2]
