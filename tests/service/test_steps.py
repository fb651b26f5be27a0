"""Answers, exports and numbers of reports go in steps: polling them around single posts says nothing of a report."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running
from tests.service.reports import group

from veil import GRR, OLH, Survey
from veil.collector.http.routes import get_metrics
from veil.collector.keys_and_tokens import load_key
from veil.collector.monitoring.metrics import Metrics
from veil.collector.service import Service, open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store.base import Group, StoredSurvey
from veil.collector.store.blocks import BlockStore
from veil.collector.surveys.answers import AnswerRequest, prepare
from veil.collector.surveys.catalogue import Catalogue, _signed, draft_of, key_text, published, unsigned
from veil.collector.surveys.collection import catch_up
from veil.collector.surveys.rounds import RunningStudies
from veil.device.ledger import Ledger
from veil.device.online import open_client
from veil.device.verification import PURPOSE, read_published, verified
from veil.entropy import SeededForExperiments
from veil.errors import ServiceError, StoreError, WireError
from veil.itemsets import SVIM
from veil.tools.json_documents import canonical, digest, parse_json

LISTED = Survey(GRR(1.0, ["water", "tea", "milk"]))
GRR_4 = Survey(GRR(1.0, ["water", "tea", "milk", "juice"]))
OLH_3, OLH_5 = Survey(OLH(1.0, 3)), Survey(OLH(1.0, 5))
ASKED = Survey(OLH(1.0, 7))
OPEN = Survey(OLH(1.0, 2**20))  # of a domain for which no tally is kept
STEP = 10
NOW = 1_000_000_000
STEPPED = ("veil_reports_total", "veil_requests_total", "veil_request_seconds", "veil_commit_seconds", "veil_queue")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("steps"), VEIL_TALLY_SECONDS="0.05") as one:
        yield one


def seen(collector: Collector, path: str, headers: dict[str, str], candidates: list[int] | None) -> dict[str, Any]:
    """All that a token with every scope is shown, but for what changes with each request of the token's own."""
    found: dict[str, Any] = {}
    with httpx.Client(base_url=collector.url, headers=headers, timeout=LIMIT) as client:
        asked = {"candidates": candidates} if candidates else {}
        for name, answer in (
            ("answer", client.post(f"{path}/answer", json=asked)),
            ("level", client.post(f"{path}/answer", json={**asked, "level": 0.5, "format": "csv"})),
            ("export", client.get(f"{path}/export")),
            ("state", client.get(f"{path}/state")),
            ("surveys", client.get("/v1/surveys")),
        ):
            kept = {k: v for k, v in answer.headers.items() if k not in ("date", "content-length")}
            body: Any = answer.text if name != "export" else None
            if name == "export" and answer.status_code == 200:
                table = pq.read_table(io.BytesIO(answer.content))
                body = sorted(map(str, table.to_pylist()))
            found[name] = (answer.status_code, kept, body)
        lines = client.get("/metrics").text.splitlines()
        found["metrics"] = [line for line in lines if line.startswith("veil_survey")]
    return found


def polled(collector: Collector, survey: Survey, step: int, candidates: list[int] | None = None) -> list[bool]:
    """Whether what a token sees is the same before and after each of 2 * STEP single posts."""
    path = collector.open_survey(survey, minimum=3, step=step)
    headers = collector.token()
    before, same = seen(collector, path, headers, candidates), []
    for _ in range(2 * STEP):
        body = framed(survey, [1] if survey is OPEN else ["water"])
        assert httpx.post(f"{collector.url}{path}/reports", content=body, headers=FRAMED).status_code == 200
        after = seen(collector, path, headers, candidates)
        same.append(after == before)
        before = after
    return same


@pytest.mark.parametrize("kind", ["tally", "reports"])
def test_polling_around_single_posts_shows_only_steps(collector: Collector, kind: str) -> None:
    survey, candidates = (LISTED, None) if kind == "tally" else (OPEN, [1, 2, 3])
    assert polled(collector, survey, STEP, candidates) == [i % STEP != 0 for i in range(1, 2 * STEP + 1)]
    headers = collector.token()
    answer = seen(collector, f"/v1/surveys/{survey.task}", headers, candidates)["answer"]
    assert (answer[0], json.loads(answer[2])["people"]) == (200, 2 * STEP)
    for line in httpx.get(f"{collector.url}/metrics", headers=headers, timeout=LIMIT).text.splitlines():
        if line.startswith(STEPPED) and "_sum" not in line:
            assert int(line.split()[-1]) % STEP == 0, line


def test_without_steps_polling_shows_each_report(collector: Collector) -> None:
    """The rival, and what there was before: a step of one report."""
    assert polled(collector, GRR_4, 1) == [False] * (2 * STEP)


