"""Collecting again from imagined people: what an oracle's estimate would be if these were the true frequencies.

Only the counts of support are drawn, never people, so a run costs as much as the number of values. For oracles whose
reports support values independently (OUE, SUE, THE, and hashing with an ideal hash) and for GRR the counts have exactly
the distribution that people would give; for the others they are normal with the exact covariances of the oracle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.results.laws import AdditiveNoise, Fakes, Noise, SupportNoise

__all__ = ["redraw", "redraw_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def redraw(noise: Noise, held: Ints, random: np.random.Generator, fakes: Fakes | None = None) -> Floats:
    """Estimated frequencies from people who hold each value in these numbers, with fakes among their reports or none.

    >>> from veil import OUE
    >>> redraw(OUE(1.0, 3).noise, np.array([900, 100, 0]), np.random.default_rng(0)).shape
    (3,)
    """
    n = int(held.sum())
    if isinstance(noise, AdditiveNoise):
        return held / n + random.normal(0.0, np.sqrt(float(noise.per_value) / n), len(held))
    if not isinstance(noise, SupportNoise):
        raise InputError("imagined people need an oracle whose noise has a law")
    p, q = float(noise.p), float(noise.q)
    counts = redraw_counts(noise, held, random)
    if fakes is not None:
        counts = counts + _fake_counts(fakes, len(held), random) - fakes.expected
    return np.asarray((counts / n - q) / (p - q))


def _fake_counts(fakes: Fakes, values: int, random: np.random.Generator) -> Ints:
    """How many fakes support each value: one value each where no two are supported at once, else independently."""
    u = float(fakes.support)
    if fakes.pair == 0:
        return np.asarray(random.multinomial(fakes.count, [*[u] * values, max(1 - values * u, 0.0)])[:-1])
    return np.asarray(random.binomial(fakes.count, u, values))


def redraw_counts(noise: SupportNoise, held: Ints, random: np.random.Generator) -> NDArray[np.float64]:
    """How many reports support each value."""
    n, p, q = int(held.sum()), float(noise.p), float(noise.q)
    if noise.hit == 0 and noise.miss == 0:  # one value at most: kept with p - q, else any with q each, or none
        kept = random.binomial(held, p - q)
        chances = np.append(np.full(len(held), q), max(1 - p - (len(held) - 1) * q, 0.0))
        others = random.multinomial(n - int(kept.sum()), chances / chances.sum())
        return np.asarray(kept + others[:-1], float)
    if noise.alone:
        return np.asarray(random.binomial(held, p) + random.binomial(n - held, q), float)
    shares = held / n
    return np.asarray(n * (shares * p + (1 - shares) * q) + np.sqrt(n) * _correlated(noise, shares, random))


def _correlated(noise: SupportNoise, shares: Floats, random: np.random.Generator) -> Floats:
    """Normal draws with the covariance of one person's supports: a diagonal, plus ones and shares crossed (rank two).

    Two values are supported together with `hit` by a person who holds one of them and with `miss` by any other, so
    their covariance is m + (f_u + f_v) (h - m), with h = hit - p q and m = miss - q^2.
    """
    p, q = noise.p, noise.q
    m, h = float(noise.miss - q**2), float(noise.hit - p * q)
    diagonal = shares * float(p * (1 - p)) + (1 - shares) * float(q * (1 - q)) - m - 2 * shares * (h - m)
    root = np.sqrt(np.maximum(diagonal, 0.0))
    basis, corner = np.linalg.qr(np.stack([np.ones_like(shares), shares], axis=1) / np.maximum(root, 1e-12)[:, None])
    stretch, turn = np.linalg.eigh(corner @ np.array([[m, h - m], [h - m, 0.0]]) @ corner.T)
    axes = basis @ turn
    drawn = random.normal(0.0, 1.0, len(shares))
    along = (np.sqrt(np.maximum(1.0 + stretch, 0.0)) - 1.0) * (axes.T @ drawn)
    return np.asarray(root * (drawn + axes @ along))
