"""Candidates of a search for heavy hitters: prefixes, each with all its continuations. Too many to list at once.

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
from veil.domain.strings import UTF8_IMPOSSIBLE, UTF8_START, advance_utf8, count_utf8_endings, utf8_endings
from veil.entropy import Words
from veil.errors import ParameterError
from veil.view import Segment

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


def text_states(codes: Codes, width: int) -> NDArray[np.int64]:
    """Where codes of `width` bits stand as beginnings of text: see `veil.domain.strings`."""
    states = np.full(len(codes), UTF8_START, dtype=np.int64)
    for column in leading_bytes(codes, width).T:
        states = advance_utf8(states, 0, column.astype(np.uint64), 8)
    if width % 8:
        last = Segment(Bits(width), width - width % 8, width).apply(codes, _NO_DRAWS)
        states = advance_utf8(states, 0, last, width % 8)
    return states


@dataclass(frozen=True, eq=False)
class PrefixGroup:
    """Prefixes that go on in the same ways: by every suffix, or by those that are given; text only as text can."""

    prefixes: Codes
    step: int
    state: int | None
    """Where they stand as beginnings of text; None where they are not text."""
    given: NDArray[np.uint64] | None

    @cached_property
    def ways(self) -> int:
        """In how many ways each of them goes on."""
        if self.state is not None and self.given is None:
            return count_utf8_endings(self.state, self.step)
        return 1 << self.step if self.given is None else len(self.suffixes())

    def suffixes(self, first: int = 0, last: int | None = None) -> NDArray[np.uint64]:
        """The suffixes from one place to another, in increasing order."""
        if self.state is None:
            every = range(1 << self.step)[first:last]
            return np.arange(every.start, every.stop, dtype=np.uint64) if self.given is None else self.given[first:last]
        if self.given is None:
            return utf8_endings(self.state, self.step)[first:last]
        begun = (self.state & 255).bit_length() - 1
        after = advance_utf8(np.full(len(self.given), self.state), begun, self.given, self.step)
        return np.asarray(self.given[after != UTF8_IMPOSSIBLE][first:last])


@dataclass(frozen=True, eq=False)
class Continuations:
    """Prefixes of `width` bits, each continued by `step` bits: all continuations, or the listed ones.

    Of `text` only what can begin a text is a candidate: UTF-8, and only zeros after a zero byte. A prefix that has
    ended goes on in one way, and one that begins no text not at all.

    >>> kept = Continuations(np.array([1, 2], dtype=np.uint64), width=2, step=1)
    >>> kept.size, [block.tolist() for block in kept.blocks()]
    (4, [[2, 3, 4, 5]])
    >>> Continuations(start(), width=0, step=8, text=True).size
    179
    """

    prefixes: Codes
    width: int
    step: int
    suffixes: NDArray[np.uint64] | None = None
    text: bool = False

    @property
    def length(self) -> int:
        """Bits of a candidate."""
        return self.width + self.step

    @cached_property
    def alike(self) -> tuple[PrefixGroup, ...]:
        """The prefixes by the ways in which they go on; those that go on in no way are left out."""
        if not self.text:
            return (PrefixGroup(self.prefixes, self.step, None, self.suffixes),)
        states = text_states(self.prefixes, self.width)
        made = (
            PrefixGroup(self.prefixes[states == state], self.step, int(state), self.suffixes)
            for state in _kinds(states)
        )
        return tuple(some for some in made if some.ways)

    @cached_property
    def size(self) -> int:
        """How many candidates there are."""
        return sum(len(some.prefixes) * some.ways for some in self.alike)

    def blocks(self, most: int = 1 << 22) -> Iterator[Codes]:
        """All candidates, at most `most` at a time."""
        waiting: list[Codes] = []
        for piece in self._pieces(most):
            if waiting and sum(map(len, waiting)) + len(piece) > most:
                yield np.concatenate(waiting)
                waiting = []
            waiting.append(piece)
        if waiting:
            yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)

    def _pieces(self, most: int) -> Iterator[Codes]:
        for some in self.alike:
            at_once = max(1, most // some.ways)
            for i in range(0, len(some.prefixes), at_once):
                for first in range(0, some.ways, most):
                    yield self.join(some.prefixes[i : i + at_once], some.suffixes(first, first + most))

    def at(self, place: int) -> Codes:
        """The candidate at one place of the order in which `blocks` has them, as an array of one code."""
        for some in self.alike:
            which, suffix = divmod(place, some.ways)
            if which < len(some.prefixes):
                return self.join(some.prefixes[which : which + 1], some.suffixes(suffix, suffix + 1))
            place -= len(some.prefixes) * some.ways
        raise IndexError("there are not so many candidates")

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
        more = Continuations(self.prefixes, self.width, self.step - step, None, self.text)
        return Continuations(np.concatenate(list(more.blocks())), more.length, step, None, self.text)

    def holds(self, codes: Codes) -> NDArray[np.bool_]:
        """Which codes of this length are among the candidates."""
        mine = np.isin(_keys(cut(codes, self.length, self.width)), _keys(self.prefixes))
        if self.suffixes is not None:
            last = Segment(Bits(self.length), self.width, self.length).apply(codes, _NO_DRAWS)
            mine &= np.isin(last, self.suffixes)
        if self.text:
            mine &= text_states(codes, self.length) != UTF8_IMPOSSIBLE
        return np.asarray(mine)


def _kinds(states: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different states, those that have ended first."""
    return np.unique(states)[::-1]


def _keys(codes: Codes) -> NDArray[Any]:
    """Codes as one comparable thing each."""
    if codes.ndim == 1:
        return codes
    return np.ascontiguousarray(codes).view(f"V{codes.shape[1]}")[:, 0]
