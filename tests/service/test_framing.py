"""Where a request ends: bytes of a body are never parsed as a request, whatever a head says. Raw sockets."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.patience import LIMIT
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running

from veil.collector.edge.protocol import _refused_head

HIDDEN = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
"""A request that stands where a body should be. Its answer would be a long one with status 200."""
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
H2C = (  # what Java 17 sends by default
    "Connection: Upgrade, HTTP2-Settings",
    "HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA",
    "Upgrade: h2c",
)
WEBSOCKET = ("Connection: keep-alive, upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with running(tmp_path_factory.mktemp("framing") / "data", VEIL_METRICS_OPEN="true") as one:
        path = one.open_survey()
        sent = httpx.post(f"{one.url}{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED)
        assert sent.status_code == 200  # the survey was looked up, so that the short way takes what fits
        yield one


def post(body: bytes, *lines: str, version: str = "1.1", path: str = f"/v1/surveys/{SURVEY.task}/reports") -> bytes:
    head = [f"POST {path} HTTP/{version}", f"Content-Type: {FRAMED['Content-Type']}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def sized(body: bytes, *lines: str) -> bytes:
    return post(body, "Host: x", f"Content-Length: {len(body)}", *lines)


def answers(collector: Collector, *pieces: bytes, half_close: bool = False) -> list[tuple[int, bytes]]:
    """Send pieces; return status and body of every answer until the other side closes."""
    with socket.create_connection(("127.0.0.1", collector.port), LIMIT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        got = b""
        while part := connection.recv(65_536):
            got += part
    found = []
    while got:
        head, _, got = got.partition(b"\r\n\r\n")
        length = next(line.partition(b": ")[2] for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        found.append((int(head.split()[1]), got[: int(length)]))
        got = got[int(length) :]
    return found


@pytest.mark.parametrize("upgrade", [H2C, WEBSOCKET], ids=["h2c", "websocket"])
def test_an_upgrade_is_ignored(collector: Collector, upgrade: tuple[str, ...]) -> None:
    before = len(collector.stored_ids())
    body = framed(SURVEY, [1] * 2)
    acknowledged = (200, b'{"acknowledged":2}')
    whole = sized(body, *upgrade)
    assert answers(collector, whole + LAST)[0] == acknowledged
    for cut in (30, len(whole) - len(body), len(whole) - 1):  # within the head, behind it, within the body
        found = answers(collector, whole[:cut], whole[cut:] + LAST)
        assert found == [acknowledged, (200, b'{"status":"ok"}')]
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    chunked = post(chunks, "Host: x", "Transfer-Encoding: chunked", *upgrade)
    assert answers(collector, chunked + whole + sized(body) + LAST)[:3] == [acknowledged] * 3
    old = post(body, f"Content-Length: {len(body)}", *upgrade, version="1.0")
    assert answers(collector, old) == [acknowledged]
    assert len(collector.stored_ids()) == before + 2


@pytest.mark.parametrize("upgrade", [H2C, WEBSOCKET, ()], ids=["h2c", "websocket", "none"])
@pytest.mark.parametrize("path", ["/nowhere", f"/v1/surveys/{SURVEY.task}/reports", "/v1/surveys"])
def test_a_body_is_never_a_request(collector: Collector, upgrade: tuple[str, ...], path: str) -> None:
    head = post(b"", "Host: x", f"Content-Length: {len(HIDDEN)}", *upgrade, path=path)
    for pieces in ([head + HIDDEN + LAST], [head, HIDDEN, LAST]):
        found = answers(collector, *pieces)
        assert len(found) == 2
        assert found[0][0] in (401, 404, 405, 422)
        assert found[1] == (200, b'{"status":"ok"}')


def test_java_by_default(collector: Collector, tmp_path: Path) -> None:
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("a JDK is not installed: what Java sends is tested from a recording alone")
    (tmp_path / "body").write_bytes(framed(SURVEY, [1] * 3))
    url = f"{collector.url}/v1/surveys/{SURVEY.task}/reports"
    command = ["java", str(Path(__file__).with_name("Post.java")), url, FRAMED["Content-Type"], str(tmp_path / "body")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.stdout.splitlines() == ['200 {"acknowledged":3}'] * 2, done.stderr


CHUNKED = "Transfer-Encoding: chunked"
REFUSED = {
    "no host": (400, post(b"", "Content-Length: 0")),
    "two hosts": (400, post(b"", "Host: x", "Host: y", "Content-Length: 0")),
    "the same host twice": (400, post(b"", "Host: x", "Content-Length: 0", "host: x")),
    "two hosts in 1.0": (400, post(b"", "Host: x", "Host: y", "Content-Length: 0", version="1.0")),
    "chunks in 1.0": (400, post(b"0\r\n\r\n", "Host: x", CHUNKED, version="1.0")),
    "another expectation": (417, post(b"a", "Host: x", "Content-Length: 1", "Expect: 200-ok")),
    "one expectation more": (417, post(b"a", "Host: x", "Content-Length: 1", "Expect: 100-continue, x")),
    "expectations in two lines": (417, post(b"", "Host: x", "Content-Length: 0", "Expect: x", "Expect: 100-continue")),
    "chunks beside a length": (400, post(b"0\r\n\r\n", "Host: x", CHUNKED, f"Content-Length: {len(HIDDEN) + 5}")),
    "a length beside chunks": (400, post(b"0\r\n\r\n", "Host: x", f"Content-Length: {len(HIDDEN) + 5}", CHUNKED)),
    "two lengths": (400, post(b"", "Host: x", "Content-Length: 0", f"Content-Length: {len(HIDDEN)}")),
    "the same length twice": (400, post(b"", "Host: x", "Content-Length: 0", "Content-Length: 0")),
    "a list of lengths": (400, post(b"a", "Host: x", "Content-Length: 1, 1")),
    "a length with a sign": (400, post(b"a", "Host: x", "Content-Length: +1")),
    "a length in hex": (400, post(b"a", "Host: x", "Content-Length: 0x1")),
    "a space before the colon": (400, post(b"a", "Host: x", "Content-Length : 1")),
    "chunked, identity": (400, post(b"0\r\n\r\n", "Host: x", f"{CHUNKED}, identity")),
    "identity": (501, post(b"", "Host: x", "Transfer-Encoding: identity")),
    "gzip, chunked": (501, post(b"0\r\n\r\n", "Host: x", "Transfer-Encoding: gzip, chunked")),
    "chunked twice": (400, post(b"0\r\n\r\n", "Host: x", CHUNKED, CHUNKED)),
    "nearly chunked": (501, post(b"0\r\n\r\n", "Host: x", "Transfer-Encoding: xchunked")),
    "chunked with a parameter": (501, post(b"0\r\n\r\n", "Host: x", f"{CHUNKED};q=1")),
    "a folded line": (400, post(b"", "Host: x", "X: a", " b", "Content-Length: 0")),
    "a folded length": (400, post(b"a", "Host: x", "Content-Length:", " 1")),
    "line feeds alone": (400, post(b"", "Host: x", "Content-Length: 0").replace(b"\r\n", b"\n")),
    "a line feed within a head": (400, post(b"", "Host: x\nX: y", "Content-Length: 0")),
    "a carriage return alone": (400, post(b"", "Host: x\rX: y", "Content-Length: 0")),
    "a line feed after a chunk": (400, post(b"1\r\na\n0\r\n\r\n", "Host: x", CHUNKED)),
    "no end of a chunk": (400, post(b"1\r\naXX0\r\n\r\n", "Host: x", CHUNKED)),
    "a line feed in an extension": (400, post(b"1;a\na\r\n0\r\n\r\n", "Host: x", CHUNKED)),
    "a chunk in 0x": (400, post(b"0x1\r\na\r\n0\r\n\r\n", "Host: x", CHUNKED)),
    "a chunk that is too large": (400, post(b"10000000000000001\r\na\r\n0\r\n\r\n", "Host: x", CHUNKED)),
    "a length as a trailer": (400, post(b"0\r\nContent-Length: 1\r\n\r\n", "Host: x", CHUNKED)),
    "CONNECT": (405, b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"),
    "HTTP/2.0": (505, b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n"),
    "the preface of HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "HTTP/0.9": (505, b"GET /healthz\r\n\r\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_doubtful_request_is_refused_and_ends_the_connection(collector: Collector, name: str) -> None:
    status, sent = REFUSED[name]
    found = answers(collector, sent + HIDDEN + LAST)
    assert [one[0] for one in found] == [status], found
    assert found[0][1].startswith(b'{"error": {"code": ')
    # never in the place of the answer to a request in front of it
    body = framed(SURVEY, [1])
    assert answers(collector, sized(body) + sent + HIDDEN)[0] == (200, b'{"acknowledged":1}')
    ordinary = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    assert answers(collector, ordinary + sent)[0][0] == 200


def test_a_request_that_is_refused_is_not_begun(collector: Collector) -> None:
    write = collector.token("surveys:write")["Authorization"]
    path = f"/v1/surveys/{SURVEY.task}/close"
    for line in ("Transfer-Encoding: identity", "Host: y", "Expect: x"):
        sent = post(b"", "Host: x", f"Authorization: {write}", line, path=path)
        assert answers(collector, sent)[0][0] in (400, 417, 501)
    published = httpx.get(f"{collector.url}/v1/surveys/{SURVEY.task}")
    assert published.status_code == 200  # 410 once it is closed


def test_what_leaves_no_doubt_is_taken(collector: Collector) -> None:
    body = framed(SURVEY, [1])
    chunks = b'%x;a=b;c="d"\r\n%s\r\n0;e\r\nX: y\r\n\r\n' % (len(body), body)
    for sent in (
        post(chunks, "Host: x", CHUNKED),
        post(chunks, "Host:", CHUNKED.upper()),
        post(chunks, "Host: x", CHUNKED, path=f"http://other.example/v1/surveys/{SURVEY.task}/reports"),
        post(body, "Host: x", f"Content-Length: 000{len(body)} "),
    ):
        assert answers(collector, sent + LAST) == [(200, b'{"acknowledged":1}'), (200, b'{"status":"ok"}')]
    assert answers(collector, post(body, f"Content-Length: {len(body)}", version="1.0"))[0][0] == 200


def test_100_continue(collector: Collector) -> None:
    body = framed(SURVEY, [1])
    length = f"Content-Length: {len(body)}"
    with socket.create_connection(("127.0.0.1", collector.port), LIMIT) as connection:
        connection.sendall(post(b"", "Host: x", length, "Expect: 100-Continue"))
        assert connection.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(1_000).split()[1] == b"200"
    # HTTP/1.0 has no interim answers
    assert answers(collector, post(body, length, "Expect: 100-continue", version="1.0"))[0][0] == 200


def test_a_client_that_half_closes_gets_its_answers(collector: Collector) -> None:
    first, second = framed(SURVEY, [1]), framed(SURVEY, [1] * 2)
    acknowledged = [(200, b'{"acknowledged":%d}' % number) for number in (1, 2)]
    assert answers(collector, sized(first), half_close=True) == acknowledged[:1]
    chunked = post(b"%x\r\n%s\r\n0\r\n\r\n" % (len(second), second), "Host: x", CHUNKED)
    assert answers(collector, chunked, half_close=True) == acknowledged[1:]
    both = sized(first) + chunked
    assert answers(collector, both, half_close=True) == acknowledged
    # an incomplete request behind them is dropped
    for part in (b"GET /hea", post(b"ab", "Host: x", "Content-Length: 9"), sized(first)[:-1]):
        assert answers(collector, both + part, half_close=True) == acknowledged
        assert answers(collector, part, half_close=True) == []
    assert answers(collector, HIDDEN, half_close=True)[0][0] == 200
    large = os.urandom(2_000_000)  # read in many pieces
    assert answers(collector, sized(large), half_close=True)[0][0] == 422
    assert answers(collector, b"", half_close=True) == []


def test_heads_are_judged_alike_in_any_order() -> None:
    def refused(version: str, *headers: tuple[bytes, bytes]) -> bool:
        found = {_refused_head(b"POST", version, list(part), dict(part)) is None for part in (headers, headers[::-1])}
        assert len(found) == 1
        return not found.pop()

    host, coding = (b"host", b"x"), (b"transfer-encoding", b"chunked")
    assert not refused("1.1", host, coding, (b"expect", b"100-continue"))
    assert not refused("1.1", host, (b"accept", b"a"), (b"accept", b"b"))
    assert not refused("1.0")
    assert refused("1.1", coding)
    assert refused("1.0", host, coding)
    assert refused("1.1", host, (b"expect", b""))
    assert refused("1.1", host, (b"expect", b"100-continue"), (b"expect", b"x"))
