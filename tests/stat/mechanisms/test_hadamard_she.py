"""HadamardResponse and SHE against theory: error within 5 %, the papers' numbers, and rivals that are rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from acceptance.accuracy import population
from tests.unit.project.test_golden import rows

from veil import SHE, HadamardResponse
from veil.entropy import SeededForExperiments
from veil.mechanisms import FrequencyOracle
from veil.metrics import coverage, mse


@pytest.mark.parametrize(
    ("kind", "size", "people", "seeds"), [(HadamardResponse, 1024, 20_000, 20), (SHE, 128, 500, 160)]
)
def test_error_is_within_five_percent_of_theory(
    kind: type[FrequencyOracle], size: int, people: int, seeds: int
) -> None:
    """20,480 squared errors: a relative deviation of 1 %."""
    oracle, values = kind(1.0, size), population(size, people)
    truth = np.bincount(values, minlength=size) / people
    theory = float(np.mean([oracle.variance(people, f) for f in truth]))
    found = [
        oracle.estimate(oracle.tally(oracle.randomize(values, SeededForExperiments(seed)))) for seed in range(seeds)
    ]
    measured = float(np.mean([mse(estimate, truth) for estimate in found]))
    assert abs(measured / theory - 1) < 0.05
    # absent values are missed to one side only
    assert 0.94 < np.mean([coverage(estimate, truth) for estimate in found]) < 0.98
    for rival in (kind(0.9, size), kind(1.1, size)):  # eps off by 10 %
        assert abs(measured / rival.variance(people) - 1) > 0.05
    mean = np.mean([estimate.frequencies for estimate in found], axis=0)
    assert float(np.mean((mean - truth) ** 2)) < 2 * theory / seeds  # no bias hides in the error


def test_a_short_reach_is_unbiased_with_the_stated_error() -> None:
    """Clamped hard, a third of the noise is cut off: still unbiased, because the estimator knows by how much."""
    oracle, values, seeds = SHE(1.0, 64, reach=1), population(64, 1000), 200
    truth = np.bincount(values, minlength=64) / 1000
    tallies = [oracle.tally(oracle.randomize(values, SeededForExperiments(seed))) for seed in range(seeds)]
    found = np.array([oracle.estimate(tally).frequencies for tally in tallies])
    assert float(np.mean((found - truth) ** 2)) == pytest.approx(oracle.variance(1000), rel=0.05)
    assert np.mean((found.mean(axis=0) - truth) ** 2) < 2 * oracle.variance(1000) / seeds
    plain = np.mean([tally.counts / 1000 for tally in tallies], axis=0)  # the rival: sums without the correction
    assert np.mean((plain - truth) ** 2) > 20 * oracle.variance(1000) / seeds


def test_errors_are_those_of_table_3_2_of_the_thesis() -> None:
    assert len(rows("SHE")) == len(rows("BLH")) == 4
    for epsilon, size, value in rows("SHE"):
        assert f"{50_000 * SHE(epsilon, size, grid=64).variance(50_000):.2f}" == value
        assert SHE(epsilon, size).variance(1) < float(value)  # the integers themselves are better than a fine grid
        assert SHE(epsilon, size).variance(1) == pytest.approx(0.5 / math.sinh(epsilon / 4) ** 2, rel=1e-9)
    for epsilon, size, value in rows("BLH"):
        assert f"{50_000 * HadamardResponse(epsilon, size).variance(50_000):.2f}" == value


def test_she_crosses_binary_answers_where_the_spec_says() -> None:
    """On a fine grid, at eps = 2.32; on the integers at 2.12."""
    for grid, before, after in ((64, 2.31, 2.33), (1, 2.12, 2.13)):
        assert SHE(before, 8, grid=grid).variance(1) > HadamardResponse(before, 8).variance(1)
        assert SHE(after, 8, grid=grid).variance(1) < HadamardResponse(after, 8).variance(1)
