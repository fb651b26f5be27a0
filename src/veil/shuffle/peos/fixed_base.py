"""Powers of one base for many exponents, by a table of its windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gmpy2 import mpz

__all__ = ["FixedBase"]


class FixedBase:
    """base^e modulo a number for exponents of so many bits: one multiplication per window of the exponent.

    A table holds bits / window rows of 2^window powers: with a modulus of 3072 bits, exponents of 640 bits and windows
    of 8 bits that is 8 MB and 80 multiplications; with windows of 10 bits, 27 MB and 64.

    >>> FixedBase(3, 1009, bits=16, window=4).power(1000) == pow(3, 1000, 1009)
    True
    """

    def __init__(self, base: int | mpz, modulus: int | mpz, bits: int, window: int) -> None:
        from gmpy2 import mpz

        self.modulus = mpz(modulus)
        self.rows = -(-bits // window)
        self._window = window
        self._table: list[list[mpz]] = []
        step = mpz(base) % self.modulus
        for _ in range(self.rows):
            row = [mpz(1)]
            for _ in range((1 << window) - 1):
                row.append(row[-1] * step % self.modulus)
            self._table.append(row)
            step = row[-1] * step % self.modulus

    def digits(self, exponents: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Exponents of at most 64 bits cut into windows, the lowest first: a row for each."""
        shifts = np.arange(self.rows, dtype=np.uint64) * np.uint64(self._window)
        return (exponents[:, None] >> shifts) & np.uint64((1 << self._window) - 1)

    def random_digits(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Digits of uniformly random exponents, from a uniformly random word each."""
        return words & np.uint64((1 << self._window) - 1)

    def power(self, exponent: int) -> mpz:
        """One power."""
        mask = (1 << self._window) - 1
        return self.multiplied(1, [exponent >> i * self._window & mask for i in range(self.rows)])

    def multiplied(self, start: int | mpz, digits: Sequence[int]) -> mpz:
        """start * base^exponent, the exponent by its digits."""
        from gmpy2 import mpz

        found, modulus = mpz(start), self.modulus
        for row, digit in zip(self._table, digits, strict=True):
            if digit:
                found = found * row[digit] % modulus
        return found
