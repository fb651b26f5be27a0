"""Reports of packed bits, one for every value: what OUE and SubsetSelection share at the collector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bit_support", "bit_supports"]


def bit_support(
    bits: NDArray[np.uint8], size: int, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """How many rows (or how much weight) have each candidate's bit set."""
    from veil.kernels.counting import count_bits, count_bits_weighted
    from veil.kernels.threads import add_up

    count = count_bits if weights is None else count_bits_weighted
    counts = add_up(count, (bits, weights), work=size)[:size]
    return counts if candidates is None else counts[candidates.astype(np.int64)]


def bit_supports(bits: NDArray[np.uint8], candidates: NDArray[Any]) -> NDArray[np.uint8]:
    """Each candidate's bit in each row."""
    byte, bit = (candidates >> np.uint64(3)).astype(np.int64), (candidates & np.uint64(7)).astype(np.uint8)
    return (bits[:, byte] >> bit) & np.uint8(1)
