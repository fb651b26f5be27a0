"""Differences between results: what may be compared, what comes out, and that it is a result like any other."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veil import GRR, OLH, SHE, Categories, Integers, Interval, simulate
from veil.errors import InputError, MismatchError, ParameterError
from veil.numeric import SquareWave, WaveDistribution
from veil.results import (
    Answers,
    Distribution,
    DistributionChange,
    Estimate,
    FrequencyChange,
    Mean,
    MeanAndVariance,
    MeanChange,
    Result,
)
from veil.results.change_tests import adjusted_p_values
from veil.results.render.files import document
from veil.results.render.layout import to_html

DRINKS = ["tea", "coffee", "milk", "water"]


def month(tea: int, mechanism: Any = None, seed: int = 1) -> Estimate:
    held = ["tea"] * tea + ["coffee"] * (3_000 - tea) + ["milk"] * 500 + ["water"] * 500
    return simulate(mechanism or OLH(3.0, Categories(DRINKS)), held, seed=seed)


MARCH, APRIL = month(1_000), month(2_000, seed=2)


def mean(value: float, stderr: float = 1.0) -> Mean:
    return Mean(value, stderr, n=1_000, domain=Interval(0, 100))


def incomes(a: float, buckets: int = 32, bands: int = 20) -> Distribution:
    held = np.random.default_rng(4).beta(a, 5, 4_000) * 100
    return simulate(WaveDistribution(SquareWave(3.0, Interval(0, 100), buckets=buckets), bands=bands), held, seed=1)


LOW, HIGH = incomes(1.0), incomes(5.0)
CHANGES = [APRIL.difference(MARCH), mean(45.0).difference(mean(40.0)), HIGH.difference(LOW)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.kind))
def test_a_change_is_a_result_like_any_other(change: Result) -> None:
    assert Result.from_json(json.loads(json.dumps(change.to_json()))) == change
    written = document(change)
    assert written["kind"] == change.kind
    assert len(written["rows"]) == len(change) == len(list(change))
    assert "changed" in to_html(change)
    assert change.plot().get_xlabel().startswith("after less before")
    json.dumps(written, allow_nan=False)


def test_a_change_of_frequencies() -> None:
    change = APRIL.difference(MARCH)
    assert isinstance(change, FrequencyChange)
    table = change.table()
    names = ["value", "before", "after", "difference", "low", "high", "p_value", "changed"]
    assert table.column_names == names
    assert table["changed"].to_pylist() == [True, True, False, False]
    assert np.allclose(change.differences, APRIL.frequencies - MARCH.frequencies)
    tea = change["tea"]
    assert tea.low < 0.25 < tea.high
    assert tea.p_value < 1e-6
    facts = change.facts()
    assert (facts["changed"], facts["tested"], facts["people_after"]) == (2, 4, 4_000)
    assert facts["smallest_adjusted_p_value"] == pytest.approx(4 * change.p_values.min())
    assert change.summary_table(rows=2)["value"].to_pylist() == ["tea", "coffee"]  # the clearest first
    assert change.n == 8_000
    assert change.lineage[-1] == "difference"


def test_a_change_counts_the_people_of_each_side() -> None:
    assert APRIL.difference(MARCH).answered() == "4,000 reports before, 4,000 reports after"
    assert "4,000 reports before, 4,000 reports after" in to_html(APRIL.difference(MARCH))
    assert MARCH.answered() == "4,000 reports"


def test_swapped_sides_give_the_same_change_with_opposite_signs() -> None:
    there, back = APRIL.difference(MARCH), MARCH.difference(APRIL)
    assert isinstance(there, FrequencyChange)
    assert isinstance(back, FrequencyChange)
    assert np.allclose(there.interval(), -back.interval()[:, ::-1])
    assert np.allclose(there.p_values, back.p_values)


def test_nothing_changes_between_a_result_and_itself() -> None:
    for one in (MARCH, mean(3.0), LOW):
        assert one.difference(one).facts()["changed"] in (0, False)


def test_processed_estimates_are_compared_by_their_unbiased_origin() -> None:
    assert APRIL.post("norm-sub").difference(MARCH.post("calibrate")) == APRIL.difference(MARCH)


@pytest.mark.parametrize(
    "mechanism", [OLH(1.0, Categories(DRINKS)), GRR(2.0, Categories(DRINKS)), SHE(2.0, Categories(DRINKS))]
)
def test_mechanisms_and_eps_may_differ(mechanism: Any) -> None:
    change = month(2_000, mechanism, seed=3).difference(MARCH)
    assert isinstance(change, FrequencyChange)
    assert change["tea"].changed
    assert not change["milk"].changed
    assert change.guarantee is None
    assert change["tea"].low < 0.25 < change["tea"].high


def test_candidates_are_matched_in_any_order() -> None:
    olh = OLH(3.0, Integers(0, 10**6))
    reports = olh.randomize([5] * 2_000 + [70] * 1_000)
    one, other = (olh.estimate(olh.tally(reports, candidates=wanted)) for wanted in ([5, 70, 900], [900, 5, 70]))
    change = one.difference(other)
    assert isinstance(change, FrequencyChange)
    assert change.differences.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(MismatchError, match="the same candidates"):
        one.difference(olh.estimate(olh.tally(reports, candidates=[5, 70, 901])))


def test_weights_reduce_the_effective_number_of_people() -> None:
    light = replace(APRIL, effective=40.0)
    change = light.difference(replace(MARCH, effective=40.0))
    assert change.facts()["changed"] == 0
    assert replace(APRIL, effective=3_900.0).difference(MARCH)["tea"].changed


def test_more_tests_need_smaller_p_values() -> None:
    change = APRIL.difference(MARCH)
    assert isinstance(change, FrequencyChange)
    smallest = change.p_values.min()
    assert replace(change, tested=int(0.9 * 0.05 / smallest)).changed().any()
    assert not replace(change, tested=int(1.1 * 0.05 / smallest)).changed().any()


def test_adjusted_p_values_are_those_of_holm() -> None:
    assert adjusted_p_values(np.array([0.01, 0.04, 0.03, 0.005]), 4).tolist() == [0.03, 0.06, 0.06, 0.02]
    assert adjusted_p_values(np.array([0.01, 0.9]), 100).tolist() == [1.0, 1.0]
    assert adjusted_p_values(np.array([]), 0).tolist() == []


def test_a_change_of_means() -> None:
    change = mean(45.0, 3.0).difference(mean(40.0, 4.0))
    assert isinstance(change, MeanChange)
    assert change.interval() == pytest.approx((5 - 1.95996 * 5, 5 + 1.95996 * 5), abs=1e-3)
    assert change.p_value == pytest.approx(0.31731, abs=1e-4)
    assert change.facts()["changed"] is False
    days = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))
    early, late = (Mean(day * 86_400.0, 3_600.0, n=100, domain=days) for day in (20_500, 20_503))
    facts = document(late.difference(early))
    assert facts["before"] == "2026-02-16T00:00:00"
    assert facts["difference"] == 3 * 86_400
    both = [MeanAndVariance(mean(value), mean(9.0)) for value in (40.0, 50.0)]
    changes = both[1].difference(both[0])
    assert [part.facts()["changed"] for _, part in changes.parts()] == [True, False]


def test_a_change_of_distributions_with_different_buckets() -> None:
    for before in (LOW, incomes(1.0, buckets=64)):
        change = HIGH.difference(before)
        assert isinstance(change, DistributionChange)
        assert len(change) == 16
        facts = change.facts()
        assert facts["changed"] > 0
        assert facts["mean_difference_low"] < facts["mean_difference"] < facts["mean_difference_high"]
        assert facts["mean_difference_low"] < 100 * (0.5 - 1 / 6) < facts["mean_difference_high"]
        median = next(row for row in facts["quantiles"] if row["level"] == 0.5)
        assert median["low"] <= median["difference"] <= median["high"]
        table = change.table()
        assert table["from"].to_pylist()[0] == 0
        assert np.allclose(table["cumulative"].to_numpy(), np.cumsum(table["difference"].to_numpy()))


def test_distributions_without_bands_have_a_difference_and_no_error() -> None:
    change = replace(HIGH, bands=None).difference(LOW)
    assert isinstance(change, DistributionChange)
    assert change.changed() is None
    assert change.table().column_names == ["from", "to", "before", "after", "difference", "cumulative"]
    assert change.remarks()
    with pytest.raises(InputError, match="no bands"):
        change.interval()
    change.plot()


def test_answers_change_question_by_question_as_one_family() -> None:
    before, after = Answers([MARCH, mean(40.0), LOW], [0, 2, 3]), Answers([mean(42.8), APRIL], [2, 0])
    change = after.difference(before)
    assert isinstance(change, Answers)
    assert change.questions == (2, 0)
    assert [part.tested for part in change.results if isinstance(part, (MeanChange, FrequencyChange))] == [5, 5]
    assert mean(42.8).difference(mean(40.0)).facts()["changed"]  # alone it is; among five it is not
    assert not change[0].facts()["changed"]
    assert Result.from_json(change.to_json()) == change
    with pytest.raises(MismatchError, match="same questions"):
        Answers([MARCH], [0]).difference(Answers([MARCH], [1]))


def test_results_of_different_questions_are_refused() -> None:
    with pytest.raises(MismatchError, match="same domain"):
        MARCH.difference(month(10, OLH(3.0, Categories([*DRINKS, "beer"]))))
    with pytest.raises(MismatchError, match="same range"):
        mean(4.0).difference(Mean(4.0, 1.0, n=10, domain=Interval(0, 10)))
    with pytest.raises(InputError, match="of one kind"):
        MARCH.difference(mean(4.0))
    for level in (0.0, 1.0, 2.0):
        with pytest.raises(ParameterError, match="level"):
            APRIL.difference(MARCH).table(level)


def test_the_examples_of_the_page_run() -> None:
    page = (Path(__file__).parents[3] / "docs" / "differences.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "differences.md", "exec"), names)
    assert [row.value for row in names["change"] if row.changed] == ["tea", "coffee"]
