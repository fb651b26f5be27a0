"""Priors for Calibrate (Jia and Gong, INFOCOM 2019): how the true frequencies of values may be distributed.

A Family is a distribution of counts (people per value) with parameters to be fitted; a Prior is one with numbers, as
masses on a list of frequencies. Smooth families live on cells of counts: every small count alone, then cells of one per
cent of their place, and everywhere near an estimate far narrower than the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError

__all__ = ["FAMILIES", "Cells", "Family", "Prior", "cells"]

Floats = NDArray[np.float64]
Parameters = tuple[float, ...]

_ALONE = 64  # counts up to here stand alone
_RATIO = 1.01  # then cells grow by this factor
_PER_SCALE, _REACH = 32, 9  # near an estimate: cells a sigma, and how many sigmas "near" is


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
class Cells:
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


def cells(people: int, least: int, *details: tuple[Floats, float]) -> Cells:
    """Cells of the counts least..people. Each detail is some places, and the scale at which things change near them."""
    alone = np.arange(least, min(_ALONE, people) + 2) - 0.5
    steps = int(np.ceil(np.log(max(people / _ALONE, 1.0)) / np.log(_RATIO)))
    growing = _ALONE * _RATIO ** np.arange(1, steps + 1)
    edges = np.concatenate([alone, growing, *(_around(places, scale) for places, scale in details)])
    halves = np.unique(np.clip(np.floor(edges) + 0.5, least - 0.5, people + 0.5))
    return Cells((halves[1:] + halves[:-1]) / 2, np.diff(halves))


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
