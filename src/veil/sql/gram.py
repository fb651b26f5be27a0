"""Exact sums over rows of products of weights: a Gram matrix of integers, in memory linear in the number of weights.

Weights are split into limbs of 21 bits. The products of limbs over some rows add up below 2^53, so a matrix product
of doubles is exact whatever the order in which it adds. The sums are then added up as integers of 256 bits. So neither
the order of rows nor a split of them shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import WireError
from veil.sql.decimals import integers

__all__ = ["FEW_ROWS", "FEW_SUMS", "Grams", "add_gram", "add_words", "by_place", "is_short", "pair_count"]

Words = NDArray[np.uint64]
_LIMB_BITS = 21
_MOST_ROWS, _LEAST_ROWS = 1 << 14, 1 << 11  # 2^20 products of two limbs add up below 2^63
_AT_ONCE = 1 << 20  # weights whose limbs are in memory
_ALIGNED = 4  # the kernel takes so many rows of limbs at a time
FEW_SUMS, FEW_ROWS = 8, 64
"""Below either, a loop over rows is faster than a matrix product."""
_HALF_BITS = 32


def pair_count(sums: int) -> int:
    """Return the number of pairs of a sum with itself or with one before it."""
    return sums * (sums + 1) // 2


class Grams:
    """The exact sums of products of two weights, for each class of rows."""

    def __init__(self, classes: int, sums: int) -> None:
        self._classes, self._sums = classes, sums

    @cached_property
    def words(self) -> Words:
        """The sums as words, one row of pairs per class; made when they are first needed."""
        from veil.kernels.exact_sums import LARGE_WORDS

        return np.zeros((self._classes, pair_count(self._sums), LARGE_WORDS), np.uint64)

    def add(self, places: NDArray[np.int32], weights: NDArray[np.int64]) -> None:
        """Add rows: the class of each, and one row of weights per sum."""
        from veil.kernels.exact_sums import add_products

        if self._sums < FEW_SUMS:
            add_products(places.astype(np.int64), weights, self.words.reshape(-1))
            return
        for place, mine in by_place(places):
            some = weights if mine is None else np.ascontiguousarray(weights[:, mine])
            if some.shape[1] < FEW_ROWS:
                add_products(np.zeros(some.shape[1], np.int64), some, self.words[place].reshape(-1))
            else:
                add_gram(some, None, self.words[place].reshape(-1))

    def products(self, place: int, some: Sequence[int], others: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the sums of products of these weights, one row per weight of `others`."""
        found = integers(self.words[place]).tolist()
        return tuple(tuple(found[pair_count(max(a, b)) + min(a, b)] for a in some) for b in others)


def by_place(places: NDArray[Any]) -> list[tuple[int, NDArray[np.int64] | None]]:
    """Return the places that occur, each with its rows; None stands for all rows."""
    if not len(places):
        return []
    if (places == places[0]).all():
        return [(int(places[0]), None)]
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    return [(int(places[some[0]]), some) for some in np.split(order, starts[1:])]


def add_gram(weights: NDArray[np.int64], numbers: NDArray[np.int64] | None, words: Words, mixed: bool = False) -> None:
    """Add the sums of w w' over rows to `words`, one large sum per pair; with `numbers` u, below 2^30, those of
    w w' u u, and those of w w' u if `mixed`.
    """
    from veil.kernels.exact_sums import add_grid, multiply

    step = min(_MOST_ROWS, max(_LEAST_ROWS, _AT_ONCE // len(weights)))
    for start in range(0, weights.shape[1], step):
        some = np.ascontiguousarray(weights[:, start : start + step])
        right = _limbs(some) if numbers is None else _scaled_limbs(some, numbers[start : start + step])
        left = _limbs(some) if mixed else right
        grid = np.zeros((len(left.of), len(right.of)), np.int64)
        multiply(left.values, right.values, left.of, right.of, grid)
        add_grid(grid, left.of, right.of, left.shifts, right.shifts, words)


@dataclass(frozen=True, eq=False)
class _Limbs:
    """Integers as sums of limbs: values[i] 2^shifts[i] is a part of the of[i]-th of them; in the order of `of`."""

    values: NDArray[Any]
    of: NDArray[np.int64]
    shifts: NDArray[np.int64]


def _limbs(numbers: NDArray[np.int64], high: NDArray[np.int64] | None = None) -> _Limbs:
    """The limbs of numbers, or of numbers + high 2^32; the last limb of each has its sign. Rows of zeros have none."""
    parts = [*_split(numbers, 0), *([] if high is None else _split(high, _HALF_BITS))]
    of = np.concatenate([part.of for part in parts] or [np.zeros(0, np.int64)])
    order = np.argsort(of, kind="stable")
    size = -len(of) % _ALIGNED + len(of)
    values = np.zeros((size, numbers.shape[1]))
    shifts, sorted_of = np.zeros(size, np.int64), np.full(size, of.max(initial=0))
    sorted_of[: len(of)] = of[order]
    at = np.argsort(order)
    for part in parts:
        mine, at = at[: len(part.of)], at[len(part.of) :]
        values[mine], shifts[mine] = part.values, part.shifts
    return _Limbs(values, sorted_of, shifts)


def _split(numbers: NDArray[np.int64], shift: int) -> list[_Limbs]:
    """The limbs of numbers 2^shift: the lowest one of each, then the next."""
    found, every = [], np.arange(len(numbers))
    while len(every):
        least, most = numbers.min(axis=1), numbers.max(axis=1)
        some = (least != 0) | (most != 0)
        numbers, every, least, most = numbers[some], every[some], least[some], most[some]
        last = (least >= -(1 << _LIMB_BITS)) & (most < 1 << _LIMB_BITS)
        low = np.where(last[:, None], numbers, numbers & ((1 << _LIMB_BITS) - 1))
        found.append(_Limbs(low, every, np.full(len(every), shift)))
        numbers, every, shift = numbers[~last] >> _LIMB_BITS, every[~last], shift + _LIMB_BITS
    return found


def is_short(weights: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which weights have at most 32 bits in every row."""
    least, most = weights.min(axis=1), weights.max(axis=1)
    return np.asarray((least >= -(1 << (_HALF_BITS - 1))) & (most < 1 << (_HALF_BITS - 1)))


def _scaled_limbs(weights: NDArray[np.int64], numbers: NDArray[np.int64]) -> _Limbs:
    """The limbs of w u: of the low and the high 32 bits of long weights, so that no product overflows."""
    short = is_short(weights)
    if short.all():
        return _limbs(weights * numbers)
    low = np.where(short[:, None], weights, weights & ((1 << _HALF_BITS) - 1))
    high = np.where(short[:, None], 0, weights >> _HALF_BITS)
    return _limbs(low * numbers, high * numbers)


def add_words(mine: Words, state: bytes | memoryview) -> None:
    """Add large or small sums, as words along the last axis, to others of the same shape."""
    if len(state) != mine.nbytes:
        raise WireError("these sums are those of another query")
    theirs = np.frombuffer(state, np.uint64).reshape(mine.shape)
    carried = np.zeros(mine.shape[:-1], np.uint64)
    for i in range(mine.shape[-1]):
        some = theirs[..., i] + carried
        carried = (some < carried).astype(np.uint64)
        mine[..., i] += some
        carried += mine[..., i] < some
