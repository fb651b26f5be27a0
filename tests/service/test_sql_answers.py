"""A table at the collector, over real HTTP: devices send reports with public columns, analysts ask in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import jsonschema_rs
import numpy as np
import pytest
from tests.service.harness import FRAMED, framed, running
from tests.service.test_collector import code

from veil import Integers, Record
from veil.collector.http.openapi import document
from veil.collector.surveys.collection import InterruptedReadingError
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import StoreError
from veil.reports.columns import Reports
from veil.results.render.files import plain_rows
from veil.sql import Category, Measure, Table

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

TABLE = Table(
    4.0,
    Record.of(age=Integers(18, 81), state=["NY", "WA"]),
    (Measure("spent", 2), Category("os", ("ios", "web", "tv"))),
)
PEOPLE = 6_000
GROUPED = "SELECT os, COUNT(*) AS n, AVG(spent) AS mean FROM people WHERE age < 50 GROUP BY os ORDER BY os"
ANSWER = f"/v1/surveys/{TABLE.survey.task}/answer"


def people() -> dict[str, Any]:
    draw = np.random.default_rng(1)
    return {
        "age": draw.integers(18, 82, PEOPLE),
        "state": draw.choice(["NY", "WA"], PEOPLE),
        "spent": draw.normal(50, 10, PEOPLE).round(2),
        "os": np.where(np.arange(PEOPLE) < 7, "tv", draw.choice(["ios", "web"], PEOPLE)),
    }


def rows() -> list[dict[str, Any]]:
    held = people()
    return [{"age": int(a), "state": str(s)} for a, s in zip(held["age"], held["state"], strict=True)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("collector") / "data") as one:
        path = one.open_survey(TABLE, minimum=20)
        sent = framed(TABLE.survey, rows(), source=SeededForExperiments(1), public=TABLE.encode_public(people()))
        answer = httpx.post(f"{one.url}{path}/reports", content=sent, headers=FRAMED)
        assert answer.status_code == 200, answer.text
        with httpx.Client(base_url=one.url, headers=one.token("answers:read"), timeout=60.0) as opened:
            yield opened


def ask(client: httpx.Client, query: str, **parameters: Any) -> httpx.Response:
    return client.get(ANSWER, params={"set": f"query={query}", **parameters})


def test_a_query_is_answered_as_from_the_reports_themselves(client: httpx.Client) -> None:
    answer = ask(client, GROUPED)
    assert answer.status_code == 200, answer.text
    schema = {"$ref": "#/components/schemas/Answer", "components": document()["components"]}
    found = answer.json()
    jsonschema_rs.validator_for(schema).validate(found)
    assert (found["kind"], found["people"], found["query"]) == ("sql", PEOPLE, GROUPED)
    reports = TABLE.survey.randomize(rows(), SeededForExperiments(1), TABLE.encode_public(people()))
    own = plain_rows(replace(TABLE, query=GROUPED).read(MemoryCollection(TABLE.survey, reports)).table())
    assert [row["os"] for row in found["rows"]] == ["ios", "tv", "web"]
    for got, made in zip(found["rows"], own, strict=True):
        if got["os"] != "tv":
            assert got == pytest.approx(made)


def test_rows_of_few_reports_are_withheld(client: httpx.Client) -> None:
    found = ask(client, GROUPED).json()
    tv = next(row for row in found["rows"] if row["os"] == "tv")
    assert (tv["n"], tv["n_stderr"], tv["mean"], tv["reports"]) == (None, None, None, 7)
    assert any("fewer than 20 reports" in remark for remark in found["remarks"])
    alone = ask(client, "SELECT COUNT(*) AS n FROM people WHERE os = 'tv' AND age < 50").json()
    assert (alone["rows"][0]["n"], alone["rows"][0]["reports"]) == (None, 7)


def test_other_forms_and_levels(client: httpx.Client) -> None:
    head, *lines = ask(client, GROUPED, format="csv", level="0.5").text.splitlines()
    assert head.startswith('"os","n","n_stderr","n_low"')
    assert len(lines) == 3


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM people WHERE agee < 3",
        "SELECT AVG(age) FROM people",
        "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
        "SELECT COUNT(*) FROM people; SELECT 1",
        "DROP TABLE people",
        "COPY people TO '/tmp/x'",
        "SELECT COUNT(*) FROM people WHERE os = (SELECT content FROM read_text('/etc/hostname'))",
        "SELECT COUNT(*) FROM people WHERE getenv('HOME') = os",
        "x" * 5_000,
    ],
)
def test_bad_queries_are_refused_by_the_collector(client: httpx.Client, query: str) -> None:
    answer = ask(client, query)
    assert code(answer) == (422, "bad-input"), answer.text


def test_a_table_is_asked_by_a_query(client: httpx.Client) -> None:
    answer = client.get(ANSWER)
    assert answer.status_code == 422
    assert "query" in answer.text


def test_too_few_people(tmp_path: Any) -> None:
    with running(tmp_path / "data") as one:
        path = one.open_survey(TABLE, minimum=7_000)
        sent = framed(TABLE.survey, rows(), source=SeededForExperiments(1), public=TABLE.encode_public(people()))
        httpx.post(f"{one.url}{path}/reports", content=sent, headers=FRAMED)
        with httpx.Client(base_url=one.url, headers=one.token("answers:read")) as client:
            assert code(ask(client, GROUPED)) == (409, "too-few-reports")


@pytest.mark.parametrize("in_memory", [0, 1 << 27])
def test_a_database_that_fails_is_not_the_querys_fault(monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    """What breaks off a reading comes out as it went in, and not as something that DuckDB could not evaluate."""
    reports = TABLE.survey.randomize(rows(), SeededForExperiments(1), TABLE.encode_public(people()))

    class Failing(MemoryCollection):
        def reports(self) -> Iterator[Reports]:
            yield reports
            raise InterruptedReadingError(StoreError("the database is down"))

    monkeypatch.setattr("veil.sql.execution.duckdb.IN_MEMORY", in_memory)
    with pytest.raises(InterruptedReadingError, match="database is down"):
        replace(TABLE, query=GROUPED).read(Failing(TABLE.survey, reports))


def test_a_plan_tells_nothing_of_public_groups(client: httpx.Client) -> None:
    found = ask(client, f"EXPLAIN {GROUPED}").json()
    assert found["kind"] == "sql-plan"
    assert [row["os"] for row in found["rows"]] == [None]
