"""Passes over b-ary trees, and the weights of a tree's levels in the masses of ranges.

Levels are stored one after another: level l starts at offsets[l]. Node i of level l has the children b i .. b i + b - 1
of level l + 1, as far as they exist.

A range [lo, hi) cuts at most two nodes of a level. Below any other node all coefficients are those of its own estimate
times one number, so that sums over them are known in advance. Many ranges then take O(height^2) steps each.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

F8 = np.float64
I8 = np.int64


@compiled()
def sum_up(nodes: NDArray[F8], offsets: NDArray[I8], branching: int) -> None:
    """Fill all levels from the leaves, in place."""
    for level in range(len(offsets) - 3, -1, -1):
        start, below, end = offsets[level], offsets[level + 1], offsets[level + 2]
        for v in range(start, below):
            first = below + (v - start) * branching
            total = 0.0
            for c in range(first, min(first + branching, end)):
                total += nodes[c]
            nodes[v] = total


@compiled()
def shares(
    variances: NDArray[F8], offsets: NDArray[I8], branching: int
) -> tuple[NDArray[F8], NDArray[F8], NDArray[F8]]:
    """For each node: the weight of its own value beside its children's sum, its share of what its parent differs by,
    and the variance of what its subtree says about it (infinite: nothing; 0 for a leaf that is fixed).

    Leaves that nothing is known about share equally: a subtree's share is then the number of those it holds.
    """
    own, share, below = np.empty_like(variances), np.empty_like(variances), np.empty_like(variances)
    unknown = np.zeros(len(variances), I8)
    leaves = offsets[-2]
    for v in range(leaves, offsets[-1]):
        asked = variances[v] < math.inf
        own[v] = 1.0 if asked else 0.0
        unknown[v] = 0 if asked else 1
        below[v] = variances[v]
    for level in range(len(offsets) - 3, -1, -1):
        start, under, end = offsets[level], offsets[level + 1], offsets[level + 2]
        for v in range(start, under):
            first = under + (v - start) * branching
            last = min(first + branching, end)
            children, missing = 0.0, 0
            for c in range(first, last):
                children += below[c]
                missing += unknown[c]
            for c in range(first, last):
                if missing > 0:
                    share[c] = unknown[c] / missing
                else:
                    share[c] = below[c] / children if children > 0.0 else 0.0
            if variances[v] == math.inf:
                own[v], below[v], unknown[v] = 0.0, children, missing
            elif missing > 0:
                own[v], below[v] = 1.0, variances[v]
            else:
                own[v] = children / (children + variances[v])
                below[v] = own[v] * variances[v]
    share[0] = 1.0
    return own, share, below


@compiled()
def _solve_consistent(
    values: NDArray[F8],
    own: NDArray[F8],
    share: NDArray[F8],
    offsets: NDArray[I8],
    branching: int,
    total: float,
    out: NDArray[F8],
    sums: NDArray[F8],
) -> None:
    """`solve_consistent` into `out`; `sums` is room for what a node's children say together."""
    for v in range(offsets[-2], offsets[-1]):
        out[v] = own[v] * values[v]
    for level in range(len(offsets) - 3, -1, -1):
        start, below, end = offsets[level], offsets[level + 1], offsets[level + 2]
        for v in range(start, below):
            first = below + (v - start) * branching
            found = 0.0
            for c in range(first, min(first + branching, end)):
                found += out[c]
            sums[v] = found
            out[v] = found + own[v] * (values[v] - found)
    if not math.isnan(total):
        out[0] = total
    for level in range(len(offsets) - 2):
        start, below, end = offsets[level], offsets[level + 1], offsets[level + 2]
        for v in range(start, below):
            rest = out[v] - sums[v]
            first = below + (v - start) * branching
            for c in range(first, min(first + branching, end)):
                out[c] += share[c] * rest


