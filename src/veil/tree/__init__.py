"""Trees over intervals, with any number of leaves: ranges as nodes, and consistent values of all nodes.

    shape          Tree: levels, children, and the smallest set of nodes that makes a range
    least_squares  `consistent`: every node the sum of its children, by least squares in closed form
                   `project` and `admm`: the same with no node below 0 and a fixed total
                   `from_differences`: leaves of a binary tree from the differences of its pairs
                   TreeAnswers: exact variances of ranges and other sums over leaves

Values of a tree are a list of arrays, one per level, the root's first. Runs at the collector.
"""

from __future__ import annotations

from veil.tree.least_squares import AdmmSolution, TreeAnswers, admm, consistent, from_differences, project
from veil.tree.shape import Floats, Levels, NodeRun, PerLevel, Tree

__all__ = [
    "AdmmSolution",
    "Floats",
    "Levels",
    "NodeRun",
    "PerLevel",
    "Tree",
    "TreeAnswers",
    "admm",
    "consistent",
    "from_differences",
    "project",
]
