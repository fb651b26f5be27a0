"""What a distribution answers, and what it refuses."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil import Integers, Interval, SquareWave
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, InputError, ParameterError
from veil.numeric import SmoothBands, WaveDistribution, wave_bands
from veil.results.distribution import Distribution


def made(domain: Any, masses: list[float], cells: list[int] | None = None, people: int = 1000) -> Distribution:
    edges = np.arange(len(masses) + 1) * domain.size // len(masses) if cells is None else np.array(cells)
    return Distribution(domain, edges, np.array(masses, dtype=float), n=people, population=people)


DOLLARS = made(Interval(0, 100_000, cells=1000), [0.5, 0.0, 0.25, 0.25])
AGES = made(Integers(18, 23), [0.2, 0.3, 0.5])


def test_numbers_are_in_the_units_of_the_domain() -> None:
    assert DOLLARS.edges.tolist() == [0, 25_000, 50_000, 75_000, 100_000]
    assert DOLLARS.cdf(12_500) == 0.25
    assert DOLLARS.cdf([0, 25_000, 50_000, 1e9]).tolist() == [0, 0.5, 0.5, 1]
    assert DOLLARS.range(25_000, 62_500) == 0.125
    assert DOLLARS.quantile(0.25) == 12_500
    assert DOLLARS.quantile([0.0, 0.5, 1.0]).tolist() == [0, 25_000, 100_000]
    assert DOLLARS.mean() == 0.5 * 12_500 + 0.25 * 62_500 + 0.25 * 87_500
    second = 0.5 * 25_000**2 / 3 + 0.25 * (75_000**3 - 50_000**3) / 75_000 + 0.25 * (100_000**3 - 75_000**3) / 75_000
    assert DOLLARS.variance() == pytest.approx(second - DOLLARS.mean() ** 2)
    assert DOLLARS.std() == pytest.approx(DOLLARS.variance() ** 0.5)


def test_each_integer_is_a_whole_bucket() -> None:
    # 18 and 19 share 0.2, 20 and 21 share 0.3, 22 and 23 share 0.5
    assert AGES.cdf([17, 18, 19, 19.5, 23]).tolist() == pytest.approx([0, 0.1, 0.2, 0.2, 1])
    assert AGES.range(18, 20) == pytest.approx(0.35)
    assert AGES.range(20, 20) == pytest.approx(0.15)
    assert AGES.quantile([0.0, 0.1, 0.2, 0.3, 1.0]).tolist() == [18, 18, 19, 20, 23]
    people = np.repeat([18, 19, 20, 21, 22, 23], [10, 10, 15, 15, 25, 25])
    assert AGES.mean() == pytest.approx(people.mean())
    assert AGES.variance() == pytest.approx(people.var())


def test_quantiles_and_means_of_times_are_times() -> None:
    day = made(Interval(dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 2), cells=24), [0.0, 1.0])
    assert day.mean() == dt.datetime(2026, 3, 1, 18)
    assert day.quantile(0.5) == dt.datetime(2026, 3, 1, 18)
    assert day.quantile([0.5])[0] == dt.datetime(2026, 3, 1, 18)
    assert day.cdf(dt.datetime(2026, 3, 1, 15)) == 0.25
    assert day.range(dt.datetime(2026, 3, 1, 12), dt.datetime(2026, 3, 1, 15)) == 0.25
    assert day.values == [dt.datetime(2026, 3, 1, 6), dt.datetime(2026, 3, 1, 18)]
    assert day.std() == pytest.approx(12 * 3600 / 12**0.5)
    assert day.domain.encode(day.sample(5)).min() >= 12
    asked = SquareWave(2.0, Interval(dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 2)), buckets=24)
    tally = asked.tally(asked.randomize([dt.datetime(2026, 3, 1, 9)] * 3000, SeededForExperiments(1)))
    bands = wave_bands(asked, tally, asked.estimate(tally), replicates=10)
    low, high = bands.quantile(0.5)
    assert dt.datetime(2026, 3, 1) <= low < high <= dt.datetime(2026, 3, 2)
    assert [type(end) for end in (*bands.mean(), *bands.quantile([0.1, 0.9])[0])] == [dt.datetime] * 4
    assert bands.std()[0] < bands.std()[1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(lambda m: sum(m) > 0.01), st.floats(0, 1))
def test_quantile_and_cdf_are_inverse(masses: list[float], level: float) -> None:
    total = sum(masses)
    found = made(Interval(-3, 5, cells=1 << 20), [mass / total for mass in masses])
    assert found.cdf(found.quantile(level)) == pytest.approx(level, abs=1e-9)


def test_samples_are_distributed_like_it() -> None:
    for found in (DOLLARS, AGES):
        drawn = found.sample(200_000, seed=1)
        assert abs(drawn.mean() - found.mean()) < 5 * found.std() / 200_000**0.5
        assert abs(drawn.var() / found.variance() - 1) < 0.02
        found.domain.encode(drawn)
    assert set(AGES.sample(1000).tolist()) == {18, 19, 20, 21, 22, 23}


def test_an_improper_histogram_answers_ranges_only() -> None:
    rough = made(Interval(0, 1), [0.7, -0.1, 0.4])
    assert not rough.proper
    assert rough.range(0, 1) == pytest.approx(1.0)
    assert rough.mean() == pytest.approx(0.7 / 6 - 0.1 / 2 + 0.4 * 5 / 6)
    for call in (lambda: rough.quantile(0.5), lambda: rough.sample(3)):
        with pytest.raises(InputError, match="negative"):
            call()


def test_bad_questions_are_refused() -> None:
    for level in (-0.1, 1.1, float("nan"), [0.5, 2], "x", [], [[0.1, 0.2]], True):
        with pytest.raises(InputError):
            DOLLARS.quantile(level)
    with pytest.raises(InputError):
        DOLLARS.range(5, 3)
    for x in (float("nan"), float("inf"), "many"):
        with pytest.raises(DomainError):
            DOLLARS.cdf(x)
    for x in (float("nan"), float("inf"), "20", True, dt.date(2026, 1, 1)):
        with pytest.raises(InputError):
            AGES.cdf(x)
    for ends in (("a", "b"), ([1, 2], 3)):
        for found in (AGES, DOLLARS):
            with pytest.raises(InputError):
                found.range(*ends)
    for seed in (-1, "x", 1.5):
        with pytest.raises(ParameterError):
            DOLLARS.sample(3, seed=seed)
    for n in (0, -3, 2.5, True):
        with pytest.raises(ParameterError):
            DOLLARS.sample(n)
    wave = SquareWave(1.0, Interval(0, 1))
    with pytest.raises(InputError, match="not reconstructed"):
        wave_bands(wave, wave.tally(wave.randomize([0.5], SeededForExperiments(1))), DOLLARS)


def test_tables_and_pictures() -> None:
    table = DOLLARS.table()
    assert table.column_names == ["from", "to", "frequency", "count", "cumulative"]
    assert table["count"].to_pylist() == [500, 0, 250, 250]
    assert DOLLARS.to_pandas()["cumulative"].tolist() == [0.5, 0.5, 0.75, 1.0]
    ax = DOLLARS.plot(truth=[0.25] * 4)
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"truth", "estimate"}
    with pytest.raises(InputError, match="4"):
        DOLLARS.plot(truth=[1.0])


def test_bands_are_repeatable_and_use_the_same_reconstruction() -> None:
    wave = SquareWave(2.0, Interval(0, 1), buckets=16)
    tally = wave.tally(wave.randomize(np.linspace(0.1, 0.6, 5000), SeededForExperiments(2)))
    found = wave.estimate(tally)
    bands = wave_bands(wave, tally, found, replicates=12, seed=3)
    assert bands.errors.shape == (12, 17)
    others = [wave_bands(wave, tally, found, replicates=12, seed=seed).mean() for seed in (3, 4)]
    assert bands.mean() == others[0] != others[1]
    low, high = bands.histogram()
    assert low.shape == high.shape == (16,)
    assert ((low <= found.masses) & (found.masses <= high)).all()
    wide, narrow = bands.quantile(0.5, level=0.99), bands.quantile(0.5, level=0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    banded = replace(found, bands=bands)
    assert "95 % band: 12 simulated surveys" in {text.get_text() for text in banded.plot().get_legend().get_texts()}
    assert repr(bands).startswith("SmoothBands(of 12 simulated surveys")
    assert banded.table().column_names[4:] == ["low", "high", "cumulative", "cumulative_low", "cumulative_high"]
    starts, below, above = bands.grouped(most=4)
    assert starts.tolist() == [0, 4, 8, 12]
    assert ((below <= np.add.reduceat(found.masses, starts)) & (np.add.reduceat(found.masses, starts) <= above)).all()
    for call in (lambda: wave_bands(wave, tally, found, 3), lambda: bands.mean(level=1.5), lambda: bands.quantile(2)):
        with pytest.raises(InputError):
            call()


def test_bands_stay_within_possible_values() -> None:
    wave = SquareWave(1.0, Integers(18, 99))
    tally = wave.tally(wave.randomize([20] * 150 + [95] * 150, SeededForExperiments(1)))
    bands = wave_bands(wave, tally, wave.estimate(tally), replicates=20)
    for low, high in (bands.quantile(0.95), bands.quantile(0.02), bands.mean(), bands.range(18, 19)):
        assert low < high
    assert bands.quantile(0.95)[1] <= 99
    assert bands.quantile(0.02)[0] >= 18
    assert bands.variance()[0] >= 0
    assert bands.cdf(60)[1] <= 1


def test_the_errors_of_smooth_bands_by_hand() -> None:
    """Four buckets, two surveys that are 0.1 too low or too high at one place; the largest error nearby counts."""
    cells, masses = np.arange(5), np.array([0.1, 0.4, 0.4, 0.1])
    errors = np.array([[0, 0, 0.1, 0, 0], [0, 0, -0.1, 0, 0]], dtype=float)
    bands = SmoothBands(Interval(0, 4, cells=4), cells, masses, cells, errors)
    reach = 1.959964 * 0.1
    assert bands.cdf(2) == pytest.approx((0.5 - reach, 0.5 + reach))
    assert bands.cdf(1) == pytest.approx((0.1, 0.1))
    assert bands.cdf(1.5) == pytest.approx((0.3 - reach / 2, 0.3 + reach / 2))
    assert bands.range(0, 2) == pytest.approx(bands.cdf(2))
    assert bands.range(1, 3) == pytest.approx((0.8, 0.8))
    low, high = bands.runs(np.array([0, 2]))
    assert (low[0], high[0]) == pytest.approx(bands.cdf(2))
    assert bands.mean() == pytest.approx((2 - reach, 2 + reach))
    assert "2 simulated surveys of people distributed as found" in bands.rests_on
    nearby = replace(bands, nearby=1)
    assert nearby.cdf(1) == pytest.approx((0.0, 0.1 + reach))
    assert nearby.cdf(2) == bands.cdf(2)
    assert nearby.mean() == bands.mean()
    assert nearby.range(0, 2) == pytest.approx(nearby.cdf(2))
    assert "25 % of the range" in nearby.rests_on


def test_the_interval_of_a_quantile_inverts_that_of_the_cdf() -> None:
    cells = np.arange(11)
    errors = np.zeros((1, 11))
    errors[0, 1:10] = 0.1 / 1.959964
    bands = SmoothBands(Interval(0, 1, cells=10), cells, np.full(10, 0.1), cells, errors)
    assert bands.quantile(0.5) == pytest.approx((0.4, 0.6))
    assert bands.quantile(0.05) == pytest.approx((0.025, 0.15))
    assert bands.quantile(0.95) == pytest.approx((0.85, 0.975))
    low, high = bands.quantile([0.3, 0.7])
    assert low == pytest.approx([0.2, 0.6])
    assert high == pytest.approx([0.4, 0.8])
    for q, (low, high) in ((q, bands.quantile(q)) for q in (0.05, 0.3, 0.5, 0.95)):
        inside = [q for x in np.linspace(low, high, 7) if bands.cdf(x)[0] - 1e-9 <= q <= bands.cdf(x)[1] + 1e-9]
        assert len(inside) == 7
    ages = SmoothBands(Integers(1, 10), cells, np.full(10, 0.1), cells, errors)
    assert ages.quantile(0.45) == (4, 6)  # up to 4 there may be 0.5, up to 3 not; up to 5 there may be 0.4, up to 6 not


def test_bands_are_free_if_the_reports_contradict_a_smooth_distribution() -> None:
    wave = SquareWave(4.0, Interval(0, 100), buckets=64)
    people = np.random.default_rng(1).beta(5, 2, 30_000) * 100
    study = WaveDistribution(wave, bands=10)
    shown = {}
    for name, values in (("smooth", people), ("rounded", people.round(-1))):
        tally = study.survey.tally(study.survey.randomize(values, SeededForExperiments(1)))
        found = study.read(tally)
        shown[name] = found.bands.kind
        assert found.bands.rests_on in found.remarks()
        assert found.facts()["rests_on"] == found.bands.rests_on
        assert replace(study, assume="nothing").read(tally).bands.kind == "free"
        assert replace(study, bands=0).read(tally).bands is None
    assert shown == {"smooth": "smooth", "rounded": "free"}
    assert "contradict" in found.remarks()[-1]
    assert Distribution.from_json(found.to_json()) == found
    with pytest.raises(ParameterError, match="nothing"):
        WaveDistribution(wave, assume="all")
