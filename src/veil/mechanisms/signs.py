"""What mechanisms that report one sign share: the coin that keeps it, and the promise that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from veil.mechanisms.base import Mechanism
from veil.privacy import WORD, Guarantee, inside_threshold

__all__ = ["KeptSign"]


@dataclass(frozen=True, init=False)
class KeptSign(Mechanism):
    """A sign is kept with probability p = T / 2^64, rounded down, and flipped otherwise: p / (1 - p) <= e^eps."""

    @cached_property
    def _keep(self) -> int:
        return inside_threshold(self.epsilon, 1, 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"keep": self._keep}

    @cached_property
    def p(self) -> Fraction:
        """The probability that the sign is kept."""
        return Fraction(self._keep, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.p / (1 - self.p))
