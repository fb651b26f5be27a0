"""Support counting: how many reports support each candidate.

The hashed loop is the one that matters: reports times candidates. Candidates go in blocks that stay in the first-level
cache, each report's accepted interval (start, width) is computed once for a tile of reports, and the inner loop is pure
32-bit arithmetic that LLVM turns into full vectors.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.hashing import hash32, interval_start

__all__ = ["count_bits", "count_bits_weighted", "count_hashed", "count_hashed_weighted", "halves"]

U32 = np.uint32
U64 = np.uint64
_BLOCK = 2048  # candidates: three 32-bit columns of this length are 24 kB
_TILE = 512  # reports whose intervals are kept ready


@numba.njit(inline="always")
def _ready_tile(
    seeds: NDArray[U64], reported: NDArray[U64], buckets: int, first: int, last: int, ready: NDArray[U32]
) -> None:
    """Seed halves, interval start and width of the reports first .. last - 1."""
    for i in range(first, last):
        start = interval_start(U64(reported[i]), U64(buckets))
        ready[0, i - first] = U32(seeds[i])
        ready[1, i - first] = U32(seeds[i] >> U64(32))
        ready[2, i - first] = U32(start)
        ready[3, i - first] = U32(interval_start(U64(reported[i]) + U64(1), U64(buckets)) - start)


@numba.njit(cache=True, nogil=True)
def count_hashed(
    seeds: NDArray[U64], reported: NDArray[U64], buckets: int, low: NDArray[U32], high: NDArray[U32]
) -> NDArray[np.int64]:
    """Reports that support each candidate; `low` and `high` are the halves of the candidates' spread values."""
    counts = np.zeros(len(low), U32)  # a call gets fewer than 2^32 reports (threads.add_up sees to it)
    ready = np.empty((4, _TILE), U32)
    for first in range(0, len(seeds), _TILE):
        last = min(first + _TILE, len(seeds))
        _ready_tile(seeds, reported, buckets, first, last, ready)
        for block in range(0, len(low), _BLOCK):
            z_low, z_high = low[block : block + _BLOCK], high[block : block + _BLOCK]
            here = counts[block : block + _BLOCK]
            for i in range(last - first):
                s0, s1, start, width = ready[0, i], ready[1, i], ready[2, i], ready[3, i]
                for j in range(len(here)):
                    here[j] += U32(hash32(z_low[j], z_high[j], s0, s1) - start) < width
    return counts.astype(np.int64)


@numba.njit(cache=True, nogil=True)
def count_hashed_weighted(
    seeds: NDArray[U64],
    reported: NDArray[U64],
    weights: NDArray[np.int64],
    buckets: int,
    low: NDArray[U32],
    high: NDArray[U32],
) -> NDArray[np.int64]:
    """The same with an integer weight a report."""
    counts = np.zeros(len(low), np.int64)
    ready = np.empty((4, _TILE), U32)
    for first in range(0, len(seeds), _TILE):
        last = min(first + _TILE, len(seeds))
        _ready_tile(seeds, reported, buckets, first, last, ready)
        for block in range(0, len(low), _BLOCK):
            z_low, z_high = low[block : block + _BLOCK], high[block : block + _BLOCK]
            here = counts[block : block + _BLOCK]
            for i in range(last - first):
                s0, s1, start, width = ready[0, i], ready[1, i], ready[2, i], ready[3, i]
                weight = weights[first + i]
                for j in range(len(here)):
                    here[j] += weight * np.int64(U32(hash32(z_low[j], z_high[j], s0, s1) - start) < width)
    return counts


@numba.njit(cache=True, nogil=True)
def count_bits(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each bit is set: result[8 b + k] counts bit k of byte b.

    Byte-wide counters, one row of them for each bit of a byte, are flushed before they can overflow: the inner loop
    runs over neighbouring bytes and fills whole vectors.
    """
    people, size = rows.shape
    planes = np.zeros((8, size), np.int64)
    narrow = np.zeros((8, size), np.uint8)
    for first in range(0, people, 255):
        narrow[:] = 0
        for i in range(first, min(first + 255, people)):
            row = rows[i]
            for k in range(8):
                plane = narrow[k]
                shift = np.uint8(k)
                for b in range(size):
                    plane[b] += np.uint8(np.uint8(row[b] >> shift) & np.uint8(1))
        planes += narrow
    return np.ascontiguousarray(planes.T).reshape(8 * size)


@numba.njit(cache=True, nogil=True)
def count_bits_weighted(rows: NDArray[np.uint8], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same with an integer weight a row."""
    people, size = rows.shape
    planes = np.zeros((8, size), np.int64)
    for i in range(people):
        row, weight = rows[i], weights[i]
        for k in range(8):
            plane = planes[k]
            for b in range(size):
                plane[b] += weight * np.int64((row[b] >> np.uint8(k)) & np.uint8(1))
    return np.ascontiguousarray(planes.T).reshape(8 * size)


def halves(spread_values: NDArray[Any]) -> tuple[NDArray[U32], NDArray[U32]]:
    """Low and high 32 bits as two contiguous columns."""
    return spread_values.astype(U32), (spread_values >> U64(32)).astype(U32)
