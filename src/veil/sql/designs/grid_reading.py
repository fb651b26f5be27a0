"""Reading of grids: tallies of the reports, their tables made to agree, and the share of a region.

`GridTallies` adds up support counts of every grid's cells, weight by weight and batch by batch. `GridReading` holds the
tables of all grids for one weight: shares of people, or of a public weight, that add up to 1. It knows nothing of what
is counted but the variance of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.marginals.tables import Views, averaged, before_averaging, repaired
from veil.mechanisms.oracle import PureOracle
from veil.post.consistency import norm_sub
from veil.reports.layout import Columns
from veil.sql.designs.grid_cells import Axis, Cover, Pair, cover, orthants, response_matrix
from veil.sql.language.query import Box
from veil.survey import Ask
from veil.tools.json_documents import canonical, parse_json

Floats = NDArray[np.float64]
MOST_SIDES = 12
"""Of one box: their combinations of inside and outside are gone through."""
_SOMEBODY = 1e-3
"""The share of evenly spread people that fitted tables have, so that no cell is empty."""
_LEAST_UNEVEN = 0.1
"""How unequal the halves of a cell are at least taken to be, where sides cut cells."""
_JOINED, _THREE = 0.5, 0.5
"""The shares of what joining changed (within coarse cells; among more than two sides) that count as not known."""
_HALF = 31
_LIMB, _MOST_ROWS = 16, 1 << 20  # so many products of numbers of 16 bits add up below 2^53: exactly, as doubles


def grid_sets(dimensions: int) -> tuple[tuple[int, ...], ...]:
    """The grids: one per dimension, then one per pair of dimensions.

    >>> grid_sets(3)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    return (*((place,) for place in range(dimensions)), *combinations(range(dimensions), 2))


class GridTallies:
    """Weighted support counts of every grid's cells, for several sums over the same rows.

    A sum with weights of both signs is the difference of two sums, of its positive and of its negative weights: these
    are the parts, first all positive ones, then all negative ones. `people` made each choice; `totals` are sums of
    weights by grid and part, `products` of products of two parts' weights. All are added up as integers, so that
    no order of rows shows, and told as doubles.
    """

    def __init__(self, ask: Ask, sums: int) -> None:
        self._ask = ask
        self.sums = sums
        grids = len(ask)
        self.people = np.zeros(grids, np.int64)
        self.totals = np.zeros((grids, 2 * sums))
        self.products = np.zeros((grids, 2 * sums, 2 * sums))
        self.oracles = [question.pure for question in ask.questions]
        self._readings: list[GridReading | None] | None = None
        self.supports: list[Floats] = [np.zeros((2 * sums, one.domain.size)) for one in self.oracles]
        self._totals = [_Halves((2 * sums,)) for _ in self.oracles]
        self._products = np.zeros(self.products.shape, object)
        self._supports = [_Halves(mine.shape) for mine in self.supports]

    @classmethod
    def counted(cls, ask: Ask, supports: Sequence[NDArray[np.int64]], people: Sequence[int]) -> GridTallies:
        """The tallies of COUNT(*) alone, from the support counts of each grid and how many people answered it.

        No rows can be added to them.
        """
        made = cls(ask, 1)
        made.people[:] = people
        made.totals[:, 0] = made.products[:, 0, 0] = people
        for mine, given in zip(made.supports, supports, strict=True):
            mine[0] = given
        return made

    def add(self, columns: Columns, weights: NDArray[np.int64]) -> None:
        """Runs at the collector: add rows, by their report's columns, and one row of weights per sum."""
        rows = np.arange(weights.shape[1])
        every = range(len(self._ask))
        self._readings = None
        for grid, (question, mine, own) in enumerate(self._ask.parts(columns, rows, every)):
            some = weights[:, mine]
            parts = np.concatenate([np.maximum(some, 0), np.maximum(-some, 0)])
            self.people[grid] += len(mine)
            self._totals[grid].add(slice(None), *(half.sum(axis=1) for half in _halves(parts)))
            self._products[grid] += _products(parts)
            for part, weight in enumerate(parts):
                if weight.any():
                    self._supports[grid].add(part, *_supports(question.pure, own, weight))
            self._tell(grid)

    def _tell(self, grid: int) -> None:
        self.totals[grid], self.supports[grid] = self._totals[grid].real, self._supports[grid].real
        self.products[grid] = self._products[grid]

    def state(self) -> bytes:
        """Return what was added so far, exactly, as bytes."""
        products = canonical({"products": [str(product) for product in self._products.ravel()]})
        arrays = [self.people, *(array for sums in (*self._totals, *self._supports) for array in sums.arrays)]
        return len(products).to_bytes(8, "little") + products + b"".join(array.tobytes() for array in arrays)

    def merge(self, state: bytes) -> None:
        """Add the state of the same tallies of other rows."""
        size = int.from_bytes(state[:8], "little")
        products = [int(text) for text in parse_json(state[8 : 8 + size])["products"]]
        given = np.frombuffer(state[8 + size :], np.int64)
        self._readings = None
        self._products += np.array(products, object).reshape(self._products.shape)
        self.people += given[: len(self.people)]
        at = len(self.people)
        for array in (array for sums in (*self._totals, *self._supports) for array in sums.arrays):
            array += given[at : at + array.size].reshape(array.shape)
            at += array.size
        for grid in range(len(self.people)):
            self._tell(grid)

    def read(self, axes: Sequence[Axis]) -> list[GridReading | None]:
        """Runs at the collector: the tables of each part, made to agree; None where all its weights are 0."""
        if self._readings is None:
            self._readings = [self._reading(axes, part) for part in range(2 * self.sums)]
        return self._readings

    def _reading(self, axes: Sequence[Axis], part: int) -> GridReading | None:
        if not self.totals[:, part].any():
            return None
        tables, variances = [], []
        for grid, oracle in enumerate(self.oracles):
            weight, q = self.totals[grid, part], float(oracle.q)
            if weight > 0:
                tables.append((self.supports[grid][part] / weight - q) / (float(oracle.p) - q))
                variances.append(oracle.noise.variance(0.0) * self.products[grid, part, part] / weight**2)
            else:  # nobody with a weight answered this grid: it says nothing
                tables.append(np.full(oracle.domain.size, 1.0 / oracle.domain.size))
                variances.append(math.inf)
        return GridReading(axes, tables, variances)


