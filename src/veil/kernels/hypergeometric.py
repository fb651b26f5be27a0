"""Tails of the hypergeometric distribution, for Fisher's exact test of many pairs of binomial counts at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["fisher_p_values"]

I64 = np.int64
F64 = np.float64
_NEGLIGIBLE = 1e-12  # of a tail: what is left out beyond
_SMOOTH = 128.0  # standard deviations: from here on a sum is an integral to nine digits
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@compiled()
def _log_term(x: float, both: float, trials: float, rest: float) -> float:
    """ln of choose(trials, x) choose(rest, both - x), but for what does not depend on x."""
    return -(
        math.lgamma(x + 1.0)
        + math.lgamma(trials - x + 1.0)
        + math.lgamma(both - x + 1.0)
        + math.lgamma(rest - both + x + 1.0)
    )


@compiled()
def _log_chance(k: float, both: float, trials: float, rest: float) -> float:
    """ln P(X = k)."""
    of = math.lgamma(trials + 1.0) + math.lgamma(rest + 1.0) + math.lgamma(both + 1.0)
    every = math.lgamma(trials + rest + 1.0) - math.lgamma(trials + rest - both + 1.0)
    return _log_term(k, both, trials, rest) + of - every


@compiled()
def _added_up(k: int, other: int, trials: int, rest: int) -> float:
    """P(X >= k) / P(X = k), term by term."""
    term, total, x, y = 1.0, 1.0, k, other
    while x < trials and y > 0:
        term *= (trials - x) / (x + 1.0) * y / (rest - y + 1.0)
        x += 1
        y -= 1
        total += term
        if term < _NEGLIGIBLE * total:  # beyond the mean the terms fall ever faster
            break
    return total


@compiled()
def _integrated(k: float, other: float, trials: float, rest: float, mean: float, spread: float) -> float:
    """The same by Gauss and Legendre, with Euler and Maclaurin's first correction for a sum's steps."""
    both = k + other
    away = (k - mean) / spread
    reach = (math.sqrt(away * away + 60.0) - away) * spread  # there a normal tail has fallen to e^-30
    reach = min(reach, trials - k, other) + 0.5
    first, total = _log_term(k, both, trials, rest), 0.0
    for i in range(len(_NODES)):
        x = k - 0.5 + (reach + 0.5) * (_NODES[i] + 1.0) / 2.0
        if x < min(trials, both):
            total += _WEIGHTS[i] * math.exp(_log_term(x, both, trials, rest) - first)
    slope = 1.0 - math.exp(_log_term(k - 1.0, both, trials, rest) - first)
    return total * (reach + 0.5) / 2.0 + slope / 24.0


@compiled()
def _upper_tail(k: int, trials: int, other: int, rest: int) -> float:
    """P(X >= k) given X + Y = k + other, for X of `trials` and Y of `rest` coins of the same kind."""
    both, every = float(k + other), float(trials + rest)
    mean = both * trials / every
    variance = mean * (1.0 - both / every) * rest / max(every - 1.0, 1.0)
    chance = math.exp(_log_chance(k, both, trials, rest))
    if variance > _SMOOTH**2 and k > 0:
        return min(chance * _integrated(k, other, trials, rest, mean, math.sqrt(variance)), 1.0)
    return min(chance * _added_up(k, other, trials, rest), 1.0)


@compiled()
def fisher_p_values(first: NDArray[I64], people: int, second: NDArray[I64], others: int) -> NDArray[F64]:
    """Twice the smaller tail of each pair of counts, out of `people` and `others`, given their sum; at most 1."""
    found = np.empty(len(first), F64)
    for i in range(len(first)):
        a, b = first[i], second[i]
        larger = a * others >= b * people
        tail = _upper_tail(a, people, b, others) if larger else _upper_tail(b, others, a, people)
        found[i] = min(2.0 * tail, 1.0)
    return found
