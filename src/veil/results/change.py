"""Changes between two results of the same question: two months, two groups, two mechanisms.

Every change is after less before, with an interval and a test. The intervals are about the people who answered, as
those of the two results are: they include no sampling, so it does not matter whether the same people answered twice.
The tests take the people of each side as a random sample of a large population: a significant change exceeds the luck
of who was asked. For the same people asked twice they are conservative if most people keep their value, which is the
usual case; they are too liberal only if people trade places more than at random.

Both assume independent randomness: every answer is drawn anew. Where a device keeps its draw (a longitudinal
mechanism), two months share noise, their difference scatters less, and everything here is conservative.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import MismatchError
from veil.privacy import Guarantee
from veil.results.base import Result, Truth, with_picked
from veil.results.change_tests import (
    adjusted_p_values,
    frequency_p_values,
    frequency_reach,
    normal_p_value,
    reach_of,
    square_and_add,
)
from veil.results.estimate import Estimate
from veil.results.mean import Mean
from veil.results.units import Column, Unit, length_unit, make_table, number_unit, time_or_number, value_unit
from veil.tools.numbers import alpha_of, selected_level

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Change(Result):
    """The difference between two results of the same question: after less before."""

    after: Result
    before: Result
    tested: int = field(default=0, kw_only=True)
    """How many differences were tested together; as many as there are rows unless given."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tested", max(self.tested, len(self)))

    @abstractmethod
    def changed(self, level: float = 0.95) -> NDArray[np.bool_] | None:
        """Which rows changed. With probability `level` or more, none of those that did not change is among them."""

    @property
    def n(self) -> int:
        """How many answers are compared, of both sides together; the same people may have given two."""
        return self.after.n + self.before.n

    @property
    def population(self) -> int:
        return self.after.population + self.before.population

    def answered(self) -> str:
        """Who answered each time: added up, people who were asked twice would count as two."""
        return f"{self.before.answered()} before, {self.after.answered()} after"

    @property
    def lineage(self) -> tuple[str, ...]:
        after, before = self.after, self.before
        return (
            (*after.lineage, "difference")
            if after.lineage == before.lineage
            else (" > ".join(after.lineage), f"less {' > '.join(before.lineage)}")
        )

    @property
    def guarantee(self) -> Guarantee | None:
        """What each answer promised, where both sides promised the same."""
        after, before = self.after, self.before
        return after.guarantee if after.guarantee == before.guarantee else None

    def _people(self) -> dict[str, int]:
        after, before = self.after, self.before
        return {"people_after": after.n, "people_before": before.n}

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The k clearest differences with 95 % intervals, beside no change at all. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_change

        return plot_change(self, k, truth=truth, ax=ax, **style)


