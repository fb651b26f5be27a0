"""Cells of grids: how a dimension is cut, the response matrix of two dimensions, and boxes over more.

An `Axis` cuts a dimension twice: into fine cells of its own grid, within coarse cells of the grids of pairs.

The response matrix of a pair has a cell for each two fine cells, with the sums of both one-dimensional grids and of the
two-dimensional one (Yang et al., PVLDB 14(3), 2020, algorithm 1). The paper starts its weighted update from equal
cells, so that the two dimensions are independent within a coarse cell. Here it starts from how much more often than by
chance two coarse cells meet, interpolated smoothly between their centres. Without noise, ranges of half of two
dimensions (64 values, 32 fine and 4 coarse cells) then err by 0.0045 instead of 0.029 on normal data with correlation
0.8, by 0.014 instead of 0.028 on such Laplace data, and as before on nearly independent data (Adult's numbers).

An answer is a linear combination of the grids' unbiased tables. Its coefficients come from the response matrix: the
part of each coarse cell that lies inside (`Cover`). So noise adds up as for any sum, and no cell needs to be clipped
at 0: making tables non-negative moves people from full cells to empty ones, which causes the largest errors in wide
ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Record
from veil.marginals.maxent import reconstruct
from veil.sql.language.query import Runs
from veil.tree import Tree

Floats = NDArray[np.float64]
Pair = tuple[int, int]
_ROUNDS, _FEW_SWEEPS = 3, 6
"""How often what joins cells is corrected by what fitting changed, and the sweeps of each such round."""
_MOST_SWEEPS, _SETTLED = 60, 1e-9
_MOST_JOINED = 5.0
"""How far from chance two cells meet at most, as a logarithm, where that is carried on between cells."""
_ANYWHERE = 1e-6
"""The weight of orthants where nobody is, when a box is made of pairs."""


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


def response_matrix(first: Axis, second: Axis, rows: Floats, columns: Floats, pair: Floats) -> Floats:
    """The table of two dimensions' fine cells that has these sums: of both one-dimensional grids and of the pair's.

    All are positive, add up to 1 and agree with each other. Proportional fitting; what it changes of coarse cells goes
    into what is carried on between them, three times, so that little is left to change by steps at their edges.

    >>> axis = Axis(4, ordered=True, fine_level=2, coarse_level=1)
    >>> even = np.full(4, 0.25)
    >>> response_matrix(axis, axis, even, even, np.array([[0.4, 0.1], [0.1, 0.4]]))[0].round(3).tolist()
    [0.126, 0.091, 0.023, 0.009]
    """
    if first.fine == first.coarse and second.fine == second.coarse:
        return pair
    joins = np.log(pair / np.outer(pair.sum(axis=1), pair.sum(axis=0)))
    for _ in range(_ROUNDS):
        joins += _fitted(
            first, second, _started(first, second, joins, rows, columns), (rows, columns, pair), _FEW_SWEEPS
        )
        joins -= joins.mean(axis=0)  # what belongs to one dimension alone is its own grid's to say
        joins -= joins.mean(axis=1, keepdims=True)
    table = _started(first, second, joins, rows, columns)
    _fitted(first, second, table, (rows, columns, pair), _MOST_SWEEPS)
    return table


def _started(first: Axis, second: Axis, joins: Floats, rows: Floats, columns: Floats) -> Floats:
    """A table whose dimensions are joined as coarse cells are, smoothly in between."""
    carried = first.between @ np.clip(joins, -_MOST_JOINED, _MOST_JOINED) @ second.between.T
    return np.exp(carried) * np.outer(rows, columns)


def _fitted(first: Axis, second: Axis, table: Floats, sums: tuple[Floats, Floats, Floats], sweeps: int) -> Floats:
    """Fit a table in place to its sums; the logarithm of what each coarse cell was multiplied by."""
    rows, columns, pair = sums
    cells, changed = np.ix_(first.up, second.up), np.zeros(pair.shape)
    for _ in range(sweeps):
        found = table.sum(axis=1)
        table *= (rows / found)[:, None]
        table *= columns / table.sum(axis=0)
        factors = pair / _gathered(first, second, table)
        table *= factors[cells]
        changed += np.log(factors)
        if float(np.abs(found - rows).max()) < _SETTLED:
            break
    return changed


def _gathered(first: Axis, second: Axis, table: Floats) -> Floats:
    return second.gather(first.gather(table), axis=1)


@dataclass(frozen=True, eq=False)
class Cover:
    """How a rectangle is made of grids: coefficients of both one-dimensional tables and of the pair's.

    `inside` is what the response matrix says; `apart` what it would be if nothing joined the dimensions within coarse
    cells; `cut` the mass along each dimension of the fine cells on this side of it.
    """

    rows: Floats
    columns: Floats
    pair: Floats
    inside: float
    apart: float
    cut: tuple[Floats, Floats]


def cover(first: Axis, second: Axis, table: Floats, sides: tuple[Floats, Floats]) -> Cover:
    """How the rectangle with these shares of fine cells is made of grids, if people are spread as in this table.

    A coarse cell counts with the share of it that lies inside. What is left, row by row and column by column, is what
    the one-dimensional grids tell beyond: to first order, these are the derivatives of the table's answer.

    >>> axis = Axis(4, ordered=True, fine_level=2, coarse_level=1)
    >>> half = cover(axis, axis, np.full((4, 4), 1 / 16), (axis.shares(((0, 3),)), axis.shares(None)))
    >>> half.pair.tolist(), half.rows.tolist(), half.inside
    ([[1.0, 1.0], [0.5, 0.5]], [0.0, 0.0, 0.5, -0.5], 0.75)
    """
    inside = table * np.outer(*sides)
    pair = _gathered(first, second, inside) / _gathered(first, second, table)
    left = inside - table * pair[np.ix_(first.up, second.up)]
    sums = table.sum(axis=1), table.sum(axis=0)
    meet = _gathered(first, second, table)
    parts = [
        axis.gather(own * side) / axis.gather(own) for axis, own, side in zip((first, second), sums, sides, strict=True)
    ]
    return Cover(
        left.sum(axis=1) / sums[0],
        left.sum(axis=0) / sums[1],
        pair,
        float(inside.sum()),
        float(parts[0] @ meet @ parts[1]),
        ((table * sides[1]).sum(axis=1), (table * sides[0][:, None]).sum(axis=0)),
    )


@dataclass(frozen=True, eq=False)
class Orthants:
    """A box of several sides from the answers of its sides and pairs: its share, and the derivatives by these.

    `apart` is the share if all that joins the sides were that of pairs in a chain or a star: see `orthants`.
    """

    inside: float
    sides: Floats
    pairs: dict[Pair, float]
    apart: float


def orthants(sides: Floats, pairs: Mapping[Pair, float]) -> Orthants:
    """The share of people within all sides, from how many are within each side and within each two of them.

    The largest entropy over the 2^k combinations of inside and outside (the paper's weighted update, run to its end).
    Noisy answers are first put where those of a table lie. To first order, the box is the sum of sides and pairs that
    is nearest to it in the found table: that regression's coefficients are the derivatives.

    >>> found = orthants(np.full(3, 0.5), {(0, 1): 0.4, (0, 2): 0.25, (1, 2): 0.25})
    >>> round(found.inside, 3), round(found.pairs[0, 1], 3)
    (0.2, 0.5)
    """
    count = len(sides)
    ones = np.clip(sides, 0.0, 1.0)
    kept = {(i, j): min(max(value, ones[i] + ones[j] - 1.0, 0.0), ones[i], ones[j]) for (i, j), value in pairs.items()}
    given = []
    for (i, j), both in kept.items():
        cells = np.array([[both, ones[i] - both], [ones[j] - both, 1.0 - ones[i] - ones[j] + both]])
        given.append(((i, j), np.maximum(cells, 0.0)))
    table = reconstruct((2,) * count, given).table
    within = np.array(list(product((1.0, 0.0), repeat=count)))
    columns = [np.ones(len(within)), *within.T, *(within[:, i] * within[:, j] for i, j in kept)]
    weights = np.sqrt(table.ravel() + _ANYWHERE)
    design, wanted = np.stack(columns, axis=1) * weights[:, None], within.prod(axis=1) * weights
    slopes = np.linalg.lstsq(design, wanted, rcond=None)[0]
    of_pairs = dict(zip(kept, slopes[1 + count :].tolist(), strict=True))
    return Orthants(float(table.ravel()[0]), slopes[1 : 1 + count], of_pairs, _in_a_tree(ones, kept))


def _in_a_tree(ones: Floats, pairs: Mapping[Pair, float]) -> float:
    """The box if sides were joined by a tree of pairs alone, on average over all stars of pairs."""
    count, found = len(ones), []
    for centre in range(count):
        if ones[centre] > 0:
            others = [pairs[min(centre, i), max(centre, i)] / ones[centre] for i in range(count) if i != centre]
            found.append(ones[centre] * math.prod(others))
    return float(np.mean(found)) if found else 0.0
