"""One connection at the edge, without a network: what it may send, how it ends, and what it costs meanwhile."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from veil.collector.edge.protocol import Edge, HttpConnection, protocol_of
from veil.collector.monitoring.metrics import Metrics
from veil.collector.settings import CollectorSettings

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Line(asyncio.Transport):
    """A line to somebody who reads nothing, unless `unsent` says otherwise: a close waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.unsent, self.written, self.closed, self.aborted = 0, b"", False, False
        self.protocol: Any = None

    def write(self, data: Any) -> None:
        self.written += data
        self.unsent += len(data)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True
        self.protocol.connection_lost(None)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Place:
    """An edge, what its application is asked, and connections to it."""

    def __init__(self, most: int = 4) -> None:
        self.now, self.asked, self.bodies = 0.0, list[Any](), list[bytes]()
        self.metrics = Metrics()
        settings = CollectorSettings(head_bytes=4_096, max_body_bytes=100_000, close_seconds=5)
        self.edge = Edge(settings, self.metrics, most, None, lambda: self.now)
        self.reads_bodies = True
        self._config = uvicorn.Config(self._answer, interface="asgi3", log_config=None, access_log=False, ws="none")
        self._config.load()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope)
        body, more = b"", self.reads_bodies
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2000")]})
        await send({"type": "http.response.body", "body": b"a" * 2_000})

    def connect(self) -> tuple[HttpConnection, Line]:
        line = Line()
        line.protocol = protocol_of(self.edge)(self._config, ServerState(), {})
        line.protocol.connection_made(line)
        return line.protocol, line

    def closed(self, reason: str) -> int:
        return self.metrics.value("veil_connections_closed_total", reason=reason)


