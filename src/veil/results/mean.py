"""Means, variances and Haar coefficients: unbiased numbers with their errors.

A `Mean` is one number, and a `MeanAndVariance` two. `Coefficients` are differences within pairs of nodes, from a
mechanism that asks for the sign of a Haar coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, Numeric
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.laws import score_interval
from veil.results.units import Column, Unit, length_unit, make_table, number_unit, number_written, time_or_number
from veil.tools.numbers import two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

Facts = TypeVar("Facts")
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mean(Result):
    """The mean of what people hold, as a number of the domain (times: seconds since 1970; `shown` is the time).

    `stderr` comes from the scatter of the reports. That of the people themselves is part of it, so an interval speaks
    of everyone that these people are a random sample of; about these people alone it is a little too wide.
    """

    kind: ClassVar[str] = "mean"
    value: float
    stderr: float
    n: int
    domain: Numeric
    lineage: tuple[str, ...] = ()
    population: int = field(default=0, kw_only=True)
    """Of how many people the n are a part; n unless given."""
    least: tuple[float, float, float] | None = field(default=None, kw_only=True)
    """The standard error that there is at least if the true mean is the first, the middle or the last number."""
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", max(self.population, self.n))

    @property
    def shown(self) -> Any:
        """The mean as people write it."""
        return self.domain.shown(self.value)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the mean, as numbers; where `least` is known, within the domain.

        All means from which the found one is at most so many standard errors away, where these are what the reports'
        scatter says, and not below what they are at that mean at least: a few reports may agree by chance, and then say
        too little about their scatter.
        """
        reach = two_sided(level) * self.stderr
        low, high = self.value - reach, self.value + reach
        if self.least is None:
            return low, high
        first, last = self.domain.ends
        wide = last - first
        squares = [np.array([(error / wide) ** 2]) for error in self.least]
        score = score_interval(np.array([(self.value - first) / wide]), (squares[0], squares[1], squares[2]), level)
        low, high = min(low, first + float(score[0][0]) * wide), max(high, first + float(score[1][0]) * wide)
        return min(max(low, first), last), max(min(high, last), first)

    def columns(self, level: float = 0.95) -> dict[str, Column]:
        """mean, stderr, low and high, of one row."""
        unit, low_high = number_unit(self.domain), self.interval(level)
        value, low, high = (time_or_number(self.domain, number) for number in (self.value, *low_high))
        return {
            "mean": ([value], unit),
            "stderr": ([self.stderr], length_unit(self.domain)),
            "low": ([low], unit),
            "high": ([high], unit),
        }

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """mean, stderr, low and high: one row."""
        return make_table(self.columns(level))

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The same; times as text in ISO 8601, null where no calendar has them."""
        value, low, high = (number_written(self.domain, number) for number in (self.value, *self.interval(level)))
        return {"mean": value, "stderr": self.stderr, "low": low, "high": high}

    def fact_units(self) -> Mapping[str, Unit]:
        return {name: unit for name, (_, unit) in self.columns().items()}

    def remarks(self) -> list[str]:
        if None not in self.facts().values():
            return []
        return ["The mean or an end of its interval lies beyond the calendar: estimates are never clipped."]

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the mean with its 95 % interval, beside the true mean where it is given. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_mean

        return plot_mean(self, truth=truth, ax=ax, **style)


@dataclass(frozen=True, eq=False)
class MeanAndVariance(Result):
    """A mean from one half of the people, and from the other half the mean of squared distances to it."""

    kind: ClassVar[str] = "mean-and-variance"
    mean: Mean
    variance: Mean
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    @property
    def n(self) -> int:
        """Each person answered one of the two questions."""
        return self.mean.n + self.variance.n

    @property
    def population(self) -> int:
        return max(self.mean.population, self.variance.population, self.n)

    @property
    def lineage(self) -> tuple[str, ...]:
        return self.mean.lineage

    @property
    def std(self) -> float:
        """The square root of the variance; 0 where its estimate, which is never clipped, is negative."""
        return math.sqrt(max(self.variance.value, 0.0))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """The mean, its stderr, low and high, then the same of the variance: one row."""
        return make_table(self._columns(level))

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The same, and the standard deviation."""
        means, variances = self.mean.facts(level), self.variance.facts(level)
        return {**_prefixed("mean", means), **_prefixed("variance", variances), "std": self.std}

    def fact_units(self) -> Mapping[str, Unit]:
        columns = self._columns(0.95)
        return {**{name: unit for name, (_, unit) in columns.items()}, "std": length_unit(self.mean.domain)}

    def remarks(self) -> list[str]:
        negative = ["The variance is negative: estimates are never clipped."] if self.variance.value < 0 else []
        return [*self.mean.remarks(), *negative]

    def _columns(self, level: float) -> dict[str, Column]:
        squares: dict[str, Column] = {
            name: (cells, Unit("length")) for name, (cells, _) in self.variance.columns(level).items()
        }
        return {**_prefixed("mean", self.mean.columns(level)), **_prefixed("variance", squares)}

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The mean as a point with its 95 % interval. Needs `veil-ldp[plot]`."""
        return self.mean.plot(truth=truth, ax=ax, **style)


@dataclass(frozen=True, eq=False)
class Coefficients(Result):
    """For each pair (2 a, 2 a + 1) of the domain's codes, the frequency of the left less that of the right one.

    A last code that has no partner stands alone: its difference is its frequency. `n` people answered, out of
    `population`; `effective` is n, or with weights W^2 / sum of squares; `moment` is the square of what one report
    adds, the same for every report and pair.
    """

    kind: ClassVar[str] = "differences"
    domain: Domain
    differences: Floats
    n: int
    population: int
    effective: float
    moment: float
    lineage: tuple[str, ...] = ()
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.differences)

    def __repr__(self) -> str:
        return f"Coefficients({len(self)} pairs from {self.n} reports, {' > '.join(self.lineage)})"

    @property
    def variance(self) -> Floats:
        """(moment - c^2) / n: exact for n people drawn at random from a large population, so that a share's sampling
        is part of it; about these people alone it is a little too large.
        """
        return np.asarray((self.moment - np.minimum(self.differences**2, self.moment)) / self.effective)

    @property
    def stderr(self) -> Floats:
        """Standard error of each difference."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> Floats:
        """A confidence interval for each difference: an array of (low, high)."""
        reach = two_sided(level) * self.stderr
        return np.stack([self.differences - reach, self.differences + reach], axis=1)

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """pair, difference (left less right), stderr, low and high."""
        low, high = self.interval(level).T
        numbers = {"difference": self.differences, "stderr": self.stderr, "low": low, "high": high}
        shares = {name: (column, Unit("share")) for name, column in numbers.items()}
        return make_table({"pair": (np.arange(len(self)), Unit("count")), **shares})

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many pairs there are."""
        return {"pairs": len(self)}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"pairs": Unit("people")}

    def _importance(self) -> NDArray[np.int64]:
        return np.argsort(-np.abs(self.differences), kind="stable")

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The k largest differences, either way, with 95 % intervals. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)


def _prefixed(name: str, facts: Mapping[str, Facts]) -> dict[str, Facts]:
    """A mean's columns or facts under another name: variance, variance_stderr, variance_low, variance_high."""
    return {name if key == "mean" else f"{name}_{key}": fact for key, fact in facts.items()}
