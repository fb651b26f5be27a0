"""Interval trees over any number of leaves: which nodes make a range, and which values fit together.

    shape          Tree: levels, children, and the fewest nodes that make a range
    least_squares  `consistent`: every node the sum of its children, by least squares in closed form
                   `project` and `admm`: the same with no node below 0 and a fixed total
                   TreeAnswers: how much each level counts in a range or another sum over leaves, for exact variances

Values of a tree are a list of arrays, one per level, the root's first. Runs at the collector.
"""

from __future__ import annotations

from veil.tree.least_squares import Admm, TreeAnswers, admm, consistent, from_differences, project
from veil.tree.shape import Floats, Levels, PerLevel, Run, Tree

__all__ = [
    "Admm",
    "Floats",
    "Levels",
    "PerLevel",
    "Run",
    "Tree",
    "TreeAnswers",
    "admm",
    "consistent",
    "from_differences",
    "project",
]
