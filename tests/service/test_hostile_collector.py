"""A Python device and a collector that wants to hang or fill it: every exchange ends, and nothing paid for is lost."""

from __future__ import annotations

import base64
import json
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.harness import Collector, running
from tests.service.hostile import ATTACKS, Hostile, Line, hostile
from tests.service.middleman import between

from veil import GRR, Client, Ledger, Survey
from veil.collector.keys_and_tokens import load_key, public_bytes
from veil.device import web
from veil.device.web import Web
from veil.errors import CollectorError, WireError

DRINKS = Survey(GRR(1.0, ["tea", "coffee", "water"]))
DEADLINE = 0.4
"""Seconds. The attacks go on for much longer; a client without a deadline then takes the answer at their end."""


@pytest.fixture
def attacker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    monkeypatch.setattr(web, "_SECONDS", DEADLINE)
    with hostile() as one:
        yield one


@pytest.mark.parametrize("name", ATTACKS)
def test_every_exchange_ends(attacker: Hostile, name: str) -> None:
    attacker.attack = ATTACKS[name]
    for ask in (lambda web: web.get("/a"), lambda web: web.post("/a", b"report", "text/plain")):
        with pytest.raises(CollectorError, match="cannot be reached"):
            ask(Web(attacker.url))
    assert attacker.goes_on
    assert [request for request, _ in attacker.requests] == ["GET /a", "POST /a"]


def test_what_is_received_is_bounded_not_only_the_time(attacker: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline does not decide: these attacks are over as soon as so much was received."""
    monkeypatch.setattr(web, "_SECONDS", 300.0)
    tracemalloc.start()
    try:
        for name in ("endless 100 Continue", "long head", "endless body", "long chunk extensions", "endless trailers"):
            attacker.attack = ATTACKS[name]
            with pytest.raises(CollectorError):
                Web(attacker.url).post("/a", b"report", "text/plain")
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("answer", [b"", b"\x16\x03\x03\x40\x00", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_handshake_ends(attacker: Hostile, answer: bytes) -> None:
    def shake(line: Line) -> None:
        line.send(answer)
        line.drip(b"\x00")

    attacker.attack, attacker.methods = shake, ()
    with pytest.raises(CollectorError):
        Web(attacker.url.replace("http:", "https:")).get("/a")
    assert attacker.goes_on


def test_a_connection_that_nobody_takes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_SECONDS", DEADLINE)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        with socket.create_connection(address), pytest.raises(CollectorError):
            Web(f"http://127.0.0.1:{address[1]}").get("/a")


def test_a_request_that_nobody_reads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_SECONDS", DEADLINE)
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(CollectorError):
        Web(f"http://127.0.0.1:{deaf.getsockname()[1]}").post("/a", bytes(1 << 25), "text/plain")


def test_a_proxy_is_under_the_same_limits(attacker: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    def head(line: Line) -> None:
        line.send(b"HTTP/1.1 200 Connected\r\nX-Slow: ")
        line.drip(b"a")

    attacker.attack, attacker.methods = head, ("CONNECT",)
    monkeypatch.setenv("https_proxy", f"http://me:a%20word@127.0.0.1:{attacker.own_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(CollectorError):
        Web("https://collector.example").get("/a")
    assert attacker.goes_on
    assert attacker.requests == [("CONNECT collector.example:443", b"")]
    monkeypatch.setenv("https_proxy", "http://[")
    with pytest.raises(CollectorError):
        Web("https://collector.example").get("/a")


@pytest.mark.parametrize("where", ["http://[", "file:///etc/passwd", "http://127.0.0.1:1/", "/b", "\u00ff"])
def test_a_redirect_is_an_answer_and_is_not_followed(attacker: Hostile, where: str) -> None:
    def away(line: Line) -> None:
        line.send(f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))

    attacker.attack = away
    answer = Web(attacker.url).get("/a")
    assert (answer.status, answer.passing, answer.document) == (302, True, {})
    assert len(attacker.requests) == 1


def test_an_answer_is_paid_once_and_arrives_after_the_attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "data") as collector, hostile(collector.port) as attacker:
        collector.open_survey(DRINKS)
        client = Client.open(attacker.url, key_of(collector), DRINKS.task, Ledger(tmp_path / "ledger", lifetime=2.0))
        monkeypatch.setattr(web, "_SECONDS", DEADLINE)
        for name in ("endless 100 Continue", "slow body", "long chunk extensions"):
            attacker.attack = ATTACKS[name]
            assert client.answer("tea", patience=0.0).state == "queued"
            with pytest.raises(CollectorError, match="no copy"):
                Client.open(attacker.url, key_of(collector), DRINKS.task, Ledger(lifetime=2.0))
        attacker.attack = None
        monkeypatch.setattr(web, "_SECONDS", 300.0)
        assert client.deliver() == 0
        assert len(client.ledger.charges) == len(collector.stored_ids(DRINKS)) == 1
    posts = {body for request, body in attacker.requests if request.startswith("POST")}
    assert len(posts) == 1


def test_what_stands_beside_a_signed_survey_is_not_kept(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector, between(collector.port) as middleman:
        collector.open_survey(DRINKS, name="drinks")

        def filled(body: bytes) -> bytes:
            shown, filler = json.loads(body), {"filler": "x" * 100_000}
            return json.dumps({**shown, **filler, "about": {**shown["about"], **filler}}).encode()

        middleman.alter = filled
        for name in ("drinks", DRINKS.task):
            Client.open(middleman.url, key_of(collector), name, Ledger(tmp_path / "ledger", lifetime=1.0))
        assert 0 < (tmp_path / "ledger.outbox").stat().st_size < 10_000


def test_a_deep_or_large_document_is_no_survey(tmp_path: Path) -> None:
    brackets = [b"[" * 5_000_000, b"[" + b"[]," * 5_000_000 + b"0]"]
    bodies = [*brackets, b'{"key": ' + b"9" * 1_000_000 + b"}", b"\xff", b""]
    with hostile() as one:
        for body in bodies:
            one.attack = lambda line, body=body: line.send(b"HTTP/1.0 200 OK\r\n\r\n" + body)
            with pytest.raises(WireError, match="not signed with a key that this device knows"):
                Client.open(one.url, "A" * 43, DRINKS.task, Ledger(tmp_path / "ledger", lifetime=1.0))


def key_of(collector: Collector) -> str:
    return base64.urlsafe_b64encode(public_bytes(load_key(collector.settings.key_path))).rstrip(b"=").decode()
