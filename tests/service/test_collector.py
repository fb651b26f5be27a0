"""The service from outside: a real process, real HTTP. What is acknowledged is there once; what is wrong is refused."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running, values

from veil import GRR, OLH, OUE, OneOf, Survey, Text
from veil.collector.edge.limits import read_body
from veil.collector.service import open_store
from veil.collector.store.base import AuditEntry
from veil.collector.surveys import catalogue as documents
from veil.collector.surveys.answers import ReaderThreads
from veil.collector.surveys.catalogue import draft_of
from veil.collector.surveys.exporting import export_parquet
from veil.device import verified
from veil.device.verification import PURPOSE
from veil.errors import CollectorError, MismatchError, ServiceError, WireError
from veil.tools.json_documents import canonical
from veil.wire.arrow import to_arrow
from veil.wire.frames import report_size

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("collector") / "data", VEIL_TALLY_SECONDS="0.2") as one:
        yield one


@pytest.fixture(scope="module")
def client(collector: Collector) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=collector.url) as one:
        yield one


def code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal, whose shape is always the same."""
    error = answer.json()["error"]
    assert set(error) - {"expected"} == {"code", "message"}
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, error["code"]


def test_reports_are_acknowledged_stored_and_counted_once(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(OLH(epsilon=1.0, domain=17))
    path = collector.open_survey(survey)
    sent = framed(survey, [1, 2, 3])
    for _ in range(3):  # a replay is acknowledged and counted once
        answer = client.post(f"{path}/reports", content=sent, headers=FRAMED)
        assert (answer.status_code, answer.json()) == (200, {"acknowledged": 3})
    each = report_size(survey)
    one = sent[:each]
    changed = one[:-9] + framed(survey, [9])[-9:]  # the same id with other bytes: the first stays
    assert client.post(f"{path}/reports", content=changed, headers=FRAMED).status_code == 200
    twice = framed(survey, [4, 5], [os.urandom(16)] * 2)  # one id twice in one request
    assert client.post(f"{path}/reports", content=twice, headers=FRAMED).json() == {"acknowledged": 2}
    ids = [*(sent[i * each + 33 : i * each + 49] for i in range(3)), twice[33:49]]
    assert collector.stored_ids(survey) == sorted(ids)
    token = collector.token("surveys:read")
    assert client.get(f"{path}/state", headers=token).json()["reports"] == 4


def test_an_arrow_stream_is_the_same_as_frames(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(OneOf((1, GRR(1.0, 300)), (1, OLH(1.0, 300))))
    path = collector.open_survey(survey)
    batch = to_arrow(survey.randomize(np.arange(300)), survey)
    ids = [os.urandom(16) for _ in range(300)]

    def stream(ids: list[bytes], options: pa.ipc.IpcWriteOptions | None = None, name: str = "report_id") -> bytes:
        schema = batch.schema.append(pa.field(name, pa.binary(16))).with_metadata(batch.schema.metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            whole = pa.RecordBatch.from_arrays([*batch.columns, pa.array(ids, pa.binary(16))], schema=schema)
            writer.write_batch(whole.slice(0, 100))
            writer.write_batch(whole.slice(100))
        return sink.getvalue().to_pybytes()

    good = stream(ids)
    for _ in range(2):
        answer = client.post(f"{path}/reports", content=good, headers=ARROW)
        assert answer.json() == {"acknowledged": 300}, answer.text
    assert collector.stored_ids(survey) == sorted(ids)
    bad = (
        stream([*ids[1:], None]),  # type: ignore[list-item]
        stream(ids, name="other"),
        stream(ids, pa.ipc.IpcWriteOptions(compression="zstd")),  # could unfold to any size
        stream(ids, pa.ipc.IpcWriteOptions(compression="lz4")),
        good[:-200],
        good[:40],
        b"",
        b"ARROW1",
    )
    for wrong in bad:
        assert code(client.post(f"{path}/reports", content=wrong, headers=ARROW)) == (422, "malformed")
    assert len(collector.stored_ids(survey)) == 300


def test_one_wrong_report_refuses_its_whole_request(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(OLH(epsilon=1.0, domain=18))
    path = collector.open_survey(survey)
    sent, each = framed(survey, list(range(18))), report_size(survey)
    cases = {
        "empty": b"",
        "truncated": sent[:-1],
        "a byte too long": sent + b"\0",
        "another version": sent[:each] + b"\2" + sent[each + 1 :],
        "out of range": sent[: 3 * each - 1] + b"\xff" + sent[3 * each :],
        "random": os.urandom(3 * each),
    }
    for name, wrong in cases.items():
        assert code(client.post(f"{path}/reports", content=wrong, headers=FRAMED)) == (422, "malformed"), name
    foreign = sent[:each] + framed(Survey(OLH(epsilon=1.0, domain=19)), [1])
    assert code(client.post(f"{path}/reports", content=foreign, headers=FRAMED)) == (422, "foreign-survey")
    assert collector.stored_ids(survey) == []


def test_bad_requests_beside_good_ones_in_a_group(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(OLH(epsilon=1.0, domain=20))
    path = collector.open_survey(survey)
    right, wrong = [framed(survey, [i % 20]) for i in range(40)], []

    def send(body: bytes) -> None:
        with httpx.Client(base_url=collector.url) as own:
            answer = own.post(f"{path}/reports", content=body, headers=FRAMED)
            if answer.status_code != 200:
                wrong.append(body)

    bodies = [body for pair in zip(right, [b"\7" + body[1:] for body in right], strict=True) for body in pair]
    threads = [threading.Thread(target=send, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wrong) == sorted(bodies[1::2])
    assert collector.stored_ids(survey) == sorted(body[33:49] for body in right)


def test_what_is_not_open_takes_nothing(collector: Collector, client: httpx.Client) -> None:
    later, over = Survey(OLH(1.0, 21)), Survey(OLH(1.0, 22))
    path = collector.open_survey(later, opens="2999-01-01T00:00:00Z")
    assert code(client.post(f"{path}/reports", content=framed(later, [1]), headers=FRAMED)) == (409, "survey-not-open")
    assert client.get(path).status_code == 200  # devices may have it, and wait
    path = collector.open_survey(over, closes="2020-01-01T00:00:00Z")
    assert code(client.post(f"{path}/reports", content=framed(over, [1]), headers=FRAMED)) == (410, "survey-expired")
    assert code(client.get(path)) == (410, "survey-expired")
    unknown = f"/v1/surveys/{'0' * 64}/reports"
    assert code(client.post(unknown, content=b"x", headers=FRAMED)) == (404, "unknown-survey")
    assert not collector.stored_ids(later) + collector.stored_ids(over)


def test_a_survey_goes_from_draft_to_open_to_closed(collector: Collector, client: httpx.Client) -> None:
    survey, token = Survey(GRR(1.0, ["a", "b"])), collector.token()
    path = f"/v1/surveys/{survey.task}"
    asked = {"survey": survey.to_json(), "precision": 3600, "minimum": 5, "closes": "2999-01-01T00:00:00Z"}
    assert client.post("/v1/surveys", json=asked, headers=token).status_code == 201
    assert client.post("/v1/surveys", json=asked, headers=token).status_code == 200
    assert code(client.post("/v1/surveys", json=asked | {"minimum": 6}, headers=token)) == (409, "survey-exists")
    assert code(client.get(path)) == (404, "unknown-survey")  # a draft is nobody's business
    assert code(client.post(f"{path}/reports", content=framed(survey, ["a"]), headers=FRAMED))[0] == 404
    assert code(client.post(f"{path}/close", headers=token)) == (409, "wrong-state")
    assert client.post(f"{path}/open", headers=token).json()["state"] == "open"
    published = client.get(path).json()
    assert verified(published, task=survey.task) == survey
    with pytest.raises(MismatchError):
        verified(published, task="0" * 64)
    with pytest.raises(CollectorError, match="closed: it took answers until 2999-01-01T00:00:00Z"):
        verified(published, now=32_503_680_000)  # the year 3000
    document = base64.urlsafe_b64decode(published["document"] + "==")
    assert document == canonical(
        {
            "kind": "veil-published-survey",
            "version": 1,
            "survey": survey.to_json(),
            "opens": None,
            "closes": "2999-01-01T00:00:00Z",
            "precision": 3600,
            "step": 5,
        }
    )
    for member in published:
        with pytest.raises(WireError):
            verified(published | {member: ("B" if published[member][0] != "B" else "C") + published[member][1:]})
    assert client.post(f"{path}/reports", content=framed(survey, ["a"]), headers=FRAMED).status_code == 200
    assert client.post(f"{path}/close", headers=token).json()["state"] == "closed"
    refused = client.post(f"{path}/reports", content=framed(survey, ["a"]), headers=FRAMED)
    assert code(refused) == (410, "survey-closed")
    assert code(client.post(f"{path}/open", headers=token)) == (409, "wrong-state")
    assert code(client.get(path)) == (410, "survey-closed")  # nobody pays for what is not taken


def test_answers_come_in_three_forms_and_not_below_the_minimum(collector: Collector, client: httpx.Client) -> None:
    labels = [f"label {i}" for i in range(15)] + ["=1+1"]
    survey, token = Survey(GRR(2.0, labels)), collector.token("answers:read", "audit:read")
    path = collector.open_survey(survey, minimum=2_000)
    answers = f"{path}/answer"
    held = [labels[i] for i in values(4_000)]
    client.post(f"{path}/reports", content=framed(survey, held[:1_999]), headers=FRAMED)
    assert code(client.get(answers, headers=token)) == (409, "too-few-reports")
    asked = {"action": "answer", "task": survey.task}
    entries = client.get("/v1/audit", headers=token).json()["entries"]
    assert not [entry for entry in entries if asked.items() <= entry.items()]  # as the threat model says
    client.post(f"{path}/reports", content=framed(survey, held[1_999:]), headers=FRAMED)
    found = client.get(answers, headers=token, params={"level": "0.999999"}).json()
    assert (found["people"], len(found["rows"]), found["lineage"]) == (4_000, 16, ["GRR(epsilon=2)"])
    for row in found["rows"]:
        assert row["low"] < held.count(row["value"]) / 4_000 < row["high"]
    table = client.get(answers, headers=token, params={"format": "csv"}).text.splitlines()
    assert (len(table), table[0]) == (17, '"value","frequency","count","stderr","low","high","significant"')
    assert [row.split(",")[0] for row in table if "=1+1" in row] == ['"\'=1+1"']  # no formula in a spreadsheet
    assert [row["value"] for row in found["rows"] if "=" in row["value"]] == ["=1+1"]
    arrow = client.get(answers, headers=token, params={"format": "arrow"}).content
    assert pa.ipc.open_stream(arrow).read_all().column("frequency").to_pylist() == [
        row["frequency"] for row in found["rows"]
    ]
    asked = client.post(answers, headers=token, json={"candidates": labels[:2], "level": 0.9}).json()
    assert [row["frequency"] for row in asked["rows"]] == [row["frequency"] for row in found["rows"]][:2]
    posted = client.get(answers, headers=token, params={"set": ["post=norm-sub", "question=0"]}).json()
    assert posted["lineage"] == ["GRR(epsilon=2)", "norm-sub"]
    assert sum(row["frequency"] for row in posted["rows"]) == pytest.approx(1)
    for wrong in (
        {"level": "2"},
        {"level": "x"},
        {"format": "xml"},
        {"set": "post=no-such"},
        {"set": "post"},
        {"set": "nothing=1"},
        {"set": "self=1"},
        {"post": "norm-sub"},
        {"other": "1"},
        {"candidates": "a"},
        *({"set": f"question={number}"} for number in ("1", "-1", "x", "9" * 30)),
    ):
        assert code(client.get(answers, headers=token, params=wrong)) == (422, "bad-input"), wrong
    log = client.get("/v1/audit", headers=token).json()["entries"]
    mine = [entry for entry in log if entry["task"] == survey.task]
    assert {"set": [], "level": 0.9, "format": "json", "candidates": 2} in [entry["parameters"] for entry in mine]
    assert "label" not in json.dumps(mine)


def test_open_domains_are_counted_for_the_candidates_that_are_asked_about(
    collector: Collector, client: httpx.Client
) -> None:
    survey, token = Survey(OLH(3.0, Text(max_bytes=8))), collector.token("answers:read")
    path = collector.open_survey(survey)
    client.post(f"{path}/reports", content=framed(survey, ["tea"] * 900 + ["cocoa"] * 100), headers=FRAMED)
    assert code(client.get(f"{path}/answer", headers=token)) == (422, "candidates-needed")
    found = client.post(f"{path}/answer", headers=token, json={"candidates": ["tea", "milk"]}).json()
    assert [row["value"] for row in found["rows"]] == ["tea", "milk"]
    assert found["rows"][0]["frequency"] > 0.7 > 0.2 > found["rows"][1]["frequency"]
    for wrong in ([], [1], ["x" * 9_000, None], "tea", {"a": 1}, [["tea"]], ["tea", "tea"]):
        answer = client.post(f"{path}/answer", headers=token, json={"candidates": wrong})
        assert answer.status_code == 422, (wrong, answer.text)


def test_export_has_the_columns_and_no_ids(collector: Collector, client: httpx.Client, tmp_path: Path) -> None:
    survey, token = Survey(OLH(1.0, 23)), collector.token("export:read")
    path = collector.open_survey(survey)
    sent = framed(survey, values(500) % 23)
    client.post(f"{path}/reports", content=sent, headers=FRAMED)
    out = tmp_path / "reports.parquet"
    out.write_bytes(client.get(f"{path}/export", headers=token).content)
    for part in ("bytes=999999999-", "lines=1", "bytes=0-3"):  # it comes whole, whatever part was asked for
        answer = client.get(f"{path}/export", headers=token | {"Range": part})
        assert answer.status_code == 200
        again = pq.read_table(pa.BufferReader(answer.content))  # in another order every time
        assert again.sort_by("seed") == pq.read_table(out).sort_by("seed")
    assert not list(collector.folder.glob("export-*"))
    table = pq.read_table(out)
    assert table.schema.names == ["seed", "bucket", "time"]
    assert table.schema.metadata[b"veil.task"] == survey.task.encode()
    each = report_size(survey)
    seeds = [int.from_bytes(sent[i * each + 49 : i * each + 57], "little") for i in range(500)]
    assert sorted(table.column("seed").to_pylist()) == sorted(seeds)
    assert table.column("seed").to_pylist() != seeds
    assert {moment.second + moment.minute + moment.hour for moment in table.column("time").to_pylist()} == {0}


def test_the_queue_is_bounded_and_says_when_to_come_back(tmp_path: Path) -> None:
    limits = {"VEIL_QUEUE_REPORTS": "40", "VEIL_MAX_REPORTS": "40", "VEIL_MAX_BODY_BYTES": "9000"}
    with running(tmp_path / "data", **limits) as small:
        path = small.open_survey()
        answers: list[httpx.Response] = []

        def send() -> None:
            with httpx.Client(base_url=small.url) as own:
                for _ in range(10):
                    sent = framed(SURVEY, [1] * 30)
                    answers.append(own.post(f"{path}/reports", content=sent, headers=FRAMED))

        threads = [threading.Thread(target=send) for _ in range(12)]
        with contextlib.closing(sqlite3.connect(small.folder / "collector.sqlite3", isolation_level=None)) as blocker:
            blocker.execute("BEGIN IMMEDIATE")  # as long as this is open, nothing can be stored
            for thread in threads:
                thread.start()
            until(lambda: answers)
            blocker.execute("ROLLBACK")
        for thread in threads:
            thread.join()
        taken = sum(answer.status_code == 200 for answer in answers)
        refused = [answer for answer in answers if answer.status_code != 200]
        assert taken
        assert refused
        assert {code(answer) for answer in refused} == {(429, "busy")}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert len(small.stored_ids()) == 30 * taken
        too_many = httpx.post(f"{small.url}{path}/reports", content=framed(SURVEY, [1] * 41), headers=FRAMED)
        assert code(too_many) == (413, "too-large")

        def chunks() -> Iterator[bytes]:
            yield from [b"x" * 1_000] * 10

        for body in (b"x" * 9_001, chunks()):  # with and without a declared length
            assert code(httpx.post(f"{small.url}{path}/reports", content=body, headers=FRAMED)) == (413, "too-large")


def test_a_graceful_stop_drains_the_queue(tmp_path: Path) -> None:
    with running(tmp_path / "data") as one:
        path = one.open_survey()
        acknowledged: list[bytes] = []
        stopping = threading.Event()

        def send() -> None:
            with httpx.Client(base_url=one.url) as own:
                while not stopping.is_set():
                    body = framed(SURVEY, [3] * 20)
                    try:
                        if own.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200:
                            acknowledged.append(body)
                    except httpx.TransportError:
                        return

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 20:
            stopping.wait(0.01)
        assert one.stop() in (0, -signal.SIGTERM)
        stopping.set()
        for thread in threads:
            thread.join()
        each = report_size(SURVEY)
        ids = {body[i * each + 33 : i * each + 49] for body in acknowledged for i in range(20)}
        assert ids <= set(one.stored_ids())
        assert '"stopped"' in one.log


def test_devices_that_hang_up_do_no_harm(collector: Collector, client: httpx.Client) -> None:
    survey = Survey(OLH(epsilon=1.0, domain=24))
    path = collector.open_survey(survey)
    body = framed(survey, [1] * 50)
    head = f"POST {path}/reports HTTP/1.1\r\nHost: x\r\nContent-Type: {FRAMED['Content-Type']}\r\n".encode()
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    linger = struct.pack("ii", 1, 0)  # close with a reset, so that the collector writes into nothing
    for i in range(300):
        connection = socket.create_connection(("127.0.0.1", collector.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.sendall(whole * 3 if i % 2 else whole[: -1 - i])
        connection.close()
    assert client.get("/healthz").status_code == 200
    assert collector.process is not None
    assert collector.process.poll() is None
    assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
    assert len(collector.stored_ids(survey)) == 50


def test_health_readiness_metrics_and_logs(collector: Collector, client: httpx.Client) -> None:
    assert client.get("/healthz").json() == client.get("/readyz").json() == {"status": "ok"}
    token = collector.token("metrics:read")
    text = client.get("/metrics", headers=token).text
    assert "# TYPE veil_reports_total counter" in text
    assert 'veil_reports_total{outcome="stored"}' in text
    lines = [json.loads(line) for line in collector.log.splitlines()]
    assert {"listening", "started"} <= {line["event"] for line in lines}
    assert not any(address in collector.log.replace('"host": "127.0.0.1"', "") for address in ("127.0.0.1", "Bearer"))


def test_serve_with_no_arguments_works(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "veil.cli", "serve", "--port", "0"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        line = json.loads(process.stderr.readline())
        assert line["event"] == "listening"
        key = tmp_path / "veil-collector" / "signing.key"
        assert key.parent.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in key.parent.iterdir()} == {0o600}
    finally:
        process.kill()
        process.communicate()


def test_a_published_survey_must_be_what_the_wire_format_says() -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    right = json.loads(documents.unsigned(draft_of(SURVEY, {}, precision=3_600, minimum=1)))

    def signed(document: bytes) -> Any:
        parts = (document, key.public_key().public_bytes_raw(), key.sign(PURPOSE + document))
        texts = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts]
        return dict(zip(("document", "key", "signature"), texts, strict=True))

    assert verified(signed(canonical(right))) == SURVEY
    wrong: list[dict[str, Any]] = [{"kind": "other"}, {"version": 2}, {"version": True}, {"precision": 0}, {"more": 1}]
    wrong += [{"opens": "soon"}, {"closes": "2020-02-31T00:00:00Z"}]
    for change in wrong:
        with pytest.raises(WireError):
            verified(signed(canonical(right | change)))
    for change, said in (
        (("opens", "2999-01-01T00:00:00Z"), "not open yet"),
        (("closes", "2020-01-01T00:00:00Z"), "closed"),
    ):
        with pytest.raises(CollectorError, match=said):  # nothing is wrong with it but the time
            verified(signed(canonical(right | dict([change]))))
    with pytest.raises(WireError, match="canonical"):
        verified(signed(json.dumps(right, indent=1).encode()))


def test_idle_connections_do_not_keep_others_out(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_BODY_SECONDS="2") as one:
        path = one.open_survey()
        head = f"POST {path}/reports HTTP/1.1\r\nHost: x\r\nContent-Type: {FRAMED['Content-Type']}\r\n"
        idle = [socket.create_connection(("127.0.0.1", one.port), LIMIT) for _ in range(20)]
        for connection in idle:
            connection.sendall(f"{head}Content-Length: {4 << 20}\r\n\r\n".encode())
        answer = httpx.post(f"{one.url}{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED)
        assert answer.status_code == 200
        for connection in idle:
            assert connection.recv(100).split()[1] == b"408"
            connection.close()


def test_all_bodies_together_are_bounded() -> None:
    service: Any = SimpleNamespace(
        settings=SimpleNamespace(max_body_bytes=8, queue_bytes=10, body_seconds=5), body_bytes=0
    )

    async def read(sizes: list[int], holding: asyncio.Event | None = None) -> bytes:
        pieces = [{"type": "http.request", "body": b"x" * size, "more_body": True} for size in sizes]

        async def receive() -> Any:
            if pieces:
                return pieces.pop(0)
            if holding is not None:
                await holding.wait()
            return {"type": "http.request"}

        request: Any = SimpleNamespace(headers={}, receive=receive)
        return await read_body(service, request)

    async def both() -> None:
        release = asyncio.Event()
        first = asyncio.create_task(read([3, 4], release))
        await asyncio.sleep(0)
        assert service.body_bytes == 7
        assert await read([3]) == b"xxx"
        with pytest.raises(ServiceError, match="busy"):
            await read([3, 1])
        release.set()
        assert len(await first) == 7
        assert await read([4, 4]) == b"x" * 8
        with pytest.raises(ServiceError, match="too large"):
            await read([4, 5])
        assert service.body_bytes == 0

    asyncio.run(both())


def test_the_audit_log_can_always_be_read(collector: Collector, client: httpx.Client) -> None:
    survey, token = Survey(OLH(1.0, 25)), collector.token()
    path = collector.open_survey(survey)
    header = {**token, "Content-Type": "application/json"}
    for body in (r'{"set": ["post=\ud800"]}', r'{"candidates": ["\ud800"]}'):
        assert code(client.post(f"{path}/answer", headers=header, content=body)) == (422, "bad-input")
    store = open_store(collector.settings)  # as an older version wrote it
    store.note(AuditEntry("2026-01-01T00:00:00Z", "x", "answer", survey.task, r'{"post": "\ud800"}'))
    store.close()
    entries = client.get("/v1/audit", headers=token).json()["entries"]
    assert [one["token"] for one in entries if one["task"] == survey.task] == ["x"]


def test_large_domains_are_answered_for_candidates_only(collector: Collector, client: httpx.Client) -> None:
    survey, token = Survey(GRR(12.0, 70_000)), collector.token("answers:read")
    path = collector.open_survey(survey, allow_weak_privacy=True)
    client.post(f"{path}/reports", content=framed(survey, [69_999] * 200), headers=FRAMED)
    assert code(client.get(f"{path}/answer", headers=token)) == (422, "candidates-needed")
    found = client.post(f"{path}/answer", headers=token, json={"candidates": [0, 69_999]}).json()
    assert [row["value"] for row in found["rows"]] == [0, 69_999]


def test_long_work_has_few_threads_and_few_places_to_wait() -> None:
    pool, proceed = ReaderThreads("test", threads=1, waiting=1), threading.Event()

    async def ask() -> None:
        first = asyncio.create_task(pool.run(proceed.wait, LIMIT))
        second = asyncio.create_task(pool.run(proceed.wait, LIMIT))
        await asyncio.sleep(0)
        for _ in range(2):
            with pytest.raises(ServiceError, match="busy") as refused:
                await pool.run(int)
            assert (refused.value.status, refused.value.retry_after) == (429, 2)
            first.cancel()  # who asked is gone, but the thread is still at work
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(int) == 0  # the others do not wait
        proceed.set()
        assert await second
        assert await pool.run(int) == 0

    asyncio.run(ask())
    pool.stop()
    with pytest.raises(ServiceError, match="stopping"):
        asyncio.run(pool.run(int))


def test_an_export_of_long_reports_reads_few_at_a_time(tmp_path: Path) -> None:
    asked: list[int] = []
    store: Any = SimpleNamespace(
        survey=lambda key: SimpleNamespace(mark=0),
        steady=contextlib.nullcontext,
        buckets=lambda key, until: [],
        chunk=lambda key, after, rows, until: asked.append(rows),
    )
    long = Survey(OUE(1.0, 1 << 20))
    for survey in (SURVEY, long):
        export_parquet(store, draft_of(survey, {}, precision=60, minimum=1), tmp_path / "x.parquet")
    assert asked == [65_536, (8 << 20) // long.layout.size]
