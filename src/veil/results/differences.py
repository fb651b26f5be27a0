"""The difference between two results of the same question, and the change of a distribution.

`difference` takes any two results of the same kind. A `DistributionChange` has the changes of the share of people in
ranges, of the mean, and of quantiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.results.answers import Answers
from veil.results.bands.base import Bands
from veil.results.bands.free import FreeBands
from veil.results.base import Result
from veil.results.change import Change, FrequencyChange, MeanChange, check_same
from veil.results.change_tests import reach_of, square_and_add
from veil.results.distribution import QUANTILES, Distribution
from veil.results.estimate import Estimate
from veil.results.mean import Mean, MeanAndVariance
from veil.results.units import Column, Unit, length_unit, make_table, number_unit
from veil.tools.numbers import alpha_of

if TYPE_CHECKING:
    import pyarrow


Floats = NDArray[np.float64]

_RANGES = 16
"""In how many ranges two distributions are compared."""


@dataclass(frozen=True, eq=False)
class DistributionChange(Change):
    """By how much a distribution changed: the share of people in up to 16 ranges, the mean and quantiles.

    Intervals are made of the two distributions' bands and rest on what those rest on. A range is called changed where
    its interval at level 1 - (1 - level) / ranges leaves out no change (Bonferroni).
    """

    kind: ClassVar[str] = "distribution-change"
    after: Distribution
    before: Distribution

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def __repr__(self) -> str:
        return f"DistributionChange({len(self)} ranges, {self.after.n} reports less {self.before.n})"

    @cached_property
    def _cuts(self) -> NDArray[np.int64]:
        """Cells of the grid where ranges begin and end: boundaries of buckets on both sides, evenly chosen."""
        shared = np.intersect1d(self.after.cells, self.before.cells)
        ranges = min(_RANGES, len(shared) - 1)
        return np.asarray(shared[np.arange(ranges + 1) * (len(shared) - 1) // ranges])

    @property
    def known(self) -> bool:
        """Whether both sides have bands, so that differences have intervals."""
        return all(side.bands is not None for side in (self.after, self.before))

    @property
    def differences(self) -> Floats:
        """The share of people in each range, after less before."""
        after, before = (self._masses(side) for side in (self.after, self.before))
        return after - before

    def interval(self, level: float = 0.95) -> Floats:
        """A confidence interval for each range's difference: an array of (low, high)."""
        return self._between(self._masses, lambda side, sure: _bands(side).runs(self._starts(side), sure), level)

    def cdf_interval(self, level: float = 0.95) -> Floats:
        """The same for the share of people up to the end of each range."""
        domain = self.after.domain
        ends = domain.values_of(domain.edges(self._cuts)[1:] - (0.5 if self.after._discrete else 0.0))
        return self._between(
            lambda side: np.cumsum(self._masses(side)), lambda side, sure: _bands(side).cdf(ends, sure), level
        )

    def mean_interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the difference of the means, as numbers (times: seconds)."""
        ((low, high),) = self._between(
            lambda side: side.mean_number, lambda side, sure: _bands(side).mean_numbers(sure), level
        )
        return float(low), float(high)

    def quantile_interval(self, q: float, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the difference of the values that a fraction q does not exceed, as numbers."""
        ((low, high),) = self._between(
            lambda side: _quantile(side, q), lambda side, sure: _bands(side).quantile_numbers(q, sure), level
        )
        return float(low), float(high)

    def _between(
        self,
        found: Callable[[Distribution], Any],
        ends: Callable[[Distribution, float], tuple[Any, Any]],
        level: float,
    ) -> Floats:
        """Intervals of differences, from those of both sides.

        Bands that assume nothing are bounds on what reports cannot tell: such doubts are not independent noise that
        adds up in squares. Each side's bound then holds at level 1 - (1 - level) / 2, and the difference lies between
        the outermost.
        """
        if any(isinstance(side.bands, FreeBands) for side in (self.after, self.before)):
            sure = 1 - (1 - level) / 2
            after, before = (reach_of(found(side), ends(side, sure)) for side in (self.after, self.before))
            return np.stack([after.low - before.high, after.high - before.low], axis=1)
        after, before = (reach_of(found(side), ends(side, level)) for side in (self.after, self.before))
        return np.stack(square_and_add(after, before), axis=1)

    def changed(self, level: float = 0.95) -> NDArray[np.bool_] | None:
        """Which ranges changed, family-wise; None where there are no bands."""
        return self._leaves_out(level) if self.known else None

    def _leaves_out(self, level: float) -> NDArray[np.bool_]:
        low, high = self.interval(1 - alpha_of(level) / self.tested).T
        return np.asarray((low > 0) | (high < 0))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """from, to, before, after, difference, low, high, changed; cumulative for all people up to `to`."""
        share, after = Unit("share"), self.after
        own = replace(after, cells=self._cuts, masses=self._masses(after), bands=None).columns(level)
        columns: dict[str, Column] = {"from": own["from"], "to": own["to"]}
        columns |= {"before": (self._masses(self.before), share), "after": (self._masses(after), share)}
        columns["difference"] = (self.differences, share)
        if self.known:
            low, high = self.interval(level).T
            columns |= {"low": (low, share), "high": (high, share)}
            columns["changed"] = (self._leaves_out(level), Unit("flag"))
        columns["cumulative"] = (np.cumsum(self.differences), share)
        if self.known:
            low, high = self.cdf_interval(level).T
            columns |= {"cumulative_low": (low, share), "cumulative_high": (high, share)}
        return make_table(columns)

    def summary_table(self, level: float = 0.95, rows: int = _RANGES, truth: Any = None) -> pyarrow.Table:
        return super().summary_table(level, max(rows, _RANGES), truth)

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many ranges changed, the change of the mean, and that of quantiles where both sides have them."""
        flags = self.changed(level)
        facts: dict[str, Any] = {"ranges": len(self), "tested": self.tested}
        facts["changed"] = None if flags is None else int(flags.sum())
        facts["mean_difference"] = self.after.mean_number - self.before.mean_number
        if self.known:
            facts |= dict(zip(("mean_difference_low", "mean_difference_high"), self.mean_interval(level), strict=True))
        quantiles = []
        for q in QUANTILES if all(side.proper for side in (self.after, self.before)) else ():
            after, before = (_quantile(side, q) for side in (self.after, self.before))
            quantile = {"level": q, "before": self.before._written(before), "after": self.after._written(after)}
            quantile["difference"] = after - before
            if self.known:
                quantile |= dict(zip(("low", "high"), self.quantile_interval(q, level), strict=True))
            quantiles.append(quantile)
        return {**facts, "quantiles": quantiles, **self._people()}

    def fact_units(self) -> Mapping[str, Unit]:
        number, length = number_unit(self.after.domain), length_unit(self.after.domain)
        units = {f"mean_difference{end}": length for end in ("", "_low", "_high")}
        units |= {f"quantiles.{name}": length for name in ("difference", "low", "high")}
        return units | {"quantiles.level": Unit("share"), "quantiles.before": number, "quantiles.after": number}

    def remarks(self) -> list[str]:
        if not self.known:
            return ["The distributions have no bands: nothing is known about the error of their difference."]
        after, before = _bands(self.after).rests_on, _bands(self.before).rests_on
        return [after] if after == before else [f"After: {after}", f"Before: {before}"]

    def _starts(self, side: Distribution) -> NDArray[np.int64]:
        return np.searchsorted(side.cells, self._cuts[:-1])

    def _masses(self, side: Distribution) -> Floats:
        return np.add.reduceat(side.masses, self._starts(side))


def _bands(side: Distribution) -> Bands:
    if side.bands is None:
        raise InputError("these distributions have no bands: nothing is known about the error of their difference")
    return side.bands


def _quantile(side: Distribution, q: float) -> float:
    return float(side.quantile_numbers(np.array([q]))[0])


def difference(after: Result, before: Result) -> Result:
    """What `after.difference(before)` returns: a change, or one for each question that both sides answered."""
    if isinstance(after, Answers) and isinstance(before, Answers):
        return _by_question(after, before)
    if isinstance(after, MeanAndVariance) and isinstance(before, MeanAndVariance):
        return _together({0: difference(after.mean, before.mean), 1: difference(after.variance, before.variance)})
    if isinstance(after, Estimate) and isinstance(before, Estimate):
        return FrequencyChange.of(after, before)
    if isinstance(after, Mean) and isinstance(before, Mean):
        check_same(after.domain == before.domain, "two means of the same range")
        return MeanChange(after, before)
    if isinstance(after, Distribution) and isinstance(before, Distribution):
        check_same(after.domain == before.domain, "two distributions over the same range, in the same cells")
        return DistributionChange(after, before)
    raise InputError(
        "differences are taken between two results of one kind: frequencies, means, distributions, or answers to the"
        f" same questions; not between {after.kind} and {before.kind}"
    )


def _by_question(after: Answers, before: Answers) -> Answers:
    mine, others = (dict(zip(side.questions, side.results, strict=True)) for side in (after, before))
    shared = [number for number in mine if number in others]
    check_same(bool(shared), "answers to the same questions")
    return _together({number: difference(mine[number], others[number]) for number in shared})


def _together(changes: Mapping[int, Result]) -> Answers:
    """One family: what one question calls changed allows for the tests of all."""
    tested = sum(change.tested for change in changes.values() if isinstance(change, Change))
    parts = [replace(change, tested=tested) if isinstance(change, Change) else change for change in changes.values()]
    return Answers(tuple(parts), tuple(changes), n=max(part.n for part in parts))
