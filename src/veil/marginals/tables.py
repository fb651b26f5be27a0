"""Tables of overlapping sets of attributes: their common coefficients, and consistent non-negative versions.

A table over attributes A is a sum of interactions, one for each subset S of A, and the interaction of S is the same in
every table that contains S. With one basis per attribute (a row of ones, then orthonormal rows that add up to 0) it is
a block of coefficients: the Walsh transform for two values, Helmert contrasts for more. Tables agree on all shared sets
of attributes exactly if they agree on these coefficients.

Averaging every coefficient over the views that have it is the least-squares solution for all overlaps at once, the
thesis's pass over intersections (6.2.4) without an order. It is linear, so unbiased input gives unbiased output.
`repaired` alternates between averages and the nearest non-negative tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from veil.tools.limits import check

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = tuple[int, ...]
"""Attributes by their place in the record, increasing."""

MOST_CELLS = 1 << 24
"""Of one table, and of the tables of all views together."""

_MOST_ROUNDS = 1000
_NEARLY = 1e-10
"""How negative a cell may be before the last step, which leaves none."""


@dataclass(frozen=True)
class Views:
    """Sets of attributes, and where each cell of their tables stands in one flat array, view after view.

    `sizes` are those of all attributes of the record. In a table the last attribute varies fastest.

    >>> views = Views((2, 3, 2), ((0, 1), (1, 2)))
    >>> views.cells.tolist(), views.count  # the total, 1 + 2 + 1 of single attributes, 2 + 2 of pairs
    ([6, 6], 9)
    """

    sizes: tuple[int, ...]
    sets: tuple[Places, ...]

    def shape(self, places: Sequence[int]) -> tuple[int, ...]:
        """How many values each of these attributes has."""
        return tuple(self.sizes[place] for place in places)

    @cached_property
    def cells(self) -> Ints:
        """How many cells each view has."""
        return np.array([math.prod(self.shape(one)) for one in self.sets], dtype=np.int64)

    @cached_property
    def offsets(self) -> Ints:
        """Where each view begins, and where the last one ends."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.cells)])

    @property
    def total(self) -> int:
        """How many cells all views have together."""
        return int(self.offsets[-1])

    def table(self, flat: Floats, number: int) -> Floats:
        """The table of one view out of the flat array of all."""
        start, stop = self.offsets[number : number + 2]
        return flat[start:stop].reshape(self.shape(self.sets[number]))

    def split(self, flat: Floats) -> list[Floats]:
        """The tables of all views."""
        return [self.table(flat, number) for number in range(len(self.sets))]

    def of_views(self, numbers: Floats) -> Floats:
        """One number per view, repeated for each of its cells."""
        return np.repeat(numbers, self.cells)

    @cached_property
    def uniform(self) -> Floats:
        """The tables of people who hold every combination of values equally often."""
        return self.of_views(1.0 / self.cells)

    def containing(self, places: Sequence[int]) -> list[int]:
        """The views that have all of these attributes."""
        wanted = set(places)
        return [number for number, one in enumerate(self.sets) if wanted <= set(one)]

    # -- coefficients ------------------------------------------------------------------------------------------------

    @cached_property
    def alike(self) -> list[tuple[tuple[int, ...], Ints]]:
        """Shapes of tables, each with the flat positions of the cells of all views of that shape, a row for each."""
        rows: dict[tuple[int, ...], list[int]] = {}
        for number, one in enumerate(self.sets):
            rows.setdefault(self.shape(one), []).append(number)
        return [
            (shape, self.offsets[numbers][:, None] + np.arange(math.prod(shape))) for shape, numbers in rows.items()
        ]

    def _transformed(self, flat: Floats, matrix: Callable[[int], Floats]) -> Floats:
        """Every table with a matrix applied along each of its axes."""
        out = np.empty_like(flat)
        for shape, rows in self.alike:
            tables = flat[rows].reshape(-1, *shape)
            for axis, size in enumerate(shape, start=1):
                tables = np.moveaxis(np.moveaxis(tables, axis, -1) @ matrix(size).T, -1, axis)
            out[rows] = tables.reshape(rows.shape)
        return out

    def to_coefficients(self, flat: Floats) -> Floats:
        """Every table as coefficients, in place of its cells: index 0 along an axis leaves its attribute out."""
        return self._transformed(flat, contrasts)

    def from_coefficients(self, flat: Floats) -> Floats:
        """The tables of these coefficients."""
        return self._transformed(flat, inverse_contrasts)

    @cached_property
    def _numbered(self) -> tuple[Ints, dict[Places, int]]:
        """For each cell the number of the coefficient in its place; and where each set of attributes begins."""
        begins: dict[Places, int] = {}
        numbers, found = np.empty(self.total, dtype=np.int64), 0
        for number, one in enumerate(self.sets):
            start, stop = self.offsets[number : number + 2]
            table = numbers[start:stop].reshape(self.shape(one))
            for chosen in product((False, True), repeat=len(one)):
                subset = tuple(place for place, inside in zip(one, chosen, strict=True) if inside)
                block = table[tuple(slice(1, None) if inside else slice(1) for inside in chosen)]
                if subset not in begins:
                    begins[subset], found = found, found + block.size
                block[...] = begins[subset] + np.arange(block.size).reshape(block.shape)
        return numbers, begins

    @property
    def groups(self) -> Ints:
        """For each cell of the flat array, the number of the coefficient that stands there; 0 is the total."""
        return self._numbered[0]

    @property
    def begins(self) -> dict[Places, int]:
        """All sets of attributes whose interaction the views have, each with the number of its first coefficient."""
        return self._numbered[1]

    @cached_property
    def count(self) -> int:
        """How many different coefficients the views have."""
        return int(self.groups.max(initial=0)) + 1