def test_the_end_is_a_mark_too(collector: Collector) -> None:
    for survey, until_ in ((OLH_3, None), (OLH_5, "2020-01-01T00:00:00Z")):
        options = {} if until_ is None else {"closes": "2999-01-01T00:00:00Z"}
        path, headers = collector.open_survey(survey, minimum=2, step=STEP, **options), collector.token()
        for count in (7, 8):
            body = framed(survey, [1] * count)
            assert httpx.post(f"{collector.url}{path}/reports", content=body, headers=FRAMED).status_code == 200
        before = seen(collector, path, headers, None)
        assert json.loads(before["answer"][2])["people"] == STEP
        assert json.loads(before["state"][2])["reports"] == STEP
        assert len(before["export"][2]) == STEP
        with httpx.Client(base_url=collector.url, headers=headers, timeout=LIMIT) as client:
            if until_ is None:
                assert client.post(f"{path}/close").json()["reports"] == 15
            else:
                store = open_store(collector.settings)
                with store.writing() as connection:  # type: ignore[attr-defined]
                    connection.execute("UPDATE surveys SET closes = 1577836800 WHERE task = ?", (survey.task,))
                store.close()
            until(lambda path=path, client=client: client.get(f"{path}/answer").json().get("people") == 15)
            assert len(seen(collector, path, headers, None)["export"][2]) == 15


def test_the_mark_is_the_same_for_several_collectors_and_after_a_restart(make: Callable[[], BlockStore]) -> None:
    one, two = make(), make()
    stored = draft(one, SURVEY, step=7)
    sent = b""
    for count in (1, 1, 4, 3, 20, 8):
        ids = os.urandom(16 * count)
        # of ids that were there before, none counts
        assert one.append([group(stored, ids + sent)], NOW) == [count]
        sent += ids
        assert two.append([group(stored, sent)], NOW) == [0]
        wanted = len(sent) // 16 // 7 * 7
        three = make()
        for store in (one, two, three):
            now = store.survey(stored.key)
            assert (now.mark, now.reports) == (wanted, len(sent) // 16)
            assert store.marks() == [(SURVEY.task, wanted, 7)]
            tally = catch_up(store, now, SURVEY)
            assert (0 if tally is None else tally.people) == wanted
            assert store.behind() == []
    assert one.move(stored.key, "open", "closed", NOW)
    assert two.survey(stored.key).mark == 37
    assert two.behind() == [stored.key]
    catch_up(two, stored, SURVEY)
    assert one.purge(stored.key) == 37
    assert two.survey(stored.key).mark == 37


def test_queries_count_up_to_the_mark(make: Callable[[], BlockStore]) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    from veil import Integers, Record
    from veil.sql import Table

    table = Table(4.0, Record.of(age=Integers(18, 81)), ())
    store = make()
    studies, catalogue = RunningStudies(store, Catalogue(store)), Catalogue(store)
    made, _ = studies.publish(table, {"minimum": 5}, precision=86_400, minimum=5)
    catalogue.open(made.task)
    rows = [{"age": 40}] * 23
    payloads = table.survey.randomize(rows, SeededForExperiments(1)).to_bytes()
    size = table.survey.layout.size
    for i in range(23):
        one = Group(made.key, os.urandom(16), payloads[size * i : size * (i + 1)], 1)
        assert store.append([one], NOW) == [1]
        now = store.survey(made.key)
        for asked in ("SELECT COUNT(*) AS n FROM people", "EXPLAIN SELECT COUNT(*) AS n FROM people"):
            query = AnswerRequest(set=(f"query={asked}",))
            if i < 4:
                with pytest.raises(ServiceError, match="too few"):
                    prepare(store, studies, now, query)
            else:
                found = prepare(store, studies, now, query).read()
                assert [part.n for _, part in found.parts()] == [(i + 1) // 5 * 5]


def test_a_refusal_below_the_minimum_says_the_step(make: Callable[[], BlockStore]) -> None:
    store = make()
    for survey, step, said in ((OLH_3, 5, "at least 3, counted in steps of 5"), (OLH_5, 3, "at least 3")):
        stored = draft(store, survey, minimum=3, step=step)
        with pytest.raises(ServiceError) as refused:
            prepare(store, RunningStudies(store, Catalogue(store)), stored, AnswerRequest())
        assert str(refused.value).endswith(said)


def test_rounds_are_shown_in_steps(make: Callable[[], BlockStore]) -> None:
    store = make()
    catalogue = Catalogue(store)
    studies, study = RunningStudies(store, catalogue), SVIM(2, 3.0, 30)
    made, _ = studies.publish(study, {"minimum": 10, "people": 40}, precision=86_400, minimum=10)
    stored, id_ = catalogue.open(made.task), digest(study.to_json())
    size = study.survey.layout.size
    for i in range(19):
        assert store.append([Group(stored.key, os.urandom(16), bytes(size), 1)], NOW) == [1]
        assert studies.describe(id_)["rounds"][0]["reports"] == (i + 1) // 10 * 10
    assert list(studies.waiting()) == []
    assert store.append([Group(stored.key, os.urandom(16), bytes(size), 1)], NOW) == [1]
    assert list(studies.waiting()) == [id_]  # its rule counts every report: a round that closes is a mark


def test_the_step_is_signed_and_defaults_to_the_minimum() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    for options, step in (({"minimum": 20}, 20), ({"minimum": 20, "step": 50}, 50), ({"minimum": 1}, None)):
        drafted = draft_of(SURVEY, options, precision=86_400, minimum=100)
        assert drafted.step == (step or 1)
        assert parse_json(unsigned(drafted)).get("step") == step
        answer = published(drafted, key)
        assert verified(answer) == SURVEY
        assert read_published(answer).get("step", 1) == (step or 1)
        assert drafted.task == SURVEY.task
    for wrong in (0, -1, "5", True):
        document = {**parse_json(unsigned(drafted)), "step": wrong}
        with pytest.raises(WireError, match="step"):
            verified(_signed(canonical(document), PURPOSE, key))


def test_a_survey_with_another_step_is_another_one(make: Callable[[], BlockStore]) -> None:
    store = make()
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, {"step": 5}, precision=60, minimum=1))
    with pytest.raises(ServiceError, match="there already"):
        catalogue.create(draft_of(SURVEY, {"step": 6}, precision=60, minimum=1))


