"""Calibrate against its definition: (11) and (12) summed over every count, priors fitted to what they claim."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from tests.support.post_estimates import drawn_estimate

from veil import OLH, OUE, post
from veil.errors import FitWarning, InputError, ParameterError
from veil.post import FAMILIES, CalibratedEstimate, Family, Prior, calibrate
from veil.post.calibration import posterior
from veil.post.selection import redraw
from veil.results.estimate import Estimate

Floats = NDArray[np.float64]

SIZE, PEOPLE = 50, 20_000


def collected(held: Any, epsilon: float = 2.0, seed: int = 0) -> Estimate:
    return drawn_estimate(OLH(epsilon, len(held)), held, np.random.default_rng(seed))


def zipf(size: int = SIZE, n: int = PEOPLE, power: float = 1.3) -> Any:
    weights = 1 / np.arange(1, size + 1) ** power
    return np.diff(np.rint(np.cumsum(weights / weights.sum()) * n).astype(int), prepend=0)


def heap(size: int = SIZE, n: int = PEOPLE) -> Any:
    """Counts in a heap about their mean, as a Gaussian or Poisson prior expects."""
    counts = np.random.default_rng(9).normal(n / size, 0.2 * n / size, size).clip(1)
    return np.diff(np.rint(np.cumsum(counts / counts.sum()) * n).astype(int), prepend=0)


def by_definition(estimate: Estimate, family: Family, parameters: Any, cut: float = np.inf) -> tuple[Floats, ...]:
    """Posterior means, standard deviations, and probabilities above a cut: a sum over every count."""
    counts = np.arange(family.least, estimate.n + 1, dtype=float)
    prior = family.log_mass(counts, tuple(parameters))
    sigma = float(np.sqrt(estimate.variance_at(np.zeros(1))[0])) * estimate.n
    logs = prior - 0.5 * ((estimate.frequencies[:, None] * estimate.n - counts) / sigma) ** 2
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ counts
    spread = np.sqrt(np.maximum(weights @ counts**2 - mean**2, 0))
    return mean / estimate.n, spread / estimate.n, weights[:, counts / estimate.n > cut].sum(axis=1)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("shape", [zipf, heap], ids=["zipf", "heap"])
@pytest.mark.parametrize("name", FAMILIES)
def test_posteriors_are_those_of_the_definition(name: str, shape: Any, epsilon: float) -> None:
    estimate = collected(shape(), epsilon, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        made = calibrate(estimate, prior=name)
    if made.prior.name != name:  # no variance is left beyond the noise
        assert name in ("gaussian", "laplace")
        return
    family, parameters = FAMILIES[name], made.prior.parameters.values()
    mean, spread, above = by_definition(estimate, family, parameters, cut=0.0205)
    assert made.frequencies == pytest.approx(mean, rel=1e-4)
    assert made.posterior_sd == pytest.approx(spread, rel=1e-3, abs=1e-7)
    assert made.exceeds(0.0205) == pytest.approx(above, abs=5e-3)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_posteriors_of_values_far_from_the_prior(name: str) -> None:
    """One value ten times beyond what the prior expects: what pulls it back lies far outside its noise."""
    held = np.full(400, 40)
    held[0] += 4_000
    estimate = collected(held, 1.0, seed=2)
    made = calibrate(estimate, prior=name)
    mean, _, _ = by_definition(estimate, FAMILIES[name], made.prior.parameters.values())
    assert made.frequencies == pytest.approx(mean, rel=1e-3)
    assert made.frequencies[0] < 0.9 * estimate.frequencies[0]


def test_power_is_calibrate_with_the_power_law() -> None:
    estimate = collected(zipf())
    power, assumed = estimate.post("power"), calibrate(estimate, prior="power-law")
    assert np.array_equal(power.frequencies, assumed.frequencies)
    assert power.lineage == assumed.lineage
    assert np.array_equal(estimate.post("power-ns").frequencies, post.norm_sub(power.frequencies))
    counts = np.arange(1, PEOPLE + 1, dtype=float)
    masses = counts ** -assumed.prior.parameters["alpha"]
    assert masses @ counts / masses.sum() == pytest.approx(PEOPLE / SIZE, rel=1e-4)  # (15), (17): the known mean


@pytest.mark.parametrize("name", FAMILIES)
def test_fitted_priors_have_the_mean_they_were_fitted_to(name: str) -> None:
    estimate = collected(heap(), 4.0)
    prior = calibrate(estimate, prior=name).prior
    assert prior.atoms @ prior.masses == pytest.approx(1 / SIZE, rel=2e-3)
    if name in ("gaussian", "laplace"):
        spread = np.sqrt((prior.atoms - 1 / SIZE) ** 2 @ prior.masses)
        extra = np.mean((estimate.frequencies - 1 / SIZE) ** 2) - np.mean(estimate.variance_at(np.zeros(SIZE)))
        assert spread == pytest.approx(np.sqrt(extra), rel=0.02)  # (18)


def evidence(estimate: Estimate, made: CalibratedEstimate) -> float:
    variance = float(estimate.variance_at(np.zeros(1))[0])
    held = made.prior.masses > 0
    logs = -0.5 * (estimate.frequencies[:, None] - made.prior.atoms[held]) ** 2 / variance
    return float(np.mean(logsumexp(logs + np.log(made.prior.masses[held]), axis=1)))


@pytest.mark.parametrize("shape", [zipf, heap], ids=["zipf", "heap"])
@pytest.mark.parametrize("name", FAMILIES)
def test_likelihood_is_never_less_than_that_of_moments(name: str, shape: Any) -> None:
    estimate = collected(shape(), 4.0, seed=3)
    moments, likely = calibrate(estimate, prior=name), calibrate(estimate, prior=name, fit="likelihood")
    assert evidence(estimate, likely) >= evidence(estimate, moments) - 1e-9
    if name == "gaussian" and shape is zipf:
        assert evidence(estimate, likely) > evidence(estimate, moments) + 1e-3
    assert likely.lineage[-1].startswith(f"calibrate({name}, ")


# -- priors that cannot be, and the user's own -------------------------------------------------------------------------


def test_more_values_than_people_cannot_be_a_power_law() -> None:
    """A mean below one person a value is out of reach: the learned prior stands in, and the lineage says so."""
    estimate = collected(np.repeat([50, 0], [10, 990]), 2.0)
    for name in ("power", "power-ns"):
        with pytest.warns(FitWarning, match="power-law cannot"):
            made = estimate.post(name)
        assert made.lineage[1] == "calibrate(learned)"
    with pytest.warns(FitWarning):
        assert np.isfinite(calibrate(estimate, prior="power-law", noise="constant").frequencies).all()


def test_no_variance_beyond_the_noise_cannot_be_a_gaussian() -> None:
    estimate = collected(np.full(50, 4), 0.5, seed=5)
    flat = Estimate(estimate.domain, np.full(50, 0.02), 200, estimate.noise, 200, 200.0, 200.0)
    for name in ("gaussian", "laplace"):
        with pytest.warns(FitWarning, match=name):
            assert calibrate(flat, prior=name).prior.name == "learned"


def test_bad_priors_and_options_are_refused() -> None:
    estimate = collected(zipf())
    for prior in ("zipf", "", 5, None, ["gaussian"]):
        with pytest.raises(ParameterError, match="a prior is learned, power-law"):
            estimate.post("calibrate", prior=prior)
    with pytest.raises(ParameterError, match="moments or likelihood"):
        estimate.post("calibrate", prior="gaussian", fit="guess")
    with pytest.raises(ParameterError, match="constant or dependent"):
        estimate.post("calibrate", noise="none")
    with pytest.raises(ParameterError, match="no option 'alpha'"):
        estimate.post("calibrate", alpha=2)
    for atoms, masses in (
        ([], []),
        ([0.1], [0.5, 0.5]),
        ([0.2, 0.1], [0.5, 0.5]),
        ([0.1, 0.1], [0.5, 0.5]),
        ([-0.1, 0.1], [0.5, 0.5]),
        ([0.1, np.nan], [0.5, 0.5]),
        ([0.1, 0.2], [-0.5, 1.5]),
        ([0.1, 0.2], [0.0, 0.0]),
        ([0.1, 0.2], [0.5, np.inf]),
        ([[0.1, 0.2]], [[0.5, 0.5]]),
    ):
        with pytest.raises(ParameterError, match="a prior"):
            Prior("mine", np.array(atoms), np.array(masses))
    for frequencies in ([], [-0.5, 0.5], [float("nan")]):
        with pytest.raises(ParameterError, match="a prior"):
            Prior.of_frequencies(frequencies)


def test_a_prior_from_known_frequencies() -> None:
    held = zipf()
    estimate = collected(held, 0.5, seed=6)
    known = Prior.of_frequencies(held / PEOPLE, "opt-in")
    made = calibrate(estimate, prior=known)
    assert made.prior is known
    assert made.lineage == ("OLH", "calibrate(opt-in)")
    mean, variance, above = posterior(estimate, known, True, cut=0.1)
    assert np.array_equal(mean, made.frequencies)
    assert made.posterior_sd**2 == pytest.approx(variance)
    assert np.array_equal(made.exceeds(0.1), above)
    truth = held / PEOPLE
    assert np.mean((made.frequencies - truth) ** 2) < np.mean((estimate.post("power").frequencies - truth) ** 2)


def test_a_user_defined_family() -> None:
    """A geometric distribution on 1, 2, ...: mean 1 / r."""
    own = Family(
        "geometric",
        ("rate",),
        lambda counts, parameters: counts * np.log1p(-parameters[0]),
        lambda mean, variance, n: (1 / mean,) if mean > 1 else None,
        (True,),
        least=1,
    )
    estimate = collected(heap(), 1.0, seed=7)
    made = calibrate(estimate, prior=own)
    assert made.prior.parameters["rate"] == pytest.approx(SIZE / PEOPLE)
    assert made.prior.atoms @ made.prior.masses == pytest.approx(1 / SIZE, rel=1e-3)
    mean, _, _ = by_definition(estimate, own, [SIZE / PEOPLE])
    assert made.frequencies == pytest.approx(mean, rel=1e-4)
    nowhere = Family("nowhere", (), lambda c, p: np.full_like(c, -np.inf), lambda m, v, n: (), ())
    with pytest.raises(InputError, match="no mass"):
        calibrate(estimate, prior=nowhere)
    few = collected(np.repeat([50, 0], [2, 198]), 2.0)
    with pytest.warns(FitWarning, match="geometric"):
        assert calibrate(few, prior=own).prior.name == "learned"


def test_noise_may_depend_on_the_frequency() -> None:
    """At a large budget the noise of a frequent value is mostly its own: constant noise says too little."""
    held = np.array([15_000, *[100] * 50])
    oracle, n = OUE(5.0, 51), int(held.sum())
    frequencies = redraw(oracle.noise, held, np.random.default_rng(1))
    estimate = Estimate(oracle.domain, frequencies, n, oracle.noise, n, float(n), float(n))
    flat = Prior("flat", np.arange(n + 1) / n, np.ones(n + 1))
    constant, dependent = (calibrate(estimate, prior=flat, noise=noise) for noise in ("constant", "dependent"))
    assert constant.posterior_sd[0] ** 2 == pytest.approx(oracle.variance(n, 0.0), rel=0.01)
    assert dependent.posterior_sd[0] ** 2 == pytest.approx(oracle.variance(n, 0.75), rel=0.05)
    assert calibrate(estimate).constant_noise is False
    assert calibrate(estimate, prior="exponential").constant_noise is True
