"""Intervals of frequencies that include the uncertainty about items missed by padding to a length L.

A person with v and m candidates in all reports v with probability 1 / max(m, L). An estimate therefore stands for the
share g(v) = mean of min(1, L / m) over the holders of v. Estimates are multiplied by u'(L) = 1 / g, with the mean g
over all items held (thesis 5.5). Two things are uncertain:

    the mean      set sizes are estimated from noisy reports of few people, and noise may hide a long tail
    each item     the holders of an item may have smaller or larger sets than other people

`update_interval` bounds the first by the values that the reports of sizes leave possible, `shown_interval` adds the
second, and `divided` includes both in the interval of a frequency.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.results.estimate import Estimate
from veil.tools.numbers import critical, two_sided

Floats = NDArray[np.float64]
Between = tuple[float, float, float, float]
"""A number that is not known: its lower end, between what its middle lies, and its upper end."""

_LEVEL = 0.95
_SIGNIFICANT = 0.05
_ALIKE = 11.0  # items differ as draws of Beta(11 g, 11 (1 - g)) do: see shown_interval
_ROUNDS = 20
_CLOSE = 1e-3
_TINY = 1e-300


def update_interval(sizes: Estimate, length: int) -> tuple[float, float]:
    """A 95 % interval of u'(length), from an estimate over the sizes 0, 1, ... most.

    The ends are the smallest and the largest u' of all shares of sizes that fit the reports: shares that are not
    negative, add up to 1, and do not rise after the last size that stands out by itself, and whose squared distance
    from the estimates, in standard errors, is at most 1.96^2 above the smallest there is (profile likelihood).

    >>> from veil import GRR, simulate
    >>> low, high = update_interval(simulate(GRR(2.0, 7), [1] * 6_000 + [3] * 4_000, seed=1), 2)
    >>> low <= 18 / 14 <= high < 1.5
    True
    """
    fitted = _Fit(sizes)
    return fitted.extreme(length, -1), fitted.extreme(length, 1)


def shown_interval(update: float, low: float, high: float, level: float) -> Between:
    """The share g(v) of one item, over the share 1 / update that was assumed: ends, and between what the middle lies.

    low to high is the 95 % interval of u'. Its middle is another guess of the factor beside the one that was used, and
    each end is as far from the farther guess as it would be from a middle that is known.

    Over all that is held, min(1, L / m) has a mean of g = 1 / u' and a variance of at most g (1 - g), and the spread of
    g(v) over items is a part of that variance (law of total variance). How large a part is an assumption: a twelfth of
    g (1 - g), as a Beta distribution of the parameters 11 g and 11 (1 - g) has. Doubts about the mean and about the
    item are independent, so their distances add up as squares, on the scale of logarithms. g(v) is between 0 and 1.

    >>> shown_interval(1.0, 1.0, 1.0, 0.95)
    (1.0, 1.0, 1.0, 1.0)
    >>> [round(share, 2) for share in shown_interval(1.25, 1.25, 1.25, 0.95)]
    [0.66, 1.0, 1.0, 1.21]
    """
    from scipy.special import betaincinv

    def item(mean: float, tail: float) -> float:
        """The share that so many items are below, over their mean."""
        return max(float(betaincinv(_ALIKE * mean, _ALIKE * (1 - mean), tail)), _TINY) / mean if mean < 1 else 1.0

    farther, tail = two_sided(level) / two_sided(_LEVEL), (1 - level) / 2
    lower, upper = sorted((1 / update, (low * high) ** -0.5))
    below = math.hypot(farther * _positive_log(lower * high), _positive_log(1 / item(lower, tail)))
    above = math.hypot(farther * _positive_log(1 / (upper * low)), _positive_log(item(upper, 1 - tail)))
    ends = lower * math.exp(-below), min(1.0, upper * math.exp(above))
    return update * ends[0], update * lower, update * upper, update * ends[1]


def divided(frequencies: Floats, interval: Floats, by: Between) -> Floats:
    """Intervals (low, high) of frequencies that are divided by a number: its ends, and between what its middle lies.

    Distances to the ends add up as squares, each at the quotient's own end (Fieller's way for intervals of any kind:
    Donner and Zou, Statistics in Medicine 2012). All within 0 and 1.

    >>> divided(np.array([0.2]), np.array([[0.1, 0.3]]), (1.0, 1.0, 1.0, 1.0))
    array([[0.1, 0.3]])
    >>> divided(np.array([0.2]), np.array([[0.2, 0.2]]), (0.8, 1.0, 1.0, 1.25)).round(3)
    array([[0.16, 0.25]])
    """
    low, high = np.clip(interval, 0.0, 1.0).T
    middle = np.clip(frequencies, low, high)
    least, lower, upper, most = by
    inner, outer = low * (2 * middle - low), high * (2 * middle - high)
    room = np.sqrt(np.maximum((middle * upper) ** 2 - most * (2 * upper - most) * inner, 0))
    bottom = inner / np.maximum(middle * upper + room, _TINY)
    below = max(least * (2 * lower - least), _TINY)
    top = (middle * lower + np.sqrt(np.maximum((middle * lower) ** 2 - below * outer, 0))) / below
    top = np.maximum(top, bottom)  # which rounding alone may have crossed
    return np.asarray(np.clip(np.stack([bottom, top], axis=1), 0.0, 1.0))


def _positive_log(ratio: float) -> float:
    return max(0.0, math.log(ratio))


class _Fit:
    """Shares of sizes that fit the reports, and the most extreme factors among them."""

    def __init__(self, sizes: Estimate) -> None:
        self.found = np.asarray(sizes.frequencies, dtype=np.float64)
        self.variances = np.maximum(sizes.variance, _TINY)
        noise = float(np.sqrt(sizes.noise.variance(0.0) / sizes.effective))
        clear = np.flatnonzero(self.found[1:] > critical(_SIGNIFICANT / (len(self.found) - 1)) * noise)
        self.falls = 1 + (int(clear[-1]) if len(clear) else 0)
        self.best = self.closest(self.found)

    def distance(self, shares: Floats) -> float:
        """Squared, in standard errors, from what was found."""
        return float(((self.found - shares) ** 2 / self.variances).sum())

    def closest(self, target: Floats) -> Floats:
        """The closest shares to a target that are possible: isotonic regression, shifted until they add up to 1."""
        from scipy.optimize import brentq, isotonic_regression

        weights = 1 / self.variances

        def shifted(by: float) -> Floats:
            shares = target - by * self.variances
            tail = shares[self.falls :]
            shares[self.falls :] = isotonic_regression(tail, weights=weights[self.falls :], increasing=False).x
            return np.maximum(shares, 0.0)

        def excess(by: float) -> float:
            return float(shifted(by).sum()) - 1

        step = 1 / np.sqrt(self.variances.sum())
        low, high = -step, step
        while excess(low) < 0:
            low *= 4
        while excess(high) > 0:
            high *= 4
        return shifted(brentq(excess, low, high, xtol=1e-4 * step))

    def extreme(self, length: int, sign: int) -> float:
        """The largest u'(length) of shares that fit (sign 1), or the smallest (-1): Dinkelbach's iteration.

        u' is a quotient of two sums; the shares at which it exceeds a number most are the closest ones to a target
        that lies in one direction from what was found, as far as they still fit.
        """
        from scipy.optimize import brentq

        sizes = np.arange(len(self.found))
        counted = np.minimum(sizes, length)
        reach = two_sided(_LEVEL)
        limit = self.distance(self.best) + reach**2

        def factor(shares: Floats) -> float:
            seen = float(np.dot(counted, shares))
            return float(np.dot(sizes, shares)) / seen if seen > 0 else 1.0

        update = factor(self.best)
        for _ in range(_ROUNDS):
            way = sign * self.variances * (sizes - update * counted)
            length_of_way = np.sqrt((way**2 / self.variances).sum())
            if not length_of_way:
                break
            way /= length_of_way

            def beyond(steps: float, way: Any = way) -> float:
                return self.distance(self.closest(self.found + steps * way)) - limit

            far = reach
            while beyond(far) < 0 and far < 1e3 * reach:
                far *= 2
            steps = brentq(beyond, 0.0, far, xtol=1e-2) if beyond(far) > 0 else far
            before, update = update, factor(self.closest(self.found + steps * way))
            if abs(update - before) < _CLOSE * update:
                break
        return update