class _Halves:
    """Sums of integers below 2^63, of their low 31 bits and of their high ones: no order of them shows."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._low, self._high = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sums of low bits and of high ones."""
        return self._low, self._high

    def add(self, place: int | slice, low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
        self._low[place] += low
        self._high[place] += high

    @property
    def real(self) -> Floats:
        """The sums as doubles."""
        return self._low + self._high * float(1 << _HALF)


def _halves(weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return weights & ((1 << _HALF) - 1), weights >> _HALF


def _supports(oracle: PureOracle, reports: Columns, weight: NDArray[np.int64]) -> tuple[Any, Any]:
    """The support counts of rows with these weights, of their low and of their high halves: neither overflows."""
    if (weight == 1).all():
        return oracle.support(reports, None, None), 0
    low, high = _halves(weight)
    return oracle.support(reports, None, low), oracle.support(reports, None, high) if high.any() else 0


def _products(parts: NDArray[np.int64]) -> NDArray[Any]:
    """The exact sums over rows of products of two parts' weights, as Python's integers."""
    found = np.zeros((len(parts), len(parts)), object)
    limbs = range(0, int(parts.max(initial=0)).bit_length(), _LIMB)
    for start in range(0, parts.shape[1], _MOST_ROWS):
        some = parts[:, start : start + _MOST_ROWS]
        split = {shift: ((some >> shift) & ((1 << _LIMB) - 1)).astype(np.float64) for shift in limbs}
        for (shift, one), (other_shift, other) in product(split.items(), repeat=2):
            found += (one @ other.T).astype(np.int64).astype(object) * (1 << (shift + other_shift))
    return found


@dataclass(frozen=True, eq=False)
class Region:
    """The share of a region, and how it rests on the grids.

    `of_grids` are coefficients of the cells of each grid's unbiased table: the noise of the share is, to first order,
    that of their sum. `allowance` is the standard deviation that is allowed for what the grids do not tell.
    """

    share: float
    of_grids: list[Floats]
    allowance: float


class GridReading:
    """Unbiased tables of all grids, one flat array for each, and the variance of a cell of each.

    They are averaged so that they agree (weighted least squares, as in `veil.marginals`): coarse cells over all grids
    that have a dimension, and a fine cell is moved as its coarse cell is. This is linear: nothing becomes biased.
    """

    def __init__(self, axes: Sequence[Axis], tables: Sequence[Floats], variances: Sequence[float]) -> None:
        self.axes = tuple(axes)
        self._fine = [np.asarray(table, dtype=np.float64) for table in tables[: len(axes)]]
        self._variances = list(variances)
        self.views = Views(tuple(axis.coarse for axis in axes), grid_sets(len(axes)))
        coarse = [axis.gather(table) for axis, table in zip(axes, self._fine, strict=True)]
        self._flat = np.concatenate([*coarse, *(np.ravel(table) for table in tables[len(axes) :])])
        gathered = [axis.fine / axis.coarse for axis in axes] + [1.0] * (len(tables) - len(axes))
        spread = np.array(variances) * np.array(gathered)
        self._weights = np.where(np.isfinite(spread), 1.0 / np.maximum(spread, 1e-300), 0.0)
        self._responses: dict[Pair, Floats] = {}

    @cached_property
    def coarse(self) -> list[Floats]:
        """Averaged tables of all grids in coarse cells, unbiased."""
        return self.views.split(averaged(self.views, self._flat, self._weights))

    @cached_property
    def fine(self) -> list[Floats]:
        """Averaged tables of the one-dimensional grids, unbiased."""
        return [
            table + ((mine - axis.gather(table)) / axis.children)[axis.up]
            for axis, table, mine in zip(self.axes, self._fine, self.coarse, strict=False)
        ]

    @cached_property
    def fitted(self) -> tuple[list[Floats], list[Floats]]:
        """Tables without negative cells near the averaged ones, which agree: one-dimensional ones, and all coarse ones.

        Norm-Sub and averages in turns for coarse cells, then Norm-Sub of the fine cells within each coarse one.
        """
        coarse = self.views.split(repaired(self.views, self._flat, self._weights).tables)
        even = [axis.even() for axis in self.axes]
        fine = []
        for axis, table, mine, evenly in zip(self.axes, self.fine, coarse, even, strict=False):
            if axis.fine == axis.coarse:
                found = mine
            else:
                ends = np.searchsorted(axis.up, np.arange(1, axis.coarse))
                found = np.concatenate(
                    [norm_sub(part, total) for part, total in zip(np.split(table, ends), mine.tolist(), strict=True)]
                )
            fine.append((1 - _SOMEBODY) * found + _SOMEBODY * evenly)
        gathered = [axis.gather(evenly) for axis, evenly in zip(self.axes, even, strict=True)]
        mixed = []
        for places, table in zip(self.views.sets, coarse, strict=True):
            evenly = gathered[places[0]] if len(places) == 1 else np.outer(gathered[places[0]], gathered[places[1]])
            mixed.append((1 - _SOMEBODY) * table + _SOMEBODY * evenly)
        return fine, mixed

    @cached_property
    def held(self) -> list[Floats]:
        """What people hold of each grid, about: its fitted table, flat."""
        fine, coarse = self.fitted
        return [*fine, *(np.ravel(table) for table in coarse[len(fine) :])]

    def response(self, pair: Pair) -> Floats:
        """The response matrix of two dimensions."""
        if pair not in self._responses:
            fine, coarse = self.fitted
            first, second = pair
            table = coarse[self.views.sets.index(pair)]
            self._responses[pair] = response_matrix(
                self.axes[first], self.axes[second], fine[first], fine[second], table
            )
        return self._responses[pair]

    @cached_property
    def uneven(self) -> list[float]:
        """For each dimension how unequal the halves of a cell are: the relative difference of neighbouring fine cells.

        The root of its mean square, cells weighted by their squares, less what is noise. Within cells, where no grid
        looks, people are taken to be spread no more unevenly than that.
        """
        found = []
        for axis, table, variance in zip(self.axes, self.fine, self._variances, strict=False):
            count = axis.fine // 2
            left, right = table[0 : 2 * count : 2], table[1 : 2 * count : 2]
            extra = float(((left - right) ** 2).sum()) - 2 * count * variance
            whole = max(float(((left + right) ** 2).sum()) - 2 * count * variance, 1.0 / max(count, 1))
            found.append(math.sqrt(min(max(extra / whole, _LEAST_UNEVEN**2), 1.0)))
        return found

    def region(self, boxes: Sequence[Box]) -> Region:
        """The share of people in any of these boxes, which are disjoint."""
        gathered = _RegionSum(self)
        for box in boxes:
            gathered.add(box)
        return gathered.region()

    def pulled_back(self, fine: Sequence[Floats], pairs: dict[Pair, Floats]) -> tuple[list[Floats], float]:
        """A sum over agreeing tables as one over the tables as they were read: its coefficients, and a constant."""
        views, wanted = self.views, []
        means = [axis.gather(own) / axis.children for axis, own in zip(self.axes, fine, strict=True)]
        for places in views.sets:
            if len(places) == 1:
                wanted.append(means[places[0]])
            else:
                empty = np.zeros(views.shape(places))
                wanted.append(np.ravel(pairs.get((places[0], places[1]), empty)))
        found, constant = before_averaging(views, np.concatenate(wanted), self._weights)
        parts = [np.ravel(table) for table in views.split(found)]
        for place, axis in enumerate(self.axes):
            parts[place] = (parts[place] - means[place])[axis.up] + fine[place]
        return parts, constant


class _RegionSum:
    """The boxes of a region, one after the other."""

    def __init__(self, reading: GridReading) -> None:
        self._reading = reading
        self._share = self._unknown = 0.0
        self._fine = [np.zeros(axis.fine) for axis in reading.axes]
        self._pairs: dict[Pair, Floats] = {}

    def region(self) -> Region:
        of_grids, _ = self._reading.pulled_back(self._fine, self._pairs)
        return Region(self._share, of_grids, math.sqrt(self._unknown))

    def add(self, box: Box) -> None:
        reading = self._reading
        sides = {
            place: axis.shares(runs)
            for place, (axis, runs) in enumerate(zip(reading.axes, box, strict=True))
            if runs is not None and runs != ((0, axis.size),)
        }
        places = sorted(sides)
        if len(places) > MOST_SIDES:
            raise InputError(f"a condition over more than {MOST_SIDES} dimensions cannot be read from grids")
        if not places:
            self._share += 1.0
        elif len(places) == 1:
            (place,) = places
            self._share += self._one(place, sides[place], 1.0)
            self._cut(place, sides[place], reading.fitted[0][place], 1.0)
        elif len(places) == 2:
            pair, found = (places[0], places[1]), self._covered((places[0], places[1]), sides)
            self._share += self._two(pair, found, 1.0)
            self._joined(found, 1.0)
            for place, mass in zip(pair, found.cut, strict=True):
                self._cut(place, sides[place], mass, 1.0)
        else:
            self._several(places, sides)

    def _several(self, places: list[int], sides: dict[int, Floats]) -> None:
        reading = self._reading
        covers = {pair: self._covered(pair, sides) for pair in combinations(places, 2)}
        numbers = {place: number for number, place in enumerate(places)}
        ones = np.array([float(reading.fine[place] @ sides[place]) for place in places])
        found = orthants(ones, {(numbers[i], numbers[j]): self._value((i, j), one) for (i, j), one in covers.items()})
        self._share += found.inside
        for place, slope in zip(places, found.sides.tolist(), strict=True):
            self._one(place, sides[place], slope)
        for (i, j), one in covers.items():
            slope = found.pairs[numbers[i], numbers[j]]
            self._two((i, j), one, slope)
            self._joined(one, slope)
        for place in places:
            self._cut(
                place, sides[place], reading.fitted[0][place], found.inside / max(float(ones[numbers[place]]), 0.05)
            )
        self._unknown += (_THREE * (found.inside - found.apart)) ** 2

    def _covered(self, pair: Pair, sides: dict[int, Floats]) -> Cover:
        axes = self._reading.axes
        if all(axes[place].whole(sides[place]) for place in pair):  # nothing is cut: the grid alone tells
            return _whole(axes[pair[0]], axes[pair[1]], sides[pair[0]], sides[pair[1]])
        return cover(axes[pair[0]], axes[pair[1]], self._reading.response(pair), (sides[pair[0]], sides[pair[1]]))

    def _one(self, place: int, side: Floats, slope: float) -> float:
        """Add one dimension's side to the coefficients; its share."""
        self._fine[place] += slope * side
        return float(self._reading.fine[place] @ side)

    def _two(self, pair: Pair, one: Cover, slope: float) -> float:
        """Add a rectangle to the coefficients; its share."""
        self._fine[pair[0]] += slope * one.rows
        self._fine[pair[1]] += slope * one.columns
        self._pairs[pair] = self._pairs.get(pair, 0.0) + slope * one.pair
        return self._value(pair, one)

    def _value(self, pair: Pair, one: Cover) -> float:
        reading = self._reading
        table = reading.coarse[reading.views.sets.index(pair)]
        own = reading.fine[pair[0]] @ one.rows + reading.fine[pair[1]] @ one.columns
        return float((table * one.pair).sum() + own)

    def _cut(self, place: int, side: Floats, mass: Floats, slope: float) -> None:
        """Cells of which a part lies inside: the people there may be spread unevenly."""
        uneven = self._reading.uneven[place]
        self._unknown += float(((slope * mass * uneven) ** 2 * side * (1 - side)).sum())

    def _joined(self, one: Cover, slope: float) -> None:
        """Coarse cells of which a part lies inside: how the two dimensions are joined there is a guess."""
        self._unknown += (slope * _JOINED * (one.inside - one.apart)) ** 2


def _whole(first: Axis, second: Axis, rows: Floats, columns: Floats) -> Cover:
    """How a rectangle of whole coarse cells is made of grids: of the pair's alone."""
    sides = [axis.gather(side) / axis.children for axis, side in ((first, rows), (second, columns))]
    nothing = np.zeros(first.fine), np.zeros(second.fine)
    return Cover(*nothing, np.outer(*sides), 0.0, 0.0, nothing)
