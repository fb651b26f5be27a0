"""The shape of a tree over leaves 0 .. leaves-1: levels, nodes, and the smallest set of nodes for a range.

Level 0 is the root. A node of level l covers b^(height - l) leaves, the last node of a level the remaining ones: the
levels of `veil.view.Ancestor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veil.errors import InputError, ParameterError
from veil.tools.numbers import convert_int_fields, is_int

Floats = NDArray[np.float64]
Levels = list[Floats]
"""Values of a tree: one array per level, the root's first."""
PerLevel = Sequence[ArrayLike]
"""Weights or variances of a tree: one array per level, or one number for all nodes of a level."""

LARGEST = 1e50
"""Of values, weights, variances and totals; one over it is the smallest where 0 is not allowed. Sums stay finite."""


class NodeRun(NamedTuple):
    """Nodes start .. stop-1 of a level."""

    level: int
    start: int
    stop: int


@dataclass(frozen=True)
class Tree:
    """A tree of the given branching; `leaves` need be no power of it.

    >>> tree = Tree(leaves=10, branching=4)
    >>> tree.sizes
    (1, 3, 10)
    >>> tree.decompose(3, 10)
    [NodeRun(level=2, start=3, stop=4), NodeRun(level=1, start=1, stop=3)]
    """

    leaves: int
    branching: int

    def __post_init__(self) -> None:
        if not is_int(self.branching) or self.branching < 2:
            raise ParameterError("a tree branches at least in two")
        if not is_int(self.leaves) or self.leaves < 1:
            raise ParameterError("a tree has at least one leaf")
        convert_int_fields(self, "leaves", "branching")

    @cached_property
    def height(self) -> int:
        """Levels below the root; 0 for one leaf."""
        levels, reach = 0, 1
        while reach < self.leaves:
            levels, reach = levels + 1, reach * self.branching
        return levels

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level, from the root's 1 to the leaves."""
        return tuple(-(-self.leaves // self.width(level)) for level in range(self.height + 1))

    @cached_property
    def nodes(self) -> int:
        """Nodes of all levels."""
        return sum(self.sizes)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each level starts when levels stand one after another, and where the last one ends."""
        return np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)

    def width(self, level: int) -> int:
        """Leaves under a node of the level, unless it is the last one."""
        if not is_int(level) or not 0 <= level <= self.height:
            raise ParameterError(f"a level lies between 0 and the height of the tree, {self.height}")
        return int(self.branching ** (self.height - level))

    def span(self, level: int, node: int) -> tuple[int, int]:
        """The leaves [lo, hi) under a node.

        >>> Tree(10, 4).span(1, 2)
        (8, 10)
        """
        width = self.width(level)
        self._check_node(level, node)
        return node * width, min((node + 1) * width, self.leaves)

    def children(self, level: int, node: int) -> range:
        """A node's children, as nodes of the next level; a leaf has none.

        >>> Tree(10, 4).children(1, 2)
        range(8, 10)
        """
        self.width(level)
        self._check_node(level, node)
        if level == self.height:
            return range(0)
        return range(node * self.branching, min((node + 1) * self.branching, self.sizes[level + 1]))

    def decompose(self, lo: int, hi: int) -> list[NodeRun]:
        """The fewest nodes whose leaves are exactly [lo, hi), from left to right; none for an empty range.

        Of nodes over the same leaves (a last node with one child) the one nearest to the root is taken.
        """
        if not is_int(lo) or not is_int(hi) or not 0 <= lo <= hi <= self.leaves:
            raise ParameterError(f"a range [lo, hi) lies within the {self.leaves} leaves, and lo is not above hi")
        left: list[NodeRun] = []
        right: list[NodeRun] = []
        start, stop = int(lo), int(hi)
        for level in range(self.height, 0, -1):
            # Whole parents go up a level. The last parent is whole with its last child, however few it has.
            first = -(-start // self.branching)
            last = self.sizes[level - 1] if stop == self.sizes[level] else stop // self.branching
            if first >= last:
                break
            if start < first * self.branching:
                left.append(NodeRun(level, start, first * self.branching))
            if last * self.branching < stop:
                right.append(NodeRun(level, last * self.branching, stop))
            start, stop = first, last
        else:
            level = 0
        middle = [NodeRun(level, start, stop)] if start < stop else []
        return left + middle + right[::-1]

    def sums(self, leaves: ArrayLike) -> Levels:
        """Values of all levels from those of the leaves.

        >>> [level.tolist() for level in Tree(3, 2).sums([1.0, 2.0, 4.0])]
        [[7.0], [3.0, 4.0], [1.0, 2.0, 4.0]]
        """
        from veil.kernels.trees import sum_up

        nodes = np.empty(self.nodes)
        split_levels(self, nodes)[-1][:] = _numbers(
            leaves, (self.leaves,), f"values are numbers, one of {self.leaves} leaves"
        )
        sum_up(nodes, self.offsets, self.branching)
        return split_levels(self, nodes)

    def _check_node(self, level: int, node: int) -> None:
        if not is_int(node) or not 0 <= node < self.sizes[level]:
            raise ParameterError(f"a node of level {level} lies between 0 and {self.sizes[level] - 1}")


def flat(tree: Tree, values: Sequence[ArrayLike]) -> Floats:
    """Checked values of all levels, one after another."""
    expected = f"values are numbers up to {LARGEST:g} in size, one per node: levels of {_shape(tree)}"
    if not isinstance(values, (list, tuple)) or len(values) != tree.height + 1:
        raise InputError(expected)
    nodes = np.empty(tree.nodes)
    for level, part in zip(values, split_levels(tree, nodes), strict=True):
        part[:] = _numbers(level, part.shape, expected)
    if not (np.abs(nodes) <= LARGEST).all():  # not so for nan either
        raise InputError(expected)
    return nodes


def flat_numbers(tree: Tree, numbers: PerLevel, what: str) -> Floats:
    """Weights or variances of all nodes, one after another; what range they lie in is for the caller to check."""
    expected = f"{what} are one number per level or one per node: levels of {_shape(tree)}"
    if not isinstance(numbers, (list, tuple, np.ndarray)) or len(numbers) != tree.height + 1:
        raise ParameterError(expected)
    nodes = np.empty(tree.nodes)
    for level, part in zip(numbers, split_levels(tree, nodes), strict=True):
        part[:] = _numbers(level, part.shape if np.ndim(level) else (), expected, ParameterError)
    return nodes


def is_small_number(value: Any) -> TypeGuard[float]:
    """Whether a value is one number that is not too large, Python's or numpy's; True and False are not."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return bool(-LARGEST <= value <= LARGEST)


def split_levels(tree: Tree, nodes: Floats) -> Levels:
    """Levels from values that stand one after another."""
    return [nodes[start:stop] for start, stop in pairwise(tree.offsets.tolist())]


def _shape(tree: Tree) -> str:
    return ", ".join(map(str, tree.sizes))


def _numbers(
    given: ArrayLike, shape: tuple[int, ...], expected: str, error: type[InputError] = InputError
) -> NDArray[Any]:
    try:
        numbers = np.asarray(given)
    except ValueError:  # lists of different lengths
        raise error(expected) from None
    if numbers.dtype.kind not in "iuf" or numbers.shape != shape:
        raise error(expected)
    return numbers
