"""A model of all attributes fitted to all views: a distribution of maximum entropy close to their tables.

Tables that are repaired one by one need not have a joint distribution, and each keeps its noise. The model is a
distribution, p(x) proportional to exp(sum of theta_S phi_S(x)), so its marginals are non-negative and consistent. It
minimises the convex function

    log Z(theta) - theta . c + 1/2 sum of T_S sigma_S^2 theta_S^2

over all coefficients S that some view has, where c are their unbiased averages with variances sigma^2. Equivalently, it
maximises the entropy less the squared distances to c in units of 2 T sigma^2. T is 1 for single attributes and 30 for
interactions, which corresponds to correlations of about 30^-0.5 = 0.18. Private-PGM (McKenna et al., ICML 2019) fits
the same family without this penalty, and then fits the noise of local privacy as if it were dependence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.marginals.evidence import Evidence, gather, pool
from veil.marginals.tables import Places, Views, contrasts, marginal_of
from veil.tools.limits import check

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_FITTED = 1 << 20
"""Cells of the largest table that a model is fitted on."""

_AROUND = 1 << 10  # cells of the table around a marginal, where the record has more than MOST_FITTED
_STEPS = 1500  # most fits need fewer than 200; views of seven attributes with little noise more
_CLOSE = 1e-5  # the largest slope left: coefficients are within about this of the minimum, far below any noise
_CENTRED = 0.7  # how much of their means contrasts lose: less than all, since means of rare values are known badly
_RARE = 0.01  # the least share that a value is given when contrasts are scaled
_MOST_ENTRIES = 1 << 21  # of the matrix of centred coordinates: a few views of very many attributes do without them


class Objective:
    """The convex function that a model minimises, and its slope; theta has one entry for each coefficient.

    `places` says where each coefficient stands in a table of `sizes`, as `kernels.transforms` numbers them; `penalties`
    are T sigma^2.
    """

    def __init__(self, sizes: Sequence[int], places: Ints, means: Floats, penalties: Floats) -> None:
        self._sizes = np.array(sizes, dtype=np.int64)
        self._places, self._means, self._penalties = places, means, penalties
        self._table = np.empty(math.prod(sizes))

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """The value at theta, and the slope."""
        from veil.kernels.transforms import contrast

        check()
        table, log_total = self._exponential(theta)
        contrast(table, self._sizes)
        pulls = self._penalties * theta
        value = log_total - theta @ self._means + 0.5 * (pulls @ theta)
        return float(value), table[self._places] - self._means + pulls

    def shares(self, theta: Floats) -> Floats:
        """The distribution of theta, flat."""
        return self._exponential(theta)[0].copy()

    def _exponential(self, theta: Floats) -> tuple[Floats, float]:
        from veil.kernels.transforms import combine

        table = self._table
        table[:] = 0.0
        table[self._places] = theta
        combine(table, self._sizes)
        highest = float(table.max())
        np.subtract(table, highest, out=table)
        np.exp(table, out=table)
        total = float(table.sum())
        np.divide(table, total, out=table)
        return table, highest + math.log(total)


def fit_model(sizes: Sequence[int], places: Ints, means: Floats, penalties: Floats) -> Floats:
    """The table of maximum entropy near these means of contrasts, flat; see `Objective` for the arguments.

    >>> pair = fit_model((2, 2), np.array([1, 2, 3]), np.array([0.0, 0.0, 0.6]), np.full(3, 1e-9))
    >>> pair.round(3).tolist()
    [0.4, 0.1, 0.1, 0.4]
    """
    from scipy.optimize import minimize

    objective = Objective(sizes, places, means, penalties)
    if not len(places):
        return objective.shares(means)
    centred = _centred(tuple(sizes), places, means, penalties)
    back = centred.T.tocsr()

    def value(steps: Floats) -> tuple[float, Floats]:
        height, slope = objective(centred @ steps)
        return height, back @ slope

    found = minimize(
        value,
        np.zeros(len(places)),
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": 20, "maxiter": _STEPS, "gtol": _CLOSE, "ftol": 1e-13},
    )
    return objective.shares(centred @ found.x)


def _centred(sizes: tuple[int, ...], places: Ints, means: Floats, penalties: Floats) -> csr_matrix:
    """Coordinates in which the objective curves about equally in all directions: products of centred contrasts.

    Where most people hold the same value of an attribute, its contrast is nearly constant, and so products with it are
    nearly the same as those without. Contrasts less a part of their means are not, which saves four of five steps. The
    columns say which theta a step changes.
    """
    from scipy.sparse import csr_matrix, diags

    strides = np.cumprod((1, *sizes[:0:-1]))[::-1]
    digits = places[:, None] // strides % np.array(sizes)
    orders = (digits > 0).sum(axis=1)
    shifts, spreads = _shifts(sizes, digits[orders == 1], means[orders == 1])
    ranks = np.argsort(places)
    rows, columns, entries = [], [], []
    variances = np.ones(len(places))
    many = (2.0**orders).sum() > _MOST_ENTRIES
    for order in np.unique(orders):
        chosen = np.flatnonzero(orders == order)
        axes = np.nonzero(digits[chosen])[1].reshape(len(chosen), order)
        found = np.take_along_axis(digits[chosen], axes, axis=1)
        variances[chosen] = spreads[axes, found].prod(axis=1)
        for kept in product((True,) if many else (False, True), repeat=order):
            inside = np.array(kept, dtype=np.bool_)
            if not inside.any():
                continue
            part = (strides[axes[:, inside]] * found[:, inside]).sum(axis=1)
            at = np.searchsorted(places, part, sorter=ranks)
            at = ranks[np.minimum(at, len(places) - 1)]
            known = places[at] == part
            rows.append(at[known])
            columns.append(chosen[known])
            entries.append((-shifts[axes[:, ~inside], found[:, ~inside]]).prod(axis=1)[known])
    shape = (len(places), len(places))
    matrix = csr_matrix((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
    curvature = variances + matrix.multiply(matrix).T @ penalties
    return (matrix @ diags(1.0 / np.sqrt(curvature))).tocsr()


def _shifts(sizes: tuple[int, ...], digits: Ints, means: Floats) -> tuple[Floats, Floats]:
    """For each attribute and contrast a part of its mean, and the mean square of the contrast less that part."""
    shifts, spreads = np.zeros((len(sizes), max(sizes))), np.ones((len(sizes), max(sizes)))
    for axis, size in enumerate(sizes):
        mine = digits[:, axis] > 0
        rows = contrasts(size)[1:] * math.sqrt(size)
        shares = 1.0 / size + means[mine] @ rows[digits[mine, axis] - 1] / size
        shares = np.maximum(shares, _RARE)
        shares /= shares.sum()
        shifts[axis, 1:size] = _CENTRED * (rows @ shares)
        spreads[axis, 1:size] = ((rows - shifts[axis, 1:size, None]) ** 2) @ shares
    return shifts, spreads


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A joint distribution of all attributes, in the words of what the views say about its coefficients.

    `whole` tells whether there is one model. A record of more than 2^20 cells has none: each marginal then has its
    own, of its attributes and of those that depend on them most. `distrust` is T of interactions.
    """

    evidence: Evidence
    distrust: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return self.evidence.views.sizes

    @property
    def whole(self) -> bool:
        """Whether one table holds all attributes."""
        return math.prod(self.sizes) <= MOST_FITTED

    def joint(self) -> Floats:
        """The table of all attributes."""
        if not self.whole:
            raise ParameterError(
                f"the table of all attributes has {math.prod(self.sizes):,} cells, more than {MOST_FITTED:,}:"
                " ask for marginals of fewer attributes"
            )
        return self._joint

    def marginal(self, places: Sequence[int]) -> Floats:
        """The table of some attributes, in the order of `places`."""
        ordered = tuple(sorted(places))
        if self.whole:
            table = marginal_of(self._joint, ordered)
        else:
            around = self._around(ordered)
            table = marginal_of(self._fitted(around), [around.index(place) for place in ordered])
        return table.transpose([ordered.index(place) for place in places])

    @cached_property
    def _joint(self) -> Floats:
        table = self._fitted(tuple(range(len(self.sizes))))
        table.setflags(write=False)
        return table

    def _around(self, places: Places) -> Places:
        """These attributes, and those that depend on them most, as long as their table is small."""
        cells = math.prod(self.evidence.views.shape(places))
        if cells > MOST_FITTED:
            raise ParameterError(
                f"this marginal has {cells:,} cells, and a model of at most {MOST_FITTED:,} can be fitted:"
                ' ask for fewer attributes, or read with inference="consistent"'
            )
        taken = list(places)
        for other in np.argsort(-self._dependence[list(places)].sum(axis=0), kind="stable"):
            if other not in taken and cells * self.sizes[other] <= _AROUND:
                taken.append(int(other))
                cells *= self.sizes[other]
        return tuple(sorted(taken))

    @cached_property
    def _dependence(self) -> Floats:
        """For every two attributes how much of their interaction is left beside its penalty."""
        many = len(self.sizes)
        strength = np.zeros((many, many))
        means, variances = self.evidence.means, self.evidence.variances
        for subset, start in self.evidence.views.begins.items():
            if len(subset) == 2:
                block = slice(start, start + self.evidence.width(subset))
                strength[subset] = strength[subset[::-1]] = float(
                    (means[block] ** 2 / (1 + self.distrust * variances[block]) ** 2).sum()
                )
        return strength

    def _fitted(self, kept: Places) -> Floats:
        """The model of some attributes, by all that is known about them alone; its axes are in the order of `kept`."""
        evidence, sizes = self.evidence, self.sizes
        # attributes of two values come last, where they are transformed together
        order = sorted(kept, key=lambda place: (sizes[place] == 2, place))
        shape = tuple(sizes[place] for place in order)
        strides = dict(zip(order, np.cumprod((1, *shape[:0:-1]))[::-1].tolist(), strict=True))
        numbers: list[Any] = []
        places: list[Any] = []
        for subset, start in evidence.views.begins.items():
            if subset and all(place in strides for place in subset):
                where = np.zeros((1,), dtype=np.int64)
                for place in subset:
                    where = (where[:, None] + strides[place] * np.arange(1, sizes[place])).reshape(-1)
                places.append(where)
                numbers.append(start + np.arange(len(where)))
        chosen = np.concatenate([*numbers, np.zeros(0, np.int64)])
        known = np.isfinite(evidence.variances[chosen])
        chosen, where = chosen[known], np.concatenate([*places, np.zeros(0, np.int64)])[known]
        distrust = np.where(evidence.orders[chosen] == 1, 1.0, self.distrust)
        flat = fit_model(shape, where, evidence.means[chosen], distrust * evidence.variances[chosen])
        return flat.reshape(shape).transpose([order.index(place) for place in kept])


def fit_graphical(views: Views, tables: Floats, weights: Floats, *, distrust: float = 30.0) -> GraphicalModel:
    """Runs at the collector: the model of maximum entropy that stays near all views.

    `tables` are the unbiased ones, view after view, with negative cells as they are; `weights` are one over the
    variance of a cell, one for each view. A larger `distrust` takes more of what looks like dependence for noise.

    >>> views = Views((2, 2, 2), ((0, 1), (1, 2)))
    >>> tables = np.array([0.4, 0.1, 0.1, 0.4, 0.4, 0.1, 0.1, 0.4])
    >>> fit_graphical(views, tables, np.full(2, 1e7)).marginal((0, 2)).round(2).tolist()  # no view has these two
    [[0.34, 0.16], [0.16, 0.34]]
    """
    return GraphicalModel(pool(gather(views, tables, weights)), distrust)
