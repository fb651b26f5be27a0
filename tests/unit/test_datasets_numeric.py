"""Distributions of numbers over people: re-binning, people who stand for all, draws, files and stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from tests.significance import ALPHA, frequency_fits

from veil import Interval
from veil.errors import InputError
from veil.metrics import ks
from veil_papers import datasets
from veil_papers.datasets import Numbers

LOADERS: list[Callable[..., Numbers]] = [datasets.income, datasets.wages, datasets.flight_times]


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VEIL_DATA", raising=False)


def some(held: list[int], lo: float = -10.0, hi: float = 30.0) -> Numbers:
    return Numbers(np.array(held), "by hand", stand_in=False, name="some", lo=lo, hi=hi, unit="degrees")


def counted(values: Any, data: Numbers, buckets: int) -> Any:
    return np.bincount(Interval(data.lo, data.hi, cells=buckets).encode(values).astype(np.int64), minlength=buckets)


# -- histograms --------------------------------------------------------------------------------------------------------


def test_fewer_buckets_are_sums_and_others_are_cut_in_proportion() -> None:
    data = some([1, 0, 4, 3])
    assert data.people == 8
    assert data.histogram(4).tolist() == data.frequencies.tolist() == [0.125, 0.0, 0.5, 0.375]
    assert data.histogram(2).tolist() == [0.125, 0.875]
    assert data.histogram(1).tolist() == [1.0]
    assert data.histogram(8).tolist() == [0.0625, 0.0625, 0.0, 0.0, 0.25, 0.25, 0.1875, 0.1875]
    assert data.histogram(3) == pytest.approx(np.array([1, 0 + 4 * 2 / 3, 4 / 3 + 3]) / 8)


@pytest.mark.parametrize("buckets", [7, 256, 1024])
def test_any_number_of_buckets_keeps_the_law(buckets: int) -> None:
    data = datasets.flight_times()
    made = data.histogram(buckets)
    assert made.sum() == pytest.approx(1.0)
    assert (made >= 0).all()
    grid = np.linspace(0.0, 1.0, buckets + 1)
    law = np.interp(grid, np.linspace(0.0, 1.0, 1441), np.append(0.0, np.cumsum(data.frequencies)))
    assert np.cumsum(made) == pytest.approx(law[1:], abs=1e-12)


# -- people ------------------------------------------------------------------------------------------------------------


def test_people_who_stand_for_all_are_all_when_they_are_as_many() -> None:
    data = some([3, 0, 0, 2, 1])
    assert counted(data.spread(6), data, 5).tolist() == data.held.tolist()
    assert counted(data.spread(3), data, 5).sum() == 3
    assert (np.diff(data.spread(6)) > 0).all()
    # one of two: people on the edge of an empty bucket belong to the next who is there, never to the empty one
    assert counted(some([1, 0, 3]).spread(2), some([1, 0, 3]), 3).tolist() == [0, 0, 2]


@pytest.mark.parametrize("loader", [*LOADERS, datasets.beta_numbers, datasets.bimodal_numbers])
def test_people_who_stand_for_all_have_the_law_of_the_data(loader: Callable[..., Numbers]) -> None:
    """No worse than 1 / n in any prefix, where people drawn at random are off by about 0.9 / sqrt(n)."""
    data, n = loader(), 50_000
    truth = data.histogram(256)
    assert ks(counted(data.spread(n), data, 256) / n, truth) <= 1 / n
    drawn = ks(counted(data.sample(n, seed=1), data, 256) / n, truth)
    assert 1e-3 < drawn < 1e-2


def test_draws_follow_the_histogram() -> None:
    data, n = some([1, 0, 4, 3]), 200_000
    values = data.sample(n, seed=3)
    assert values.dtype == np.float64
    assert values.min() >= data.lo
    assert values.max() < data.hi
    found = counted(values, data, 4)
    assert found[1] == 0
    for bucket in (0, 2, 3):
        assert frequency_fits(int(found[bucket]), n, data.frequencies[bucket])
        assert not frequency_fits(int(found[bucket]), n, data.frequencies[bucket] * 1.1)
    inside = values[(values >= 10) & (values < 20)]
    assert stats.kstest(inside, stats.uniform(10, 10).cdf).pvalue > ALPHA
    assert stats.kstest(inside, stats.uniform(9.5, 11).cdf).pvalue < ALPHA
    assert (values == data.sample(n, seed=3)).all()
    assert (values != data.sample(n, seed=4)).any()


# -- laws --------------------------------------------------------------------------------------------------------------


def test_beta_is_drawn_from_its_law_and_kept_apart() -> None:
    values = datasets.beta_people(seed=2)
    assert stats.kstest(values, stats.beta(5, 2).cdf).pvalue > ALPHA
    assert stats.kstest(values, stats.beta(5.5, 2).cdf).pvalue < ALPHA
    data = datasets.beta_numbers(seed=2)
    assert (data.histogram(256) == counted(values, data, 256) / 100_000).all()
    assert np.sort(values) == pytest.approx(data.spread(100_000), abs=2**-16)


def test_uniform_and_bimodal_laws() -> None:
    assert set(datasets.uniform_numbers().held.tolist()) == {1024}
    assert set(datasets.uniform_numbers(3, 100).held.tolist()) == {33, 34}
    data = datasets.bimodal_numbers()
    middles = (np.arange(1024) + 0.5) / 1024
    exact = 0.6 * stats.norm(0.25, 0.06).pdf(middles) + 0.4 * stats.norm(0.75, 0.04).pdf(middles)
    assert data.frequencies == pytest.approx(exact / 1024, abs=2e-6)
    hills = data.histogram(16)
    assert hills[4] > 0.1
    assert hills[12] > 0.1
    assert hills[8] < 1e-4


# -- files and stand-ins -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of the same form: incomes that count up, wages on both sides of the cuts, flights in two minutes."""
    np.savez(tmp_path / "dpbench_histograms.npz", d1_INCOME_n4096=np.arange(4096, dtype=np.uint32))
    paid = np.array([0, 0, 1, 59_999, 60_000, 524_287, 524_288, 1_404_108], dtype=np.int32)
    pq.write_table(pa.table({"age_head": paid % 7, "wages_head": paid}), tmp_path / "cps_taxunits_taxcalc.parquet")
    flights = {"dep_minute_of_day": [0, 1439, 1439], "delay_min": [-1116, 0, 5], "count": [2, 3, 4]}
    table = pa.table({name: pa.array(column, pa.int32()) for name, column in flights.items()})
    pq.write_table(table, tmp_path / "us_flights2001_deptime_delay_joint.parquet")
    return tmp_path


