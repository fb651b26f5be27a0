"""How good an estimate is, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.result import Estimate

__all__ = ["coverage", "f1", "max_error", "mse", "precision", "recall"]

Floats = NDArray[np.float64]


def mse(estimate: Estimate | Any, truth: Any) -> float:
    """Mean squared error over all candidates.

    >>> mse([0.5, 0.5], [0.25, 0.75])
    0.0625
    """
    return float(np.mean(_difference(estimate, truth) ** 2))


def max_error(estimate: Estimate | Any, truth: Any) -> float:
    """Largest absolute error."""
    return float(np.max(np.abs(_difference(estimate, truth))))


def coverage(estimate: Estimate, truth: Any, level: float = 0.95) -> float:
    """The share of candidates whose interval contains the truth."""
    known = np.asarray(truth, dtype=np.float64)
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


def _difference(estimate: Estimate | Any, truth: Any) -> Floats:
    shown = estimate.frequencies if isinstance(estimate, Estimate) else np.asarray(estimate, dtype=np.float64)
    known = np.asarray(truth, dtype=np.float64)
    if shown.shape != known.shape:
        raise InputError("an estimate and the truth have one frequency a candidate")
    return np.asarray(shown - known)
