"""SUE: symmetric unary encoding, also known as basic RAPPOR (thesis 3.1.1 and 3.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from veil.mechanisms.unary import UnaryEncoding
from veil.privacy import WORD, coin_threshold, exp_below, root_below

__all__ = ["SUE"]


@dataclass(frozen=True, init=False)
class SUE(UnaryEncoding):
    """One bit for every value, each kept with probability p = e^(eps/2) / (e^(eps/2) + 1) and flipped otherwise.

    Guarantee: the ratio is (p / (1 - p))^2 <= e^eps exactly, with p = T / 2^64 rounded down. Ones and zeros are treated
    alike, which wastes budget on the single one: OUE is better. Thesis 3.3.3.

    >>> round(SUE(epsilon=1.0, domain=10).variance(1), 2)
    3.92
    """

    name: ClassVar[str] = "SUE"

    @cached_property
    def held(self) -> int:
        root = root_below(exp_below(self.epsilon), 2)
        return coin_threshold(root / (root + 1))

    @property
    def others(self) -> int:
        return WORD - self.held
