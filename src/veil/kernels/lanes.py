"""Many coins at once: 64 lanes of random bits against one bit of a threshold (`Source.coin_bits`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["compare_bit"]

U64 = np.uint64


@compiled()
def compare_bit(
    words: NDArray[U64], bit: bool, blocks: NDArray[np.intp], undecided: NDArray[U64], heads: NDArray[U64]
) -> int:
    """One round: word i goes to block blocks[i], whose undecided lanes have matched all higher bits of the threshold.

    A lane that draws 0 where the threshold has 1 is heads, one that draws 1 where it has 0 is tails. Blocks with lanes
    left move to the front of `blocks` and `undecided`, in order; returns how many they are.
    """
    kept = 0
    for i in range(len(words)):
        block, lanes, word = blocks[i], undecided[i], words[i]
        if bit:
            heads[block] |= lanes & ~word
            lanes &= word
        else:
            lanes &= ~word
        blocks[kept], undecided[kept] = block, lanes
        kept += lanes != U64(0)
    return kept
