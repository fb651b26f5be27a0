"""Rivals and baselines behind a shuffler, for comparisons (thesis 9.3 and 9.6.2).

AUE, appended unary encoding (Balcer and Cheu 2020), has no guarantee before the shuffle. RAP and SOLH are the thesis's
methods; `Laplace` (a trusted collector) and `UniformGuess` are baselines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.accounting.bounds import check_delta, check_users
from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms import SUE, FrequencyOracle
from veil.privacy import WORD, Guarantee, check_epsilon, coin_threshold
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.laws import AdditiveNoise
from veil.tools.json_documents import Json

Floats = NDArray[np.float64]
_COINS_AT_ONCE = 1 << 22


@dataclass(frozen=True, init=False)
class AUE(FrequencyOracle):
    """Send 1 for the held value and 0 for the others, each raised by 1 with p = 1 - 200 ln(4 / delta) / (eps^2 n).

    Guarantee: none of its own. A 2 stands for the held value alone, so one report may tell everything. Only the sums
    over all `users` keep (epsilon, delta), or numbers that are shuffled one by one, apart from their report. The local
    guarantee is infinite, and a ledger refuses it. It is here as a rival (thesis 9.3.4), stands in no registry, and no
    device can be asked through it.

    >>> oracle = AUE(0.5, 100, users=1_000_000, delta=1e-9)
    >>> print(oracle.guarantee)
    nothing on its own: it needs a shuffler
    >>> f"{oracle.variance(1_000_000):.2g}"
    '1.7e-08'
    """

    users: int
    delta: float
    name: ClassVar[str] = "AUE"

    def __init__(self, epsilon: float, domain: DomainLike, users: int, delta: float) -> None:
        super().__init__(epsilon, domain)
        object.__setattr__(self, "users", check_users(users))
        object.__setattr__(self, "delta", check_delta(delta))
        if not self.domain.listable:
            raise ParameterError("AUE sends a number for every value: the domain must be listable (2^24 values)")
        if self.epsilon > 1:
            raise ParameterError("AUE is proved for a central epsilon of at most 1")
        least = math.ceil(min(400 * math.log(4 / self.delta) / self.epsilon**2, 1e18))
        if self.users < least:
            raise ParameterError(f"AUE needs at least 400 ln(4 / delta) / epsilon^2 = {least:,} users for this promise")

    def parameters(self) -> Json:
        return {"users": self.users, "delta": repr(self.delta)}

    @cached_property
    def _raised(self) -> int:
        return coin_threshold(1 - Fraction(200 * math.log(4 / self.delta) / self.epsilon**2 / self.users))

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"raised": self._raised}

    @property
    def p(self) -> Fraction:
        """The probability that a number is raised."""
        return Fraction(self._raised, WORD)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(None, needs_shuffler=True)

    @cached_property
    def noise(self) -> AdditiveNoise:
        return AdditiveNoise(self.p * (1 - self.p))

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("numbers", 3, count=self.domain.size),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        columns = self.layout.empty(len(codes))
        step = max(1, _COINS_AT_ONCE // self.domain.size)
        for start in range(0, len(codes), step):
            held = codes[start : start + step].astype(np.int64)
            raised = source.coin(self._raised, len(held) * self.domain.size).reshape(len(held), -1)
            numbers = raised.astype(columns["numbers"].dtype)
            numbers[np.arange(len(held)), held] += 1
            columns["numbers"][start : start + step] = numbers
        return columns

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """The sums of the numbers."""
        numbers = columns["numbers"] if candidates is None else columns["numbers"][:, candidates.astype(np.int64)]
        if weights is None:
            return np.asarray(numbers.sum(axis=0, dtype=np.int64))
        return np.asarray(weights @ numbers.astype(np.int64))

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        return np.asarray(tally.counts / tally.weight - float(self.p))


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
    """A baseline: a trusted collector that adds Laplace noise of scale 2 / epsilon to exact counts.

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
class UniformGuess:
    """A baseline that asks nobody and estimates equal frequencies (Base in the thesis).

    >>> UniformGuess().error(np.array([30, 10]))
    0.0625
    """

    def frequencies(self, counts: NDArray[np.int64]) -> Floats:
        """The same for every value."""
        return np.full(len(counts), 1 / len(counts))

    def error(self, counts: NDArray[np.int64]) -> float:
        """Its mean squared error."""
        return float(np.mean((counts / counts.sum() - self.frequencies(counts)) ** 2))
