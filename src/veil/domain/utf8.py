"""Which bits can begin a text: UTF-8 padded with zeros, cut after any number of bits.

A search for frequent text goes through prefixes whose lengths are numbers of bits. Most strings of bits begin no text
at all: a byte that no character begins with, a character that is written too long (overlong), half of a surrogate pair,
anything but zeros behind a zero. Whether text is in the normal form NFC is not asked here.

Where a prefix stands is one number, its state: what the current character still needs (Table 3-7 of the Unicode
Standard) and the bits of a byte that has only begun.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["IMPOSSIBLE", "START", "advance", "endings", "many_endings"]

States = NDArray[np.int64]

# What may follow: a character; one, two or three more bytes of one; the second byte after E0, ED, F0 and F4; padding.
_CHARACTER, _ONE, _TWO, _THREE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4, _PADDING = range(9)
_NOTHING = 9
_RULES = (
    (_CHARACTER, 0x00, 0x00, _PADDING),
    (_CHARACTER, 0x01, 0x7F, _CHARACTER),
    (_CHARACTER, 0xC2, 0xDF, _ONE),
    (_CHARACTER, 0xE0, 0xE0, _AFTER_E0),
    (_CHARACTER, 0xE1, 0xEC, _TWO),
    (_CHARACTER, 0xED, 0xED, _AFTER_ED),
    (_CHARACTER, 0xEE, 0xEF, _TWO),
    (_CHARACTER, 0xF0, 0xF0, _AFTER_F0),
    (_CHARACTER, 0xF1, 0xF3, _THREE),
    (_CHARACTER, 0xF4, 0xF4, _AFTER_F4),
    (_ONE, 0x80, 0xBF, _CHARACTER),
    (_TWO, 0x80, 0xBF, _ONE),
    (_THREE, 0x80, 0xBF, _TWO),
    (_AFTER_E0, 0xA0, 0xBF, _ONE),
    (_AFTER_ED, 0x80, 0x9F, _ONE),
    (_AFTER_F0, 0x90, 0xBF, _TWO),
    (_AFTER_F4, 0x80, 0x8F, _TWO),
    (_PADDING, 0x00, 0x00, _PADDING),
)

# A state is 256 times what may follow, plus the bits of the byte that has begun behind a leading 1.
START = 256 * _CHARACTER + 1
"""The state of the prefix of no bits."""
IMPOSSIBLE = 256 * _NOTHING + 1
"""The state of everything that begins no text."""


@cache
def _after_byte() -> NDArray[np.int64]:
    """What may follow, by what might have followed before and by the byte that did."""
    table = np.full((_NOTHING + 1, 256), _NOTHING, dtype=np.int64)
    for before, first, last, after in _RULES:
        table[before, first : last + 1] = after
    return table


@lru_cache(maxsize=16)
def _after_bits(begun: int, bits: int) -> NDArray[np.int64]:
    """States by state and by `bits` more bits, where `begun` bits of a byte are there and no more than one is filled.

    Its rows are the states with `begun` bits, in increasing order.
    """
    whole = _after_byte()
    if begun + bits == 8:
        return np.asarray((256 * whole + 1).reshape(-1, 1 << bits))
    possible = (whole != _NOTHING).reshape(_NOTHING + 1, 1 << (begun + bits), -1).any(axis=2)
    kinds, last = np.indices(possible.shape)
    states = 256 * kinds + (1 << (begun + bits)) + last
    return np.asarray(np.where(possible, states, IMPOSSIBLE).reshape(-1, 1 << bits))


def advance(states: States, begun: int, more: NDArray[np.uint64], bits: int) -> States:
    """The states after `bits` more bits each, given as numbers; `begun` bits of a byte are there already.

    >>> after = advance(np.array([START, START]), 0, np.array([0b0110, 0b1000], dtype=np.uint64), 4)
    >>> (after == IMPOSSIBLE).tolist()  # no character begins with the bits 1000
    [False, True]
    """
    while bits:
        taken = min(8 - begun, bits)
        bits -= taken
        now = (more >> np.uint64(bits)) & np.uint64((1 << taken) - 1)
        kinds, last = states >> 8, (states & 255) - (1 << begun)
        dead = states == IMPOSSIBLE
        rows = np.where(dead, 0, kinds * (1 << begun) + last)
        states = np.where(dead, IMPOSSIBLE, _after_bits(begun, taken)[rows, now.astype(np.int64)])
        begun = (begun + taken) % 8
    return states


def _choices(state: int, bits: int) -> tuple[NDArray[np.uint64], States, int]:
    """What may come next, up to the end of the byte: bits as numbers, the states after them, and how many bits."""
    begun = (state & 255).bit_length() - 1
    taken = min(8 - begun, bits)
    every = np.arange(1 << taken, dtype=np.uint64)
    after = advance(np.full(1 << taken, state), begun, every, taken)
    possible = after != IMPOSSIBLE
    return every[possible], after[possible], taken


@lru_cache(maxsize=4096)
def many_endings(state: int, bits: int) -> int:
    """How many strings of `bits` bits can follow.

    >>> many_endings(START, 8)  # 128 bytes of one character each, and 51 that begin a longer one
    179
    """
    if state == IMPOSSIBLE or not bits:
        return int(state != IMPOSSIBLE)
    _, after, taken = _choices(state, bits)
    kinds, counts = np.unique(after, return_counts=True)
    return sum(int(count) * many_endings(int(kind), bits - taken) for kind, count in zip(kinds, counts, strict=True))


@lru_cache(maxsize=64)
def endings(state: int, bits: int) -> NDArray[np.uint64]:
    """The strings of `bits` bits that can follow, as numbers in increasing order.

    >>> endings(START, 3).tolist()  # 100 and 101 begin no character
    [0, 1, 2, 3, 6, 7]
    """
    if state == IMPOSSIBLE or not bits:
        return np.zeros(int(state != IMPOSSIBLE), dtype=np.uint64)
    first, after, taken = _choices(state, bits)
    rest = bits - taken
    made = np.concatenate(
        [(now << np.uint64(rest)) | endings(int(kind), rest) for now, kind in zip(first, after, strict=True)]
    )
    made.setflags(write=False)
    return made
