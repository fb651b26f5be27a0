"""Grids: people are split over grids of one and of two dimensions (HDG: Yang et al., PVLDB 14(3), 2020).

Every dimension has a fine grid of its own and every pair of dimensions a coarse one. A range over two dimensions is
read from three grids, one over more dimensions from all its pairs. So the noise does not grow with the number of
dimensions as in HIO, which asks about all of them together. The price: where a side cuts a cell, and among three
dimensions, no grid tells the answer; a smooth model fills it in and can be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.errors import EmptyError, ParameterError
from veil.marginals.tables import MOST_CELLS
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.results.laws import SupportNoise
from veil.sql.designs.base import JointDesign
from veil.sql.designs.grid_cells import Axis, axes_of
from veil.sql.designs.grid_reading import GridReading, GridTallies, Region, grid_sets
from veil.sql.execution.sums import Totals
from veil.sql.language.query import Box
from veil.survey import Ask, OneOf, Question
from veil.tools.numbers import is_int
from veil.view import Ancestor, Composed, Product, Project, View

if TYPE_CHECKING:
    from veil.sql.table import Table

Floats = NDArray[np.float64]
_ASSUMPTION = (
    "Intervals of Grids assume that people are spread evenly inside coarse cells. Where they are not, as in skewed "
    "columns, intervals can miss the truth by many standard errors."
)
_ALPHA_1, _ALPHA_2 = 0.7, 0.03
"""The paper's: how far cells are from evenly filled. A range errs by alpha_1 / g1, a rectangle by 2 alpha_2 / g2."""
_USUAL_PEOPLE = 1_000_000
_MOST_CHOSEN, _MOST_JOINED = 512, 64
"""Of the cells that are chosen for a dimension: in its own grid, and in those of pairs."""
_MOST_FINE, _MOST_COARSE = 4096, 2048
"""Of the cells of a dimension that can be read: two fine grids make a response matrix."""


@dataclass(frozen=True)
class Grids(JointDesign):
    """Everybody answers for one grid, drawn at random, with the whole budget: one or two dimensions, cut into cells.

    `fine` is about how many cells an ordinal dimension's own grid has, `coarse` how many it has in the grids of pairs;
    a categorical one keeps its values. Where they are not given, they are chosen so that ranges of half of two
    dimensions have the smallest predicted error, if so many `people` answer.

    Guarantee: which grid is asked does not depend on the value, and its oracle keeps e^eps.

    >>> from veil import Integers
    >>> Grids(people=10**6).fitted(Record(tuple((f"a{i}", Integers(0, 63)) for i in range(6))), 1.0)
    Grids(fine=64, coarse=8, people=1000000)
    """

    fine: int | None = None
    coarse: int | None = None
    people: int = _USUAL_PEOPLE
    kind = "grids"
    assumption = _ASSUMPTION

    def __post_init__(self) -> None:
        for cells in (self.fine, self.coarse):
            if cells is not None and (not is_int(cells) or cells < 2):
                raise ParameterError("a dimension is cut into at least 2 cells")
        if self.fine is not None and self.coarse is not None and self.coarse > self.fine:
            raise ParameterError("coarse cells are not more than fine ones")
        if not is_int(self.people) or self.people < 1:
            raise ParameterError("grids are chosen for at least 1 person")

    def fitted(self, private: Record, epsilon: float) -> Grids:
        if self.fine is not None and self.coarse is not None:
            return self
        fine, coarse = _chosen(private, epsilon, self.people, self.fine, self.coarse)
        return replace(self, fine=fine, coarse=coarse)

    @staticmethod
    def guideline(dimensions: int, epsilon: float, people: int) -> tuple[int, int]:
        """The paper's fine and coarse cells (equations 12 and 13), as the nearest powers of two.

        >>> Grids.guideline(6, 1.0, 10**6)
        (16, 4)
        """
        grids = len(grid_sets(dimensions))
        gain = people / grids * math.expm1(epsilon) ** 2 / math.exp(epsilon)
        return _power((gain * _ALPHA_1**2 / 2) ** (1 / 3)), _power(math.sqrt(2 * _ALPHA_2 * math.sqrt(gain)))

    def axes(self, private: Record) -> tuple[Axis, ...]:
        """How each dimension is cut."""
        if self.fine is None or self.coarse is None:
            raise ParameterError("how many cells a dimension has was not chosen yet: take the design of a Table")
        return axes_of(private, self.fine, self.coarse)

    def ask(self, private: Record, epsilon: float) -> Ask:
        fitted = self.fitted(private, epsilon)
        axes = fitted.axes(private)
        for name, axis in zip(private.names, axes, strict=True):
            if axis.fine > _MOST_FINE or axis.coarse > _MOST_COARSE:
                raise ParameterError(
                    f"dimension {name!r} has {axis.fine:,} fine and {axis.coarse:,} coarse cells; grids are read with "
                    f"at most {_MOST_FINE:,} and {_MOST_COARSE:,}"
                )
        if sum(_cells(axes, places) for places in grid_sets(len(axes))) > MOST_CELLS:
            raise ParameterError(f"these grids have more than {MOST_CELLS:,} cells: take fewer or smaller dimensions")
        asked = []
        for places in grid_sets(len(axes)):
            fine = len(places) == 1
            shown = [_shown(private, place, axes[place], fine) for place in places]
            view = shown[0] if fine else Product(*shown)
            asked.append(Question(direct_or_hashed(epsilon, view.domain), view))
        return asked[0] if len(asked) == 1 else OneOf(*((1, question) for question in asked))

    def tallies(self, table: Table, sums: int) -> GridTallies:
        return GridTallies(table.survey.ask, sums)

    def variance(self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64]) -> float:
        """The predicted mean squared error: what is filled in smoothly errs beside the noise."""
        return self.predicted_error(table.private, table.epsilon, boxes, int(counts.sum()))

    def totals(self, table: Table, boxes: Sequence[Box], tallies: GridTallies) -> Totals:
        """Runs at the collector: the sums over people in any of these boxes, and their covariances.

        Unbiased where sides lie on cells' edges, up to two dimensions; `assumption` tells what the covariances
        rest on otherwise.
        """
        axes = self.axes(table.private)
        _check_answered(axes, boxes, tallies.people)
        readings = tallies.read(axes)
        regions = [None if one is None else one.region(boxes) for one in readings]
        weights = tallies.totals.sum(axis=0)
        values = np.array([0.0 if one is None else one.share for one in regions]) * weights
        covariance = _covariance(tallies, readings, regions)
        sums = tallies.sums
        signs = np.concatenate([np.eye(sums), -np.eye(sums)], axis=1)
        return Totals(signs @ values, signs @ covariance @ signs.T)

    def predicted_error(self, private: Record, epsilon: float, boxes: Sequence[Box], people: int) -> float:
        """The predicted mean squared error of COUNT over any of these boxes, if so many people answer.

        The variance of the noise where people are spread evenly, and the square of the paper's model of how far they
        are not: a side that cuts fine cells errs by alpha_1 / g1 of what the other sides leave, and one that cuts
        coarse cells by alpha_2 / g2 for each pair.
        """
        axes = self.fitted(private, epsilon).axes(private)
        return _predicted(axes, epsilon, tuple(boxes), people)


