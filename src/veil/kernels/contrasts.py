"""Tables of many attributes to their coefficients and back, along every axis at once.

Along an axis of d values, number 0 is the sum and number i > 0 is sqrt(d / (i (i + 1))) times (the sum of the values
before i, less i times value i): Helmert's contrasts, which for two values are the Walsh transform. Prefix sums give all
of them in one pass over the axis, whatever its size. The matrix of an axis times its transpose is d times the identity.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.hadamard import transform

__all__ = ["combine", "contrast"]

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
