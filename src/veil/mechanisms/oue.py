"""OUE: optimized unary encoding (thesis 3.3.3)."""

from __future__ import annotations

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
from veil.mechanisms.base import PureOracle
from veil.mechanisms.packed import bit_support, bit_supports
from veil.privacy import WORD, Guarantee, coin_threshold, exp_below
from veil.report import Columns, Field, Layout

__all__ = ["OUE"]

_COINS_AT_ONCE = 1 << 26


@dataclass(frozen=True, init=False)
class OUE(PureOracle):
    """One bit for every value: the held one is set with probability 1/2, every other with q = 1 / (e^eps + 1).

    Guarantee: two values differ in two bits, whose ratio (p / q) (1 - q) / (1 - p) = (1 - q) / q <= e^eps exactly, with
    q = T / 2^64 rounded up. Reports take d / 8 bytes. Thesis 3.3.3.

    >>> OUE(epsilon=1.0, domain=1024).layout.size
    128
    """

    name: ClassVar[str] = "OUE"

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        super().__init__(epsilon, domain)
        if not self.domain.listable:
            raise ParameterError("OUE sends one bit for every value: the domain must be listable (2^24 values)")

    @cached_property
    def _others(self) -> int:
        return coin_threshold(1 / (exp_below(self.epsilon) + 1), up=True)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"held": WORD // 2, "others": self._others}

    @property
    def p(self) -> Fraction:
        return Fraction(1, 2)

    @cached_property
    def q(self) -> Fraction:
        return Fraction(self._others, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee((1 - self.q) / self.q)

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field.packed("bits", self.domain.size),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        step = max(1, _COINS_AT_ONCE // self.domain.size)  # coins take several times the memory of their packed bits
        parts = [self._draw_rows(codes[start : start + step], source) for start in range(0, len(codes), step)]
        return {"bits": parts[0] if len(parts) == 1 else np.concatenate(parts)}

    def _draw_rows(self, codes: NDArray[Any], source: Source) -> NDArray[np.uint8]:
        bits = source.coin_bits(self._others, len(codes), self.domain.size)
        held = source.coin(WORD // 2, len(codes))
        rows, byte, bit = np.arange(len(codes)), codes >> np.uint64(3), (codes & np.uint64(7)).astype(np.uint8)
        cleared = bits[rows, byte] & ~(np.uint8(1) << bit)
        bits[rows, byte] = cleared | (held.astype(np.uint8) << bit)
        return bits

    def support(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        return bit_support(columns["bits"], self.domain.size, candidates, weights)

    def supports(self, columns: Columns, candidates: NDArray[Any]) -> NDArray[np.uint8]:
        return bit_supports(columns["bits"], candidates)
