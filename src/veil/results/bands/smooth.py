"""Bands from simulated surveys: the root mean square error of the whole estimation, for simulated people.

Simulated people report through the same mechanism, and their reports are read in the same way, choices included. The
root mean square difference between their estimate and their truth is the error. It includes the scatter, and the bias
of a reconstruction that smooths. Percentiles of replicates of the estimate would count the bias twice.

Simulated people follow the estimate before smoothing, which is rough: the reports allow such a roughness, but they do
not tell where it lies. So the error at a place is the largest one nearby.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.results.bands.base import Bands
from veil.tools.numbers import two_sided

Floats = NDArray[np.float64]

_MOST_SHIFTS = 8  # to either side


@dataclass(frozen=True, eq=False)
class SmoothBands(Bands):
    """Errors of simulated surveys, and intervals for whatever the distribution answers: (low, high), in its units.

    `domain`, `cells` and `masses` are the distribution's. How bands are drawn: `veil.numeric.wave_bands`.

    >>> from veil import Interval
    >>> cells, half = np.arange(3), np.array([0.5, 0.5])
    >>> errors = np.array([[0.0, -0.1, 0.0], [0.0, 0.1, 0.0]])
    >>> bands = SmoothBands(Interval(0, 1, cells=2), cells, half, cells, errors)
    >>> [round(end, 3) for end in bands.mean()], [round(end, 3) for end in bands.cdf(0.5)]
    ([0.402, 0.598], [0.304, 0.696])
    """

    domain: Numeric
    cells: NDArray[np.int64]
    masses: Floats
    places: NDArray[np.int64]
    """Boundaries on the domain's grid at which errors are known."""
    errors: Floats
    """One row per simulated survey: of the people below each place, the fraction found less the true one."""
    nearby: int = 0
    """Within how many cells of the domain's grid the largest error counts."""
    kind: ClassVar[str] = "smooth"

    @property
    def rests_on(self) -> str:
        if not self.nearby:
            return f"The errors rest on {self.simulated} simulated surveys of people distributed as found."
        share = 100 * self.nearby / float(self.cells[-1])
        return (
            f"The errors rest on {self.simulated} simulated surveys, and on people being spread smoothly, over "
            f"{share:.2g} % of the range: if they hold round numbers, they are too small. "
            'assume="nothing" is wide and always holds; '
            "a hierarchy tells rough data better."
        )

    @property
    def rests_briefly(self) -> str:
        return f"{self.simulated} simulated surveys"

    @property
    def simulated(self) -> int:
        return len(self.errors)

    def runs(self, starts: NDArray[np.int64], level: float = 0.95) -> tuple[Floats, Floats]:
        ends = np.append(starts, len(self.masses))
        edges = self.estimate.edges[ends]
        found = np.add.reduceat(self.masses, starts)
        return self._cut(found, self._between(edges[:-1], edges[1:], level), 0.0, 1.0)

    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        found = np.asarray(self.estimate.cdf(x))
        reach = two_sided(level) * np.interp(self.estimate.cdf_numbers(x), self._edges, self._largest)
        return self._cut(found, reach.reshape(found.shape), 0.0, 1.0)

    def quantile_numbers(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """All values at which a fraction q lies within the interval of the cdf."""
        self.estimate.quantile(q)  # refuses bad levels
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        edges = np.union1d(self.estimate.edges, self._edges)
        found = np.interp(edges, self.estimate.edges, np.concatenate([[0.0], np.cumsum(self.masses)]))
        reach = two_sided(level) * np.interp(edges, self._edges, self._largest)
        low = _crossing(edges, np.maximum.accumulate(found + reach), levels)
        # the last place where the lower end is not above q: the first one from the other side
        high = -_crossing(-edges[::-1], np.maximum.accumulate((reach - found)[::-1]), -levels)
        if isinstance(self.domain, Integers):
            low, high = np.ceil(low - 0.5), np.floor(high + 0.5)
        least, most = self.domain.ends
        low, high = np.maximum(low, least), np.minimum(high, most)
        return (float(low[0]), float(high[0])) if np.ndim(q) == 0 else (low, high)

    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[float, float]:
        found = self.estimate.range(lo, hi)
        first, last = (np.array([end]) for end in self.estimate.range_numbers(lo, hi))
        low, high = self._cut(np.array(found), self._between(first, last, level)[0], 0.0, 1.0)
        return float(low), float(high)

    def mean_numbers(self, level: float = 0.95) -> tuple[float, float]:
        low, high = self._cut(np.array(self.estimate.mean_number), _spread(self._means, level), *self.domain.ends)
        return float(low), float(high)

    def variance(self, level: float = 0.95) -> tuple[float, float]:
        middles = (self._edges[:-1] + self._edges[1:]) / 2 - self.estimate.mean_number
        squares = middles**2 + np.diff(self._edges) ** 2 / 12
        away = np.diff(self.errors, axis=1) @ squares - self._means**2
        low, high = self._cut(np.array(self.estimate.variance()), _spread(away, level), 0.0, np.inf)
        return float(low), float(high)

    def __repr__(self) -> str:
        return f"SmoothBands(of {self.simulated} simulated surveys, {len(self.masses)} buckets)"

    @cached_property
    def _edges(self) -> Floats:
        """The places as numbers."""
        return self.domain.edges(self.places)

    @cached_property
    def _means(self) -> Floats:
        """The errors of the mean: of an even spread between places, the area under the cdf's errors."""
        return np.asarray(-(self.errors[:, 1:] + self.errors[:, :-1]) / 2 @ np.diff(self._edges))

    @cached_property
    def _largest(self) -> Floats:
        """At every place, the largest root mean square error nearby."""
        error = np.sqrt((self.errors**2).mean(axis=0))
        first = np.searchsorted(self.places, self.places - self.nearby, side="left")
        last = np.searchsorted(self.places, self.places + self.nearby, side="right")
        return np.array([error[i:j].max() for i, j in zip(first, last, strict=True)])

    def _between(self, low: Floats, high: Floats, level: float) -> Floats:
        """How far the mass between two numbers may be off: the largest error of what is as wide nearby."""
        least, most = self._edges[0], self._edges[-1]
        reach = np.zeros(len(low))
        for shift in self._shifts:
            # what begins or ends with the domain stays there
            ends = [np.where((end <= least) | (end >= most), end, end + shift) for end in (low, high)]
            below, above = (np.array([np.interp(end, self._edges, one) for one in self.errors]) for end in ends)
            reach = np.maximum(reach, np.sqrt(((above - below) ** 2).mean(axis=0)))
        return two_sided(level) * reach

    @cached_property
    def _shifts(self) -> Floats:
        if not self.nearby:
            return np.zeros(1)
        far = (self._edges[-1] - self._edges[0]) * self.nearby / (self.places[-1] - self.places[0])
        return np.linspace(-far, far, 2 * _MOST_SHIFTS + 1)

    def _cut(self, found: Floats, reach: Floats | float, least: float, most: float) -> tuple[Any, Any]:
        """An interval, cut to what is possible; not so if the estimate itself has negative masses."""
        low, high = found - reach, found + reach
        if self.estimate.proper:
            low, high = np.maximum(low, least), np.minimum(high, most)
        return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)


def _spread(away: Floats, level: float) -> float:
    return two_sided(level) * float(np.sqrt((away**2).mean()))


def _crossing(edges: Floats, rising: Floats, levels: Floats) -> Floats:
    """Where a function that never falls first reaches these levels; the last edge where it does not."""
    upper = np.clip(np.searchsorted(rising, levels, side="left"), 1, len(edges) - 1)
    below, above = rising[upper - 1], rising[upper]
    share = np.divide(levels - below, above - below, out=(levels > below).astype(np.float64), where=above > below)
    return np.asarray(edges[upper - 1] + np.clip(share, 0.0, 1.0) * (edges[upper] - edges[upper - 1]))
