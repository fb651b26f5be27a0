"""Counting: reports that support each candidate, bits that are set in each column, and sets contained in each set.

Most time goes into the hashed loop, reports times candidates. Candidates go in blocks that stay in the first-level
cache, each report's accepted interval (start, width) is computed once for a tile of reports, and the inner loop is pure
32-bit arithmetic that LLVM turns into full vectors.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled
from veil.kernels.hashing import hash32, interval_start

U8 = np.uint8
U32 = np.uint32
U64 = np.uint64
_BLOCK = 2048  # candidates: three 32-bit columns of this length are 24 kB
_TILE = 512  # reports whose intervals are kept ready
I64 = np.int64


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


@compiled()
def count_hashed(
    seeds: NDArray[U64], reported: NDArray[U64], buckets: int, low: NDArray[U32], high: NDArray[U32]
) -> NDArray[np.int64]:
    """Reports that support each candidate; `low` and `high` are the halves of the candidates' spread values."""
    counts = np.zeros(len(low), U32)  # a call gets fewer than 2^32 reports (`sum_over_threads` sees to it)
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


@compiled()
def count_hashed_weighted(
    seeds: NDArray[U64],
    reported: NDArray[U64],
    weights: NDArray[np.int64],
    buckets: int,
    low: NDArray[U32],
    high: NDArray[U32],
) -> NDArray[np.int64]:
    """The same with an integer weight per report."""
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


@compiled()
def count_bits(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each bit is set: result[8 b + k] counts bit k of byte b.

    Eight rows at a time go through an adder tree whose wires are whole bytes (Harley and Seal): ones, twos and fours
    wait for the next eight rows, and only the eights are taken apart, into byte-wide counters that are flushed before
    they can overflow. All inner loops run over neighbouring bytes and fill whole vectors.
    """
    people, size = rows.shape
    planes = np.zeros((8, size), np.int64)
    narrow = np.zeros((8, size), U8)
    waiting = np.zeros((3, size), U8)
    ones, twos, fours, eights = waiting[0], waiting[1], waiting[2], np.empty(size, U8)
    groups = people // 8
    for group in range(groups):
        r = rows[8 * group : 8 * group + 8]
        r0, r1, r2, r3, r4, r5, r6, r7 = r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]
        for b in range(size):
            one, two_a = _add_three(ones[b], r0[b], r1[b])
            one, two_b = _add_three(one, r2[b], r3[b])
            two, four_a = _add_three(twos[b], two_a, two_b)
            one, two_a = _add_three(one, r4[b], r5[b])
            ones[b], two_b = _add_three(one, r6[b], r7[b])
            twos[b], four_b = _add_three(two, two_a, two_b)
            fours[b], eights[b] = _add_three(fours[b], four_a, four_b)
        for k in range(8):
            plane, shift = narrow[k], U8(k)
            for b in range(size):
                plane[b] += U8(U8(eights[b] >> shift) & U8(1))
        if group % 255 == 254 or group == groups - 1:
            planes += 8 * narrow.astype(np.int64)
            narrow[:] = 0
    for i in range(3):
        _add_row(planes, waiting[i], 1 << i)
    for i in range(8 * groups, people):
        _add_row(planes, rows[i], 1)
    return np.ascontiguousarray(planes.T).reshape(8 * size)


@compiled()
def count_bits_weighted(rows: NDArray[np.uint8], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same with an integer weight per row."""
    people, size = rows.shape
    planes = np.zeros((8, size), np.int64)
    for i in range(people):
        _add_row(planes, rows[i], weights[i])
    return np.ascontiguousarray(planes.T).reshape(8 * size)


@numba.njit(inline="always")
def _add_three(a: U8, b: U8, c: U8) -> tuple[U8, U8]:
    """Sum and carry of three bits, eight times side by side."""
    half = U8(a ^ b)
    return U8(half ^ c), U8(U8(a & b) | U8(half & c))


@numba.njit(inline="always")
def _add_row(planes: NDArray[np.int64], row: NDArray[np.uint8], weight: int) -> None:
    for k in range(8):
        plane, shift = planes[k], U8(k)
        for b in range(len(row)):
            plane[b] += weight * np.int64(U8(U8(row[b] >> shift) & U8(1)))


def halves(spread_values: NDArray[Any]) -> tuple[NDArray[U32], NDArray[U32]]:
    """Low and high 32 bits as two contiguous columns."""
    return spread_values.astype(U32), (spread_values >> U64(32)).astype(U32)


@compiled()
def contained(
    offsets: NDArray[I64],
    ids: NDArray[I64],
    relevant: int,
    starts: NDArray[I64],
    order: NDArray[I64],
    wanted_offsets: NDArray[I64],
    wanted: NDArray[I64],
) -> tuple[NDArray[I64], NDArray[I64]]:
    """The wanted sets that each held set contains, as offsets and increasing indices.

    `ids` are the held items, -1 where no wanted set has them, otherwise below `relevant`. Wanted set w has the items
    wanted[wanted_offsets[w] : wanted_offsets[w + 1]]; order[starts[i] : starts[i + 1]] are the wanted sets whose first
    item is i.
    """
    people = len(offsets) - 1
    holder = np.full(relevant, -1, I64)  # the last person seen with each item
    ends = np.zeros(people + 1, I64)
    found = np.empty(max(16, people), I64)
    size = 0
    for person in range(people):
        for place in range(offsets[person], offsets[person + 1]):
            if ids[place] >= 0:
                holder[ids[place]] = person
        begin = size
        for place in range(offsets[person], offsets[person + 1]):
            if ids[place] < 0:
                continue
            for at in range(starts[ids[place]], starts[ids[place] + 1]):
                candidate = order[at]
                whole = True
                for item in range(wanted_offsets[candidate] + 1, wanted_offsets[candidate + 1]):
                    if holder[wanted[item]] != person:
                        whole = False
                        break
                if not whole:
                    continue
                if size == len(found):
                    larger = np.empty(2 * size, I64)
                    larger[:size] = found
                    found = larger
                found[size] = candidate
                size += 1
        if size - begin > 1:
            found[begin:size].sort()
        ends[person + 1] = size
    return ends, found[:size].copy()
