"""Answers about joint distributions over real HTTP: devices send records, analysts ask for any marginal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.service.harness import FRAMED, Collector, framed, running
from tests.service.test_collector import code
from tests.support.commands import CliRunner

from veil import Client, Integers, Ledger, Record
from veil.cli.main import app
from veil.collector.http.openapi import document
from veil.device import verified
from veil.entropy import SeededForExperiments
from veil.errors import DomainError
from veil.marginals import CALM
from veil.results.render.files import plain_rows

PERSON = Record.of(age=["18-39", "40-64", "65+"], sex=["f", "m"], smokes=2, children=Integers(0, 3))
STUDY = CALM(4.0, PERSON, k=2, sets=2)
PEOPLE = 6_000


def people() -> list[dict[str, Any]]:
    draw = np.random.default_rng(1)
    ages, sexes = draw.integers(0, 3, PEOPLE), draw.integers(0, 2, PEOPLE)
    smokes = draw.random(PEOPLE) < 0.1 + 0.4 * ages
    codes = np.stack([ages, sexes, smokes, draw.integers(0, 4, PEOPLE)], axis=1).astype(np.uint64)
    return PERSON.decode(codes)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data") as one:
        path = one.open_survey(STUDY, minimum=PEOPLE)
        sent = framed(STUDY.survey, people(), source=SeededForExperiments(1))
        answer = httpx.post(f"{one.url}{path}/reports", content=sent, headers=FRAMED)
        assert answer.status_code == 200, answer.text
        yield one


@pytest.fixture(scope="module")
def client(collector: Collector) -> Iterator[httpx.Client]:
    scopes = collector.token("answers:read", "export:read")
    with httpx.Client(base_url=collector.url, headers=scopes) as one:
        yield one


ANSWER = f"/v1/surveys/{STUDY.survey.task}/answer"


def valid(answer: httpx.Response) -> Any:
    """The document of an answer, held against the published description."""
    assert answer.status_code == 200, answer.text
    schema = {"$ref": "#/components/schemas/Answer", "components": document()["components"]}
    jsonschema_rs.validator_for(schema).validate(answer.json())
    assert answer.json()["kind"] == "marginals"
    return answer.json()


def test_every_attribute_alone_and_any_marginal(client: httpx.Client) -> None:
    alone = valid(client.get(ANSWER))
    assert (alone["people"], alone["views"], alone["attributes"], len(alone["rows"])) == (PEOPLE, 6, 4, 11)
    found = valid(client.get(ANSWER, params={"set": "marginal=smokes,age"}))
    assert [(row["smokes"], row["age"]) for row in found["rows"][:2]] == [(0, "18-39"), (0, "40-64")]
    held = people()
    for row in found["rows"]:
        true = np.mean([(one["smokes"], one["age"]) == (row["smokes"], row["age"]) for one in held])
        assert abs(row["frequency"] - true) < 0.04
    assert found["rows"][0]["frequency"] - found["rows"][3]["frequency"] > 0.15  # who is young smokes less
    assert valid(client.post(ANSWER, json={"set": ["marginal=smokes,age"]})) == found
    within = valid(client.get(ANSWER, params={"set": ["marginal=smokes", "given=age"]}))
    assert [(row["age"], row["smokes"]) for row in within["rows"][:2]] == [("18-39", 0), ("18-39", 1)]
    assert sum(row["frequency"] for row in within["rows"]) == pytest.approx(3)
    raw = valid(client.get(ANSWER, params={"set": ["marginal=smokes,age", "inference=separate"]}))
    assert raw["rows"] != found["rows"]


def test_in_every_form(client: httpx.Client) -> None:
    asked = {"set": "marginal=smokes,age"}
    rows = valid(client.get(ANSWER, params=asked))["rows"]
    table = pacsv.read_csv(pa.BufferReader(client.get(ANSWER, params={**asked, "format": "csv"}).content))
    assert table.column_names == list(rows[0])
    assert table["age"].to_pylist() == [row["age"] for row in rows]
    arrow = client.get(ANSWER, params={**asked, "format": "arrow"}).content
    assert plain_rows(pa.ipc.open_stream(arrow).read_all()) == rows


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("marginal=smokes,income", "income"),
        ("marginal=smokes,smokes", "each named once"),
        ("marginal=", "attribute"),
        ("given=age", "given"),
        ("marginal=a\rb", "marginal"),
        ("sets=3", "what people are asked"),
        ("k=7", "from 1 to"),
        ("inference=guess", "inference"),
    ],
)
def test_what_is_refused(client: httpx.Client, setting: str, said: str) -> None:
    answer = client.get(ANSWER, params={"set": setting})
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["error"]["message"]


def test_a_marginal_with_too_many_rows_is_refused_before_it_is_worked_out(collector: Collector) -> None:
    record = Record(tuple((f"a{i}", Integers(0, 7)) for i in range(10)))
    study = CALM(4.0, record, k=2, sets=2)
    path = collector.open_survey(study, minimum=1)
    sent = framed(study.survey, [dict.fromkeys(record.names, 3)] * 20)
    with httpx.Client(base_url=collector.url, headers=collector.token("answers:read")) as one:
        assert one.post(f"{path}/reports", content=sent, headers=FRAMED).status_code == 200
        for many, status in ((6, 422), (10, 422), (2, 200)):
            names = ",".join(record.names[:many])
            answer = one.get(f"{path}/answer", params={"set": f"marginal={names}"})
            assert answer.status_code == status, answer.text
            assert many == 2 or "rows" in answer.json()["error"]["message"]


def test_a_device_answers_as_a_record(collector: Collector, client: httpx.Client) -> None:
    """From the published survey alone: it is verified, paid for once, and refused where it does not belong."""
    published = client.get(f"/v1/surveys/{STUDY.survey.task}").json()
    device = Client(verified(published, task=STUDY.survey.task), Ledger(lifetime=4.0))
    record = {"sex": "f", "smokes": 1, "age": "65+", "children": 2}
    for wrong, name in [({**record, "age": "secret"}, "age"), ({"sex": "f", "smokes": 1, "age": "65+"}, "children")]:
        with pytest.raises(DomainError, match=f"attribute '{name}'") as caught:
            device.answer(wrong)
        assert "secret" not in str(caught.value)
    report = device.answer(record)
    assert device.answer(dict(reversed(record.items()))) == report  # the same record in another order
    assert float(device.ledger.spent) == pytest.approx(4.0)


def test_an_export_and_the_operators_commands(collector: Collector, client: httpx.Client, tmp_path: Path) -> None:
    task, rows = STUDY.survey.task, valid(client.get(ANSWER, params={"set": "marginal=age,sex"}))["rows"]
    exported = tmp_path / "reports.parquet"
    exported.write_bytes(client.get(f"/v1/surveys/{task}/export").content)
    study = tmp_path / "study.json"
    study.write_bytes(STUDY.to_bytes())
    again = ran("estimate", study, exported, "--marginal", "age,sex")
    assert again["rows"] == rows
    answered = ran("survey", "answer", task, "--folder", collector.folder, "--marginal", "age,sex")
    assert answered["rows"] == rows
    shown = ran("survey", "show", task, "--folder", collector.folder)
    assert (shown["kind"], shown["questions"]) == ("calm", 6)


def ran(*command: Any) -> Any:
    done = CliRunner().invoke(app, [*map(str, command), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_too_few_people(collector: Collector) -> None:
    study = CALM(3.0, PERSON, k=2, sets=2)
    path = collector.open_survey(study, minimum=100)
    with httpx.Client(base_url=collector.url, headers=collector.token("answers:read")) as one:
        sent = framed(study.survey, people()[:99])
        assert one.post(f"{path}/reports", content=sent, headers=FRAMED).status_code == 200
        answer = one.get(f"{path}/answer", params={"set": "marginal=age,sex"})
        assert code(answer) == (409, "too-few-reports")
