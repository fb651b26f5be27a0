"""From reports of a wave to the distribution behind them: EM, EMS, and EMS with spikes (SIGMOD 2020, section 5.5).

The log-likelihood is concave, so EM finds its maximum; but the maximum fits the noise. EMS averages neighbours after
each step, with weights (1, 2, 1) / 4 and reflection at the ends, which the paper leaves open. With fewer than 256
buckets that would smooth over a large part of the domain, so neighbours get less: see `neighbour_share`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.waves import Wave
from veil.results.distribution import Fit
from veil.tools.numbers import is_int, is_number

__all__ = ["Model", "Smoothing", "Stopping", "neighbour_share", "reconstruct", "run"]

Floats = NDArray[np.float64]
_PAPER_SHARE, _PAPER_BUCKETS = 0.25, 256


@dataclass(frozen=True)
class Model:
    """What a distribution is taken for: how much of a bucket each neighbour gets in a step, and what spikes cost."""

    share: float
    penalty: float | None = None
    """In people; None has no spikes beside the smooth part."""

    @property
    def name(self) -> str:
        if not self.share:
            return "EM"
        smooth = "EMS" if self.share == _PAPER_SHARE else f"EMS(share {self.share:g})"
        return smooth if self.penalty is None else f"{smooth} with spikes (penalty {self.penalty:g})"


Smoothing = bool | float | Literal["auto"] | Model
"""True is EMS, False is EM, "auto" chooses a model; a number is what each neighbour gets, 1/4 in the paper."""


@dataclass(frozen=True)
class Stopping:
    """When to stop: on a calm likelihood, on a calm histogram, or after `most` steps.

    `tau` is the paper's: the log-likelihood changes by less than this in one step. Smoothing can turn it around, so it
    must be calm over twenty steps in a row; it is looked at every ten. `change` is the mass that one step moves, which
    does not depend on the number of people. Where both are given, the first to hold decides.

    >>> Stopping.paper(epsilon=1.0, smoothing=False).tau == 1e-3 * math.e
    True
    """

    tau: float = 0.0
    change: float = 0.0
    most: int = 10_000

    def __post_init__(self) -> None:
        if not all(is_number(rule) and rule >= 0 for rule in (self.tau, self.change)):
            raise ParameterError("a stopping rule's tau and change are finite numbers and not negative")
        if not is_int(self.most) or not 1 <= self.most <= 10_000_000:
            raise ParameterError("a reconstruction takes between 1 and 10,000,000 steps")

    @classmethod
    def paper(cls, epsilon: float, *, smoothing: bool) -> Stopping:
        """tau = 1e-3 for EMS, 1e-3 e^eps for EM."""
        return cls(tau=1e-3 if smoothing else 1e-3 * math.exp(epsilon))


def reconstruct(
    mechanism: SquareWave,
    counts: NDArray[Any],
    *,
    smoothing: Smoothing = True,
    stopping: Stopping | None = None,
    start: Any = None,
    share: float | None = None,
) -> tuple[Floats, Fit, Model]:
    """Runs at the collector: the masses of a wave's buckets, how the reconstruction went, and the model it took.

    `share` is what EMS gives to each neighbour, `neighbour_share(buckets)` unless given; "auto" begins with it.

    >>> wave = SquareWave(epsilon=2.0, domain=8)
    >>> masses, fit, model = reconstruct(wave, wave.tally(wave.randomize([3] * 1000)).counts)
    >>> model.name, fit.converged, int(masses.argmax())
    ('EMS(share 0.000244141)', True, 3)
    """
    if stopping is not None and not isinstance(stopping, Stopping):
        raise ParameterError("a stopping rule is a Stopping")
    wave, first = Wave.of(mechanism), _start(start, mechanism.buckets)
    model = _model(smoothing, neighbour_share(mechanism.buckets) if share is None else share)

    def rule(taken: Model) -> Stopping:
        return stopping or Stopping.paper(mechanism.epsilon, smoothing=taken.share > 0)

    if smoothing == "auto":
        from veil.mechanisms.spikes import choose_model

        model = choose_model(wave, counts, model.share, first, rule)
    masses, fit = run(wave, counts, model, first, rule(model))
    return masses, fit, model


def run(wave: Wave, counts: NDArray[Any], model: Model, start: Floats, rule: Stopping) -> tuple[Floats, Fit]:
    """Iterate a model from a histogram: see `kernels.waves.iterate`."""
    from veil.kernels.waves import BLOCK, iterate

    # EM without smoothing is all spikes that cost nothing; with spikes, half of the mass begins in either part
    spiky = 1.0 if not model.share else 0.0 if model.penalty is None else 0.5
    smooth, spikes = start * (1 - spiky), start * spiky
    trace = np.full(rule.most // BLOCK + 1, np.nan)
    steps, settled = iterate(
        smooth, spikes, model.share, model.penalty or 0.0, counts.astype(np.float64),
        wave.held, wave.seen, wave.floor, wave.lift, rule.tau, rule.change, rule.most, trace,
    )  # fmt: skip
    masses = smooth + spikes
    likelihoods = [*trace[~np.isnan(trace)].tolist(), wave.log_likelihood(masses, counts)]
    return masses, Fit(int(steps), bool(settled), tuple(likelihoods), model.share, model.penalty)


def neighbour_share(buckets: int) -> float:
    """What a bucket gives to each neighbour in a step of EMS: the paper's 1/4 from 256 buckets on, less below.

    Averaging over neighbours is a diffusion by a bucket's width. The share falls with the square of the number of
    buckets, so that a step smooths over no larger part of the domain than it does with 256 of them. (With the paper's
    share, ten buckets of wages have 70 times the error.)

    >>> neighbour_share(1024), neighbour_share(256), neighbour_share(64)
    (0.25, 0.25, 0.015625)
    """
    return _PAPER_SHARE * min(1.0, buckets / _PAPER_BUCKETS) ** 2


def _model(smoothing: Smoothing, share: float) -> Model:
    """The model that is asked for, if EMS has this share; for "auto" the one to begin with."""
    if isinstance(smoothing, Model):
        return smoothing
    if isinstance(smoothing, bool) or smoothing == "auto":
        return Model(share if smoothing else 0.0)
    if not is_number(smoothing) or not 0 < smoothing <= _PAPER_SHARE:
        raise ParameterError('smoothing is True (EMS), False (EM), "auto", or what a neighbour gets: up to 1/4')
    return Model(float(smoothing))


def _start(start: Any, buckets: int) -> Floats:
    """The histogram to begin with: positive everywhere, because EM never leaves zero."""
    if start is None:
        return np.full(buckets, 1.0 / buckets)
    try:
        given = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (buckets,) or not ((given > 0) & (given < 1e300)).all():
        raise InputError(f"a histogram to begin with has {buckets} positive masses")
    given = given / given.max()  # the sum of large numbers would overflow
    return np.asarray(given / given.sum())
