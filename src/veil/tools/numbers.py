"""Numbers: checks of arguments, quantiles of the normal distribution, and rounding of shares to whole people."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError


def is_int(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer, Python's or numpy's; True and False are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number, Python's or numpy's; True and False are not."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no double holds
        return False


def convert_int_fields(instance: Any, *names: str) -> None:
    """Store numpy's integers as Python's in a frozen dataclass: only those can be written into a task."""
    for name in names:
        object.__setattr__(instance, name, int(getattr(instance, name)))


def critical(tail: float) -> float:
    """The standard normal quantile that leaves `tail` above it.

    >>> round(critical(0.025), 3)
    1.96
    """
    if not 0 < tail < 1:
        raise ParameterError("a significance or confidence level lies between 0 and 1")
    return -NormalDist().inv_cdf(tail)


def two_sided(level: float) -> float:
    """How many standard errors a confidence interval reaches to either side.

    >>> round(two_sided(0.95), 3)
    1.96
    """
    if not isinstance(level, (int, float)) or not 0 < level < 1:
        raise ParameterError("a confidence level lies between 0 and 1")
    return critical((1 - level) / 2)


def alpha_of(level: float) -> float:
    """1 - level, as it was meant.

    >>> alpha_of(0.95)
    0.05
    """
    two_sided(level)  # refuses a bad level
    return round(1 - level, 12)


def selected_level(level: float, selected: int, tested: int) -> float:
    """The level of intervals that hold for so many selected of those tested (Benjamini and Yekutieli 2005).

    >>> round(selected_level(0.95, 10, 1000), 6)
    0.9995
    """
    two_sided(level)  # refuses a bad level
    return 1 - (1 - level) * min(selected / max(tested, 1), 1.0)


def proportional(shares: NDArray[np.float64], people: int) -> NDArray[np.int64]:
    """People in whole numbers, in proportion to the shares; they add up exactly, because running sums are rounded.

    >>> proportional(np.array([2.0, 1.0]), 10).tolist()
    [7, 3]
    """
    ends = np.rint(np.cumsum(shares) / shares.sum() * people).astype(np.int64)
    held: NDArray[np.int64] = np.diff(ends, prepend=0)
    return held
