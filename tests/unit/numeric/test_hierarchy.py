"""Hierarchies as they are used: domains, options, refusals, recognition by survey, the wire, and asking once more."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from veil import GRR, OLH, Categories, Integers, Interval, OneOf, Survey, simulate
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError, MismatchError, ParameterError
from veil.histogram import Questions
from veil.mechanisms import HaarResponse
from veil.numeric.hierarchy import HaarHierarchy, Hierarchy, LevelStudy
from veil.study import study_from_json
from veil.survey import SurveyTally
from veil.wire.tallies import decode_tally, encode_tally

KINDS = (Hierarchy, HaarHierarchy)
Kind = type[Hierarchy] | type[HaarHierarchy]


def tally_of(protocol: LevelStudy, values: Any, seed: int = 1) -> SurveyTally:
    return protocol.survey.tally(protocol.survey.randomize(values, SeededForExperiments(seed)))


# -- domains -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_interval_is_cut_into_buckets(kind: Kind) -> None:
    protocol = kind(1.0, Interval(0.0, 50.0), buckets=10)
    assert protocol == kind(1.0, Interval(0.0, 50.0, cells=7), buckets=10)
    assert hash(protocol) == hash(kind(1, Interval(0, 50), buckets=np.int64(10)))
    assert protocol != kind(1.0, Interval(0.0, 50.0), buckets=11)
    assert protocol.domain == Interval(0.0, 50.0, cells=10)
    assert kind(1.0, Interval(0.0, 50.0)).buckets == 1024
    found = simulate(kind(4.0, Interval(0.0, 50.0), buckets=10), np.repeat([12.0, 44.0], 20_000), seed=1)
    assert found.edges.tolist() == [5.0 * i for i in range(11)]
    assert np.argsort(found.masses)[-2:].tolist() in ([2, 8], [8, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_their_own_buckets(kind: Kind) -> None:
    ages = Integers(18, 99)
    protocol = kind(1.0, ages)
    assert protocol.buckets == 82
    assert protocol == kind(1.0, ages, buckets=82)
    assert kind(1.0, 7) == kind(1.0, Integers(0, 6))
    found = simulate(kind(4.0, ages), [30] * 20_000 + [31] * 20_000, seed=2)
    assert found.domain == ages
    assert found.range(30, 31) == pytest.approx(1, abs=0.1)
    with pytest.raises(ParameterError, match="leave `buckets` out"):
        kind(1.0, ages, buckets=64)


@pytest.mark.parametrize("kind", KINDS)
def test_domains_of_times(kind: Kind) -> None:
    year = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))
    values = [dt.datetime(2026, 3, 1, 12)] * 20_000
    found = simulate(kind(4.0, year, buckets=12), values, seed=1)
    assert found.masses.argmax() == 1
    assert found.range(dt.datetime(2026, 1, 31), dt.datetime(2026, 3, 3)) > 0.8
    assert study_from_json(kind(4.0, year, buckets=12).to_bytes()) == kind(4.0, year, buckets=12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("buckets", [2, 3, 5, 17, 100, 1000])
def test_any_number_of_buckets_is_accepted(kind: Kind, buckets: int) -> None:
    """Over the wire, a chunk of people at a time: simulate does both."""
    protocol = kind(3.0, Interval(0.0, 1.0), buckets=buckets)
    values = np.random.default_rng(1).beta(5, 2, 70_000)
    found = simulate(protocol, values, seed=1)
    assert len(found) == buckets
    assert found.masses.sum() == pytest.approx(1)
    middle = protocol.domain.edges(buckets // 2)
    assert found.range(0.0, float(middle)) == pytest.approx(np.mean(values < middle), abs=0.05)


@pytest.mark.parametrize("branching", [2, 3, 4, 5, 64])
@pytest.mark.parametrize("buckets", [2, 5, 17, 100])
def test_any_branching_is_accepted(buckets: int, branching: int) -> None:
    protocol = Hierarchy(3.0, buckets, branching=branching)
    values = np.random.default_rng(1).binomial(buckets - 1, 0.3, 40_000)
    tally = tally_of(protocol, values)
    truth = np.bincount(values, minlength=buckets) / len(values)
    levels = protocol.levels(tally)
    assert [len(level) for level in levels] == list(protocol.tree.sizes[1:])
    assert [level.population for level in levels] == [40_000] * len(levels)
    assert sum(level.n for level in levels) == 40_000
    for level, nodes in zip(levels, protocol.tree.sums(truth)[1:], strict=True):
        assert np.abs((level.frequencies - nodes) / level.stderr).max() < 5
    for method in ("exact", "admm", "consistent"):
        found = replace(protocol, method=method).read(tally).masses
        assert np.abs(np.cumsum(found) - np.cumsum(truth)).max() < 0.08


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("domain", "buckets"),
    [
        (Interval(0.0, 1.0), 1),
        (Interval(0.0, 1.0), 0),
        (Interval(0.0, 1.0), 2.5),
        (Interval(0.0, 1.0), 2**24 + 1),
        (Integers(3, 3), None),
        (Integers(0, 2**24), None),
        (1, None),
        (0, None),
        (True, None),
        ("ages", None),
        (Categories(["a", "b"]), None),
        (5, True),
    ],
)
def test_bad_domains_are_refused(kind: Kind, domain: Any, buckets: Any) -> None:
    with pytest.raises(ParameterError):
        kind(1.0, domain, buckets)


def test_bad_parameters_are_refused() -> None:
    for epsilon in (0.0, -1.0, float("nan"), "much"):
        with pytest.raises(ParameterError):
            Hierarchy(epsilon, 10)  # type: ignore[arg-type]
    for branching in (1, 0, 2.5, True):
        with pytest.raises(ParameterError):
            Hierarchy(1.0, 10, branching=branching)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        Hierarchy(1.0, 10).branching = 3  # type: ignore[misc]
    with pytest.raises(DomainError) as refused:
        simulate(Hierarchy(1.0, Integers(0, 9)), [987_654_321])
    assert "987" not in str(refused.value)


# -- the survey --------------------------------------------------------------------------------------------------------


def test_each_level_is_asked_through_the_better_oracle() -> None:
    protocol = Hierarchy(1.0, Interval(0.0, 1.0))
    assert isinstance(protocol.survey.ask, OneOf)
    assert [share for share, _ in protocol.survey.ask.branches] == [1] * 5
    asked = [question.pure for question in protocol.survey.questions]
    assert [(oracle.name, oracle.domain.size) for oracle in asked] == [
        ("GRR", 4),
        ("OLH", 16),
        ("OLH", 64),
        ("OLH", 256),
        ("OLH", 1024),
    ]
    for oracle in asked:
        rival = (OLH if oracle.name == "GRR" else GRR)(1.0, oracle.domain)
        assert oracle.variance(1) <= rival.variance(1)
    every = {question.pure.name for question in Hierarchy(30.0, Interval(0.0, 1.0)).survey.questions}
    assert every == {"GRR"}  # where OLH's hash range would not fit
    halves = HaarHierarchy(1.0, 20).survey.questions
    assert [type(question.mechanism) for question in halves] == [HaarResponse] * 5


@pytest.mark.parametrize(
    "protocol",
    [
        Hierarchy(1.0, 2),
        Hierarchy(0.1, Interval(-1.5, 3.25), buckets=100, branching=5),
        Hierarchy(2.0, Integers(18, 99), branching=3),
        HaarHierarchy(1.0, 2),
        HaarHierarchy(0.7, Interval(0.0, 1.0)),
    ],
    ids=repr,
)
def test_a_study_is_read_back_from_its_file(protocol: LevelStudy) -> None:
    read = study_from_json(protocol.to_bytes())
    assert read == protocol
    assert type(read) is type(protocol)
    assert Survey.from_json(protocol.survey.to_bytes()) == protocol.survey
    assert study_from_json(protocol.survey.to_bytes()) == Questions(protocol.survey)  # a bare task says no more


# -- tallies and options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_tallies_are_refused(kind: Kind) -> None:
    protocol, other = kind(1.0, 20), kind(1.1, 20)
    tally = tally_of(protocol, np.arange(2000) % 20)
    for wrong in (tally_of(other, np.arange(2000) % 20), tally.parts[0], None, [tally]):
        with pytest.raises(MismatchError):
            protocol.read(wrong)  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match="levels"):
        protocol.read(replace(tally, parts=tally.parts[1:]))
    bare = replace(tally.parts[1], counts=tally.parts[1].counts[:-1])
    with pytest.raises(MismatchError):
        protocol.read(replace(tally, parts=(tally.parts[0], bare, *tally.parts[2:])))


def test_a_tally_of_candidates_is_refused() -> None:
    protocol = Hierarchy(1.0, 20)
    reports = protocol.survey.randomize(np.arange(2000) % 20, SeededForExperiments(1))
    with pytest.raises(MismatchError, match="all buckets"):
        protocol.read(protocol.survey.tally(reports, {0: [0, 1]}))
    halves = HaarHierarchy(1.0, 20)
    with pytest.raises(InputError, match="no candidates"):
        halves.survey.tally(halves.survey.randomize([1] * 50, SeededForExperiments(1)), {0: [0, 1]})


@pytest.mark.parametrize("kind", KINDS)
def test_the_message_names_a_level_without_reports(kind: Kind) -> None:
    protocol = kind(1.0, 300)
    tally = tally_of(protocol, [0])
    asked = next(level for level, part in enumerate(tally.parts, start=1) if part.people)
    first = 2 if asked == 1 else 1
    with pytest.raises(EmptyError, match=f"level {first} of {protocol.tree.height}"):
        protocol.levels(tally)


def test_every_option_gives_a_distribution() -> None:
    protocol = Hierarchy(1.0, Interval(0.0, 1.0), buckets=64)
    tally = tally_of(protocol, np.random.default_rng(1).beta(2, 8, 20_000))
    made = {
        "exact": protocol.read(tally),
        "exact, weighted": replace(protocol, method="exact", weighted=True).read(tally),
        "admm": replace(protocol, method="admm").read(tally),
        "admm, weighted": replace(protocol, method="admm", weighted=True).read(tally),
        "consistent": replace(protocol, method="consistent").read(tally),
        "consistent, total 1": replace(protocol, method="consistent", total=1.0).read(tally),
    }
    for how, found in made.items():
        assert found.lineage == ("Hierarchy(epsilon=1, branching=4)", how)
        assert (found.n, found.population) == (20_000, 20_000)
        assert found.proper == how.startswith(("exact", "admm"))
        assert (found.fit is not None) == how.startswith("admm")
    assert made["consistent"].masses.min() < 0
    assert made["consistent"].masses.sum() != pytest.approx(1, abs=1e-6)
    assert made["consistent, total 1"].masses.sum() == pytest.approx(1, abs=1e-12)
    for method, options in (
        ("best", {}),
        ("consistent", {"weighted": True}),
        ("exact", {"total": 1.0}),
        ("admm", {"total": 0.5}),
        ("consistent", {"total": float("nan")}),
    ):
        with pytest.raises(ParameterError):
            replace(protocol, method=method, **options).read(tally)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_add_up_and_are_read_back(kind: Kind) -> None:
    protocol = kind(1.0, 50)
    survey = protocol.survey
    reports = survey.randomize(np.arange(5000) % 50, SeededForExperiments(1))
    whole = survey.tally(reports)
    assert survey.tally(reports[:1234]) + survey.tally(reports[1234:]) == whole
    again = decode_tally(survey, encode_tally(whole))
    assert protocol.read(again).masses.tolist() == protocol.read(whole).masses.tolist()


def test_weights_change_a_distribution() -> None:
    """A person with weight 3 counts three times."""
    protocol = Hierarchy(4.0, 8)
    reports = protocol.survey.randomize([1] * 20_000 + [6] * 20_000, SeededForExperiments(1))
    tally = protocol.survey.tally(reports, weights=[3] * 20_000 + [1] * 20_000)
    assert protocol.read(tally).masses[[1, 6]] == pytest.approx([0.75, 0.25], abs=0.05)


# -- coefficients ------------------------------------------------------------------------------------------------------


def test_rows_and_errors_of_coefficients() -> None:
    asked = HaarResponse(4.0, 5)
    values = [0] * 8000 + [1] * 2000 + [3] * 6000 + [4] * 4000
    found = simulate(asked, values, seed=1)
    assert found.differences == pytest.approx([0.3, -0.3, 0.2], abs=0.05)
    table = found.table()
    assert table.column_names == ["pair", "difference", "stderr", "low", "high"]
    assert table["pair"].to_pylist() == [0, 1, 2]
    assert np.allclose(found.stderr**2, (found.moment - found.differences**2) / 20_000)
    assert np.all(found.interval(0.99)[:, 0] < found.interval()[:, 0])
    assert repr(found) == "Coefficients(3 pairs from 20000 reports, HaarResponse(epsilon=4))"
    alone = simulate(HaarResponse(40.0, 2), [1], seed=1)  # a difference of -1 with next to no noise
    assert alone.differences == pytest.approx([-1.0])
    assert (alone.variance >= 0).all()


def test_haar_response_refuses_bad_parameters() -> None:
    with pytest.raises(ParameterError):
        HaarResponse(1.0, 2**24 + 1)
    asked, other = HaarResponse(1.0, 40), HaarResponse(1.1, 40)
    reports = asked.randomize([1, 2, 3], SeededForExperiments(1))
    for wrong in (lambda: other.tally(reports), lambda: other.estimate(asked.tally(reports))):
        with pytest.raises(MismatchError):
            wrong()
    with pytest.raises(EmptyError):
        asked.estimate(asked.tally(reports[:0]))
    with pytest.raises(EmptyError, match="zero"):
        asked.estimate(asked.tally(reports, weights=[1, 1, -2]))
    with pytest.raises(InputError, match="no candidates"):
        asked.tally(reports, [1, 2])


def test_haar_tallies_add_up_with_exact_weights() -> None:
    asked = HaarResponse(1.0, 40)
    reports = asked.randomize(np.arange(500) % 40, SeededForExperiments(3))
    weights = np.arange(500) % 4 - 1
    by_hand = sum(int(w) * asked.tally(reports[i : i + 1]).counts for i, w in enumerate(weights))
    assert (asked.tally(reports, weights=weights).counts == by_hand).all()
    assert asked.tally(reports[:200]) + asked.tally(reports[200:]) == asked.tally(reports)
    assert [HaarResponse(1.0, size).layout.size for size in (2, 256, 257, 2**16, 2**16 + 1)] == [1, 1, 2, 2, 4]
