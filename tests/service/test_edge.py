"""The edge is bounded: heads, bodies and connections cost a stranger more than they cost the collector."""

from __future__ import annotations

import contextlib
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psutil
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running

from veil.collector.edge.protocol import Edge, files_needed
from veil.collector.monitoring.metrics import Metrics
from veil.collector.settings import CollectorSettings

MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    limits = {"VEIL_HEAD_SECONDS": "2", "VEIL_HEAD_BYTES": "16384", "VEIL_METRICS_OPEN": "true"}
    with running(tmp_path_factory.mktemp("edge") / "data", **limits) as one:
        one.open_survey()
        yield one


def connect(collector: Collector) -> socket.socket:
    return socket.create_connection(("127.0.0.1", collector.port), LIMIT)


def flood(connection: socket.socket, piece: bytes, most: int) -> int:
    """Send the same piece again and again until the other side has had enough; how many bytes went out."""
    sent = 0
    with contextlib.suppress(OSError):
        while sent < most:
            connection.sendall(piece)
            sent += len(piece)
    return sent


def ends(connection: socket.socket) -> bytes:
    """What came until the other side closed."""
    parts = []
    with contextlib.suppress(OSError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def memory(collector: Collector) -> int:
    assert collector.process is not None
    return int(psutil.Process(collector.process.pid).memory_info().rss)


FLOODS = {
    "headers": (b"GET /healthz HTTP/1.1\r\n", b"X-Filler: " + b"a" * 8_000 + b"\r\n"),
    "one header": (b"GET /healthz HTTP/1.1\r\nX: ", b"a" * 65_536),
    "the path": (b"GET /", b"a" * 65_536),
    "trailers": (
        b"POST /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"T: " + b"a" * 8_000 + b"\r\n",
    ),
    "trailers after a body that nobody reads": (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + (b"%x\r\n" % 65_536 + b"a" * 65_536 + b"\r\n") * 48
        + b"0\r\n",
        b"T: " + b"a" * 8_000 + b"\r\n",
    ),
    "one trailer": (b"POST /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ", b"a" * 65_536),
    "extensions of a chunk": (
        b"POST /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;e=",
        b"a" * 65_536,
    ),
    "empty lines": (b"", b"\r\n" * 4_096),
    "empty lines after a request": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n" * 4_096),
}


@pytest.mark.parametrize("name", FLOODS)
def test_300_megabytes_that_are_no_body(collector: Collector, name: str) -> None:
    begin, piece = FLOODS[name]
    before = memory(collector)
    with connect(collector) as connection:
        connection.sendall(begin)
        sent = flood(connection, piece, 300 * MEBIBYTE)
    assert sent < 20 * MEBIBYTE  # what the kernels on both sides hold; the limit is 16 KiB
    assert memory(collector) < before + 20 * MEBIBYTE
    assert httpx.get(f"{collector.url}/healthz", timeout=LIMIT).status_code == 200


def test_a_large_head_is_told_so_in_one_piece_and_in_many(collector: Collector) -> None:
    for size, status in ((8_000, b"200"), (30_000, b"431"), (200_000, b"431")):
        whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: " + b"a" * size + b"\r\n\r\n"
        for step in (len(whole), 3_000):
            with connect(collector) as connection:
                with contextlib.suppress(OSError):
                    for i in range(0, len(whole), step):
                        connection.sendall(whole[i : i + step])
                got = ends(connection)
                assert not got or got.split()[1] == status, got  # a reset may take the words away
                assert got or status != b"200"


def test_a_chunked_body_is_taken(collector: Collector) -> None:
    def pieces() -> Iterator[bytes]:
        for byte in body:
            yield bytes([byte])

    body = framed(SURVEY, [1] * 200)
    answer = httpx.post(f"{collector.url}/v1/surveys/{SURVEY.task}/reports", content=pieces(), headers=FRAMED)
    assert answer.status_code == 200, answer.text


def test_an_encoded_body_is_refused(collector: Collector) -> None:
    path = f"{collector.url}/v1/surveys/{SURVEY.task}/reports"
    for encoding in ("gzip", "br", "deflate, gzip", "x"):
        answer = httpx.post(path, content=framed(SURVEY, [1]), headers={**FRAMED, "Content-Encoding": encoding})
        assert (answer.status_code, answer.json()["error"]["expected"]) == (415, "no Content-Encoding")
    same = {**FRAMED, "Content-Encoding": "identity"}
    assert httpx.post(path, content=framed(SURVEY, [1]), headers=same).status_code == 200


@pytest.mark.parametrize("kept", [False, True], ids=["a first head", "a head on a kept connection"])
def test_a_head_that_does_not_come_in_time(collector: Collector, kept: bool) -> None:
    with connect(collector) as connection, connect(collector) as silent:
        if kept:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            got = b""
            while not got.endswith(b"}"):
                got += connection.recv(65_536)
            assert got.split()[1] == b"200"
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with contextlib.suppress(OSError):
            while not (got := _nearly(connection)):
                connection.sendall(b"a")  # a little now and then does not help
        assert got.split()[1] == b"408", got
        assert b'"too-slow"' in got
        assert ends(silent) == b""


def _nearly(connection: socket.socket) -> bytes:
    connection.settimeout(0.2)
    try:
        return connection.recv(65_536)
    except TimeoutError:
        return b""


def test_what_is_not_http_is_refused_in_one_shape(collector: Collector) -> None:
    with connect(collector) as connection:
        connection.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
        got = ends(connection)
    assert got.split()[1] == b"400"
    assert b'{"error": {"code": "bad-request"' in got
    assert "Invalid HTTP" not in collector.log  # no line for each of them
    assert 'reason="not-http"' in httpx.get(f"{collector.url}/metrics").text


def test_requests_one_behind_the_other_are_answered_in_order(collector: Collector) -> None:
    with connect(collector) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + b"GET /none HTTP/1.1\r\nHost: x\r\n")
        connection.sendall(b"Connection: close\r\n\r\n")
        got = ends(connection)
    assert [part.split()[0] for part in got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"200", b"404"]


