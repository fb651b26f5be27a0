"""Estimated coefficients of all views together, and their shrinkage towards what similar attributes have in common.

`tables` has the coefficients of a table, `graphical` the model that is fitted to the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veil.marginals.tables import Places, Views

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEWEST = 8  # what fewer attributes, or pairs, have in common is a guess
_STANDS_OUT = 2.0  # standard errors
_MOST_UNASKED = 1 << 13
_EXTREME = 0.98  # a share of 1 %: below it, the spread of an attribute is not known well enough to divide by it


@dataclass(frozen=True, eq=False)
class Evidence:
    """The mean and the variance of every coefficient that some view has, as `Views.begins` numbers them.

    A coefficient is that of contrasts of unit length times the root of the number of cells of its attributes, so that
    it is between -1 and 1 for attributes of two values; its variance is infinite where nobody was asked.
    """

    views: Views
    means: Floats
    variances: Floats

    @cached_property
    def orders(self) -> Ints:
        """How many attributes each coefficient is about; 0 for the total."""
        orders = np.zeros(self.views.count, dtype=np.int64)
        for subset, start in self.views.begins.items():
            orders[start : start + self.width(subset)] = len(subset)
        return orders

    def width(self, subset: Places) -> int:
        """How many coefficients a set of attributes has."""
        return math.prod(size - 1 for size in self.views.shape(subset))

    def numbers_of_two(self, order: int) -> tuple[list[Places], Ints]:
        """The sets of so many attributes, all of two values, that were asked for; and the number of their coefficient.

        Such a set has one coefficient, the mean of the product of its attributes, each +1 for the first value and -1
        for the second.
        """
        begins, sizes = self.views.begins, self.views.sizes
        subsets = [
            one
            for one, start in begins.items()
            if len(one) == order and all(sizes[place] == 2 for place in one) and math.isfinite(self.variances[start])
        ]
        return subsets, np.array([begins[one] for one in subsets], dtype=np.int64)


def gather(views: Views, tables: Floats, weights: Floats) -> Evidence:
    """Average every coefficient over the views that have it, each with its share of the information.

    `tables` are unbiased, view after view, and so are these averages; `weights` are one over the variance of a cell,
    one for each view. A coefficient of attributes S has in a view of L cells the variance of L / L_S cells.

    >>> views = Views((2, 2, 2), ((0, 1), (1, 2)))
    >>> found = gather(views, np.array([0.4, 0.2, 0.3, 0.1, 0.5, 0.1, 0.3, 0.1]), np.array([100.0, 100.0]))
    >>> {subset: round(float(found.means[start]), 3) for subset, start in views.begins.items() if len(subset) == 1}
    {(1,): 0.3, (0,): 0.2, (2,): 0.6}
    """
    each = views.of_views(weights / views.cells)
    weight = np.bincount(views.groups, each, minlength=views.count)
    found = np.bincount(views.groups, each * views.to_coefficients(tables), minlength=views.count)
    cells = np.ones(views.count)
    for subset, start in views.begins.items():
        width = math.prod(size - 1 for size in views.shape(subset))
        cells[start : start + width] = math.prod(views.shape(subset))
    asked = weight > 0
    means = np.divide(np.sqrt(cells) * found, weight, out=np.zeros_like(found), where=asked)
    # a coefficient of contrasts of unit length has 1 / (sum of w L_S / L); times L_S for those used here
    variances = np.divide(1.0, weight, out=np.full_like(found, np.inf), where=asked)
    means[0], variances[0] = 1.0, 0.0  # the total, which no noise can make another
    return Evidence(views, means, variances)


def pool(evidence: Evidence) -> Evidence:
    """Move what is known badly towards what attributes of two values have in common (empirical Bayes).

    Attributes of two values are often alike: items that are in a basket or not. The means of single attributes are
    taken as drawn from a normal distribution, and so are the correlations of pairs; both distributions are estimated
    from the evidence, and each mean and correlation is replaced by its expectation given both. Where attributes differ
    much, or noise is small, this changes nothing. Correlations are moved only if their common mean stands out, two
    standard errors from 0; pairs that no view has then get that mean too. Attributes of more values, interactions of
    three and more, and records with fewer than 8 attributes of two values stay as they are.
    """
    singles, alone = evidence.numbers_of_two(1)
    if len(singles) < _FEWEST:
        return evidence
    means, variances = evidence.means.copy(), evidence.variances.copy()
    common = _normal(means[alone], variances[alone], np.geomspace(1e-5, 1.0, 60))
    means[alone], variances[alone] = common.expected(means[alone], variances[alone])

    pairs, both = evidence.numbers_of_two(2)
    views = evidence.views
    if len(pairs) < _FEWEST:
        return Evidence(views, means, variances)
    centre = np.zeros(len(views.sizes))
    places = [place for (place,) in singles]
    centre[places] = np.clip(means[alone], -_EXTREME, _EXTREME)
    expected, spread = _independent(centre, pairs)
    correlations, noise = (means[both] - expected) / spread, variances[both] / spread**2
    common = _normal(correlations, noise, 1.0 / np.geomspace(3.0, 1e4, 36))
    if abs(common.mean) <= _STANDS_OUT * common.error:
        return Evidence(views, means, variances)
    moved, left = common.expected(correlations, noise)
    means[both], variances[both] = expected + moved * spread, left * spread**2
    unasked = [pair for pair in combinations(sorted(places), 2) if pair not in views.begins]
    if 0 < len(unasked) <= _MOST_UNASKED:  # these get the last numbers: one coefficient each, their parts have theirs
        views = Views(views.sizes, (*views.sets, *unasked))
        expected, spread = _independent(centre, unasked)
        means = np.concatenate([means, expected + common.mean * spread])
        variances = np.concatenate([variances, common.variance * spread**2])
    return Evidence(views, means, variances)


def _independent(centre: Floats, pairs: Sequence[Places]) -> tuple[Floats, Floats]:
    """The coefficient of each pair if its attributes were independent, and by how much it grows per correlation."""
    first, second = centre[np.array(pairs)].T
    return first * second, np.sqrt((1 - first**2) * (1 - second**2))


@dataclass(frozen=True)
class _Normal:
    """A normal distribution that numbers were drawn from, and the standard error of its mean."""

    mean: float
    variance: float
    error: float

    def expected(self, seen: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """The expectation and the variance of each number, of which a noisy one was seen."""
        kept = self.variance / (self.variance + noise)
        return self.mean + kept * (seen - self.mean), kept * noise


def _normal(seen: Floats, noise: Floats, grid: Floats) -> _Normal:
    """The normal distribution behind noisy numbers: averaged over variances by their restricted likelihood."""
    weights = 1.0 / (grid[:, None] + noise)
    means = weights @ seen / weights.sum(axis=1)
    likelihood = 0.5 * (np.log(weights) - weights * (seen - means[:, None]) ** 2).sum(axis=1)
    likelihood -= 0.5 * np.log(weights.sum(axis=1))
    shares = np.exp(likelihood - likelihood.max())
    shares /= shares.sum()
    variance = float(shares @ grid)
    return _Normal(float(shares @ means), variance, 1.0 / math.sqrt(float((1.0 / (variance + noise)).sum())))
