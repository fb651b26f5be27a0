"""A dimension cut into cells, twice: fine cells of its own grid, within coarse cells of the grids of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Record
from veil.sql.query import Runs
from veil.tree import Tree

__all__ = ["Axis", "axes_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """A dimension of `size` values, its fine and its coarse cells: levels of a tree that branches in two.

    A categorical dimension is not cut: each of its values is a cell, fine and coarse.

    >>> axis = Axis(100, ordered=True, fine_level=3, coarse_level=1)
    >>> axis.fine, axis.coarse, axis.up.tolist(), axis.widths.astype(int).tolist()
    (7, 2, [0, 0, 0, 0, 1, 1, 1], [16, 16, 16, 16, 16, 16, 4])
    >>> axis.shares(((8, 40),)).tolist()
    [0.5, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0]
    """

    size: int
    ordered: bool
    fine_level: int
    coarse_level: int

    @cached_property
    def tree(self) -> Tree:
        """The tree whose levels the cells are."""
        return Tree(self.size, 2 if self.ordered else max(self.size, 2))

    @property
    def fine(self) -> int:
        """How many fine cells there are."""
        return self.tree.sizes[self.fine_level]

    @property
    def coarse(self) -> int:
        """How many coarse cells there are."""
        return self.tree.sizes[self.coarse_level]

    @cached_property
    def widths(self) -> Floats:
        """How many values each fine cell has."""
        width = self.tree.width(self.fine_level)
        starts = np.arange(self.fine) * width
        return np.minimum(starts + width, self.size).astype(np.float64) - starts

    @cached_property
    def up(self) -> NDArray[np.int64]:
        """The coarse cell of each fine one."""
        inside = self.tree.width(self.coarse_level) // self.tree.width(self.fine_level)
        return np.arange(self.fine) // inside

    @cached_property
    def children(self) -> Floats:
        """How many fine cells each coarse one has."""
        return np.bincount(self.up, minlength=self.coarse).astype(np.float64)

    def gather(self, table: Floats, axis: int = 0) -> Floats:
        """A table of fine cells along an axis, added up to coarse cells."""
        if self.fine == self.coarse:
            return table
        starts = np.searchsorted(self.up, np.arange(self.coarse))
        return np.add.reduceat(table, starts, axis=axis)

    def shares(self, runs: Runs | None) -> Floats:
        """The share of each fine cell's values that lie in these runs; all of them for None."""
        if runs is None:
            return np.ones(self.fine)
        width = self.tree.width(self.fine_level)
        starts = np.arange(self.fine) * width
        stops = np.minimum(starts + width, self.size)
        inside = np.zeros(self.fine)
        for start, stop in runs:
            inside += np.clip(np.minimum(stops, stop) - np.maximum(starts, start), 0, None)
        return inside / self.widths

    def whole(self, side: Floats) -> bool:
        """Whether a side has all of a coarse cell or nothing of it."""
        inside = self.gather(side)
        return bool(((inside == 0) | (inside == self.children)).all())

    def even(self) -> Floats:
        """The share of all values that each fine cell has."""
        return self.widths / self.size

    @cached_property
    def between(self) -> Floats:
        """How a fine cell lies between coarse ones, fine x coarse: weights of the two nearest centres.

        Up to half a cell from either end only the outermost cell counts. Values without an order lie between nothing.
        """
        if self.fine == self.coarse:
            return np.eye(self.fine)
        inside = self.tree.width(self.coarse_level) / self.tree.width(self.fine_level)
        places = np.clip((np.arange(self.fine) + 0.5) / inside - 0.5, 0, self.coarse - 1)
        low = np.minimum(places.astype(np.int64), max(self.coarse - 2, 0))
        weights, rows = np.zeros((self.fine, self.coarse)), np.arange(self.fine)
        weights[rows, low] = 1 - (places - low)
        weights[rows, np.minimum(low + 1, self.coarse - 1)] += places - low
        return weights


def axes_of(private: Record, fine: int, coarse: int) -> tuple[Axis, ...]:
    """The axes of a record's dimensions, of about so many cells each: as near as levels of a tree come.

    >>> from veil import Integers
    >>> [(axis.fine, axis.coarse) for axis in axes_of(Record.of(age=Integers(0, 99), sex=["f", "m"]), 16, 4)]
    [(13, 4), (2, 2)]
    """
    return tuple(_axis(part, fine, coarse) for part in private.parts)


def _axis(part: Domain, fine: int, coarse: int) -> Axis:
    if isinstance(part, Categories):
        return Axis(part.size, False, 1, 1)
    sizes = Tree(part.size, 2).sizes
    upper = _nearest(sizes, fine)
    return Axis(part.size, True, upper, min(_nearest(sizes, coarse), upper))


def _nearest(sizes: Sequence[int], wanted: int) -> int:
    """The level below the root whose number of cells is nearest to this one, as a ratio; of equals the first."""
    return min(range(1, len(sizes)), key=lambda level: max(sizes[level] / wanted, wanted / sizes[level]))
