"""Noisy answers about a tree's nodes, made to fit: every node the sum of its children, by generalised least squares.

Hay et al., VLDB 2010, section 4.2, for any shape and any independent noise: upwards each node combines its own answer
with its children's sum by inverse variance, downwards what a node differs from its children's sum by is shared out
among them by variance. O(nodes), and the best linear unbiased estimate of every node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from veil.errors import InputError, ParameterError
from veil.tree.shape import LARGEST, Floats, Levels, PerLevel, Tree, flat, flat_numbers, is_number, split

__all__ = ["consistent"]


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
    if total is not None and not is_number(total):
        raise ParameterError(f"a total is a number up to {LARGEST:g} in size")
    return split(
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
