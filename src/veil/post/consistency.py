"""Rules for a whole histogram: non-negative, adding up to one, or both (Wang et al., NDSS 2020, section IV).

They are functions from frequencies to frequencies, without a noise model. All but `spread_rest` keep the order of
values (ties may appear). Where a definition leaves a case open (no positive value, one value above the total), the
docstring says what is done.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDING = 1 + 1e-12  # sums of frequencies that add up to one may come out a little above it


def keep(frequencies: Floats) -> Floats:
    """Base: nothing is changed."""
    return frequencies.copy()


def positive(frequencies: Floats) -> Floats:
    """Base-Pos: negative frequencies become 0.

    >>> positive(np.array([0.7, -0.1])).tolist()
    [0.7, 0.0]
    """
    return np.maximum(frequencies, 0.0)


def cut_below(frequencies: Floats, threshold: float) -> Floats:
    """Base-Cut: frequencies below a threshold (at least 0) become 0.

    >>> cut_below(np.array([0.7, 0.2, -0.1]), 0.3).tolist()
    [0.7, 0.0, 0.0]
    """
    return np.where(frequencies >= max(threshold, 0.0), frequencies, 0.0)


def spread_rest(frequencies: Floats, total: float, threshold: float) -> Floats:
    """Significance: what is below the threshold shares the rest of the total equally (thesis 3.5.2).

    Where what is kept exceeds the total there is no rest: the others are 0.

    >>> spread_rest(np.array([0.7, 0.2, -0.1]), 1.0, 0.3).round(3).tolist()
    [0.7, 0.15, 0.15]
    """
    kept = frequencies >= max(threshold, 0.0)
    others = len(frequencies) - int(kept.sum())
    rest = max(total - float(frequencies[kept].sum()), 0.0)
    return np.where(kept, frequencies, rest / max(others, 1))


def norm(frequencies: Floats, total: float) -> Floats:
    """Norm: the same is added to every frequency, so that they add up.

    >>> norm(np.array([0.7, -0.1]), 1.0).round(3).tolist()
    [0.9, 0.1]
    """
    return np.asarray(frequencies + (total - frequencies.sum()) / len(frequencies))


def norm_mul(frequencies: Floats, total: float) -> Floats:
    """Norm-Mul: negative ones become 0, the others are multiplied so that they add up; all are equal if none is > 0.

    >>> norm_mul(np.array([0.6, 0.2, -0.1]), 1.0).round(3).tolist()
    [0.75, 0.25, 0.0]
    """
    kept = np.maximum(frequencies, 0.0)
    top = float(kept.max())
    if top == 0.0:
        return np.full(len(frequencies), total / len(frequencies))
    kept /= top  # first, so that the sum neither overflows nor vanishes
    return np.asarray(kept * (total / kept.sum()))


def norm_cut(frequencies: Floats, total: float) -> Floats:
    """Norm-Cut: the largest are kept as they are while their sum stays within the total, the rest become 0.

    Equal values are kept or cut together. If even the largest exceed the total, they share it.

    >>> norm_cut(np.array([0.7, 0.25, 0.2, -0.1]), 1.0).tolist()
    [0.7, 0.25, 0.0, 0.0]
    """
    order = np.sort(frequencies[frequencies > 0.0])[::-1]
    if not len(order):
        return np.zeros(len(frequencies))
    fits = int(np.searchsorted(np.cumsum(order), total * _ROUNDING, side="right"))
    if fits == len(order):
        return np.maximum(frequencies, 0.0)
    kept = frequencies > order[fits]  # whoever equals the first that does not fit goes with it
    if kept.any():
        return np.where(kept, frequencies, 0.0)
    largest = frequencies == order[0]
    return np.where(largest, min(float(order[0]), total / largest.sum()), 0.0)


def norm_sub(frequencies: Floats, total: float) -> Floats:
    """Norm-Sub: the same is added to all, and what falls below 0 becomes 0, so that they add up.

    The projection onto the simplex, that is constrained least squares (appendix A), exactly, by sorting.

    >>> norm_sub(np.array([0.9, 0.4, -0.1]), 1.0).round(3).tolist()
    [0.75, 0.25, 0.0]
    """
    if total <= 0.0:  # nothing is left for anybody
        return np.zeros(len(frequencies))
    top = float(frequencies.max())
    falling = np.sort(frequencies)[::-1] - top  # from the largest: nothing is lost when all are large
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    kept = int(np.count_nonzero(falling > shifts))
    return np.maximum(frequencies - top + (total - float(falling[:kept].sum())) / kept, 0.0)
