"""The base class of bands: intervals for every answer of a distribution.

`SmoothBands` come from simulated surveys; other kinds assume less and are wider. All are frozen data that belong to
their distribution. `veil.numeric` makes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Numeric
from veil.tools.json_documents import Kinds

if TYPE_CHECKING:
    from veil.results.distribution import Distribution


Floats = NDArray[np.float64]

BANDS: Kinds[Bands] = Kinds(
    {
        "free": "veil.results.bands.free:FreeBands",
        "levels": "veil.results.bands.levels:LevelBands",
        "smooth": "veil.results.bands.smooth:SmoothBands",
    }
)


class Bands(ABC):
    """Intervals for whatever a distribution answers: (low, high), in its units, each for one question.

    A kind of band is a frozen dataclass whose fields are plain data; `domain`, `cells` and `masses` are those of the
    distribution that it is about. It says in `rests_on` what has to be true for its intervals to hold.
    """

    kind: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def domain(self) -> Numeric:
            """The distribution's."""

        @property
        def cells(self) -> NDArray[np.int64]:
            """The distribution's."""

        @property
        def masses(self) -> Floats:
            """The distribution's."""

    # -- what each kind says for itself ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def rests_on(self) -> str:
        """One plain sentence: what these intervals assume."""

    @property
    def rests_briefly(self) -> str:
        """The same in a few words, for the legend of a picture."""
        return self.kind

    @property
    def simulated(self) -> int | None:
        """By how many simulated surveys they were drawn; None if by none."""
        return None

    @abstractmethod
    def runs(self, starts: NDArray[np.int64], level: float = 0.95) -> tuple[Floats, Floats]:
        """For the mass of runs of neighbouring buckets, each up to where the next one starts."""

    @abstractmethod
    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the fraction of people at or below x."""

    @abstractmethod
    def quantile_numbers(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the value that a fraction q of the people does not exceed, as a number (times: seconds since 1970)."""

    @abstractmethod
    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[float, float]:
        """For the fraction of people between lo and hi."""

    @abstractmethod
    def mean_numbers(self, level: float = 0.95) -> tuple[float, float]:
        """For the mean, as a number (times: seconds since 1970)."""

    @abstractmethod
    def variance(self, level: float = 0.95) -> tuple[float, float]:
        """For the variance."""

    # -- what follows ------------------------------------------------------------------------------------------------

    @cached_property
    def estimate(self) -> Distribution:
        """The distribution that the intervals are about."""
        return self._of(self.masses)

    def histogram(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """For each bucket's mass."""
        return self.runs(np.arange(len(self.masses)), level)

    def grouped(self, most: int = 64, level: float = 0.95) -> tuple[NDArray[np.int64], Floats, Floats]:
        """For the mass of at most `most` runs of neighbouring buckets: which bucket each starts with, low and high.

        Single buckets of a smooth estimate have bands like a comb: what smoothing moved from one to the next.
        """
        many = min(most, len(self.masses))
        starts = np.arange(many) * len(self.masses) // many
        return starts, *self.runs(starts, level)

    def quantile(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the value that a fraction q of the people does not exceed."""
        return self._shown(self.quantile_numbers(q, level))

    def mean(self, level: float = 0.95) -> tuple[Any, Any]:
        """For the mean."""
        return self._shown(self.mean_numbers(level))

    def std(self, level: float = 0.95) -> tuple[float, float]:
        """For the standard deviation, in units (times: seconds)."""
        low, high = self.variance(level)
        return float(np.sqrt(max(low, 0.0))), float(np.sqrt(max(high, 0.0)))

    def _of(self, masses: Floats) -> Distribution:
        """A distribution over the same buckets."""
        from veil.results.distribution import Distribution

        return Distribution(self.domain, self.cells, masses, n=0, population=0)

    def _shown(self, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        """Numbers of the domain as people write them."""
        shown = self.domain.shown
        low, high = ([shown(float(end)) for end in np.atleast_1d(side)] for side in ends)
        if np.ndim(ends[0]) == 0:
            return low[0], high[0]
        return (np.array(low), np.array(high)) if isinstance(low[0], float) else (low, high)
