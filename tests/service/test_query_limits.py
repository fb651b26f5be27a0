"""A query that needs too much is refused before it starts or stopped while it runs, and posts go on meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.service.harness import FRAMED, framed

from veil import OLH, Integers, Interval, Record, SquareWave, Text
from veil.collector.http.app import App
from veil.collector.keys_and_tokens import SCOPES, issue_token
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, LimitError
from veil.histogram import Histogram
from veil.hitters import PEM
from veil.marginals import CALM
from veil.numeric import WaveDistribution
from veil.sql import Measure, Table
from veil.sql.execution.costs import Cost
from veil.tools.limits import Limits, limited

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

TABLE = Table(4.0, Record.of(age=Integers(0, 299), salary=Integers(0, 299)), (Measure("spent"),))
PEOPLE = 300
SUMS = 400


def long_text(i: int) -> str:
    """A text of up to 57,000 bytes for each person."""
    return f"replace(spent || '{i}{'x' * 100}', 'x', '{'y' * 200}')"


def is_long(i: int) -> str:
    return f"{long_text(i)} > 'z'"


LONG_TEXTS = {
    "sums": f"SELECT {', '.join(f'SUM(length({long_text(i)})) AS s{i}' for i in range(40))} FROM people",  # noqa: S608
    "conditions": f"SELECT COUNT(*) FROM people WHERE {' OR '.join(map(is_long, range(40)))}",  # noqa: S608
    "keys": f"SELECT {long_text(0)} AS k, COUNT(*) AS n FROM people GROUP BY k",  # noqa: S608
}
GROUPS = "SELECT age, salary, COUNT(*) AS n, AVG(spent) AS mean FROM people GROUP BY age, salary"


def sums(many: int) -> str:
    return f"SELECT {', '.join(f'SUM(spent + {i}) AS s{i}' for i in range(many))} FROM people WHERE age < 50"  # noqa: S608


def body(seed: int) -> bytes:
    draw = np.random.default_rng(seed)
    ages, salaries = draw.integers(0, 300, (2, PEOPLE)).tolist()
    held = [{"age": a, "salary": s} for a, s in zip(ages, salaries, strict=True)]
    return framed(TABLE.survey, held, source=SeededForExperiments(seed), public={"spent": draw.integers(0, 99, PEOPLE)})


@asynccontextmanager
async def collector(
    folder: Path, study: Any = TABLE, sent: bytes = b"", **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a collector in this process, with a study open and some people's reports."""
    service = Service(CollectorSettings(folder=str(folder), minimum=10, **settings))
    _, secret = issue_token(service.store, tuple(SCOPES), None)
    await service.start()
    try:
        transport, headers = httpx.ASGITransport(App(service)), {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://collector", headers=headers) as client:
            document = {"survey": json.loads(study.to_bytes())}
            assert (await client.post("/v1/surveys", json=document)).status_code == 201
            assert (await client.post(f"/v1/surveys/{study.survey.task}/open")).status_code == 200
            path = f"/v1/surveys/{study.survey.task}/reports"
            assert (await client.post(path, content=sent or body(1), headers=FRAMED)).status_code == 200
            yield client
    finally:
        await service.stop()


async def post(client: httpx.AsyncClient, seed: int) -> httpx.Response:
    return await client.post(f"/v1/surveys/{TABLE.survey.task}/reports", content=body(seed), headers=FRAMED)


async def ask(client: httpx.AsyncClient, query: str) -> httpx.Response:
    path = f"/v1/surveys/{TABLE.survey.task}/answer"
    return await client.post(path, json={"set": [f"query={query}"]}, timeout=None)


def refusal(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 422, answer.text
    error: dict[str, str] = answer.json()["error"]
    assert error["code"] == "over-limit"
    return error


def test_a_query_over_the_limit_is_refused_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: Any) -> None:
        raise AssertionError("weights were added up")

    monkeypatch.setattr("veil.sql.execution.sums.Grams.add", never)

    async def refused() -> None:
        async with collector(tmp_path / "data", query_megabytes=200, query_seconds=60) as client:
            error = refusal(await ask(client, sums(SUMS)))
            assert "this query needs about" in error["message"]
            assert "400 sums, 400 outputs and 1 group of 300 reports" in error["message"]
            assert "at most 200 MB and 60 s (query_megabytes, query_seconds)" in error["expected"]
            assert "sums at once would fit" in error["expected"]
            assert (await post(client, 2)).status_code == 200
            plan = (await ask(client, f"EXPLAIN {sums(SUMS)}")).json()
            assert plan["megabytes"] > 200
            assert (await ask(client, "SELECT COUNT(*) AS n FROM people")).status_code == 200

    asyncio.run(refused())


@pytest.mark.parametrize("query", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_long_texts_are_refused_before_they_are_made(query: str, tmp_path: Path) -> None:
    """DuckDB's memory limit does not count them: queries of a few kilobytes took gigabytes."""

    async def refused() -> None:
        async with collector(tmp_path / "data", query_megabytes=100) as client:
            assert "this query needs about" in refusal(await ask(client, query))["message"]
            assert (await ask(client, "SELECT COUNT(*) AS n FROM people")).status_code == 200

    asyncio.run(refused())


def test_a_query_that_runs_too_long_is_stopped_and_posts_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cost, "seconds", 0.0)  # it is taken for a short one; it takes minutes

    async def stopped() -> None:
        async with collector(tmp_path / "data", query_seconds=1, query_megabytes=10_000) as client:
            asked = asyncio.create_task(ask(client, GROUPS))
            answers = []
            while not asked.done():
                answers.append(await post(client, 2 + len(answers)))
            error = refusal(await asked)
            assert "longer than 1 seconds and was stopped" in error["message"]
            assert len(answers) >= 2
            assert {answer.status_code for answer in answers} == {200}
            assert (await ask(client, "SELECT COUNT(*) AS n FROM people")).status_code == 200

    asyncio.run(stopped())


def test_what_fits_is_answered(tmp_path: Path) -> None:
    """As many sums as a refusal says are answered within the same limit."""

    async def fits() -> None:
        async with collector(tmp_path / "data", query_megabytes=200) as client:
            expected = refusal(await ask(client, sums(SUMS)))["expected"]
            most = int(expected.partition("query_seconds): ")[2].split()[0])
            assert 20 < most < 400
            answer = await ask(client, sums(most))
            assert answer.status_code == 200, answer.text

    asyncio.run(fits())


READINGS = {
    "candidates": (Histogram(OLH(2.0, Text(8))), [f"w{i % 7}" for i in range(PEOPLE)], ["candidates"]),
    "bands": (WaveDistribution(SquareWave(2.0, Interval(0, 1))), [i / PEOPLE for i in range(PEOPLE)], ["bands=1000"]),
    "joint": (
        CALM(4.0, Record.of(a=4, b=4, c=4), k=2, users=PEOPLE, sets=2),
        [{"a": i % 4, "b": i % 3, "c": i % 2} for i in range(PEOPLE)],
        ["marginal=a,b,c"],
    ),
    "search": (PEM(4.0, Text(4), k=2), [f"w{i % 7}" for i in range(PEOPLE)], []),
}


@pytest.mark.parametrize("name", READINGS)
def test_other_readings_are_refused_before_they_start(name: str, tmp_path: Path) -> None:
    study, held, chosen = READINGS[name]
    asked = {"candidates": [f"w{i}" for i in range(20_000)]} if chosen == ["candidates"] else {"set": chosen}
    sent = framed(study.survey, held, source=SeededForExperiments(1))

    async def refused() -> None:
        limits = {"query_seconds": 1, "query_megabytes": 100_000 if name == "bands" else 1}
        async with collector(tmp_path / "data", study, sent, **limits) as client:
            path = f"/v1/surveys/{study.survey.task}"
            error = refusal(await client.post(f"{path}/answer", json=asked, timeout=None))
            assert "needs about" in error["message"]
            assert "(query_megabytes, query_seconds): fewer" in error["expected"]
            again = framed(study.survey, held, source=SeededForExperiments(2))
            assert (await client.post(f"{path}/reports", content=again, headers=FRAMED)).status_code == 200

    asyncio.run(refused())


@pytest.mark.parametrize("name", READINGS)
def test_other_readings_look_whether_they_are_to_stop(name: str) -> None:
    study, held, chosen = READINGS[name]
    made = study.survey.randomize(held, SeededForExperiments(1))
    if "=" in "".join(chosen):
        study = study.changed(**dict(one.split("=") for one in chosen))
    elif chosen:
        study = study.with_candidates([f"w{i}" for i in range(9)])
    study.read(MemoryCollection(study.survey, made)).table(0.95)  # without a limit it ends

    def stop() -> None:
        raise LimitError("it was stopped", "less work")

    with limited(Limits(10_000, 10**6, stop)), pytest.raises(LimitError, match="it was stopped"):
        study.read(MemoryCollection(study.survey, made)).table(0.95)


@pytest.mark.parametrize("name", ["query_megabytes", "query_seconds"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 1"):
        CollectorSettings(**{name: 0})
