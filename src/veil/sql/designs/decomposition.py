"""Contrasts: a box as a sum over levels of the trees, and the levels that are read for each part of it.

A function phi of one dimension is the sum of its contrasts: E_0 phi is its mean, and E_j phi is the difference between
the means over nodes of level j and those of level j - 1. In several dimensions contrasts are products, one for each
combination j of levels. The contrast of all roots is a constant, known exactly. Contrast j is a function of the nodes
of every combination of levels l >= j, and reading it from the n_l people who were asked about l has the variance

    (mean of its square) * (r + s^2 N_l) / n_l

where N_l is the number of nodes there, s^2 the noise of one person's support of a node, r - 1 the variance that a held
node adds, and people are spread evenly. So every combination has the weight n_l / (r + s^2 N_l): least squares over
trees with an exact root, in any number of dimensions, because contrasts are orthogonal. Any weights that do not depend
on the reports leave the answer unbiased. `nodes_read` reads the fewest nodes instead, as the thesis does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError
from veil.sql.language.query import Box, Runs
from veil.tools.limits import admit, check
from veil.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CELL_BYTES = 64  # its place and its value, and copies of both while they are added up

_PAIRS = 1 << 27  # of a report and a cell, that a condition costs as long as there is a choice: some 20 ms
_NEEDED = 1 << 28  # that it may cost before contrasts of categories are given up
_MOST_PAIRS = 1 << 37


class Combination:
    """All combinations of levels that people were asked about, and what reading each costs and gives."""

    def __init__(self, trees: Sequence[Tree], levels: Ints, noises: Floats, holders: Floats) -> None:
        self.trees, self.levels, self.noises, self.holders = tuple(trees), levels, noises, holders
        sizes = np.ones(len(levels))
        for tree, level in zip(self.trees, levels.T, strict=True):
            sizes *= np.array(tree.sizes, dtype=np.float64)[level]
        self.cells = sizes
        """Nodes of each combination."""
        self.information = 1.0 / (holders + noises * sizes)
        """What one person tells of a contrast, where one without noise tells 1."""


class NodeReads:
    """The cells that are read, by group, with their coefficients: u = sum of coefficient (support - q) / (p - q)."""

    def __init__(self, constant: float, parts: dict[int, tuple[Ints, Floats]], variance: float) -> None:
        self.constant, self.parts, self.variance = constant, parts, variance


@dataclass(frozen=True)
class BoxSide:
    """One side of a box: which leaves of a dimension it holds, as contrasts; or, `whole`, as it is at the leaves."""

    tree: Tree
    runs: Runs
    whole: bool = False
    """Whether the side is asked for at the leaves alone: fewer cells, and a little more noise."""

    @cached_property
    def contrasts(self) -> list[tuple[Ints, Floats]]:
        """For each level the nodes where the contrast is not 0, and what it is there."""
        leaves = np.zeros(self.tree.leaves)
        for start, stop in self.runs:
            leaves[start:stop] = 1.0
        if self.whole:
            nothing = (np.zeros(0, np.int64), np.zeros(0))
            where = np.flatnonzero(leaves)
            return [nothing] * self.tree.height + [(where, leaves[where])]
        sums = np.concatenate(([0.0], np.cumsum(leaves)))
        found, above = [], np.zeros(1)
        for level, size in enumerate(self.tree.sizes):
            edges = np.minimum(np.arange(size + 1) * self.tree.width(level), self.tree.leaves)
            means = (sums[edges[1:]] - sums[edges[:-1]]) / np.diff(edges)
            parents = np.arange(size) // self.tree.branching if level else np.zeros(size, np.int64)
            contrast = means - above[parents]
            where = np.flatnonzero(np.abs(contrast) > 1e-12)
            found.append((where, contrast[where]))
            above = means
        return found

    @cached_property
    def squares(self) -> list[float]:
        """For each level the mean over all leaves of the contrast's square."""
        return [_inner(self, self, level) for level in range(len(self.contrasts))]

    @cached_property
    def _at(self) -> dict[tuple[int, int], tuple[Ints, Floats]]:
        return {}

    def at(self, contrast: int, level: int) -> tuple[Ints, Floats]:
        """A contrast as a function of the nodes of a finer level: where it is not 0, and what it is."""
        if (contrast, level) not in self._at:
            self._at[contrast, level] = self._spread(contrast, level)
        return self._at[contrast, level]

    def _spread(self, contrast: int, level: int) -> tuple[Ints, Floats]:
        where, values = self.contrasts[contrast]
        times = self.tree.width(contrast) // self.tree.width(level)
        if times == 1 or not len(where):
            return where, values
        nodes = (where[:, None] * times + np.arange(times)).ravel()
        inside = nodes < self.tree.sizes[level]  # the last node of a level may have fewer below it
        return nodes[inside], np.repeat(values, times)[inside]

    def size(self, contrast: int, level: int) -> int:
        """How many cells reading a contrast from a level takes."""
        times = self.tree.width(contrast) // self.tree.width(level)
        return min(len(self.contrasts[contrast][0]) * times, self.tree.sizes[level])


