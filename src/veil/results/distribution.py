"""What comes out for a number: a histogram over buckets of the domain, and every question that it answers.

Numbers are in the domain's own units: dollars in, dollars out; times come back as times. Mass is spread evenly within a
bucket. Not here: how a distribution is reconstructed from reports (`veil.numeric`), and its bands (`veil.bootstrap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.entropy import Source, check_seed
from veil.errors import InputError, ParameterError
from veil.tools.arguments import is_int

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes

    from veil.results.bands import Bands

__all__ = ["Again", "Distribution", "Fit"]

Floats = NDArray[np.float64]
Again = Callable[[Iterable[NDArray[np.uint64]], Source], "Distribution"]
"""The whole way once more for other people: chunks of their codes and a source in, their distribution out."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fit:
    """How a reconstruction went."""

    iterations: int
    converged: bool
    log_likelihood: tuple[float, ...] = ()
    """The trace, at evenly spread steps; the last is that of the result."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """How a number is distributed among all people of the survey: `masses` of the buckets that start at `cells`.

    `cells` are the buckets' boundaries on the domain's grid, one more than there are masses. `n` is how many people
    answered, out of `population`.

    >>> from veil import Integers
    >>> ages = Distribution(Integers(18, 21), np.arange(5), np.array([0.1, 0.2, 0.3, 0.4]), n=1000, population=1000)
    >>> round(ages.cdf(19), 3), ages.quantile(0.5), round(ages.mean(), 3)
    (0.3, 20.0, 20.0)
    """

    domain: Numeric
    cells: NDArray[np.int64]
    masses: Floats
    n: int
    population: int
    effective: float | None = None
    """Of how many people without weights the reports are worth; n unless there were weights."""
    lineage: tuple[str, ...] = ()
    fit: Fit | None = None
    again: Again | None = field(default=None, repr=False)
    pilot: Callable[[], Floats] | None = field(default=None, repr=False)
    """The masses that bands draw made-up people from, where they are not these: before anything was smoothed away."""

    def __len__(self) -> int:
        return len(self.masses)

    def __repr__(self) -> str:
        return f"Distribution({len(self)} buckets from {self.n} people, {' > '.join(self.lineage)})"

    # -- the histogram ---------------------------------------------------------------------------------------------

    @property
    def histogram(self) -> Floats:
        """The fraction of people in each bucket."""
        return self.masses

    @cached_property
    def edges(self) -> Floats:
        """Where buckets begin and end, as numbers (times: seconds since 1970)."""
        return self.domain.edges(self.cells)

    @cached_property
    def values(self) -> list[Any]:
        """The middle of each bucket, as people write it."""
        return [self.domain.shown(float(middle)) for middle in self._middles]

    @property
    def _middles(self) -> Floats:
        return np.asarray((self.edges[:-1] + self.edges[1:]) / 2)

    @property
    def proper(self) -> bool:
        """Whether it is a probability distribution; hierarchies without further constraints have negative masses."""
        return bool((self.masses >= -_ROUNDING).all() and abs(self.masses.sum() - 1) < 1e-6)

    @property
    def _discrete(self) -> bool:
        return isinstance(self.domain, Integers)

    # -- questions -------------------------------------------------------------------------------------------------

    def cdf(self, x: Any) -> Any:
        """The fraction of people at or below x; an array for an array.

        Integers count in full: cdf(18) is everyone up to and including 18.
        """
        numbers, single = self._numbers(x)
        if self._discrete:
            numbers = np.floor(numbers) + 0.5
        found = np.interp(numbers, self.edges, self._cumulative, left=0.0)
        return float(found[0]) if single else found

    def quantile(self, q: Any) -> Any:
        """The value that a fraction q of the people does not exceed; an array for an array (times: a list)."""
        self._need_proper("quantiles")
        levels = _doubles(q, "a quantile's level lies between 0 and 1")
        if not levels.size or not ((levels >= 0) & (levels <= 1)).all():
            raise InputError("a quantile's level lies between 0 and 1")
        found = self.quantile_numbers(levels)
        shown = [self.domain.shown(float(number)) for number in found]
        if np.ndim(q) == 0:
            return shown[0]
        return found if isinstance(shown[0], float) else shown

    def range(self, lo: Any, hi: Any) -> float:
        """The fraction of people between lo and hi; of integers, both included."""
        low, high = (self._number(end) for end in (lo, hi))
        if not low <= high:
            raise InputError("a range goes from its smaller end to its larger one")
        if self._discrete:
            low, high = np.ceil(low) - 0.5, np.floor(high) + 0.5
        ends = np.interp([low, max(low, high)], self.edges, self._cumulative, left=0.0)
        return float(ends[1] - ends[0])

    def mean(self) -> Any:
        """The mean of what people hold."""
        return self.domain.shown(self.mean_number)

    def variance(self) -> float:
        """The variance of what people hold, in squared units (times: squared seconds)."""
        widths = np.diff(self.edges)
        # an even spread over a bucket of width w has variance w^2 / 12; over w neighbouring integers (w^2 - 1) / 12
        within = (widths**2 - (1 if self._discrete else 0)) / 12
        return float(self.masses @ ((self._middles - self.mean_number) ** 2 + within)) / self._total

    def std(self) -> float:
        """The standard deviation, in units (times: seconds)."""
        return float(np.sqrt(max(self.variance(), 0.0)))

    def sample(self, n: int, seed: int = 0) -> NDArray[Any]:
        """Made-up people who are distributed like this, as `encode` takes them; the same ones for the same seed."""
        self._need_proper("samples")
        if not is_int(n) or n < 1:
            raise ParameterError("sample(n) needs an integer n of at least 1")
        rng = np.random.default_rng(check_seed(seed))
        if self._discrete:
            chosen = rng.choice(len(self), n, p=self.normal)
            return np.asarray(self.domain.decode(rng.integers(self.cells[:-1][chosen], self.cells[1:][chosen])))
        return self.domain.values_of(self.quantile_numbers(rng.random(n)))

    # -- uncertainty, tables, pictures ----------------------------------------------------------------------------

    def bands(self, replicates: int = 200, seed: int = 0) -> Bands:
        """How far all of this may be off: a parametric bootstrap, by simulating reports; see `veil.bootstrap`.

        The same seed gives the same bands.
        """
        from veil.results.bands import Bands

        return Bands.drawn(self, replicates, seed)

    def to_arrow(self, bands: Bands | None = None) -> pyarrow.Table:
        """low, high, frequency, count and cumulative of every bucket, as an Arrow table; with bands where given."""
        import pyarrow as pa

        low, high = ([self.domain.shown(float(edge)) for edge in edges] for edges in (self.edges[:-1], self.edges[1:]))
        rows: dict[str, Any] = {
            "low": low,
            "high": high,
            "frequency": self.masses,
            "count": self.masses * self.population,
        }
        rows["cumulative"] = np.cumsum(self.masses)
        if bands is not None:
            rows["frequency_low"], rows["frequency_high"] = bands.histogram()
            ends = [self.domain.shown(float(edge)) for edge in self.edges[1:]]
            rows["cumulative_low"], rows["cumulative_high"] = bands.cdf(ends)
        return pa.table(rows)

    def to_pandas(self) -> pandas.DataFrame:
        """The same table for pandas."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def plot(self, *, truth: Any = None, bands: Bands | None = None, ax: Axes | None = None, **style: str) -> Axes:
        """The density, over the true histogram where it is known and within its bands. Needs `veil[plot]`.

        `style` is a `label` for the legend, a `color`.
        """
        from veil.plot import plot_distribution

        return plot_distribution(self, truth=truth, bands=bands, ax=ax, **style)

    # -- helpers ---------------------------------------------------------------------------------------------------

    @cached_property
    def _cumulative(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.masses)])

    @property
    def _total(self) -> float:
        return float(self.masses.sum())

    @property
    def mean_number(self) -> float:
        """The mean as a number (times: seconds since 1970)."""
        return float(self.masses @ self._middles) / self._total

    @property
    def normal(self) -> Floats:
        """The masses without negative ones, adding up to 1: what made-up people are drawn from."""
        kept = np.maximum(self.masses, 0.0)
        return np.asarray(kept / kept.sum())

    def _numbers(self, x: Any) -> tuple[Floats, bool]:
        single = np.ndim(x) == 0
        if not self._discrete:
            return self.domain.numbers([x] if single else x), single
        numbers = _doubles(x, "expected finite numbers")
        if not np.isfinite(numbers).all():
            raise InputError("expected finite numbers")
        return numbers, single

    def _number(self, x: Any) -> float:
        if np.ndim(x):
            raise InputError("a range has one lower and one upper end")
        return float(self._numbers(x)[0][0])

    def quantile_numbers(self, levels: Floats) -> Floats:
        """Where the cumulative distribution reaches these levels; of a stretch without people, its lower end."""
        cumulative = np.maximum.accumulate(self._cumulative)
        levels = levels * cumulative[-1]
        upper = np.clip(np.searchsorted(cumulative, levels, side="left"), 1, len(self))
        below, above = cumulative[upper - 1], cumulative[upper]
        share = np.divide(levels - below, above - below, out=np.zeros_like(levels), where=above > below)
        found = self.edges[upper - 1] + np.clip(share, 0.0, 1.0) * (self.edges[upper] - self.edges[upper - 1])
        return np.asarray(np.clip(np.ceil(found - 0.5 - _ROUNDING), *self.domain.ends)) if self._discrete else found

    def _need_proper(self, what: str) -> None:
        if not self.proper:
            raise InputError(
                f"this histogram has negative masses, or does not add up to 1: it has ranges, but no {what}"
            )


def _doubles(given: Any, expected: str) -> Floats:
    """Numbers in a row; one stands alone."""
    try:
        array = np.atleast_1d(np.asarray(given))
    except ValueError:
        raise InputError(expected) from None
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise InputError(expected)
    return array.astype(np.float64)
