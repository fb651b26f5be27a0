"""How much a distribution would scatter if people were asked again: a parametric bootstrap, by simulating reports.

Made-up people go the whole way: they report through the same mechanism, and their reports are reconstructed in the same
way. How far they come out from what they are, in root mean square, is the error bar: it holds the scatter, and the bias
of a reconstruction that smooths. So that smoothing has something to do, these people are distributed as estimated
before any (for Square Wave: by plain EM). Percentiles of replicates of the estimate would be off by its bias twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Numeric
from veil.results.bands import Bands
from veil.tools.normal import two_sided

if TYPE_CHECKING:
    from veil.results.distribution import Distribution

__all__ = ["SmoothBands"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SmoothBands(Bands):
    """Replicates of a distribution, and intervals for whatever it answers: (low, high), in its units.

    `domain`, `cells` and `masses` are the distribution's. How bands are drawn: `veil.numeric.draw_bands`.

    >>> from veil import Interval
    >>> cells, half = np.arange(3), np.array([0.5, 0.5])
    >>> bands = SmoothBands(Interval(0, 1, cells=2), cells, half, half, np.array([[0.4, 0.6], [0.6, 0.4]]))
    >>> [round(end, 3) for end in bands.mean()]
    [0.402, 0.598]
    """

    domain: Numeric
    cells: NDArray[np.int64]
    masses: Floats
    asked: Floats
    """What the made-up people are distributed like."""
    replicates: Floats
    """What was found for them: one row of masses for each time that they were asked."""
    kind: ClassVar[str] = "smooth"

    @property
    def rests_on(self) -> str:
        return "Bands by simulated surveys of people who are distributed as smoothly as the estimate."

    @property
    def simulated(self) -> int:
        return len(self.replicates)

    def runs(self, starts: NDArray[np.int64], level: float = 0.95) -> tuple[Floats, Floats]:
        return self._fraction(lambda one: np.add.reduceat(one.masses, starts), level)

    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        return self._fraction(lambda one: one.cdf(x), level)

    def quantile_numbers(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        self.estimate.quantile(q)  # refuses bad levels
        ends = self.estimate.domain.ends
        return self._interval(lambda one: one.quantile_numbers(np.asarray(q, dtype=np.float64)), level, *ends)

    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[Any, Any]:
        return self._fraction(lambda one: one.range(lo, hi), level)

    def mean_numbers(self, level: float = 0.95) -> tuple[float, float]:
        return self._interval(lambda one: one.mean_number, level, *self.estimate.domain.ends)

    def variance(self, level: float = 0.95) -> tuple[Any, Any]:
        return self._interval(lambda one: one.variance(), level, 0.0)

    def __repr__(self) -> str:
        return f"SmoothBands(of {len(self.replicates)} replicates, {len(self.masses)} buckets)"

    @cached_property
    def _found(self) -> list[Distribution]:
        return [self._of(masses) for masses in self.replicates]

    def _fraction(self, statistic: Callable[[Distribution], Any], level: float) -> tuple[Any, Any]:
        return self._interval(statistic, level, 0.0, 1.0)

    def _interval(
        self, statistic: Callable[[Distribution], Any], level: float, least: float = -np.inf, most: float = np.inf
    ) -> tuple[Any, Any]:
        """An interval, cut to what is possible; not so if the estimate itself has negative masses."""
        own = np.asarray(statistic(self.estimate))
        away = np.array([statistic(one) for one in self._found]) - np.asarray(statistic(self._of(self.asked)))
        reach = two_sided(level) * np.sqrt((away**2).mean(axis=0))
        low, high = own - reach, own + reach
        if self.estimate.proper:
            low, high = np.maximum(low, least), np.minimum(high, most)
        return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)
