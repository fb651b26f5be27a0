"""Answers about numbers over real HTTP: distributions, hierarchies as one, means; times as text; what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import jsonschema_rs
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.service.harness import FRAMED, Collector, framed, running
from tests.service.test_collector import code

from veil import GRR, Integers, Interval, OneOf, Piecewise, Public, Question, SquareWave, Survey
from veil.collector.http.openapi import document
from veil.entropy import SeededForExperiments
from veil.numeric import HaarHierarchy, Hierarchy, HybridMean, WaveDistribution
from veil.results.render.files import plain_rows
from veil.study import OneRound

YEAR = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1))
PEOPLE = 3_000


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data") as one:
        yield one


@pytest.fixture(scope="module")
def client(collector: Collector) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=collector.url, headers=collector.token("answers:read")) as one:
        yield one


def collected(collector: Collector, client: httpx.Client, asked: Survey | OneRound, held: Any, **options: Any) -> str:
    """Open a survey or a study and let people report. Returns the path of its answer."""
    path = collector.open_survey(asked, **options)
    survey = asked if isinstance(asked, Survey) else asked.survey
    sent = framed(
        survey, held, source=SeededForExperiments(1)
    )  # seeded: one smooth distribution in twenty is taken for a rough one
    answer = client.post(f"{path}/reports", content=sent, headers=FRAMED)
    assert answer.status_code == 200, answer.text
    return f"{path}/answer"


def level(client: httpx.Client, answer: str, asked: OneRound, number: int, **more: Any) -> httpx.Response:
    """One question alone of a study that reads all of them together: the bare task reads them one by one."""
    settings = [f"question={number}", *more.pop("set", [])]
    return client.post(answer, json={"study": asked.survey.to_json(), "set": settings, **more})


def valid(answer: httpx.Response, kind: str) -> Any:
    """The document of an answer of this kind, held against the published description."""
    assert answer.status_code == 200, answer.text
    schema = {"$ref": "#/components/schemas/Answer", "components": document()["components"]}
    jsonschema_rs.validator_for(schema).validate(answer.json())
    assert answer.json()["kind"] == kind
    return answer.json()


def days(people: int = PEOPLE) -> list[dt.datetime]:
    drawn = np.random.default_rng(1).beta(5, 2, people) * 365
    return [dt.datetime(2026, 1, 1) + dt.timedelta(days=float(day)) for day in drawn]


def test_a_distribution_of_times(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(SquareWave(4.0, YEAR, buckets=73))
    answer = collected(collector, client, survey, days(), minimum=PEOPLE)
    found = valid(client.get(answer), "distribution")
    assert (found["people"], found["population"], found["task"]) == (PEOPLE, PEOPLE, survey.task)
    assert [one["level"] for one in found["quantiles"]] == [0.1, 0.25, 0.5, 0.75, 0.9]
    median, truth = dt.datetime.fromisoformat(found["quantiles"][2]["value"]), sorted(days())[PEOPLE // 2]
    assert abs(median - truth) < dt.timedelta(days=20)
    assert abs(median - (truth - dt.timedelta(days=60))) > dt.timedelta(days=20)  # whoever is off by two months is seen
    assert (found["converged"], found["proper"], len(found["rows"])) == (True, True, 73)
    assert found["rows"][0]["from"] == "2026-01-01T00:00:00"
    assert found["rows"][-1]["cumulative"] == pytest.approx(1)
    assert valid(client.get(answer, params={"set": "question=0"}), "distribution") == found  # the only one
    table = pacsv.read_csv(pa.BufferReader(client.get(answer, params={"format": "csv"}).content))
    assert table.column_names == ["from", "to", "frequency", "count", "cumulative"]
    arrow = client.get(answer, params={"format": "arrow"}).content
    rows = plain_rows(pa.ipc.open_stream(arrow).read_all())
    assert rows == found["rows"]
    assert client.post(answer, json={}).json() == found


def test_a_square_wave_is_read_in_another_way(collector: Collector, client: httpx.Client) -> None:
    study = WaveDistribution(SquareWave(4.0, Interval(0, 100), buckets=32))
    held = np.random.default_rng(5).beta(2, 5, PEOPLE) * 100
    answer = collected(collector, client, study, held)
    smooth = valid(client.get(answer), "distribution")
    rough = valid(client.get(answer, params={"set": "smoothing=em"}), "distribution")
    assert smooth["lineage"][-1].startswith("EMS(")
    assert rough["lineage"][-1] == "EM"
    assert smooth["rows"] != rough["rows"]
    banded = valid(client.get(answer, params={"set": ["smoothing=em", "bands=20"], "level": "0.9"}), "distribution")
    assert banded["mean_low"] < banded["mean"] < banded["mean_high"]
    assert banded["replicates"] == 20
    # the published reading is replaced, and nothing else: the same task, the same reports
    collector.open_survey(replace(study, smoothing="em"))
    assert client.get(answer).json() == rough
    collector.open_survey(study.survey)  # a bare task says nothing about reading
    assert client.get(answer).json() == rough


def test_a_hierarchy_is_one_answer_and_levels_have_theirs(collector: Collector, client: httpx.Client) -> None:
    protocol = Hierarchy(4.0, Interval(0, 100), 64)
    held = np.random.default_rng(2).beta(2, 5, PEOPLE) * 100
    answer = collected(collector, client, protocol, held)
    found = valid(client.get(answer), "distribution")
    assert (found["proper"], len(found["rows"])) == (True, 64)
    assert abs(found["mean"] - held.mean()) < 8 < abs(found["mean"] - (100 - held.mean()))
    one = valid(level(client, answer, protocol, 0, set=["post=norm-sub"]), "frequencies")
    assert (len(one["rows"]), one["population"]) == (4, PEOPLE)
    assert one["people"] < PEOPLE
    assert code(level(client, answer, protocol, 3)) == (422, "bad-input")
    other = valid(client.get(answer, params={"set": "method=admm"}), "distribution")
    assert other["lineage"][-1] == "admm" != found["lineage"][-1]


def test_a_hierarchy_with_a_public_column(collector: Collector, client: httpx.Client) -> None:
    study = Hierarchy(4.0, Integers(0, 63), public=[Public("weight", 2)])
    held = np.random.default_rng(2).integers(0, 20, PEOPLE)
    path = collector.open_survey(study)
    body = framed(study.survey, held, public={"weight": np.arange(PEOPLE)})
    assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
    found = valid(client.get(f"{path}/answer"), "distribution")
    assert (found["people"], len(found["rows"])) == (PEOPLE, 64)
    assert abs(found["mean"] - held.mean()) < 4 < abs(found["mean"] - (63 - held.mean()))


def test_a_haar_hierarchy_has_no_quantiles(collector: Collector, client: httpx.Client) -> None:
    study = HaarHierarchy(2.0, Integers(0, 31))
    answer = collected(collector, client, study, np.arange(PEOPLE) % 5)
    found = valid(client.get(answer), "distribution")
    assert (found["proper"], found["std"], found["quantiles"], found["iterations"]) == (False, None, [], None)
    assert found["rows"][0]["from"] in (0, -0.5)
    one = valid(level(client, answer, study, 1, level=0.9), "differences")
    assert [row["pair"] for row in one["rows"]] == [0, 1]
    assert all(row["low"] < row["difference"] < row["high"] for row in one["rows"])
    csv = level(client, answer, study, 1, format="csv").text
    assert csv.splitlines()[0] == '"pair","difference","stderr","low","high"'


def test_means_of_numbers_and_times(collector: Collector, client: httpx.Client) -> None:
    held = np.random.default_rng(3).beta(2, 5, PEOPLE) * 100
    answer = collected(collector, client, Survey(Piecewise(4.0, Interval(0, 100))), held)
    found = valid(client.get(answer, params={"level": "0.999999999"}), "mean")
    assert found["low"] < held.mean() < found["high"] < 100 - held.mean()
    (row,) = pacsv.read_csv(
        pa.BufferReader(client.get(answer, params={"format": "csv", "level": "0.999999999"}).content)
    ).to_pylist()
    assert row == {name: found[name] for name in ("mean", "stderr", "low", "high")}

    study = HybridMean(4.0, YEAR)
    answer = collected(collector, client, study, days())
    found = valid(client.get(answer, params={"level": "0.999999999"}), "mean")
    seconds = [(day - dt.datetime(1970, 1, 1)).total_seconds() for day in days()]
    truth = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=sum(seconds) / PEOPLE)
    assert dt.datetime.fromisoformat(found["low"]) < truth < dt.datetime.fromisoformat(found["high"])
    assert found["people"] == PEOPLE
    assert valid(level(client, answer, study, 1), "mean")["people"] < PEOPLE


def test_what_does_not_apply_is_refused(collector: Collector, client: httpx.Client) -> None:
    domain = Integers(0, 9)
    mixed = Survey(OneOf((1, Question(SquareWave(3.0, domain))), (1, Question(GRR(3.0, domain)))))
    answer = collected(collector, client, mixed, np.arange(400) % 7, minimum=100)  # 400 is a multiple of the step
    both = valid(client.get(answer), "answers")["answers"]
    assert [(one["question"], one["kind"]) for one in both] == [(0, "distribution"), (1, "frequencies")]
    assert valid(client.get(answer, params={"set": "question=0"}), "distribution")["people"] < 400
    posted = {"set": ["question=1", "post=norm-sub"]}
    assert valid(client.get(answer, params=posted), "frequencies")["people"] < 400
    chosen = client.post(answer, json={"candidates": [3], "set": ["question=1"]})
    assert valid(chosen, "frequencies")["rows"][0]["value"] == 3
    assert code(client.post(answer, json={"candidates": [3]})) == (422, "bad-input")  # of which question?
    for post in ("auto", "norm-sub"):
        assert code(client.get(answer, params={"set": ["question=0", f"post={post}"]})) == (422, "bad-input")
    assert code(client.post(answer, json={"candidates": [3], "set": ["question=0"]})) == (422, "bad-input")
    for name in ("ALL", "all ", "0x0", "²", "2"):
        assert code(client.get(answer, params={"set": f"question={name}"})) == (422, "bad-input")

    levels = Hierarchy(3.0, Integers(0, 15))
    answer = collected(collector, client, levels, np.arange(90) % 7, minimum=91)
    assert code(client.get(answer)) == (409, "too-few-reports")
    assert code(client.post(answer, json={"candidates": [3]})) == (422, "bad-input")
    assert code(client.get(answer, params={"set": "post=auto"})) == (422, "bad-input")
    assert code(client.get(answer, params={"set": "epsilon=2"})) == (
        422,
        "foreign-survey",
    )  # people were asked otherwise
    other = Hierarchy(3.0, Integers(0, 17))
    assert code(client.post(answer, json={"study": other.survey.to_json()})) == (422, "foreign-survey")

    few = collected(collector, client, Hierarchy(3.0, Integers(0, 1023)), [5], minimum=1)
    assert code(client.get(few)) == (409, "too-few-reports")  # nobody at most of the levels

    large = collected(collector, client, Survey(SquareWave(3.0, Interval(0, 1), buckets=1 << 18)), [0.5], minimum=1)
    assert code(client.get(large)) == (422, "bad-input")
    large = collected(collector, client, Hierarchy(3.0, Interval(0, 1), 1 << 17), [0.5], minimum=1)
    assert code(client.get(large)) == (422, "bad-input")


def test_times_as_candidates_and_as_values(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(GRR(4.0, Interval(dt.date(2026, 1, 1), dt.date(2026, 1, 5), cells=4)))
    answer = collected(collector, client, survey, [dt.date(2026, 1, 2)] * 500)
    found = valid(client.get(answer), "frequencies")["rows"]
    assert [row["value"] for row in found] == [f"2026-01-0{day}T12:00:00" for day in (1, 2, 3, 4)]
    (one,) = valid(client.post(answer, json={"candidates": ["2026-01-02T12:00:00"]}), "frequencies")["rows"]
    assert {**one, "significant": None} == {**found[1], "significant": None}
    assert code(client.post(answer, json={"candidates": ["soon"]})) == (422, "bad-input")


def test_the_audit_log_says_all(collector: Collector, client: httpx.Client) -> None:
    study = HybridMean(2.0, Interval(0, 1))
    answer = collected(collector, client, study, [0.5] * 100)
    client.get(answer)
    level(client, answer, study, 0)
    token = collector.token("audit:read")
    entries = httpx.get(f"{collector.url}/v1/audit", headers=token).json()["entries"]
    mine = [one["parameters"] for one in entries if one["task"] == study.survey.task and one["action"] == "answer"]
    plain = {"set": [], "level": 0.95, "format": "json"}
    assert mine == [{**plain, "set": ["question=0"], "study": "questions"}, plain]
