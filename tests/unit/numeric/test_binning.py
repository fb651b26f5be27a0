"""Binning: the better oracle over wide bins, Norm-Sub, and an even spread within each."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from veil import Categories, Integers, Interval, Survey, simulate
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, MismatchError, ParameterError
from veil.numeric.distributions import Binning
from veil.post.consistency import norm_sub


def test_binning_is_the_better_oracle_with_norm_sub() -> None:
    protocol = Binning(1.0, Interval(0.0, 8.0, cells=5), bins=16)
    values = np.random.default_rng(1).beta(2, 6, 5000) * 8
    tally = protocol.survey.tally(protocol.survey.randomize(values, SeededForExperiments(1)))
    found = protocol.read(tally)
    plain = protocol.survey.estimate(tally)[0]
    assert plain.frequencies.min() < 0
    assert found.masses.tolist() == norm_sub(plain.frequencies, 1.0).tolist()
    assert found.proper
    assert found.edges.tolist() == [i / 2 for i in range(17)]
    assert found.cdf(0.25) == pytest.approx(found.cdf(0.5) / 2)  # even within a bin
    assert found.lineage == ("Binning(epsilon=1, bins=16)", "OLH(epsilon=1)", "norm-sub")
    names = [Binning(1.0, Interval(0.0, 1.0), bins=bins).survey.questions[0].mechanism.name for bins in (10, 11)]
    assert names == ["GRR", "OLH"]


@pytest.mark.parametrize("bins", [2, 5, 32, 1000])
def test_binning_estimates_a_distribution(bins: int) -> None:
    values = np.random.default_rng(1).beta(5, 2, 40_000)
    found = simulate(Binning(2.0, Interval(0.0, 1.0), bins=bins), values, seed=1)
    assert len(found) == bins
    assert found.range(0.0, 0.5) == pytest.approx(np.mean(values < 0.5), abs=0.05 if bins < 1000 else 0.3)


def test_each_integer_is_a_whole_bucket() -> None:
    found = simulate(Binning(4.0, Integers(0, 9), bins=10), [3] * 9000 + [7] * 1000, seed=1)
    assert found.range(3, 3) == pytest.approx(0.9, abs=0.03)
    assert found.cdf(3) == pytest.approx(0.9, abs=0.03)
    assert found.quantile(0.5) == 3
    assert simulate(Binning(3.0, Integers(1, 8), bins=4), [3] * 9000 + [4] * 9000, seed=1).masses == pytest.approx(
        [0, 1, 0, 0], abs=0.05
    )


@pytest.mark.parametrize(("size", "bins"), [(82, 32), (10, 4), (10, 3), (7, 7), (1000, 64), (100, 40), (2, 2)])
def test_bins_of_integers_hold_what_a_device_puts_there(size: int, bins: int) -> None:
    protocol = Binning(1.0, Integers(18, 17 + size), bins=bins)
    reports = protocol.survey.randomize(np.arange(18, 18 + size), SeededForExperiments(1))
    cells = protocol.read(protocol.survey.tally(reports)).cells
    asked = protocol.survey.domain.encode(np.arange(18, 18 + size))
    assert cells.tolist() == np.searchsorted(asked, np.arange(bins + 1)).tolist()


def test_domains_of_times() -> None:
    year = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))
    found = simulate(Binning(4.0, year, bins=12), [dt.datetime(2026, 7, 1, 12)] * 2000, seed=1)
    assert found.masses.argmax() == 5
    assert isinstance(found.mean(), dt.datetime)


def test_binning_is_a_value_with_json_both_ways() -> None:
    protocol = Binning(1.0, Interval(0.0, 1.0))
    assert protocol == Binning(1, Interval(0, 1, cells=9), bins=np.int64(32))
    assert hash(protocol) == hash(Binning(1, Interval(0, 1)))
    assert protocol != Binning(1.0, Interval(0.0, 1.0), bins=16)
    assert Survey.from_json(protocol.survey.to_bytes()) == protocol.survey
    assert protocol.survey.guarantee.within(1.0)


@pytest.mark.parametrize(
    ("domain", "bins"),
    [
        (Interval(0.0, 1.0), 1),
        (Interval(0.0, 1.0), 0),
        (Interval(0.0, 1.0), 2.5),
        (Interval(0.0, 1.0), True),
        (Categories(["a", "b"]), 2),
        (None, 4),
        (0, 4),
        (8, 9),
    ],
)
def test_bad_parameters_are_refused(domain: Any, bins: Any) -> None:
    with pytest.raises(ParameterError):
        Binning(1.0, domain, bins)


def test_wrong_tallies_are_refused() -> None:
    protocol, other = Binning(1.0, Interval(0.0, 1.0), bins=8), Binning(1.1, Interval(0.0, 1.0), bins=8)
    reports = protocol.survey.randomize([0.1, 0.2, 0.9], SeededForExperiments(1))
    tally = protocol.survey.tally(reports)
    for wrong in (tally.parts[0], None):
        with pytest.raises(MismatchError):
            protocol.read(wrong)  # type: ignore[arg-type]
    with pytest.raises(MismatchError):
        other.read(tally)
    with pytest.raises(MismatchError, match="all buckets"):
        protocol.read(protocol.survey.tally(reports, {0: [0.05, 0.9]}))
    with pytest.raises(EmptyError):
        protocol.read(protocol.survey.tally(reports[:0]))
