"""Bloom filters in cohorts: which bits a value sets. Public knowledge, shared by devices and collector.

Hash j of cohort c is the local hash (kernels.hashing) under the seed splitmix64(splitmix64(c) ^ j), with the filter's
bits as its buckets. Not here: any randomness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

__all__ = ["design_matrix", "filters", "positions"]

U64 = NDArray[np.uint64]


def positions(cohorts: NDArray[Any], spread_values: U64, bits: int, hashes: int) -> U64:
    """The bit that each hash gives value i in cohort i: one row per value, one column per hash. They may coincide.

    >>> positions(np.array([0, 1]), np.array([7, 7], dtype=np.uint64), bits=128, hashes=2).shape
    (2, 2)
    """
    from veil.kernels.hashing import bucket_of, splitmix64_each

    # Spread twice: one round only would give hash j the seed that is also the spread value of code j.
    own = splitmix64_each(np.ascontiguousarray(cohorts, dtype=np.uint64))
    return np.stack(
        [bucket_of(splitmix64_each(own ^ np.uint64(j)), spread_values, bits) for j in range(hashes)], axis=1
    )


def filters(places: U64, bits: int) -> NDArray[np.uint8]:
    """The packed filters, lowest bit first, of rows of positions."""
    packed = np.zeros((len(places), -(-bits // 8)), dtype=np.uint8)
    rows = np.arange(len(places))
    for place in places.T:  # one position per row at a time, so that no two writes meet
        packed[rows, place >> np.uint64(3)] |= np.uint8(1) << (place & np.uint64(7)).astype(np.uint8)
    return packed


def design_matrix(cohorts: NDArray[np.int64], spread_values: U64, bits: int, hashes: int) -> csc_matrix:
    """Which bits (rows: those of the first cohort, then of the next) each candidate (column) sets. Sparse, 0 and 1."""
    from scipy.sparse import csc_matrix

    count = len(spread_values)
    blocks = [positions(np.full(count, c), spread_values, bits, hashes) for c in cohorts]
    starts = bits * np.arange(len(cohorts), dtype=np.int64)
    rows = np.stack([block.astype(np.int64) + start for block, start in zip(blocks, starts, strict=True)], axis=1)
    columns = np.repeat(np.arange(count), rows[0].size)
    matrix = csc_matrix((np.ones(rows.size), (rows.ravel(), columns)), shape=(bits * len(cohorts), count))
    matrix.data[:] = 1.0  # hashes that coincide set their bit once
    return matrix
