"""Least squares on trees: consistent values, non-negative values, and variances of sums over leaves.

`consistent` makes noisy values of nodes consistent, every node the sum of its children, by generalised least squares.
Hay et al., VLDB 2010, section 4.2, for any shape and any independent noise: upwards each node combines its own value
with its children's sum by inverse variance; downwards its difference from its children's sum is divided among them by
variance. O(nodes), and the best linear unbiased estimate of every node.

`project` and `admm` also require that no value is below 0 and that the values add up to a total: exactly, and by ADMM.
Both minimise 1/2 sum w (x - y)^2 over all nodes, where x is consistent, no leaf is below 0 and the root is the total:
equation (2) of Li et al., SIGMOD 2020. No inner node is below 0 if no leaf is, and the root's weight has no effect.

`TreeAnswers` has the exact variances of linear answers: the mass of a range, or any weighted sum of leaves. Computed
from the tree's best linear estimate (`consistent` with a total, or `from_differences`), an answer is a constant plus a
sum over nodes of a coefficient times the node's noisy value. A level's part of the variance is a quadratic form of its
coefficients a that needs four numbers: the sums of a, a^2, f a and f a^2, where f are the nodes' true masses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veil.errors import InputError, ParameterError
from veil.tools.numbers import is_int
from veil.tree.shape import LARGEST, Floats, Levels, PerLevel, Tree, flat, flat_numbers, is_small_number, split_levels


def consistent(tree: Tree, values: Sequence[ArrayLike], variances: PerLevel, total: float | None = None) -> Levels:
    """The consistent values nearest to those given, each square divided by its variance. Runs at the collector.

    An infinite variance says that a node was not asked: any number may stand for its value. Leaves that only their
    ancestors say something about share it equally. `total` fixes the root; without it the root is free.

    >>> tree = Tree(leaves=3, branching=2)
    >>> answers = [np.array([1.0]), np.array([0.6, 0.3]), np.array([0.4, 0.4, 0.3])]
    >>> [level.round(3).tolist() for level in consistent(tree, answers, [np.inf, 1.0, 1.0], total=1.0)]
    [[1.0], [0.686, 0.314], [0.343, 0.343, 0.314]]
    """
    from veil.kernels.trees import solve_consistent

    nodes = flat(tree, values)
    own, share = _shares(tree, variances, fixed=total is not None)
    if total is not None and not is_small_number(total):
        raise ParameterError(f"a total is a number up to {LARGEST:g} in size")
    return split_levels(
        tree, solve_consistent(nodes, own, share, tree.offsets, tree.branching, np.nan if total is None else total)
    )


def _shares(tree: Tree, variances: PerLevel, *, fixed: bool) -> tuple[Floats, Floats]:
    from veil.kernels.trees import shares

    nodes = flat_numbers(tree, variances, "variances")
    if not ((nodes >= 1 / LARGEST) & ((nodes <= LARGEST) | np.isposinf(nodes))).all():
        raise ParameterError(f"variances lie between {1 / LARGEST:g} and {LARGEST:g}; infinite: a node was not asked")
    own, share, below = shares(nodes, tree.offsets, tree.branching)
    if not fixed and np.isinf(below[0]):
        raise InputError("some leaves were asked neither themselves nor through an ancestor: give the total")
    return own, share


def project(tree: Tree, values: Sequence[ArrayLike], weights: PerLevel | None = None, total: float = 1.0) -> Levels:
    """The minimum, exactly, in O(nodes log nodes). Runs at the collector.

    With a multiplier m for each inner node's constraint and l for its parent's, a leaf is max(0, y + l / w), and an
    inner node whose children add up to S(m) has l = m + w (S(m) - y): each subtree is a rising, piecewise linear
    function of l with one breakpoint a leaf. Upwards these are merged, the root's is solved for the total, and
    downwards each node reads its multiplier off. Memory: 16 bytes for each leaf and level.

    >>> tree = Tree(leaves=3, branching=2)
    >>> answers = [np.array([1.0]), np.array([0.9, 0.3]), np.array([0.8, -0.3, 0.3])]
    >>> [level.round(3).tolist() for level in project(tree, answers)]
    [[1.0], [0.775, 0.225], [0.775, 0.0, 0.225]]
    """
    from veil.kernels.trees import nearest

    nodes, scales, total = _checked(tree, values, weights, total)
    return split_levels(tree, nearest(nodes, scales, tree.offsets, tree.branching, total))


@dataclass(frozen=True, eq=False)
class AdmmSolution:
    """What `admm` found: consistent values that add up to the total, none below 0, and how it got there.

    `lowest` is the lowest leaf of the last x, before the leaves below 0 became 0 and all were multiplied to add up.
    """

    values: Levels
    converged: bool
    primal: Floats
    dual: Floats
    lowest: float

    @property
    def iterations(self) -> int:
        """How often x, z and u were renewed."""
        return len(self.primal)


def admm(
    tree: Tree,
    values: Sequence[ArrayLike],
    weights: PerLevel | None = None,
    total: float = 1.0,
    *,
    rho: float = 2.0,
    relaxation: float = 1.6,
    tolerance: float = 1e-9,
    most: int = 10_000,
) -> AdmmSolution:
    """The minimum by the alternating direction method of multipliers (Boyd et al. 2011). Runs at the collector.

    The objective is split in 1/2 sum w (x - y)^2 over consistent x with the root at the total, and z >= 0, with x = z:

        x = the consistent values nearest to (w y + rho (z - u)) / (w + rho), by the weights w + rho
        z = max(0, r + u) and u = u + r - z, where r = relaxation x + (1 - relaxation) z

    The primal residual is max |x - z|, the dual one is rho max |z - z before|. It has converged when both are at most
    `tolerance` times the total, which values a million times the total never reach; it ends after `most` iterations.
    `rho` and the dual residual are in units of the mean weight over all nodes but the root.

    >>> tree = Tree(leaves=3, branching=2)
    >>> found = admm(tree, [np.array([1.0]), np.array([0.9, 0.3]), np.array([0.8, -0.3, 0.3])])
    >>> found.converged, found.values[2].round(3).tolist()
    (True, [0.775, 0.0, 0.225])
    """
    from veil.kernels.trees import alternate

    nodes, scales, total = _checked(tree, values, weights, total)
    if not is_small_number(rho) or rho < 1 / LARGEST:
        raise ParameterError(f"rho lies between {1 / LARGEST:g} and {LARGEST:g}")
    if not is_small_number(relaxation) or not 0 < relaxation < 2:
        raise ParameterError("a relaxation lies between 0 and 2; 1 is none")
    if not is_small_number(tolerance) or tolerance <= 0:
        raise ParameterError("a tolerance is a finite number above 0")
    if not is_int(most) or most < 1:
        raise ParameterError("at least one iteration is made")
    scales = scales / (scales[1:].mean() if tree.height else 1.0)
    limit = float(tolerance) * total
    x, primal, dual, lowest = alternate(
        nodes, scales, tree.offsets, tree.branching, total, float(rho), float(relaxation), limit, int(most)
    )
    return AdmmSolution(
        split_levels(tree, x), bool(primal[-1] <= limit and dual[-1] <= limit), primal, dual, float(lowest)
    )


def _checked(
    tree: Tree, values: Sequence[ArrayLike], weights: PerLevel | None, total: float
) -> tuple[Floats, Floats, float]:
    if not is_small_number(total) or total < 1 / LARGEST:
        raise ParameterError(f"a total lies between {1 / LARGEST:g} and {LARGEST:g}")
    nodes = flat(tree, values)
    if weights is None:
        return nodes, np.ones(len(nodes)), float(total)
    scales = flat_numbers(tree, weights, "weights")
    if not ((scales >= 0) & (scales <= LARGEST)).all() or scales[tree.offsets[-2] :].min() < 1 / LARGEST:
        raise ParameterError(f"weights lie between 0 and {LARGEST:g}, those of leaves above 0 (by {1 / LARGEST:g})")
    return nodes, scales, float(total)


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
class TreeAnswers:
    """Linear answers read off a tree, where the leaves truly have these `masses`; runs at the collector.

    `variances` are one number for each level below the root: what least squares weighs levels by. None stands for a
    binary tree whose pairs were compared: left less right. The total is fixed.

    >>> TreeAnswers(Tree(2, 2), np.array([0.5, 0.5]), np.array([1.0])).of_ranges([0], [1])[0, 1].tolist()
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
        own, share = (split_levels(tree, weights) for weights in self._weights)
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
