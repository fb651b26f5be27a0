"""The local hash: a 64-bit seed and a 64-bit value to one of g buckets.

Two 32-bit multiply-xorshift rounds over a value that was spread by splitmix64 first. One round, or an affine map, is
not enough: values then leak into each other's estimates, or range totals are noisier than their intervals say
(docs/decisions/0003-local-hash.md; tests/stat/test_hash.py has the battery and the rivals).
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["bucket_of", "hash32", "interval_start", "splitmix64", "spread", "support_matrix"]

U32 = np.uint32
U64 = np.uint64


@numba.njit(inline="always")
def hash32(z_low: U32, z_high: U32, s0: U32, s1: U32) -> U32:
    """32 hash bits of a spread value under a seed, both in halves."""
    # numba widens 32-bit arithmetic to 64 bits: every step is cut back, and LLVM then keeps 32-bit lanes.
    h = U32(z_low ^ s0)
    h = U32(h ^ U32(h >> U32(16)))
    h = U32(h * U32(0x7FEB352D))
    h = U32(h ^ U32(z_high ^ s1))
    h = U32(h ^ U32(h >> U32(15)))
    return U32(h * U32(0x846CA68B))


@numba.njit(inline="always")
def interval_start(bucket: U64, buckets: U64) -> U64:
    """The first hash of a bucket: bucket y is the interval [ceil(y 2^32 / g), ceil((y + 1) 2^32 / g))."""
    return ((bucket << U64(32)) + buckets - U64(1)) // buckets


@numba.njit(inline="always")
def splitmix64(value: U64) -> U64:
    """64 well-mixed bits, a bijection."""
    z = U64(value + U64(0x9E3779B97F4A7C15))
    z = U64((z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9))
    z = U64((z ^ (z >> U64(27))) * U64(0x94D049BB133111EB))
    return z ^ (z >> U64(31))


@compiled()
def spread(values: NDArray[U64]) -> NDArray[U64]:
    """splitmix64 of each value."""
    out = np.empty(len(values), U64)
    for i in range(len(values)):
        out[i] = splitmix64(values[i])
    return out


@compiled()
def bucket_of(seeds: NDArray[U64], spread_values: NDArray[U64], buckets: int) -> NDArray[U64]:
    """The bucket of value i under seed i."""
    out = np.empty(len(seeds), U64)
    for i in range(len(seeds)):
        seed, z = seeds[i], spread_values[i]
        h = hash32(U32(z), U32(z >> U64(32)), U32(seed), U32(seed >> U64(32)))
        out[i] = (U64(h) * U64(buckets)) >> U64(32)
    return out


@compiled()
def support_matrix(
    seeds: NDArray[U64], reported: NDArray[U64], buckets: int, spread_candidates: NDArray[U64]
) -> NDArray[np.uint8]:
    """Whether report i supports candidate j, as 0 and 1."""
    out = np.empty((len(seeds), len(spread_candidates)), np.uint8)
    for i in range(len(seeds)):
        s0, s1 = U32(seeds[i]), U32(seeds[i] >> U64(32))
        for j in range(len(spread_candidates)):
            z = spread_candidates[j]
            h = hash32(U32(z), U32(z >> U64(32)), s0, s1)
            out[i, j] = ((U64(h) * U64(buckets)) >> U64(32)) == reported[i]
    return out
