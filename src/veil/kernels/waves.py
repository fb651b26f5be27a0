"""EM for waves. Products with the matrix of a wave are differences of cumulative sums: O(buckets) per step.

The cumulative sums of a function that is constant on buckets are polynomials within each bucket: in Newton's form, with
binomials of the distance from the bucket's start, they are exact on whole cells. `table` holds the function (row 0) and
its first, second and third cumulative sums at the buckets' starts; the last column belongs to the end of the last
bucket. `order` is 2 for a square wave (two ends) and 3 for a trapezoid (four corners).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

Floats = NDArray[np.float64]

BLOCK = 10
"""Steps between two looks at the likelihood: its logarithms would take as long as the rest of a step."""

# Contraction and reciprocals only: sums keep their order, and results do not depend on the machine's vector length.
_FAST: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "arcp"}}


@compiled(**_FAST)
def _cumulate(table: Floats, widths: Floats, order: int) -> None:
    """Fill the rows below the function: `widths` are the binomials of the buckets' widths."""
    last = table.shape[1] - 1
    first, second, third = 0.0, 0.0, 0.0
    for i in range(last):
        value = table[0, i]
        table[1, i], table[2, i] = first, second
        if order == 3:
            table[3, i] = third
            third += widths[0, i] * second + widths[1, i] * first + widths[2, i] * value
        second += widths[0, i] * first + widths[1, i] * value
        first += widths[0, i] * value
    table[1, last], table[2, last], table[3, last] = first, second, third


@compiled(**_FAST)
def _corners(table: Floats, order: int, index: NDArray[np.uint64], binomials: Floats, out: Floats) -> None:
    """The last cumulative sum at the wave's ends (added less subtracted), or at its four corners."""
    for j in range(len(out)):
        if order == 2:
            a, b = index[0, j], index[1, j]
            out[j] = (
                (table[2, a] - table[2, b])
                + (binomials[0, 0, j] * table[1, a] - binomials[1, 0, j] * table[1, b])
                + (binomials[0, 1, j] * table[0, a] - binomials[1, 1, j] * table[0, b])
            )
        else:
            total = 0.0
            for corner in range(4):
                a = index[corner, j]
                value = table[3, a] + binomials[corner, 0, j] * table[2, a]
                value += binomials[corner, 1, j] * table[1, a] + binomials[corner, 2, j] * table[0, a]
                total += value if corner in (0, 3) else -value
            out[j] = total


@compiled(**_FAST)
def box_sums(values: Floats, widths: Floats, index: NDArray[np.uint64], binomials: Floats) -> Floats:
    """The sums of a function over all waves that begin in each bucket of another lattice; not yet scaled."""
    order = 2 if len(index) == 2 else 3
    table = np.zeros((4, len(values) + 1))
    table[0, :-1] = values
    _cumulate(table, widths, order)
    corners = np.empty(index.shape[1])
    _corners(table, order, index, binomials, corners)
    return corners[1:] - corners[:-1]


@compiled(**_FAST)
def _log_likelihood(counts: Floats, chances: Floats) -> float:
    total = 0.0
    for j in range(len(counts)):
        if counts[j] > 0:
            total += counts[j] * math.log(chances[j])
    return total


@compiled(**_FAST)
def iterate(
    smooth: Floats,
    spikes: Floats,
    share: float,
    penalty: float,
    counts: Floats,
    held: tuple[Floats, NDArray[np.uint64], Floats],
    seen: tuple[Floats, NDArray[np.uint64], Floats],
    floor: float,
    lift: float,
    tau: float,
    change: float,
    most: int,
    trace: Floats,
) -> tuple[int, bool]:
    """EM with smoothing of `smooth`, soft thresholds on `spikes`; both are changed in place. Steps, and if it settled.

    `share` is what a bucket gives to either neighbour in a step.
    With nothing smooth it is plain EM, with nothing spiky EMS. `held` are the binomials of the buckets' widths and the
    corners at which the reports' sums are taken, `seen` the same for the reports' buckets and the way back.
    """
    widths, forth_index, forth = held
    seen_widths, back_index, back = seen
    buckets, reports = len(smooth), len(counts)
    order = 2 if len(forth_index) == 2 else 3
    table, ratios = np.zeros((4, buckets + 1)), np.zeros((4, reports + 1))
    seen_corners, held_corners = np.empty(reports + 1), np.empty(buckets + 1)
    chances, grown, x = np.empty(reports), np.empty(buckets), smooth + spikes
    calm, before = 0, -np.inf
    people = counts.sum()
    for step in range(most):
        for i in range(buckets):
            table[0, i] = x[i] / widths[0, i]
        _cumulate(table, widths, order)
        _corners(table, order, forth_index, forth, seen_corners)
        for j in range(reports):
            chances[j] = floor * seen_widths[0, j] + lift * (seen_corners[j + 1] - seen_corners[j])
            ratios[0, j] = counts[j] / chances[j]
        if step % BLOCK == 0:
            likelihood = _log_likelihood(counts, chances)
            trace[step // BLOCK] = likelihood
            calm = calm + 1 if abs(likelihood - before) < tau * BLOCK else 0
            before = likelihood
            if calm == 2:
                return step, True
        _cumulate(ratios, seen_widths, order)
        _corners(ratios, order, back_index, back, held_corners)
        everywhere = floor * ratios[1, reports]
        for i in range(buckets):
            grown[i] = everywhere + lift * (held_corners[i + 1] - held_corners[i]) / widths[0, i]
        if _update(x, smooth, spikes, grown, share, penalty / people, people) < change:
            return step + 1, True
    return most, False


@compiled(**_FAST)
def _update(x: Floats, smooth: Floats, spikes: Floats, grown: Floats, share: float, cut: float, people: float) -> float:
    """One M-step from the likelihood's gradient `grown`; returns how much mass has moved."""
    buckets = len(x)
    total = 0.0
    for i in range(buckets):
        gain = grown[i] / people
        spikes[i] = max(spikes[i] * gain - cut, 0.0)
        grown[i] = smooth[i] * gain
    for i in range(buckets):
        total += grown[i] + spikes[i]
    moved = 0.0
    for i in range(buckets):
        # reflected at the ends: mass is kept
        left, right = grown[max(i - 1, 0)], grown[min(i + 1, buckets - 1)]
        smooth[i] = (share * (left + right) + (1 - 2 * share) * grown[i]) / total
        spikes[i] /= total
        new = smooth[i] + spikes[i]
        moved += abs(new - x[i])
        x[i] = new
    return moved