def test_metrics_in_steps() -> None:
    metrics = Metrics()
    shown = set()
    for i in range(1, 10):
        metrics.add("veil_reports_total", outcome="stored")
        metrics.add("veil_requests_total", route="POST /v1/surveys/{task}/reports", status="200")
        metrics.observe("veil_request_seconds", 0.001 * i, route="POST /v1/surveys/{task}/reports")
        metrics.observe("veil_commit_seconds", 0.004)
        metrics.set("veil_queue_reports", i)
        shown.add(metrics.text(10, [("a" * 64, 0)]))
    assert len(shown) == 1
    metrics.add("veil_reports_total", outcome="stored")
    metrics.add("veil_commit_failures_total")
    metrics.observe("veil_commit_seconds", 0.004)
    lines = metrics.text(10, [("a" * 64, 10)]).splitlines()
    assert 'veil_reports_total{outcome="stored"} 10' in lines
    assert f'veil_survey_reports{{task="{"a" * 64}"}} 10' in lines
    assert "veil_commit_failures_total 1" in lines
    assert 'veil_commit_seconds_bucket{le="0.0025"} 0' in lines
    assert 'veil_commit_seconds_bucket{le="0.005"} 10' in lines
    assert "veil_commit_seconds_sum 0.037500" in lines
    assert not any(line.startswith("veil_reports_total") for line in metrics.text(None).splitlines())


def test_buckets_change_only_with_their_number() -> None:
    """Each bucket passes its own multiples of the step: rounded alone, it shows the moments of other reports."""
    metrics, chance = Metrics(), random.Random(1)
    before, changed = metrics.text(STEP), []
    for i in range(1, 10 * STEP + 1):
        metrics.observe("veil_commit_seconds", chance.choice([0.0005, 0.002, 0.004, 0.02, 0.2]))
        metrics.observe("veil_request_seconds", chance.choice([0.0005, 0.002, 0.004, 0.02, 0.2]), route="POST")
        after = metrics.text(STEP)
        changed += [i] if after != before else []
        before = after
    assert changed == [1, *range(STEP, 10 * STEP + 1, STEP)]  # with the first one its lines appear, as zeros
    assert f'veil_commit_seconds_bucket{{le="+Inf"}} {10 * STEP}' in before


def test_metrics_are_shown_without_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(CollectorSettings(folder=str(tmp_path), metrics_open=True))
    service.metrics.add("veil_reports_total", outcome="stored")

    def away() -> list[tuple[str, int, int]]:
        raise StoreError("away")

    async def ask() -> str:
        return bytes((await get_metrics(service, None)).body).decode()  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "marks", away)
        assert "veil_reports_total{" not in asyncio.run(ask())
    assert 'veil_reports_total{outcome="stored"} 1' in asyncio.run(ask())
    monkeypatch.setattr(service.store, "marks", away)
    assert 'veil_reports_total{outcome="stored"} 1' in asyncio.run(ask())
    service.store.close()


def draft(store: BlockStore, survey: Survey, **options: Any) -> StoredSurvey:
    catalogue = Catalogue(store)
    catalogue.create(draft_of(survey, options, precision=86_400, minimum=1))
    return catalogue.open(survey.task)


def test_a_device_shows_the_step(collector: Collector) -> None:
    collector.open_survey(ASKED, minimum=3, step=STEP)
    key = key_text(load_key(collector.settings.key_path))
    client = open_client(collector.url, key, ASKED.task, Ledger(lifetime=8.0))
    assert client.step == STEP
