"""PGR at full size: the error of a million values from a million people, and the decode against a bare FFT."""

from __future__ import annotations

import math

import numpy as np
from bench.timing import best_times, local

from veil.entropy import SeededForExperiments
from veil.mechanisms import PGR
from veil.metrics import mse


def error_over_optimum(size: int = 1_000_000, people: int = 1_000_000, epsilon: float = 1.0, seed: int = 0) -> float:
    """Mean squared error over all values, over 4 e^eps / (n (e^eps - 1)^2). Everybody holds a value of their own."""
    oracle = PGR(epsilon, size)
    held = np.arange(people) % size
    estimate = oracle.estimate(oracle.tally(oracle.randomize(held, SeededForExperiments(seed))))
    odds = math.exp(epsilon)
    return float(mse(estimate, np.bincount(held, minlength=size) / people) * people * (odds - 1) ** 2 / (4 * odds))


def decode_over_fft(size: int = 1_000_000, people: int = 1_000_000, epsilon: float = 1.0, repeats: int = 10) -> float:
    """Seconds of tally and estimate over those of `scipy.fft.fftn` on q^t cells: interleaved, the best of each."""
    from scipy.fft import fftn

    oracle = PGR(epsilon, size)
    reports = oracle.randomize(np.arange(people) % size, SeededForExperiments(1))
    cells = np.zeros((oracle.prime,) * oracle.dimension)
    cells.ravel()[:people] = 1.0
    contestants = local(lambda: oracle.estimate(oracle.tally(reports)), 1), local(lambda: fftn(cells), 1)
    (ours, bare), _ = best_times(contestants, repeats)
    return ours / bare
