"""Simulated collections for Calibrate's experiments: draw support counts of OUE, estimate, post-process, score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import OUE
from veil.post import CalibratedEstimate, Prior
from veil_papers.common.asking import estimate, significance
from veil_papers.common.exhibits import Watch
from veil_papers.common.sweep import Scores, Sweep, across, measure
from veil_papers.datasets import Counts


class M:
    """The methods, by the names of the paper and ours."""

    RAW, ZERO, CALIBRATE = "OUE", "OUE-Zero", "OUE-Calibrate"
    THEN_ZERO, ZERO_WITH_OUE = "OUE-Calibrate, then zero", "OUE-Calibrate, zero where OUE-Zero is"
    LEARNED, PROBABILITY = "learned prior", "probability > 1/2"
    LIKELIHOOD, BEST = "maximum likelihood", "true counts as prior"
    ADDED = (LEARNED, PROBABILITY, LIKELIHOOD, BEST)  # what is not in the paper; drawn dashed


PARTS = ("precision", "recall", "F-score")

ALPHA = 0.05
SWEPT = 4.0  # the eps at which thresholds are swept
BINS = np.linspace(-4.0, 4.0, 25)  # bins for the noise, in standard deviations


@dataclass(frozen=True)
class Plan:
    """What to run. All methods of the paper in every run, what is added to them only in the first few."""

    grid: tuple[float, ...]
    runs: int
    added: int
    factors: tuple[float, ...]  # thresholds at SWEPT, as multiples of the significance threshold; elsewhere it alone
    likely: tuple[float, ...] = ()  # where the power law is also fitted by maximum likelihood, which takes long


@dataclass(frozen=True, eq=False)
class Collections:
    """All runs over one dataset; `unit` is what its people are: clicks, or sales."""

    name: str
    unit: str
    counts: Counts
    plan: Plan
    found: dict[str, Sweep]
    """By eps: the squared "error" of a value, numbers of the noise, and by factor precision to F-score ("recall 1")."""

    @property
    def errors(self) -> Sweep:
        """Squared errors by eps."""
        return self.found["error"]

    def threshold(self, epsilon: float) -> float:
        """The significance threshold (22), in people."""
        return significance(OUE(epsilon, len(self.counts.held)), self.counts.people, ALPHA)

    def variance(self, epsilon: float) -> float:
        """The predicted variance of the noise (14), in people squared."""
        return OUE(epsilon, len(self.counts.held)).noise.variance(0.0) * self.counts.people

    def noise(self, part: str, epsilon: float) -> NDArray[np.float64]:
        """A number of the noise, run by run."""
        sweep = self.found[f"noise {part}"]
        return sweep.runs[M.RAW][sweep.x.index(epsilon)]

    def density(self, epsilon: float) -> Sweep:
        """The density of the noise over the middles of its bins, all in standard deviations."""
        middles = ((BINS[1:] + BINS[:-1]) / 2).tolist()
        return across(self.found, {middle: f"noise density {i}" for i, middle in enumerate(middles)}, epsilon)

    def by_factor(self, part: str) -> Sweep:
        """Precision, recall or F-score at SWEPT, by multiples of the significance threshold."""
        return across(self.found, {factor: f"{part} {factor:g}" for factor in self.plan.factors}, SWEPT)

    def gain(self, name: str, epsilon: float) -> float:
        """Return the share of OUE-Zero's error that the method saves, over the runs that had it."""
        return 1 - float(self.errors.only((epsilon,)).over(name, M.ZERO)[0])


def scored(found: int, true: int, both: int) -> tuple[float, float, float]:
    """Precision, recall and F-score (6 to 8) of so many found, so many true, and so many of both.

    >>> scored(found=4, true=6, both=3)
    (0.75, 0.5, 0.6)
    """
    return (
        both / found if found else 1.0,
        both / true if true else 1.0,
        2 * both / (found + true) if found or true else 1.0,
    )


def collect(name: str, unit: str, counts: Counts, plan: Plan, seed: Sequence[int], watch: Watch) -> Collections:
    """Every run at every eps; a run's draws depend on its seed alone."""

    def trial(place: int, run: int) -> Scores:
        rng = np.random.default_rng([*seed, place, run])
        return _trial(counts, plan, plan.grid[place], rng, added=run < plan.added)

    return Collections(name, unit, counts, plan, measure(f"Figures 4 to 9: {name}", watch, plan.grid, plan.runs, trial))


def _trial(counts: Counts, plan: Plan, epsilon: float, rng: np.random.Generator, *, added: bool) -> Scores:
    oracle, held, people = OUE(epsilon, len(counts.held)), counts.held, counts.people
    drawn = estimate(oracle, held, rng)
    least, calibrated = drawn.threshold(ALPHA), drawn.post("calibrate", prior="power-law")
    shown = {M.RAW: drawn, M.ZERO: drawn.post("base-cut", alpha=ALPHA), M.CALIBRATE: calibrated}
    if added:
        known = Prior.of_frequencies(held / people)
        shown[M.LEARNED] = drawn.post("calibrate")
        shown[M.BEST] = drawn.post("calibrate", prior=known, noise="dependent")
        if epsilon in plan.likely:
            shown[M.LIKELIHOOD] = drawn.post("calibrate", prior="power-law", fit="likelihood")
    frequencies = {name: made.frequencies for name, made in shown.items()}
    frequencies[M.THEN_ZERO] = np.where(calibrated.frequencies < least, 0.0, calibrated.frequencies)
    frequencies[M.ZERO_WITH_OUE] = np.where(drawn.frequencies < least, 0.0, calibrated.frequencies)
    scores = {"error": {name: float(np.mean((made * people - held) ** 2)) for name, made in frequencies.items()}}
    for factor in plan.factors if epsilon == SWEPT else (1.0,):
        cut, true = factor * least, held / people > factor * least
        found = {name: made > cut for name, made in frequencies.items()}
        if added:
            assert isinstance(calibrated, CalibratedEstimate)
            found[M.PROBABILITY] = calibrated.exceeds(cut) > 0.5
        hits = {name: scored(int(of.sum()), int(true.sum()), int((of & true).sum())) for name, of in found.items()}
        scores |= {f"{part} {factor:g}": {name: of[i] for name, of in hits.items()} for i, part in enumerate(PARTS)}
    noise = _noise(drawn.counts - held, oracle.noise.variance(0.0) * people)
    return scores | {f"noise {part}": {M.RAW: number} for part, number in noise.items()}


def _noise(noise: NDArray[np.float64], variance: float) -> dict[str, float]:
    """Mean and variance in people, the density in standard deviations, and p-values of a Kolmogorov-Smirnov test.

    The test is against the normal of the predicted variance, and against a rival with a fifth more of it.
    """
    from scipy.stats import kstest

    scaled = noise / np.sqrt(variance)
    density = np.histogram(scaled, BINS)[0] / len(scaled) / np.diff(BINS)
    right, wrong = (float(kstest(scaled / stretch, "norm").pvalue) for stretch in (1.0, np.sqrt(1.2)))
    moments = {"mean": float(noise.mean()), "variance": float(noise.var(ddof=1)), "p": right, "rival p": wrong}
    return moments | {f"density {i}": float(of) for i, of in enumerate(density)}
