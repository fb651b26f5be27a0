"""Contracts of mean mechanisms, the hybrid and two rounds: exact sums, error bars, JSON, refusals, replay."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veil import Categories, Integers, Interval, Piecewise, StochasticRounding, StudyRun, Survey, simulate
from veil.entropy import SeededForExperiments, Words
from veil.errors import EmptyError, InputError, MismatchError, ParameterError, WireError
from veil.mechanisms import MeanMechanism, mechanism_from_json
from veil.numeric.means import HybridMean, TwoPhaseVariance
from veil.results.mean import MeanAndVariance
from veil.view import SquaredDistance

BOTH = (StochasticRounding, Piecewise)
KINDS = (*BOTH, HybridMean)


def pack(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


# -- on the device -----------------------------------------------------------------------------------------------------


def test_the_order_of_random_draws_is_fixed() -> None:
    """StochasticRounding: the rounding, then the coin. Piecewise: the start, the coin, the step."""
    rounding = StochasticRounding(1.0, 11)
    keep = rounding.thresholds["keep"]
    for first, coin, sign in [(2, 0, 1), (3, 0, 0), (2, keep, 0), (3, keep, 1)]:
        source = Words(pack(first, coin))
        assert rounding.draw(np.array([3], dtype=np.uint64), source)["sign"].tolist() == [sign]
        assert source.used == 2
    mechanism = Piecewise(1.0, 11, steps=100, window=38)  # the window of cell 3 starts at 18.6
    inside = mechanism.thresholds["inside"]
    cases = [(5, 0, 0, 19), (6, 0, 0, 18), (5, inside - 1, 37, 56), (5, inside, 18, 18), (5, inside, 19, 57)]
    for first, coin, step, report in cases:
        source = Words(pack(first, coin, step))
        assert mechanism.draw(np.array([3], dtype=np.uint64), source)["step"].tolist() == [report]
        assert source.used == 3


def test_the_smallest_and_the_largest_settings() -> None:
    for epsilon in (1e-6, 1.0, 40.0):
        for asked in (
            StochasticRounding(epsilon, Interval(0, 1, 2)),
            Piecewise(epsilon, Interval(0, 1, 1 << 32), steps=1 << 24),
            Piecewise(epsilon, 2, steps=2),
        ):
            assert asked.guarantee.within(epsilon)
            reports = asked.randomize([0, 1] * 200, SeededForExperiments(1))
            mean = asked.estimate(asked.tally(reports))
            assert abs(mean.value - 0.5) < 6 * mean.stderr
    assert [Piecewise(1.0, 9, steps=steps).layout.size for steps in (256, 1 << 16, 1 << 24)] == [1, 2, 4]
    assert Piecewise(40.0, 9).window == 1


@pytest.mark.parametrize("steps", [1, 0, 2**24 + 1, True, 2.5, "9"])
def test_bad_steps_are_refused(steps: Any) -> None:
    with pytest.raises(ParameterError):
        Piecewise(1.0, 5, steps=steps)


@pytest.mark.parametrize("window", [0, 12, -1, True, 2.5])
def test_bad_windows_are_refused(window: Any) -> None:
    with pytest.raises(ParameterError):
        Piecewise(1.0, 5, steps=12, window=window)


def test_a_task_says_the_window_and_a_wrong_threshold_is_refused() -> None:
    made = Piecewise(1.0, Interval(0, 9, 10))
    document = made.to_json()
    assert (document["steps"], document["window"]) == (65_536, 24_743)
    assert mechanism_from_json(document) == made
    for change in ({"window": 24_742}, {"steps": 65_537}, {"window": None}, {"window": "24743"}, {"more": 1}):
        with pytest.raises((ParameterError, WireError)):
            mechanism_from_json({**document, **change})


# -- at the collector --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [2, 256, 5000, 1 << 24])
def test_sums_of_squares_are_exact(steps: int) -> None:
    asked = Piecewise(0.5, 7, steps=steps)
    reports = asked.randomize(np.arange(5000) % 7, SeededForExperiments(1))
    drawn = [int(step) for step in reports.columns["step"]]
    weights = np.arange(5000) * 1000 - 7
    for given in (None, weights):
        total, low, high = (int(count) for count in asked.tally(reports, weights=given).counts)
        each = [1] * 5000 if given is None else given.tolist()
        assert total == sum(w * k for w, k in zip(each, drawn, strict=True))
        assert low + (high << 24) == sum(w * k * k for w, k in zip(each, drawn, strict=True))


def test_weights_whose_sums_could_overflow_are_refused() -> None:
    largest, asked = 2**31 - 1, Piecewise(1.0, 5, steps=1 << 24)
    reports = asked.randomize([4] * 300, SeededForExperiments(1))
    some = asked.tally(reports[:256], weights=[largest] * 256)
    assert some.counts.tolist() == [largest * int(c) for c in asked.tally(reports[:256]).counts]
    with pytest.raises(InputError, match="64 bits"):
        asked.tally(reports, weights=[largest] * 300)
    bits = StochasticRounding(1.0, 5)
    assert (
        bits.tally(bits.randomize([4] * 300, SeededForExperiments(1)), weights=[largest] * 300).weight == 300 * largest
    )


@pytest.mark.parametrize("kind", BOTH)
def test_the_error_from_few_reports_is_kept_within_bounds(kind: type[MeanMechanism]) -> None:
    asked, length = kind(1.0, Interval(0, 10, 101)), 1000 / 101  # from the first cell's middle to the last one's
    one = asked.randomize([3.0], SeededForExperiments(1))
    alone = asked.estimate(asked.tally(one))
    assert alone.stderr == pytest.approx(float(asked.most_spread) ** 0.5 * length)
    agreeing = asked.estimate(asked.tally(one) + asked.tally(one))
    assert agreeing.stderr == pytest.approx((float(asked.least_spread) / 2) ** 0.5 * length)
    heavy = asked.estimate(asked.tally(one, weights=[1000]))
    assert (heavy.value, heavy.stderr) == (alone.value, alone.stderr)
    with pytest.raises(EmptyError):
        asked.estimate(asked.tally(one, weights=[0]))


def test_weights_reduce_the_effective_number_of_people() -> None:
    asked = Piecewise(1.0, Interval(0, 1))
    reports = asked.randomize(np.full(9000, 0.4), SeededForExperiments(1))
    plain = asked.estimate(asked.tally(reports), population=10**6)
    tenfold = asked.estimate(asked.tally(reports, weights=[10] * 9000))
    assert (plain.value, plain.stderr, plain.n) == (tenfold.value, tenfold.stderr, 9000)
    uneven = asked.estimate(asked.tally(reports, weights=[1] * 8900 + [1000] * 100))
    assert 8 < uneven.stderr / plain.stderr < 11  # about 118 people's worth


def test_means_of_integers_and_of_times() -> None:
    ages = simulate(Piecewise(20.0, Integers(18, 99)), [30] * 50_000 + [40] * 50_000, seed=1)
    assert ages.value == pytest.approx(35, abs=6 * ages.stderr)
    assert 0 < ages.stderr < 0.05
    day = Interval(dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 2))
    noon = simulate(Piecewise(8.0, day), [dt.datetime(2026, 3, 1, 12)] * 50_000, seed=1)
    assert abs(noon.shown - dt.datetime(2026, 3, 1, 12)) < dt.timedelta(seconds=6 * noon.stderr)
    assert noon.lineage == ("Piecewise(epsilon=8)",)


@pytest.mark.parametrize("kind", KINDS)
def test_the_declared_variance_is_the_largest_over_values(kind: Any) -> None:
    asked = kind(1.0, Interval(0, 10, 101))
    assert asked.variance(100) == pytest.approx(asked.variance(1) / 100)
    assert asked.variance(5, 2.0) == pytest.approx(asked.variance(5, 8.0))
    assert max(asked.variance(9, value) for value in np.linspace(0, 10, 101)) <= asked.variance(9) * (1 + 1e-9)
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ParameterError):
            asked.variance(bad)


# -- the hybrid --------------------------------------------------------------------------------------------------------


def test_the_hybrid_refuses_tallies_of_other_surveys() -> None:
    hybrid = HybridMean(2.0, Interval(0, 1))
    assert hybrid == HybridMean(2, Interval(0.0, 1.0))
    assert Survey.from_json(hybrid.survey.to_bytes()) == hybrid.survey
    assert hybrid.survey.layout.names == ("choice", "step", "sign")
    reports = hybrid.survey.randomize([0.2, 0.4, 0.9], SeededForExperiments(1))
    assert hybrid.read(hybrid.survey.tally(reports)).n == 3
    with pytest.raises(MismatchError):
        HybridMean(2.1, Interval(0, 1)).read(hybrid.survey.tally(reports))
    with pytest.raises(EmptyError):
        hybrid.read(hybrid.survey.tally(reports[:0]))
    with pytest.raises(ParameterError):
        HybridMean(1.0, Categories(["a", "b"]))


def test_the_hybrid_is_stochastic_rounding_where_epsilon_is_small() -> None:
    hybrid, values = HybridMean(0.5, 100), [20, 30, 40] * 100
    assert hybrid.survey == Survey(StochasticRounding(0.5, 100))
    assert simulate(hybrid, values, seed=3).value == simulate(StochasticRounding(0.5, 100), values, seed=3).value


def test_a_branch_without_reports_has_no_weight() -> None:
    hybrid = HybridMean(6.0, Interval(0, 1))
    for seed in range(9):
        mean = hybrid.read(hybrid.survey.tally(hybrid.survey.randomize([0.5], SeededForExperiments(seed))))
        assert mean.n == 1
        assert 0 < mean.stderr < 1.5


# -- two rounds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_round_asks_for_distances_to_the_mean_of_the_first(kind: Any, tmp_path: Path) -> None:
    study = TwoPhaseVariance(kind, 4.0, Interval(0, 10))
    run = StudyRun(study, tmp_path)
    asked, values = [], np.linspace(2, 6, 3000)
    while run.round is not None:
        asked.append(run.round)
        run.answer(run.round.survey.tally(run.round.survey.randomize(values, SeededForExperiments(len(asked)))))
    first, second = asked
    assert (first.people, second.people) == (Fraction(1, 2), Fraction(1, 2))
    assert all(question.guarantee.within(4.0) for question in (*first.survey.questions, *second.survey.questions))
    assert isinstance(run.result, MeanAndVariance)
    view = second.survey.questions[0].view
    assert view == SquaredDistance(Interval(0, 10), run.result.mean.value)
    assert Survey.from_json(second.survey.to_bytes()) == second.survey
    assert run.result.variance.domain == view.domain
    assert run.result.std == pytest.approx(run.result.variance.value**0.5)
    assert StudyRun(study, tmp_path).result == run.result  # a restart replays the answers


@pytest.mark.parametrize("held", [0, 9])
def test_the_mean_is_clipped_to_the_domain_before_the_second_round(held: int) -> None:
    outside = 0
    for seed in range(8):
        run = StudyRun(TwoPhaseVariance(StochasticRounding, 1.0, 10))
        assert run.round is not None
        run.answer(run.round.survey.tally(run.round.survey.randomize([held] * 50, SeededForExperiments(seed))))
        assert run.round is not None
        view = run.round.survey.questions[0].view
        assert isinstance(view, SquaredDistance)
        assert 0 <= view.centre <= 9
        outside += view.centre == held
    assert outside > 1


def test_a_negative_variance_has_no_standard_deviation() -> None:
    mean = simulate(Piecewise(1.0, 10), [3] * 100)
    negative = simulate(StochasticRounding(1.0, 10), [0] * 3, seed=1)
    assert MeanAndVariance(mean, negative).std == max(negative.value, 0.0) ** 0.5
    assert any(
        MeanAndVariance(mean, simulate(StochasticRounding(1.0, 10), [0] * 3, seed=seed)).std == 0 for seed in range(9)
    )


@pytest.mark.parametrize("kind", [Categories, "Piecewise", None, Piecewise(1.0, 5)])
def test_two_phases_refuse_other_mechanisms(kind: Any) -> None:
    with pytest.raises(ParameterError):
        TwoPhaseVariance(kind, 1.0, 10)


@pytest.mark.parametrize("length", [1e200, 1e-200])
def test_a_domain_whose_squares_overflow_is_refused(length: float) -> None:
    with pytest.raises(ParameterError, match="largest squared distance"):
        TwoPhaseVariance(Piecewise, 1.0, Interval(0, length))


# -- the vectors -------------------------------------------------------------------------------------------------------


def test_the_vectors_contain_both_bounds_and_every_kind_of_survey() -> None:
    folder = Path(__file__).resolve().parents[3] / "vectors"
    tasks = [
        vector["task"]["ask"]
        for name in ("stochastic-rounding", "piecewise")
        for vector in json.loads((folder / f"{name}.json").read_text())["surveys"]
    ]
    assert {task["kind"] for task in tasks} == {"question", "one-of"}
    views = {task["view"]["kind"] for task in tasks if task["kind"] == "question"}
    assert views == {"identity", "squared-distance"}