def test_files_are_read(folder: Path) -> None:
    everyone = datasets.income(folder)
    assert (everyone.held == np.arange(4096)).all()
    assert (everyone.hi, everyone.unit, everyone.stand_in) == (1_638_400.0, "dollars", False)
    cut = datasets.income(folder, bins=512)
    assert (cut.people, cut.hi, len(cut.held)) == (511 * 512 // 2, 204_800.0, 512)
    assert everyone.histogram(1024)[1] == (4 + 5 + 6 + 7) / everyone.people
    paid = datasets.wages(folder)
    assert np.flatnonzero(paid.held).tolist() == [1, 59_999, 60_000, 524_287]
    assert np.flatnonzero(datasets.wages(folder, below=60_000).held).tolist() == [1, 59_999]
    times = datasets.flight_times(folder)
    assert (times.held[0], times.held[1439], times.people, times.hi) == (2, 7, 9, 1440.0)


def test_the_environment_names_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_DATA", str(folder))
    assert not any(loader().stand_in for loader in LOADERS)


@pytest.mark.parametrize("loader", LOADERS)
def test_a_folder_without_the_file_is_refused(loader: Callable[..., Numbers], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        loader(tmp_path)
    with pytest.raises(InputError, match="no folder"):
        loader(tmp_path / "none")
    assert loader().stand_in


def test_stand_ins_have_the_size_and_the_character() -> None:
    income, wages, times = datasets.income(), datasets.wages(), datasets.flight_times()
    assert (income.people, wages.people, times.people) == (20_787_122, 177_714, 3_000_000)
    assert all((data.held >= 0).all() for data in (income, wages, times))
    shares = income.frequencies
    assert 0.12 < shares[0] < 0.13
    assert shares[75] > 3 * max(shares[74], shares[76])  # 30,000 dollars
    assert np.median(wages.spread(10_001)) == pytest.approx(np.exp(10.16), rel=0.02)
    assert wages.held[30_000] > 100 * max(wages.held[29_999], 1)
    hours = times.histogram(24)
    assert hours[1:5].sum() < 0.01  # few at night
    assert hours[9] > hours[13] < hours[17]
    assert np.abs(np.diff(times.frequencies)).max() < 0.02 * times.frequencies.max()  # smooth


@pytest.mark.parametrize(
    "call",
    [
        lambda: some([1]).histogram(0),
        lambda: some([1]).histogram(2.0),  # type: ignore[arg-type]
        lambda: some([1]).spread(0),
        lambda: some([1]).sample(-1, seed=0),
        lambda: datasets.income(bins=0),
        lambda: datasets.income(bins=4_097),
        lambda: datasets.wages(below=999),
        lambda: datasets.wages(below=1 << 20),
        lambda: datasets.beta_people(0),
        lambda: datasets.uniform_numbers(buckets=0),
        lambda: datasets.bimodal_numbers(people=0),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        call()
