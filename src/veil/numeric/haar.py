"""HaarHRR: a binary tree whose nodes' halves are compared, by Hadamard randomized response (Kulkarni et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from veil.mechanisms import HaarResponse, Mechanism
from veil.numeric.hierarchy import LevelStudy
from veil.numeric.levels import difference_bands
from veil.results.bands.levels import LevelBands
from veil.results.distribution import Distribution
from veil.results.mean import Coefficients
from veil.study import Collected
from veil.survey import SurveyTally
from veil.tree import Tree, from_differences
from veil.view import Ancestor

__all__ = ["HaarHierarchy"]


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

    def draw(self, collected: Collected, found: Distribution) -> LevelBands:
        """Runs at the collector: intervals from the differences, which are unbiased; nobody is simulated."""
        return difference_bands(found, self.tree, self.levels(collected.tally(), collected.population))