def contrasts_read(combination: Combination, boxes: Sequence[Box], counts: Ints, effort: float = 1.0) -> NodeReads:
    """What is read for the people in any of these disjoint boxes, by contrasts.

    Raises EmptyError where nobody was asked about a level that is needed.
    """
    asked = _asked(boxes)
    if not asked:
        return NodeReads(float(len(boxes)), {}, 0.0)
    known, chosen = _decided(combination, boxes, asked, counts, effort)
    return _read(combination, known, asked, chosen, int(counts.sum()))


def contrasts_variance(combination: Combination, boxes: Sequence[Box], counts: Ints, effort: float = 1.0) -> float:
    """The variance of a COUNT that is read so, without looking for the cells of each group: it takes milliseconds."""
    asked = _asked(boxes)
    if not asked:
        return 0.0
    return _variance(*_decided(combination, boxes, asked, counts, effort), int(counts.sum()))


def _asked(boxes: Sequence[Box]) -> list[int]:
    """The dimensions that any of the boxes asks about."""
    return [place for place, sides in enumerate(zip(*boxes, strict=True)) if any(runs is not None for runs in sides)]


def _decided(
    combination: Combination, boxes: Sequence[Box], asked: Sequence[int], counts: Ints, effort: float
) -> tuple[list[list[BoxSide]], _Chosen]:
    """The sides of the boxes, and which contrasts are read from which groups."""
    trees = combination.trees
    everything = tuple(((0, tree.leaves),) for tree in trees)
    known = _by_side(boxes, trees, asked, everything, frozenset())
    budget = _PAIRS * effort
    whole: frozenset[int] = frozenset()
    chosen = _chosen(combination, known, asked, counts, budget)
    # A categorical side has a contrast in every cell: at the leaves alone it has as many as it holds.
    flat = sorted((p for p in asked if trees[p].height == 1), key=lambda p: -trees[p].leaves)
    for place in flat:
        if chosen.least <= _NEEDED * effort or trees[place].leaves <= 2:
            break
        whole |= {place}
        known = _by_side(boxes, trees, asked, everything, whole)
        chosen = _chosen(combination, known, asked, counts, budget)
    if chosen.least > _MOST_PAIRS:
        raise InputError(
            f"this condition needs {chosen.least:,.0f} pairs of a report and a cell, more than {_MOST_PAIRS:,}: "
            "ask about fewer dimensions at once, or about rounder ranges"
        )
    return known, chosen


def _by_side(
    boxes: Sequence[Box], trees: Sequence[Tree], asked: Sequence[int], everything: Box, whole: frozenset[int]
) -> list[list[BoxSide]]:
    """The sides of each box in the dimensions that are asked about; equal sides are one."""
    made: dict[tuple[int, Runs], BoxSide] = {}
    found = []
    for box in boxes:
        sides = []
        for place in asked:
            runs = box[place] if box[place] is not None else everything[place]
            assert runs is not None
            if (place, runs) not in made:
                made[place, runs] = BoxSide(trees[place], runs, place in whole)
            sides.append(made[place, runs])
        found.append(sides)
    return found


@dataclass(frozen=True)
class _Chosen:
    """Which contrasts are read from which groups: pairs of their numbers, by contrast."""

    contrasts: list[tuple[int, ...]]
    pairs: list[tuple[Ints, float]]
    """For each contrast the groups, and the sum of their weights."""
    least: float
    """The pairs of a report and a cell that the fewest groups cost."""


