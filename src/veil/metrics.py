"""How good an estimate is, where the truth is known.

Full-domain, set-value and frequent-value errors are those of the consistency paper (V.A); `ncr` is thesis 4.4; `ks` and
`wasserstein` are section 3 of the Square Wave paper; `sse`, `mnae` and `mre` are thesis 6.1 and 7.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import is_int
from veil.errors import InputError
from veil.result import Estimate

__all__ = [
    "coverage",
    "f1",
    "ks",
    "max_error",
    "mnae",
    "mre",
    "mse",
    "ncr",
    "precision",
    "recall",
    "set_mse",
    "sse",
    "top_mse",
    "wasserstein",
]

Floats = NDArray[np.float64]


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
    bounds = estimate.interval(level)
    return float(np.mean((bounds[:, 0] <= known) & (known <= bounds[:, 1])))


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


def ks(estimate: Estimate | Any, truth: Any) -> float:
    """Kolmogorov-Smirnov distance: the largest error of a prefix total, for values in order.

    >>> ks([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])
    0.25
    """
    return float(np.max(np.abs(np.cumsum(_difference(estimate, truth)))))


def wasserstein(estimate: Estimate | Any, truth: Any) -> float:
    """Wasserstein (earth mover's) distance, for values in order and one apart; over d for values within [0, 1].

    >>> wasserstein([0.5, 0.25, 0.25], [0.25, 0.5, 0.25])
    0.25
    """
    return float(np.sum(np.abs(np.cumsum(_difference(estimate, truth)))))


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
        raise InputError("an estimate and the truth have one frequency a candidate")
    return known


def _difference(estimate: Estimate | Any, truth: Any) -> Floats:
    shown = _numbers(estimate)
    return np.asarray(shown - _like(truth, shown))
