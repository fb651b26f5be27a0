"""Random draws from given random words: integers below bounds, biased coins, and subsets.

Remainders need no divisions (`Source.below`), 64 lanes of random bits are compared with one bit of a threshold at a
time (`Source.coin_bits`), and uniform subsets are drawn by Floyd's algorithm.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

U64 = np.uint64
_LOW = U64(0xFFFFFFFF)
_HALF = U64(32)
U8 = np.uint8


@compiled()
def remainders(words: NDArray[U64], bounds: NDArray[U64], inverses: NDArray[U64], out: NDArray[U64]) -> bool:
    """out[i] = words[i] modulo its bound; the bounds repeat in turn. Returns whether any word may have to be rejected.

    `inverses` are floor((2^64 - 1) / bound): the quotient's estimate, the high half of a product, is at most two short.
    """
    near = False
    for start in range(0, len(words), len(bounds)):
        row, rests = words[start : start + len(bounds)], out[start : start + len(bounds)]
        for j in range(len(bounds)):
            word, bound, inverse = row[j], bounds[j], inverses[j]
            near |= word >= U64(0) - bound
            high, low, a, b = word >> _HALF, word & _LOW, inverse >> _HALF, inverse & _LOW
            middle = high * b + ((low * b) >> _HALF)
            carry = low * a + (middle & _LOW)
            rest = word - (high * a + (middle >> _HALF) + (carry >> _HALF)) * bound
            rest -= bound if rest >= bound else U64(0)
            rest -= bound if rest >= bound else U64(0)
            rests[j] = rest
    return near


@compiled()
def compare_bit(
    words: NDArray[U64], bit: bool, blocks: NDArray[np.intp], undecided: NDArray[U64], heads: NDArray[U64]
) -> int:
    """One round: word i goes to block blocks[i], whose undecided lanes have matched all higher bits of the threshold.

    A lane that draws 0 where the threshold has 1 is heads, one that draws 1 where it has 0 is tails. Blocks with lanes
    left move to the front of `blocks` and `undecided`, in order; returns how many they are.
    """
    kept = 0
    for i in range(len(words)):
        block, lanes, word = blocks[i], undecided[i], words[i]
        if bit:
            heads[block] |= lanes & ~word
            lanes &= word
        else:
            lanes &= ~word
        blocks[kept], undecided[kept] = block, lanes
        kept += lanes != U64(0)
    return kept


@numba.njit(inline="always")
def _skip(index: U64, held: U64) -> U64:
    """Index among the other values to index among all: the held one is left out."""
    return index + U64(1) if index >= held else index


@compiled()
def subset_bits(draws: NDArray[U64], held: NDArray[U64], with_held: bool, size: int) -> NDArray[U8]:
    """Packed bits of a uniform subset of the values other than the held one; then the held one too, if asked.

    draws[i, j] is uniform below size - k + j, where k is the number of draws per row.
    """
    people, k = draws.shape
    out = np.zeros((people, (size + 7) // 8), U8)
    for i in range(people):
        row = out[i]
        for j in range(k):
            pick = _skip(draws[i, j], held[i])
            if row[pick >> U64(3)] >> U8(pick & U64(7)) & U8(1):
                pick = _skip(U64(size - 1 - k + j), held[i])
            row[pick >> U64(3)] |= U8(U8(1) << U8(pick & U64(7)))
        if with_held:
            row[held[i] >> U64(3)] |= U8(U8(1) << U8(held[i] & U64(7)))
    return out


@compiled()
def subset_lists(draws: NDArray[U64], held: NDArray[U64], with_held: bool, size: int) -> NDArray[U64]:
    """The same subset as an increasing list of values."""
    people, k = draws.shape
    out = np.empty((people, k + 1 if with_held else k), U64)
    taken = np.zeros(size, np.bool_)
    for i in range(people):
        row = out[i]
        for j in range(k):
            pick = _skip(draws[i, j], held[i])
            if taken[pick]:
                pick = _skip(U64(size - 1 - k + j), held[i])
            taken[pick] = True
            row[j] = pick
        if with_held:
            row[k] = held[i]
        for j in range(k):
            taken[row[j]] = False
        row.sort()
    return out
