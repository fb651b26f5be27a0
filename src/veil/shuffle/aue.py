"""AUE: appended unary encoding (Balcer and Cheu 2020), which promises nothing until it is shuffled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms import FrequencyOracle
from veil.privacy import WORD, Guarantee, coin_threshold
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.laws import AdditiveNoise
from veil.shuffle.bounds import check_delta, check_users
from veil.tools.json_documents import Json

__all__ = ["AUE"]

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
