"""What several oracles do alike: randomized response over an index, histograms of reports, counts of packed bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Source

__all__ = ["bit_support", "bit_supports", "histogram", "stay_or_move"]


def stay_or_move(own: NDArray[np.uint64], stay: int, size: int, source: Source) -> NDArray[np.uint64]:
    """Runs on the device: each index of 0 .. size - 1 stays on a coin, or moves to one of the others; in place."""
    moved = np.flatnonzero(~source.coin(stay, len(own)))
    others = source.below(size - 1, len(moved))
    own[moved] = others + (others >= own[moved])  # skip its own
    return own


def histogram(places: NDArray[Any], size: int, weights: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Runs at the collector: how many reports (or how much weight) fell on each place below `size`, exactly."""
    if weights is None:
        return np.bincount(places, minlength=size)
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, places, weights)  # bincount would pass the weights through doubles
    return counts


def bit_support(
    bits: NDArray[np.uint8], size: int, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """How many rows (or how much weight) have each candidate's bit set."""
    from veil.kernels.counting import count_bits, count_bits_weighted
    from veil.kernels.parallel import sum_over_threads

    count = count_bits if weights is None else count_bits_weighted
    counts = sum_over_threads(count, (bits, weights), work=size)[:size]
    return counts if candidates is None else counts[candidates.astype(np.int64)]


def bit_supports(bits: NDArray[np.uint8], candidates: NDArray[Any]) -> NDArray[np.uint8]:
    """Each candidate's bit in each row."""
    byte, bit = (candidates >> np.uint64(3)).astype(np.int64), (candidates & np.uint64(7)).astype(np.uint8)
    return (bits[:, byte] >> bit) & np.uint8(1)
