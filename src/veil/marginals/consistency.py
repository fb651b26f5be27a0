"""Noisy tables of overlapping sets of attributes made to agree, and made non-negative (thesis 6.2.4).

Averaging every coefficient over the views that have it is the least-squares solution for all overlaps at once: the
thesis's pass over intersections, from small to large, without an order to keep. It is linear, so what goes in unbiased
comes out unbiased. Negative cells are another matter: `repaired` alternates between averages and the nearest
non-negative tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.marginals.tables import Views
from veil.tools.limits import check

__all__ = ["Repaired", "averaged", "before_averaging", "nearest_shares", "repaired"]

Floats = NDArray[np.float64]

_MOST_ROUNDS = 1000
_NEARLY = 1e-10
"""How negative a cell may be before the last step, which leaves none."""


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


@dataclass(frozen=True, eq=False)
class Repaired:
    """Tables that agree and have no negative cell, and after how many rounds they did."""

    tables: Floats
    rounds: int


def repaired(views: Views, tables: Floats, weights: Floats) -> Repaired:
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
    return Repaired(np.maximum((1 - mixed) * found + mixed * views.uniform, 0.0), rounds)


def nearest_shares(rows: Floats) -> Floats:
    """For each row the nearest one without negative numbers that adds up to 1 (Norm-Sub, many rows at once)."""
    falling = -np.sort(-rows, axis=1)
    excess = np.cumsum(falling, axis=1) - 1.0
    kept = falling * np.arange(1, rows.shape[1] + 1) > excess
    last = rows.shape[1] - 1 - np.argmax(kept[:, ::-1], axis=1)
    shift = np.take_along_axis(excess, last[:, None], axis=1) / (last[:, None] + 1)
    shares: Floats = np.maximum(rows - shift, 0.0)
    return shares
