"""Simulated collections for Calibrate's experiments: draw support counts, estimate, post-process, score.

Counts of OUE are drawn as binomials, Bin(n_v, p) + Bin(n - n_v, q) a value. Bits are flipped independently, so this is
exactly how counts over people are distributed. Estimates and post-processing are the shipped ones. Simulation only:
numpy's generator protects nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.datasets import Counts
from veil.mechanisms import OUE
from veil.post import Calibrated, Prior
from veil.results.estimate import Estimate
from veil.tally import Tally
from veil_papers.common.asking import drawn_tally
from veil_papers.common.exhibits import Advance

__all__ = [
    "ALPHA",
    "BEST",
    "BINS",
    "CALIBRATE",
    "LEARNED",
    "LIKELIHOOD",
    "PROBABILITY",
    "RAW",
    "SWEPT",
    "THEN_ZERO",
    "ZERO",
    "ZERO_WITH_OUE",
    "Collections",
    "Hits",
    "Noise",
    "Plan",
    "Trial",
    "collect",
]

Floats = NDArray[np.float64]

RAW, ZERO, CALIBRATE = "OUE", "OUE-Zero", "OUE-Calibrate"
THEN_ZERO, ZERO_WITH_OUE = "OUE-Calibrate, then zero", "OUE-Calibrate, zero where OUE-Zero is"
LEARNED, PROBABILITY = "learned prior", "probability > 1/2"
LIKELIHOOD, BEST = "maximum likelihood", "true counts as prior"

ALPHA = 0.05
SWEPT = 4.0
"""The eps at which thresholds are swept."""

BINS = np.linspace(-4.0, 4.0, 25)
"""Bins for the noise, in standard deviations."""


@dataclass(frozen=True)
class Plan:
    """What to run. All methods of the paper in every run, what is added to them only in the first few."""

    grid: tuple[float, ...]
    runs: int
    added: int
    factors: tuple[float, ...]
    """Thresholds at SWEPT, as multiples of the significance threshold; elsewhere it alone."""
    likely: tuple[float, ...] = ()
    """Where the power law is also fitted by maximum likelihood, which takes long."""


@dataclass(frozen=True)
class Hits:
    """How many values are found above a threshold, how many truly are, and how many both; (6) to (8).

    >>> hits = Hits(found=4, true=6, both=3)
    >>> hits.precision, hits.recall, hits.f_score
    (0.75, 0.5, 0.6)
    """

    found: int
    true: int
    both: int

    @property
    def precision(self) -> float:
        return self.both / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.both / self.true if self.true else 1.0

    @property
    def f_score(self) -> float:
        return 2 * self.both / (self.found + self.true) if self.found or self.true else 1.0


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of one collection over all values: mean and variance in people, density in standard deviations."""

    mean: float
    variance: float
    density: Floats
    p_value: float
    """Of the Kolmogorov-Smirnov test against the normal of the predicted variance."""
    rival: float
    """The same against a normal with a fifth more variance, which should be rejected."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One simulated collection: squared error a value and what is found, by method."""

    errors: dict[str, float]
    hits: dict[str, tuple[Hits, ...]]
    noise: Noise


@dataclass(frozen=True, eq=False)
class Collections:
    """All runs over one dataset; `unit` is what its people are: clicks, or sales."""

    name: str
    unit: str
    counts: Counts
    plan: Plan
    trials: dict[float, tuple[Trial, ...]]

    def threshold(self, epsilon: float) -> float:
        """The significance threshold (22), in people."""
        return _empty(_oracle(self.counts, epsilon), self.counts).threshold(ALPHA) * self.counts.people

    def variance(self, epsilon: float) -> float:
        """The predicted variance of the noise (14), in people squared."""
        return _oracle(self.counts, epsilon).noise.variance(0.0) * self.counts.people

    def errors(self, name: str, epsilon: float) -> list[float]:
        """Squared errors of the runs that had this method."""
        return [trial.errors[name] for trial in self.trials[epsilon] if name in trial.errors]

    def hits(self, name: str, epsilon: float, factor: float = 1.0) -> list[Hits]:
        """What those runs found above the threshold of this factor."""
        place = _factors(self.plan, epsilon).index(factor)
        return [trial.hits[name][place] for trial in self.trials[epsilon] if name in trial.hits]

    def gain(self, name: str, epsilon: float, other: str = ZERO) -> float:
        """The share of the other's error that the method saves, over the runs that had it."""
        return self.saving(name, epsilon, other)[0]

    def saving(self, name: str, epsilon: float, other: str = ZERO) -> tuple[float, float]:
        """The gain and its standard error, from the differences run by run."""
        own = np.array(self.errors(name, epsilon))
        theirs = np.array(self.errors(other, epsilon)[: len(own)])
        ratio = float(own.sum() / theirs.sum())
        scatter = float(np.std(own - ratio * theirs, ddof=min(1, len(own) - 1)) / theirs.mean())
        return 1 - ratio, scatter / float(np.sqrt(len(own)))

    def lead(self, name: str, other: str, epsilon: float, factor: float = 1.0) -> tuple[float, float]:
        """By how much its F-score is higher than the other's in the same runs: mean and standard error."""
        pairs = zip(self.hits(name, epsilon, factor), self.hits(other, epsilon, factor), strict=False)
        ahead = [mine.f_score - theirs.f_score for mine, theirs in pairs]
        return float(np.mean(ahead)), float(np.std(ahead, ddof=min(1, len(ahead) - 1)) / np.sqrt(len(ahead)))


