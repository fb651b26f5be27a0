"""The learned prior: as likely as any, to a stated gap, and never at a loss on odd histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.post_estimates import HUNDRED, drawn_estimate

from veil import OLH
from veil.post import FAMILIES, CalibratedEstimate, calibrate
from veil.post.priors import grid, learn
from veil.results.estimate import Estimate

Floats = NDArray[np.float64]


def zipf(size: int, power: float) -> Floats:
    weights = 1 / np.arange(1, size + 1) ** power
    return np.asarray(weights / weights.sum())


SHAPES = {
    "zipf": zipf(200, 1.5),
    "uniform": np.full(200, 1 / 200),
    "step": np.repeat([1.8, 0.2], 100) / 200,
    "geometric": 0.95 ** np.arange(200) / (0.95 ** np.arange(200)).sum(),
}


def collected(shares: Floats, epsilon: float, n: int, seed: int) -> Estimate:
    random, oracle = np.random.default_rng(seed), OLH(epsilon, len(shares))
    return drawn_estimate(oracle, random.multinomial(n, shares), random)


def densities(estimate: Estimate, atoms: Floats) -> Floats:
    """Of every estimate at every atom, up to a constant: dense, as a check."""
    variance = estimate.variance_at(atoms)
    return np.asarray(
        np.exp(-0.5 * (estimate.frequencies[:, None] - atoms) ** 2 / variance) / np.sqrt(variance / variance[0])
    )


def likelihood(rows: Floats, masses: Floats) -> float:
    return float(np.mean(np.log(rows @ masses)))


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_learned_prior_maximises_the_likelihood(shape: str, epsilon: float) -> None:
    estimate = collected(SHAPES[shape], epsilon, 200_000, 1)
    found = learn(estimate.frequencies, estimate.variance_at)
    assert found.gap < 1e-6
    assert found.masses.min() >= 0
    assert found.masses.sum() == pytest.approx(1)
    rows = densities(estimate, found.atoms)
    reached = likelihood(rows, found.masses)
    plain = np.full(len(found.atoms), 1 / len(found.atoms))
    early = likelihood(rows, plain)
    for _ in range(2_000):
        plain = plain * (rows.T @ (1 / (rows @ plain))) / len(estimate)
    slack = 2e-5  # estimates within a 32nd of a standard error are learned from together
    assert reached >= likelihood(rows, plain) - slack
    assert reached > early + 10 * slack  # the rival: the prior that EM starts from
    true = np.bincount(np.abs(SHAPES[shape][:, None] - found.atoms).argmin(axis=1), minlength=len(found.atoms)) / 200
    assert reached >= likelihood(rows, true) - slack
    # the optimality condition on all estimates, dense: no atom's score exceeds one by more than the gap and the cells
    assert (rows.T @ (1 / (rows @ found.masses)) / len(estimate)).max() < 1 + 2e-3


def test_the_power_law_is_not_more_likely() -> None:
    estimate = collected(SHAPES["zipf"], 1.0, 200_000, 2)
    learned, assumed = calibrate(estimate), estimate.post("power")
    assert isinstance(learned, CalibratedEstimate)
    assert isinstance(assumed, CalibratedEstimate)
    reached, rival = (
        float(np.mean(np.log(densities(estimate, p.atoms) @ p.masses * np.sqrt(1 / estimate.variance_at(p.atoms[:1])))))
        for p in (learned.prior, assumed.prior)
    )
    assert reached > rival


def test_two_points_are_recovered() -> None:
    """Half the values at twice the frequency of none: the mass falls in two heaps, where it should."""
    shares = np.repeat([0.0, 1 / 500], 500)
    estimate = collected(shares, 3.0, 2_000_000, 3)
    found = learn(estimate.frequencies, estimate.variance_at)
    low, high = found.atoms < 0.001, found.atoms >= 0.001
    assert found.masses[low].sum() == pytest.approx(0.5, abs=0.01)
    assert found.masses[low] @ found.atoms[low] < 0.5 * 0.1 / 500
    assert found.masses[high].sum() == pytest.approx(0.5, abs=0.01)
    assert found.masses[high] @ found.atoms[high] / found.masses[high].sum() == pytest.approx(1 / 500, rel=0.02)


@pytest.mark.parametrize("n", [10, 10_000, 10**9])
@pytest.mark.parametrize(
    "frequencies",
    [
        [0.5],
        [-0.3],
        [0.0],
        [0.5, 0.5],
        [0.9, -0.1],
        [0.02] * 50,
        [-0.02] * 50,
        [0.0] * 49 + [1.0],
        [0.001] * 20 + [50.0],
    ],
    ids=["one", "negative", "zero", "two", "both", "equal", "all negative", "heavy", "enormous"],
)
def test_extreme_histograms_are_learned_from(frequencies: list[float], n: int) -> None:
    oracle = OLH(1.0, max(len(frequencies), 2))
    estimate = Estimate(oracle.domain, np.array(frequencies), n, oracle.noise, n, float(n), float(n), whole=False)
    found = learn(estimate.frequencies, estimate.variance_at)
    assert found.gap < 1e-6
    made = calibrate(estimate)
    assert np.isfinite(made.frequencies).all()
    assert np.isfinite(made.posterior_sd).all()
    assert made.frequencies.min() >= 0
    assert made.frequencies.max() <= max(max(frequencies), 0) + 8 * np.sqrt(estimate.variance_at(np.ones(1))[0])


def test_the_grid_of_atoms_is_that_of_the_docs() -> None:
    sigma = 0.001
    atoms = grid(np.array([-1.0, 0.5, 100.0]) * sigma, sigma)
    assert atoms[0] == 0
    assert len(atoms[atoms <= 4 * sigma]) == 81
    assert atoms[atoms > 4 * sigma] == pytest.approx(np.arange(98 * 3, 102 * 3 + 1) / 3 * sigma)
    assert (np.diff(atoms) > 0).all()


@pytest.mark.parametrize("observed", [[5.0], [0.1], [-3.0, 0.2, 40.0]])
def test_no_atom_is_above_one(observed: list[float]) -> None:
    atoms = grid(np.array(observed), 1.0)
    assert atoms[-1] == 1.0
    assert (np.diff(atoms) > 0).all()
    noisy = collected(zipf(100, 1.5), 0.01, 1_000, 4)
    assert noisy.post("calibrate").frequencies.max() <= 1.0


def test_no_prior_is_learned_from_few_values() -> None:
    few = collected(zipf(8, 1.5), 1.0, 10_000, 4)
    assert few.post("auto").lineage == ("OLH", "norm-sub")
    assert np.array_equal(few.post("auto").frequencies, few.post("norm-sub").frequencies)
    many = collected(zipf(200, 1.5), 1.0, 10_000, 4)
    assert many.post("auto").lineage == ("OLH", "calibrate(learned)", "norm-sub")


def error(made: Any, shares: Floats) -> float:
    return float(np.mean((made.frequencies - shares) ** 2))


def test_a_power_law_can_be_a_component_of_the_prior() -> None:
    shares = zipf(1024, 1.5)
    with_law, without = 0.0, 0.0
    for seed in range(2):
        estimate = collected(shares, 1.0, 1_000_000, seed)
        made = calibrate(estimate, power_law=True)
        assert made.prior.parameters["share"] > 0.5
        assert made.lineage[-1].startswith("calibrate(learned with power-law, alpha=")
        assert made.prior.masses.sum() == pytest.approx(1)
        with_law += error(made.post("norm-sub"), shares)
        without += error(calibrate(estimate).post("norm-sub"), shares)
    assert with_law <= 1.02 * without
    flat = calibrate(collected(np.full(1024, 1 / 1024), 1.0, 1_000_000, 1), power_law=True)
    assert flat.prior.parameters["share"] < 0.5  # where there is none, it gets little


def test_learning_beats_the_wrong_family() -> None:
    estimate = collected(SHAPES["uniform"], 1.0, 200_000, 5)
    learned, assumed = error(calibrate(estimate), SHAPES["uniform"]), error(estimate.post("power"), SHAPES["uniform"])
    assert learned < 0.5 * assumed
    assert set(FAMILIES) == {"power-law", "gaussian", "laplace", "poisson", "exponential"}


def test_auto_uses_base_pos_for_few_candidates() -> None:
    oracle = OLH(1.0, 1 << 20)
    reports = oracle.randomize([1] * 300 + [2] * 100)
    few = oracle.estimate(oracle.tally(reports, candidates=[1, 2, 3]))
    assert few.post("auto").lineage[-1] == "base-pos"


def test_posterior_sd_of_a_single_large_value_is_that_of_its_estimate() -> None:
    """One large value puts an atom under itself; its posterior is as uncertain as its estimate."""
    made = HUNDRED.post("calibrate")
    assert made.posterior_sd[0] > 0.8 * HUNDRED.stderr[0]  # type: ignore[attr-defined]
    assert made.posterior_sd[50] < 0.8 * HUNDRED.stderr[50]  # type: ignore[attr-defined]
    assert 0.05 < made.exceeds(float(made.frequencies[0]) + HUNDRED.stderr[0])[0] < 0.3  # type: ignore[attr-defined]
