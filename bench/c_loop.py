"""The limit to measure OLH counting against: the same loop in C, compiled here with `gcc -O3 -march=native`."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.timing import NotRunError

# The inner loop stands alone: inlined, gcc 12 exchanges the two loops at -O3, which makes them ten times slower.
SOURCE = r"""
#include <stdint.h>
#include <stddef.h>

static uint64_t start_of(uint64_t bucket, uint64_t buckets) { return ((bucket << 32) + buckets - 1) / buckets; }

__attribute__((noinline)) static void count_one(
        uint32_t s0, uint32_t s1, uint32_t start, uint32_t width,
        const uint32_t *restrict low, const uint32_t *restrict high, size_t candidates, uint32_t *restrict counts) {
    for (size_t j = 0; j < candidates; j++) {
        uint32_t h = low[j] ^ s0;
        h ^= h >> 16;
        h *= 0x7feb352du;
        h ^= high[j] ^ s1;
        h ^= h >> 15;
        h *= 0x846ca68bu;
        counts[j] += (uint32_t)(h - start) < width;
    }
}

void count_hashed(const uint64_t *seeds, const uint8_t *reported, size_t reports, uint64_t buckets,
                  const uint32_t *low, const uint32_t *high, size_t candidates, uint32_t *counts) {
    for (size_t i = 0; i < reports; i++) {
        const uint64_t start = start_of(reported[i], buckets), end = start_of(reported[i] + 1, buckets);
        count_one((uint32_t)seeds[i], (uint32_t)(seeds[i] >> 32), (uint32_t)start, (uint32_t)(end - start),
                  low, high, candidates, counts);
    }
}

__attribute__((noinline)) static int64_t add_one(
        uint32_t s0, uint32_t s1, uint32_t start, uint32_t width, const uint32_t *restrict low,
        const uint32_t *restrict high, const int32_t *restrict coefficients, size_t cells) {
    int64_t total = 0;
    for (size_t block = 0; block < cells; block += 256) {
        const size_t stop = block + 256 < cells ? block + 256 : cells;
        int32_t some = 0;
        for (size_t j = block; j < stop; j++) {
            uint32_t h = low[j] ^ s0;
            h ^= h >> 16;
            h *= 0x7feb352du;
            h ^= high[j] ^ s1;
            h ^= h >> 15;
            h *= 0x846ca68bu;
            some += (uint32_t)(h - start) < width ? coefficients[j] : 0;
        }
        total += some;
    }
    return total;
}

void add_hashed(const uint64_t *seeds, const uint64_t *reported, size_t reports, uint64_t buckets, const uint32_t *low,
                const uint32_t *high, const int32_t *coefficients, size_t cells, int64_t *out) {
    for (size_t i = 0; i < reports; i++) {
        const uint64_t start = start_of(reported[i], buckets), end = start_of(reported[i] + 1, buckets);
        out[i] = add_one((uint32_t)seeds[i], (uint32_t)(seeds[i] >> 32), (uint32_t)start, (uint32_t)(end - start),
                         low, high, coefficients, cells);
    }
}
"""


class CLoop:
    """The compiled loop; raises NotRunError without a compiler."""

    def __init__(self) -> None:
        compiler = shutil.which("gcc")
        if compiler is None:
            raise NotRunError("no gcc on this machine")
        with tempfile.TemporaryDirectory() as folder:
            code, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
            code.write_text(SOURCE)
            command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(code)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                raise NotRunError("gcc could not compile the loop")
            loaded = ctypes.CDLL(str(library))
            self._count: Any = loaded.count_hashed
            self._add: Any = loaded.add_hashed
        self._count.restype = self._add.restype = None

    def count(
        self,
        seeds: NDArray[np.uint64],
        reported: NDArray[np.uint8],
        buckets: int,
        low: NDArray[np.uint32],
        high: NDArray[np.uint32],
    ) -> NDArray[np.int64]:
        counts = np.zeros(len(low), np.uint32)
        self._count(
            _pointer(seeds, np.uint64), _pointer(reported, np.uint8), ctypes.c_size_t(len(seeds)),
            ctypes.c_uint64(buckets), _pointer(low, np.uint32), _pointer(high, np.uint32),
            ctypes.c_size_t(len(low)), _pointer(counts, np.uint32),
        )  # fmt: skip
        return counts.astype(np.int64)

    def add(
        self,
        seeds: NDArray[np.uint64],
        reported: NDArray[np.uint64],
        buckets: int,
        low: NDArray[np.uint32],
        high: NDArray[np.uint32],
        coefficients: NDArray[np.int32],
    ) -> NDArray[np.int64]:
        """For each report the coefficients of the cells that it supports, added up."""
        out = np.zeros(len(seeds), np.int64)
        self._add(
            _pointer(seeds, np.uint64), _pointer(reported, np.uint64), ctypes.c_size_t(len(seeds)),
            ctypes.c_uint64(buckets), _pointer(low, np.uint32), _pointer(high, np.uint32),
            _pointer(coefficients, np.int32), ctypes.c_size_t(len(low)), _pointer(out, np.int64),
        )  # fmt: skip
        return out


def _pointer(array: NDArray[Any], kind: type) -> ctypes.c_void_p:
    if array.dtype != kind or not array.flags.c_contiguous:
        raise TypeError("the C loop takes contiguous arrays of its own types")
    return ctypes.c_void_p(array.ctypes.data)
