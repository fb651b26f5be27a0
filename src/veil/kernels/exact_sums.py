"""Exact sums of products in integers of 128 and 256 bits, which numba does not have.

A sum is two or four words of 64 bits in an array, the lowest first, in two's complement. Addition is exact, so the
order of rows does not matter. `hashed_values` computes for each report how much of a weighted set of cells it supports;
`add_moments` adds up first and second moments of such numbers.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.hashing import hash32, interval_start

SMALL_WORDS, LARGE_WORDS = 2, 4


def _adder(words: int, shift: int) -> Any:
    """A function (sums, i, x, y) for compiled loops: adds x * y * 2^shift to the i-th sum of a flat array of words."""

    @intrinsic
    def add(typing: Any, sums: Any, i: Any, x: Any, y: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            from llvmlite import ir

            array, place, one, other = given
            wide, twice = ir.IntType(64 * words), ir.IntType(128)
            data = context.make_array(signature.args[0])(context, builder, array).data
            at = builder.gep(data, [builder.mul(place, ir.Constant(place.type, words))])
            held = builder.bitcast(at, wide.as_pointer())
            product = builder.mul(builder.sext(one, twice), builder.sext(other, twice))
            if words > SMALL_WORDS:
                product = builder.shl(builder.sext(product, wide), ir.Constant(wide, shift))
            builder.store(builder.add(builder.load(held, align=8), product), held, align=8)
            return cgutils.get_null_value(context.get_value_type(types.none))

        return types.none(sums, types.int64, types.int64, types.int64), made

    return add


@intrinsic
def _add_large(typing: Any, sums: Any, i: Any, x: Any, y: Any) -> Any:
    """For compiled loops: adds x * y to the i-th sum of a flat array, and looks at its upper half only where it must.

    That is where the carry is not the one that the product's sign undoes.
    """

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir

        array, place, one, other = given
        twice = ir.IntType(128)
        data = context.make_array(signature.args[0])(context, builder, array).data
        at = builder.gep(data, [builder.mul(place, ir.Constant(place.type, LARGE_WORDS))])
        low = builder.bitcast(at, twice.as_pointer())
        product = builder.mul(builder.sext(one, twice), builder.sext(other, twice))
        added = builder.add(builder.load(low, align=8), product)
        builder.store(added, low, align=8)
        carried = builder.icmp_unsigned("<", added, product)
        negative = builder.icmp_signed("<", product, ir.Constant(twice, 0))
        with builder.if_then(builder.xor(carried, negative), likely=False):
            high = builder.gep(low, [ir.Constant(ir.IntType(64), 1)])
            change = builder.sub(builder.zext(carried, twice), builder.zext(negative, twice))
            builder.store(builder.add(builder.load(high, align=8), change), high, align=8)
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(sums, types.int64, types.int64, types.int64), made


@intrinsic
def _add_shifted(typing: Any, sums: Any, i: Any, x: Any, shift: Any) -> Any:
    """For compiled loops: adds x * 2^shift to the i-th large sum of a flat array; the shift is below 256."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir

        array, place, number, bits = given
        wide = ir.IntType(64 * LARGE_WORDS)
        data = context.make_array(signature.args[0])(context, builder, array).data
        at = builder.gep(data, [builder.mul(place, ir.Constant(place.type, LARGE_WORDS))])
        held = builder.bitcast(at, wide.as_pointer())
        shifted = builder.shl(builder.sext(number, wide), builder.zext(bits, wide))
        builder.store(builder.add(builder.load(held, align=8), shifted), held, align=8)
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(sums, types.int64, types.int64, types.int64), made


@intrinsic
def _high_product(typing: Any, x: Any, y: Any) -> Any:
    """The upper 64 of the 128 bits of a product of two signed integers, for compiled loops."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir

        twice = ir.IntType(128)
        product = builder.mul(*(builder.sext(factor, twice) for factor in given))
        return builder.trunc(builder.ashr(product, ir.Constant(twice, 64)), ir.IntType(64))

    return types.int64(types.int64, types.int64), made


add_small: Any = _adder(SMALL_WORDS, 0)
add_large: Any = _add_large
add_large_32: Any = _adder(LARGE_WORDS, 32)
add_large_64: Any = _adder(LARGE_WORDS, 64)
add_shifted: Any = _add_shifted
high_product: Any = _high_product


I64 = np.int64
U64 = np.uint64
F64 = np.float64
_DEPTH, _TILE = 256, 32  # two tiles of doubles fit into a core's cache


@compiled()
def add_products(places: NDArray[I64], weights: NDArray[I64], products: NDArray[U64]) -> None:
    """Add w w' of each row at its place: one large sum per pair of a weight with itself or one before it."""
    sums = I64(weights.shape[0])
    pairs = sums * (sums + 1) // 2
    for i in range(len(places)):
        pair = places[i] * pairs
        for a in range(sums):
            for b in range(a + 1):
                add_large(products, pair, weights[a, i], weights[b, i])
                pair += 1


