"""Calibrate (Jia and Gong, INFOCOM 2019): posterior means under a prior that is given, fitted or learned.

An unbiased estimate is the true frequency plus normal noise of known variance. With a prior on true frequencies, the
posterior mean has the least expected squared error (their theorem 2); the better the prior, the smaller it is.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import FitWarning, InputError, ParameterError
from veil.post.priors import FAMILIES, CountBins, Family, LearnedPrior, Prior, cells, learn, windows
from veil.post.processed import CalibratedEstimate, ProcessedEstimate
from veil.results.estimate import Estimate

Floats = NDArray[np.float64]

_FITS = ("moments", "likelihood")
_NOISES = ("constant", "dependent")
_FEW = 64
"""With fewer values than this there is too little to learn a prior from; see docs/post-processing.md."""


def calibrate(
    estimate: Estimate,
    prior: str | Family | Prior = "learned",
    fit: str = "moments",
    noise: str | None = None,
    power_law: bool = False,
) -> CalibratedEstimate:
    """Runs at the collector: posterior mean of each frequency, with its posterior standard deviation.

    `prior` is "learned" (nonparametric maximum likelihood), a family by name or your own, or a Prior with numbers.
    Families are fitted by "moments" (the paper's mean-variance method) or "likelihood". `noise` is "constant", as in
    the paper, or "dependent" on the frequency, as it really is (the default of the learned prior). `power_law` lets a
    fitted power law compete with the learned atoms. A family that cannot have the estimates' moments gives way to the
    learned prior, with a FitWarning.

    >>> from veil import OLH, simulate
    >>> estimate = simulate(OLH(epsilon=1.0, domain=64), [0] * 5000 + [1] * 3000 + [2] * 2000, seed=1)
    >>> made = estimate.post("calibrate", prior="power-law")
    >>> bool((made.frequencies > 0).all()), round(made.at(0).frequency, 1), int(made.exceeds(0.3).argmax())
    (True, 0.5, 0)
    """
    if fit not in _FITS:
        raise ParameterError(f"a prior is fitted by {' or '.join(_FITS)}")
    if noise is not None and noise not in _NOISES:
        raise ParameterError(f"noise is {' or '.join(_NOISES)}")
    chosen = _resolve(prior)
    constant = noise == "constant" if noise else not isinstance(chosen, str)
    fitted: Prior | None = None
    if isinstance(chosen, Prior):
        fitted = chosen
    elif isinstance(chosen, Family):
        fitted = _fit(estimate, chosen, fit, constant)
        if fitted is None:
            warnings.warn(
                f"the prior {chosen.name} cannot have the mean and variance of these estimates: learned instead",
                FitWarning,
                stacklevel=3,
            )
    found = fitted or _learned(estimate, constant, power_law)
    mean, variance, _ = posterior(estimate, found, constant)
    made = CalibratedEstimate.of_estimate(
        estimate,
        mean,
        f"calibrate({found.label})",
        prior=found,
        posterior_sd=np.sqrt(variance),
        constant_noise=constant,
    )
    assert isinstance(made, CalibratedEstimate)
    return made


def power(estimate: Estimate, fit: str = "moments") -> CalibratedEstimate:
    """Runs at the collector: Power of the consistency paper, which is Calibrate with a power law."""
    return calibrate(estimate, "power-law", fit)


def power_ns(estimate: Estimate, fit: str = "moments", total: float | None = None) -> ProcessedEstimate:
    """Runs at the collector: PowerNS, Norm-Sub after Power."""
    made: ProcessedEstimate = power(estimate, fit).post("norm-sub", total=total)  # type: ignore[assignment]
    return made


def automatic(estimate: Estimate) -> ProcessedEstimate:
    """Runs at the collector: the learned prior, then Norm-Sub where the frequencies add up to one.

    Without the prior where there are too few values to learn from, or no noise model: Norm-Sub alone, or Base-Pos where
    the frequencies do not add up (some candidates, items in sets).
    """
    if not estimate.noise.known or len(estimate) < _FEW:
        made: Any = estimate.post("norm-sub" if estimate.adds_up else "base-pos")
    else:
        made = calibrate(estimate)
        made = made.post("norm-sub") if estimate.adds_up else made
    return made  # type: ignore[no-any-return]


def posterior(estimate: Estimate, prior: Prior, constant: bool, cut: float = np.inf) -> tuple[Floats, Floats, Floats]:
    """Posterior mean and variance of each frequency, and the probability that it is above `cut` ((11), (12))."""
    return _posterior(estimate, prior, constant, cut)[:3]


def _posterior(
    estimate: Estimate, prior: Prior, constant: bool, cut: float = np.inf
) -> tuple[Floats, Floats, Floats, Floats]:
    from veil.kernels.normal_mixtures import posteriors

    held = prior.masses > 0
    atoms, log_mass = prior.atoms[held], np.log(prior.masses[held])
    sd = np.sqrt(_variance(estimate, constant, atoms))
    widths = np.zeros(len(atoms)) if prior.widths is None else prior.widths[held]
    different, where = np.unique(estimate.frequencies, return_inverse=True)  # counts repeat: far fewer than values
    first, last = windows(different, atoms, sd)
    found = posteriors(different, atoms, log_mass, sd, widths, first, last, cut)
    far = found[3] + np.log(sd.min()) < -15.0  # so unlikely that even what is outside the window may weigh more
    everything = np.zeros(int(far.sum()), np.int64), np.full(int(far.sum()), len(atoms))
    found[:, far] = posteriors(different[far], atoms, log_mass, sd, widths, *everything, cut)
    return np.maximum(found[0], 0.0)[where], found[1, where], found[2, where], found[3, where]  # rounding below 0


def _variance(estimate: Estimate, constant: bool, frequencies: Floats) -> Floats:
    return estimate.variance_at(np.zeros_like(frequencies) if constant else frequencies)


def _resolve(prior: str | Family | Prior) -> str | Family | Prior:
    if isinstance(prior, (Family, Prior)) or (isinstance(prior, str) and prior == "learned"):
        return prior
    if not isinstance(prior, str) or prior not in FAMILIES:
        raise ParameterError(f"a prior is learned, {', '.join(FAMILIES)}, or your own Family or Prior")
    return FAMILIES[prior]


def _learned(estimate: Estimate, constant: bool, power_law: bool) -> Prior:
    beside = _fit(estimate, FAMILIES["power-law"], "moments", constant) if power_law else None
    evidence = None if beside is None else _posterior(estimate, beside, constant)[3]
    found = learn(estimate.frequencies, lambda f: _variance(estimate, constant, f), evidence)
    widths = _widths(found, len(estimate), np.sqrt(_variance(estimate, constant, found.atoms)))
    if beside is None:
        return Prior("learned", found.atoms, found.masses, widths=widths)
    atoms, where = np.unique(np.concatenate([found.atoms, beside.atoms]), return_inverse=True)
    masses = np.concatenate([found.masses, found.component * beside.masses])
    return Prior(
        "learned with power-law",
        atoms,
        np.asarray(np.bincount(where, masses, len(atoms)), dtype=np.float64),
        {**beside.parameters, "share": found.component},
        np.interp(atoms, found.atoms, widths),
    )


def _widths(found: LearnedPrior, values: int, sd: Floats) -> Floats:
    """How uncertain the atoms' places are: an atom that k values made is a mean of k estimates.

    Without this the atom that one large value puts under itself would be taken for the truth about it.
    """
    running = np.concatenate([[0.0], np.cumsum(found.masses)])
    low, high = np.searchsorted(found.atoms, found.atoms - sd), np.searchsorted(found.atoms, found.atoms + sd, "right")
    return np.asarray(sd / np.sqrt(np.maximum(values * (running[high] - running[low]), 1.0)))


def _fit(estimate: Estimate, family: Family, fit: str, constant: bool) -> Prior | None:
    """The family's member for these estimates, or None where there is none."""
    n, counts = estimate.n, estimate.frequencies * estimate.n
    mean = estimate.n / len(estimate) if estimate.adds_up else float(np.mean(counts))  # (17): known, or estimated
    noise = float(np.mean(_variance(estimate, constant, estimate.frequencies))) * n**2
    variance = float(np.mean((counts - mean) ** 2)) - noise  # (18)
    parameters = family.moments(mean, variance, n)
    if parameters is None:
        return None
    if not isinstance(parameters, tuple) or not len(parameters) == len(family.parameters) == len(family.positive):
        raise ParameterError(f"the prior {family.name} gives a tuple of parameters, one for each that it names")
    sigma = float(np.sqrt(estimate.variance_at(np.zeros(1))[0])) * n
    narrow, poisson = (float(np.sqrt(max(v, 1.0))) for v in (variance, mean))  # a prior may be narrower than the noise
    centre = np.array([mean])
    places = cells(n, family.least, (counts, sigma), (centre, narrow), (centre, poisson))
    if fit == "likelihood":
        parameters = _most_likely(estimate, family, places, parameters, constant)
    named = dict(zip(family.parameters, parameters, strict=True))
    return Prior(family.name, places.middles / n, places.masses(family, parameters), named)


def _most_likely(
    estimate: Estimate, family: Family, places: CountBins, start: tuple[float, ...], constant: bool
) -> tuple[float, ...]:
    """Parameters that make the estimates the most likely (16), found from those of the mean-variance method."""
    from scipy.optimize import minimize

    atoms = places.middles / estimate.n

    def inward(parameters: tuple[float, ...]) -> list[float]:
        return [float(np.log(x)) if p else x for x, p in zip(parameters, family.positive, strict=True)]

    def outward(x: Any) -> tuple[float, ...]:
        return tuple(float(np.exp(value)) if p else float(value) for value, p in zip(x, family.positive, strict=True))

    def loss(x: Any) -> float:
        try:
            with np.errstate(over="ignore", under="ignore", divide="ignore"):
                prior = Prior(family.name, atoms, places.masses(family, outward(x)))
        except InputError:
            return np.inf
        return -float(np.mean(_posterior(estimate, prior, constant)[3]))

    found = minimize(loss, inward(start), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9, "maxiter": 400})
    return outward(found.x)
