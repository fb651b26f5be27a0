"""How much a distribution would scatter if people were asked again: a parametric bootstrap, by simulating reports.

Made-up people, distributed as estimated, go the whole way: they report through the same mechanism, and their reports
are reconstructed in the same way. How far they come out from the estimate, in root mean square, is the error bar: it
holds the scatter, and what smoothing did to them a second time stands for the bias that it had the first time. Plain
percentiles of the replicates would be off by that bias twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import is_int
from veil.entropy import CHUNK_ROWS, Seeded
from veil.errors import InputError, ParameterError
from veil.noise import two_sided

if TYPE_CHECKING:
    from veil.distribution import Distribution

__all__ = ["Bands"]

Floats = NDArray[np.float64]
_FEWEST = 10


@dataclass(frozen=True, eq=False)
class Bands:
    """Replicates of a distribution, and intervals for whatever it answers: (low, high), as numbers of the domain.

    >>> from veil import Interval, SquareWave, simulate
    >>> found = simulate(SquareWave(2.0, Interval(0, 1), buckets=32), np.linspace(0.2, 0.8, 20_000), seed=1)
    >>> low, high = found.bands(replicates=20).mean()
    >>> bool(low < found.mean() < high)
    True
    """

    estimate: Distribution
    replicates: tuple[Distribution, ...]

    @classmethod
    def drawn(cls, estimate: Distribution, replicates: int, seed: int) -> Bands:
        """Simulate so many collections; the same seed gives the same bands."""
        if not is_int(replicates) or replicates < _FEWEST:
            raise ParameterError(f"bands need at least {_FEWEST} replicates")
        if estimate.again is None:
            raise InputError("this distribution does not know how it was collected: it has no bands")
        seeds = np.random.default_rng(seed).integers(0, 2**62, size=(replicates, 2))
        again = estimate.again
        return cls(estimate, tuple(again(_people(estimate, int(who)), Seeded(int(how))) for who, how in seeds))

    def histogram(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """For each bucket's mass."""
        return self._interval(lambda one: one.masses, level)

    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the fraction of people at or below x."""
        return self._interval(lambda one: one.cdf(x), level)

    def quantile(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the value that a fraction q of the people does not exceed."""
        self.estimate.quantile(q)  # refuses bad levels
        return self._interval(lambda one: one.quantile_numbers(np.asarray(q, dtype=np.float64)), level)

    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the fraction of people between lo and hi."""
        return self._interval(lambda one: one.range(lo, hi), level)

    def mean(self, level: float = 0.95) -> tuple[Any, Any]:
        """For the mean."""
        return self._interval(lambda one: one.mean_number, level)

    def variance(self, level: float = 0.95) -> tuple[Any, Any]:
        """For the variance."""
        return self._interval(lambda one: one.variance(), level)

    @property
    def _asked(self) -> Distribution:
        """What the made-up people are distributed like: the estimate, but for negative masses."""
        return replace(self.estimate, masses=self.estimate.normal)

    def _interval(self, statistic: Callable[[Distribution], Any], level: float) -> tuple[Any, Any]:
        own = np.asarray(statistic(self.estimate))
        away = np.array([statistic(one) for one in self.replicates]) - np.asarray(statistic(self._asked))
        reach = two_sided(level) * np.sqrt((away**2).mean(axis=0))
        low, high = own - reach, own + reach
        return (float(low), float(high)) if low.ndim == 0 else (low, high)


def _people(estimate: Distribution, seed: int) -> Iterator[NDArray[np.uint64]]:
    """As many made-up people as reported, distributed as estimated; a chunk of their codes at a time."""
    rng = np.random.default_rng(seed)
    asked = round(estimate.n if estimate.effective is None else estimate.effective)
    counts = _whole(estimate.normal, estimate.population)
    if asked < estimate.population:  # a share was asked: who they are is left to chance, too
        counts = rng.multivariate_hypergeometric(counts, asked, method="marginals")
    ends = np.cumsum(counts)
    for first in range(0, asked, CHUNK_ROWS):
        buckets = np.searchsorted(ends, np.arange(first, min(first + CHUNK_ROWS, asked)), side="right")
        yield rng.integers(estimate.cells[:-1][buckets], estimate.cells[1:][buckets]).astype(np.uint64)


def _whole(masses: Floats, people: int) -> NDArray[np.int64]:
    """So many people in proportion to the masses: the largest remainders are rounded up."""
    exact = masses * people
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: people - counts.sum()]] += 1
    return counts
