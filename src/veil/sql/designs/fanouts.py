"""Fan-outs of the trees over a table's dimensions: given ones, or fitted to the schema.

Fitted fan-outs minimise the predicted variance of typical ranges. HIO draws one combination of levels for each person.
A tree with a large fan-out has few levels, so more people answer each combination, but a range consists of more nodes.
The best choice depends on the sizes of all dimensions and on epsilon, and not on the number of people. The thesis uses
5 everywhere and pads to a power of 5 (Wang 2021, section 7.3.2); here no dimension is padded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.errors import ParameterError
from veil.privacy import check_epsilon
from veil.tools.numbers import is_int
from veil.tree import Tree

Floats = NDArray[np.float64]
Schema = tuple[tuple[int, bool], ...]
"""The size of each dimension, and whether it has an order."""
_LARGEST_FAN_OUT = 32
_MOST_GROUPS = 10_000
"""Combinations of levels beyond which no deeper tree is tried."""
_NEAR = 1.05
"""A deeper tree must gain more than this: it has more groups, and takes longer to read."""
_SWEEPS = 3


def chosen_fan_outs(fan_outs: Any, private: Record, epsilon: float, most: int | None = None) -> tuple[int, ...]:
    """The branching of each dimension's tree: fitted where nothing is given, one for all ordinal ones, or a list.

    A categorical dimension has one level below the root, whatever is given.
    """
    sizes = [part.size for part in private.parts]
    ordinal = [not isinstance(part, Categories) for part in private.parts]
    if fan_outs is None:
        return fitted_fan_outs(sizes, ordinal, epsilon, most)
    listed = (fan_outs,) * len(sizes) if is_int(fan_outs) else tuple(fan_outs)
    if len(listed) != len(sizes) or not all(is_int(one) and one >= 2 for one in listed):
        raise ParameterError("fan-outs are integers of at least 2: one, or one per dimension")
    return tuple(
        min(int(one), max(size, 2)) if ordered else max(size, 2)
        for one, size, ordered in zip(listed, sizes, ordinal, strict=True)
    )


def trees_of(private: Record, fan_outs: Sequence[int]) -> tuple[Tree, ...]:
    """The tree over each dimension's values."""
    return tuple(Tree(part.size, fan_out) for part, fan_out in zip(private.parts, fan_outs, strict=True))


def fitted_fan_outs(
    sizes: Sequence[int], ordinal: Sequence[bool], epsilon: float, most: int | None = None
) -> tuple[int, ...]:
    """The fan-out of each dimension's tree: 2 to 32 or the size for an ordinal one, the size for a categorical one.

    Minimises the mean predicted variance of COUNT over random ranges (ordinal) and single values (categorical) of one
    dimension and of two, read by least squares over all levels; dimensions of the same size get the same fan-out. With
    `most`, people are asked about at most so many dimensions together.

    >>> fitted_fan_outs((1024,), (True,), 2.0), fitted_fan_outs((1024, 50), (True, False), 2.0)
    ((4,), (4, 50))
    """
    if len(sizes) != len(ordinal) or not sizes or any(size < 1 for size in sizes):
        raise ParameterError("fan-outs need one size of at least 1, and whether it is ordinal, for each dimension")
    schema = tuple((int(size), bool(ranged)) for size, ranged in zip(sizes, ordinal, strict=True))
    return _fitted(schema, check_epsilon(epsilon), most)


def combined_levels(heights: Sequence[int], most: int | None = None) -> NDArray[np.int64]:
    """All combinations of levels of trees with these heights but for the one of all roots, one per row.

    They are numbered like the digits of a number, the last tree's level varying fastest, as in `veil.survey.Levels`;
    with `most`, only those with at most so many levels below the root.

    >>> combined_levels((1, 2)).tolist(), combined_levels((1, 2), 1).tolist()
    ([[0, 1], [0, 2], [1, 0], [1, 1], [1, 2]], [[0, 1], [0, 2], [1, 0]])
    """
    if most is None or most >= len(heights):
        return np.indices([height + 1 for height in heights]).reshape(len(heights), -1).T[1:]
    found = []
    for many in range(1, most + 1):
        for places in combinations(range(len(heights)), many):
            below = 1 + np.indices([heights[place] for place in places]).reshape(many, -1).T
            rows = np.zeros((len(below), len(heights)), np.int64)
            rows[:, places] = below
            found.append(rows)
    every = np.concatenate(found)
    return every[np.lexsort(every.T[::-1])]


@lru_cache(maxsize=256)
def _fitted(schema: Schema, epsilon: float, most: int | None) -> tuple[int, ...]:
    noise = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    choices = {size: _of_each_height(size, noise) for size, ranged in schema if ranged}
    taken = {size: fan_outs[0] for size, fan_outs in choices.items()}  # from the flattest trees on

    def chosen(trial: dict[int, int]) -> tuple[int, ...]:
        return tuple(trial[size] if ranged else max(2, size) for size, ranged in schema)

    for _ in range(_SWEEPS):
        before = taken
        for size, fan_outs in choices.items():
            found: list[float] = []
            for fan_out in fan_outs:
                found.append(_mean_variance(schema, chosen({**taken, size: fan_out}), noise, most))
                if len(found) > 2 and min(found[-2:]) > min(found):  # deeper trees only get worse
                    break
            if min(found) < math.inf:
                near = next(i for i, one in enumerate(found) if one <= _NEAR * min(found))
                taken = {**taken, size: fan_outs[near]}
        if taken == before:
            break
    return chosen(taken)


