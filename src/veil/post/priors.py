"""Priors for Calibrate (Jia and Gong, INFOCOM 2019): distributions of true frequencies, given or learned.

A Family is a distribution of counts (people per value) with parameters to be fitted; a Prior is one with numbers, as
masses on a list of frequencies. Smooth families use cells of counts: every small count alone, then cells of one per
cent of their count, and cells far narrower than the noise near an estimate.

`learn` estimates the prior from the estimates themselves, by nonparametric maximum likelihood (Kiefer and Wolfowitz,
1956). If an estimate is f + noise with a known variance, the likelihood of a distribution of f over a grid of atoms is
concave in the atoms' masses. An interior-point method finds its maximum to a stated duality gap. Estimates are first
grouped into cells much narrower than the noise, so that the work does not grow with the number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError

Floats = NDArray[np.float64]
Parameters = tuple[float, ...]
_ALONE = 64  # counts up to here stand alone
_RATIO = 1.01  # then cells grow by this factor
_PER_SCALE, _REACH = 32, 9  # near an estimate: cells a sigma, and how many sigmas "near" is
Ints = NDArray[np.int64]
GAP = 1e-7
"""Log-likelihood a value that the solution may lack."""
_SMALL_ATOMS, _LEAST = 80, 0.01  # atoms below 4 sigma, from sigma / 100 on
_PER_SIGMA, _BESIDE = 3, 2.0  # beyond: multiples of sigma / 3 within 2 sigma of an estimate
_CELLS = 32  # cells a sigma: the likelihood changes by 1e-4 of itself within one
_WINDOW = 8.5  # sigmas beyond which a normal density is below 1e-15 of its peak
_MOST_STEPS = 80
_Solver = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Prior:
    """Masses on frequencies (fractions of people), increasing, and how they came about.

    Build one from people who opted in to share their answers, or from last year's census:

    >>> Prior.of_frequencies([0.5, 0.25, 0.25, 0.0]).masses.tolist()
    [0.25, 0.5, 0.25]
    """

    name: str
    atoms: Floats
    masses: Floats
    parameters: Mapping[str, float] = field(default_factory=dict)
    widths: Floats | None = None
    """How uncertain the place of each atom is, where it was learned from few values."""

    def __post_init__(self) -> None:
        atoms, masses = _numbers(self.atoms), _numbers(self.masses)
        if atoms.ndim != 1 or atoms.shape != masses.shape or not len(atoms):
            raise ParameterError("a prior has as many masses as frequencies, and at least one")
        if not (np.isfinite(atoms).all() and (np.diff(atoms) > 0).all() and atoms[0] >= 0 and atoms[-1] <= 1):
            raise ParameterError("a prior's frequencies are different, increasing, and lie between 0 and 1")
        if not (np.isfinite(masses).all() and (masses >= 0).all() and masses.sum() > 0):
            raise ParameterError("a prior's masses are not negative, and not all zero")
        object.__setattr__(self, "atoms", atoms)
        object.__setattr__(self, "masses", masses / masses.sum())

    @classmethod
    def of_frequencies(cls, frequencies: Any, name: str = "given") -> Prior:
        """The distribution of known frequencies: each value is as likely to be one of them as another."""
        atoms, counts = np.unique(_numbers(frequencies), return_counts=True)
        return cls(name, atoms, counts.astype(np.float64))

    @property
    def label(self) -> str:
        """Name and parameters, for lineages."""
        return ", ".join([self.name, *(f"{key}={value:.4g}" for key, value in self.parameters.items())])


@dataclass(frozen=True)
class Family:
    """A distribution of counts with parameters. Your own may stand wherever the name of a given one may.

    `log_mass(counts, parameters)` is the log probability of counts, up to a constant. `moments(mean, variance, size)`
    gives the parameters with this mean and variance of counts (of `size` people in all), or None where there are none:
    the mean-variance method. `positive` says which parameters are.
    """

    name: str
    parameters: tuple[str, ...]
    log_mass: Callable[[Floats, Parameters], Floats]
    moments: Callable[[float, float, int], Parameters | None]
    positive: tuple[bool, ...]
    least: int = 0
    """The smallest count that is possible."""


@dataclass(frozen=True, eq=False)
class CountBins:
    """Cells of counts: their middles, and how many counts each holds."""

    middles: Floats
    widths: Floats

    def masses(self, family: Family, parameters: Parameters) -> Floats:
        """The probability of each cell."""
        logs = np.asarray(family.log_mass(self.middles, parameters), dtype=np.float64) + np.log(self.widths)
        if not np.isfinite(logs.max()):
            raise InputError(f"the prior {family.name} has no mass on 0 to all people")
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())


def _numbers(data: Any) -> Floats:
    try:
        return np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("a prior's frequencies and masses are numbers") from None


def cells(people: int, least: int, *details: tuple[Floats, float]) -> CountBins:
    """Cells of the counts least..people. Each detail is some places, and the scale at which things change near them."""
    alone = np.arange(least, min(_ALONE, people) + 2) - 0.5
    steps = int(np.ceil(np.log(max(people / _ALONE, 1.0)) / np.log(_RATIO)))
    growing = _ALONE * _RATIO ** np.arange(1, steps + 1)
    edges = np.concatenate([alone, growing, *(_around(places, scale) for places, scale in details)])
    halves = np.unique(np.clip(np.floor(edges) + 0.5, least - 0.5, people + 0.5))
    return CountBins((halves[1:] + halves[:-1]) / 2, np.diff(halves))


def _around(places: Floats, scale: float) -> Floats:
    """Edges a fraction of the scale apart, within reach of the places: each once, though places may be close."""
    step = scale / _PER_SCALE
    starts = np.unique(np.rint(places / step)) - _REACH * _PER_SCALE
    stops = np.minimum(starts + 2 * _REACH * _PER_SCALE, np.append(starts[1:], np.inf) - 1)
    lengths = (stops - starts + 1).astype(np.int64)
    offsets = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.asarray((np.repeat(starts, lengths) + offsets) * step)


def _power_law(counts: Floats, parameters: Parameters) -> Floats:
    return -parameters[0] * np.log(counts)


def _power_law_moments(mean: float, variance: float, people: int) -> Parameters | None:
    """The exponent with this mean on 1..people; a mean of 1 or less, or above that of exponent 0, cannot be."""
    from scipy.optimize import brentq

    whole = cells(people, 1)
    middles, logs = whole.middles, np.log(whole.middles)

    def excess(alpha: float) -> float:
        weights = whole.widths * np.exp(-alpha * logs)
        return float(middles @ weights / weights.sum() - mean)

    if not (excess(0.0) > 0 > excess(60.0)):
        return None
    return (float(brentq(excess, 0.0, 60.0, xtol=1e-12)),)


def _gaussian(counts: Floats, parameters: Parameters) -> Floats:
    centre, spread = parameters
    return -0.5 * ((counts - centre) / spread) ** 2


def _laplace(counts: Floats, parameters: Parameters) -> Floats:
    centre, scale = parameters
    return -np.abs(counts - centre) / scale


def _poisson(counts: Floats, parameters: Parameters) -> Floats:
    from scipy.special import gammaln

    return np.asarray(counts * np.log(parameters[0]) - gammaln(counts + 1))


def _exponential(counts: Floats, parameters: Parameters) -> Floats:
    return -counts / parameters[0]


def _two(factor: float) -> Callable[[float, float, int], Parameters | None]:
    def moments(mean: float, variance: float, people: int) -> Parameters | None:
        return (mean, float(np.sqrt(variance * factor))) if variance > 0 else None

    return moments


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("power-law", ("alpha",), _power_law, _power_law_moments, (True,), least=1),
        Family("gaussian", ("centre", "spread"), _gaussian, _two(1.0), (False, True)),
        Family("laplace", ("centre", "scale"), _laplace, _two(0.5), (False, True)),
        Family("poisson", ("rate",), _poisson, lambda mean, variance, n: (mean,) if mean > 0 else None, (True,)),
        Family(
            "exponential",
            ("scale",),
            _exponential,
            lambda mean, variance, n: (1 / float(np.log1p(1 / mean)),) if mean > 0 else None,
            (True,),
        ),
    )
}


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """Atoms (frequencies) and their masses, what a given component beside them got, and how well it converged."""

    atoms: Floats
    masses: Floats
    component: float
    gap: float
    steps: int


def windows(observed: Floats, atoms: Floats, sd: Floats) -> tuple[Ints, Ints]:
    """Which atoms an observation sees, first to last; the nearest where none is near."""
    first = np.searchsorted(atoms + _WINDOW * sd, observed)
    last = np.searchsorted(atoms - _WINDOW * sd, observed, side="right")
    nearest = np.clip(np.searchsorted(atoms, observed), 0, len(atoms) - 1)
    empty = first >= last
    return np.where(empty, nearest, first).astype(np.int64), np.where(empty, nearest + 1, last).astype(np.int64)


def grid(observed: Floats, sigma: float) -> Floats:
    """Atoms: zero, geometric steps up to 4 sigma, then sigma / 3 apart near every larger estimate."""
    small = np.concatenate([[0.0], np.geomspace(_LEAST * sigma, 4 * sigma, _SMALL_ATOMS)])
    large = np.unique(np.rint(observed[observed > 4 * sigma] * _PER_SIGMA / sigma))
    around = np.arange(-_PER_SIGMA * _BESIDE, _PER_SIGMA * _BESIDE + 1)
    beyond = np.unique(large[:, None] + around[None, :]) * sigma / _PER_SIGMA
    atoms = np.concatenate([small, beyond[beyond > 4 * sigma]])
    return np.append(atoms[atoms < 1.0], 1.0) if atoms[-1] > 1.0 else atoms  # nothing is more frequent than always


def learn(observed: Floats, variance: Callable[[Floats], Floats], component: Floats | None = None) -> LearnedPrior:
    """Runs at the collector: the distribution of frequencies under which these estimates are the most likely.

    `variance` gives the noise of an estimate where the frequency is f. `component` is the log evidence of each
    observation under some other prior, which then competes with the atoms for mass. Atoms can imitate any prior, so the
    component is favoured by log(number of values) imagined values of its own, as BIC does the simpler model.

    >>> noise = np.random.default_rng(0).normal(0, 0.01, 2000)
    >>> found = learn(0.3 + noise, lambda f: np.full_like(f, 1e-4))
    >>> bool(abs(found.atoms @ found.masses - 0.3) < 1e-3), found.gap < 1e-6
    (True, True)
    """
    from veil.kernels.normal_mixtures import likelihoods

    sigma = float(np.sqrt(variance(np.zeros(1))[0]))
    atoms = grid(observed, sigma)
    sd = np.sqrt(variance(atoms))
    cell, where = np.unique(np.floor(observed * _CELLS / sigma), return_inverse=True)
    people = np.bincount(where, minlength=len(cell)).astype(np.float64)
    centres = np.bincount(where, observed, len(cell)) / people
    first, last = windows(centres, atoms, sd)
    rows, peaks = likelihoods(centres, atoms, sd, first, last)
    beside = np.zeros((len(cell), 0))
    if component is not None:
        own = np.exp(np.bincount(where, component, len(cell)) / people - peaks)
        beside = np.append(own, 1.0)[:, None]
        rows, first = np.append(rows, np.zeros((1, rows.shape[1])), axis=0), np.append(first, 0)
        people = np.append(people, np.log(len(observed)))
    masses, gap, steps = _Mixture(rows, first, len(atoms), beside, people / people.sum()).solve()
    return LearnedPrior(atoms, masses[: len(atoms)], float(masses[len(atoms) :].sum()), gap, steps)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Maximise sum of shares * log(L w) over masses w: a window of atoms per row, and a few columns that all rows see.

    Written as: minimise sum(w) - shares . log(L w) over w >= 0, whose solution adds up to one by itself.
    """

    rows: Floats
    first: Ints
    atoms: int
    beside: Floats
    shares: Floats

    def solve(self) -> tuple[Floats, float, int]:
        """Primal-dual interior point with Mehrotra's predictor and corrector; z are the multipliers of w >= 0."""
        size = self.atoms + self.beside.shape[1]
        w, z = np.full(size, 1.0 / size), np.ones(size)
        step = 0
        while True:
            mixed = self._mix(w)
            score = self._score(self.shares / mixed)
            gap = self._gap(w, score)
            if gap < GAP or step == _MOST_STEPS:
                return w / w.sum(), gap, step
            newton = self._newton(self.shares / mixed**2, z / w)
            mu = float(w @ z) / size
            dw, dz = _direction(newton, score - 1.0, w, z, np.zeros(size))
            reached = float((w + _reach(w, dw) * dw) @ (z + _reach(z, dz) * dz)) / size
            dw, dz = _direction(newton, score - 1.0, w, z, mu * (reached / mu) ** 3 - dw * dz)
            w, z, step = w + _reach(w, dw) * dw, z + _reach(z, dz) * dz, step + 1

    def _mix(self, w: Floats) -> Floats:
        from veil.kernels.normal_mixtures import mixtures

        return np.asarray(mixtures(self.rows, self.first, w[: self.atoms]) + self.beside @ w[self.atoms :])

    def _score(self, shares: Floats) -> Floats:
        from veil.kernels.normal_mixtures import scores

        return np.concatenate([scores(self.rows, self.first, shares, self.atoms), shares @ self.beside])

    def _gap(self, w: Floats, score: Floats) -> float:
        """How much more log-likelihood per value there can be: the present multipliers, scaled to be feasible, say."""
        return float(np.log(score.max() * w.sum()))

    def _newton(self, curvature: Floats, ridge: Floats) -> _Solver:
        """Solves (L' diag(curvature) L + diag(ridge)) x = r: a band of atoms, bordered by the columns beside them."""
        from veil.kernels.normal_mixtures import factor, gram, scores, solve

        band = gram(self.rows, self.first, curvature, self.atoms)
        band[:, 0] += ridge[: self.atoms]
        factored = factor(band)
        if not self.beside.shape[1]:
            return lambda r: np.asarray(solve(factored, r))
        border = np.stack([scores(self.rows, self.first, curvature * c, self.atoms) for c in self.beside.T], axis=1)
        through = np.stack([solve(factored, np.ascontiguousarray(column)) for column in border.T], axis=1)
        corner = (self.beside * curvature[:, None]).T @ self.beside + np.diag(ridge[self.atoms :])
        schur = corner - border.T @ through

        def bordered(r: Floats) -> Floats:
            inner = solve(factored, r[: self.atoms])
            outer = np.linalg.solve(schur, r[self.atoms :] - border.T @ inner)
            return np.concatenate([inner - through @ outer, outer])

        return bordered


def _direction(newton: _Solver, pull: Floats, w: Floats, z: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Changes of w and z that bring w * z to the target, to first order."""
    dw = newton(pull + target / w)
    return dw, (target - z * dw) / w - z


def _reach(value: Floats, change: Floats) -> float:
    """How far one may go and stay positive."""
    shrinking = change < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, 0.995 * float(np.min(-value[shrinking] / change[shrinking])))
