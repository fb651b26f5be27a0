"""THE: thresholding with histogram encoding (thesis 3.3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from veil.domain import DomainLike
from veil.errors import ParameterError
from veil.mechanisms.unary import UnaryEncoding
from veil.privacy import coin_threshold, decimal_text, exp_near
from veil.tools.json_documents import Json, number

__all__ = ["THE", "best_theta"]


@dataclass(frozen=True, init=False)
class THE(UnaryEncoding):
    """Add Laplace(2 / eps) noise to the one-hot vector and report which coordinates exceed theta, one bit each.

    The comparison happens on the device, by exact coins with the probabilities that the noise has beyond the threshold:
    p = 1 - e^((theta - 1) eps / 2) / 2 for the held value and q = e^(-theta eps / 2) / 2 for the others. Reports of
    noisy numbers thresholded at the collector have the same distribution of bits, are 64 times longer, and leak through
    the low bits of doubles. Without `theta` the best one is taken. Thesis 3.3.2.

    Guarantee: p (1 - q) / (q (1 - p)) exactly, below e^eps: thresholding gives away less than the noisy numbers would,
    and the guarantee says how much.

    >>> round(THE(epsilon=1.0, domain=10, theta=1.0).variance(1), 2)
    5.46
    """

    theta: float
    name: ClassVar[str] = "THE"
    tight: ClassVar[bool] = False

    def __init__(self, epsilon: float, domain: DomainLike, theta: float | None = None) -> None:
        super().__init__(epsilon, domain)
        chosen = best_theta(self.epsilon) if theta is None else theta
        if isinstance(chosen, bool) or not isinstance(chosen, (int, float)) or not 0.5 <= chosen <= 1:
            raise ParameterError("theta lies between 0.5 and 1")
        object.__setattr__(self, "theta", float(chosen))
        if not self.guarantee.within(self.epsilon):  # true for all theta; the proof is in docs/mechanisms/the.md
            raise ParameterError("this theta breaks the promise of epsilon")

    @classmethod
    def read_parameters(cls, document: Json) -> dict[str, Any]:
        return {key: number(value) if key == "theta" else value for key, value in document.items()}

    def parameters(self) -> Json:
        return {"theta": decimal_text(self.theta)}

    @cached_property
    def held(self) -> int:
        return coin_threshold(1 - exp_near((Fraction(self.theta) - 1) * Fraction(self.epsilon) / 2) / 2)

    @cached_property
    def others(self) -> int:
        return coin_threshold(exp_near(-Fraction(self.theta) * Fraction(self.epsilon) / 2) / 2, up=True)


def best_theta(epsilon: float) -> float:
    """The theta between 1/2 and 1 with the smallest Var*, to four decimals.

    >>> 0.5 < best_theta(1.0) < 1
    True
    """

    def variance(theta: float) -> float:
        p = 1 - math.exp((theta - 1) * epsilon / 2) / 2
        q = math.exp(-theta * epsilon / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    return min((i / 10_000 for i in range(5_000, 10_001)), key=variance)
