"""Candidates for heavy hitters: kept prefixes, each with all its continuations. Too many to list at once.

Prefixes are codes of `Bits(width)`: uint64 up to 64 bits, rows of big-endian bytes above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Bits
from veil.entropy import Words
from veil.errors import ParameterError
from veil.view import Segment

__all__ = ["Continuations", "cut", "leading_bytes", "spelled", "start"]

Codes = NDArray[Any]
_NO_DRAWS = Words(b"")  # a segment draws nothing


def start() -> Codes:
    """The one prefix of no bits."""
    return np.zeros(1, dtype=np.uint64)


def cut(codes: Codes, width: int, bits: int) -> Codes:
    """The first `bits` bits of codes of `width` bits.

    >>> cut(np.array([0b1011], dtype=np.uint64), 4, 2).tolist()
    [2]
    """
    if not bits:
        return np.zeros(len(codes), dtype=np.uint64)
    return codes if bits == width else Segment(Bits(width), 0, bits).apply(codes, _NO_DRAWS)


def leading_bytes(codes: Codes, width: int) -> NDArray[np.uint8]:
    """The whole bytes at the front of codes of `width` bits, one row per code."""
    whole = width // 8
    if not whole:
        return np.zeros((len(codes), 0), dtype=np.uint8)
    front = cut(codes, width, 8 * whole)
    if 8 * whole > 64:
        return front
    return front.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - whole :]


def spelled(alphabet: Sequence[int], letters: int) -> NDArray[np.uint64]:
    """All words of at most `letters` bytes of an alphabet, padded with zeros, as numbers in increasing order.

    >>> [int(word).to_bytes(2, "big") for word in spelled(b"ab", 2)]
    [b'\\x00\\x00', b'a\\x00', b'aa', b'ab', b'b\\x00', b'ba', b'bb']
    """
    if not 1 <= letters <= 7:
        raise ParameterError("between 1 and 7 letters are added at a time")
    known = np.array(sorted(set(alphabet)), dtype=np.uint64)
    words = np.zeros(1, dtype=np.uint64)
    for _ in range(letters):  # every word gets a letter in front, and the empty word stays
        shift = np.uint64(8 * (letters - 1))
        words = np.concatenate([np.zeros(1, np.uint64), ((known << shift)[:, None] | (words >> np.uint64(8))).ravel()])
    return words


@dataclass(frozen=True, eq=False)
class Continuations:
    """Prefixes of `width` bits, each continued by `step` bits: all continuations, or the listed ones.

    `padded` is for text: after a zero byte only zeros follow, so a prefix that has ended goes on in one way.

    >>> kept = Continuations(np.array([1, 2], dtype=np.uint64), width=2, step=1)
    >>> kept.size, [block.tolist() for block in kept.blocks()]
    (4, [[2, 3, 4, 5]])
    """

    prefixes: Codes
    width: int
    step: int
    suffixes: NDArray[np.uint64] | None = None
    padded: bool = False

    @property
    def length(self) -> int:
        """Bits of a candidate."""
        return self.width + self.step

    @cached_property
    def ended(self) -> NDArray[np.bool_]:
        """Which prefixes are whole strings already."""
        if not self.padded:
            return np.zeros(len(self.prefixes), dtype=np.bool_)
        return np.asarray((leading_bytes(self.prefixes, self.width) == 0).any(axis=1))

    @property
    def open(self) -> Codes:
        """The prefixes that go on."""
        return self.prefixes[~self.ended]

    @property
    def closed(self) -> Codes:
        """What the ended prefixes go on as: padding."""
        return self.join(self.prefixes[self.ended], np.zeros(1, dtype=np.uint64))

    @property
    def continuations(self) -> int:
        """How many there are for an open prefix."""
        return 1 << self.step if self.suffixes is None else len(self.suffixes)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.open) * self.continuations + int(self.ended.sum())

    def blocks(self, most: int = 1 << 22) -> Iterator[Codes]:
        """All candidates, at most `most` at a time."""
        if self.ended.any():
            yield self.closed
        at_once = max(1, most // self.continuations)
        for i in range(0, len(self.open), at_once):
            prefixes = self.open[i : i + at_once]
            for first in range(0, self.continuations, most):
                last = min(first + most, self.continuations)
                yield self.join(prefixes, self._suffixes(first, last))

    def _suffixes(self, first: int, last: int) -> NDArray[np.uint64]:
        if self.suffixes is None:
            return np.arange(first, last, dtype=np.uint64)
        return self.suffixes[first:last]

    def join(self, prefixes: Codes, suffixes: NDArray[np.uint64]) -> Codes:
        """Each prefix with each suffix, the suffixes varying fastest."""
        if self.length <= 64:
            if not self.width:
                return suffixes
            shifted = prefixes << np.uint64(self.step)
            return np.asarray((shifted[:, None] | suffixes).ravel())
        moved = [number << self.step for number in Bits(self.width).decode(prefixes)] if self.width else [0]
        if not len(moved):
            return np.zeros((0, -(-self.length // 8)), dtype=np.uint8)
        rows = np.repeat(Bits(self.length).encode(moved)[:, None, :], len(suffixes), axis=1)
        rows[:, :, -8:] |= suffixes.astype(">u8").view(np.uint8).reshape(-1, 8)
        return rows.reshape(-1, rows.shape[2])

    def narrowed(self, step: int) -> Continuations:
        """The same candidates with a shorter step, behind more and longer prefixes; where all continuations count."""
        if step == self.step:
            return self
        more = Continuations(self.prefixes, self.width, self.step - step, None, self.padded)
        return Continuations(np.concatenate(list(more.blocks())), more.length, step, None, self.padded)

    def holds(self, codes: Codes) -> NDArray[np.bool_]:
        """Which codes of this length are among the candidates."""
        mine = np.isin(_keys(cut(codes, self.length, self.width)), _keys(self.prefixes))
        last = Segment(Bits(self.length), self.width, self.length).apply(codes, _NO_DRAWS)
        fits = np.ones(len(codes), dtype=np.bool_) if self.suffixes is None else np.isin(last, self.suffixes)
        if self.padded:
            over = (leading_bytes(cut(codes, self.length, self.width), self.width) == 0).any(axis=1)
            fits = np.where(over, last == 0, fits)
        return np.asarray(mine & fits)


def _keys(codes: Codes) -> NDArray[Any]:
    """Codes as one comparable thing each."""
    if codes.ndim == 1:
        return codes
    return np.ascontiguousarray(codes).view(f"V{codes.shape[1]}")[:, 0]
