"""Errors of estimates, where the truth is known.

Full-domain, set-value and frequent-value errors are those of the consistency paper (V.A); `ncr` is thesis 4.4 and
5.4.1, `found_mse` is 5.4.1; `ks` and `wasserstein` are section 3 of the Square Wave paper; `sse`, `mnae` and `mre` are
thesis 6.1 and 7.5.

Distributions of numbers are compared by `ks`, `wasserstein` with a length, `range_mae`, `mean_error`, `variance_error`
and `quantile_error`, all from that section 3. They take masses of equal buckets of [0, 1], even within a bucket; the
estimate and the truth may have different numbers of buckets. Masses are taken as they are: an estimate's may be
negative, and need not add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.results.estimate import Estimate
from veil.tools.numbers import is_int

__all__ = [
    "coverage",
    "f1",
    "found_mse",
    "ks",
    "max_error",
    "mean_error",
    "mnae",
    "mre",
    "mse",
    "ncr",
    "precision",
    "quantile_error",
    "range_mae",
    "recall",
    "set_mse",
    "sse",
    "top_mse",
    "variance_error",
    "wasserstein",
]

Floats = NDArray[np.float64]

_COMMON = 1 << 24  # buckets that two histograms may be cut into
_ROUNDING = 1e-12  # of a cumulative law


def mse(estimate: Estimate | Any, truth: Any) -> float:
    """Mean squared error over all candidates.

    >>> mse([0.5, 0.5], [0.25, 0.75])
    0.0625
    """
    return float(np.mean(_difference(estimate, truth) ** 2))


def set_mse(estimate: Estimate | Any, truth: Any, sets: Iterable[Any]) -> float:
    """Mean squared error of the totals of sets, each given as positions.

    An Estimate answers as it does to `total`: after Post-Pos, not below 0.

    >>> set_mse([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [[0, 1], [2]]) < 1e-30
    True
    """
    shown = _numbers(estimate)
    known = _like(truth, shown)
    answer = estimate.answer if isinstance(estimate, Estimate) else lambda rows: shown[rows].sum()
    places = [np.asarray(rows) for rows in sets]
    if not places or not all(p.size and p.dtype.kind in "iu" and 0 <= p.min() <= p.max() < len(known) for p in places):
        raise InputError("sets are lists of positions, at least one each")
    return float(np.mean([(float(answer(rows)) - float(known[rows].sum())) ** 2 for rows in places]))


def top_mse(estimate: Estimate | Any, truth: Any, k: int) -> float:
    """Mean squared error over the k values that are truly the most frequent.

    >>> top_mse([0.5, 0.25, 0.25], [0.75, 0.25, 0.0], 2)
    0.03125
    """
    known = _like(truth, _numbers(estimate))
    if not is_int(k) or not 1 <= k <= len(known):
        raise InputError("k is an integer between 1 and the number of values")
    return float(np.mean(_difference(estimate, truth)[np.argsort(-known, kind="stable")[:k]] ** 2))


def sse(estimate: Estimate | Any, truth: Any) -> float:
    """Sum of squared errors."""
    return float(np.sum(_difference(estimate, truth) ** 2))


def max_error(estimate: Estimate | Any, truth: Any) -> float:
    """Largest absolute error."""
    return float(np.max(np.abs(_difference(estimate, truth))))


def coverage(estimate: Estimate, truth: Any, level: float = 0.95) -> float:
    """The share of candidates whose interval contains the truth."""
    if not isinstance(estimate, Estimate):
        raise InputError("coverage is of an Estimate's intervals")
    known = _like(truth, estimate.frequencies)
    low, high = estimate.interval(level).T + np.array([[-_ROUNDING], [_ROUNDING]])  # ends are whole people
    return float(np.mean((low <= known) & (known <= high)))


def precision(found: Iterable[Any], true: Iterable[Any]) -> float:
    """The share of what was found that is true; 1 where nothing was found."""
    found, true = set(found), set(true)
    return len(found & true) / len(found) if found else 1.0


def recall(found: Iterable[Any], true: Iterable[Any]) -> float:
    """The share of what is true that was found; 1 where nothing is true."""
    found, true = set(found), set(true)
    return len(found & true) / len(true) if true else 1.0


def f1(found: Iterable[Any], true: Iterable[Any]) -> float:
    """The harmonic mean of precision and recall.

    >>> f1(["a", "b"], ["b", "c"])
    0.5
    """
    found, true = set(found), set(true)
    return 2 * len(found & true) / (len(found) + len(true)) if found or true else 1.0


def ncr(found: Iterable[Any], ranking: Sequence[Any]) -> float:
    """Normalized cumulative rank: of the k truly most frequent values, best first, the first is worth k, the last 1.

    >>> ncr(["a", "c"], ["a", "b", "c"])
    0.6666666666666666
    """
    k = len(ranking)
    if not k or len(set(ranking)) != k:
        raise InputError("a ranking has at least one value, each once")
    found = set(found)
    return sum(k - rank for rank, value in enumerate(ranking) if value in found) / (k * (k + 1) / 2)


def found_mse(found: Mapping[Any, float], truth: Mapping[Any, float]) -> float:
    """Mean squared error over the truly frequent values that were found: Var of thesis 5.4.1, where both are counts.

    Both map values to counts (or frequencies); `truth` has the k truly most frequent ones only. NaN where none of them
    was found.

    >>> found_mse({"a": 9.0, "z": 5.0}, {"a": 10, "b": 8})
    1.0
    """
    if not isinstance(found, Mapping) or not isinstance(truth, Mapping) or not truth:
        raise InputError("found and true values are mappings from values to counts, the true ones at least one")
    errors = [(found[value] - count) ** 2 for value, count in truth.items() if value in found]
    return float(np.mean(errors)) if errors else math.nan


def ks(estimate: Estimate | Any, truth: Any) -> float:
    """Kolmogorov-Smirnov distance: the largest error of a prefix total, for values in order.

    Different numbers of values are equal buckets of one interval, and the distance is that of their cumulative laws.

    >>> ks([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])
    0.25
    >>> ks([0.5, 0.5], [0.25, 0.25, 0.5, 0.0])
    0.25
    """
    return float(np.max(np.abs(_prefix_errors(estimate, truth))))


def wasserstein(estimate: Estimate | Any, truth: Any, length: float | None = None) -> float:
    """Wasserstein (earth mover's) distance, for values in order and one apart: the sum of errors of all prefix totals.

    With a length, values are equal buckets of an interval of that length: the sum over buckets, times their width, as
    the paper has it for d values of [0, 1]. That is the integral of the cumulative laws' distance, but for the buckets
    in which they cross, where it is above. If their numbers differ, both are cut into the fewest common buckets.

    >>> wasserstein([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])
    0.25
    >>> wasserstein([1.0, 0.0], [0.0, 0.0, 0.0, 1.0], length=1.0)
    0.625
    """
    if length is None:
        return float(np.sum(np.abs(np.cumsum(_difference(estimate, truth)))))
    if not isinstance(length, Real) or not 0 < length < np.inf:
        raise InputError("an interval's length is positive")
    return float(np.mean(np.abs(_prefix_errors(estimate, truth)))) * float(length)


def range_mae(estimate: Estimate | Any, truth: Any, alpha: float, queries: int = 10_000) -> float:
    """Mean absolute error of the totals of ranges [i, i + alpha], for i over [0, 1 - alpha].

    The paper draws i at random; here starts are evenly spread, the middles of `queries` equal parts of [0, 1 - alpha],
    so that the same histograms always have the same error.

    >>> round(range_mae([0.75, 0.25], [0.25, 0.75], 0.5), 6)
    0.25
    """
    if not isinstance(alpha, Real) or not 0 < alpha <= 1:
        raise InputError("alpha, the length of a range, is above 0 and at most 1")
    if not is_int(queries) or queries < 1:
        raise InputError("the number of queries is an integer of at least 1")
    starts = (np.arange(queries) + 0.5) / queries * (1.0 - float(alpha))
    errors = _cumulative(estimate, starts + float(alpha)) - _cumulative(estimate, starts)
    errors -= _cumulative(truth, starts + float(alpha)) - _cumulative(truth, starts)
    return float(np.mean(np.abs(errors)))


def mean_error(estimate: Estimate | Any, truth: Any) -> float:
    """Absolute error of the mean, each bucket counting as its middle, which is where its mean is.

    >>> mean_error([0.5, 0.5], [0.0, 0.0, 0.0, 1.0])
    0.375
    """
    return abs(_moments(estimate)[0] - _moments(truth)[0])


def variance_error(estimate: Estimate | Any, truth: Any) -> float:
    """Absolute error of the variance, with the 1 / (12 d^2) that mass has within one of d buckets.

    That term is the same for both where they have as many buckets; where not, coarse buckets are not at a disadvantage.

    >>> variance_error([0.5, 0.5], [0.25, 0.25, 0.25, 0.25])
    0.0
    """
    return abs(_moments(estimate)[1] - _moments(truth)[1])


def quantile_error(
    estimate: Estimate | Any,
    truth: Any,
    levels: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
) -> float:
    """Mean absolute error of quantiles: Q(b) is the largest v with P(v) <= b (up to rounding), P linear within buckets.

    >>> round(quantile_error([1.0, 0.0], [0.5, 0.5]), 6)
    0.25
    """
    betas = _numbers(levels)
    if not ((betas > 0) & (betas < 1)).all():
        raise InputError("a quantile's level lies between 0 and 1")
    return float(np.mean(np.abs(_quantiles(estimate, betas) - _quantiles(truth, betas))))


def mnae(answers: Any, truth: Any, most: float) -> float:
    """Mean normalized absolute error of answers, over the largest possible answer.

    >>> mnae([9.0, 4.0], [10.0, 4.0], most=100.0)
    0.005
    """
    if not isinstance(most, Real) or not 0 < most < np.inf:
        raise InputError("the largest possible answer is positive")
    return float(np.mean(np.abs(_difference(answers, truth)))) / most


def mre(answers: Any, truth: Any) -> float:
    """Mean relative error of answers, over the true ones, which must not be 0.

    >>> mre([9.0, 4.0], [10.0, 4.0])
    0.05
    """
    known = np.abs(_numbers(truth))
    if not (known > 0).all():
        raise InputError("a relative error needs true answers other than 0")
    return float(np.mean(np.abs(_difference(answers, truth)) / known))


def _numbers(data: Estimate | Any) -> Floats:
    """Frequencies or answers as numbers, at least one."""
    if isinstance(data, Estimate):
        return data.shown
    try:
        found = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("expected an Estimate, or a list of numbers") from None
    if found.ndim != 1 or not len(found):
        raise InputError("expected one list of numbers, at least one")
    return found


def _like(truth: Any, shown: Floats) -> Floats:
    known = _numbers(truth)
    if known.shape != shown.shape:
        raise InputError("an estimate and the truth have one frequency per candidate")
    return known


def _difference(estimate: Estimate | Any, truth: Any) -> Floats:
    shown = _numbers(estimate)
    return np.asarray(shown - _like(truth, shown))


def _masses(data: Estimate | Any) -> Floats:
    """The masses of equal buckets, which are finite."""
    found = _numbers(data)
    if not np.isfinite(found).all():
        raise InputError("expected finite masses of buckets")
    return found


def _prefix_errors(estimate: Estimate | Any, truth: Any) -> Floats:
    """Errors of the cumulative law at the ends of buckets: of the fewest that are parts of both."""
    shown, known = _masses(estimate), _masses(truth)
    common = math.lcm(len(shown), len(known))
    if common > max(_COMMON, len(shown), len(known)):
        raise InputError("these numbers of buckets have no common multiple of at most 2^24")
    return np.asarray(np.cumsum(_cut(shown, common) - _cut(known, common)))


def _cut(masses: Floats, buckets: int) -> Floats:
    parts = buckets // len(masses)
    return masses if parts == 1 else np.repeat(masses / parts, parts)


def _edges(masses: Floats) -> tuple[Floats, Floats]:
    """The ends of equal buckets of [0, 1], and the cumulative law there."""
    return np.arange(len(masses) + 1) / len(masses), np.concatenate([[0.0], np.cumsum(masses)])


def _cumulative(data: Estimate | Any, points: Floats) -> Floats:
    """P(v), the mass below each point of [0, 1]."""
    return np.asarray(np.interp(points, *_edges(_masses(data))))


def _moments(data: Estimate | Any) -> tuple[float, float]:
    """Mean and variance over [0, 1]."""
    masses = _masses(data)
    middles = (np.arange(len(masses)) + 0.5) / len(masses)
    mean = float(masses @ middles)
    return mean, float(masses @ (middles**2 + 1 / (12 * len(masses) ** 2))) - mean**2


def _quantiles(data: Estimate | Any, levels: Floats) -> Floats:
    """The largest v of [0, 1] with P(v) <= level; P may fall where masses are negative."""
    masses = _masses(data)
    ends, below = _edges(masses)
    # the smallest P from here on never falls, and the last edge at which it is low enough is the last at which P is
    ahead = np.minimum.accumulate(below[::-1])[::-1]
    last = np.searchsorted(ahead, levels + _ROUNDING, side="right") - 1
    inside = np.minimum(last, len(masses) - 1)
    rest = np.maximum(levels - below[last], 0.0) / np.where(last > inside, np.inf, masses[inside])
    return np.asarray(ends[last] + rest / len(masses))
