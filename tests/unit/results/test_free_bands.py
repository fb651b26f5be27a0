"""Bands without assumptions: what they contain, how they nest, how they are written; and the test of roughness."""

import dataclasses

import numpy as np
import pytest

from veil import Integers, Interval, SquareWave
from veil.entropy import SeededForExperiments
from veil.errors import InputError, ParameterError
from veil.mechanisms.numbers.reconstruction import Model, Wave
from veil.numeric import FreeBands, free_bands, reconstruct, roughness
from veil.numeric.roughness import round_steps
from veil.reports.tally import merge
from veil.results import load, save

ROUND = np.arange(50_000, 250_001, 25_000)


def heaped(people: int, seed: int = 5) -> np.ndarray:
    """Limits between 0 and 500,000, three in four at multiples of 25,000."""
    rng = np.random.default_rng(seed)
    values = np.minimum(rng.lognormal(np.log(120_000), 0.6, people), 499_999)
    return np.where(rng.random(people) < 0.75, np.round(values / 25_000) * 25_000, values)


@pytest.fixture(scope="module")
def limits():
    people = heaped(60_000)
    wave = SquareWave(4.0, Interval(0, 500_000), buckets=512)
    tally = wave.tally(wave.randomize(people, SeededForExperiments(3)))
    found = wave.estimate(tally)
    return people, wave, tally, dataclasses.replace(found, bands=free_bands(wave, tally, found))


def test_free_bands_cover_heaps_where_smooth_bands_do_not(limits):
    people, wave, tally, found = limits
    low, high = found.bands.cdf(ROUND)
    below, truth = (np.searchsorted(np.sort(people), ROUND, side=side) / len(people) for side in ("left", "right"))
    assert ((low <= below) & (truth <= high)).all()
    assert (high - low).mean() < 0.2
    # the rival: how far smooth fits scatter among people who are as smooth as the first fit
    chances = Wave.of(wave).reports(found.masses)
    drawn = np.random.default_rng(1).multinomial(tally.people, chances / chances.sum(), 15)
    again = [dataclasses.replace(found, masses=reconstruct(wave, counts)[0]).cdf(ROUND) for counts in drawn]
    assert (np.abs(found.cdf(ROUND) - truth) <= 1.96 * np.std(again, axis=0)).mean() < 0.5
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        least, most = found.bands.quantile(q)
        assert least <= np.quantile(people, q, method="inverted_cdf") <= most
    least, most = found.bands.mean()
    assert least <= people.mean() <= most
    least, most = found.bands.std()
    assert 0 < least <= people.std() <= most
    least, most = found.bands.range(100_000, 200_000)
    assert least <= ((people >= 100_000) & (people <= 200_000)).mean() <= most


def test_cumulative_bands_rise_and_levels_nest(limits):
    _, _, _, found = limits
    points = np.linspace(0, 500_000, 90)
    low, high = found.bands.cdf(points)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    for statistic in (
        lambda level: found.bands.cdf(120_000, level),
        lambda level: found.bands.range(120_000, 200_000, level),
        lambda level: found.bands.mean(level),
        lambda level: found.bands.quantile(0.3, level),
    ):
        (least, most), (wider_least, wider_most) = statistic(0.9), statistic(0.999)
        assert wider_least <= least < most <= wider_most
    one_by_one = [found.bands.cdf(float(point)) for point in points[::10]]
    assert (low[::10] <= [least + 1e-9 for least, _ in one_by_one]).all()
    assert (high[::10] >= [most - 1e-9 for _, most in one_by_one]).all()


def test_ranges_of_few_and_many_buckets_are_covered(limits):
    people, _, _, found = limits
    truth = np.histogram(people, found.edges)[0] / len(people)
    starts = np.arange(0, 512, 32)
    low, high = found.bands.runs(starts)
    within = np.add.reduceat(truth, starts)
    assert ((low <= within) & (within <= high)).all()
    assert low.max() > 0.05
    low, high = found.bands.histogram()
    assert ((low <= truth) & (truth <= high)).all()
    table = found.table()
    assert {"low", "high", "cumulative_low", "cumulative_high"} <= set(table.column_names)


