"""The normal distribution, as far as intervals and thresholds need it."""

from __future__ import annotations

from statistics import NormalDist

from veil.errors import ParameterError

__all__ = ["critical", "two_sided"]


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
