"""From reports of a wave to the distribution behind them: EM, EMS, and EMS with spikes (SIGMOD 2020, section 5.5).

The log-likelihood is concave, so EM finds its maximum; but the maximum fits the noise. EMS averages neighbours after
each step, with weights (1, 2, 1) / 4 and reflection at the ends, which the paper leaves open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.distribution import Fit
from veil.errors import InputError, ParameterError
from veil.mechanisms import SquareWave
from veil.numeric.waves import Wave

__all__ = ["Smoothing", "Stopping", "reconstruct"]

Floats = NDArray[np.float64]
Smoothing = bool | Literal["auto"]


@dataclass(frozen=True)
class Stopping:
    """When to stop: on a calm likelihood, on a calm histogram, or after `most` steps.

    `tau` is the paper's: the log-likelihood changes by less a step. Smoothing can turn it around, so it must be calm
    over twenty steps in a row; it is looked at every ten. `change` does not depend on the number of people: the mass
    that one step moves. Where both are given, the first to hold decides.

    >>> Stopping.paper(epsilon=1.0, smoothing=False).tau == 1e-3 * math.e
    True
    """

    tau: float = 0.0
    change: float = 0.0
    most: int = 10_000

    def __post_init__(self) -> None:
        if not all(math.isfinite(rule) and rule >= 0 for rule in (self.tau, self.change)):
            raise ParameterError("a stopping rule's tau and change are finite and not negative")
        if not 1 <= self.most <= 10_000_000:
            raise ParameterError("a reconstruction takes between 1 and 10,000,000 steps")

    @classmethod
    def paper(cls, epsilon: float, *, smoothing: bool) -> Stopping:
        """tau = 1e-3 for EMS, 1e-3 e^eps for EM."""
        return cls(tau=1e-3 if smoothing else 1e-3 * math.exp(epsilon))

    @classmethod
    def steady(cls, change: float = 1e-5) -> Stopping:
        """Until a step moves less than this fraction of the people, however many there are."""
        return cls(change=change)


def reconstruct(
    mechanism: SquareWave,
    counts: NDArray[np.int64],
    *,
    smoothing: Smoothing = True,
    stopping: Stopping | None = None,
    start: Any = None,
) -> tuple[Floats, Fit, str]:
    """Runs at the collector: the masses of a wave's buckets, how the reconstruction went, and its name.

    >>> wave = SquareWave(epsilon=2.0, domain=8)
    >>> masses, fit, how = reconstruct(wave, wave.tally(wave.randomize([3] * 1000)).counts)
    >>> how, fit.converged, int(masses.argmax())
    ('EMS', True, 3)
    """
    if not isinstance(smoothing, bool) and smoothing != "auto":
        raise ParameterError('smoothing is True (EMS), False (EM) or "auto"')
    wave = Wave.of(mechanism)
    first = _start(start, mechanism.buckets)
    if smoothing == "auto":
        from veil.numeric.spikes import with_spikes

        return with_spikes(wave, counts, first, stopping or Stopping.paper(mechanism.epsilon, smoothing=True))
    rule = stopping or Stopping.paper(mechanism.epsilon, smoothing=smoothing)
    nothing = np.zeros_like(first)
    smooth, spikes = (first, nothing) if smoothing else (nothing, first)
    masses, fit = run(wave, counts, smooth, spikes, 0.0, rule)
    return masses, fit, "EMS" if smoothing else "EM"


def run(
    wave: Wave, counts: NDArray[np.int64], smooth: Floats, spikes: Floats, penalty: float, rule: Stopping
) -> tuple[Floats, Fit]:
    """Iterate from a smooth and a spiky part: see `kernels.waves.iterate`."""
    from veil.kernels.waves import BLOCK, iterate

    smooth, spikes = smooth.copy(), spikes.copy()
    trace = np.full(rule.most // BLOCK + 1, np.nan)
    steps, settled = iterate(
        smooth, spikes, penalty, counts.astype(np.float64), wave.held, wave.seen, wave.floor, wave.lift,
        rule.tau, rule.change, rule.most, trace,
    )  # fmt: skip
    masses = smooth + spikes
    likelihoods = [*trace[~np.isnan(trace)].tolist(), wave.log_likelihood(masses, counts)]
    return masses, Fit(int(steps), bool(settled), tuple(likelihoods))


def _start(start: Any, buckets: int) -> Floats:
    """The histogram to begin with: positive everywhere, because EM never leaves zero."""
    if start is None:
        return np.full(buckets, 1.0 / buckets)
    given = np.asarray(start, dtype=np.float64)
    if given.shape != (buckets,) or not np.isfinite(given).all() or not (given > 0).all():
        raise InputError(f"a histogram to begin with has {buckets} positive masses")
    return np.asarray(given / given.sum())