@compiled()
def solve_consistent(
    values: NDArray[F8],
    own: NDArray[F8],
    share: NDArray[F8],
    offsets: NDArray[I8],
    branching: int,
    total: float,
) -> NDArray[F8]:
    """Consistent values by the weights of `shares`; `total` is the root's, or nan to leave it free."""
    out, sums = np.empty_like(values), np.empty_like(values)
    _solve_consistent(values, own, share, offsets, branching, total, out, sums)
    return out


@compiled()
def _merge(
    at: NDArray[F8], slope: NDArray[F8], start: int, middle: int, stop: int, to: NDArray[F8], slope_to: NDArray[F8]
) -> None:
    """The sum of two piecewise linear functions, [start, middle) and [middle, stop): breakpoints and slopes after."""
    i, j = start, middle
    while i < middle and j < stop:
        here, other = at[i], at[j]
        to[i + j - middle] = min(here, other)
        first = 1 if here <= other else 0  # counted rather than branched on: nobody can foretell which comes next
        i += first
        j += 1 - first
        left = slope[i - 1] if i > start else 0.0
        right = slope[j - 1] if j > middle else 0.0
        slope_to[i + j - middle - 1] = left + right
    left = slope[i - 1] if i > start else 0.0
    right = slope[j - 1] if j > middle else 0.0
    for k in range(i, middle):
        to[k + j - middle], slope_to[k + j - middle] = at[k], slope[k] + right
    for k in range(j, stop):
        to[k], slope_to[k] = at[k], left + slope[k]


