"""The Walsh-Hadamard transform with parities, and Helmert contrasts of tables.

`transform` decodes Hadamard reports (`veil.mechanisms.oracles.hadamard`). Reports are counted in int64; the transform
of a histogram of n reports stays within n, so nothing is rounded. Only tables of shares are transformed as floats.

`contrast` and `combine` take tables of many attributes to their coefficients and back, along every axis at once. Along
an axis of d values, coefficient 0 is the sum and coefficient i > 0 is sqrt(d / (i (i + 1))) times (the sum of the
values before i, less i times value i): Helmert's contrasts, which for two values are the Walsh transform. Prefix sums
give all of them in one pass over the axis. The matrix of an axis times its transpose is d times the identity.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

U32 = np.uint32
U64 = np.uint64
Numbers = NDArray[np.int64] | NDArray[np.float64]
_BLOCK = 1 << 12  # 32 kB of integers: a block is finished within the first-level cache
_CANDIDATES = 1 << 11  # three 32-bit columns of this length are 24 kB


@numba.njit(inline="always")
def _steps_of_two(values: Numbers, half: int) -> None:
    """One level of the transform: pairs `half` apart."""
    for start in range(0, len(values), 2 * half):
        first, second = values[start : start + half], values[start + half : start + 2 * half]
        for i in range(half):
            a, b = first[i], second[i]
            first[i], second[i] = a + b, a - b


@numba.njit(inline="always")
def _steps_of_eight(values: Numbers, part: int) -> None:
    """Three levels at once, for a third of the memory traffic: eight values, each `part` from the next."""
    for start in range(0, len(values), 8 * part):
        p0, p1 = values[start : start + part], values[start + part : start + 2 * part]
        p2, p3 = values[start + 2 * part : start + 3 * part], values[start + 3 * part : start + 4 * part]
        p4, p5 = values[start + 4 * part : start + 5 * part], values[start + 5 * part : start + 6 * part]
        p6, p7 = values[start + 6 * part : start + 7 * part], values[start + 7 * part : start + 8 * part]
        for i in range(part):
            a0, a4 = p0[i] + p4[i], p0[i] - p4[i]
            a1, a5 = p1[i] + p5[i], p1[i] - p5[i]
            a2, a6 = p2[i] + p6[i], p2[i] - p6[i]
            a3, a7 = p3[i] + p7[i], p3[i] - p7[i]
            b0, b2 = a0 + a2, a0 - a2
            b1, b3 = a1 + a3, a1 - a3
            b4, b6 = a4 + a6, a4 - a6
            b5, b7 = a5 + a7, a5 - a7
            p0[i], p1[i] = b0 + b1, b0 - b1
            p2[i], p3[i] = b2 + b3, b2 - b3
            p4[i], p5[i] = b4 + b5, b4 - b5
            p6[i], p7[i] = b6 + b7, b6 - b7


@numba.njit(inline="always")
def _descend(values: Numbers, size: int, smallest: int) -> None:
    """All levels from pairs size / 2 apart down to pairs `smallest` apart, both powers of two."""
    while size >= 8 * smallest:
        size //= 8
        _steps_of_eight(values, size)
    while size > smallest:
        size //= 2
        _steps_of_two(values, size)


@compiled()
def transform(values: Numbers) -> None:
    """In place, for a power of two: values[v] becomes the sum over j of (-1)^popcount(j & v) values[j].

    Levels commute, so the wide ones come first, three in each pass over the memory, and then every block that fits into
    the first-level cache is finished on its own.
    """
    block = min(len(values), _BLOCK)
    _descend(values, len(values), block)
    for start in range(0, len(values), block):
        _descend(values[start : start + block], block, 1)


@compiled()
def signed_histogram(reports: NDArray[U64], weights: NDArray[np.int64] | None, size: int) -> NDArray[np.int64]:
    """Reports 2 j + bit as a histogram over j: plus one for bit 0, minus one for bit 1, times the weight."""
    counts = np.zeros(size, np.int64)
    for i in range(len(reports)):
        report = U64(reports[i])
        sign = np.int64(1) - np.int64(U64(2) * (report & U64(1)))
        counts[report >> U64(1)] += sign if weights is None else sign * weights[i]
    return counts


@numba.njit(inline="always")
def _parity(low: U32, high: U32) -> U32:
    """The parity of 64 bits in halves; numba widens 32-bit arithmetic, so every step is cut back."""
    x = U32(low ^ high)
    x = U32(x ^ U32(x >> U32(16)))
    x = U32(x ^ U32(x >> U32(8)))
    x = U32(x ^ U32(x >> U32(4)))
    x = U32(x ^ U32(x >> U32(2)))
    return U32(U32(x ^ U32(x >> U32(1))) & U32(1))


@compiled()
def count_parities(reports: NDArray[U64], low: NDArray[U32], high: NDArray[U32]) -> NDArray[np.int64]:
    """Reports 2 j + bit with parity(j & v) = bit, for each candidate v in halves."""
    others = np.zeros(len(low), U32)  # a call gets fewer than 2^32 reports (`sum_over_threads` sees to it)
    for start in range(0, len(low), _CANDIDATES):
        v_low, v_high = low[start : start + _CANDIDATES], high[start : start + _CANDIDATES]
        here = others[start : start + _CANDIDATES]
        for i in range(len(reports)):
            report = U64(reports[i])
            j_low, j_high, bit = U32(report >> U64(1)), U32(report >> U64(33)), U32(report & U64(1))
            for k in range(len(here)):
                here[k] += _parity(U32(v_low[k] & j_low), U32(v_high[k] & j_high)) ^ bit
    return len(reports) - others.astype(np.int64)


@compiled()
def count_parities_weighted(
    reports: NDArray[U64], weights: NDArray[np.int64], low: NDArray[U32], high: NDArray[U32]
) -> NDArray[np.int64]:
    """The same with an integer weight per report."""
    counts = np.zeros(len(low), np.int64)
    for start in range(0, len(low), _CANDIDATES):
        v_low, v_high = low[start : start + _CANDIDATES], high[start : start + _CANDIDATES]
        here = counts[start : start + _CANDIDATES]
        for i in range(len(reports)):
            report, weight = U64(reports[i]), weights[i]
            j_low, j_high, bit = U32(report >> U64(1)), U32(report >> U64(33)), U32(report & U64(1))
            for k in range(len(here)):
                differs = _parity(U32(v_low[k] & j_low), U32(v_high[k] & j_high)) ^ bit
                here[k] += weight * np.int64(U32(1) - differs)
    return counts


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled()
def contrast(table: Floats, sizes: Ints) -> None:
    """In place: the coefficients of a flat table whose last axis varies fastest."""
    inner = _pairs(table, sizes)
    for axis in range(_leading(sizes) - 1, -1, -1):
        size = sizes[axis]
        for start in range(0, len(table), size * inner):
            first = table[start : start + inner]
            for i in range(1, size):
                row = table[start + i * inner : start + (i + 1) * inner]
                scale = math.sqrt(size / (i * (i + 1)))
                for k in range(inner):
                    value = row[k]
                    row[k] = (first[k] - i * value) * scale
                    first[k] += value
        inner *= size


@compiled()
def combine(table: Floats, sizes: Ints) -> None:
    """In place: the sum over all coefficients of each one times its contrast, in every cell; `contrast` transposed."""
    inner = _pairs(table, sizes)
    for axis in range(_leading(sizes) - 1, -1, -1):
        size = sizes[axis]
        for start in range(0, len(table), size * inner):
            first = table[start : start + inner]
            for i in range(size - 1, 0, -1):
                row = table[start + i * inner : start + (i + 1) * inner]
                scale = math.sqrt(size / (i * (i + 1)))
                for k in range(inner):
                    value = row[k] * scale
                    row[k] = first[k] - i * value
                    first[k] += value
        inner *= size


@numba.njit(inline="always")
def _leading(sizes: Ints) -> int:
    """How many axes come before the last ones of two values."""
    count = len(sizes)
    while count and sizes[count - 1] == 2:
        count -= 1
    return count


@numba.njit(inline="always")
def _pairs(table: Floats, sizes: Ints) -> int:
    """Transform the last axes, those of two values, together; return how many cells they have."""
    width = 1 << (len(sizes) - _leading(sizes))
    if width > 1:
        for start in range(0, len(table), width):
            transform(table[start : start + width])
    return width
