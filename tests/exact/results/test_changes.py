"""Differences hold: tests keep their level by enumeration, families by exact laws, and intervals cover. Rivals fail."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from veil import GRR, OLH, OUE, Categories
from veil.kernels.tails import fisher_p_values
from veil.results import Estimate
from veil.results.change_tests import adjusted_p_values, frequency_p_values, frequency_reach, square_and_add

Floats = NDArray[np.float64]
ALPHA = 0.05
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
PEOPLE = (100, 300, 3_000, 20_000)
VALUES = 50
ORACLES = {"GRR": GRR, "OLH": OLH, "OUE": OUE}


def estimate_of(noise: Any, supports: NDArray[np.int64], n: int) -> Estimate:
    """What an oracle makes of these supports of n people."""
    frequencies = (supports / n - float(noise.q)) / float(noise.p - noise.q)
    domain = Categories([str(i) for i in range(max(len(supports), 2))])
    return Estimate(domain, frequencies, n, noise, population=n, mass=float(n), effective=float(n))


@functools.cache
def noise_of(oracle: str, epsilon: float) -> Any:
    return ORACLES[oracle](epsilon, VALUES).noise


def chance(noise: Any, frequency: float) -> float:
    return float(noise.q) + float(noise.p - noise.q) * frequency


def fixed_law(n: int, noise: Any, holders: int) -> Floats:
    p, q = float(noise.p), float(noise.q)
    held = stats.binom.pmf(np.arange(holders + 1), holders, p)
    return np.convolve(held, stats.binom.pmf(np.arange(n - holders + 1), n - holders, q))


def size(p_values: Floats, first: Floats, second: Floats, alpha: float) -> float:
    """How often a test rejects at alpha where counts have these laws."""
    return float(np.outer(first, second)[p_values <= alpha].sum())


# -- one test: enumeration over all pairs of supports ---


@pytest.mark.parametrize("people", [(7, 11), (60, 60), (500, 2_000)])
def test_fisher_is_the_hypergeometric_tail(people: tuple[int, int]) -> None:
    n, m = people
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, n + 1, 300), rng.integers(0, m + 1, 300)
    tails = stats.hypergeom.cdf(a, n + m, a + b, n), stats.hypergeom.sf(a - 1, n + m, a + b, n)
    assert np.allclose(fisher_p_values(a, n, b, m), np.minimum(2 * np.minimum(*tails), 1.0), rtol=1e-9, atol=1e-300)


def test_fisher_by_integrals_is_fisher_by_sums() -> None:
    """Where the spread is large, terms are integrated: the same to seven digits, as far out as p-values are."""
    n, m = 200_000, 300_000
    a = np.linspace(59_000, 62_500, 30).astype(np.int64)
    b = np.full(len(a), 90_000)
    tails = stats.hypergeom.cdf(a, n + m, a + b, n), stats.hypergeom.sf(a - 1, n + m, a + b, n)
    known = np.minimum(2 * np.minimum(*tails), 1.0)
    far = known > 1e-12
    assert np.allclose(fisher_p_values(a, n, b, m)[far], known[far], rtol=1e-6)


@pytest.mark.parametrize("oracle", list(ORACLES))
@pytest.mark.parametrize(("after", "before"), [(1.0, 1.0), (8.0, 8.0), (4.0, 0.5), (8.0, 4.0)])
def test_the_level_of_one_test_is_never_exceeded(oracle: str, after: float, before: float) -> None:
    """Fisher's, and where eps differs that of the likelihood ratio: for samples of people, and for fixed ones."""
    n, m = 150, 100
    first, second = noise_of(oracle, after), noise_of(oracle, before)
    pairs = np.array(list(itertools.product(range(n + 1), range(m + 1))))
    sides = estimate_of(first, pairs[:, 0], n), estimate_of(second, pairs[:, 1], m)
    p_values = frequency_p_values(*sides).reshape(n + 1, m + 1)
    for frequency in (0.0, 0.02, 0.1, 0.5, 0.9, 1.0):
        sampled = [
            stats.binom.pmf(np.arange(k + 1), k, chance(noise, frequency)) for k, noise in ((n, first), (m, second))
        ]
        fixed = [fixed_law(k, noise, round(k * frequency)) for k, noise in ((n, first), (m, second))]
        for alpha in (0.05, 1e-3, 5e-5):
            assert size(p_values, *sampled, alpha) <= alpha
            assert size(p_values, *fixed, alpha) <= alpha


def test_the_normal_test_exceeds_its_level() -> None:
    """The rival, a normal test with plug-in variances, rejects five times too often in the tail that matters."""
    n, noise, alpha = 300, noise_of("GRR", 8.0), 1e-3
    pairs = np.array(list(itertools.product(range(n + 1), repeat=2)))
    after, before = estimate_of(noise, pairs[:, 0], n), estimate_of(noise, pairs[:, 1], n)
    p_values = normal_p_values(after, before).reshape(n + 1, n + 1)
    law = stats.binom.pmf(np.arange(n + 1), n, float(noise.q))
    assert size(p_values, law, law, alpha) > 5 * alpha


