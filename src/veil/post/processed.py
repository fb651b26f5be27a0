"""Estimates after post-processing, with their lineage and their error.

A biased method has no valid standard error, so none is shown. The interval of the unbiased estimate remains valid: it
is shown instead, cut to possible frequencies and stretched to the shown frequency. It covers the truth at least as
often as the unbiased one does, for every method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain
from veil.errors import InputError, ParameterError
from veil.post.priors import Prior
from veil.results.estimate import Estimate, Row, Total
from veil.results.laws import Inversion

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProcessedTotal:
    """The frequency of a set of values after post-processing, and its unbiased estimate."""

    frequency: float
    unbiased: Total
    most: float = 1.0  # items in sets may be held more than once per person

    @property
    def stderr(self) -> float:
        """Refused, as for single values."""
        raise InputError("a total after a biased step has no standard error; interval() is honest")

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval of the unbiased total, cut to what it can be and stretched to the shown frequency."""
        low, high = np.clip(self.unbiased.interval(level), 0.0, self.most)
        return min(float(low), self.frequency), max(float(high), self.frequency)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProcessedEstimate(Estimate):
    """Frequencies after post-processing. `raw` is the unbiased estimate that they were made from."""

    variant: ClassVar[str] = "processed"
    raw: Estimate
    step: str
    """The last method that was applied."""

    @classmethod
    def of_estimate(cls, estimate: Estimate, frequencies: Floats, step: str, **more: Any) -> ProcessedEstimate:
        """The same people and noise with other frequencies, after one more step."""
        raw = estimate.raw if isinstance(estimate, ProcessedEstimate) else estimate
        return cls(
            domain=raw.domain,
            frequencies=frequencies,
            n=raw.n,
            noise=raw.noise,
            population=raw.population,
            mass=raw.mass,
            effective=raw.effective,
            scale=raw.scale,
            candidates=raw.candidates,
            lineage=(*estimate.lineage, step),
            whole=raw.whole,
            tested=raw.tested,
            guarantee=raw.guarantee,
            fakes=raw.fakes,
            raw=raw,
            step=step,
            **more,
        )

    @cached_property
    def unbiased(self) -> Estimate:
        """What intervals are made of: the raw estimate, normed where the true frequencies add up to one."""
        return NormedEstimate.of_raw(self.raw, 1.0) if self.raw.adds_up else self.raw

    @cached_property
    def variance(self) -> Floats:
        """Refused: the variance of a biased frequency is not its error."""
        if not self.noise.known:
            return self.raw.variance  # which says why there is none
        raise InputError(f"{self.step} is biased and has no standard error; interval() is honest, .raw is unbiased")

    def interval(self, level: float = 0.95, kind: Inversion = "mid-p") -> Floats:
        """A confidence interval for each frequency: the unbiased one, within [0, 1], stretched to the shown frequency.

        It covers at least as often as the unbiased one. Without a prior nothing narrower is true of a single value.
        """
        return self._around(self.shown, self.raw.interval(level, kind))

    def _around(self, shown: Floats, bounds: Floats) -> Floats:
        return np.stack([np.minimum(bounds[:, 0], shown), np.maximum(bounds[:, 1], shown)], axis=1)

    def significant(self, alpha: float = 0.05) -> list[Row]:
        """The values whose unbiased estimate is above the significance threshold, largest first."""
        found = np.flatnonzero(self.raw.frequencies > self.raw.threshold(alpha))
        return self._rows(self.raw._largest(found), selected=True)

    def total(self, subset: Any) -> Any:
        """The frequency of a set of values, with the honest interval of the unbiased total."""
        rows = self.positions(subset)
        return ProcessedTotal(self.answer(rows), self.unbiased._total(rows), 1.0 if self.scale == 1.0 else np.inf)

    def of(self, values: Domain) -> ProcessedEstimate:
        cut = Estimate.of(self, values)
        return self if cut is self else replace(cut, raw=self.raw.of(values))  # type: ignore[call-arg, return-value]

    def remarks(self) -> list[str]:
        if not self.noise.known:
            return super().remarks()
        return [f"After {self.step} shares are biased and have no standard error; intervals are honest all the same."]

    @property
    def _judged(self) -> Estimate:
        return self.raw

    def _errors(self, order: NDArray[Any], level: float = 0.95) -> tuple[Floats, Floats]:
        if not self.noise.known:
            return Estimate._errors(self, order, level)
        return np.full(len(order), np.nan), self._around(self.shown[order], self.raw._errors(order, level)[1])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NormedEstimate(ProcessedEstimate):
    """After Norm: still unbiased, with a smaller variance, which is exact here."""

    variant: ClassVar[str] = "normed"
    sum: float
    """What the frequencies were made to add up to."""
    over: int
    """How many values they were then."""

    @classmethod
    def of_raw(cls, raw: Estimate, total: float, step: str = "norm") -> NormedEstimate:
        """Norm of an unbiased estimate whose true frequencies add up to a known total."""
        from veil.post.consistency import norm

        made = cls.of_estimate(raw, norm(raw.frequencies, total), step, sum=total, over=len(raw))
        assert isinstance(made, NormedEstimate)
        return made

    @property
    def unbiased(self) -> Estimate:
        return self

    @cached_property
    def variance(self) -> Floats:
        """Variance of each frequency, exactly."""
        return self._set_variance(np.ones(len(self)), self.frequencies)

    def interval(self, level: float = 0.95, kind: Inversion = "mid-p") -> Floats:
        """A confidence interval for each frequency, by its exact variance at what may be true."""
        return Estimate.interval(self, level, kind)

    def variance_at(self, frequencies: Floats) -> Floats:
        return self._set_variance(np.ones(len(frequencies)), np.clip(frequencies, 0.0, self.sum))

    @property
    def _law(self) -> None:  # a support less a share of all supports has no binomial law
        return None

    def total(self, subset: Any) -> Total:
        return Estimate.total(self, subset)

    def _total_variance(self, values: int, frequency: float) -> float:
        return float(self._set_variance(np.array([values]), np.array([frequency]))[0])

    def _set_variance(self, sizes: NDArray[Any], totals: Floats) -> Floats:
        """Of F + k/d (1 - S): F the sum over k of the d values, S that over all; (k/d) S takes noise out of F."""
        part = sizes / self.over
        every = self.raw._total_variance(self.over, self.sum)
        inside, outside = self._raw_variance(sizes, totals), self._raw_variance(self.over - sizes, self.sum - totals)
        together = (inside + every - outside) / 2  # the covariance of F and S
        return np.asarray(np.maximum(inside + part**2 * every - 2 * part * together, 0.0))

    def _raw_variance(self, sizes: NDArray[Any], totals: Floats) -> Floats:
        """The raw estimate's variance of sums, which is a parabola in their true value."""
        least, most = 0.0, self.raw.scale
        middle = (least + most) / 2
        cases = {int(size) for size in np.unique(sizes)}
        ends = {k: [self.raw._total_variance(k, f) if k else 0.0 for f in (least, middle, most)] for k in cases}
        at = np.clip(totals / most, 0.0, 1.0)
        low, mid, high = (np.array([ends[int(size)][i] for size in sizes]) for i in range(3))
        return np.asarray(low * (1 - at) * (1 - 2 * at) + 4 * mid * at * (1 - at) + high * at * (2 * at - 1))

    def remarks(self) -> list[str]:
        return Estimate.remarks(self)

    def _errors(self, order: NDArray[Any], level: float = 0.95) -> tuple[Floats, Floats]:
        return Estimate._errors(self, order, level)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PositiveAnswers(ProcessedEstimate):
    """After Post-Pos: the histogram stays as it was, and every answer taken from it is at least 0."""

    variant: ClassVar[str] = "positive-answers"

    def bend(self, answers: Floats) -> Floats:
        return np.maximum(answers, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CalibratedEstimate(ProcessedEstimate):
    """Posterior means under a prior, and what else the posterior tells."""

    variant: ClassVar[str] = "calibrated"
    prior: Prior
    posterior_sd: Floats
    """How far the true frequency may be from the posterior mean, if the prior is right."""

    constant_noise: bool

    def of(self, values: Domain) -> ProcessedEstimate:
        cut = super().of(values)
        kept = slice(0, values.size) if self.candidates is None else self.candidates < values.size
        return cut if cut is self else replace(cut, posterior_sd=self.posterior_sd[kept])  # type: ignore[call-arg]

    def exceeds(self, frequency: float) -> Floats:
        """The posterior probability that each value's true frequency is above this one."""
        if not isinstance(frequency, Real) or np.isnan(frequency):
            raise ParameterError("a frequency to exceed is a number")
        from veil.post.calibration import posterior

        return posterior(self.raw, self.prior, self.constant_noise, cut=float(frequency))[2]
