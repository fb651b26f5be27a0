"""Statistics of the difference between two independent estimates: intervals, p-values, and Holm's adjustment.

`change` and `differences` make results of them. The intervals are made of those of the single estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.results.estimate import Estimate
from veil.results.laws import SupportNoise
from veil.tools.numbers import two_sided

Floats = NDArray[np.float64]

_HALVINGS = 60


@dataclass(frozen=True)
class MarginOfError:
    """Estimates with their intervals (`low`, `high`), and how far each may be off at least (`reach`).

    An interval ends where nothing more can be, at 0 or at all people; the noise of the estimate does not.
    """

    found: Floats
    low: Floats
    high: Floats
    reach: Floats

    @property
    def below(self) -> Floats:
        """How far the truth may lie below the estimate."""
        return np.maximum(self.found - self.low, self.reach)

    @property
    def above(self) -> Floats:
        """How far the truth may lie above the estimate."""
        return np.maximum(self.high - self.found, self.reach)


def reach_of(found: Any, ends: tuple[Any, Any]) -> MarginOfError:
    """An estimate with an interval that may be cut to what can be: the noise reaches as far to either side."""
    value, low, high = (np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in (found, *ends))
    return MarginOfError(value, low, high, np.maximum(value - low, high - value))


def frequency_reach(estimate: Estimate, level: float) -> MarginOfError:
    """The exact intervals of frequencies, and the reach of their noise with half a report for continuity."""
    low, high = estimate.interval(level, "exact").T
    half = 0.0
    if isinstance(estimate.noise, SupportNoise):
        half = estimate.scale / estimate.effective / float(estimate.noise.p - estimate.noise.q) / 2
    return MarginOfError(estimate.frequencies, low, high, two_sided(level) * estimate.stderr + half)


def square_and_add(after: MarginOfError, before: MarginOfError) -> tuple[Floats, Floats]:
    """Intervals of after less before, from the two intervals of each: MOVER of Zou and Donner (2008).

    The distances to the ends that matter are squared and added, as variances are. Where an interval was cut to what can
    be, its distance is too short for that, and the reach of the noise takes its place; the difference is cut in turn to
    what it can be where both intervals hold. So differences of frequencies lie within -1 to 1.

    >>> one = MarginOfError(*(np.array([x]) for x in (0.3, 0.2, 0.4, 0.0)))
    >>> [round(float(end[0]), 3) for end in square_and_add(one, one)]
    [-0.141, 0.141]
    """
    difference = after.found - before.found
    least, most = after.low - before.high, after.high - before.low
    low = difference - np.hypot(after.below, before.above)
    high = difference + np.hypot(after.above, before.below)
    return np.clip(low, least, most), np.clip(high, least, most)


def frequency_p_values(after: Estimate, before: Estimate) -> Floats:
    """The two-sided p-value of "nothing changed" for each value, with the people of each side a random sample.

    Where both sides count supports in the same way (the same p, q and scale, no weights), the two supports of a value
    are binomial with the same chance if nothing changed, whatever the chance is: Fisher's exact test given their sum,
    twice the smaller tail. Where p and q differ: the likelihood ratio, its signed root taken for normal, with half a
    report on each side for continuity (with weights: of the people that they are worth). The same with fakes among the
    reports, whose supports have another chance. Where an estimate is not made of supports: the score test, with the
    variance at the pooled frequency.
    """
    first, second = after.noise, before.noise
    if isinstance(first, SupportNoise) and isinstance(second, SupportNoise):
        same = (first.p, first.q, after.scale) == (second.p, second.q, before.scale)
        same = same and after.fakes is None and before.fakes is None
        if same and all(one.effective == one.n for one in (after, before)):
            from veil.kernels.tails import fisher_p_values

            counts = [np.rint(_Supports.of(one).counts).astype(np.int64) for one in (after, before)]
            return fisher_p_values(counts[0], after.n, counts[1], before.n)
        return _likelihood_p_values(_Supports.of(after), _Supports.of(before))
    return _score_p_values(after, before)


def normal_p_value(difference: Floats, stderr: Floats) -> Floats:
    """Two-sided, of a normal difference; certain where there is no error at all."""
    from scipy.special import ndtr

    away = np.divide(np.abs(difference), stderr, out=np.full(len(difference), np.inf), where=stderr > 0)
    return np.asarray(np.where(difference == 0, 1.0, 2 * ndtr(-away)))


def adjusted_p_values(p_values: Floats, tested: int) -> Floats:
    """Holm's (1979): the smallest family-wise level at which each is rejected, of `tested` hypotheses in all.

    Hypotheses whose p-values are not here are taken for unchanged, which can only make the others larger.

    >>> adjusted_p_values(np.array([0.03, 0.01, 0.5]), tested=3).tolist()
    [0.06, 0.03, 0.5]
    """
    order = np.argsort(p_values, kind="stable")
    factors = float(max(tested, len(p_values))) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return adjusted


@dataclass(frozen=True)
class _Supports:
    """Counts of supports out of `people`, and the chance of a report's support: q + slope * frequency.

    `fakes` reports more have the chance u. A likelihood is then that of the saddlepoint z: the sum tilted to its count.
    Without fakes that is the binomial's own.
    """

    counts: Floats
    people: float
    q: float
    slope: float
    fakes: float = 0.0
    u: float = 0.5

    @classmethod
    def of(cls, estimate: Estimate) -> _Supports:
        noise = estimate.noise
        assert isinstance(noise, SupportNoise)
        q, slope = float(noise.q), float(noise.p - noise.q) / estimate.scale
        counts, fakes = estimate.effective * (q + slope * estimate.frequencies), estimate.fakes
        if fakes is None:
            return cls(counts, estimate.effective, q, slope)
        among = float(fakes.count), float(fakes.support)
        return cls(counts + fakes.expected, estimate.effective, q, slope, *among)

    def moved(self, reports: Floats) -> _Supports:
        """The same with so many reports more."""
        return replace(self, counts=np.clip(self.counts + reports, 0.0, self.people + self.fakes))

    @property
    def frequencies(self) -> Floats:
        """The likeliest frequencies among those that can be."""
        return np.clip(((self.counts - self.fakes * self.u) / self.people - self.q) / self.slope, 0.0, 1.0)

    def pull(self, frequencies: Floats) -> Floats:
        """The derivative of the log-likelihood."""
        chance = self.q + self.slope * frequencies
        if self.fakes:
            rise = self._tilt(chance) - 1
            return np.asarray(self.slope * self.people * rise / (1 + chance * rise))
        return np.asarray(self.slope * (self.counts / chance - (self.people - self.counts) / (1 - chance)))

    def loss(self, frequencies: Floats) -> Floats:
        """The log-likelihood at the likeliest frequencies, less that at these."""
        from scipy.special import xlogy

        best, here = (self.q + self.slope * f for f in (self.frequencies, frequencies))
        if self.fakes:
            return self._rate(here) - self._rate(best)
        rest = self.people - self.counts
        return np.asarray(xlogy(self.counts, best / here) + xlogy(rest, (1 - best) / (1 - here)))

    def _tilt(self, chance: Floats) -> Floats:
        """The z = e^t at which K'(t) is the count: the positive root of a quadratic equation, as in `kernels.tails`."""
        a, b, x = self.people, self.fakes, np.clip(self.counts, 1e-9, self.people + self.fakes - 1e-9)
        first, second = chance / (1 - chance), self.u / (1 - self.u)
        square, linear = (a + b - x) * first * second, a * first + b * second - x * (first + second)
        root = np.sqrt(linear * linear + 4 * square * x)
        return np.asarray(np.where(linear > 0, 2 * x / (linear + root), (root - linear) / (2 * square)))

    def _rate(self, chance: Floats) -> Floats:
        """How unlikely the counts are at these chances: t x - K(t), which is 0 where the count is its mean."""
        z = self._tilt(chance)
        cumulant = self.people * np.log1p(chance * (z - 1)) + self.fakes * np.log1p(self.u * (z - 1))
        return np.asarray(self.counts * np.log(z) - cumulant)


