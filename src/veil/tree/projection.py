"""Values of a tree that fit, are never below 0 and add up to a total: least squares, exactly (`project`) and by ADMM.

Both minimise 1/2 sum w (x - y)^2 over all nodes, where x is consistent, no leaf is below 0 and the root is the total:
equation (2) of Li et al., SIGMOD 2020. No inner node is below 0 if no leaf is, and the root's weight plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veil.errors import ParameterError
from veil.tools.numbers import is_int
from veil.tree.shape import LARGEST, Floats, Levels, PerLevel, Tree, flat, flat_numbers, is_number, split

__all__ = ["Admm", "admm", "project"]


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
    return split(tree, nearest(nodes, scales, tree.offsets, tree.branching, total))


@dataclass(frozen=True, eq=False)
class Admm:
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
) -> Admm:
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
    if not is_number(rho) or rho < 1 / LARGEST:
        raise ParameterError(f"rho lies between {1 / LARGEST:g} and {LARGEST:g}")
    if not is_number(relaxation) or not 0 < relaxation < 2:
        raise ParameterError("a relaxation lies between 0 and 2; 1 is none")
    if not is_number(tolerance) or tolerance <= 0:
        raise ParameterError("a tolerance is a finite number above 0")
    if not is_int(most) or most < 1:
        raise ParameterError("at least one iteration is made")
    scales = scales / (scales[1:].mean() if tree.height else 1.0)
    limit = float(tolerance) * total
    x, primal, dual, lowest = alternate(
        nodes, scales, tree.offsets, tree.branching, total, float(rho), float(relaxation), limit, int(most)
    )
    return Admm(split(tree, x), bool(primal[-1] <= limit and dual[-1] <= limit), primal, dual, float(lowest))


def _checked(
    tree: Tree, values: Sequence[ArrayLike], weights: PerLevel | None, total: float
) -> tuple[Floats, Floats, float]:
    if not is_number(total) or total < 1 / LARGEST:
        raise ParameterError(f"a total lies between {1 / LARGEST:g} and {LARGEST:g}")
    nodes = flat(tree, values)
    if weights is None:
        return nodes, np.ones(len(nodes)), float(total)
    scales = flat_numbers(tree, weights, "weights")
    if not ((scales >= 0) & (scales <= LARGEST)).all() or scales[tree.offsets[-2] :].min() < 1 / LARGEST:
        raise ParameterError(f"weights lie between 0 and {LARGEST:g}, those of leaves above 0 (by {1 / LARGEST:g})")
    return nodes, scales, float(total)
