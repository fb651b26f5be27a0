"""Exact variances and covariances of unbiased marginals, from the distribution of the reports.

The unbiased table of a set Q of attributes is linear in the raw tables of the views. A view contributes to Q what it
knows about the attributes shared with Q, so the contribution of a person to a cell v depends only on which of these
attributes agree with v: on a pattern of matches. Every variance is a sum over patterns, and tables are summed by
patterns in the basis of `tables.contrasts`, where such sums are products. No matrix of a view's cells is ever built.

There are two sources of variance. Reports are random: with a = p (1 - p), b = q (1 - q), c = hit - p q and
e = miss - q^2, the supports of one report about a random person have the variances b + (a - b) f_u and the covariances
e + (c - e) (f_u + f_w). Only b - e for each cell and a - b - 2 (c - e) for each person matter, since the weights of a
view's cells add up to 0: the total is known to be 1. The assignment of people to views is random: n_A people out of the
population, without replacement, each for one view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.marginals.tables import Places, Views, contrasts, inverse_contrasts, marginal_of
from veil.results.laws import AdditiveNoise, Noise, SupportNoise

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Parabola = tuple[Floats, Floats, Floats]

MOST_COVARIANCES = 1 << 11
"""Tables up to which all covariances are worked out: 2,048 squared are 32 MiB."""


@dataclass(frozen=True)
class _Shared:
    """What all views say that share the same attributes with a set: where these stand in it, and sums over the views.

    `noise` is per cell of the table of the shared attributes, `person` per person; `sampled` is the part of `person`
    that comes from who was asked.
    """

    axes: tuple[int, ...]
    noise: float
    person: float
    sampled: float


@dataclass(frozen=True, eq=False)
class Scatter:
    """Unbiased marginals of sets of attributes that lie inside a view, and how these scatter.

    `weights` are one over the variance of a cell, `people` how many answered, `noises` how their oracle scatters: one
    of each for each view. `tables` are plausible ones (without negative cells) of all views in one flat array: what the
    variances are taken at. `population` is how many people the tables speak about.

    >>> from fractions import Fraction
    >>> noise = SupportNoise(Fraction(3, 4), Fraction(1, 4), Fraction(0), Fraction(0))
    >>> scatter = Scatter((2, 2), ((0,), (1,)), np.ones(2), np.full(4, 0.5), np.array([50, 50]), (noise,) * 2, 100)
    >>> scatter.covered((0,)), scatter.covered((0, 1)), scatter.variance((0,)).round(4).tolist()
    (True, False, [0.0175, 0.0175])
    """

    sizes: tuple[int, ...]
    sets: tuple[Places, ...]
    weights: Floats
    tables: Floats
    people: Ints
    noises: tuple[Noise, ...]
    population: int

    @cached_property
    def views(self) -> Views:
        """The views, and where their cells stand."""
        return Views(self.sizes, self.sets)

    def covered(self, places: Sequence[int]) -> bool:
        """Whether reports say all there is about these attributes together: whether they lie inside one view."""
        wanted = np.zeros(len(self.sizes), dtype=np.bool_)
        wanted[list(places)] = True
        return bool((self._answered & (self._members | ~wanted).all(axis=1)).any())

    def subsets(self, places: Sequence[int]) -> list[Places]:
        """The largest sets of these attributes that are covered, none inside another."""
        sets = {tuple(places[axis] for axis in axes) for axes in self._axes(places)[0]}
        return sorted(one for one in sets if not any(set(one) < set(other) for other in sets))

    def estimate(self, raw: Floats, places: Sequence[int]) -> Floats:
        """The unbiased table of these attributes, out of raw tables of all views in one flat array; flat itself.

        Each coefficient is the mean over the views that have it, weighted by one over its variance in them.
        """
        shape, weight = self._checked(places)
        found = np.zeros(shape)
        for axes, numbers in zip(*self._axes(places), strict=True):
            kept = {places[axis] for axis in axes}
            part = np.zeros([shape[axis] for axis in axes])
            for number in numbers:
                own = [axis for axis, place in enumerate(self.sets[number]) if place in kept]
                part += self._rates[number] * marginal_of(self.views.table(raw, number), own)
            found += _spread(part, axes, shape) * (part.size / found.size)
        coefficients = _along(found, contrasts) / weight.reshape(-1)[_blocks(shape)]
        coefficients[(0,) * len(shape)] = 1.0  # the total, which no noise can make another
        return _along(coefficients, inverse_contrasts).reshape(-1)

    def plausible(self, places: Sequence[int]) -> Floats:
        """The table that variances are taken at: without negative cells."""
        found = self._plausible.get(tuple(places))
        if found is None:
            found = np.maximum(self.estimate(self.tables, places), 0.0)
            found = self._plausible[tuple(places)] = found / found.sum()
        return found

    @cached_property
    def _plausible(self) -> dict[Places, Floats]:
        """What was worked out before: bounds of many attributes ask for the same small tables again and again."""
        return {}

    def cautious(self, places: Sequence[int]) -> Floats:
        """The plausible table with one more person in each cell, of those who answered for all of these attributes.

        For variances that are taken at an estimate: a cell that came out empty may have a few people in it.
        """
        found = self.plausible(places)
        asked = float(self.people[self.views.containing(places)].sum())
        return (asked * found + 1.0) / (asked + len(found))

    def covariance(self, places: Sequence[int], at: Floats | None = None, *, sample: bool = False) -> Floats:
        """Of the unbiased table of covered attributes, every cell with every other; at a table, or the plausible.

        Around the table of the people who took part; with `sample`, of many more whom these are a random sample of.
        """
        shape, weight = self._checked(places)
        cells = math.prod(shape)
        if cells > MOST_COVARIANCES:
            raise InputError(f"covariances are for tables of at most {MOST_COVARIANCES:,} cells, not of {cells:,}")
        basis = _crossed([contrasts(size) for size in shape])
        back = _crossed([inverse_contrasts(size) for size in shape])
        table, blocks = self.plausible(places) if at is None else at, _blocks(shape).reshape(-1)
        both = blocks[:, None] | blocks[None, :]  # of which attributes a view has to have all
        noise, person, sampled = (_supersets(sums).reshape(-1) for sums in self._sums(places))
        each, means = 1.0 / weight.reshape(-1), basis @ table
        each[0] = 0.0
        each = each[blocks]
        products = (basis * table) @ basis.T
        own = cells / (basis**2).sum(axis=1)  # cells of the attributes of each coefficient
        found = np.diag(each**2 * noise[blocks] / own)
        found += np.outer(each, each) * (person[both] * products - sampled[both] * np.outer(means, means))
        if not sample:
            found -= (products - np.outer(means, means)) / max(self.population - 1, 1)
        return back @ found @ back.T

    def variance(self, places: Sequence[int]) -> Floats:
        """Of each cell of the unbiased table of covered attributes, at the plausible tables."""
        shape, _ = self._checked(places)
        return self._parts(places, _whole(shape)).at(self.plausible(places))[0]

    def parabola(self, places: Sequence[int], at: Floats | None = None) -> Parabola:
        """The variance of each cell if nobody, half of the people or all of them were in it: a parabola between.

        The others are taken to be spread over the other cells as in a table, or the plausible one.
        """
        shape, _ = self._checked(places)
        parts = self._parts(places, _whole(shape))
        none, half, everybody = parts.at(self.plausible(places) if at is None else at, (0.0, 0.5, 1.0))
        return none, half, everybody

    def bound_variance(self, places: Sequence[int], terms: Sequence[tuple[Places, int]]) -> Floats:
        """Of sums of unbiased tables of covered subsets, each times 1 or -1 and repeated along all of these attributes.

        At the plausible tables. It is an upper bound by less than one over the population: whether people counted for
        different subsets are the same ones is not known.
        """
        shape = self.views.shape(places)
        factors = np.zeros((2,) * len(shape))
        for subset, sign in terms:
            inside = [place in subset for place in places]
            part = np.array(float(sign))
            for size, held in zip(shape, inside, strict=True):
                part = np.multiply.outer(part, np.array([1 / size, 1.0]) if held else np.array([1.0, 0.0]))
            factors += part
        return self._parts(places, factors).at(None)[0]

    # -- sums over views ---------------------------------------------------------------------------------------------

    @cached_property
    def _members(self) -> NDArray[np.bool_]:
        """Which view has which attribute."""
        found = np.zeros((len(self.sets), len(self.sizes)), dtype=np.bool_)
        for number, one in enumerate(self.sets):
            found[number, list(one)] = True
        return found

    @cached_property
    def _answered(self) -> NDArray[np.bool_]:
        """Which views anybody answered."""
        return (np.asarray(self.people) > 0) & (np.asarray(self.weights) > 0)

    @cached_property
    def _rates(self) -> Floats:
        """What a coefficient of each view weighs, up to a factor that all its views share."""
        return np.where(self._answered, self.weights, 0.0) / self.views.cells

    @cached_property
    def _laws(self) -> tuple[Floats, Floats]:
        """Per view, n times the variance that each of its cells has, and that each person adds where they are."""
        pairs = [_law(noise) for noise in self.noises]
        return np.array([cell for cell, _ in pairs]), np.array([own for _, own in pairs])

    def _patterns(self, places: Sequence[int]) -> Ints:
        """Which of these attributes each view has, as bits; the first attribute is the highest bit."""
        bits = 1 << np.arange(len(places))[::-1]
        return np.asarray(np.where(self._answered, self._members[:, list(places)] @ bits, 0))

    def _axes(self, places: Sequence[int]) -> tuple[list[tuple[int, ...]], list[Ints]]:
        """The sets of axes that views share with these attributes, and the views that share exactly these."""
        patterns, count = self._patterns(places), len(places)
        order = np.argsort(patterns, kind="stable")
        different, starts = np.unique(patterns[order], return_index=True)
        axes, numbers = [], []
        for pattern, views in zip(different.tolist(), np.split(order, starts[1:]), strict=True):
            if pattern:
                axes.append(tuple(axis for axis in range(count) if pattern >> (count - 1 - axis) & 1))
                numbers.append(views)
        return axes, numbers

    def _sums(self, places: Sequence[int]) -> tuple[Floats, Floats, Floats]:
        """For each set of shared axes: the noise of all cells, the scatter per person, and what of it is sampling."""
        shape, patterns, (cell, own) = (2,) * len(places), self._patterns(places), self._laws
        each = np.divide(self._rates**2, self.people, out=np.zeros(len(self.sets)), where=self._answered)
        drawn = self.population / max(self.population - 1, 1) if self.population > 1 else 0.0
        size = 1 << len(places)
        sums = (each * cell * self.views.cells, each * (own + drawn), each * drawn)
        noise, person, sampled = (_binned(patterns, one, size).reshape(shape) for one in sums)
        return noise, person, sampled

    def _weight(self, places: Sequence[int]) -> Floats:
        """For each subset of these attributes, what all views weigh together that have it."""
        rates = _binned(self._patterns(places), self._rates, 1 << len(places))
        return _supersets(rates.reshape((2,) * len(places)))

    def _checked(self, places: Sequence[int]) -> tuple[tuple[int, ...], Floats]:
        """The shape of a covered table, and the weights of its coefficients."""
        if not places or not self.covered(places):
            raise InputError("no view has all of these attributes together: nothing was measured of their joint table")
        return self.views.shape(places), self._weight(places)

    def _parts(self, places: Sequence[int], factors: Floats) -> _Parts:
        """What each set of shared attributes adds to the variance of a sum of interactions times these factors."""
        weight, shape = self._weight(places), self.views.shape(places)
        use = np.divide(factors, weight, out=np.zeros_like(factors), where=weight > 0)
        use[(0,) * len(shape)] = 0.0
        noise, person, sampled = self._sums(places)
        shared = []
        for axes in self._axes(places)[0]:
            at = tuple(int(axis in axes) for axis in range(len(shape)))
            of_cell = noise[at] / math.prod(shape[axis] for axis in axes)
            shared.append(_Shared(axes, float(of_cell), float(person[at]), float(sampled[at])))
        return _Parts(self, tuple(places), shape, use, tuple(shared))


@dataclass(frozen=True, eq=False)
class _Parts:
    """A sum of interactions, cell by cell, and what adds to its variance; `use` has a factor for each interaction."""

    scatter: Scatter
    places: Places
    shape: tuple[int, ...]
    use: Floats
    shared: tuple[_Shared, ...]

    def at(self, table: Floats | None, shares: Sequence[float | None] = (None,)) -> list[Floats]:
        """The variance of each cell at a table; for a share, where so many are in the cell and the others as there.

        Without a table: at the plausible ones of what the views have of it.
        """
        held = None if table is None else table.reshape(self.shape)
        pieces = []
        for one, weights in self._weighted():
            near = self._near(one) if held is None else marginal_of(held, one.axes)
            counts = np.array(1.0)
            for size in near.shape:
                counts = np.multiply.outer(counts, np.array([size - 1.0, 1.0]))
            squares, means = (self._met(by_pattern, near, one.axes) for by_pattern in (weights**2, weights))
            noise = one.noise * float((weights**2 * counts).sum())
            pieces.append((one, noise, float(weights.flat[-1]), squares, means))
        found = []
        for share in shares:
            here = held if share is None else np.full(self.shape, share)
            sums = np.zeros(self.shape)
            for one, noise, own, squares, means in pieces:
                if share is not None and held is not None:
                    squares, means = (
                        share * mine
                        + (1 - share) * np.divide(of - held * mine, 1 - held, out=of.copy(), where=held < 1)
                        for of, mine in ((squares, own**2), (means, own))
                    )
                sums += noise + one.person * squares - one.sampled * means**2
            if here is not None:
                sums -= here * (1 - here) / max(self.scatter.population - 1, 1)
            found.append(np.maximum(sums, 0.0).reshape(-1))
        return found

    def _near(self, one: _Shared) -> Floats:
        places = tuple(self.places[axis] for axis in one.axes)
        return self.scatter.plausible(places).reshape(self._sizes(one))

    def _weighted(self) -> Iterator[tuple[_Shared, Floats]]:
        """What a person's value weighs in a cell, by which shared attributes it agrees with it on."""
        for one in self.shared:
            use = self.use[tuple(slice(None) if axis in one.axes else 0 for axis in range(len(self.shape)))]
            yield one, _along(use, lambda size: np.array([[1.0, -1 / size], [1.0, 1 - 1 / size]]), self._sizes(one))

    def _sizes(self, one: _Shared) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in one.axes)

    def _met(self, by_pattern: Floats, table: Floats, axes: tuple[int, ...]) -> Floats:
        """For each cell, the mean over a table of a number that depends on which attributes agree with the cell."""
        factors = _along(by_pattern, lambda size: np.array([[size - 1.0, 1.0], [-1.0, 1.0]]), table.shape)
        found = _along(_along(table, contrasts) * factors.reshape(-1)[_blocks(table.shape)], inverse_contrasts)
        return _spread(found, axes, self.shape).copy()


