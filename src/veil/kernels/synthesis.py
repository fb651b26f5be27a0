"""Synthetic people, drawn one attribute after another, given the values that each person already has.

For the next attribute every constraint has one factor for each combination of earlier attributes and each of the d new
values: `factors`, flat, constraint j from starts[j] on, d numbers per combination. Combination e of constraint j is the
sum of codes[places[i]] * strides[i] for i in parts[j] .. parts[j + 1] - 1. The probability of a value is proportional
to the product of its factors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Ints = NDArray[np.int64]

_FAST: dict[str, Any] = {"error_model": "numpy"}
_LEAST = 1e-9
"""The least chance that is aimed at: where constraints contradict each other, every person still gets some value."""


@compiled(**_FAST)
def _combination(codes: Codes, person: int, parts: Ints, places: Ints, strides: Ints, j: int) -> int:
    e = 0
    for i in range(parts[j], parts[j + 1]):
        e += codes[places[i], person] * strides[i]
    return e


@compiled(**_FAST)
def fit_factors(
    codes: Codes,
    parts: Ints,
    places: Ints,
    strides: Ints,
    starts: Ints,
    values: int,
    chances: Floats,
    slack: float,
    limit: float,
    most: int,
) -> Floats:
    """Factors with which these people's values follow `chances`: of the new values, for each combination.

    Proportional fitting with one row per person, whose total stays 1: every constraint in turn multiplies the chances
    of all people with the same combination. It is relaxed: people with a combination and a value may be off by `slack`
    of all people, times the logarithm of its factor. It ends when what is left is within `limit` of all people, or
    after `most` sweeps.
    """
    people, constraints = codes.shape[1], len(starts) - 1
    logs, found = np.zeros(starts[-1]), np.empty(starts[-1])
    shares, which, wanted = np.empty((people, values)), np.empty((constraints, people), np.int32), np.zeros(starts[-1])
    for j in range(constraints):
        for f in range(people):
            first = starts[j] + values * _combination(codes, f, parts, places, strides, j)
            which[j, f] = first
            for v in range(values):
                wanted[first + v] += max(chances[first + v], _LEAST)
    shares[:] = 1.0 / values
    for _ in range(most):
        worst = 0.0
        for j in range(constraints):
            for k in range(starts[j], starts[j + 1]):
                found[k] = 0.0
            for f in range(people):
                for v in range(values):
                    found[which[j, f] + v] += shares[f, v]
            for k in range(starts[j], starts[j + 1]):
                if wanted[k] > 0.0:
                    rest = wanted[k] - found[k] - slack * people * logs[k]
                    move = rest / (found[k] + slack * people)
                    move = min(max(move, -1.0), 1.0)
                    worst = max(worst, abs(rest))
                    logs[k] += move
                    found[k] = math.exp(move)
            for f in range(people):
                total = 0.0
                for v in range(values):
                    shares[f, v] *= found[which[j, f] + v]
                    total += shares[f, v]
                scale = 1.0 / total
                for v in range(values):
                    shares[f, v] *= scale
        if worst <= limit * people:
            break
    return np.exp(logs)


@compiled(**_FAST)
def draw_attribute(
    codes: Codes,
    first_person: int,
    parts: Ints,
    places: Ints,
    strides: Ints,
    starts: Ints,
    values: int,
    factors: Floats,
    uniforms: Floats,
    out: Codes,
) -> None:
    """Fill `out` with a value for each person from the first on, by the factors and a uniform number of its own."""
    chances = np.empty(values)
    for f in range(len(out)):
        chances[:] = 1.0
        for j in range(len(starts) - 1):
            first = starts[j] + values * _combination(codes, first_person + f, parts, places, strides, j)
            for v in range(values):
                chances[v] *= factors[first + v]
        total = 0.0
        for v in range(values):
            total += chances[v]
        left, v = uniforms[f] * total, 0
        while v < values - 1 and left >= chances[v]:
            left -= chances[v]
            v += 1
        out[f] = v
