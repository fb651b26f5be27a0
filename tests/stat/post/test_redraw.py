"""Imagined collections from every kind of oracle: means, and the variances of totals, are those of the noise model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.significance import mean_fits, variance_fits
from tests.support.everyday import everyday

from veil import BLH, GRR, OLH, OUE, PGR, SHE, THE, HadamardResponse, SubsetSelection
from veil.post.selection import redraw

PEOPLE, RUNS = 100_000, 6_000
EXACT = [GRR(1.0, 8), OUE(1.0, 8), OLH(1.0, 8), THE(1.0, 8), BLH(1.0, 8), SHE(1.0, 8)]
NORMAL = [SubsetSelection(1.0, 12), SubsetSelection(1.0, 64), PGR(1.0, 13), PGR(2.0, 31), HadamardResponse(1.0, 16)]


def held(size: int) -> Any:
    shares = 1 / (np.arange(size) + 3.0)
    return np.diff(np.rint(np.cumsum(shares / shares.sum()) * PEOPLE).astype(int), prepend=0)


def drawn(oracle: Any, runs: int = RUNS) -> Any:
    random, people = np.random.default_rng(5), held(oracle.domain.size)
    return np.array([redraw(oracle.noise, people, random) for _ in range(runs)])


def sets(size: int) -> list[Any]:
    return [np.array([0]), np.array([size - 1]), np.arange(2), np.arange(size // 2), np.arange(1, size)]


@pytest.mark.parametrize("oracle", EXACT, ids=repr)
def test_totals_of_exact_draws_have_the_stated_variance(oracle: Any) -> None:
    sample, people = drawn(oracle), held(oracle.domain.size)
    assert people.sum() == PEOPLE
    for chosen in sets(oracle.domain.size):
        totals, share = sample[:, chosen].sum(axis=1), people[chosen].sum() / PEOPLE
        variance = oracle.noise.total_variance(len(chosen), share) / PEOPLE
        assert mean_fits(float(totals.mean()), share, np.sqrt(variance / RUNS))
        assert variance_fits(float(totals.var(ddof=1)), RUNS, variance)
        assert not variance_fits(float(totals.var(ddof=1)), RUNS, 1.2 * variance)


def test_independent_binomials_do_not_have_the_law_of_grr() -> None:
    oracle = GRR(1.0, 8)
    random, people, p, q = np.random.default_rng(6), held(8), float(oracle.p), float(oracle.q)
    supports = random.binomial(people, p, (RUNS, 8)) + random.binomial(PEOPLE - people, q, (RUNS, 8))
    half = ((supports / PEOPLE - q) / (p - q))[:, :4].sum(axis=1)
    variance = oracle.noise.total_variance(4, people[:4].sum() / PEOPLE) / PEOPLE
    assert not variance_fits(float(half.var(ddof=1)), RUNS, variance)


@pytest.mark.parametrize("oracle", everyday(NORMAL, 0, 2), ids=repr)
def test_totals_of_normal_draws_have_the_stated_variance(oracle: Any) -> None:
    """The covariance of two values is that of two that nobody holds, so sums are within a few per cent."""
    runs = 20_000
    sample, people = drawn(oracle, runs), held(oracle.domain.size)
    noise = oracle.noise
    for chosen in sets(oracle.domain.size):
        totals, share = sample[:, chosen].sum(axis=1), people[chosen].sum() / PEOPLE
        variance = noise.total_variance(len(chosen), share) / PEOPLE
        assert mean_fits(float(totals.mean()), share, np.sqrt(variance / runs))
        assert totals.var(ddof=1) == pytest.approx(variance, rel=0.03 + 4 * np.sqrt(2 / runs))


def test_normal_draws_are_not_independent() -> None:
    """The rival: no covariance between values. A subset's supports add up, so half of them vary half as much."""
    oracle = SubsetSelection(1.0, 12)
    sample, chosen = drawn(oracle), np.arange(6)
    independent = sample.var(axis=0, ddof=1)[chosen].sum()
    assert sample[:, chosen].sum(axis=1).var(ddof=1) < 0.65 * independent