@dataclass(frozen=True, eq=False)
class FrequencyChange(Change):
    """By how much the frequency of each value changed; see this module's docstring for what is claimed.

    Of processed estimates, the unbiased ones that they were made from are compared. The sides may have been asked with
    different mechanisms, eps or numbers of people, as long as domain and candidates are the same.

    >>> from veil import OLH, simulate
    >>> march, april = (simulate(OLH(3.0, ["tea", "coffee"]), ["tea"] * t + ["coffee"] * (4000 - t), seed=t)
    ...                 for t in (1000, 2400))
    >>> change = april.difference(march)
    >>> change["tea"].changed, round(change["tea"].low, 2), round(change["tea"].high, 2)
    (True, 0.31, 0.38)
    """

    kind: ClassVar[str] = "frequency-change"
    after: Estimate
    before: Estimate

    @classmethod
    def of(cls, after: Estimate, before: Estimate) -> FrequencyChange:
        """The change between two estimates of the same values, in whatever order each has them."""
        after, before = after._judged, before._judged
        check_same(after.domain == before.domain, "frequencies over the same domain")
        for side in (after, before):
            side.noise.variance(0.0)  # refuses a noise of which no law is known
        before = _ordered_like(after, before)
        return cls(after, before, tested=max(after.tested or 0, before.tested or 0))

    def __len__(self) -> int:
        return len(self.after)

    def __repr__(self) -> str:
        return f"FrequencyChange({len(self)} values, {self.after.n} reports less {self.before.n})"

    @property
    def values(self) -> list[Any]:
        """The values' labels, in the order of `differences`."""
        return self.after.values

    @property
    def differences(self) -> Floats:
        """After less before, unbiased and not clipped."""
        return np.asarray(self.after.frequencies - self.before.frequencies)

    def interval(self, level: float = 0.95) -> Floats:
        """A confidence interval for each difference, within -1 to 1: an array of (low, high).

        About the people who answered: see `veil.results.change_tests.square_and_add`.
        """
        return np.stack(square_and_add(*(frequency_reach(side, level) for side in (self.after, self.before))), axis=1)

    @cached_property
    def p_values(self) -> Floats:
        """The p-value of each difference: see `veil.results.change_tests.frequency_p_values`."""
        return frequency_p_values(self.after, self.before)

    @property
    def adjusted_p_values(self) -> Floats:
        """The same for all that was tested together (Holm): at most 1 - level is changed at that level."""
        return adjusted_p_values(self.p_values, self.tested)

    def changed(self, level: float = 0.95) -> NDArray[np.bool_]:
        return np.asarray(self.adjusted_p_values <= alpha_of(level))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """value, before, after, difference, low, high, p_value, and `changed` family-wise for 1 - level."""
        low, high = self.interval(level).T
        shares = {
            "before": self.before.frequencies,
            "after": self.after.frequencies,
            "difference": self.differences,
            "low": low,
            "high": high,
        }
        return make_table(
            {
                "value": (self.values, value_unit(self.after.domain)),
                **{name: (column, Unit("share")) for name, column in shares.items()},
                "p_value": (self.p_values, Unit("probability")),
                "changed": (self.changed(level), Unit("flag")),
            }
        )

    def summary_table(self, level: float = 0.95, rows: int = 10, truth: Truth | None = None) -> pyarrow.Table:
        """The most surprising rows; where they are picked out of more, low and high hold for what was picked."""
        table = super().summary_table(level, rows, truth)
        if rows >= len(self):
            return table
        surely = max(sum(table["changed"].to_pylist()), 1)  # those that are left where others are hidden
        ends = self.interval(selected_level(level, surely, self.tested))[self._importance()[:rows]]
        return with_picked(table, ends[:, 0], ends[:, 1])

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many values changed, and the smallest adjusted p-value: whether anything changed at all."""
        smallest = float(self.adjusted_p_values.min()) if len(self) else None
        counts = {"values": len(self), "tested": self.tested, "changed": int(self.changed(level).sum())}
        return {**counts, "smallest_adjusted_p_value": smallest, **self._people()}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"smallest_adjusted_p_value": Unit("probability")}

    def remarks(self) -> list[str]:
        return [
            "Intervals speak of the people who answered. A value is called changed where the difference is also more"
            " than the luck of who was asked, over all values together."
        ]

    def _importance(self) -> NDArray[np.int64]:
        return np.lexsort((-np.abs(self.differences), self.p_values))


@dataclass(frozen=True, eq=False)
class MeanChange(Change):
    """By how much a mean changed, in the domain's units (times: seconds).

    The standard errors of means hold the scatter of the people, so interval and test speak of everyone that these
    people are a random sample of; about these people alone they are a little too careful.

    >>> from veil import Interval
    >>> from veil.results import Mean
    >>> march, april = (Mean(value, 1.0, n=1000, domain=Interval(0, 100)) for value in (40.0, 45.0))
    >>> change = april.difference(march)
    >>> [round(end, 2) for end in change.interval()], round(change.p_value, 5)
    ([2.23, 7.77], 0.00041)
    """

    kind: ClassVar[str] = "mean-change"
    after: Mean
    before: Mean

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return f"MeanChange({self.difference_number:g}, {self.after.n} reports less {self.before.n})"

    @property
    def difference_number(self) -> float:
        """The mean after less the mean before (times: seconds)."""
        return self.after.value - self.before.value

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the difference."""
        sides = [reach_of(side.value, side.interval(level)) for side in (self.after, self.before)]
        low, high = square_and_add(*sides)
        return float(low[0]), float(high[0])

    @property
    def p_value(self) -> float:
        """How surprising the difference is if the mean did not change; by the normal distribution."""
        stderr = np.hypot(self.after.stderr, self.before.stderr)
        return float(normal_p_value(np.array([self.difference_number]), np.array([stderr]))[0])

    def changed(self, level: float = 0.95) -> NDArray[np.bool_]:
        return adjusted_p_values(np.array([self.p_value]), self.tested) <= alpha_of(level)

    def _columns(self, level: float) -> dict[str, Column]:
        domain = self.after.domain
        low, high = self.interval(level)
        number, length = number_unit(domain), length_unit(domain)
        return {
            "before": ([time_or_number(domain, self.before.value)], number),
            "after": ([time_or_number(domain, self.after.value)], number),
            "difference": ([self.difference_number], length),
            "low": ([low], length),
            "high": ([high], length),
            "p_value": ([self.p_value], Unit("probability")),
            "changed": (self.changed(level), Unit("flag")),
        }

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """before, after, difference, low, high, p_value and changed: one row."""
        return make_table(self._columns(level))

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The same; times as text in ISO 8601."""
        sides = {name: side.facts(level)["mean"] for name, side in (("before", self.before), ("after", self.after))}
        low, high = self.interval(level)
        test = {"p_value": self.p_value, "changed": bool(self.changed(level)[0]), "tested": self.tested}
        return {**sides, "difference": self.difference_number, "low": low, "high": high, **test, **self._people()}

    def fact_units(self) -> Mapping[str, Unit]:
        return {name: unit for name, (_, unit) in self._columns(0.95).items()}


def check_same(same: bool, what: str) -> None:
    """Refuse to compare what cannot be compared."""
    if not same:
        raise MismatchError(f"a difference is taken between results of the same question: expected {what}")


def _ordered_like(after: Estimate, before: Estimate) -> Estimate:
    """The estimate before, with its candidates in the order of those after."""
    mine, others = (
        np.arange(len(side), dtype=np.uint64) if side.candidates is None else side.candidates
        for side in (after, before)
    )
    if mine.shape == others.shape and np.array_equal(mine, others):
        return before
    where = {code.tobytes(): i for i, code in enumerate(others)}
    order = [where.get(code.tobytes(), -1) for code in mine]
    check_same(len(mine) == len(others) and mine.dtype == others.dtype and -1 not in order, "the same candidates")
    return replace(before, frequencies=before.frequencies[order], candidates=others[order])