def normal_p_values(after: Estimate, before: Estimate) -> Floats:
    errors = np.sqrt(after.variance + before.variance)
    return np.asarray(2 * stats.norm.sf(np.abs(after.frequencies - before.frequencies) / errors))


# -- a family of tests: surveys of many values, drawn from their exact law ---


def surveys(oracle: str, noise: Any, n: int, shares: Floats, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Supports of all values in each run, of people drawn at random."""
    if oracle == "GRR":
        return rng.multinomial(n, float(noise.q) + float(noise.p - noise.q) * shares, runs)
    held = rng.multinomial(n, shares, runs)
    return rng.binomial(held, float(noise.p)) + rng.binomial(n - held, float(noise.q))


def family_wise_error(oracle: str, epsilon: float, n: int, runs: int, rival: bool = False) -> float:
    rng = np.random.default_rng([n, int(10 * epsilon), len(oracle)])
    noise = noise_of(oracle, epsilon)
    shares = np.arange(1, VALUES + 1) ** -1.2
    shares[VALUES // 2 :] = 0.0  # half of the values are held by nobody
    shares /= shares.sum()
    sides = [estimate_of(noise, surveys(oracle, noise, n, shares, runs, rng).reshape(-1), n) for _ in range(2)]
    p_values = (normal_p_values if rival else frequency_p_values)(*sides).reshape(runs, VALUES)
    return float(np.mean([adjusted_p_values(row, VALUES).min() <= ALPHA for row in p_values]))


@pytest.mark.parametrize("oracle", ["GRR", "OUE"])
@pytest.mark.parametrize("n", PEOPLE)
def test_the_family_wise_error_holds(oracle: str, n: int) -> None:
    runs = 400
    allowed = ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / runs)
    errors = {epsilon: family_wise_error(oracle, epsilon, n, runs) for epsilon in EPSILONS}
    assert max(errors.values()) <= allowed, errors


def test_the_family_wise_error_of_the_normal_test_exceeds_its_level() -> None:
    assert family_wise_error("OUE", 8.0, 300, 400, rival=True) > 0.1
    assert family_wise_error("GRR", 8.0, 3_000, 400, rival=True) > 0.5


def test_a_large_change_is_significant() -> None:
    """Power: a value that goes from 10 to 25 % among 20,000 people at eps 1 is called changed nearly always."""
    noise, n, rng = noise_of("OLH", 1.0), 20_000, np.random.default_rng(3)
    sides = [estimate_of(noise, rng.binomial(n, chance(noise, f), 200), n) for f in (0.25, 0.1)]
    assert np.mean(frequency_p_values(*sides) * VALUES <= ALPHA) > 0.95


# -- intervals: coverage by enumeration where people are few, by the exact law where they are many ---


def coverage(noise: Any, n: int, shares: tuple[float, float], runs: int, seed: int) -> tuple[float, float]:
    """How often an interval covers the difference between fixed people, and how often the normal one does."""
    rng = np.random.default_rng(seed)
    holders = [round(share * n) for share in shares]
    supports = [rng.binomial(m, float(noise.p), runs) + rng.binomial(n - m, float(noise.q), runs) for m in holders]
    sides = [estimate_of(noise, support, n) for support in supports]
    low, high = square_and_add(*(frequency_reach(side, 0.95) for side in sides))
    assert ((low >= -1) & (high <= 1) & (low <= high)).all()
    truth = (holders[0] - holders[1]) / n
    error = 1.96 * np.sqrt(sides[0].variance + sides[1].variance)
    normal = np.abs(sides[0].frequencies - sides[1].frequencies - truth) <= error
    return float(np.mean((low <= truth + 1e-12) & (high >= truth - 1e-12))), float(normal.mean())


PAIRS = [(0.0, 0.0), (0.02, 0.0), (0.1, 0.1), (0.5, 0.3), (0.9, 0.9), (1.0, 0.0)]


@pytest.mark.parametrize("oracle", list(ORACLES))
@pytest.mark.parametrize("n", PEOPLE)
def test_intervals_of_differences_cover(oracle: str, n: int) -> None:
    runs = 2_000
    slack = 2 * np.sqrt(0.95 * 0.05 / runs)
    for epsilon, shares in itertools.product(EPSILONS, PAIRS):
        covered, _ = coverage(noise_of(oracle, epsilon), n, shares, runs, seed=n)
        assert covered >= 0.94 - slack, (epsilon, shares, covered)


def test_the_normal_interval_of_a_difference_covers_too_rarely() -> None:
    """Where support is rare the plug-in variance is next to nothing, and so is its interval."""
    covered, normal = coverage(noise_of("OLH", 8.0), 100, (0.02, 0.0), 2_000, seed=1)
    assert covered >= 0.93 > normal