def collect(name: str, unit: str, counts: Counts, plan: Plan, seed: tuple[int, ...], advance: Advance) -> Collections:
    """Every run at every eps; a run's draws depend on its seed alone."""
    trials: dict[float, tuple[Trial, ...]] = {}
    for place, epsilon in enumerate(plan.grid):
        made = []
        for run in range(plan.runs):
            rng = np.random.default_rng([*seed, place, run])
            made.append(_trial(counts, plan, epsilon, rng, added=run < plan.added))
            advance(1)
        trials[epsilon] = tuple(made)
    return Collections(name, unit, counts, plan, trials)


def _oracle(counts: Counts, epsilon: float) -> OUE:
    return OUE(epsilon, len(counts.held))


def _factors(plan: Plan, epsilon: float) -> tuple[float, ...]:
    return plan.factors if epsilon == SWEPT else (1.0,)


def _empty(oracle: OUE, counts: Counts) -> Estimate:
    """An estimate of as many people, for what does not depend on what they hold."""
    people = counts.people
    return oracle.estimate(Tally(oracle.digest, np.zeros(len(counts.held), np.int64), people, people, people))


def _trial(counts: Counts, plan: Plan, epsilon: float, rng: np.random.Generator, *, added: bool) -> Trial:
    oracle, held, people = _oracle(counts, epsilon), counts.held, counts.people
    estimate = oracle.estimate(drawn_tally(oracle, held, rng))
    least = estimate.threshold(ALPHA)
    calibrated = estimate.post("calibrate", prior="power-law")
    shown = {RAW: estimate, ZERO: estimate.post("base-cut", alpha=ALPHA), CALIBRATE: calibrated}
    if added:
        known = Prior.of_frequencies(held / people)
        shown[LEARNED] = estimate.post("calibrate")
        shown[BEST] = estimate.post("calibrate", prior=known, noise="dependent")
        if epsilon in plan.likely:
            shown[LIKELIHOOD] = estimate.post("calibrate", prior="power-law", fit="likelihood")
    frequencies = {name: made.frequencies for name, made in shown.items()}
    frequencies[THEN_ZERO] = np.where(calibrated.frequencies < least, 0.0, calibrated.frequencies)
    frequencies[ZERO_WITH_OUE] = np.where(estimate.frequencies < least, 0.0, calibrated.frequencies)
    errors = {name: float(np.mean((made * people - held) ** 2)) for name, made in frequencies.items()}
    cuts = [factor * least for factor in _factors(plan, epsilon)]
    true = [held / people > cut for cut in cuts]
    found = {name: [made > cut for cut in cuts] for name, made in frequencies.items()}
    if added:
        assert isinstance(calibrated, Calibrated)
        found[PROBABILITY] = [calibrated.exceeds(cut) > 0.5 for cut in cuts]
    hits = {name: tuple(map(_hits, made, true)) for name, made in found.items()}
    return Trial(errors, hits, _noise(estimate.counts - held, oracle.noise.variance(0.0) * people))


def _hits(found: NDArray[np.bool_], true: NDArray[np.bool_]) -> Hits:
    return Hits(int(found.sum()), int(true.sum()), int((found & true).sum()))


def _noise(noise: Floats, variance: float) -> Noise:
    from scipy.stats import kstest

    scaled = noise / np.sqrt(variance)
    density = np.histogram(scaled, BINS)[0] / len(scaled) / np.diff(BINS)
    right, wrong = (float(kstest(scaled / stretch, "norm").pvalue) for stretch in (1.0, np.sqrt(1.2)))
    return Noise(float(noise.mean()), float(noise.var(ddof=1)), density, right, wrong)
