"""The thesis's other methods behind a shuffler, and two yardsticks, for comparisons (9.3 and 9.6.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.errors import ParameterError
from veil.mechanisms import SUE
from veil.privacy import check_epsilon
from veil.shuffle.bounds import check_delta, check_users

__all__ = ["Base", "Laplace", "random_reports", "rap", "rap_removal", "solh_buckets"]

Floats = NDArray[np.float64]


def random_reports(epsilon: float, users: int, delta: float) -> float:
    """m of the thesis: 1 / m of all other reports must be random at each value to keep a central epsilon (9.2.1).

    >>> round(random_reports(0.2, 990_002, 1e-9), 2)
    132.08
    """
    epsilon = check_epsilon(epsilon)
    if epsilon > 1:
        raise ParameterError("the thesis's bounds need a central epsilon of at most 1")
    return epsilon**2 * (check_users(users) - 1) / (14 * math.log(2 / check_delta(delta)))


def solh_buckets(epsilon: float, users: int, delta: float) -> int:
    """d' of SOLH: (m + 2) / 3, rounded (9.4; the thesis says rounded down, and its Table 9.2 has them rounded).

    >>> [solh_buckets(eps, 990_002, 1e-9) for eps in (0.2, 0.4, 0.6, 0.8)]
    [45, 177, 397, 705]
    """
    return max(2, round((random_reports(epsilon, users, delta) + 2) / 3))


def rap(domain: DomainLike, users: int, epsilon: float, delta: float) -> SUE:
    """RAP: unary encoding whose shuffled reports keep (epsilon, delta) by Theorem 9.3.1.

    >>> f"{rap(100, 1_000_000, 0.5, 1e-9).variance(1_000_000):.3g}"
    '5.03e-09'
    """
    # each of two bits keeps half of epsilon and of delta: m = e^(eps_l / 2) + 1
    return _symmetric(domain, random_reports(check_epsilon(epsilon) / 2, users, check_delta(delta) / 2))


def rap_removal(domain: DomainLike, users: int, epsilon: float, delta: float) -> SUE:
    """RAP_R: the same for neighbours of which one has a person less (Erlingsson et al. 2020).

    Removing a person changes one bit of the reports, replacing them two: its central epsilon is for removal, and twice
    that for replacement, which every other promise here is about.

    >>> f"{rap_removal(42_178, 990_002, 0.2, 1e-9).variance(990_002):.3g}"
    '7.83e-09'
    """
    return _symmetric(domain, random_reports(epsilon, users, delta))


def _symmetric(domain: DomainLike, m: float) -> SUE:
    """Unary encoding whose bits are flipped with probability 1 / m."""
    if m <= 2:
        raise ParameterError("too few users for this promise: bits would be flipped with probability 1/2 or more")
    return SUE(min(2 * math.log(m - 1), 40.0), domain)


@dataclass(frozen=True)
class Laplace:
    """A yardstick: a trusted collector that adds Laplace's noise of scale 2 / epsilon to exact counts.

    >>> Laplace(0.5).variance(1_000)
    3.2e-05
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def frequencies(self, counts: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """What such a collector would publish. For comparisons: its randomness is not cryptographic."""
        return np.asarray((counts + rng.laplace(scale=2 / self.epsilon, size=len(counts))) / counts.sum())

    def variance(self, n: int) -> float:
        """The variance of a frequency of n people."""
        return 8 / (self.epsilon * check_users(n)) ** 2


@dataclass(frozen=True)
class Base:
    """A yardstick: nobody is asked, and every value is said to be equally frequent.

    >>> Base().error(np.array([30, 10]))
    0.0625
    """

    def frequencies(self, counts: NDArray[np.int64]) -> Floats:
        """The same for every value."""
        return np.full(len(counts), 1 / len(counts))

    def error(self, counts: NDArray[np.int64]) -> float:
        """Its mean squared error."""
        return float(np.mean((counts / counts.sum() - self.frequencies(counts)) ** 2))
