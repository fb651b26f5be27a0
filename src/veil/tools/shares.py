"""Whole people in given proportions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["proportional"]


def proportional(shares: NDArray[np.float64], people: int) -> NDArray[np.int64]:
    """People in whole numbers, in proportion to the shares; they add up exactly, because running sums are rounded.

    >>> proportional(np.array([2.0, 1.0]), 10).tolist()
    [7, 3]
    """
    ends = np.rint(np.cumsum(shares) / shares.sum() * people).astype(np.int64)
    held: NDArray[np.int64] = np.diff(ends, prepend=0)
    return held
