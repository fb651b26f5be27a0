"""Estimates: intervals, significance, totals, tables and pictures; metrics and planning."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from veil import (
    GRR,
    MECHANISMS,
    OLH,
    OUE,
    PGR,
    Bits,
    Categories,
    Rappor,
    SubsetSelection,
    Tally,
    Text,
    choose,
    simulate,
)
from veil.errors import InputError, MismatchError, ParameterError
from veil.histogram import Histogram
from veil.mechanisms import FrequencyOracle
from veil.metrics import coverage, f1, max_error, mse, precision, recall
from veil.tools.numbers import critical

LABELS = Categories(["tea", "coffee", "water", "juice"])
ESTIMATE = simulate(OLH(3.0, LABELS), ["tea"] * 6_000 + ["coffee"] * 3_000 + ["juice"] * 1_000, seed=1)


def test_estimates_are_not_clipped() -> None:
    many = simulate(OLH(0.5, 500), np.zeros(500, dtype=int), seed=2).frequencies
    assert many.min() < 0
    assert abs(many.sum() - 1) > 1e-6


def test_rows_are_sorted_and_carry_their_interval() -> None:
    rows = ESTIMATE.top(3)
    assert [row.value for row in rows][:2] == ["tea", "coffee"]
    assert rows[0].low < 0.6 < rows[0].high
    assert rows[0].count == pytest.approx(rows[0].frequency * 10_000)
    assert rows[0].alone_high - rows[0].alone_low == pytest.approx(2 * 1.959964 * rows[0].stderr, rel=0.02)
    assert rows[0].low < rows[0].alone_low < rows[0].alone_high < rows[0].high  # three of four were picked
    plain = ESTIMATE.interval(kind="normal")
    assert plain[0] == pytest.approx(rows[0].frequency + 1.959964 * rows[0].stderr * np.array([-1, 1]), rel=1e-6)
    wide = ESTIMATE.interval(0.99)
    assert np.all(wide[:, 1] - wide[:, 0] > ESTIMATE.interval()[:, 1] - ESTIMATE.interval()[:, 0])


def test_the_significance_threshold_is_the_formula() -> None:
    oracle = OLH(3.0, LABELS)
    p, q = float(oracle.p), float(oracle.q)
    most = binom.isf(0.05 / 4, 10_000, q)  # an absent value's support is binomial
    assert ESTIMATE.threshold(0.05) == pytest.approx(((most + 0.5) / 10_000 - q) / (p - q))
    assert ESTIMATE.threshold(0.05) == pytest.approx(critical(0.05 / 4) * math.sqrt(oracle.variance(10_000)), rel=0.05)
    assert {row.value for row in ESTIMATE.significant(0.05)} == {"tea", "coffee", "juice"}
    assert OLH(3.0, LABELS).detection_floor(10_000) == pytest.approx(ESTIMATE.threshold(0.05))


def test_totals_of_sets_of_values() -> None:
    both = ESTIMATE.total(["tea", "coffee", "tea"])
    assert both.frequency == pytest.approx(ESTIMATE.frequencies[0] + ESTIMATE.frequencies[1])
    low, high = both.interval(0.999)
    assert low < 0.9 < high
    whole = simulate(GRR(1.0, 4), [0, 1, 2, 3] * 100).total([0, 1, 2, 3])
    assert whole.frequency == pytest.approx(1.0)  # GRR's supports add up to n exactly
    assert whole.stderr == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5])
def test_levels_are_checked(bad: float) -> None:
    with pytest.raises(ParameterError):
        ESTIMATE.interval(bad)
    with pytest.raises(ParameterError):
        ESTIMATE.top(0)


def test_the_table_of_an_estimate() -> None:
    table = ESTIMATE.table()
    assert table.column_names == ["value", "frequency", "count", "stderr", "low", "high", "significant"]
    assert table.column("value").to_pylist() == ["tea", "coffee", "water", "juice"]
    frame = ESTIMATE.to_pandas()
    assert frame["frequency"].tolist() == pytest.approx(ESTIMATE.frequencies.tolist())
    mixed = simulate(GRR(1.0, ["a", 1]), ["a", 1, 1]).table()
    assert mixed.column("value").to_pylist() == ["a", "1"]
    long = simulate(OLH(1.0, Bits(100)), [2**99, 5], candidates=[2**99, 5]).table()
    assert long.column("value").to_pylist() == [str(2**99), "5"]


def test_the_picture_of_an_estimate_is_reproducible(tmp_path: Path) -> None:
    from veil.results import save_figure

    axes = ESTIMATE.plot(truth=[0.6, 0.3, 0.0, 0.1])
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["tea", "coffee"]
    save_figure(axes, str(tmp_path / "one.svg"))
    save_figure(ESTIMATE.plot(truth=[0.6, 0.3, 0.0, 0.1]), str(tmp_path / "two.svg"))
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert b"<svg" in (tmp_path / "one.svg").read_bytes()


def test_no_value_of_a_person_in_a_repr() -> None:
    oracle = OLH(1.0, LABELS)
    reports = oracle.randomize(["coffee"])
    for shown in (repr(reports), repr(oracle.tally(reports)), repr(ESTIMATE), repr(LABELS.encode), repr(reports[:1])):
        assert "coffee" not in shown.replace("'tea', 'coffee', 'water'", "")


def test_metrics_of_estimates() -> None:
    truth = [0.6, 0.3, 0.0, 0.1]
    difference = ESTIMATE.frequencies - truth
    assert mse(ESTIMATE, truth) == pytest.approx(np.mean(difference**2))
    assert max_error(ESTIMATE, truth) == pytest.approx(np.abs(difference).max())
    assert coverage(ESTIMATE, truth, 0.999999) == 1.0
    assert coverage(ESTIMATE, [5.0] * 4) == 0.0
    assert (precision([1, 2], [2, 3, 4]), recall([1, 2], [2, 3, 4])) == (0.5, 1 / 3)
    assert f1([], []) == precision([], [1]) == recall([1], []) == 1.0
    with pytest.raises(InputError):
        mse(ESTIMATE, [0.5])


# -- planning ----------------------------------------------------------------------------------------------------------


def test_choose_follows_the_guideline_of_the_thesis() -> None:
    """3.4.1: direct encoding for d < 3 e^eps + 2, else OLH (or, now, a subset that is as short)."""
    for epsilon in (0.5, 1.0, 2.0):
        edge = 3 * math.exp(epsilon) + 2
        assert GRR(epsilon, int(edge)).variance(1) <= OUE(epsilon, int(edge)).variance(1)
        assert GRR(epsilon, int(edge) + 2).variance(1) > OUE(epsilon, int(edge) + 2).variance(1)
    assert choose(3, 1.0).oracle == GRR(1.0, 3)
    assert choose(100_000, 1.0, users=10**6).oracle == PGR(1.0, 100_000)
    assert choose(Text(20), 2.0).oracle == OLH(2.0, Text(20))


def test_choices_explain_themselves_and_respect_limits() -> None:
    choice = choose(1024, 1.0, users=1_000_000)
    assert choice.oracle.name in choice.why
    assert choice.why.endswith(".")
    oracles = {name for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle)}
    assert {option.name for option in choice.options} == oracles
    assert [option.name for option in choice.options if math.isnan(option.error("standard error"))] == ["Rappor"]
    small = choose(1024, 1.0, max_report_bytes=2)
    assert small.oracle.layout.size <= 2
    assert "2 bytes" in small.why
    with pytest.raises(InputError, match="1 byte"):
        choose(1024, 1.0, max_report_bytes=1)
    with pytest.raises(ParameterError):
        choose(1024, -1.0)
    with pytest.raises(ParameterError):
        choose(1, 1.0)
    with pytest.raises(ParameterError):
        choose(10, 1.0, users=0)


def test_options_are_sorted_by_error() -> None:
    *known, unknown = choose(64, 1.0, 1000).options
    errors = [option.error("standard error") for option in known]
    assert errors == sorted(errors)
    assert math.isnan(unknown.error("standard error"))
    best = known[0]
    assert isinstance(best.study, Histogram)
    assert isinstance(best.study.oracle, SubsetSelection)
    assert best.error("detection floor") > best.error("standard error")


def test_a_biased_oracle_is_never_chosen() -> None:
    for domain, epsilon, limit in ((2**40, 0.1, None), (Text(16), 0.3, None), (2**40, 4.0, 8), (1024, 1.0, 5)):
        assert choose(domain, epsilon, max_report_bytes=limit).oracle.unbiased
    for domain, limit in ((Text(16), 8), (2**40, 6)):
        with pytest.raises(InputError):
            choose(domain, 4.0, max_report_bytes=limit)  # only RandomProjection would fit
    for bad in ("4", True, float("nan"), 0):
        with pytest.raises(ParameterError):
            choose(10, 1.0, max_report_bytes=bad)  # type: ignore[arg-type]


def test_impossible_tallies_are_refused() -> None:
    for oracle in (GRR(1.0, 10), PGR(1.0, 10), Rappor(4.0, 10)):
        with pytest.raises(MismatchError):
            oracle.estimate(Tally(oracle.digest, np.ones(7, np.int64), 3, 3, 3))
    huge = Tally("t", np.array([2**62, -(2**62)]), people=1, weight=0, square=1)
    with pytest.raises(InputError, match="2\\^63"):
        _ = huge + huge


def test_choices_for_large_domains_are_as_the_docs_say() -> None:
    """The last column of the table in docs/mechanisms/pgr.md."""
    others = {(4.0, 1_000): "OLH", (5.0, 1_000): "SubsetSelection"}
    for epsilon in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0):
        for size in (1_000, 10_000, 100_000, 1_000_000):
            assert choose(size, epsilon).oracle.name == others.get((epsilon, size), "PGR")
