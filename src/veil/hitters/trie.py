"""Frequencies that fit a trie of kept prefixes: non-negative least squares.

A kept prefix's frequency is the sum over the kept values below it and, in text, of others: people under none of its
kept children. Random strings have hardly any others below a frequent prefix, and the fit is sharper without. Never the
mean over levels: false children of a frequent prefix would inherit its frequency.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.study.continuations import cut

__all__ = ["fit"]

Floats = NDArray[np.float64]


def fit(
    lengths: list[int],
    codes: list[NDArray[Any]],
    frequencies: list[Floats],
    variances: list[Floats],
    *,
    others: bool,
) -> Floats:
    """The last level's frequencies that fit all levels best: not negative, a parent the sum of its children.

    One list entry per level, the shortest prefixes first; each code's prefix is among the codes of the level before.
    With `others` a parent may have people of its own, beyond its kept children.

    >>> one, noise = np.array([1], dtype=np.uint64), [np.ones(1), np.ones(1)]
    >>> fit([1, 2], [one, 2 * one], [np.array([0.5]), np.array([0.3])], noise, others=False).round(6).tolist()
    [0.4]
    >>> fit([1, 2], [one, 2 * one], [np.array([0.5]), np.array([0.3])], noise, others=True).round(6).tolist()
    [0.3]
    """
    from scipy.optimize import minimize

    parents = [_parents(codes[i], lengths[i], codes[i + 1], lengths[i + 1]) for i in range(len(codes) - 1)]
    ends = np.cumsum([len(level) for level in codes])
    weights = np.concatenate([1 / np.sqrt(v) for v in variances])
    target = np.concatenate(frequencies) * weights
    scale = float(weights.max())  # unknowns in standard errors: a well-scaled problem

    def gathered(masses: Floats) -> Floats:
        """A node's mass with all below it."""
        levels = np.split(masses, ends[:-1])
        for i in range(len(levels) - 1, 0, -1):
            levels[i - 1] = levels[i - 1] + np.bincount(parents[i - 1], levels[i], len(levels[i - 1]))
        return np.concatenate(levels)

    def spread(slopes: Floats) -> Floats:
        """A node's slope with all above it: the transpose."""
        levels = np.split(slopes, ends[:-1])
        for i in range(1, len(levels)):
            levels[i] = levels[i] + levels[i - 1][parents[i - 1]]
        return np.concatenate(levels)

    def loss(masses: Floats) -> tuple[float, Floats]:
        off = gathered(masses) * weights / scale - target
        return 0.5 * float(off @ off), spread(off * weights / scale)

    first = np.zeros(int(ends[-1]))
    inner = len(first) - len(codes[-1])
    bounds = [(0, None if others else 0)] * inner + [(0, None)] * len(codes[-1])
    first[len(first) - len(codes[-1]) :] = np.maximum(frequencies[-1], 0) * scale
    options = {"maxiter": 2000, "maxfun": 20000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30}
    solved = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(solved.x[len(first) - len(codes[-1]) :]) / scale


def _parents(above: NDArray[Any], length: int, below: NDArray[Any], longer: int) -> NDArray[np.int64]:
    where = {code.tobytes(): i for i, code in enumerate(above)}
    return np.array([where[code.tobytes()] for code in cut(below, longer, length)], dtype=np.int64)
