"""HaarHRR: a binary tree whose nodes' halves are compared, by Hadamard randomized response (Kulkarni et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import HaarResponse, Mechanism
from veil.numeric.hierarchy import LevelStudy
from veil.numeric.levels import with_difference_bands
from veil.results.coefficients import Coefficients
from veil.results.distribution import Distribution
from veil.study import Collected
from veil.survey import SurveyTally
from veil.tree import Tree
from veil.view import Ancestor

__all__ = ["HaarHierarchy", "from_differences"]

Floats = NDArray[np.float64]


def from_differences(tree: Tree, differences: Sequence[Floats]) -> Floats:
    """The leaves of a binary tree whose root is 1, from every node's left child less its right one, by level.

    A node with one child passes its whole mass on. Exact for exact differences, linear, and unbiased for unbiased ones.

    >>> from_differences(Tree(3, 2), [np.array([0.4]), np.array([0.1, 0.3])]).round(3).tolist()
    [0.4, 0.3, 0.3]
    """
    nodes = np.ones(1)
    for size, gaps in zip(tree.sizes[1:], differences, strict=True):
        children = np.stack([(nodes + gaps) / 2, (nodes - gaps) / 2], axis=1).reshape(-1)[:size]
        if size % 2:
            children[-1] = nodes[-1]
        nodes = children
    return nodes


@dataclass(frozen=True, init=False)
class HaarHierarchy(LevelStudy):
    """A binary tree; each person says of one level, drawn at random, on which side of its parent their node lies.

    Guarantee: every level is HaarResponse with e^eps, and which one is asked does not depend on the value. Estimates
    are unbiased and add up to 1; masses may be negative. Any number of buckets.

    >>> from veil import Interval, simulate
    >>> study = HaarHierarchy(epsilon=3.0, domain=Interval(0.0, 10.0), buckets=40)
    >>> found = simulate(study, [2.0] * 6000 + [7.0] * 14000, seed=1)
    >>> round(found.range(5.0, 10.0), 1), round(float(found.masses.sum()), 6)
    (0.7, 1.0)
    """

    kind: ClassVar[str] = "haar-hierarchy"

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.buckets, 2)

    def _mechanism(self, view: Ancestor) -> Mechanism:
        return HaarResponse(self.epsilon, view.domain)

    def levels(self, tally: SurveyTally, population: int | None = None) -> list[Coefficients]:
        """Runs at the collector: the differences of each level's pairs, the coarsest level first."""
        return super().levels(tally, population)

    def distribution(self, collected: Collected) -> Distribution:
        """Runs at the collector: from the root's 1 down, left = (parent + c) / 2 and right = (parent - c) / 2."""
        levels = self.levels(collected.tally(), collected.population)
        masses = from_differences(self.tree, [level.differences for level in levels])
        return self._distribution(masses, collected, "haar")

    def _with_bands(self, found: Distribution, levels: list[Coefficients]) -> Distribution:
        return with_difference_bands(found, self.tree, levels, found.masses)
