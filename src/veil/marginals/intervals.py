"""Intervals of marginals and conditionals that hold for any joint distribution.

A table that a view contains is measured. Its cells have unbiased estimates, and an interval contains all shares at
which the estimate lies within a given number of standard errors (Wilson 1927). Other tables are not measured; their
estimates rest on maximum entropy, but their intervals do not. People with a combination of values hold every part of
it, so a cell is at most any measured part, and at least the remainder if the parts overlap as little as possible
(Frechet's bounds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from veil.marginals.scatter import MOST_COVARIANCES, Scatter
from veil.marginals.tables import Places
from veil.results.laws import score_interval
from veil.tools.numbers import alpha_of, two_sided

Floats = NDArray[np.float64]

MEASURED = "reports about these attributes together"
PARTS = "reports about fewer attributes at once, and bounds that hold for every joint distribution"

_MOST_CHAINS = 12


@dataclass(frozen=True, eq=False)
class Bounds:
    """Ends of intervals, one for each cell of a flat table, and in words what they rest on."""

    low: Floats
    high: Floats
    rests_on: str


def cell_bounds(scatter: Scatter, raw: Floats, places: Sequence[int], level: float = 0.95) -> Bounds:
    """Intervals of every cell of a marginal, out of the raw tables of all views.

    Guarantee: each covers its level, whatever people hold. Where no view has all attributes, it does for every joint
    distribution that has the measured parts: the interval does not shrink to nothing with more people.
    """
    two_sided(level)  # refuses a bad level
    if scatter.covered(places):
        return Bounds(*_scored(scatter, raw, places, level), MEASURED)
    tail = alpha_of(level) / 2
    return Bounds(_least(scatter, raw, places, tail), _most(scatter, raw, places, tail), PARTS)


def _scored(scatter: Scatter, raw: Floats, places: Sequence[int], level: float) -> tuple[Floats, Floats]:
    """The score interval of each cell of a covered table."""
    parabola = scatter.parabola(places, scatter.cautious(places))
    return score_interval(scatter.estimate(raw, places), parabola, level)


def _most(scatter: Scatter, raw: Floats, places: Sequence[int], tail: float) -> Floats:
    """The least upper limit of all measured parts of each cell: together they fail with probability `tail` at most."""
    parts = scatter.subsets(places)
    found = np.ones(scatter.views.shape(places))
    for part in parts:
        _, high = _scored(scatter, raw, part, 1 - 2 * tail / len(parts))
        found = np.minimum(found, _repeated(scatter, high, part, places))
    return found.reshape(-1)


def _least(scatter: Scatter, raw: Floats, places: Sequence[int], tail: float) -> Floats:
    """What is left of each cell at least, if its parts overlap as little as they can; fails as `_most` does."""
    chains = _chains(scatter.subsets(places), places)
    found = np.zeros(scatter.views.shape(places))
    if not chains:
        return found.reshape(-1)
    reach = two_sided(1 - 2 * tail / len(chains))
    for terms in chains:
        left = np.zeros(found.shape)
        for part, sign in terms:
            left += sign * (_repeated(scatter, scatter.estimate(raw, part), part, places) if part else 1.0)
        measured = [(part, sign) for part, sign in terms if part]
        error = np.sqrt(scatter.bound_variance(places, measured)).reshape(found.shape)
        found = np.maximum(found, left - reach * error)
    return np.minimum(found, 1.0).reshape(-1)


def _chains(parts: Sequence[Places], places: Sequence[int]) -> list[list[tuple[Places, int]]]:
    """Sums of parts that no cell of all attributes is below: each part, less what it shares with those before it.

    Who is in a cell of R and in a cell of B is in both; who is not in both counts at most once, in what R and B share
    if at all. So a cell of R and B together is at least R + B less the part that both have, for any R and B.
    """
    found: dict[tuple[tuple[Places, int], ...], None] = {}
    for start in permutations(parts[:_MOST_CHAINS], 2):
        terms: list[tuple[Places, int]] = []
        reached: set[int] = set()
        while not reached.issuperset(places):
            # the two to start with; then what adds most, and of these what shares most with what is there
            best = max(parts, key=lambda one: (len(set(one) - reached), len(set(one) & reached)))
            part = start[len(terms)] if len(terms) < len(start) else best
            if set(part) <= reached:
                break
            terms.append((part, 1))
            terms += [(tuple(place for place in part if place in reached), -1)] if reached else []
            reached |= set(part)
        if reached.issuperset(places):
            found[tuple(sorted(terms))] = None
    return [list(terms) for terms in sorted(found, key=len)[:_MOST_CHAINS]]


def _repeated(scatter: Scatter, flat: Floats, part: Places, places: Sequence[int]) -> Floats:
    """A table of some of the attributes, repeated along the others."""
    shape = [scatter.sizes[place] if place in part else 1 for place in places]
    return flat.reshape(shape)


def conditional_intervals(table: Floats, covariance: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Intervals of the shares within each row of an unbiased table, whose cells have this covariance: Fieller (1954).

    All r from 0 to 1 for which a cell less r times its row is at most so many standard errors from 0. Where nothing
    says that anybody is in a row, its intervals are 0 to 1.

    >>> low, high = conditional_intervals(np.array([[0.2, 0.2], [0.01, 0.59]]), np.eye(4) * 0.0001)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([[0.47, 0.47], [0.0, 0.95]], [[0.53, 0.53], [0.05, 1.0]])
    """
    rows, columns = table.shape
    square = two_sided(level) ** 2
    by_row = covariance.reshape(rows, columns, rows, columns)
    own = by_row[np.arange(rows), :, np.arange(rows), :]  # row, cell, cell
    each, both, whole = np.einsum("rcc->rc", own), own.sum(axis=2), own.sum(axis=(1, 2))[:, None]
    all_of_them = table.sum(axis=1, keepdims=True)
    rest = np.sqrt(np.maximum(each - 2 * both + whole, 0.0))
    # a cell below 0 or above its row is taken for one that is one standard error off, which only widens the interval
    cell = np.clip(table, -np.sqrt(each), np.maximum(all_of_them, 0.0) + rest)
    a, b, c = all_of_them**2 - square * whole, cell * all_of_them - square * both, cell**2 - square * each
    known = (a > 0) & (all_of_them > 0)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    low, high = (np.divide(b + sign * root, a, out=np.zeros_like(b), where=known) for sign in (-1, 1))
    return np.where(known, np.clip(low, 0.0, 1.0), 0.0), np.where(known, np.clip(high, 0.0, 1.0), 1.0)


