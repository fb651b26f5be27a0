"""Intervals of hierarchies: what they answer, what they refuse, how they travel; by default, and fast."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from veil import Integers, Interval
from veil.entropy import SeededForExperiments
from veil.errors import InputError, ParameterError
from veil.numeric import Binning, HaarHierarchy, Hierarchy, LevelBands
from veil.results import load, save
from veil.study import TallyCollection

VALUES = np.concatenate([np.full(6_000, 2.0), np.linspace(0, 10, 6_000), np.full(8_000, 7.3)])
STUDIES: list[Any] = [
    Hierarchy(2.0, Interval(0, 10), buckets=40),
    Hierarchy(2.0, Interval(0, 10), buckets=40, method="admm", weighted=True),
    Hierarchy(2.0, Interval(0, 10), buckets=40, method="consistent"),
    HaarHierarchy(2.0, Interval(0, 10), buckets=40),
    Binning(2.0, Interval(0, 10), bins=8),
]


def tallied(study: Any, values: Any = VALUES, seed: int = 1) -> Any:
    return study.survey.tally(study.survey.randomize(values, SeededForExperiments(seed)))


def banded(study: Any, values: Any = VALUES) -> tuple[Any, LevelBands]:
    found = study.read(tallied(study, values))
    assert isinstance(found.bands, LevelBands)
    return found, found.bands


@pytest.mark.parametrize("study", STUDIES)
def test_every_answer_has_an_interval_around_what_is_shown(study: Any) -> None:
    found, bands = banded(study)
    points = np.linspace(0, 10, 33)
    low, high = bands.cdf(points)
    assert ((low <= found.cdf(points)) & (found.cdf(points) <= high)).all()
    assert ((low >= np.minimum(0, found.cdf(points))) & (high <= np.maximum(1, found.cdf(points)))).all()
    assert bands.cdf(10.0) == (min(1.0, found.cdf(10.0)), max(1.0, found.cdf(10.0)))
    for lo, hi in ((2.0, 7.5), (2.01, 2.02), (0.0, 10.0), (3.0, 3.0)):
        least, most = bands.range(lo, hi)
        assert least <= found.range(lo, hi) <= most
        assert least <= np.mean((VALUES - lo >= 0) & (VALUES - hi <= 0)) <= most
    low, high = bands.histogram()
    assert ((low <= found.masses) & (found.masses <= high)).all()
    assert bands.mean()[0] < VALUES.mean() < bands.mean()[1]
    assert bands.std()[0] < VALUES.std() < bands.std()[1]
    first, last = bands.quantile([0.25, 0.5, 0.9])
    assert (first <= np.quantile(VALUES, [0.25, 0.5, 0.9])).all()
    assert (np.quantile(VALUES, [0.25, 0.5, 0.9]) <= last).all()
    assert bands.quantile(0.5) == (first[1], last[1])
    assert "however people are distributed" in bands.rests_on
    assert bands.simulated is None


@pytest.mark.parametrize("study", STUDIES)
def test_level_bands_are_saved_with_their_distribution(study: Any, tmp_path: Any) -> None:
    found, bands = banded(study)
    save(found, tmp_path / "found.json")
    read: Any = load(tmp_path / "found.json")
    again = read.bands
    assert repr(again) == repr(bands)
    assert (again.cdf(3.3), again.mean(0.9), again.quantile(0.3)) == (
        bands.cdf(3.3),
        bands.mean(0.9),
        bands.quantile(0.3),
    )


def test_a_higher_level_is_wider_and_bad_ones_are_refused() -> None:
    _, bands = banded(STUDIES[0])
    widths = [np.subtract(*bands.cdf(4.0, level)) for level in (0.8, 0.95, 0.99)]
    assert widths == sorted(widths, reverse=True)
    quantiles = [np.subtract(*bands.quantile(0.42, level)) for level in (0.5, 0.95, 0.999)]
    assert quantiles == sorted(quantiles, reverse=True)
    with pytest.raises(ParameterError, match="confidence level"):
        bands.cdf(4.0, 1.0)
    with pytest.raises(InputError, match="smaller end"):
        bands.range(4.0, 3.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        bands.quantile(1.5)


def test_an_interval_inside_a_bucket_covers_the_whole_bucket() -> None:
    found, bands = banded(Hierarchy(4.0, Interval(0, 10), buckets=10))
    inside = bands.cdf(7.2)
    assert inside == pytest.approx(bands.cdf(7.9))
    assert inside[1] - inside[0] > found.masses[7]
    least, most = bands.range(7.2, 7.4)
    assert least == 0.0
    assert most > 0.4


def test_each_integer_is_a_whole_bucket() -> None:
    ages = np.repeat(np.arange(18, 98), np.arange(1, 81) * 8)
    _, bands = banded(Hierarchy(2.0, Integers(18, 97)), ages)
    low, high = bands.cdf([17, 18, 40, 40.7, 97, 120])
    assert (low[0], high[0], low[-2], high[-2], low[-1], high[-1]) == (0, 0, 1, 1, 1, 1)
    assert (low[2], high[2]) == (low[3], high[3])
    assert bands.range(30, 39) == bands.range(29.5, 39.5)
    low, high = bands.quantile(0.5)
    assert float(low).is_integer()
    assert low <= np.median(ages) <= high


def test_intervals_of_times_are_times() -> None:
    first, end = date(2026, 1, 1), date(2026, 4, 11)
    days = Interval(first, end, cells=100)  # type: ignore[arg-type]  # times are turned into numbers
    values = days.values_of(np.linspace(*days.ends, 5_000))
    found, bands = banded(Hierarchy(4.0, days, buckets=100), values)
    low, high = bands.quantile(0.5)
    assert type(low) is type(found.quantile(0.5))
    assert low <= found.quantile(0.5) <= high
    assert bands.mean()[0] < found.mean() < bands.mean()[1]


def test_a_sample_of_a_population_has_wider_intervals() -> None:
    class Sampled(TallyCollection):
        @property
        def population(self) -> int:
            return 2_000_000

    study = STUDIES[0]
    everybody, sample = (study.read(kind(study.survey, tallied(study))).bands for kind in (TallyCollection, Sampled))
    more = sample.stderr([0], [20])[0] ** 2 - everybody.stderr([0], [20])[0] ** 2
    held = everybody.likely[:20].sum()
    assert more == pytest.approx(held * (1 - held) / len(VALUES), rel=0.02)


def test_weights_reduce_the_effective_number_of_people() -> None:
    study: Any = Hierarchy(2.0, Interval(0, 10), buckets=16)
    reports = study.survey.randomize(VALUES, SeededForExperiments(1))
    plain = study.read(study.survey.tally(reports)).bands
    equal = study.read(study.survey.tally(reports, weights=np.full(len(VALUES), 3))).bands
    assert equal.cdf(5.0) == pytest.approx(plain.cdf(5.0))
    uneven = study.read(study.survey.tally(reports, weights=np.arange(len(VALUES)) % 10 + 1)).bands
    ratio = uneven.stderr([0], [8])[0] / plain.stderr([0], [8])[0]
    weights = np.arange(len(VALUES)) % 10 + 1
    assert ratio**2 == pytest.approx((weights**2).mean() / weights.mean() ** 2, rel=0.05)


def test_intervals_are_there_by_default_and_can_be_left_out() -> None:
    for study in STUDIES:
        assert study.read(tallied(study)).bands is not None
        assert replace(study, bands=0).read(tallied(study)).bands is None


def test_level_bands_are_fast_for_many_buckets() -> None:
    study = Hierarchy(1.0, Interval(0, 10), buckets=1 << 16)
    found, bands = banded(study)
    bands.cdf(5.0)  # compiled
    started = time.process_time()
    found.table()
    found.facts()
    assert time.process_time() - started < 5  # 0.9 s, measured