def _shown(private: Record, place: int, axis: Axis, fine: bool) -> View:
    """What a grid shows of one dimension: its cell, or the value itself where cells are values."""
    dimension = Project(private, (private.names[place],))
    level = axis.fine_level if fine else axis.coarse_level
    if level == axis.tree.height:
        return dimension
    return Composed(dimension, Ancestor(dimension.domain, axis.tree.branching, level))


def _cells(axes: Sequence[Axis], places: Sequence[int]) -> int:
    return axes[places[0]].fine if len(places) == 1 else axes[places[0]].coarse * axes[places[1]].coarse


def _check_answered(axes: Sequence[Axis], boxes: Sequence[Box], people: NDArray[np.int64]) -> None:
    """Every grid that a box needs was answered by somebody."""
    numbers = {places: number for number, places in enumerate(grid_sets(len(axes)))}
    for box in boxes:
        sides = [place for place, runs in enumerate(box) if runs is not None]
        needed = [(place,) for place in sides] if len(sides) < 2 else list(combinations(sides, 2))
        if any(not people[numbers[one]] for one in needed):
            raise EmptyError("nobody answered about a grid that this needs")


def _covariance(
    tallies: GridTallies, readings: Sequence[GridReading | None], regions: Sequence[Region | None]
) -> Floats:
    """Of the parts' sums: noise and the choice of grids, to first order, and the allowance for what no grid tells.

    What people hold is taken to be the same under all weights, their mean, so that no combination of sums has a
    negative variance.
    """
    weights, products = tallies.totals.sum(axis=0), tallies.products.sum(axis=0)
    known = [(part, one) for part, one in enumerate(regions) if one is not None]
    every = [reading.held for reading in readings if reading is not None]
    held = [np.mean(tables, axis=0) for tables in zip(*every, strict=True)]
    left = 1.0 - tallies.people / max(int(tallies.people.sum()), 1)
    found = np.zeros((len(regions), len(regions)))
    for (a, one), (b, other) in combinations_with_replacement(known, 2):
        each = tallies.totals[:, a] * tallies.totals[:, b]
        together = sum(
            _scatter(oracle.noise, one.of_grids[grid], other.of_grids[grid], held[grid], float(left[grid]))
            * float(tallies.products[grid, a, b] / each[grid])
            for grid, oracle in enumerate(tallies.oracles)
            if each[grid] > 0
        )
        # the same people are spread unevenly in all sums, as far as the sums have the same weights
        alike = float(products[a, b]) / math.sqrt(float(products[a, a] * products[b, b]))
        together += one.allowance * other.allowance * alike
        found[a, b] = found[b, a] = together * weights[a] * weights[b]
    return found