def conditional_bounds(
    scatter: Scatter, raw: Floats, given: Sequence[int], places: Sequence[int], level: float = 0.95
) -> Bounds:
    """Intervals of P(places | given), a row for each cell of `given`; flat, the last of `places` varying fastest."""
    every = tuple(sorted({*given, *places}))
    shape = scatter.views.shape(every)
    order = np.arange(int(np.prod(shape))).reshape(shape)
    order = order.transpose([every.index(place) for place in (*given, *places)])
    cells = order.reshape(int(np.prod(scatter.views.shape(given))), -1)
    if scatter.covered(every) and cells.size <= MOST_COVARIANCES:
        table, flat = scatter.estimate(raw, every), cells.reshape(-1)
        # one more person per cell takes people from frequent rows: the wider interval is the careful one
        both = [
            conditional_intervals(table[cells], scatter.covariance(every, at)[np.ix_(flat, flat)], level)
            for at in (scatter.cautious(every), scatter.plausible(every))
        ]
        low, high = np.minimum(both[0][0], both[1][0]), np.maximum(both[0][1], both[1][1])
        return Bounds(low.reshape(-1), high.reshape(-1), MEASURED)
    # two intervals that fail at half the rate each; a row is what its cells are together
    half = 1 - alpha_of(level) / 2
    joint, row = cell_bounds(scatter, raw, every, half), cell_bounds(scatter, raw, tuple(sorted(given)), half)
    lined = np.arange(len(row.low)).reshape(scatter.views.shape(sorted(given)))
    lined = lined.transpose([sorted(given).index(place) for place in given]).reshape(-1)
    least, most = row.low[lined][:, None], row.high[lined][:, None]
    low = np.divide(joint.low[cells], most, out=np.zeros(cells.shape), where=most > 0)
    high = np.divide(joint.high[cells], least, out=np.ones(cells.shape), where=least > 0)
    return Bounds(np.clip(low, 0, 1).reshape(-1), np.clip(high, 0, 1).reshape(-1), joint.rests_on)