def _chosen(
    combination: Combination, boxes: list[list[BoxSide]], asked: Sequence[int], counts: Ints, budget: float
) -> _Chosen:
    """For each contrast the groups to read: the cheapest that anybody answered, and others as far as work allows."""
    trees = [combination.trees[place] for place in asked]
    levels = combination.levels[:, asked]
    beside = combination.cells.copy()  # cells of the dimensions that the condition does not ask about
    for tree, level in zip(trees, levels.T, strict=True):
        beside /= np.array(tree.sizes, dtype=np.float64)[level]
    contrasts = [
        j
        for j in product(*(range(tree.height + 1) for tree in trees))
        if any(all(len(side.contrasts[level][0]) for side, level in zip(sides, j, strict=True)) for sides in boxes)
        and any(j)
    ]
    costs: list[Floats] = []
    groups: list[Ints] = []
    least, cheapest = 0.0, []
    sizes = [_sizes(tree, [sides[place] for sides in boxes], levels[:, place]) for place, tree in enumerate(trees)]
    for j in contrasts:
        every = beside * len(boxes)
        for of_side, level in zip(sizes, j, strict=True):
            every = every * of_side[level]  # 0 where a group shows nothing so fine
        fits = np.flatnonzero((every > 0) & (counts > 0))
        if not len(fits):
            raise EmptyError("too few people answered to tell: nobody was asked about a level that this needs")
        cells: Floats = np.minimum(every[fits], combination.cells[fits])
        cost: Floats = cells * counts[fits]
        first = int(np.argmin(cells))
        least += float(cost[first])
        cheapest.append(first)
        costs.append(cost)
        groups.append(fits)
    if not contrasts:
        return _Chosen([], [], 0.0)
    everything = np.concatenate(costs)
    order = np.argsort(everything, kind="stable")
    within = np.cumsum(everything[order]) <= max(budget - least, 0.0)
    taken = np.zeros(len(everything), np.bool_)
    taken[order[within]] = True
    pairs, at = [], 0
    for fits, cost, first in zip(groups, costs, cheapest, strict=True):
        mine = taken[at : at + len(cost)]
        mine[first] = True
        at += len(cost)
        kept = fits[mine]
        pairs.append((kept, float((counts[kept] * combination.information[kept]).sum())))
    return _Chosen(contrasts, pairs, least)


def _sizes(tree: Tree, sides: Sequence[BoxSide], levels: Ints) -> Floats:
    """How many cells it takes to read each contrast from each of some levels; 0 where the level is too coarse."""
    table = np.zeros((tree.height + 1, tree.height + 1))
    for contrast in range(tree.height + 1):
        for level in range(contrast, tree.height + 1):
            table[contrast, level] = max(side.size(contrast, level) for side in sides)
    return np.asarray(table[:, levels])


def _read(
    combination: Combination, boxes: list[list[BoxSide]], asked: Sequence[int], chosen: _Chosen, people: int
) -> NodeReads:
    trees = combination.trees
    constant = sum(math.prod(_value(side) for side in sides) for sides in boxes)
    pieces: dict[int, list[tuple[Ints, Floats]]] = {}
    cells = 0
    for j, (groups, weight) in zip(chosen.contrasts, chosen.pairs, strict=True):
        for group in groups.tolist():
            check()
            level = combination.levels[group]
            factor = people * combination.information[group] / weight
            for sides in boxes:
                found = _cells(trees, asked, sides, j, level)
                if found is not None:
                    pieces.setdefault(group, []).append((found[0], found[1] * factor))
                    cells += len(found[0])
            megabytes = _CELL_BYTES * cells / 1e6
            admit(f"a condition of {len(boxes):,} boxes", megabytes, 0, "fewer dimensions or ranges at once")
    parts = {group: _added(some) for group, some in pieces.items()}
    return NodeReads(constant, parts, _variance(boxes, chosen, people))


def _variance(boxes: list[list[BoxSide]], chosen: _Chosen, people: int) -> float:
    """The variance of a COUNT; what each person adds to the truth is the same whatever group they are put into."""
    pairs = zip(chosen.contrasts, chosen.pairs, strict=True)
    found = people**2 * math.fsum(_mean_square(boxes, j) / weight for j, (_, weight) in pairs)
    share = sum(math.prod(_share(side) for side in sides) for sides in boxes)
    return max(found - people * share * (1 - share), 0.0)


def _value(side: BoxSide) -> float:
    """The mean over all leaves, where it is read from the exact total."""
    return float(side.contrasts[0][1].sum())


def _share(side: BoxSide) -> float:
    return sum(stop - start for start, stop in side.runs) / side.tree.leaves