def _likelihood_p_values(after: _Supports, before: _Supports) -> Floats:
    from scipy.special import ndtr

    side = np.sign(after.frequencies - before.frequencies)
    after, before = after.moved(-side / 2), before.moved(side / 2)
    low, high = np.minimum(after.frequencies, before.frequencies), np.maximum(after.frequencies, before.frequencies)
    for _ in range(_HALVINGS):  # the sum of two concave functions is largest between their summits
        middle = (low + high) / 2
        rises = after.pull(middle) + before.pull(middle) > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    ratio = 2 * np.maximum(after.loss((low + high) / 2) + before.loss((low + high) / 2), 0.0)
    crossed = side * (after.frequencies - before.frequencies) <= 0  # less than a report apart
    return np.asarray(np.where(crossed, 1.0, np.minimum(2 * ndtr(-np.sqrt(ratio)), 1.0)))


def _score_p_values(after: Estimate, before: Estimate) -> Floats:
    pooled = (after.frequencies + before.frequencies) / 2
    for _ in range(3):  # weights by variances at the frequency that they give
        one, other = (_sample_variance(side, pooled) for side in (after, before))
        pooled = (after.frequencies * other + before.frequencies * one) / (one + other)
    one, other = (_sample_variance(side, pooled) for side in (after, before))
    return normal_p_value(after.frequencies - before.frequencies, np.sqrt(one + other))


def _sample_variance(estimate: Estimate, frequencies: Floats) -> Floats:
    """The variance of estimated frequencies where people are drawn from a large population."""
    shares = np.clip(frequencies, 0.0, 1.0) / estimate.scale
    noise = estimate.noise.variance(shares) + shares * (1 - shares)
    return np.asarray(estimate.scale**2 * (noise / estimate.effective + estimate.fake_variance()))