def test_free_bands_are_saved_with_their_distribution(limits, tmp_path):
    *_, found = limits
    save(found, tmp_path / "limits.json")
    read = load(tmp_path / "limits.json").bands
    assert isinstance(read, FreeBands)
    assert read.chance == found.bands.chance
    assert read.cdf(100_000) == found.bands.cdf(100_000)
    assert read.rests_on == found.bands.rests_on


def test_weights_widen_the_bands_by_hoeffdings_inequality(limits):
    people, wave, tally, found = limits
    reports = wave.randomize(people, SeededForExperiments(3))
    weighted = wave.tally(reports, weights=np.full(len(people), 3))
    bands = free_bands(wave, weighted, found)
    assert bands.worth == pytest.approx(len(people))
    (low, high), (exact_low, exact_high) = bands.cdf(130_000), found.bands.cdf(130_000)
    assert low < exact_low < exact_high < high
    with pytest.raises(InputError, match="not negative"):
        free_bands(wave, wave.tally(reports, weights=np.full(len(people), -1)), found)
    with pytest.raises(ParameterError, match="level"):
        found.bands.cdf(1.0, level=1.0)
    twice = merge([tally, tally])
    assert free_bands(wave, twice, found).worth is None


def test_each_integer_is_a_whole_bucket():
    rng = np.random.default_rng(2)
    ages = np.clip(np.round(rng.normal(45, 15, 40_000)), 18, 99).astype(np.int64)
    wave = SquareWave(2.0, Integers(18, 99))
    tally = wave.tally(wave.randomize(ages, SeededForExperiments(4)))
    bands = free_bands(wave, tally, wave.estimate(tally))
    for age in (20, 30, 45, 60):
        low, high = bands.cdf(age)
        assert low <= (ages <= age).mean() <= high
        assert bands.cdf(age + 0.5) == (low, high)
        low, high = bands.range(age, age + 9)
        assert low <= ((ages >= age) & (ages <= age + 9)).mean() <= high
    low, high = bands.quantile(0.5)
    assert low <= np.median(ages) <= high
    assert low.is_integer()
    assert high.is_integer()
    low, high = bands.std()
    assert low <= ages.std() <= high


# -- the test of roughness -------------------------------------------------------------------------------------------


def _roughness(values, domain, epsilon, seed):
    wave = SquareWave(epsilon, domain, buckets=256)
    counts = wave.tally(wave.randomize(values, SeededForExperiments(seed))).counts.astype(np.float64)
    masses, _, model = reconstruct(wave, counts)
    return roughness(wave, counts, masses, model, surveys=19, seed=seed)


def test_roughness_finds_heaps_and_accepts_smooth_data():
    rng = np.random.default_rng(11)
    smooth = rng.beta(5, 2, 50_000) * 500_000
    p_values = [_roughness(smooth, Interval(0, 500_000), 2.0, seed).p for seed in range(6)]
    assert sum(p <= 0.1 for p in p_values) <= 2
    assert np.mean(p_values) > 0.25
    for seed in range(3):
        found = _roughness(heaped(50_000), Interval(0, 500_000), 2.0, seed)
        assert found.rough()
        assert found.step in (None, 25_000, 50_000, 12_500)


def test_roughness_finds_spikes_at_any_place():
    rng = np.random.default_rng(12)
    values = np.where(rng.random(50_000) < 0.2, 0.3123, rng.beta(2, 3, 50_000))
    assert _roughness(values, Interval(0, 1), 2.0, 1).rough()


def test_roughness_reuses_simulated_surveys():
    wave = SquareWave(1.0, Interval(0, 1), buckets=32)
    counts = wave.tally(wave.randomize(np.linspace(0, 1, 2_000), SeededForExperiments(1))).counts.astype(np.float64)
    masses, _, model = reconstruct(wave, counts)
    found = roughness(wave, counts, masses, model, simulated=[(counts, masses)] * 3)
    assert found.p in (0.25, 1.0)
    with pytest.raises(ParameterError, match="at least one"):
        roughness(wave, counts, masses, Model(0.0), surveys=0)


def test_round_steps_of_times_are_minutes_to_weeks():
    import datetime as dt

    day = Interval(dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2))
    assert round_steps(day) == [600.0, 900.0, 1800.0, 3600.0, 10_800.0]
    assert round_steps(Integers(0, 1)) == []
