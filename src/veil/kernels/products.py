"""Exact sums over rows of products of two integers, as words of 256 bits: row by row, or from products of limbs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.wide import add_large, add_shifted, add_small

__all__ = ["add_grid", "add_products", "add_scaled", "multiply"]

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