@dataclass(frozen=True, eq=False)
class ConsistentViews:
    """Tables that agree and have no negative cell, and after how many rounds they did."""

    tables: Floats
    rounds: int


def repaired(views: Views, tables: Floats, weights: Floats) -> ConsistentViews:
    """Tables near the given ones that agree on all that they share, add up to 1, and have no negative cell.

    Averages and projections of each table to the nearest non-negative one that adds up to 1, in turns, beginning with
    averages. What is negative by less than 1e-10 then goes by mixing in uniform tables, which agree with each other:
    so both hold in the end, the one exactly and the other to rounding.

    >>> views = Views((2, 2, 2), ((0, 1), (1, 2)))
    >>> found = repaired(views, np.array([0.7, -0.1, 0.3, 0.1, 0.8, 0.3, -0.2, 0.1]), np.ones(2))
    >>> bool(found.tables.min() >= 0)
    True
    """
    found, rounds = averaged(views, tables, weights), 0
    while found.min(initial=0.0) < -_NEARLY and rounds < _MOST_ROUNDS:
        check()
        for _, rows in views.alike:
            found[rows] = nearest_shares(found[rows])
        found, rounds = averaged(views, found, weights), rounds + 1
    # the least share of uniform tables that leaves no cell below 0
    short = np.maximum(-found, 0.0)
    mixed = float((short / (short + views.uniform)).max(initial=0.0))
    return ConsistentViews(np.maximum((1 - mixed) * found + mixed * views.uniform, 0.0), rounds)


def averaged(views: Views, tables: Floats, weights: Floats) -> Floats:
    """The tables nearest to the given ones that agree on all that they share and add up to 1: weighted least squares.

    `weights` are one over the variance of a cell, one for each view. A coefficient's variance in a view is that of its
    cells times their number over those of the coefficient's own attributes, so its weights are these over the number
    of cells. A view of weight 0 says nothing.

    >>> views = Views((2, 2, 2), ((0, 1), (1, 2)))
    >>> tables = np.array([0.4, 0.2, 0.3, 0.1, 0.5, 0.1, 0.3, 0.1])  # attribute 1 has 0.7 : 0.3 and 0.6 : 0.4
    >>> views.split(averaged(views, tables, np.ones(2)))[0].sum(axis=0).round(3).tolist()
    [0.65, 0.35]
    """
    each = views.of_views(weights / views.cells)
    found = np.bincount(views.groups, each * views.to_coefficients(tables), minlength=views.count)
    weight = np.bincount(views.groups, each, minlength=views.count)
    means = np.divide(found, weight, out=np.zeros_like(found), where=weight > 0)
    means[0] = 1.0  # the total, which no noise can make another
    return views.from_coefficients(means[views.groups])


