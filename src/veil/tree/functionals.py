"""How much each node of a tree counts in a linear answer: sums of coefficients by level, for exact variances.

An answer is a sum over leaves: the mass of a range, or any weights times the leaves. Read off the tree's best linear
estimate (`consistent` with a total, or `from_differences`), it is a constant plus a sum over nodes of
a coefficient times what was found there. What a level adds to the variance is a quadratic form of its coefficients a,
which needs four numbers: the sums of a, a^2, f a and f a^2, where f are the nodes' true masses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.tree.shape import Floats, Levels, Tree, split

__all__ = ["Answers", "from_differences"]


def from_differences(tree: Tree, differences: Sequence[Floats], total: float = 1.0) -> Floats:
    """The leaves of a binary tree whose root is the total, from every node's left child less its right one, by level.

    A node with one child passes its whole mass on. Exact for exact differences, linear, and unbiased for unbiased ones.

    >>> from_differences(Tree(3, 2), [np.array([0.4]), np.array([0.1, 0.3])]).round(3).tolist()
    [0.4, 0.3, 0.3]
    """
    nodes = np.full(1, total)
    for size, gaps in zip(tree.sizes[1:], differences, strict=True):
        children = np.stack([(nodes + gaps) / 2, (nodes - gaps) / 2], axis=1).reshape(-1)[:size]
        if size % 2:
            children[-1] = nodes[-1]
        nodes = children
    return nodes


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers read off a tree, where the leaves truly have these `masses`; runs at the collector.

    `variances` are one number for each level below the root: what least squares weighs levels by. None stands for a
    binary tree whose pairs were compared: left less right. The total is fixed.

    >>> Answers(Tree(2, 2), np.array([0.5, 0.5]), np.array([1.0])).of_ranges([0], [1])[0, 1].tolist()
    [0.0, 0.5, 0.0, 0.25]
    """

    tree: Tree
    masses: Floats
    variances: Floats | None

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        """Of each node: of its own value beside its children's sum, and of its share in what its parent differs by."""
        from veil.kernels.trees import shares

        sizes = np.array(self.tree.sizes)
        if self.variances is None:
            share = np.full(self.tree.nodes, 0.5)
            odd = np.flatnonzero(sizes % 2)
            share[self.tree.offsets[odd + 1] - 1] = 1.0  # a last node without a sibling has all of its parent's
            return np.zeros(self.tree.nodes), share
        own, share, _ = shares(
            np.repeat(np.concatenate([[np.inf], self.variances]), sizes), self.tree.offsets, self.tree.branching
        )
        return own, share

    @cached_property
    def _running(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.masses)])

    def of_ranges(self, los: Any, his: Any) -> Floats:
        """For the mass of the leaves [lo, hi) of each range, by level: the root's row is 0."""
        from veil.kernels.trees import difference_moments, range_moments

        starts, ends = (np.ascontiguousarray(at, dtype=np.int64) for at in (los, his))
        own, share = self._weights
        if self.variances is None:
            return np.asarray(difference_moments(starts, ends, share, self._running, self.tree.offsets))
        return np.asarray(
            range_moments(starts, ends, own, share, self._running, self.tree.offsets, self.tree.branching)
        )

    def of_leaves(self, coefficients: Floats) -> Floats:
        """For the sum over leaves of a coefficient times the mass, by level: the root's row is 0."""
        tree, masses = self.tree, self.tree.sums(self.masses)
        own, share = (split(tree, weights) for weights in self._weights)
        follow = self._follow(coefficients, share)
        out, kept = np.zeros((tree.height + 1, 4)), np.zeros(1)
        for level in range(1, tree.height + 1):
            parents = np.arange(tree.sizes[level]) // tree.branching
            if self.variances is None:
                gap = np.append(follow[level], follow[level - 1][-1:])[: 2 * tree.sizes[level - 1]].reshape(-1, 2)
                w = (gap[:, 0] - gap[:, 1]) / 2  # of a node without a sibling: follows its parent, so 0
                sides = np.append(masses[level], 0.0)[: 2 * tree.sizes[level - 1]].reshape(-1, 2)
                terms = np.zeros_like(w), w**2, w * (sides[:, 0] - sides[:, 1]), w**2 * sides.sum(axis=1)
            else:
                kept = ((1 - own[level - 1]) * kept - follow[level - 1])[parents] + follow[level]
                a = own[level] * kept
                terms = a, a**2, masses[level] * a, masses[level] * a**2
            out[level] = [term.sum() for term in terms]
        return out

    def _follow(self, coefficients: Floats, share: Levels) -> Levels:
        """How much the answer follows each node's value, where its leaves share what it differs by."""
        follow = [np.asarray(coefficients, dtype=np.float64)]
        for level in range(self.tree.height, 0, -1):
            starts: NDArray[np.int64] = np.arange(0, self.tree.sizes[level], self.tree.branching)
            follow.insert(0, np.add.reduceat(share[level] * follow[0], starts))
        return follow
