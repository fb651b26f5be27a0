"""Intervals of what was found level by level: from the levels' unbiased estimates, without simulating anybody."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veil.results.bands.levels import LevelBands, differences_law, support_law
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.results.laws import SupportNoise
from veil.results.mean import Coefficients
from veil.tree import Tree, consistent, from_differences, project

__all__ = ["difference_bands", "level_bands", "level_variances"]

Floats = NDArray[np.float64]


def level_variances(levels: Sequence[Estimate]) -> list[float]:
    """What least squares weighs levels by: the variance of a value that nobody holds, the same for all of a level."""
    return [float(level.variance_at(np.zeros(1))[0]) for level in levels]


def level_bands(found: Distribution, tree: Tree, levels: Sequence[Estimate]) -> LevelBands:
    """Intervals from all levels below the root by least squares, where the total is 1; whatever method was shown."""
    values = [np.ones(1), *(level.frequencies for level in levels)]
    variances = level_variances(levels)
    unbiased = consistent(tree, values, [np.inf, *variances], total=1.0)[-1]
    likely = project(tree, values, [1.0, *(min(variances) / variance for variance in variances)])[-1]
    laws = [support_law(level.noise) for level in levels if isinstance(level.noise, SupportNoise)]
    return _bands(found, tree, levels, unbiased, likely, np.array(variances), laws)


def difference_bands(found: Distribution, tree: Tree, levels: Sequence[Coefficients]) -> LevelBands:
    """Intervals from the differences of a binary tree's pairs."""
    unbiased = from_differences(tree, [level.differences for level in levels])
    likely = project(tree, tree.sums(unbiased))[-1]
    laws = [differences_law(level.moment) for level in levels]
    return _bands(found, tree, levels, unbiased, likely, np.empty(0), laws)


def _bands(
    found: Distribution,
    tree: Tree,
    levels: Sequence[Estimate | Coefficients],
    unbiased: Floats,
    likely: Floats,
    variances: Floats,
    laws: list[list[float]],
) -> LevelBands:
    effective = np.array([level.effective for level in levels], dtype=np.float64)
    return LevelBands(
        domain=found.domain,
        cells=found.cells,
        masses=found.masses,
        branching=tree.branching,
        unbiased=unbiased,
        likely=likely,
        variances=variances,
        laws=np.array(laws),
        effective=effective,
        # in people without weights too, so that all levels together are the whole where everybody was asked
        population=float(effective.sum()) * found.population / found.n,
    )