def _law(noise: Noise) -> tuple[float, float]:
    """n times the variance that each cell has, and that each person adds in their own cell."""
    if isinstance(noise, AdditiveNoise):
        return float(noise.per_value), 0.0
    if not isinstance(noise, SupportNoise):
        raise InputError("no noise law is known: there are no variances")
    p, q = noise.p, noise.q
    absent = q * (1 - q) - (noise.miss - q * q)
    present = p * (1 - p) - 2 * (noise.hit - p * q) + (noise.miss - q * q)
    gap = (p - q) ** 2
    return float(absent / gap), float((present - absent) / gap)


def _binned(bins: Ints, numbers: Floats, size: int) -> Floats:
    return np.bincount(bins, numbers, size).astype(np.float64)


def _along(table: Floats, matrix: Callable[[int], Floats], sizes: Sequence[int] | None = None) -> Floats:
    """A matrix for each size applied along each axis; `sizes` are the attributes' where the axes have others."""
    for axis, size in enumerate(table.shape if sizes is None else sizes):
        table = np.swapaxes(np.swapaxes(table, axis, -1) @ matrix(size).T, axis, -1)
    return table


def _crossed(matrices: Sequence[Floats]) -> Floats:
    found: Floats = np.ones((1, 1))
    for matrix in matrices:
        found = np.asarray(np.kron(found, matrix))
    return found


def _spread(table: Floats, axes: Sequence[int], shape: tuple[int, ...]) -> Floats:
    """A table of some axes, repeated along the others."""
    return np.broadcast_to(table.reshape([size if axis in axes else 1 for axis, size in enumerate(shape)]), shape)


def _blocks(shape: tuple[int, ...]) -> Ints:
    """For each coefficient which attributes it is about, as bits; the first is the highest."""
    found = np.zeros((1,) * len(shape), dtype=np.int64)
    for axis, size in enumerate(shape):
        bit = np.minimum(np.arange(size), 1) << (len(shape) - 1 - axis)
        found = found | bit.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return found


def _supersets(sums: Floats) -> Floats:
    """For each set, the sum over all sets that have it inside; one axis of length 2 for each member."""
    found = sums.copy()
    for axis in range(found.ndim):
        by_member = np.moveaxis(found, axis, 0)  # of the same memory
        by_member[0] += by_member[1]
    return found


def _whole(shape: tuple[int, ...]) -> Floats:
    """The factors that make interactions into a table: each is repeated along the attributes it does not have."""
    found = np.array(1.0)
    for size in shape:
        found = np.multiply.outer(found, np.array([1 / size, 1.0]))
    return found
