"""PGR on samples, each with a rival that must be rejected; the full size is in acceptance/pgr.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from acceptance.accuracy import estimates, measure
from acceptance.pgr import error_over_optimum
from numpy.typing import NDArray
from tests.significance import frequency_fits, mean_fits, variance_fits

from veil import PGR
from veil.entropy import SeededForExperiments


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 1000), (1.0, 2000), (2.0, 1400), (3.0, 5000)])
def test_error_is_that_of_theory(epsilon: float, size: int) -> None:
    found = measure("PGR", epsilon=epsilon, size=size, people=20_000, seeds=12)
    assert abs(found.mse_over_theory - 1) < 0.05
    assert 0.94 < found.coverage < 0.98  # absent values are missed to one side only
    off = PGR(1.1 * epsilon, size).variance(20_000) / PGR(epsilon, size).variance(20_000)
    assert abs(found.mse_over_theory / off - 1) > 0.05  # rival: theory for eps off by 10 %


def test_a_hundred_thousand_values_are_within_six_per_cent_of_the_optimum() -> None:
    found = error_over_optimum(size=100_000, people=100_000)
    assert found <= 1.06
    assert error_over_optimum(size=100_000, people=100_000, epsilon=1.0, seed=1) / found == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(("epsilon", "size"), [(1.0, 40), (2.5, 900)])
def test_support_of_held_and_absent_values(epsilon: float, size: int) -> None:
    people, oracle, rival = 400_000, PGR(epsilon, size), PGR(1.1 * epsilon, size)
    counts = oracle.support(oracle.randomize(np.full(people, 7), SeededForExperiments(11)).columns, None, None)
    held, absent = int(counts[7]), int(counts[20])
    assert frequency_fits(held, people, float(oracle.p))
    assert frequency_fits(absent, people, float(oracle.q))
    assert not (frequency_fits(held, people, float(rival.p)) and frequency_fits(absent, people, float(rival.q)))


@dataclass(frozen=True, init=False)
class InOrder(PGR):
    """The rival that numbers values as points come: neighbours lie on one line."""

    def point_of(self, codes: NDArray[Any]) -> NDArray[np.uint64]:
        return codes.astype(np.uint64)


def test_totals_of_neighbours_have_the_stated_variance() -> None:
    people, runs, size = 2_000, 300, 5_000
    values = np.arange(people) % 34  # half of the people hold one of the first 17 values
    spreads = []
    for kind in (PGR, InOrder):
        oracle = kind(3.0, size)
        assert oracle.prime == 17
        totals = np.array([float(e.frequencies[:17].sum()) for e in estimates(oracle, values, range(runs))])
        share = float(np.mean(values < 17))
        said = oracle.noise.total_variance(17, share) / people
        assert mean_fits(float(totals.mean()), share, float(totals.std()) / np.sqrt(runs))
        spreads.append((float(totals.var(ddof=1)), said))
    assert variance_fits(spreads[0][0], runs, spreads[0][1])
    assert not variance_fits(spreads[1][0], runs, spreads[1][1])
