"""How much each level of a tree counts in the mass of a range, for many ranges: O(height^2) steps each.

A range [lo, hi) cuts at most two nodes of a level. Below any other node all coefficients are those of its own estimate
times one number, so that sums over them are known in advance. Levels stand as in `trees`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["difference_moments", "range_moments"]

F8 = np.float64
I8 = np.int64


@compiled()
def _whole(
    own: NDArray[F8], running: NDArray[F8], offsets: NDArray[I8], branching: int
) -> tuple[NDArray[F8], NDArray[F8]]:
    """What a node's subtree says about it: coefficients by level below a full node, and their sums below the last one.

    `last[l, j]` has, over the nodes of level j below the last node of level l, the sums of the coefficients, of their
    squares, and of both times the nodes' masses.
    """
    height, leaves = len(offsets) - 2, len(running) - 1
    full, last = np.zeros((height + 1, height + 1), F8), np.zeros((height + 1, height + 1, 4), F8)
    width = 1
    for level in range(height, -1, -1):
        size = offsets[level + 1] - offsets[level]
        rest = 1.0
        for j in range(level, height + 1):
            weight = own[offsets[j]]  # of a full node, if there is one: the first
            full[level, j] = rest * weight
            rest *= 1.0 - weight
        final = size - 1
        weight, mass = own[offsets[level] + final], running[leaves] - running[final * width]
        last[level, level, 0], last[level, level, 1] = weight, weight * weight
        last[level, level, 2], last[level, level, 3] = mass * weight, mass * weight * weight
        if level < height:
            below, narrow = offsets[level + 2] - offsets[level + 1], width // branching
            first, keep = final * branching, 1.0 - weight
            others = below - 1 - first
            mass = running[(below - 1) * narrow] - running[first * narrow]
            many = float(others)
            for j in range(level + 1, height + 1):
                u = keep * full[level + 1, j]
                last[level, j, 0] = many * u + keep * last[level + 1, j, 0]
                last[level, j, 1] = many * u * u + keep * keep * last[level + 1, j, 1]
                last[level, j, 2] = mass * u + keep * last[level + 1, j, 2]
                last[level, j, 3] = mass * u * u + keep * keep * last[level + 1, j, 3]
                many *= branching
        width *= branching
    return full, last


@compiled()
def _parts(
    lo: int, hi: int, share: NDArray[F8], offsets: NDArray[I8], branching: int, cut: NDArray[I8], held: NDArray[F8]
) -> None:
    """The two nodes of each level that hold the ends, and how much of the range follows each as it grows by 1."""
    height = len(offsets) - 2
    cut[height, 0], cut[height, 1] = lo, hi
    held[height, 0], held[height, 1] = 1.0 if lo < hi else 0.0, 0.0
    for level in range(height - 1, -1, -1):
        start, size = offsets[level + 1], offsets[level + 2] - offsets[level + 1]
        left, right = cut[level + 1, 0], cut[level + 1, 1]
        for side in range(2):
            node = cut[level + 1, side] // branching
            first, end = node * branching, min((node + 1) * branching, size)
            found = 0.0
            if first < size:
                for other in range(2):
                    child = cut[level + 1, other]
                    if first <= child < end and (other == 0 or left != right):
                        found += share[start + child] * held[level + 1, other]
                a, b = max(first, left + 1), min(end, right)
                if a < b:  # whole children in between: all alike, but for the last of the level
                    found += (b - a - 1) * share[start + a] + share[start + b - 1]
            cut[level, side], held[level, side] = node, found


@compiled()
def range_moments(
    los: NDArray[I8],
    his: NDArray[I8],
    own: NDArray[F8],
    share: NDArray[F8],
    running: NDArray[F8],
    offsets: NDArray[I8],
    branching: int,
) -> NDArray[F8]:
    """For each range and level: the sum of the coefficients a of its nodes, of a^2, of f a and of f a^2.

    The mass of the range is the sum of a times what was found, over all nodes, plus a constant; f are the masses whose
    running sums are given. `own` and `share` are those of `trees.shares`; the root's value is fixed.
    """
    height = len(offsets) - 2
    out = np.zeros((len(los), height + 1, 4), F8)
    full, last = _whole(own, running, offsets, branching)
    cut, held, kept = np.empty((height + 1, 2), I8), np.empty((height + 1, 2), F8), np.zeros((height + 1, 2), F8)
    widths = np.ones(height + 1, I8)
    for level in range(height - 1, -1, -1):
        widths[level] = widths[level + 1] * branching
    leaves = len(running) - 1
    for i in range(len(los)):
        _parts(los[i], his[i], share, offsets, branching, cut, held)
        kept[0, 0] = kept[0, 1] = 0.0
        for level in range(height):
            start, size = offsets[level + 1], offsets[level + 2] - offsets[level + 1]
            width = widths[level + 1]
            left, right = cut[level + 1, 0], cut[level + 1, 1]
            for side in range(2):
                node = cut[level, side]
                if node * branching >= size or (side == 1 and node == cut[level, 0]):
                    continue
                base = (1.0 - own[offsets[level] + node]) * kept[level, side] - held[level, side]
                first, end = node * branching, min((node + 1) * branching, size)
                for other in range(2):
                    child = cut[level + 1, other]
                    if first <= child < end and (other == 0 or left != right):
                        k = base + held[level + 1, other]
                        kept[level + 1, other] = k
                        if other == 0 and left == right:
                            kept[level + 1, 1] = k
                        a = own[start + child] * k
                        f = running[min((child + 1) * width, leaves)] - running[child * width]
                        out[i, level + 1, 0] += a
                        out[i, level + 1, 1] += a * a
                        out[i, level + 1, 2] += f * a
                        out[i, level + 1, 3] += f * a * a
                for run in range(3):  # whole children: before the range, in it, behind it
                    if run == 0:
                        a0, b0, k = first, min(end, left), base
                    elif run == 1:
                        a0, b0, k = max(first, left + 1), min(end, right), base + 1.0
                    else:
                        a0, b0, k = max(first, right + 1), end, base
                    if a0 >= b0:
                        continue
                    if b0 == size:
                        b0 -= 1
                        for j in range(level + 1, height + 1):
                            out[i, j, 0] += k * last[level + 1, j, 0]
                            out[i, j, 1] += k * k * last[level + 1, j, 1]
                            out[i, j, 2] += k * last[level + 1, j, 2]
                            out[i, j, 3] += k * k * last[level + 1, j, 3]
                    many, f = float(b0 - a0), running[b0 * width] - running[a0 * width] if a0 < b0 else 0.0
                    for j in range(level + 1, height + 1):
                        u = k * full[level + 1, j]
                        out[i, j, 0] += many * u
                        out[i, j, 1] += many * u * u
                        out[i, j, 2] += f * u
                        out[i, j, 3] += f * u * u
                        many *= branching
    return out


@compiled()
def difference_moments(
    los: NDArray[I8], his: NDArray[I8], share: NDArray[F8], running: NDArray[F8], offsets: NDArray[I8]
) -> NDArray[F8]:
    """The same for a binary tree whose pairs were compared: w times each pair's difference, by the level of the pair.

    For each range and level: 0, the sum of w^2, of w times the pair's difference in f, and of w^2 times its mass.
    """
    height, leaves = len(offsets) - 2, len(running) - 1
    out = np.zeros((len(los), height + 1, 4), F8)
    cut, held = np.empty((height + 1, 2), I8), np.empty((height + 1, 2), F8)
    for i in range(len(los)):
        _parts(los[i], his[i], share, offsets, 2, cut, held)
        width = 1
        for level in range(height, 0, -1):
            size = offsets[level + 1] - offsets[level]
            left, right = cut[level, 0], cut[level, 1]
            for side in range(2):
                node = cut[level - 1, side]
                if 2 * node + 1 >= size or (side == 1 and node == cut[level - 1, 0]):
                    continue  # no such pair, or one that stands alone
                w = 0.0
                for child in range(2 * node, 2 * node + 2):
                    if child == left:
                        b = held[level, 0]
                    elif child == right:
                        b = held[level, 1]
                    else:
                        b = 1.0 if left < child < right else 0.0
                    w += 0.5 * b if child == 2 * node else -0.5 * b
                middle, end = running[(2 * node + 1) * width], running[min((2 * node + 2) * width, leaves)]
                begin = running[2 * node * width]
                out[i, level, 1] += w * w
                out[i, level, 2] += w * (2.0 * middle - begin - end)
                out[i, level, 3] += w * w * (end - begin)
            width *= 2
    return out
