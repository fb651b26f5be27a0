"""Reports on the short way past ASGI: answered and refused as on the ordinary way, in order, within the same bounds."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running

from veil import OLH, Survey

OTHER = Survey(OLH(1.0, 17))
CLOSED = Survey(OLH(1.0, 18))
ORIGIN = "https://page.example"
LIMITS = {"VEIL_MAX_REPORTS": "50", "VEIL_MAX_BODY_BYTES": "70000", "VEIL_QUEUE_BYTES": "100000"}


@pytest.fixture(scope="module", params=["*", f"{ORIGIN}, https://other.example"], ids=["any origin", "named origins"])
def collector(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("ingest") / "data"
    with running(folder, **LIMITS, VEIL_CORS_ORIGINS=request.param, VEIL_METRICS_OPEN="true") as one:
        for survey in (SURVEY, CLOSED):
            one.open_survey(survey)
        write = one.token("surveys:write")
        for survey in (SURVEY, CLOSED):  # looked up once, so that the short way knows it
            sent = httpx.post(
                f"{one.url}/v1/surveys/{survey.task}/reports", content=framed(survey, [1]), headers=FRAMED
            )
            assert sent.status_code == 200
        httpx.post(f"{one.url}/v1/surveys/{CLOSED.task}/close", headers=write).raise_for_status()
        yield one


def one_report(change: bytes, at: int) -> bytes:
    body = framed(SURVEY, [1])
    return body[:at] + change + body[at + len(change) :]


CASES: dict[str, tuple[str, bytes]] = {
    "one": (SURVEY.task, framed(SURVEY, [1])),
    "several": (SURVEY.task, framed(SURVEY, [1] * 7)),
    "twice the same id": (SURVEY.task, framed(SURVEY, [1, 2], ids=[os.urandom(16)] * 2)),
    "no whole report": (SURVEY.task, framed(SURVEY, [1])[:-1]),
    "of another survey": (SURVEY.task, framed(OTHER, [1])),
    "another version": (SURVEY.task, one_report(b"\x09", 0)),
    "a value out of range": (SURVEY.task, one_report(b"\xff", len(framed(SURVEY, [1])) - 1)),
    "too many": (SURVEY.task, framed(SURVEY, [1] * 51)),
    "a closed survey": (CLOSED.task, framed(CLOSED, [1])),
    "an unknown survey": (OTHER.task, framed(OTHER, [1])),
    "no task id": ("x" * 64, framed(SURVEY, [1])),
}


def answered(answer: httpx.Response) -> tuple[int, object, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "connection")}
    return answer.status_code, answer.json(), headers


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("origin", [None, ORIGIN, "https://nobody.example"])
def test_both_ways_say_the_same(collector: Collector, name: str, origin: str | None) -> None:
    task, body = CASES[name]
    headers = {**FRAMED, **({} if origin is None else {"Origin": origin})}
    path = f"{collector.url}/v1/surveys/{task}/reports"
    short = httpx.post(path, content=body, headers=headers)
    ordinary = httpx.post(path, content=iter([body]), headers=headers)  # chunked, which does not fit
    assert answered(short) == answered(ordinary)
    assert short.status_code == (200 if name in ("one", "several", "twice the same id") else short.status_code)
    known = {200, 404, 410, 413, 422}
    assert short.status_code in known


def test_one_report_is_stored_once_whichever_way_it_comes(collector: Collector) -> None:
    body = framed(SURVEY, [1])
    path = f"{collector.url}/v1/surveys/{SURVEY.task}/reports"
    for content in (body, iter([body]), body):
        assert httpx.post(path, content=content, headers=FRAMED).json() == {"acknowledged": 1}
    assert collector.stored_ids().count(body[33:49]) == 1


def request(body: bytes, version: str = "1.1", *headers: str) -> bytes:
    lines = [f"POST /v1/surveys/{SURVEY.task}/reports HTTP/{version}", "Host: x", f"Content-Length: {len(body)}"]
    lines += [f"Content-Type: {FRAMED['Content-Type']}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def everything(collector: Collector, *pieces: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", collector.port), LIMIT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def test_requests_behind_each_other_are_answered_in_order(collector: Collector) -> None:
    first, second, wrong = framed(SURVEY, [1]), framed(SURVEY, [1] * 2), framed(SURVEY, [1])[:-3]
    last = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    got = everything(collector, request(first) + request(second) + request(wrong) + request(first) + last)
    parts = got.split(b"HTTP/1.1 ")[1:]
    assert [part.split()[0] for part in parts] == [b"200", b"200", b"422", b"200", b"200"]
    assert [b'{"acknowledged":%d}' % number in part for number, part in ((1, parts[0]), (2, parts[1]))] == [True, True]


def test_a_body_in_pieces_and_connections_that_end(collector: Collector) -> None:
    whole = request(framed(SURVEY, [1] * 3), "1.1", "Connection: close")
    for cut in (20, len(whole) - 40, len(whole) - 1):
        got = everything(collector, whole[:cut], whole[cut:])
        assert got.endswith(b'{"acknowledged":3}')
        assert b"\r\nconnection: close\r\n" in got
    assert everything(collector, request(framed(SURVEY, [1]), "1.0")).endswith(b'{"acknowledged":1}')


def test_bodies_that_are_held_open_count_among_all_bodies(collector: Collector) -> None:
    half = request(b"x" * 65_000)[:-4_000]

    def is_refused() -> bool:
        with socket.create_connection(("127.0.0.1", collector.port), 0.5) as second:
            second.sendall(half)
            try:
                return second.recv(100).split()[1] == b"429"
            except TimeoutError:  # the collector waits for the rest
                return False

    with socket.create_connection(("127.0.0.1", collector.port), LIMIT) as first:
        first.sendall(half)
        until(is_refused)
    until(lambda: not is_refused())


def test_a_survey_that_was_closed_takes_nothing_on_the_short_way(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector, httpx.Client(base_url=collector.url) as client:
        path = f"{collector.open_survey()}/reports"
        assert client.post(path, content=framed(SURVEY, [1]), headers=FRAMED).status_code == 200
        write = collector.token("surveys:write")
        client.post(f"/v1/surveys/{SURVEY.task}/close", headers=write).raise_for_status()
        refused = client.post(path, content=framed(SURVEY, [1]), headers=FRAMED)
        assert (refused.status_code, refused.json()["error"]["code"]) == (410, "survey-closed")
        assert len(collector.stored_ids()) == 1
        assert json.loads(collector.log.splitlines()[0])["event"]