def _scatter(noise: SupportNoise, one: Floats, other: Floats, held: Floats, left: float) -> float:
    """The covariance of one person's two sums of coefficients over supported cells, if people hold cells like this.

    Exact for what a report adds given the held cell, with the chances that it supports two cells at once (`hit`, `miss`
    of the oracle's noise); and for who answers this grid, of whom the share `left` answers others.
    """
    p, q = float(noise.p), float(noise.q)
    hit, miss = float(noise.hit) - p * q, float(noise.miss) - q * q
    gap = p - q
    rest_one, rest_other = one.sum() - one, other.sum() - other
    both = one * other
    rest = both.sum() - both
    given = both * p * (1 - p) + rest * q * (1 - q)
    given += hit * (one * rest_other + other * rest_one) + miss * (rest_one * rest_other - rest)
    among = float(held @ both) - float(held @ one) * float(held @ other)
    return float(held @ given) / gap**2 + left * among


def _predicted(axes: Sequence[Axis], epsilon: float, boxes: Sequence[Box], people: int) -> float:
    sets = grid_sets(len(axes))
    tables, variances = [], []
    evenly = [axis.even() for axis in axes]
    for places in sets:
        if len(places) == 1:
            tables.append(evenly[places[0]])
        else:
            tables.append(np.outer(*(axes[place].gather(evenly[place]) for place in places)).ravel())
    oracles = [direct_or_hashed(epsilon, Categories.range(max(len(table), 2))) for table in tables]
    share = people / len(sets)
    variances = [oracle.noise.variance(0.0) / share for oracle in oracles]
    region = GridReading(axes, tables, variances).region(boxes)
    left = 1 - 1 / len(sets)
    noise = sum(
        _scatter(oracle.noise, part, part, table, left) / share
        for oracle, part, table in zip(oracles, region.of_grids, tables, strict=True)
    )
    return (noise + sum(_unevenness(axes, box) for box in boxes)) * people**2


def _unevenness(axes: Sequence[Axis], box: Box) -> float:
    """The paper's squared error of one box, where its sides cut cells."""
    sides = {place: axes[place].shares(runs) for place, runs in enumerate(box) if runs is not None}
    volumes = {place: float(side @ axes[place].even()) for place, side in sides.items()}

    def others(*gone: int) -> float:
        return math.prod(volume for place, volume in volumes.items() if place not in gone)

    found = 0.0
    for place, side in sides.items():
        if ((side > 0) & (side < 1)).any():
            found += (_ALPHA_1 / axes[place].fine * others(place)) ** 2
    for pair in combinations(sides, 2):
        error = sum(_ALPHA_2 / axes[place].coarse for place in pair if not axes[place].whole(sides[place]))
        found += (error * others(*pair)) ** 2
    return found


@lru_cache(maxsize=64)
def _chosen(private: Record, epsilon: float, people: int, fine: int | None, coarse: int | None) -> tuple[int, int]:
    """The numbers of cells with the smallest predicted error for ranges of half of two dimensions.

    From the paper's guideline on, one of the two is doubled or halved as long as that helps.
    """
    ordered = [place for place, part in enumerate(private.parts) if not isinstance(part, Categories)]
    if not ordered:
        return fine or coarse or 2, coarse or 2
    box = _typical(private, ordered[:2])
    largest = 1 << (max(private.parts[place].size for place in ordered) - 1).bit_length()
    most = min(largest, _MOST_CHOSEN)
    errors: dict[tuple[int, int], float] = {}

    def error(cells: tuple[int, int]) -> float:
        if cells not in errors:
            possible = 2 <= cells[1] <= cells[0] <= max(most, fine or 0) and cells[1] <= max(_MOST_JOINED, coarse or 0)
            errors[cells] = _predicted(axes_of(private, *cells), epsilon, (box,), people) if possible else math.inf
        return errors[cells]

    upper, lower = (min(cells, most) for cells in Grids.guideline(len(private.parts), epsilon, people))
    best = fine or max(upper, coarse or 2), coarse or min(lower, fine or lower)
    while True:
        near = [(cells, best[1]) for cells in (best[0] * 2, best[0] // 2) if fine is None]
        near += [(best[0], cells) for cells in (best[1] * 2, best[1] // 2) if coarse is None]
        better = min([best, *near], key=error)
        if better == best:
            return best
        best = better


def _power(number: float) -> int:
    """The nearest power of two, at least 2, by difference as in the authors' code."""
    low = 1 << max(int(math.log2(max(number, 2.0))), 1)
    return low if number - low <= 2 * low - number else 2 * low


def _typical(private: Record, places: Sequence[int]) -> Box:
    """A box of half of these dimensions, with sides that cut cells."""
    sizes = [part.size for part in private.parts]
    return tuple(
        (((size // 4 + size // 16) | 1, min(((size // 4 + size // 16) | 1) + max(size // 2, 1), size)),)
        if place in places
        else None
        for place, size in enumerate(sizes)
    )