@compiled()
def add_scaled(places: NDArray[I64], numbers: NDArray[I64], weights: NDArray[I64], scaled: NDArray[U64]) -> None:
    """Add w u of each row at its place: one small sum per weight."""
    sums = I64(weights.shape[0])
    for a in range(sums):
        for i in range(len(places)):
            add_small(scaled, places[i] * sums + a, weights[a, i], numbers[i])


@compiled(fastmath={"reassoc", "contract"})  # every sum is an integer below 2^53: no order of additions shows
def multiply(
    left: NDArray[F64], right: NDArray[F64], rows: NDArray[I64], columns: NDArray[I64], grid: NDArray[I64]
) -> None:
    """Add left times right transposed to `grid`, for integers of at most 21 bits beside their sign.

    There are multiples of 4 rows, and `rows` and `columns` name the weight of each, in order: parts of the grid that
    `add_grid` leaves out are not computed. BLAS would be as fast on an idle machine, and many times slower on a busy
    one: its threads wait for each other.
    """
    for start in range(0, left.shape[1], _DEPTH):
        depth = min(_DEPTH, left.shape[1] - start)
        some = left[:, start : start + depth]
        others = right[:, start : start + depth]
        for top in range(0, left.shape[0], _TILE):
            bottom = min(top + _TILE, left.shape[0])
            for first in range(0, right.shape[0], _TILE):
                if columns[first] > rows[bottom - 1]:
                    break
                last = min(first + _TILE, right.shape[0])
                for i in range(top, bottom, 2):
                    for j in range(first, last, 4):
                        _multiply_some(some, others, i, j, depth, grid)


@compiled(inline="always", fastmath={"reassoc", "contract"})
def _multiply_some(left: NDArray[F64], right: NDArray[F64], i: int, j: int, depth: int, grid: NDArray[I64]) -> None:
    """The same for two rows and four columns, whose sums stand in registers."""
    a0, a1 = left[i], left[i + 1]
    b0, b1, b2, b3 = right[j], right[j + 1], right[j + 2], right[j + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    for t in range(depth):
        x, y = a0[t], a1[t]
        s00 += x * b0[t]
        s01 += x * b1[t]
        s02 += x * b2[t]
        s03 += x * b3[t]
        s10 += y * b0[t]
        s11 += y * b1[t]
        s12 += y * b2[t]
        s13 += y * b3[t]
    grid[i, j] += I64(s00)
    grid[i, j + 1] += I64(s01)
    grid[i, j + 2] += I64(s02)
    grid[i, j + 3] += I64(s03)
    grid[i + 1, j] += I64(s10)
    grid[i + 1, j + 1] += I64(s11)
    grid[i + 1, j + 2] += I64(s12)
    grid[i + 1, j + 3] += I64(s13)


@compiled()
def add_grid(
    grid: NDArray[I64],
    rows: NDArray[I64],
    columns: NDArray[I64],
    row_shifts: NDArray[I64],
    column_shifts: NDArray[I64],
    products: NDArray[U64],
) -> None:
    """Add grid[i, j] 2^(row_shifts[i] + column_shifts[j]) to the large sum of the pair (rows[i], columns[j]).

    Only pairs of a weight with itself or one before it are added: the others are equal.
    """
    for i in range(grid.shape[0]):
        start = rows[i] * (rows[i] + 1) // 2
        for j in range(grid.shape[1]):
            if columns[j] <= rows[i] and grid[i, j]:
                add_shifted(products, start + columns[j], grid[i, j], row_shifts[i] + column_shifts[j])


I32 = np.int32
U32 = np.uint32
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

    `numbers` are below 2^30. All sums are integers as words, see `add_large`: the order of rows never shows. They stand
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
