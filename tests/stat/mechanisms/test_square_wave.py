"""Square Wave on samples: reports follow their law, EMS beats its rivals on smooth data, bands cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.significance import counts_fit

from veil import Interval, SquareWave, simulate
from veil.entropy import SeededForExperiments
from veil.mechanisms.numbers.reconstruction import Wave, reconstruct
from veil.metrics import wasserstein
from veil.numeric import Binning, Hierarchy, WaveDistribution, wave_bands

UNIT = Interval(0, 1)


def beta(people: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(5, 2, people)


@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_reports_follow_the_operator(ratio: float) -> None:
    """A million reports of the device against M x; a wave of another width, or another eps, is rejected."""
    wave = SquareWave(1.0, UNIT, buckets=64, ratio=ratio)
    values = beta(1_000_000)
    masses = np.histogram(values, 64, (0, 1))[0] / len(values)
    counts = dict(enumerate(wave.tally(wave.randomize(values, SeededForExperiments(1))).counts.tolist()))

    def expected(other: SquareWave) -> dict[int, float]:
        chances = Wave.of(other).reports(masses) * len(values)
        return dict(enumerate(chances[: len(counts)].tolist()))

    assert counts_fit(counts, expected(wave))
    assert not counts_fit(counts, expected(SquareWave(1.1, UNIT, 64, half_width=wave.half_width, ramp=wave.ramp)))
    assert not counts_fit(counts, expected(SquareWave(1.0, UNIT, 64, b=wave.b * 1.1, ratio=ratio)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_ems_is_best_on_a_smooth_distribution(epsilon: float) -> None:
    """Five collections of 50,000 people each: nearer to the truth than plain EM, a hierarchy and bins."""
    errors: dict[str, list[float]] = {}
    for seed in range(5):
        values = beta(50_000, seed)
        truth = np.histogram(values, 256, (0, 1))[0] / len(values)
        wave = SquareWave(epsilon, UNIT, buckets=256)
        tally = wave.tally(wave.randomize(values, SeededForExperiments(seed)))
        found = {
            "EMS": wave.estimate(tally),
            "EM": wave.estimate(tally, smoothing=False),
            "Hierarchy": simulate(Hierarchy(epsilon, UNIT, 256), values, seed=seed),
            "16 bins": simulate(Binning(epsilon, UNIT, 16), values, seed=seed),
        }
        for name, distribution in found.items():
            errors.setdefault(name, []).append(wasserstein(distribution.masses, truth, length=1.0))
    means = {name: float(np.mean(each)) for name, each in errors.items()}
    assert min(means, key=lambda name: means[name]) == "EMS"


def test_bands_cover_and_plain_percentiles_do_not() -> None:
    """Two humps, which EMS smooths: 95 % bands of the cdf cover in most places, percentiles of the replicates do not.

    The setting of the table in docs/numeric.md, where 0.91 stands; percentiles, off by the bias twice, cover 0.2.
    """
    points, people = np.linspace(0.05, 0.95, 19), 50_000
    wave = SquareWave(1.0, UNIT, buckets=256)
    covered, by_percentiles = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        humps = np.where(rng.random(people) < 0.5, rng.normal(0.3, 0.05, people), rng.normal(0.75, 0.08, people))
        values = np.clip(humps, 0, 1)
        truth = (values[:, None] <= points).mean(axis=0)
        tally = wave.tally(wave.randomize(values, SeededForExperiments(seed)))
        found = wave.estimate(tally)
        low, high = wave_bands(wave, tally, found, replicates=30, seed=seed).cdf(points)
        covered.append(((low <= truth) & (truth <= high)).mean())
        law = Wave.of(wave).reports(found.masses)
        again = [reconstruct(wave, counts)[0] for counts in rng.multinomial(people, law / law.sum(), 30)]
        drawn = np.quantile([replace(found, masses=one).cdf(points) for one in again], [0.025, 0.975], axis=0)
        by_percentiles.append(((drawn[0] <= truth) & (truth <= drawn[1])).mean())
    assert np.mean(covered) > 0.85
    assert np.mean(by_percentiles) < 0.5


def test_shown_bands_cover_at_round_numbers_and_bands_of_scatter_do_not() -> None:
    """Six in ten people round to multiples of 1/20, and "auto" lets go of smoothing: 95 % bands of the cdf there.

    Taking the chosen model as given, and the error at a place for what it is right there, covers 0.5.
    """
    points, people = np.arange(2, 18, 2) / 20, 50_000
    study = WaveDistribution(SquareWave(4.0, UNIT, buckets=128), smoothing="auto", bands=20)
    covered, by_scatter = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        values = rng.beta(2, 3, people)
        values = np.where(rng.random(people) < 0.6, np.round(values * 20) / 20, values)
        truth = (values[:, None] <= points).mean(axis=0)
        tally = study.survey.tally(study.survey.randomize(values, SeededForExperiments(seed)))
        found = study.read(tally)
        assert found.bands is not None
        assert found.lineage[1:] != ("auto", "EMS(share 0.0625)")
        low, high = found.bands.cdf(points)
        covered.append(((low <= truth) & (truth <= high)).mean())
        given = replace(found, lineage=(found.lineage[0], found.lineage[-1]))
        low, high = replace(wave_bands(study.mechanism, tally.part(0), given, 20), nearby=0).cdf(points)
        by_scatter.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(covered) >= 0.92
    assert np.mean(by_scatter) < 0.75
