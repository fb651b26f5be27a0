"""The normal distribution and levels, as far as intervals and thresholds need them."""

from __future__ import annotations

from statistics import NormalDist

from veil.errors import ParameterError

__all__ = ["alpha_of", "critical", "selected_level", "two_sided"]


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
