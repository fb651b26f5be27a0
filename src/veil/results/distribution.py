"""The distribution of a number: a histogram over buckets of the domain, with ranges, quantiles and the mean.

Numbers are in the units of the domain, and times are times. Mass is spread evenly within a bucket. `veil.numeric`
reconstructs distributions from reports and draws their bands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.entropy import check_seed
from veil.errors import InputError, ParameterError
from veil.privacy import Guarantee
from veil.results.bands.base import Bands
from veil.results.base import Result, Truth, true_shares, with_truth
from veil.results.units import Column, Unit, length_unit, make_table, number_unit, number_written
from veil.tools.numbers import is_int

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Which quantiles stand among a distribution's facts."""

_ROUNDING = 1e-9
_RANGES = 16
_FEW = 1_000


@dataclass(frozen=True)
class Fit:
    """How a reconstruction went."""

    iterations: int
    converged: bool
    log_likelihood: tuple[float, ...] = ()
    """The trace, at evenly spread steps; the last is that of the result."""
    share: float | None = None
    """What smoothing gave to each neighbour in a step, where the reconstruction was EM's; 0 is none."""
    penalty: float | None = None
    """What spikes beside the smooth part cost, in people; None has no spikes."""


@dataclass(frozen=True, eq=False)
class Distribution(Result):
    """How a number is distributed among all people of the survey: `masses` of the buckets that start at `cells`.

    `cells` are the buckets' boundaries on the domain's grid, one more than there are masses. `n` is how many people
    answered, out of `population`.

    >>> from veil import Integers
    >>> ages = Distribution(Integers(18, 21), np.arange(5), np.array([0.1, 0.2, 0.3, 0.4]), n=1000, population=1000)
    >>> round(ages.cdf(19), 3), ages.quantile(0.5), round(ages.mean(), 3)
    (0.3, 20.0, 20.0)
    """

    kind: ClassVar[str] = "distribution"
    domain: Numeric
    cells: NDArray[np.int64]
    masses: Floats
    n: int
    population: int
    effective: float | None = None
    """Of how many people without weights the reports are worth; n unless there were weights."""
    lineage: tuple[str, ...] = ()
    fit: Fit | None = None
    bands: Bands | None = field(default=None, repr=False)
    """How far all of this may be off, where that is known, and what that rests on."""
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.masses)

    def __repr__(self) -> str:
        return f"Distribution({len(self)} buckets from {self.n} reports, {' > '.join(self.lineage)})"

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
        found = np.interp(self.cdf_numbers(x), self.edges, self._cumulative, left=0.0)
        return float(found[0]) if np.ndim(x) == 0 else found

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
        ends = np.interp(self.range_numbers(lo, hi), self.edges, self._cumulative, left=0.0)
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

    # -- tables, facts, pictures -------------------------------------------------------------------------------------

    def columns(self, level: float = 0.95, starts: NDArray[np.int64] | None = None) -> dict[str, Column]:
        """from, to, frequency and count of every bucket, or of runs of buckets that start there; with bands, low, high.

        Of integers, both ends are included.
        """
        first = np.arange(len(self)) if starts is None else starts
        inner, share, unit = 0.5 if self._discrete else 0.0, Unit("share"), number_unit(self.domain)
        lows, highs = self.edges[first] + inner, self.edges[np.append(first[1:], len(self))] - inner
        masses = np.add.reduceat(self.masses, first)
        columns: dict[str, Column] = {
            "from": (self._shown(lows), unit),
            "to": (self._shown(highs), unit),
            "frequency": (masses, share),
            "count": (masses * self.population, Unit("people")),
        }
        if self.bands is not None:
            low, high = self.bands.runs(first, level)
            columns |= {"low": (low, share), "high": (high, share)}
        return columns

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """from, to, frequency, count and cumulative of every bucket; with low and high where bands are known."""
        columns, share = self.columns(level), Unit("share")
        columns["cumulative"] = (np.cumsum(self.masses), share)
        if self.bands is not None:
            low, high = self.bands.cdf(self.domain.values_of(self.edges[1:] - (0.5 if self._discrete else 0.0)), level)
            columns |= {"cumulative_low": (low, share), "cumulative_high": (high, share)}
        return make_table(columns)

    def summary_table(self, level: float = 0.95, rows: int = _RANGES, truth: Truth | None = None) -> pyarrow.Table:
        """At most 16 ranges (more where more rows are asked for), each of as many buckets, but for the last."""
        together = -(-len(self) // max(rows, _RANGES))
        starts = np.arange(0, len(self), together)
        table = make_table(self.columns(level, starts))
        if truth is None:
            return table
        return with_truth(table, np.add.reduceat(true_shares(self.table(level), truth), starts))

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """Mean, standard deviation, quantiles and how the reconstruction went; with low and high where bands are known.

        There is no standard deviation and no quantile where masses are negative.
        """
        bands, proper, fit = self.bands, self.proper, self.fit
        facts: dict[str, Any] = {"buckets": len(self), "proper": proper, "mean": self._written(self.mean_number)}
        if bands is not None:
            facts |= _ends("mean_", map(self._written, bands.mean_numbers(level)))
        facts["std"] = self.std() if proper else None
        if bands is not None and proper:
            facts |= _ends("std_", bands.std(level))
        numbers = self.quantile_numbers(np.array(QUANTILES)) if proper else np.empty(0)
        quantiles = [
            {"level": q, "value": self._written(number)} for q, number in zip(QUANTILES, numbers, strict=False)
        ]
        if bands is not None:
            for quantile in quantiles:
                quantile |= _ends("", map(self._written, bands.quantile_numbers(quantile["level"], level)))
        facts |= {"quantiles": quantiles, "replicates": None if bands is None else bands.simulated}
        facts["rests_on"] = None if bands is None else bands.rests_on
        steps = {"iterations": None, "converged": None}
        return {**facts, **(steps if fit is None else {"iterations": fit.iterations, "converged": fit.converged})}

    def fact_units(self) -> Mapping[str, Unit]:
        count, number, length = Unit("people"), number_unit(self.domain), length_unit(self.domain)
        units = dict.fromkeys(("buckets", "iterations", "replicates"), count)
        units |= {f"mean{end}": number for end in ("", "_low", "_high")}
        units |= {f"std{end}": length for end in ("", "_low", "_high")}
        units |= {f"quantiles.{name}": number for name in ("value", "low", "high")}
        return units | {"quantiles.level": Unit("share"), "proper": Unit("flag"), "converged": Unit("flag")}

    def remarks(self) -> list[str]:
        said = []
        if not self.proper:
            said.append("Some masses are negative: the mean and ranges hold, there are no quantiles.")
        if self.fit is not None and not self.fit.converged:
            said.append(f"The reconstruction did not converge within {self.fit.iterations:,} iterations.")
        if self.n < _FEW:
            said.append(f"Only {self.n:,} reports: the shape of a distribution needs some thousands.")
        if self.bands is not None:
            said.append(self.bands.rests_on)
        return said

    def _place(self, value: Any) -> int:
        return int(np.searchsorted(self.cells, int(self.domain.encode([value])[0]), side="right")) - 1

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The density, over the true histogram where it is known and within its bands. Needs `veil-ldp[plot]`.

        `style` is a `label` for the legend, a `color`.
        """
        from veil.results.render.plot import plot_distribution

        return plot_distribution(self, truth=truth, ax=ax, **style)

    def plot_height(self, k: int = 20) -> float:
        return 4.0

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _shown(self, numbers: Floats) -> list[Any] | Floats | NDArray[np.int64]:
        """Numbers as cells of a table: whole ones as integers, times as times."""
        if self._discrete:
            return numbers.astype(np.int64)
        return [self.domain.shown(float(x)) for x in numbers] if number_unit(self.domain).name == "time" else numbers

    def _written(self, number: float) -> float | str | None:
        return number_written(self.domain, float(number))

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

    def cdf_numbers(self, x: Any) -> Floats:
        """Up to which numbers cdf(x) counts: of integers, x itself is counted in full."""
        numbers = self.numbers_of(x)
        return np.floor(numbers) + 0.5 if self._discrete else numbers

    def range_numbers(self, lo: Any, hi: Any) -> tuple[float, float]:
        """From where to where range(lo, hi) counts: of integers, both ends in full."""
        if np.ndim(lo) or np.ndim(hi):
            raise InputError("a range has one lower and one upper end")
        low, high = (float(self.numbers_of(end)[0]) for end in (lo, hi))
        if not low <= high:
            raise InputError("a range goes from its smaller end to its larger one")
        if self._discrete:
            low, high = float(np.ceil(low)) - 0.5, float(np.floor(high)) + 0.5
        return low, max(low, high)

    def numbers_of(self, x: Any) -> Floats:
        """What is asked for as numbers (times: seconds since 1970)."""
        if not self._discrete:
            return self.domain.numbers([x] if np.ndim(x) == 0 else x)
        numbers = _doubles(x, "expected finite numbers")
        if not np.isfinite(numbers).all():
            raise InputError("expected finite numbers")
        return numbers

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


def _ends(prefix: str, ends: Iterable[Any]) -> dict[str, Any]:
    low, high = ends
    return {f"{prefix}low": low, f"{prefix}high": high}


def _doubles(given: Any, expected: str) -> Floats:
    """Numbers in a row; one stands alone."""
    try:
        array = np.atleast_1d(np.asarray(given))
    except ValueError:
        raise InputError(expected) from None
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise InputError(expected)
    return array.astype(np.float64)
