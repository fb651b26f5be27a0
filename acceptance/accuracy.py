"""Does an oracle reach the variance that its formula promises, and do its intervals cover the truth?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import veil
from veil.domain import Categories
from veil.entropy import SeededForExperiments
from veil.mechanisms import FrequencyOracle
from veil.metrics import coverage, mse
from veil.results.estimate import Estimate


def zipf(size: int, exponent: float = 1.1) -> NDArray[np.float64]:
    """Zipf probabilities over `size` ranks."""
    weights = np.arange(1, size + 1) ** -exponent
    return weights / weights.sum()


def population(size: int, people: int) -> NDArray[np.int64]:
    """Values of that many people in the proportions of Zipf's law, the same every time: the truth has no noise."""
    ends = np.round(np.cumsum(zipf(size)) * people).astype(np.int64)
    return np.repeat(np.arange(size), np.diff(ends, prepend=0))


def estimates(oracle: FrequencyOracle, values: NDArray[np.int64], seeds: range) -> list[Estimate]:
    """One estimate a seed, through the oracle's own randomizer and tally."""
    return [oracle.estimate(oracle.tally(oracle.randomize(values, SeededForExperiments(seed)))) for seed in seeds]


@dataclass(frozen=True)
class Accuracy:
    """Mean squared error over theory, and the coverage of 95 % intervals, over all values and seeds."""

    mse_over_theory: float
    coverage: float


def measure(name: str, *, epsilon: float = 1.0, size: int = 1024, people: int = 100_000, seeds: int = 20) -> Accuracy:
    """Run an oracle on a Zipf population and compare with (3.2)."""
    oracle = veil.MECHANISMS[name](epsilon, Categories.range(size))
    assert isinstance(oracle, FrequencyOracle)
    values = population(size, people)
    truth = np.bincount(values, minlength=size) / people
    found = estimates(oracle, values, range(seeds))
    theory = np.mean([oracle.variance(people, f) for f in truth])
    return Accuracy(
        mse_over_theory=float(np.mean([mse(estimate, truth) for estimate in found]) / theory),
        coverage=float(np.mean([coverage(estimate, truth) for estimate in found])),
    )
