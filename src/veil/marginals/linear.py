"""Joint distributions from linear estimators with a covariance in closed form.

Fourier coefficients and split budgets are estimated this way. Their noise hardly depends on the values held, so
variances are taken at their maximum, and intervals are those of a normal distribution.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.marginals.association import Correlation, correlation_of, known_correlation
from veil.marginals.intervals import MEASURED, Bounds, conditional_intervals
from veil.marginals.joint import Joint, places_of
from veil.marginals.scatter import MOST_COVARIANCES
from veil.marginals.tables import Places
from veil.tools.numbers import two_sided

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearJoint(Joint):
    """A joint distribution that is linear in what was counted. Subclasses give tables and how these scatter."""

    @abstractmethod
    def _unbiased(self, places: Places) -> Floats:
        """The unbiased table of attributes whose places are increasing; refuses what was not asked for."""

    @abstractmethod
    def _variance(self, places: Places) -> Floats:
        """The variance of each of its cells, flat, at the most."""

    @abstractmethod
    def _covariance(self, places: Places) -> Floats:
        """The covariance of its cells, for at most MOST_COVARIANCES of them."""

    def _unknown(self, places: Places) -> float:
        """How far a cell may be off beside its noise: where nobody was asked for a part of it."""
        return 0.0

    def _cells(self, places: Places) -> NDArray[np.int64]:
        """Where each cell of a table stands in the one whose attributes have increasing places."""
        inner = sorted(places)
        sizes = [self.record.parts[place].size for place in inner]
        return np.arange(math.prod(sizes)).reshape(sizes).transpose([inner.index(one) for one in places]).reshape(-1)

    def _asked(self, places: Places) -> bool:
        """Whether there is an unbiased table of these attributes."""
        return True

    def stderr(self, names: Any) -> Floats | None:
        places = places_of(self.record, names)
        if not self._asked(places):
            return None
        errors: Floats = np.sqrt(self._variance(tuple(sorted(places))))[self._cells(places)]
        return errors

    def bounds(self, names: Any, level: float = 0.95) -> Bounds | None:
        places = places_of(self.record, names)
        if not self._asked(places):
            return None
        inner = tuple(sorted(places))
        reach = two_sided(level) * np.sqrt(self._variance(inner)) + self._unknown(inner)
        table, order = self._unbiased(inner).reshape(-1), self._cells(places)
        low, high = np.clip(table - reach, 0.0, 1.0), np.clip(table + reach, 0.0, 1.0)
        return Bounds(low[order], high[order], MEASURED)

    def conditional_bounds(self, names: Any, given: Any, level: float = 0.95) -> Bounds | None:
        before, after = places_of(self.record, given), places_of(self.record, names)
        inner, order = tuple(sorted(before + after)), self._cells(before + after)
        if not self._asked(inner) or len(order) > MOST_COVARIANCES or self._unknown(inner):
            return None
        rows = math.prod(self.record.parts[place].size for place in before)
        table, covariance = self._unbiased(inner).reshape(-1)[order], self._covariance(inner)[np.ix_(order, order)]
        low, high = conditional_intervals(table.reshape(rows, -1), covariance, level)
        return Bounds(low.reshape(-1), high.reshape(-1), MEASURED)

    def _correlation(self, places: Places, ordered: bool, level: float) -> Correlation:
        shown = np.maximum(self._marginal(places).shares, 0.0)
        if not self._asked(places) or shown.size > MOST_COVARIANCES or self._unknown(places):
            return known_correlation(shown, ordered=ordered)
        table, covariance = self._unbiased(places), self._covariance(places)
        return correlation_of(table, covariance, ordered=ordered, shown=shown, level=level)
