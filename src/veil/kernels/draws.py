"""Many draws below a repeating list of bounds: remainders without divisions (`Source.below`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["remainders"]

U64 = np.uint64
_LOW = U64(0xFFFFFFFF)
_HALF = U64(32)


@compiled()
def remainders(words: NDArray[U64], bounds: NDArray[U64], inverses: NDArray[U64], out: NDArray[U64]) -> bool:
    """out[i] = words[i] modulo its bound; the bounds repeat in turn. Returns whether any word may have to be rejected.

    `inverses` are floor((2^64 - 1) / bound): the quotient's estimate, the high half of a product, is at most two short.
    """
    near = False
    for start in range(0, len(words), len(bounds)):
        row, rests = words[start : start + len(bounds)], out[start : start + len(bounds)]
        for j in range(len(bounds)):
            word, bound, inverse = row[j], bounds[j], inverses[j]
            near |= word >= U64(0) - bound
            high, low, a, b = word >> _HALF, word & _LOW, inverse >> _HALF, inverse & _LOW
            middle = high * b + ((low * b) >> _HALF)
            carry = low * a + (middle & _LOW)
            rest = word - (high * a + (middle >> _HALF) + (carry >> _HALF)) * bound
            rest -= bound if rest >= bound else U64(0)
            rest -= bound if rest >= bound else U64(0)
            rests[j] = rest
    return near
