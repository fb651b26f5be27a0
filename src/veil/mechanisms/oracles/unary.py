"""Unary encoding: OUE and SUE (thesis 3.3.2 and 3.3.3).

A report has one bit for every value, set with one probability for the held value and another for the rest. The
mechanisms of the family, with THE in `veil.mechanisms.rivals`, differ in two thresholds only. SUE is also known as
basic RAPPOR (thesis 3.1.1).
"""

from __future__ import annotations

from abc import abstractmethod
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
from veil.mechanisms.oracle import PureOracle, bit_support, bit_supports
from veil.privacy import WORD, Guarantee, coin_threshold, exp_below, root_below
from veil.reports.layout import Columns, Field, Layout

_COINS_AT_ONCE = 1 << 26


@dataclass(frozen=True, init=False)
class UnaryEncoding(PureOracle):
    """Packed bits: the held value's is set with probability p, every other with q, all independent.

    Guarantee: two values differ in two bits, so the ratio is p (1 - q) / (q (1 - p)).
    """

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        super().__init__(epsilon, domain)
        if not self.domain.listable:
            raise ParameterError(
                f"{self.name} sends one bit for every value: the domain must be listable (2^24 values)"
            )

    @property
    @abstractmethod
    def held(self) -> int:
        """The threshold of the held value's coin."""

    @property
    @abstractmethod
    def others(self) -> int:
        """The threshold of every other value's coin."""

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"held": self.held, "others": self.others}

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self.held, WORD)

    @cached_property
    def q(self) -> Fraction:
        return Fraction(self.others, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.p * (1 - self.q) / (self.q * (1 - self.p)))

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field.packed("bits", self.domain.size),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        step = max(1, _COINS_AT_ONCE // self.domain.size)  # coins take several times the memory of their packed bits
        parts = [self._draw_rows(codes[start : start + step], source) for start in range(0, len(codes), step)]
        return {"bits": parts[0] if len(parts) == 1 else np.concatenate(parts)}

    def _draw_rows(self, codes: NDArray[Any], source: Source) -> NDArray[np.uint8]:
        bits = source.coin_bits(self.others, len(codes), self.domain.size)
        held = source.coin(self.held, len(codes))
        rows, byte, bit = np.arange(len(codes)), codes >> np.uint64(3), (codes & np.uint64(7)).astype(np.uint8)
        cleared = bits[rows, byte] & ~(np.uint8(1) << bit)
        bits[rows, byte] = cleared | (held.astype(np.uint8) << bit)
        return bits

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        return bit_support(columns["bits"], self.domain.size, candidates, weights)

    def incidence(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        return bit_supports(columns["bits"], candidates)


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
