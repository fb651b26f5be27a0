"""Fitted fan-outs: how each dimension's tree branches, so that typical ranges have the smallest predicted variance.

HIO draws one combination of levels for each person. A tree with a large fan-out has few levels, so that more people
answer each combination, but a range is then made of more pieces. Which is better depends on the sizes of all dimensions
and on epsilon, not on how many people there are. The thesis takes 5 everywhere and pads to a power of 5 (Wang 2021,
section 7.3.2); here no dimension is padded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.privacy import check_epsilon
from veil.tree import Tree

__all__ = ["fitted_fan_outs", "range_energies"]

Floats = NDArray[np.float64]
_LARGEST_FAN_OUT = 32
_MOST_GROUPS = 20_000
"""Combinations of levels beyond which no deeper tree is tried."""
_NEAR = 1.05
"""A deeper tree must gain more than this: it has more groups, and takes longer to read."""
_SWEEPS = 3


def fitted_fan_outs(sizes: Sequence[int], ordinal: Sequence[bool], epsilon: float) -> tuple[int, ...]:
    """The fan-out of each dimension's tree: 2 to 32 or the size for an ordinal one, the size for a categorical one.

    Minimises the mean predicted variance of COUNT over random ranges (ordinal) and single values (categorical) of one
    dimension and of two, read by least squares over all levels; dimensions of the same size get the same fan-out.

    >>> fitted_fan_outs((1024,), (True,), 2.0), fitted_fan_outs((1024, 50), (True, False), 2.0)
    ((4,), (4, 50))
    """
    if len(sizes) != len(ordinal) or not sizes or any(size < 1 for size in sizes):
        raise ParameterError("fan-outs need one size of at least 1, and whether it is ordinal, for each dimension")
    return _fitted(tuple(int(size) for size in sizes), tuple(bool(each) for each in ordinal), check_epsilon(epsilon))


@lru_cache(maxsize=256)
def _fitted(sizes: tuple[int, ...], ordinal: tuple[bool, ...], epsilon: float) -> tuple[int, ...]:
    noise = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    choices = {size: _of_each_height(size, noise) for size, ranged in zip(sizes, ordinal, strict=True) if ranged}
    taken = {size: fan_outs[0] for size, fan_outs in choices.items()}  # from the flattest trees on

    def chosen(trial: dict[int, int]) -> tuple[int, ...]:
        return tuple(trial[size] if ranged else max(2, size) for size, ranged in zip(sizes, ordinal, strict=True))

    for _ in range(_SWEEPS):
        before = taken
        for size, fan_outs in choices.items():
            trials = [{**taken, size: fan_out} for fan_out in fan_outs]
            found = [_mean_variance(sizes, ordinal, chosen(trial), noise) for trial in trials]
            if min(found) < math.inf:
                taken = next(trial for trial, one in zip(trials, found, strict=True) if one <= _NEAR * min(found))
        if taken == before:
            break
    return chosen(taken)


def _of_each_height(size: int, noise: float) -> list[int]:
    """Of the fan-outs that give a tree the same height, the best one for this dimension alone; by height, from 1."""
    found: dict[int, tuple[float, int]] = {}
    for fan_out in (*range(2, min(_LARGEST_FAN_OUT, size - 1) + 1), max(2, size)):
        height = Tree(size, fan_out).height
        candidate = (_mean_variance((size,), (True,), (fan_out,), noise), fan_out)
        found[height] = min(found.get(height, candidate), candidate)
    return [found[height][1] for height in sorted(found)]


@lru_cache(maxsize=4096)
def _mean_variance(sizes: tuple[int, ...], ordinal: tuple[bool, ...], fan_outs: tuple[int, ...], noise: float) -> float:
    """The mean variance of queries of one dimension plus that of two dimensions, for one person.

    A query of one or two dimensions is a sum of contrasts E_j of levels j (each dimension's part between level j_i - 1
    and level j_i), and each is read from every group l >= j: variance 1 / sum of 1 / (k (1 + noise N_l)), times its
    energy, where N_l is the number of cells of group l and k the number of groups.
    """
    trees = [Tree(size, fan_out) for size, fan_out in zip(sizes, fan_outs, strict=True)]
    groups = math.prod(tree.height + 1 for tree in trees) - 1  # nobody is asked about the roots alone
    if groups > _MOST_GROUPS:
        return math.inf
    information = 1 / (1 + noise * reduce(np.multiply.outer, [np.array(tree.sizes, dtype=float) for tree in trees]))
    for axis in range(len(trees)):  # of all groups that refine each level
        information = np.flip(np.cumsum(np.flip(information, axis), axis), axis)
    energies = [
        range_energies(tree) if ranged else _point_energies(tree) for tree, ranged in zip(trees, ordinal, strict=True)
    ]
    pairs = list(combinations(range(len(trees)), 2))
    singles = [1 / len(trees) for _ in trees]  # how often each dimension is named alone, or beside another as a whole
    mean = 0.0
    for i, j in pairs:
        levels = tuple(slice(1, None) if axis in (i, j) else 0 for axis in range(len(trees)))
        mean += float((np.outer(energies[i][1:], energies[j][1:]) / information[levels]).sum()) / len(pairs)
        singles[i] += energies[j][0] / len(pairs)
        singles[j] += energies[i][0] / len(pairs)
    for i, often in enumerate(singles):
        levels = tuple(slice(1, None) if axis == i else 0 for axis in range(len(trees)))
        mean += often * float((energies[i][1:] / information[levels]).sum())
    return mean * groups


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
