"""Reconstruction of a distribution from reports of a wave: EM, EMS, and EMS with spikes (SIGMOD 2020, section 5.5).

`Wave` is the matrix of a wave as an operator; the dense matrix is never built. Within a bucket people are spread evenly
over its cells. Its columns then are sums of cumulative sums, exact on whole cells whether or not the wave's ends fall
on a bucket's boundary.

The log-likelihood is concave, so EM finds its maximum; but the maximum fits the noise. EMS averages neighbours after
each step, with weights (1, 2, 1) / 4 and reflection at the ends, which the paper leaves open. With fewer than 256
buckets that would smooth over a large part of the domain, so neighbours get less: see `neighbour_share`.

With smoothing="auto", `choose_model` selects the amount of smoothing and whether there are spikes. EMS smooths away the
values that people round to: salaries of 50,000, ages of 40; and with many people, or narrow data, it smooths more than
necessary. The reports are split into halves, and each half is read with less and less smoothing, down to none, as long
as the result explains the other half better. Fitted to half of the reports, a rough model fits more noise than it will
with all of them, so the choice leans to the smooth side. A smooth part plus spikes, with a penalty for every spike, is
chosen if it is significantly better still.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError
from veil.mechanisms import SquareWave
from veil.results.distribution import Fit
from veil.tools.numbers import is_int, is_number

Floats = NDArray[np.float64]
Corners = tuple[Floats, NDArray[np.uint64], Floats]


@dataclass(frozen=True, eq=False)
class Wave:
    """M of section 5.5: M[j, i] is the probability that a report lands in bucket j when the value is in bucket i.

    >>> wave = Wave.of(SquareWave(epsilon=1.0, domain=100, buckets=10))
    >>> chances = wave.reports(np.full(10, 0.1))
    >>> round(float(chances.sum()), 12), len(chances)
    (1.0, 15)
    """

    held: Corners
    seen: Corners
    floor: float
    """The probability of a cell outside the wave."""
    lift: float
    """What the wave adds, divided by the pairs of offsets that lead there."""

    @classmethod
    @lru_cache(maxsize=8)  # simulated surveys reconstruct through the same wave again and again
    def of(cls, mechanism: SquareWave) -> Wave:
        """The operator of a mechanism."""
        held, seen = mechanism.input_edges, mechanism.output_edges
        long, short = mechanism.plateau, mechanism.ramp
        # Sums over offsets below `long` (and below `short`) telescope to these ends (or corners), see kernels.waves.
        if short == 1:
            forth = [seen + 1, seen + 1 - long]
            back = [held + long, held]
        else:
            forth = [seen + 2, seen + 2 - long, seen + 2 - short, seen + 2 - long - short]
            back = [held + long + short, held + long, held + short, held]
        chance = mechanism.chance
        return cls(
            held=(_binomials(np.diff(held)), *_places(forth, held)),
            seen=(_binomials(np.diff(seen)), *_places(back, seen)),
            floor=float((1 - chance) / mechanism.outputs),
            lift=float(chance / (long * short)),
        )

    def reports(self, masses: Floats) -> Floats:
        """M x: the probability of each bucket of reports, when people are distributed like this."""
        from veil.kernels.waves import box_sums

        widths, index, binomials = self.held
        waves = box_sums(masses / widths[0], widths, index, binomials)
        return np.asarray(self.floor * masses.sum() * self.seen[0][0] + self.lift * waves)

    def people(self, weights: Floats) -> Floats:
        """M^T r: for each bucket of people, the expected weight of a report."""
        from veil.kernels.waves import box_sums

        widths, index, binomials = self.seen
        waves = box_sums(np.asarray(weights, dtype=np.float64), widths, index, binomials)
        return np.asarray(self.floor * float(weights @ widths[0]) + self.lift * waves / self.held[0][0])

    def log_likelihood(self, masses: Floats, counts: NDArray[Any]) -> float:
        """The logarithm of the reports' probability, when people are distributed like this."""
        seen = counts > 0
        return float(counts[seen] @ np.log(self.reports(masses)[seen]))


def _binomials(distance: NDArray[np.int64]) -> Floats:
    """distance over 1, 2 and 3: Newton's form of cumulative sums."""
    t = distance.astype(np.float64)
    return np.stack([t, t * (t - 1) / 2, t * (t - 1) * (t - 2) / 6])


def _places(corners: list[NDArray[np.int64]], edges: NDArray[np.int64]) -> tuple[NDArray[np.uint64], Floats]:
    """For every corner, the bucket it falls into and the binomials of its distance from that bucket's start."""
    index, binomials = [], []
    for corner in corners:
        inside = np.maximum(corner, 0)  # before the first bucket all sums are zero, as at its start
        bucket = np.searchsorted(edges, inside, side="right") - 1
        index.append(bucket)
        binomials.append(_binomials(inside - edges[bucket]))
    return np.array(index, dtype=np.uint64), np.array(binomials)


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


LESS = (1.0, 1 / 4, 1 / 16, 1 / 64, 1 / 256, 0.0)
PENALTIES = (10.0, 1.0)
"""What there is to choose from: EMS with its share, less of it and none (EM), then EMS with spikes; in people."""

_STANDARD_ERRORS = 2
"""By how many paired standard errors spikes have to be better: with none, they come into smooth data now and then."""
_PATIENCE = 2
"""Less smoothing is tried until so many steps in a row were not better."""
_SPLITTING_SEED = 0  # the result is a function of the reports alone


def choose_model(
    wave: Wave, counts: NDArray[Any], share: float, start: Floats, rules: Callable[[Model], Stopping]
) -> Model:
    """Runs at the collector: the share of smoothing, or spikes, that best explain reports which were held out."""
    whole = np.rint(counts).astype(np.int64)  # with weights, the reports are worth no whole number of people
    half = np.random.default_rng(_SPLITTING_SEED).binomial(whole, 0.5)
    halves = (whole - half, half)
    held_out = np.concatenate(halves[::-1])

    def score(model: Model) -> Floats:
        return np.concatenate([np.log(wave.reports(run(wave, one, model, start, rules(model))[0])) for one in halves])

    smooth, best = _walk([Model(share * less) for less in LESS], score, held_out)
    if smooth.share == share:
        return smooth
    spiky = [(Model(share, penalty), score(Model(share, penalty))) for penalty in PENALTIES]
    spikes, found = max(spiky, key=lambda scored: float(held_out @ scored[1]))
    return spikes if _surely_better(held_out, found - best) else smooth


def _walk(models: list[Model], score: Callable[[Model], Floats], held_out: NDArray[np.int64]) -> tuple[Model, Floats]:
    """The best of models that come in order, looking no further once it has gone by."""
    best, scored, missed = models[0], score(models[0]), 0
    for model in models[1:]:
        found = score(model)
        if held_out @ (found - scored) > 0:
            best, scored, missed = model, found, 0
        else:
            missed += 1
        if missed == _PATIENCE:
            break
    return best, scored


def _surely_better(reports: NDArray[np.int64], gained: Floats) -> bool:
    """Whether what reports gain adds up to more than its standard errors, one report being one draw."""
    total = float(reports @ gained)
    spread = float(reports @ (gained - total / reports.sum()) ** 2)
    return total > _STANDARD_ERRORS * float(np.sqrt(spread))
