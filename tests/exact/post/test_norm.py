"""Norm's variances, of values and of sets, against covariances from the exact probabilities of every report."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from veil import GRR, OUE, SubsetSelection
from veil.checks import TabledOLH, exact_supports
from veil.results.estimate import Estimate

HELD = (5, 3, 2, 0, 0)


def covariances(oracle: Any, held: tuple[int, ...]) -> list[list[Fraction]]:
    """Of the estimated frequencies, when so many people hold each value."""
    single, pair = exact_supports(oracle)
    size, n, gap = len(held), sum(held), oracle.p - oracle.q
    made = [[Fraction(0)] * size for _ in range(size)]
    for holder, people in enumerate(held):
        for value in range(size):
            for other in range(size):
                both = single[holder][value] if value == other else pair.get((holder, value, other), Fraction(0))
                made[value][other] += people * (both - single[holder][value] * single[holder][other])
    return [[entry / (n * gap) ** 2 for entry in row] for row in made]


def normed_variance(matrix: list[list[Fraction]], chosen: set[int]) -> Fraction:
    """Of the sum over the chosen values after Norm: weights 1 - k/d inside, -k/d outside."""
    size = len(matrix)
    weights = [Fraction(value in chosen) - Fraction(len(chosen), size) for value in range(size)]
    return sum((weights[i] * weights[j] * matrix[i][j] for i in range(size) for j in range(size)), Fraction(0))


@pytest.mark.parametrize(
    "oracle",
    [GRR(1.0, 5), OUE(1.0, 5), OUE(3.0, 5), SubsetSelection(0.5, 5), TabledOLH(1.0, 5, 3)],
    ids=repr,
)
def test_variances_after_norm_are_exact(oracle: Any) -> None:
    n = sum(HELD)
    raw = Estimate(oracle.domain, np.array(HELD) / n, n, oracle.noise, n, float(n), float(n))
    normed = raw.post("norm")
    matrix = covariances(oracle, HELD)
    single = [float(normed_variance(matrix, {value})) for value in range(5)]
    assert normed.variance == pytest.approx(single, rel=1e-9, abs=1e-15)
    assert normed.stderr == pytest.approx(np.sqrt(single), rel=1e-9, abs=1e-9)
    assert raw.variance == pytest.approx([float(matrix[v][v]) for v in range(5)], rel=1e-9)
    for chosen in ([0], [3], [0, 1], [2, 3, 4], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        total = normed.total(chosen)
        exact = float(normed_variance(matrix, set(chosen)))
        assert total.stderr**2 == pytest.approx(exact, rel=1e-9, abs=1e-15)
        assert total.frequency == pytest.approx(sum(HELD[v] for v in chosen) / n)
    assert normed.total([0, 1, 2, 3, 4]).stderr == pytest.approx(0, abs=1e-9)


def test_norm_takes_noise_out_of_oue() -> None:
    """The rival: the raw variance, which is too large by about 1 / d for single values and far more for sets."""
    oracle = OUE(1.0, 5)
    raw = Estimate(oracle.domain, np.array(HELD) / 10, 10, oracle.noise, 10, 10.0, 10.0)
    normed = raw.post("norm")
    assert (normed.variance < 0.9 * raw.variance).all()
    assert normed.total([0, 1, 2, 3]).stderr < 0.5 * raw.total([0, 1, 2, 3]).stderr


def test_norm_with_a_given_level() -> None:
    """Some candidates, whose true total is known: its variance counts the noise of these only."""
    oracle = OUE(1.0, 5)
    raw = Estimate(
        oracle.domain,
        np.array(HELD[:3]) / 10,
        10,
        oracle.noise,
        10,
        10.0,
        10.0,
        candidates=np.array([0, 1, 2], np.uint64),
    )
    normed = raw.post("norm", total=1.0)
    matrix = [row[:3] for row in covariances(oracle, HELD)[:3]]
    assert normed.variance == pytest.approx([float(normed_variance(matrix, {v})) for v in range(3)], rel=1e-9)
