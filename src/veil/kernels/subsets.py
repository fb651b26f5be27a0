"""Uniform subsets by Floyd's algorithm, from decided draws."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["subset_bits", "subset_lists"]

U8 = np.uint8
U64 = np.uint64


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