def _mean_square(boxes: list[list[BoxSide]], j: tuple[int, ...]) -> float:
    """The mean over all cells of the square of contrast j of the boxes together."""
    total = 0.0
    for a, sides in enumerate(boxes):
        check()  # thousands of boxes make millions of pairs
        for b, others in enumerate(boxes[: a + 1]):
            both = 1.0
            for side, other, level in zip(sides, others, j, strict=True):
                both *= side.squares[level] if side is other else _inner(side, other, level)
                if not both:
                    break
            total += both if a == b else 2 * both
    return total


def _inner(side: BoxSide, other: BoxSide, level: int) -> float:
    """The mean over all leaves of two contrasts' product."""
    where, values = side.contrasts[level]
    if side is other:
        product_ = values * values
    else:
        where, mine, theirs = np.intersect1d(where, other.contrasts[level][0], assume_unique=True, return_indices=True)
        product_ = values[mine] * other.contrasts[level][1][theirs]
    width = side.tree.width(level)
    leaves = np.minimum((where + 1) * width, side.tree.leaves) - where * width
    return float((product_ * leaves).sum()) / side.tree.leaves


def _cells(
    trees: Sequence[Tree], asked: Sequence[int], sides: Sequence[BoxSide], j: tuple[int, ...], level: Ints
) -> tuple[Ints, Floats] | None:
    """A contrast of one box as a function of the cells of a combination of levels; None where it is 0."""
    index, values = np.zeros(1, np.int64), np.ones(1)
    at = 0
    for place, tree in enumerate(trees):
        size = tree.sizes[level[place]]
        if at < len(asked) and asked[at] == place:
            nodes, own = sides[at].at(j[at], int(level[place]))
            at += 1
            if not len(nodes):
                return None
        elif size == 1:
            continue
        else:
            nodes, own = np.arange(size), np.ones(size)
        index = (index[:, None] * size + nodes).ravel()
        values = (values[:, None] * own).ravel()
    return index, values


def _added(pieces: list[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """Coefficients of cells, each cell once and in order."""
    if len(pieces) == 1:
        order = np.argsort(pieces[0][0], kind="stable")
        return pieces[0][0][order], pieces[0][1][order]
    cells = np.concatenate([cells for cells, _ in pieces])
    values = np.concatenate([values for _, values in pieces])
    each, places = np.unique(cells, return_inverse=True)
    return each, np.bincount(places, values, minlength=len(each)).astype(np.float64)


def nodes_read(combination: Combination, boxes: Sequence[Box], counts: Ints) -> NodeReads:
    """What is read for the people in any of these disjoint boxes as in the thesis (7.19): the fewest nodes, added up.

    A node that n_l people were asked about counts n / n_l times: exact in total, where the thesis multiplies by the
    number of groups.
    """
    trees, people = combination.trees, int(counts.sum())
    number = {tuple(level): group for group, level in enumerate(combination.levels.tolist())}
    constant, pieces = 0.0, dict[int, list[tuple[Ints, Floats]]]()
    variance = 0.0
    for box in boxes:
        sides = [_nodes(tree, runs) for tree, runs in zip(trees, box, strict=True)]
        for parts in product(*sides):
            level = tuple(part[0] for part in parts)
            if not any(level):
                constant += 1.0
                continue
            group = number.get(level)
            if group is None or not counts[group]:
                raise EmptyError("too few people answered to tell: nobody was asked about a level that this needs")
            index = np.zeros(1, np.int64)
            for tree, (depth, nodes) in zip(trees, parts, strict=True):
                index = (index[:, None] * tree.sizes[depth] + nodes).ravel()
            pieces.setdefault(group, []).append((index, np.full(len(index), people / counts[group])))
            held = len(index) / combination.cells[group]
            own = combination.noises[group] * len(index) + combination.holders[group] * held - held**2
            variance += people**2 * own / counts[group]
    share = sum(
        math.prod(
            1.0 if runs is None else sum(b - a for a, b in runs) / tree.leaves
            for tree, runs in zip(trees, box, strict=True)
        )
        for box in boxes
    )
    return NodeReads(
        constant, {g: _added(some) for g, some in pieces.items()}, max(variance - people * share * (1 - share), 0.0)
    )


def _nodes(tree: Tree, runs: Runs | None) -> list[tuple[int, Ints]]:
    """The fewest nodes that make a side, by level."""
    if runs is None:
        return [(0, np.zeros(1, np.int64))]
    by_level: dict[int, list[Ints]] = {}
    for start, stop in runs:
        for run in tree.decompose(start, stop):
            by_level.setdefault(run.level, []).append(np.arange(run.start, run.stop))
    return [(level, np.concatenate(nodes)) for level, nodes in by_level.items()]
