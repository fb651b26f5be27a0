"""Answers about numbers over real HTTP: distributions, hierarchies as one, means; times as text; what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema_rs
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.service.harness import FRAMED, Collector, framed, running
from tests.service.test_collector import code

from veil import GRR, Integers, Interval, OneOf, Piecewise, Question, SquareWave, Survey
from veil.collector.openapi import document
from veil.numeric.haar import HaarHierarchy
from veil.numeric.hierarchy import Hierarchy
from veil.numeric.means import HybridMean

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


def collected(collector: Collector, client: httpx.Client, survey: Survey, held: Any, **options: Any) -> str:
    """Open a survey and let people report. Returns the path of its answers."""
    path = collector.open_survey(survey, **options)
    answer = client.post(f"{path}/reports", content=framed(survey, held), headers=FRAMED)
    assert answer.status_code == 200, answer.text
    return f"{path}/answers"


def valid(answer: httpx.Response, name: str) -> Any:
    """The document of an answer, held against the published description."""
    assert answer.status_code == 200, answer.text
    for kind in (name, "Answer"):
        schema = {"$ref": f"#/components/schemas/{kind}", "components": document()["components"]}
        jsonschema_rs.validator_for(schema).validate(answer.json())
    return answer.json()


def days(people: int = PEOPLE) -> list[dt.datetime]:
    drawn = np.random.default_rng(1).beta(5, 2, people) * 365
    return [dt.datetime(2026, 1, 1) + dt.timedelta(days=float(day)) for day in drawn]


def test_a_distribution_of_times(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(SquareWave(4.0, YEAR, buckets=73))
    answers = collected(collector, client, survey, days(), minimum=PEOPLE)
    found = valid(client.get(f"{answers}/0"), "Distribution")
    assert (found["kind"], found["people"], found["reports"], found["question"]) == ("distribution", PEOPLE, PEOPLE, 0)
    assert [one["level"] for one in found["quantiles"]] == [0.1, 0.25, 0.5, 0.75, 0.9]
    median, truth = dt.datetime.fromisoformat(found["quantiles"][2]["value"]), sorted(days())[PEOPLE // 2]
    assert abs(median - truth) < dt.timedelta(days=20)
    assert abs(median - (truth - dt.timedelta(days=60))) > dt.timedelta(days=20)  # whoever is off by two months is seen
    assert (found["fit"]["converged"], found["proper"], len(found["buckets"])) == (True, True, 73)
    assert found["buckets"][0]["low"] == "2026-01-01T00:00:00"
    assert found["buckets"][-1]["cumulative"] == pytest.approx(1)
    everything = valid(client.get(f"{answers}/all"), "Distribution")  # one question is all of them
    assert everything == found | {"question": "all"}
    table = pacsv.read_csv(pa.BufferReader(client.get(f"{answers}/0", params={"format": "csv"}).content))
    assert table.column_names == ["low", "high", "frequency", "count", "cumulative"]
    arrow = client.get(f"{answers}/0", params={"format": "arrow"}).content
    rows = pa.ipc.open_stream(arrow).read_all().to_pylist()
    assert rows == found["buckets"]
    assert client.post(f"{answers}/0", json={}).json() == found


def test_a_hierarchy_is_one_answer_and_levels_have_theirs(collector: Collector, client: httpx.Client) -> None:
    protocol = Hierarchy(4.0, Interval(0, 100), 64)
    held = np.random.default_rng(2).beta(2, 5, PEOPLE) * 100
    answers = collected(collector, client, protocol.survey, held)
    found = valid(client.get(f"{answers}/all"), "Distribution")
    assert (found["question"], found["proper"], len(found["buckets"])) == ("all", True, 64)
    assert abs(found["mean"] - held.mean()) < 8 < abs(found["mean"] - (100 - held.mean()))
    level = valid(client.get(f"{answers}/0", params={"post": "norm-sub"}), "Frequencies")
    assert (level["kind"], len(level["values"]), level["reports"]) == ("frequencies", 4, PEOPLE)
    assert level["people"] < PEOPLE
    assert code(client.get(f"{answers}/3")) == (404, "unknown-question")


def test_a_haar_hierarchy_has_no_quantiles(collector: Collector, client: httpx.Client) -> None:
    answers = collected(collector, client, HaarHierarchy(2.0, Integers(0, 31)).survey, np.arange(PEOPLE) % 5)
    found = valid(client.get(f"{answers}/all"), "Distribution")
    assert (found["proper"], found["std"], found["quantiles"], found["fit"]) == (False, None, [], None)
    assert found["buckets"][0]["low"] == -0.5
    level = valid(client.get(f"{answers}/1", params={"level": "0.9"}), "Differences")
    assert [row["pair"] for row in level["pairs"]] == [0, 1]
    assert all(row["low"] < row["difference"] < row["high"] for row in level["pairs"])
    csv = client.get(f"{answers}/1", params={"format": "csv"}).text
    assert csv.splitlines()[0] == '"pair","difference","stderr","low","high"'


def test_means_of_numbers_and_times(collector: Collector, client: httpx.Client) -> None:
    held = np.random.default_rng(3).beta(2, 5, PEOPLE) * 100
    answers = collected(collector, client, Survey(Piecewise(4.0, Interval(0, 100))), held)
    found = valid(client.get(f"{answers}/0", params={"level": "0.999999999"}), "Mean")
    assert found["low"] < held.mean() < found["high"] < 100 - held.mean()
    (row,) = pacsv.read_csv(
        pa.BufferReader(client.get(f"{answers}/0", params={"format": "csv", "level": "0.999999999"}).content)
    ).to_pylist()
    assert row == {name: found[name] for name in ("mean", "stderr", "low", "high")}

    answers = collected(collector, client, HybridMean(4.0, YEAR).survey, days())
    found = valid(client.get(f"{answers}/all", params={"level": "0.999999999"}), "Mean")
    seconds = [(day - dt.datetime(1970, 1, 1)).total_seconds() for day in days()]
    truth = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=sum(seconds) / PEOPLE)
    assert dt.datetime.fromisoformat(found["low"]) < truth < dt.datetime.fromisoformat(found["high"])
    assert (found["question"], found["people"]) == ("all", PEOPLE)
    assert valid(client.get(f"{answers}/1"), "Mean")["people"] < PEOPLE


def test_what_does_not_apply_is_refused(collector: Collector, client: httpx.Client) -> None:
    domain = Integers(0, 9)
    mixed = Survey(OneOf((1, Question(SquareWave(3.0, domain))), (1, Question(GRR(3.0, domain)))))
    answers = collected(collector, client, mixed, np.arange(400) % 7, minimum=150)
    assert valid(client.get(f"{answers}/0"), "Distribution")["people"] < 400
    assert valid(client.get(f"{answers}/1", params={"post": "norm-sub"}), "Frequencies")["people"] < 400
    assert valid(client.post(f"{answers}/1", json={"candidates": [3]}), "Frequencies")["values"][0]["value"] == 3
    assert code(client.get(f"{answers}/all")) == (404, "unknown-question")
    for post in ("auto", "norm-sub"):
        assert code(client.get(f"{answers}/0", params={"post": post})) == (422, "bad-input")
    assert code(client.post(f"{answers}/0", json={"candidates": [3]})) == (422, "bad-input")
    for name in ("ALL", "all ", "0x0", "²"):
        assert code(client.get(f"{answers}/{name}")) == (404, "unknown-question")

    levels = Hierarchy(3.0, Integers(0, 15)).survey
    answers = collected(collector, client, levels, np.arange(90) % 7, minimum=91)
    assert code(client.get(f"{answers}/all")) == (409, "too-few-reports")
    assert code(client.post(f"{answers}/all", json={"candidates": [3]})) == (422, "bad-input")
    assert code(client.get(f"{answers}/all", params={"post": "auto"})) == (409, "too-few-reports")

    few = collected(collector, client, Hierarchy(3.0, Integers(0, 1023)).survey, [5], minimum=1)
    assert code(client.get(f"{few}/all")) == (409, "too-few-reports")  # nobody at most of the levels

    large = collected(collector, client, Survey(SquareWave(3.0, Interval(0, 1), buckets=1 << 18)), [0.5], minimum=1)
    assert code(client.get(f"{large}/0")) == (422, "bad-input")
    large = collected(collector, client, Hierarchy(3.0, Interval(0, 1), 1 << 17).survey, [0.5], minimum=1)
    assert code(client.get(f"{large}/all")) == (422, "bad-input")


def test_times_as_candidates_and_as_values(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(GRR(4.0, Interval(dt.date(2026, 1, 1), dt.date(2026, 1, 5), cells=4)))
    answers = collected(collector, client, survey, [dt.date(2026, 1, 2)] * 500)
    found = valid(client.get(f"{answers}/0"), "Frequencies")["values"]
    assert [row["value"] for row in found] == [f"2026-01-0{day}T12:00:00" for day in (1, 2, 3, 4)]
    (one,) = valid(client.post(f"{answers}/0", json={"candidates": ["2026-01-02T12:00:00"]}), "Frequencies")["values"]
    assert one == found[1]
    assert code(client.post(f"{answers}/0", json={"candidates": ["soon"]})) == (422, "bad-input")


def test_the_audit_log_says_all(collector: Collector, client: httpx.Client) -> None:
    survey = HybridMean(2.0, Interval(0, 1)).survey
    answers = collected(collector, client, survey, [0.5] * 100)
    client.get(f"{answers}/all")
    token = collector.token("audit:read")
    entries = httpx.get(f"{collector.url}/v1/audit", headers=token).json()["entries"]
    mine = [entry["parameters"] for entry in entries if entry["task"] == survey.task and entry["action"] == "answer"]
    assert mine == [{"question": "all", "post": "none", "level": 0.95, "format": "json"}]
