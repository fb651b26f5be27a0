"""OUE: optimized unary encoding (thesis 3.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from veil.mechanisms.unary import UnaryEncoding
from veil.privacy import WORD, coin_threshold, exp_below

__all__ = ["OUE"]


@dataclass(frozen=True, init=False)
class OUE(UnaryEncoding):
    """One bit for every value: the held one is set with probability 1/2, every other with q = 1 / (e^eps + 1).

    Guarantee: the ratio is (1 - q) / q <= e^eps exactly, with q = T / 2^64 rounded up. Almost all bits belong to values
    that are not held, so almost all of the budget is spent on keeping those clear. Thesis 3.3.3.

    >>> OUE(epsilon=1.0, domain=1024).layout.size
    128
    """

    name: ClassVar[str] = "OUE"

    @property
    def held(self) -> int:
        return WORD // 2

    @cached_property
    def others(self) -> int:
        return coin_threshold(1 / (exp_below(self.epsilon) + 1), up=True)