def _of_each_height(size: int, noise: float) -> list[int]:
    """Of the fan-outs that give a tree the same height, the best one for this dimension alone; by height, from 1."""
    found: dict[int, tuple[float, int]] = {}
    for fan_out in (*range(2, min(_LARGEST_FAN_OUT, size - 1) + 1), max(2, size)):
        height = Tree(size, fan_out).height
        candidate = (_mean_variance(((size, True),), (fan_out,), noise, None), fan_out)
        found[height] = min(found.get(height, candidate), candidate)
    return [found[height][1] for height in sorted(found)]


@lru_cache(maxsize=4096)
def _mean_variance(schema: Schema, fan_outs: tuple[int, ...], noise: float, most: int | None) -> float:
    """The mean variance of queries of one dimension plus that of two dimensions, for one person.

    A query of one or two dimensions is a sum of contrasts E_j of levels j (each dimension's part between level j_i - 1
    and level j_i), and each is read from every group l >= j: variance 1 / sum of 1 / (k (1 + noise N_l)), times its
    energy, where N_l is the number of cells of group l and k the number of groups.
    """
    trees = [Tree(size, fan_out) for (size, _), fan_out in zip(schema, fan_outs, strict=True)]
    if _groups([tree.height for tree in trees], most) > _MOST_GROUPS:
        return math.inf
    levels = combined_levels([tree.height for tree in trees], most).T
    cells = np.ones(levels.shape[1])
    for tree, level in zip(trees, levels, strict=True):
        cells *= np.array(tree.sizes, dtype=np.float64)[level]
    told = 1 / (1 + noise * cells)
    energies = [
        range_energies(tree) if ranged else _point_energies(tree)
        for tree, (_, ranged) in zip(trees, schema, strict=True)
    ]
    found = [
        float((energies[i][1:] / _refining(told, levels[i : i + 1], trees[i : i + 1])[1:]).sum())
        for i in range(len(trees))
    ]
    mean = sum(found) / len(found)
    pairs = list(combinations(range(len(trees)), 2)) if most != 1 else []
    for i, j in pairs:
        own = energies[i][0] * found[j] + energies[j][0] * found[i]  # contrasts of one of the two
        information = _refining(told, levels[[i, j]], [trees[i], trees[j]])[1:, 1:]
        mean += (own + float((np.outer(energies[i][1:], energies[j][1:]) / information).sum())) / len(pairs)
    return mean * len(told)


def _groups(heights: Sequence[int], most: int | None) -> int:
    """How many combinations of levels there are."""
    counts = [1] + [0] * (len(heights) if most is None else min(most, len(heights)))
    for height in heights:
        counts = [counts[0], *(more + height * fewer for fewer, more in pairwise(counts))]
    return sum(counts) - 1


def _refining(told: Floats, levels: NDArray[np.int64], trees: Sequence[Tree]) -> Floats:
    """What all groups tell that are at least as fine as each combination of levels of these trees."""
    shape = tuple(tree.height + 1 for tree in trees)
    found = np.bincount(np.ravel_multi_index(tuple(levels), shape), told, minlength=math.prod(shape)).reshape(shape)
    for axis in range(len(shape)):
        found = np.flip(np.cumsum(np.flip(found, axis), axis), axis)
    return np.asarray(found, dtype=np.float64)


@lru_cache(maxsize=1024)
def range_energies(tree: Tree) -> Floats:
    """The mean squared contrast of each level over ranges that are drawn uniformly; their sum is the mean length of a
    range, as a share of all leaves.

    >>> range_energies(Tree(2, 2)).round(4).tolist()
    [0.5, 0.1667]
    """
    together = []
    for level in range(tree.height + 1):
        width, nodes = tree.width(level), tree.sizes[level]
        whole, rest = tree.leaves // width, tree.leaves % width
        found = _pairs(tree.leaves, width, 0, whole) / width
        if rest:
            found += _pairs(tree.leaves, rest, (nodes - 1) * width, 1) / rest
        together.append(2 * found / (tree.leaves**2 * (tree.leaves + 1)))
    return np.diff(together, prepend=0.0)


def _pairs(leaves: int, width: int, first: int, nodes: int) -> int:
    """How many ranges hold both leaves x and y, added up over all pairs (x, y) of leaves of one node.

    Over `nodes` nodes of the same width, the first of which starts at leaf `first` (0 where there are several). Leaves
    s + u <= s + v of a node that starts at s are both in (s + u + 1) (leaves - s - v) ranges.
    """
    one = width * (width - 1) // 2  # sums of v, v^2, v^3 over the node's leaves
    two, three = one * (2 * width - 1) // 3, one * one
    starts = nodes * first + width * (nodes * (nodes - 1) // 2)
    squares = nodes * first**2 + width**2 * (nodes * (nodes - 1) * (2 * nodes - 1) // 6)
    both = nodes * leaves + (leaves - 1) * starts - squares  # (s + 1) (leaves - s) over the nodes
    return width**2 * both - (2 * two + one) * (starts + nodes) + two * (nodes * leaves - starts) - nodes * three


def _point_energies(tree: Tree) -> Floats:
    """The same of single leaves."""
    return np.diff([nodes / tree.leaves**2 for nodes in tree.sizes], prepend=0.0)
