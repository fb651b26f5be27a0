"""Numbers of rows for queries: how much of a weighted set of cells each report supports, and their exact sums."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.hashing import hash32, interval_start
from veil.kernels.wide import add_large, add_large_32, add_large_64, add_small, high_product

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
    second: NDArray[U64],
    cross: NDArray[U64],
) -> None:
    """Add rows to sums, exactly: w u and w w' u u by slot, and w w' u of all slots together.

    `numbers` are below 2^30. All sums are integers as words, see `wide`: the order of rows never shows. They stand
    flat: `first` has one small sum per slot and weight, `second` one large sum per slot and pair of a weight with
    itself or one before it, `cross` one per pair.
    """
    sums = I64(weights.shape[0])
    pairs = sums * (sums + 1) // 2
    for i in range(len(slots)):
        slot, number = slots[i], numbers[i]
        place = slot * pairs
        for a in range(sums):
            weight = weights[a, i]
            add_small(first, slot * sums + a, weight, number)
            short = weight == I64(I32(weight))
            for b in range(a + 1):
                other = weights[b, i]
                if short and other == I64(I32(other)):
                    add_large(second, place, weight * number, other * number)
                else:
                    _add_halves(second, place, weight, number, other, number)
                place += 1
    pair = I64(0)
    for a in range(sums):
        for b in range(a + 1):
            _add_cross(numbers, weights[a], weights[b], cross, pair)
            pair += 1


@numba.njit(inline="always")
def _add_cross(
    numbers: NDArray[I64], weights: NDArray[I64], others: NDArray[I64], cross: NDArray[U64], pair: I64
) -> None:
    """Add w w' u of all rows. Of short weights it is added up in 128 bits at first, enough for 2^33 rows."""
    low, high = U64(0), I64(0)
    for i in range(len(numbers)):
        number, weight, other = numbers[i], weights[i], others[i]
        if weight == I64(I32(weight)) and other == I64(I32(other)):
            part = U64(weight * other * number)
            low = U64(low + part)
            high += high_product(weight * other, number) + I64(low < part)
        else:
            _add_halves(cross, pair, weight, number, other, I64(1))
    add_large(cross, pair, I64(low & U64(0xFFFFFFFF)), I64(1))
    add_large_32(cross, pair, I64(low >> U64(32)), I64(1))
    add_large_64(cross, pair, high, I64(1))


@numba.njit(inline="always")
def _add_halves(sums: NDArray[U64], place: I64, x: I64, u: I64, y: I64, v: I64) -> None:
    """Add (x u) (y v) to a large sum for any x and y, by their low and their high 32 bits: nothing overflows."""
    low, high = (x & I64(0xFFFFFFFF)) * u, (x >> I64(32)) * u
    other_low, other_high = (y & I64(0xFFFFFFFF)) * v, (y >> I64(32)) * v
    add_large(sums, place, low, other_low)
    add_large_32(sums, place, low, other_high)
    add_large_32(sums, place, high, other_low)
    add_large_64(sums, place, high, other_high)
