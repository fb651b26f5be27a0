"""Collecting again from imagined people: what an oracle's estimate would be if these were the true frequencies.

Only the counts of support are drawn, never people, so a run costs as much as the number of values. For oracles whose
reports support values independently (OUE, SUE, THE, and hashing with an ideal hash) and for GRR the counts have exactly
the distribution that people would give; for the others they are normal with the exact covariances of the oracle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.noise import AdditiveNoise, Noise, SupportNoise

__all__ = ["redraw", "redraw_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def redraw(noise: Noise, held: Ints, random: np.random.Generator) -> Floats:
    """Estimated frequencies from people who hold each value in these numbers.

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
    return np.asarray((redraw_counts(noise, held, random) / n - q) / (p - q))


def redraw_counts(noise: SupportNoise, held: Ints, random: np.random.Generator) -> NDArray[np.float64]:
    """How many reports support each value."""
    n, p, q = int(held.sum()), float(noise.p), float(noise.q)
    if noise.hit == 0 and noise.miss == 0:  # GRR: kept with p - q, else uniform over all values
        kept = random.binomial(held, p - q)
        return np.asarray(kept + random.multinomial(n - int(kept.sum()), np.full(len(held), 1 / len(held))), float)
    if noise.hit == noise.p * noise.q and noise.miss == noise.q**2:
        return np.asarray(random.binomial(held, p) + random.binomial(n - held, q), float)
    shares = held / n
    spread = np.sqrt(n * (shares * p * (1 - p) + (1 - shares) * q * (1 - q)))
    drawn = random.normal(0.0, 1.0, len(held))
    # All pairs of values have nearly the same covariance, that of two values not held: mixing in the mean gives it.
    alike = float(noise.miss - noise.q**2) / (q * (1 - q))
    spread, lean = spread * np.sqrt(1 - alike), alike / (1 - alike) * len(held)
    if lean < 0:
        drawn -= drawn.mean() * (1 - np.sqrt(max(1 + lean, 0.0)))
    else:
        drawn += random.normal(0.0, np.sqrt(lean / len(held)))
    return np.asarray(n * (shares * p + (1 - shares) * q) + spread * drawn)