def test_requests_that_wait_behind_each_other_take_little_memory(collector: Collector) -> None:
    one = b"GET / HTTP/1.1\r\nHost:\r\n\r\n"
    piece = one * (250_000 // len(one))
    before = memory(collector)
    with contextlib.ExitStack() as held:
        for _ in range(8):
            connection = held.enter_context(connect(collector))
            with contextlib.suppress(OSError):
                connection.sendall(piece)
        until(lambda: closed(collector, "too-many-queued") >= 8)
        assert memory(collector) < before + 20 * MEBIBYTE  # it would be 30 for each of them


def test_a_request_for_another_protocol_writes_no_line(collector: Collector) -> None:
    before = collector.log
    for protocol in (b"h2c", b"websocket"):
        with connect(collector) as connection:
            connection.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n" % protocol
            )
            assert connection.recv(65_536).split()[1] == b"200"
    assert httpx.get(f"{collector.url}/healthz").status_code == 200
    assert collector.log == before


@contextlib.contextmanager
def half_open(port: int, number: int) -> Iterator[None]:
    """So many connections with half a head each, from processes of their own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    each = min(number, (hard if hard != resource.RLIM_INFINITY else 1 << 20) - 200)
    code = """
import resource, socket, sys
port, number = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (number + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
while len(held) < number:
    one = socket.create_connection(("127.0.0.1", port), 300)
    try:
        one.sendall(b"POST /v1/surveys HTTP/1.1\\r\\nHost: x\\r\\nX-Half: ")
    except OSError:
        pass
    held.append(one)
print("held", flush=True)
sys.stdin.read()
"""
    parts = [each] * (number // each) + ([number % each] if number % each else [])
    commands = [[sys.executable, "-c", code, str(port), str(part)] for part in parts]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, **pipes) for command in commands]
    try:
        yield
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(("number", "most"), [(3_000, 100), pytest.param(10_000, 500, marks=pytest.mark.acceptance)])
def test_half_open_connections_keep_nobody_out(tmp_path: Path, number: int, most: int) -> None:
    with running(tmp_path / "data", VEIL_MAX_CONNECTIONS=str(most), VEIL_METRICS_OPEN="true") as collector:
        assert collector.process is not None
        process = psutil.Process(collector.process.pid)
        path = f"{collector.url}{collector.open_survey()}/reports"
        assert httpx.post(path, content=framed(SURVEY, [1]), headers=FRAMED, timeout=LIMIT).status_code == 200
        assert httpx.get(f"{collector.url}/readyz", timeout=LIMIT).status_code == 200  # loads what answers need
        files, before, served = process.num_fds(), memory(collector), 0
        with half_open(collector.port, number):

            def flooded() -> bool:
                nonlocal served
                answer = httpx.post(path, content=framed(SURVEY, [1]), headers=FRAMED, timeout=LIMIT)
                assert answer.status_code == 200, answer.text
                served += 1
                assert process.num_fds() <= files + most + 1_024 + 64  # the backlog may be taken at once
                return closed(collector) >= number - most - 64

            until(flooded, lambda: collector.log)
        assert served > 1
        assert memory(collector) < before + 60 * MEBIBYTE
        told = collector.log.count('"connections-full"')
        assert told >= 1
        assert told * 100 < closed(collector)


def closed(collector: Collector, reason: str = "crowded-out") -> int:
    text = httpx.get(f"{collector.url}/metrics", timeout=LIMIT).text
    begin = f'veil_connections_closed_total{{reason="{reason}"}}'
    found = [line for line in text.splitlines() if line.startswith(begin)]
    return int(found[0].split()[1]) if found else 0


def test_the_limit_on_open_files_is_raised_as_far_as_needed() -> None:
    code = "import resource\nfrom veil.collector.edge.protocol import files_needed\n"
    code += "from veil.tools.limits import require_files\n"
    code += "for soft, hard, connections in ((6_000, 8_192, 4_096), (1_024, 8_192, 4_096), (256, 1_300, 64)):\n"
    code += "    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))\n"
    code += "    files = files_needed(connections)\n    require_files(files, 'a test')\n"
    code += "    print(files, resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert found == ["5312", "6000", "5312", "5312", "1280", "1280"]  # never lowered
    assert files_needed(10) == 10 + 1_024 + 192


def test_a_collector_that_may_open_too_few_files_does_not_start(tmp_path: Path) -> None:
    script = 'ulimit -n 1000; exec "$0" -m veil.cli serve --port 0 --folder data'
    command = ["bash", "-c", script, sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: open files: expected a limit of at least 5312 for the collector (max_connections = 4096), got 1000;"
        " raise the limit first (`ulimit -n 5312`, or LimitNOFILE= in a unit)"
    ]
    assert not (tmp_path / "data").exists()


class Waiting:
    """A connection as the edge sees it."""

    def __init__(self, edge: Edge) -> None:
        self.edge, self.told = edge, list[str]()

    def drop(self, reason: str) -> None:
        self.told.append(reason)
        self.edge.connections.discard(self)  # type: ignore[arg-type]
        for place in (self.edge.heads, self.edge.idle, self.edge.bodies, self.edge.stalled, self.edge.closing):
            place.pop(self, None)  # type: ignore[call-overload]

    def notice_close(self) -> None:
        """Nobody closes it."""

    give_up = drop


def test_the_one_that_waited_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(time=0.0)
    edge: Any = Edge(CollectorSettings(head_seconds=10, body_seconds=30), Metrics(), 3, None, lambda: now.time)
    monkeypatch.setattr(edge, "_looking", True)
    first, second, third = (Waiting(edge) for _ in range(3))
    for one, place in ((second, edge.bodies), (first, edge.heads), (third, edge.idle)):
        assert edge.admit()
        edge.connections.add(one)
        now.time += 1
        place[one] = now.time
    assert edge.admit()
    assert (second.told, first.told, third.told) == (["crowded-out"], [], [])
    edge.connections.add(Waiting(edge))
    now.time += 10.5
    edge.look()
    assert (first.told, third.told) == (["head-too-slow"], [])
    now.time += 100
    edge.look()
    assert third.told == ["idle"]
    edge.connections.update(Waiting(edge) for _ in range(3))  # all of them at work
    assert not edge.admit()


def test_answers_that_nobody_reads_and_bodies_that_nobody_sends_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(time=0.0)
    edge: Any = Edge(CollectorSettings(body_seconds=30), Metrics(), 9, None, lambda: now.time)
    slow, stalled = Waiting(edge), Waiting(edge)
    edge.bodies[slow] = edge.stalled[stalled] = 0.0
    now.time = 34
    edge.look()
    assert slow.told == stalled.told == []
    now.time = 61
    edge.look()
    assert (slow.told, stalled.told) == (["body-too-slow"], ["answer-not-read"])
