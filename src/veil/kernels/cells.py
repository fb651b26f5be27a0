"""Numbers of rows for queries: how much of a weighted set of cells each report supports, and their exact sums."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.hashing import hash32, interval_start

__all__ = ["add_moments", "hashed_values"]

I32 = np.int32
I64 = np.int64
U32 = np.uint32
U64 = np.uint64
_BLOCK = 256  # cells whose coefficients, below 2^23, add up in 32 bits


@compiled()
def hashed_values(
    rows: NDArray[I64],
    places: NDArray[I32],
    seeds: NDArray[U64],
    reported: NDArray[U64],
    buckets: int,
    offsets: NDArray[I64],
    low: NDArray[U32],
    high: NDArray[U32],
    coefficients: NDArray[I32],
    shifts: NDArray[np.float64],
    scales: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Write the numbers of these rows: the coefficients of the cells that a report supports, added up.

    Row i looks at the cells offsets[places[i]] .. offsets[places[i] + 1] - 1, and its sum is shifted and scaled by what
    stands at its place. `low` and `high` are the halves of the cells' spread values. The inner loop is pure 32-bit
    arithmetic, as in `counting`.
    """
    for i in rows:
        place = places[i]
        first, last = offsets[place], offsets[place + 1]
        begin = interval_start(U64(reported[i]), U64(buckets))
        start = U32(begin)
        width = U32(interval_start(U64(reported[i]) + U64(1), U64(buckets)) - begin)
        s0, s1 = U32(seeds[i]), U32(seeds[i] >> U64(32))
        total = I64(0)
        for block in range(first, last, _BLOCK):
            stop = min(block + _BLOCK, last)
            z_low, z_high, weight = low[block:stop], high[block:stop], coefficients[block:stop]
            some = I32(0)
            for j in range(len(weight)):
                inside = U32(hash32(z_low[j], z_high[j], s0, s1) - start) < width
                some = I32(some + I32(weight[j] * I32(inside)))
            total += some
        out[i] = (total - shifts[place]) * scales[place]


@compiled()
def add_moments(
    slots: NDArray[I64],
    numbers: NDArray[I64],
    weights: NDArray[I64],
    first: NDArray[U64],
    second: NDArray[np.float64],
    cross: NDArray[np.float64],
) -> None:
    """Add rows to the sums of their slots: w u exactly, w w' u u and w w' u as doubles.

    `numbers` are below 2^30. `first[slot, a]` holds a sum as four words: two 128-bit integers, of the low and of the
    high 32 bits of the weights times the numbers; so that the order of rows never shows.
    """
    sums = weights.shape[0]
    for i in range(len(slots)):
        slot, number = slots[i], numbers[i]
        real = float(number)
        for a in range(sums):
            weight = weights[a, i]
            _add(first, slot, a, 0, I64(weight & I64(0xFFFFFFFF)) * number)
            if weight >> I64(32):
                _add(first, slot, a, 2, (weight >> I64(32)) * number)
            for b in range(a + 1):
                both = float(weight) * float(weights[b, i])
                second[slot, a, b] += both * real * real
                cross[slot, a, b] += both * real


@numba.njit(inline="always")
def _add(first: NDArray[U64], slot: int, a: int, word: int, value: I64) -> None:
    """Add a signed 64-bit value to a 128-bit sum."""
    before = first[slot, a, word]
    after = U64(before + U64(value))
    first[slot, a, word] = after
    first[slot, a, word + 1] = U64(first[slot, a, word + 1] + U64(value >> I64(63)) + U64(after < before))
