"""How much a distribution would scatter if people were asked again: a parametric bootstrap, by simulating reports.

Made-up people go the whole way: they report through the same mechanism, and their reports are reconstructed in the same
way. How far they come out from what they are, in root mean square, is the error bar: it holds the scatter, and the bias
of a reconstruction that smooths. So that smoothing has something to do, these people are distributed as estimated
before any (for Square Wave: by plain EM). Percentiles of replicates of the estimate would be off by its bias twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import CHUNK_ROWS, Seeded, check_seed
from veil.errors import EmptyError, InputError, ParameterError
from veil.tools.arguments import is_int
from veil.tools.normal import two_sided
from veil.tools.shares import proportional

if TYPE_CHECKING:
    from veil.results.distribution import Distribution

__all__ = ["Bands"]

Floats = NDArray[np.float64]
_FEWEST = 10


@dataclass(frozen=True, eq=False)
class Bands:
    """Replicates of a distribution, and intervals for whatever it answers: (low, high), in its units.

    >>> from veil import Interval, SquareWave, simulate
    >>> found = simulate(SquareWave(2.0, Interval(0, 1), buckets=32), np.linspace(0.2, 0.8, 20_000), seed=1)
    >>> low, high = found.bands(replicates=20).mean()
    >>> bool(low < found.mean() < high)
    True
    """

    estimate: Distribution
    asked: Distribution
    """What the made-up people are distributed like."""
    replicates: tuple[Distribution, ...]

    @classmethod
    def drawn(cls, estimate: Distribution, replicates: int, seed: int) -> Bands:
        """Simulate so many collections; the same seed gives the same bands."""
        if not is_int(replicates) or replicates < _FEWEST:
            raise ParameterError(f"bands need at least {_FEWEST} replicates")
        if estimate.again is None:
            raise InputError("this distribution does not know how it was collected: it has no bands")
        seeds = np.random.default_rng(check_seed(seed)).integers(0, 2**62, size=(replicates, 2))
        again = estimate.again
        before = estimate if estimate.pilot is None else replace(estimate, masses=estimate.pilot())
        asked = replace(before, masses=before.normal)  # nobody is made up from negative masses
        try:
            drawn = tuple(again(_people(asked, int(who)), Seeded(int(how))) for who, how in seeds)
        except EmptyError:
            raise EmptyError("too few people for bands: asked again, nobody might answer some question") from None
        return cls(estimate, asked, drawn)

    def histogram(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """For each bucket's mass."""
        return self._fraction(lambda one: one.masses, level)

    def grouped(self, most: int = 64, level: float = 0.95) -> tuple[NDArray[np.int64], Floats, Floats]:
        """For the mass of runs of neighbouring buckets, at most so many: which bucket each starts with, low and high.

        Single buckets of a smooth estimate have bands like a comb: what smoothing moved from one to the next.
        """
        starts = np.arange(min(most, len(self.estimate))) * len(self.estimate) // min(most, len(self.estimate))
        low, high = self._fraction(lambda one: np.add.reduceat(one.masses, starts), level)
        return starts, low, high

    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the fraction of people at or below x."""
        return self._fraction(lambda one: one.cdf(x), level)

    def quantile(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the value that a fraction q of the people does not exceed."""
        return self._shown(self.quantile_numbers(q, level))

    def quantile_numbers(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """The same as numbers (times: seconds since 1970)."""
        self.estimate.quantile(q)  # refuses bad levels
        ends = self.estimate.domain.ends
        return self._interval(lambda one: one.quantile_numbers(np.asarray(q, dtype=np.float64)), level, *ends)

    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the fraction of people between lo and hi."""
        return self._fraction(lambda one: one.range(lo, hi), level)

    def mean(self, level: float = 0.95) -> tuple[Any, Any]:
        """For the mean."""
        return self._shown(self.mean_numbers(level))

    def mean_numbers(self, level: float = 0.95) -> tuple[float, float]:
        """The same as numbers (times: seconds since 1970)."""
        return self._interval(lambda one: one.mean_number, level, *self.estimate.domain.ends)

    def variance(self, level: float = 0.95) -> tuple[Any, Any]:
        """For the variance."""
        return self._interval(lambda one: one.variance(), level, 0.0)

    def std(self, level: float = 0.95) -> tuple[float, float]:
        """For the standard deviation, in units (times: seconds)."""
        low, high = self.variance(level)
        return float(np.sqrt(max(low, 0.0))), float(np.sqrt(max(high, 0.0)))

    def __repr__(self) -> str:
        return f"Bands(of {len(self.replicates)} replicates, {self.estimate!r})"

    def _shown(self, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        """Numbers of the domain as people write them."""
        shown = self.estimate.domain.shown
        low, high = ([shown(float(end)) for end in np.atleast_1d(side)] for side in ends)
        if np.ndim(ends[0]) == 0:
            return low[0], high[0]
        return (np.array(low), np.array(high)) if isinstance(low[0], float) else (low, high)

    def _fraction(self, statistic: Callable[[Distribution], Any], level: float) -> tuple[Any, Any]:
        return self._interval(statistic, level, 0.0, 1.0)

    def _interval(
        self, statistic: Callable[[Distribution], Any], level: float, least: float = -np.inf, most: float = np.inf
    ) -> tuple[Any, Any]:
        """An interval, cut to what is possible; not so if the estimate itself has negative masses."""
        own = np.asarray(statistic(self.estimate))
        away = np.array([statistic(one) for one in self.replicates]) - np.asarray(statistic(self.asked))
        reach = two_sided(level) * np.sqrt((away**2).mean(axis=0))
        low, high = own - reach, own + reach
        if self.estimate.proper:
            low, high = np.maximum(low, least), np.minimum(high, most)
        return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)


def _people(asked: Distribution, seed: int) -> Iterator[NDArray[np.uint64]]:
    """As many made-up people as reported, distributed like this; a chunk of their codes at a time."""
    rng = np.random.default_rng(seed)
    many = max(1, round(asked.n if asked.effective is None else asked.effective))
    # where only a share was asked, who they are is left to chance, too
    counts = proportional(asked.masses, many) if many == asked.population else rng.multinomial(many, asked.masses)
    ends = np.cumsum(counts)
    for first in range(0, many, CHUNK_ROWS):
        buckets = np.searchsorted(ends, np.arange(first, min(first + CHUNK_ROWS, many)), side="right")
        yield rng.integers(asked.cells[:-1][buckets], asked.cells[1:][buckets]).astype(np.uint64)