async def until_quiet() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def within_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("size", [1, 50, 5_000])
@pytest.mark.parametrize("reads_bodies", [True, False], ids=["a body that is read", "a body that nobody reads"])
@within_a_loop
async def test_a_body_earns_no_trailers(size: int, reads_bodies: bool) -> None:
    place = Place()
    place.reads_bodies = reads_bodies
    connection, line = place.connect()
    connection.data_received(HEAD)
    await until_quiet()
    for _ in range(90_000 // size // 100 or 1):
        connection.data_received(chunk(b"a" * size) * min(100, 90_000 // size))
        await until_quiet()
        assert not line.closed
    connection.data_received(b"0\r\n")
    sent = 0
    while not line.closed and sent < 1_000_000:
        connection.data_received(b"T: " + b"a" * 500 + b"\r\n")
        sent += 505
    assert 3_000 < sent <= 4_096 + 505
    assert place.closed("head-too-large") == 1
    assert [name for name, _ in place.asked[0]["headers"]] == [b"host", b"transfer-encoding"]


@within_a_loop
async def test_trailers_are_taken_and_forgotten() -> None:
    place = Place()
    connection, line = place.connect()
    connection.data_received(HEAD + chunk(b"abc") + b"0\r\nT: x\r\nAuthorization: y\r\n\r\n" + GET)
    await until_quiet()
    assert place.bodies == [b"abc", b""]
    assert [name for name, _ in place.asked[0]["headers"]] == [b"host", b"transfer-encoding"]
    assert line.written.count(b"200 OK") == 2
    assert not line.closed


@within_a_loop
async def test_a_body_that_nobody_reads_ends() -> None:
    place = Place()
    place.reads_bodies = False
    connection, line = place.connect()
    connection.data_received(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
    await until_quiet()
    sent = 0
    while not line.closed and sent < 1_000_000:
        connection.data_received(b"a" * 10_000)
        sent += 10_000
    assert sent == 110_000  # the most that a body may have, and a piece
    assert place.closed("body-not-read") == 1


ENDS = {"a last request": LAST, "what is not HTTP": GET + b"\0\0\r\n\r\n", "a large head": GET + b"X: " + b"a" * 9_000}


@pytest.mark.parametrize("name", ENDS)
@within_a_loop
async def test_a_close_that_waits_for_the_other_side_ends(name: str) -> None:
    place = Place()
    connection, line = place.connect()
    connection.data_received(ENDS[name])
    await until_quiet()
    assert line.closed
    assert not line.aborted  # the answer may be on its way
    assert len(place.edge.connections) == 1  # it is a file that is open
    place.now = 4.9
    place.edge.look()
    assert not line.aborted
    place.now = 5.1
    place.edge.look()
    assert line.aborted
    assert not place.edge.connections
    assert not place.edge.closing
    assert place.closed("close-too-slow") == 1


@within_a_loop
async def test_a_slow_line_is_given_time_to_close_but_not_for_ever() -> None:
    place = Place()
    connection, line = place.connect()
    connection.data_received(LAST)
    await until_quiet()
    before = line.unsent
    looks = 0
    while not line.aborted and looks < 99:
        looks += 1
        place.now += 5.1
        line.unsent //= 2
        place.edge.look()
        if looks == 3:
            assert not line.aborted
            line.unsent += 1
    assert before > 2_000
    assert 3 < looks < 20
    connection, line = place.connect()
    connection.data_received(LAST)
    await until_quiet()
    line.unsent = line.unsent * 2 // 3  # it drips
    place.now += 5.1
    place.edge.look()
    assert line.aborted


@within_a_loop
async def test_a_close_that_the_server_began_is_noticed() -> None:
    place = Place()
    connection, line = place.connect()
    connection.data_received(GET)
    await until_quiet()
    connection.shutdown()  # uvicorn's own way
    assert line.closed
    place.edge.look()
    assert list(place.edge.closing) == [connection]
    place.now = 5.1
    place.edge.look()
    assert line.aborted


@within_a_loop
async def test_those_who_do_not_read_the_last_answer_keep_nobody_out() -> None:
    place = Place(most=3)
    lines = []
    for _ in range(3):
        connection, line = place.connect()
        connection.data_received(LAST)
        lines.append(line)
        await until_quiet()
        place.now += 0.1
    other, line = place.connect()
    other.data_received(GET)
    await until_quiet()
    assert b"200 OK" in line.written
    assert [one.aborted for one in lines] == [True, False, False]
    assert len(place.edge.connections) == 3


@within_a_loop
async def test_few_requests_wait_behind_each_other() -> None:
    place = Place()
    connection, line = place.connect()
    connection.data_received(GET * 17)
    await until_quiet()
    assert line.written.count(b"200 OK") == 17
    connection, line = place.connect()
    for _ in range(17):
        connection.data_received(GET)
    assert not line.aborted
    connection.data_received(GET * 5_000)
    await until_quiet()
    assert line.aborted
    assert place.closed("too-many-queued") == 1
    assert len(place.asked) <= 17 + 1  # none of those that waited is begun


@within_a_loop
async def test_what_stands_behind_a_refused_request_is_not_begun() -> None:
    place = Place()
    for refused in (b"GET /large HTTP/1.1\r\nX: " + b"a" * 9_000 + b"\r\n\r\n", b"GET /\0 HTTP/1.1\r\n\r\n"):
        connection, line = place.connect()
        connection.data_received(refused + GET)
        connection.data_received(GET)
        await until_quiet()
        assert line.written.count(b"HTTP/1.1 4") == 1
        assert b"200 OK" not in line.written
    connection, line = place.connect()
    connection.data_received(LAST + GET)
    await until_quiet()
    assert line.written.count(b"HTTP/1.1 ") == 1
    assert len(place.asked) == 1


@within_a_loop
async def test_many_headers_are_too_large_a_head() -> None:
    place = Place()
    for number, whole, status in ((98, True, b"200"), (101, True, b"431"), (101, False, b"431")):
        connection, line = place.connect()
        head = b"GET /x HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * number + b"a"
        connection.data_received(head + b": b\r\n\r\n" if whole else head)
        await until_quiet()
        assert line.written.split()[1] == status
    assert len(place.asked) == 1
