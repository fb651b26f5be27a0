"""Rivals of HIO in the thesis (section 7.6), for comparison: a QuadTree, and coefficients of a wavelet transform.

Both are reductions of HIO: the QuadTree asks only about cells of the same depth in all dimensions, and the wavelet
reads every part of a condition from the one group that is about it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import EmptyError, InputError
from veil.sql.designs.base import RowEstimator
from veil.sql.designs.decomposition import Combination, NodeReads, contrasts_read
from veil.sql.designs.grouped import GroupedDesign, GroupedValues, Oracle
from veil.sql.designs.hio import HIO
from veil.sql.language.query import Box
from veil.tree import Tree

if TYPE_CHECKING:
    from veil.sql.table import Table


_MOST_CELLS = 1 << 24


@dataclass(frozen=True)
class QuadTree(GroupedDesign):
    """Everybody answers for one level of a tree that halves all dimensions at once, drawn at random (thesis 7.6).

    A box is made of squares. Along its edges they are small, and there are as many of them as the edge is long: the
    noise grows with the number of values, where that of HIO grows with powers of its logarithm.

    Guarantee: which level is asked does not depend on the value, and its oracle keeps e^eps.

    >>> from veil.domain import Integers
    >>> QuadTree().levels(Record.of(x=Integers(0, 7), y=Integers(0, 7)), 1.0)[1].tolist()
    [[1, 1], [2, 2], [3, 3]]
    """

    oracle: Oracle = "best"
    kind = "quadtree"

    def levels(self, private: Record, epsilon: float) -> tuple[tuple[Tree, ...], NDArray[np.int64]]:
        trees = tuple(Tree(part.size, 2) for part in private.parts)
        depths = np.arange(1, max(tree.height for tree in trees) + 1)
        return trees, np.stack([np.minimum(depths, tree.height) for tree in trees], axis=1)

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        groups = self.groups(table)
        if table.reading == "levels":
            return super().values(table, boxes, counts, effort)
        return GroupedValues(_squares_read(groups.combination, boxes, counts), groups.oracles, counts)


def _squares_read(groups: Combination, boxes: Sequence[Box], counts: NDArray[np.int64]) -> NodeReads:
    """The fewest squares that make the boxes: those inside whose parent is not."""
    if groups.cells[-1] > _MOST_CELLS:
        raise InputError(f"a QuadTree is read for at most {_MOST_CELLS:,} cells; this one has {groups.cells[-1]:,.0f}")
    people, variance, parts = int(counts.sum()), 0.0, {}
    above = _inside(groups, np.zeros(len(groups.trees), np.int64), boxes)
    constant, before = float(above.all()), np.zeros(len(groups.trees), np.int64)
    for group, level in enumerate(groups.levels):
        inside = _inside(groups, level, boxes)
        parents = above
        for axis, (tree, depth, last) in enumerate(zip(groups.trees, level, before, strict=True)):
            nodes = np.arange(tree.sizes[depth]) * tree.width(int(depth)) // tree.width(int(last))
            parents = parents.take(nodes, axis=axis)
        cells = np.flatnonzero(inside & ~parents)
        above, before = inside, level
        if not len(cells):
            continue
        if not counts[group]:
            raise EmptyError("too few people answered to tell: nobody was asked about a level that this needs")
        parts[group] = cells, np.full(len(cells), people / counts[group])
        held = len(cells) / groups.cells[group]
        own = groups.noises[group] * len(cells) + groups.holders[group] * held - held**2
        variance += people**2 * own / counts[group]
    share = float(above.mean())
    return NodeReads(constant, parts, max(variance - people * share * (1 - share), 0.0))


def _inside(groups: Combination, level: NDArray[np.int64], boxes: Sequence[Box]) -> NDArray[np.bool_]:
    """Which cells of a level lie wholly within some box; disjoint boxes with a common edge are not put together."""
    found = np.zeros([tree.sizes[depth] for tree, depth in zip(groups.trees, level, strict=True)], np.bool_)
    for box in boxes:
        mine = np.ones((), np.bool_)
        for tree, depth, runs in zip(groups.trees, level, box, strict=True):
            leaves = np.full(tree.leaves, runs is None)
            for start, stop in runs or ():
                leaves[start:stop] = True
            starts = np.arange(tree.sizes[depth]) * tree.width(int(depth))
            mine = np.logical_and.outer(mine, np.logical_and.reduceat(leaves, starts))
        found |= mine
    return found


@dataclass(frozen=True)
class Wavelet(GroupedDesign):
    """Everybody answers for one combination of levels of the Haar wavelet, drawn at random (Privelet; thesis 7.6).

    The coefficients of a level are the differences between two halves of a node, so that they are read from the halves'
    supports. Each is read from its own group alone, where HIO reads it from all groups that are finer as well.

    Guarantee: which combination is asked does not depend on the value, and its oracle keeps e^eps.
    """

    oracle: Oracle = "best"
    kind = "wavelet"

    def levels(self, private: Record, epsilon: float) -> tuple[tuple[Tree, ...], NDArray[np.int64]]:
        return HIO(fan_outs=2).levels(private, epsilon)

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        groups = self.groups(table)
        read = contrasts_read(groups.combination, boxes, counts, effort=0.0)
        return GroupedValues(read, groups.oracles, counts)