def before_averaging(views: Views, functional: Floats, weights: Floats) -> tuple[Floats, float]:
    """What a sum over averaged tables is of the tables as given: coefficients of their cells, and a constant.

    For any tables, `functional @ averaged(views, tables, weights)` is `found @ tables + constant`: the noise of the sum
    follows from the noise of the given tables.

    >>> views = Views((2, 2, 2), ((0, 1), (1, 2)))
    >>> tables, sums = np.array([0.4, 0.2, 0.3, 0.1, 0.5, 0.1, 0.3, 0.1]), np.array([1.0, 0, 0, 0, 0, 0, 1, 0])
    >>> found, constant = before_averaging(views, sums, np.ones(2))
    >>> float(abs(found @ tables + constant - sums @ averaged(views, tables, np.ones(2))).round(12))
    0.0
    """
    each = views.of_views(weights / views.cells)
    # A transform's rows are orthogonal, so transposing it and inverting it differ by the squared lengths of its rows.
    parts = []
    for one in views.sets:
        lengths = np.ones(1)
        for size in views.shape(one):
            lengths = np.multiply.outer(lengths, np.concatenate(([float(size)], np.ones(size - 1)))).ravel()
        parts.append(lengths)
    squares = np.concatenate(parts)
    wanted = np.bincount(views.groups, views.to_coefficients(functional) / squares, minlength=views.count)
    weight = np.bincount(views.groups, each, minlength=views.count)
    share = np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0)
    share[0] = 0.0  # the total is known
    return views.from_coefficients(share[views.groups] * each * squares), float(wanted[0])


def nearest_shares(rows: Floats) -> Floats:
    """For each row the nearest one without negative numbers that adds up to 1 (Norm-Sub, many rows at once)."""
    falling = -np.sort(-rows, axis=1)
    excess = np.cumsum(falling, axis=1) - 1.0
    kept = falling * np.arange(1, rows.shape[1] + 1) > excess
    last = rows.shape[1] - 1 - np.argmax(kept[:, ::-1], axis=1)
    shift = np.take_along_axis(excess, last[:, None], axis=1) / (last[:, None] + 1)
    shares: Floats = np.maximum(rows - shift, 0.0)
    return shares


def marginal_of(table: Floats, axes: Sequence[int]) -> Floats:
    """The table of some of a table's axes, in increasing order: the others are added up."""
    gone = tuple(axis for axis in range(table.ndim) if axis not in set(axes))
    added: Floats = table.sum(axis=gone)
    return added


def spread(table: Floats) -> Floats:
    """A table that adds up to 1: what it lacks, or has too much, is spread evenly over its cells.

    This is least squares where the total is known and all cells have the same noise. It is linear: no bias comes in.

    >>> spread(np.array([0.7, 0.5])).round(3).tolist()
    [0.6, 0.4]
    """
    whole: Floats = table + (1.0 - table.sum()) / table.size
    return whole


@lru_cache(maxsize=256)
def contrasts(size: int) -> Floats:
    """A row of ones, then `size - 1` orthonormal rows that add up to 0: Helmert's contrasts.

    >>> contrasts(2).round(3).tolist()
    [[1.0, 1.0], [0.707, -0.707]]
    """
    rows = np.zeros((size, size))
    rows[0] = 1.0
    for i in range(1, size):
        rows[i, :i], rows[i, i] = 1.0, -float(i)
        rows[i] /= math.sqrt(i * (i + 1))
    rows.setflags(write=False)
    return rows


@lru_cache(maxsize=256)
def inverse_contrasts(size: int) -> Floats:
    """The inverse of `contrasts`: a column of 1 / size, then the same rows as columns."""
    inverse = contrasts(size).T.copy()
    inverse[:, 0] = 1.0 / size
    inverse.setflags(write=False)
    return inverse
