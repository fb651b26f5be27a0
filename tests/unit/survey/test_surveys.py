"""Surveys: trees, tallies, joint counts, public columns, and what must not be mixed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from veil import (
    GRR,
    OLH,
    OUE,
    AllOf,
    Bits,
    Categories,
    Items,
    OneOf,
    Public,
    Question,
    Record,
    SubsetSelection,
    Survey,
    simulate,
)
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError, MismatchError, ParameterError, WireError
from veil.reports.tally import merge
from veil.view import Project, SampleItem, Segment

MIXED = Survey(
    OneOf(
        (1, Question(GRR(1.0, 300))),
        (2, Question(OLH(1.0, 300))),
        (3, AllOf(Question(OUE(0.5, 300)), Question(SubsetSelection(0.5, 300)))),
    )
)
VALUES = np.arange(30_000) % 300


def test_shares_are_kept_and_every_question_answered() -> None:
    tally = MIXED.tally(MIXED.randomize(VALUES, SeededForExperiments(1)))
    answered = [part.people for part in tally.parts]
    assert answered[2] == answered[3]
    assert sum(answered[:3]) == tally.people == 30_000
    for count, share in zip(answered, (1 / 6, 2 / 6, 3 / 6), strict=False):
        assert abs(count - 30_000 * share) < 7 * np.sqrt(30_000 * share)


def test_a_task_is_read_back_and_its_id_covers_every_parameter() -> None:
    assert Survey.from_json(MIXED.to_bytes()) == MIXED
    ids = {
        Survey(GRR(1.0, 4)).task,
        Survey(GRR(1.0, 5)).task,
        Survey(GRR(1.1, 4)).task,
        Survey(OLH(1.0, 4)).task,
        Survey(GRR(1.0, ["a", "b", "c", "d"])).task,
        Survey(GRR(1.0, 4), [Public("x")]).task,
        Survey(GRR(1.0, 4), [Public("x", scale=1)]).task,
        Survey(AllOf(Question(GRR(1.0, 4)))).task,
    }
    assert len(ids) == 8


def test_tallies_do_not_depend_on_chunks_or_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = MIXED.randomize(VALUES, SeededForExperiments(2))
    whole = MIXED.tally(reports)
    cuts = [0, 1, 999, 12_345, 30_000]
    assert merge(MIXED.tally(reports[a:b]) for a, b in pairwise(cuts)) == whole
    monkeypatch.setenv("VEIL_THREADS", "3")
    assert MIXED.tally(reports) == whole
    monkeypatch.setenv("VEIL_THREADS", "none")
    with pytest.raises(ParameterError, match="VEIL_THREADS"):
        MIXED.tally(reports)


def test_inconsistent_questions_are_refused() -> None:
    with pytest.raises(ParameterError, match="same held value"):
        Survey(OneOf((1, Question(GRR(1.0, 4))), (1, Question(GRR(1.0, 5)))))
    with pytest.raises(ParameterError, match="the view shows"):
        Question(GRR(1.0, 4), Segment(Bits(8), 0, 2))
    for shares in ((0, 1), (-1, 1), (1.5, 1)):
        with pytest.raises(ParameterError):
            OneOf(*((share, Question(GRR(1.0, 4))) for share in shares))  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        AllOf()
    with pytest.raises(ParameterError):
        OneOf()


def test_reports_and_tallies_of_another_task_are_refused() -> None:
    other = Survey(GRR(1.0, 5))
    mine = Survey(GRR(1.0, 4))
    reports = mine.randomize([0, 1, 2], SeededForExperiments(1))
    with pytest.raises(MismatchError):
        other.tally(reports)
    with pytest.raises(MismatchError):
        other.estimate(mine.tally(reports))
    with pytest.raises(MismatchError):
        _ = mine.tally(reports) + other.tally(other.randomize([1], SeededForExperiments(1)))
    with pytest.raises(EmptyError):
        mine.randomize([])
    with pytest.raises(EmptyError):
        mine.estimate(mine.tally(reports[:0]))
    with pytest.raises(EmptyError):
        merge([])


def test_joint_counts_match_a_loop() -> None:
    record = Record.of(a=3, b=4)
    asks = [Question(OLH(1.0, 3), Project(record, ("a",))), Question(SubsetSelection(1.0, 4), Project(record, ("b",)))]
    survey = Survey(AllOf(*asks))
    rng = np.random.default_rng(0)
    table = {"a": rng.integers(0, 3, 500), "b": rng.integers(0, 4, 500)}
    reports = survey.randomize(table, SeededForExperiments(4))
    weights = rng.integers(-5, 9, 500)
    joint = survey.joint(reports, {1: [3, 1], 0: [2, 0, 1]}, weights)
    assert joint.shape == (2, 3, 2, 2)
    (_, _, left), (_, _, right) = survey.parts(reports)
    a = asks[0].pure.incidence(left, np.array([2, 0, 1], dtype=np.uint64))
    b = asks[1].pure.incidence(right, np.array([3, 1], dtype=np.uint64))
    for i in range(2):
        for j in range(3):
            for s in range(2):
                for t in range(2):
                    expected = weights[(b[:, i] == s) & (a[:, j] == t)].sum()
                    assert joint[i, j, s, t] == expected
    assert np.array_equal(survey.joint(reports, {0: None})[:, 1], survey.tally(reports).parts[0].counts)


def test_joint_counts_take_only_people_who_answered_both() -> None:
    pair = AllOf(Question(GRR(1.0, 3)), Question(GRR(1.0, 3)))
    survey = Survey(OneOf((1, pair), (1, Question(GRR(1.0, 3)))))
    reports = survey.randomize(np.arange(900) % 3, SeededForExperiments(5))
    both = survey.joint(reports, {0: None, 1: None})
    answered = survey.tally(reports).parts[0].people
    assert np.all(both.sum(axis=(2, 3)) == answered)
    assert survey.joint(reports, {0: None, 2: None}).sum() == 0


def test_public_columns_are_encoded_with_the_reports() -> None:
    survey = Survey(GRR(1.0, 4), [Public("price", scale=2), Public("items")])
    public = {"price": [100, 250, -3], "items": [1, 2, 3]}
    reports = survey.randomize([0, 1, 2], SeededForExperiments(1), public)
    assert reports.columns["public.price"].tolist() == [100, 250, -3]
    weighted = survey.tally(reports, weights=reports.columns["public.price"])
    assert weighted.parts[0].weight == 347
    for wrong in (None, {"price": [1, 2, 3]}, {"price": [1.5, 2, 3], "items": [1, 2, 3]}, {"price": [1], "items": [1]}):
        with pytest.raises(InputError):
            survey.randomize([0, 1, 2], SeededForExperiments(1), wrong)
    with pytest.raises(InputError, match="no public"):
        Survey(GRR(1.0, 4)).randomize([0], SeededForExperiments(1), public)
    for bad in (("", 0), ("x", -1), ("x", 10), ("x", True)):
        with pytest.raises(ParameterError):
            Public(*bad)


def test_weights_are_integers_and_bounded() -> None:
    survey = Survey(GRR(1.0, 4))
    reports = survey.randomize([0, 1, 2], SeededForExperiments(1))
    for wrong in ([1.5, 2, 3], [1, 2], [[1, 2, 3]], [2**31, 0, 0], ["a", "b", "c"]):
        with pytest.raises(InputError):
            survey.tally(reports, weights=wrong)
    with pytest.raises(EmptyError, match="zero"):
        survey.estimate(survey.tally(reports, weights=[1, -1, 0]))


def test_weighted_estimates_are_weighted_shares() -> None:
    values = np.repeat([0, 1], [50_000, 50_000])
    weights = np.repeat([1, 9], [50_000, 50_000])
    survey = Survey(OLH(3.0, 16))
    estimate = survey.estimate(survey.tally(survey.randomize(values, SeededForExperiments(6)), weights=weights))[0]
    assert abs(estimate.frequencies[0] - 0.1) < 7 * estimate.stderr[0]
    assert abs(estimate.frequencies[1] - 0.9) < 7 * estimate.stderr[1]
    assert estimate.mass == 500_000
    assert estimate.effective < 100_000


def test_large_domains_need_candidates() -> None:
    survey = Survey(OLH(3.0, Bits(128)))
    values = [2**127 + 5] * 3_000 + [17] * 1_000
    reports = survey.randomize(values, SeededForExperiments(1))
    with pytest.raises(InputError, match="candidates"):
        survey.tally(reports)
    for wrong in ([], [5, 5]):
        with pytest.raises(InputError):
            survey.tally(reports, {0: wrong})
    found = survey.estimate(survey.tally(reports, {0: [17, 2**127 + 5, 3]}))[0]
    assert np.all(np.abs(found.frequencies - [0.25, 0.75, 0]) < 7 * found.stderr)
    assert found.top(1)[0].value == 2**127 + 5
    assert found.total([17, 3]).frequency == pytest.approx(found.frequencies[0] + found.frequencies[2])
    with pytest.raises(InputError, match="candidates"):
        found.total([99])


def test_foreign_columns_in_a_branch_are_refused() -> None:
    reports = MIXED.randomize(VALUES[:200], SeededForExperiments(3))
    columns = {name: column.copy() for name, column in reports.columns.items()}
    grr = int(np.flatnonzero(columns["choice"] == 0)[0])
    columns["seed"][grr] = 1
    with pytest.raises(WireError, match="where its question has none"):
        MIXED.tally(type(reports)(reports.task, reports.layout, columns))


def test_simulation_runs_mechanisms_and_surveys_alike() -> None:
    labels = Categories(["a", "b", "c"])
    estimate = simulate(OLH(4.0, labels), ["a"] * 900 + ["c"] * 100, seed=3)
    again = simulate(Survey(OLH(4.0, labels)), ["a"] * 900 + ["c"] * 100, seed=3)[0]
    assert np.array_equal(estimate.frequencies, again.frequencies)
    assert estimate.values == ["a", "b", "c"]
    with pytest.raises(EmptyError):
        simulate(OLH(4.0, labels), [])


def test_sampled_items_keep_their_labels_and_dummies_are_left_out() -> None:
    view = SampleItem(Items(["tea", "milk", "bread"]), 2)
    survey = Survey(Question(GRR(4.0, view.domain), view))
    reports = survey.randomize([["tea"]] * 3_000 + [["tea", "bread"]] * 1_000, SeededForExperiments(1))
    estimate = survey.estimate(survey.tally(reports))[0]
    assert estimate.values == ["tea", "milk", "bread"]
    assert [row.value for row in estimate.significant()] == ["tea", "bread"]
    some = survey.estimate(survey.tally(reports, {0: ["bread", "tea"]}))[0]
    assert some.values == ["bread", "tea"]
    assert some.frequencies.tolist() == [estimate.frequencies[2], estimate.frequencies[0]]


def test_questions_and_candidates_are_checked() -> None:
    survey = Survey(AllOf(GRR(1.0, 4), GRR(1.0, 4)))
    reports = survey.randomize([0, 1, 2], SeededForExperiments(1))
    for wrong in ({7: [1]}, [1, 2], {"0": [1]}):
        with pytest.raises(InputError, match="by question"):
            survey.tally(reports, wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="by question"):
            survey.joint(reports, wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        OneOf(Question(GRR(1.0, 4)))  # type: ignore[arg-type]
    for foreign in (["tea"], None, reports.columns):
        with pytest.raises(MismatchError):
            survey.tally(foreign)  # type: ignore[arg-type]
        with pytest.raises(MismatchError):
            survey.estimate(foreign)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a study"):
        simulate([1, 2], survey)  # type: ignore[call-overload]


def test_a_mechanism_is_accepted_as_a_question() -> None:
    assert Survey(OneOf((1, GRR(1.0, 4)), (2, OLH(1.0, 4)))) == Survey(
        OneOf((1, Question(GRR(1.0, 4))), (2, Question(OLH(1.0, 4))))
    )