@compiled()
def _multipliers(
    values: NDArray[F8], weights: NDArray[F8], offsets: NDArray[I8], branching: int, total: float
) -> NDArray[F8]:
    """The multiplier at the optimum of each inner node's constraint, that it is its children's sum.

    A subtree's value is a function of its parent's multiplier: 0, then linear pieces. Its breakpoints, one for each of
    its leaves, stand where its leaves do, in increasing order.
    """
    height, leaves = len(offsets) - 2, offsets[-1] - offsets[-2]
    outer, inner = np.empty((height, leaves), F8), np.empty((height, leaves), F8)  # by the parent's, by the own one
    last_slope = np.empty(offsets[-2], F8)
    at, slope = np.empty(leaves, F8), np.empty(leaves, F8)
    spare, slope_spare = np.empty(leaves, F8), np.empty(leaves, F8)
    for i in range(leaves):
        w = weights[offsets[-2] + i]
        at[i], slope[i] = -w * values[offsets[-2] + i], 1.0 / w
    width = 1
    for level in range(height - 1, -1, -1):
        run, width = width, width * branching
        while run < width:  # children two by two, then these two by two, ...
            for start in range(0, leaves, width):
                end = min(start + width, leaves)
                for k in range(start, end, 2 * run):
                    _merge(at, slope, k, min(k + run, end), min(k + 2 * run, end), spare, slope_spare)
            at, spare, slope, slope_spare = spare, at, slope_spare, slope
            run *= 2
        if level == 0:
            break
        for v in range(offsets[level], offsets[level + 1]):
            start = (v - offsets[level]) * width
            end = min(start + width, leaves)
            last_slope[v] = slope[end - 1]
            summed = 0.0
            for k in range(start, end):
                here = at[k] + weights[v] * (summed - values[v])
                if k + 1 < end:
                    summed += slope[k] * (at[k + 1] - at[k])
                inner[level, k], outer[level, k] = at[k], here
                at[k] = here
                slope[k] /= 1.0 + weights[v] * slope[k]

    multipliers = np.empty(offsets[-2], F8)
    summed, k = 0.0, 0
    while k + 1 < leaves:  # where the root's value is the total
        more = slope[k] * (at[k + 1] - at[k])
        if summed + more >= total:
            break
        summed += more
        k += 1
    multipliers[0] = at[k] + (total - summed) / slope[k]
    for level in range(1, height):
        width //= branching
        for v in range(offsets[level], offsets[level + 1]):
            start = (v - offsets[level]) * width
            end = min(start + width, leaves)
            given = multipliers[offsets[level - 1] + (v - offsets[level]) // branching]
            k = start + np.searchsorted(outer[level, start:end], given, side="right") - 1
            if k < start:  # nothing under this node is above 0
                multipliers[v] = given + weights[v] * values[v]
                continue
            step = given - outer[level, k]
            if k + 1 < end:
                step *= (inner[level, k + 1] - inner[level, k]) / (outer[level, k + 1] - outer[level, k])
            else:
                step /= 1.0 + weights[v] * last_slope[v]
            multipliers[v] = inner[level, k] + step
    return multipliers


@compiled()
def _add_up_to(nodes: NDArray[F8], offsets: NDArray[I8], branching: int, total: float) -> None:
    """Leaves at 0 at least, multiplied so that they add up to the total; then all levels from them, in place."""
    found = 0.0
    for v in range(offsets[-2], offsets[-1]):
        nodes[v] = max(nodes[v], 0.0)
        found += nodes[v]
    for v in range(offsets[-2], offsets[-1]):
        nodes[v] = nodes[v] / found * total if found > 0.0 else total / (offsets[-1] - offsets[-2])
    sum_up(nodes, offsets, branching)


@compiled()
def nearest(
    values: NDArray[F8], weights: NDArray[F8], offsets: NDArray[I8], branching: int, total: float
) -> NDArray[F8]:
    """The consistent values with no leaf below 0 and the given root that are nearest in weighted squares."""
    out = np.empty_like(values)
    if len(offsets) == 2:
        out[0] = total
        return out
    multipliers = _multipliers(values, weights, offsets, branching, total)
    start, parents = offsets[-2], offsets[-3]
    found = 0.0
    for v in range(start, offsets[-1]):
        out[v] = max(0.0, values[v] + multipliers[parents + (v - start) // branching] / weights[v])
        found += out[v]
    if found == 0.0:
        # Values so large that the total is lost in their rounding: whoever is the first to rise above 0 has it.
        for v in range(start, offsets[-1]):
            out[v] = 1.0 if -weights[v] * values[v] <= multipliers[parents + (v - start) // branching] else 0.0
    _add_up_to(out, offsets, branching, total)
    return out


@compiled()
def alternate(
    values: NDArray[F8],
    weights: NDArray[F8],
    offsets: NDArray[I8],
    branching: int,
    total: float,
    rho: float,
    relaxation: float,
    limit: float,
    most: int,
) -> tuple[NDArray[F8], NDArray[F8], NDArray[F8], float]:
    """ADMM for the same: the values, the primal and dual residual of each iteration, the lowest leaf before the end."""
    nodes = len(values)
    own, share, _ = shares(1.0 / (weights + rho), offsets, branching)
    x, sums, target = np.empty(nodes, F8), np.empty(nodes, F8), np.empty(nodes, F8)
    z, u = np.maximum(values, 0.0), np.zeros(nodes, F8)
    z[0] = total
    primal, dual = np.empty(most, F8), np.empty(most, F8)
    done = 0
    while done < most:
        for v in range(nodes):
            target[v] = (weights[v] * values[v] + rho * (z[v] - u[v])) / (weights[v] + rho)
        _solve_consistent(target, own, share, offsets, branching, total, x, sums)
        apart, moved = 0.0, 0.0
        for v in range(nodes):
            relaxed = relaxation * x[v] + (1.0 - relaxation) * z[v] + u[v]
            new = max(0.0, relaxed)
            apart = max(apart, abs(x[v] - new))
            moved = max(moved, abs(new - z[v]))
            z[v], u[v] = new, relaxed - new
        primal[done], dual[done] = apart, rho * moved
        done += 1
        if apart <= limit and rho * moved <= limit:
            break
    lowest = x[offsets[-2] :].min()
    _add_up_to(x, offsets, branching, total)
    return x, primal[:done], dual[:done], lowest


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
