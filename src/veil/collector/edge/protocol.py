"""HTTP connections with limits that uvicorn's protocol lacks.

- A head has at most `head_bytes` and `head_seconds`, a body `body_seconds`; answers must be read, the last one too.
- What is no body counts with the head: trailers, extensions of chunks, empty lines. No body adds to that allowance.
- A head must leave no doubt where its body ends. An upgrade is never offered, so `Upgrade` is ignored (RFC 9110, 7.8).
- The number of connections is bounded, below the number of files that may be open. When all are taken, a new one
  replaces the one that has waited longest without a whole request: a client that sends a request at once gets in,
  however many others hold connections open. Only if requests of all of them are being worked on is it refused.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from veil.collector.edge.ingest import Ingest, IngestRequest
from veil.collector.edge.limits import AddressLimit
from veil.collector.http.routes import RequestCounter
from veil.collector.monitoring.logs import RateLimitedLog
from veil.collector.monitoring.metrics import Metrics
from veil.collector.settings import CollectorSettings

BACKLOG = 1024
"""Connections that the system holds before they are taken; all of them may be taken at once."""
# 16 of the process, 8 of exports, and 4 of the database for each of at most 42 threads (32 of asyncio's, 10 of ours)
_OTHER_FILES = 192
_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 5  # a body that comes too slowly is refused in words first (`limits.read_body`)
_IDLE_SECONDS = 75  # longer than a reverse proxy's, so that it is never the one to be surprised
_STALLED_SECONDS = 60
_MOST_HEADERS = 100  # each takes some hundred bytes of memory, however short it is
_MOST_QUEUED = 16  # requests that came before the one in front of them was answered
_UNLIMITED = (b"/healthz", b"/readyz")
_FROM_PROXY = frozenset((b"x-forwarded-for", b"forwarded", b"x-real-ip"))
_RARE = frozenset((b"transfer-encoding", b"expect"))  # headers that are looked at more closely
_Headers = list[tuple[bytes, bytes]]
_Refusal = tuple[bytes, bytes, bytes, bytes]
"""Status line, code, message and further header lines of an answer."""
_HEAD, _BODY, _WHOLE = range(3)  # how much of the current request has come
_ANSWER = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n%s\r\n%s"


def files_needed(connections: int) -> int:
    """Return how many files a process may have open at once with so many connections."""
    return connections + BACKLOG + _OTHER_FILES


class Edge:
    """All connections by what they wait for, each kind in the order in which the waiting began.

    `heads` wait for a head, `idle` for another request, `bodies` for the rest of a body. The clients of `stalled` do
    not read their answers, and `closing` are closed except for the rest of an answer. All count until they are gone.
    """

    def __init__(
        self,
        settings: CollectorSettings,
        metrics: Metrics,
        most: int,
        limit: AddressLimit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.head_bytes, self.body_bytes = settings.head_bytes, settings.max_body_bytes
        self.most, self.clock = most, clock
        self._metrics, self._limit = metrics, limit
        self._address_header = settings.address_header.lower().encode()
        self.heads: dict[HttpConnection, float] = {}
        self.idle: dict[HttpConnection, float] = {}
        self.bodies: dict[HttpConnection, float] = {}
        self.stalled: dict[HttpConnection, float] = {}
        self.closing: dict[HttpConnection, float] = {}
        self.connections: set[HttpConnection] = set()
        metrics.watch("veil_connections", lambda: len(self.connections))
        self._limits = (
            (self.heads, settings.head_seconds, "head-too-slow"),
            (self.idle, _IDLE_SECONDS, "idle"),
            (self.bodies, settings.body_seconds + _GRACE_SECONDS, "body-too-slow"),
            (self.stalled, _STALLED_SECONDS, "answer-not-read"),
            (self.closing, settings.close_seconds, "close-too-slow"),
        )
        self._looking = False
        self._log = RateLimitedLog(clock)

    def admit(self) -> bool:
        """Whether a new connection may stay; makes room for it by closing the one that has waited longest."""
        if not self._looking:
            self._looking = True
            self._look_again()
        if len(self.connections) < self.most:
            return True
        self._log("warning", "connections-full", most=self.most)
        self.note_limit("max_connections")
        oldest = min(
            (next(iter(waiting.items())) for waiting, _, _ in self._limits if waiting), key=_since, default=None
        )
        if oldest is None:
            self.count("refused")
            return False
        oldest[0].drop("crowded-out")
        return True

    def charge_of(self, connection: HttpConnection, posts: bool) -> RequestCounter | None:
        """Return what counts requests from where this head came, or None if they are not limited.

        Posts of reports are counted apart from other requests.
        """
        if self._limit is None or connection.url in _UNLIMITED:
            return None
        address = connection.client[0] if connection.client else ""
        if self._address_header:  # a proxy's own word, which is the last
            given = [value for name, value in connection.headers if name == self._address_header]
            address = given[-1].rpartition(b",")[2].strip().decode("latin-1") if given else address
        return functools.partial(self._limit.wait, address, b"post" if posts else b"")

    def note_limited(self, headers: dict[bytes, bytes]) -> None:
        """Log a refusal that a proxy without `address_header` causes: all that it passes on counts as one address."""
        if not self._address_header and not _FROM_PROXY.isdisjoint(headers):
            self._log("warning", "proxy-counts-as-one-address", advice="set address_header or limits_at_proxy")

    def count(self, reason: str) -> None:
        """One more connection was closed from here."""
        self._metrics.add("veil_connections_closed_total", reason=reason)

    def note_limit(self, limit: str) -> None:
        """Count a connection or a head that met a limit."""
        self._metrics.add("veil_limits_reached_total", limit=limit)

    def look(self) -> None:
        """Close what takes too long. The oldest of each kind stand first."""
        for connection in self.connections:
            connection.notice_close()
        now = self.clock()
        for waiting, seconds, reason in self._limits:
            late = []
            for connection, since in waiting.items():
                if now - since <= seconds:
                    break
                late.append(connection)
            for connection in late:
                connection.give_up(reason)
        if self._limit is not None:
            self._limit.turn()

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_again)
        self.look()


def _refused_head(method: bytes, version: str, headers: _Headers, named: dict[bytes, bytes]) -> _Refusal | None:
    """Return the refusal of a head, or None if its request may begin. `named` has the same headers by name.

    The parser has refused what it does not understand, and a length beside chunks. What it lets pass and others might
    read differently is refused here.
    """
    plain = version == "1.1" and method != b"CONNECT" and _RARE.isdisjoint(named)
    if plain and b"host" in named and len(named) == len(headers):  # nearly always
        return None
    hosts = codings = 0
    coding, expected = b"chunked", b"100-continue"
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            codings, coding = codings + 1, value.lower()
        elif name == b"expect" and expected == b"100-continue":
            expected = value.lower()
    if version not in ("1.1", "1.0"):
        return b"505 HTTP Version Not Supported", b"bad-request", b"expected HTTP/1.1", b""
    if method == b"CONNECT":
        return (
            b"405 Method Not Allowed",
            b"method-not-allowed",
            b"expected another method than CONNECT",
            b"allow: GET, POST\r\n",
        )
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        return b"400 Bad Request", b"bad-request", b"expected one Host header, got %d" % hosts, b""
    if codings and version == "1.0":
        return b"400 Bad Request", b"bad-request", b"expected no Transfer-Encoding in HTTP/1.0", b""
    if codings > 1 or coding != b"chunked":
        return b"501 Not Implemented", b"bad-request", b"expected no Transfer-Encoding but chunked", b""
    if expected != b"100-continue":
        return b"417 Expectation Failed", b"bad-request", b"expected no Expect but 100-continue", b""
    return None


class _Nobody(list[Any]):
    """A list that drops trailers, which uvicorn would add to the headers of a request that is under way."""

    def append(self, item: Any) -> None:
        """Forget it."""


class _EndedError(Exception):
    """The end of a connection within a piece of input; the rest of the piece is ignored."""


_NOBODY = _Nobody()


class HttpConnection(HttpToolsProtocol):
    """An HTTP connection. It overrides methods that asyncio and the parser call, and uvicorn's `on_response_complete`.

    `veil.collector.serve.check_uvicorn` says which versions of uvicorn it is tested with.
    """

    edge: ClassVar[Edge]
    ingest: ClassVar[Ingest | None] = None
    _phase = _WHOLE
    _beside = 0  # bytes since the last request that are no body, nor what a chunk of it needs around it
    _chunk = 0  # bytes of the current chunk
    _skipped = 0  # bytes of a body that come after the answer
    _unsent = 0  # bytes of answers, when it was last looked at how a close gets on
    _ended = False  # nothing that comes is looked at any more
    _last = False  # no more requests come: it is closed after the answers that are due
    _again = b""  # a head that asked for an upgrade, without asking: it is parsed once more
    _waits: dict[HttpConnection, float] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.edge.admit():
            self._refuse(b"503 Service Unavailable", b"busy", b"too many connections: try again", b"retry-after: 1\r\n")
            return
        self.edge.connections.add(self)
        self._wait_in(self.edge.heads)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if isinstance(self.cycle, IngestRequest):
            self.cycle.release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._beside += len(data)
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as stop:  # behind a head: its body and what follows are still HTTP/1.1
                self.parser = httptools.HttpRequestParser(self)
                data, self._again = self._again + data[stop.args[0] :], b""
            except httptools.HttpParserError:
                self.send_400_response("")
                break
        if self._ended:
            return
        if self._beside > self.edge.head_bytes or (self._phase == _HEAD and len(self.headers) > _MOST_HEADERS):
            self._refuse_head()
        else:
            self._settle()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection open that sends no more (half-closed) until complete requests have their answers."""
        if self.transport.is_closing() or not (self._last or self._answers_due()):
            return False
        self._ended = self._last = True
        self._wait_in(None)
        return True

    def on_message_begin(self) -> None:
        if self._ended:
            raise _EndedError
        self._phase = _HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        large = self._beside > self.edge.head_bytes and self._head_size() > self.edge.head_bytes
        if large or len(self.headers) > _MOST_HEADERS:  # it came whole, in one piece
            self._stop(self._refuse_head)
        method, version = self.parser.get_method(), self.parser.get_http_version()
        named = dict(self.headers)
        refusal = _refused_head(method, version, self.headers, named)
        if refusal is not None:
            self.edge.count("bad-head")
            self._stop(self._refuse_after_answers, *refusal)
        if b"upgrade" in named and self.parser.should_upgrade():
            lines = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
            self._again = b"%s %s HTTP/%s\r\n%s\r\n" % (method, self.url, version.encode(), b"".join(lines))
            return
        if version == "1.0":
            self.expect_100_continue = False  # it knows no interim answers
        self._phase = _BODY
        taken = None
        posts = method == b"POST" and self.url.endswith(b"/reports")
        charge = self.edge.charge_of(self, posts)
        by_token = posts and charge is not None and b"authorization" in named  # checked with the body
        wait = 0 if charge is None or by_token else charge()
        if charge is not None:
            self.scope["veil.charge"] = charge  # type: ignore[typeddict-unknown-key]
        if wait:
            self.edge.note_limited(named)
            self.scope["veil.wait"] = wait  # type: ignore[typeddict-unknown-key]
        if self.cycle is not None and not self.cycle.response_complete:
            if len(self.pipeline) >= _MOST_QUEUED:
                self._stop(self.drop, "too-many-queued")
        elif self.ingest is not None and posts and not wait and not by_token:
            keep_alive = version != "1.0" and self.parser.should_keep_alive()
            taken = self.ingest.take(self, self.url, named, keep_alive, charge)
        if taken is None:
            super().on_headers_complete()
        else:
            self.cycle = taken  # type: ignore[assignment]  # it looks like one
        self.headers = _NOBODY

    def on_body(self, body: bytes) -> None:
        size = len(body)
        self._beside -= size
        self._chunk += size
        if not self.cycle.response_complete:
            super().on_body(body)
            return
        self._skipped += size
        if self._skipped > self.edge.body_bytes:
            self._stop(self.drop, "body-not-read")

    def on_chunk_complete(self) -> None:
        """Around each chunk its size in digits and two ends of lines are needed, and no byte more."""
        self._beside -= len(b"%x" % self._chunk) + 4
        self._chunk = 0

    def on_message_complete(self) -> None:
        if self._again:
            return
        self._phase = _WHOLE
        self._beside = self._chunk = self._skipped = 0
        super().on_message_complete()
        if isinstance(self.cycle, IngestRequest) and not self.cycle.response_complete:
            self.cycle.begin()

    def on_response_complete(self) -> None:
        last = self._last and not self.pipeline
        super().on_response_complete()
        if last:
            self.transport.close()
        if self.transport.is_closing():
            self.notice_close()
        elif not self._ended:
            self._settle()

    def pause_writing(self) -> None:
        self.edge.stalled[self] = self.edge.clock()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.edge.stalled.pop(self, None)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is refused in the shape of every refusal."""
        if self._ended:  # it was stopped from here
            return
        self.edge.count("not-http")
        self._refuse_after_answers(b"400 Bad Request", b"bad-request", b"this is not a request of HTTP/1.1")

    def give_up(self, reason: str) -> None:
        """Close a connection that took too long; whoever is within a request is told."""
        if self._waits is self.edge.heads and self._beside:
            self.edge.count(reason)
            self._refuse(b"408 Request Timeout", b"too-slow", b"the head did not come in time")
        elif (
            self._waits is self.edge.bodies
            and isinstance(self.cycle, IngestRequest)
            and not self.cycle.response_complete
        ):
            self.edge.count(reason)
            self._refuse(b"408 Request Timeout", b"too-slow", b"the body did not come in time")
        elif self._waits is self.edge.closing and reason != "answer-not-read" and self._gets_on():
            self._wait_in(None)
            self._wait_in(self.edge.closing)
        else:
            self.drop(reason)

    def drop(self, reason: str) -> None:
        """Close without a word."""
        self.edge.count(reason)
        self._ended = True
        self._leave()
        self.transport.abort()

    def notice_close(self) -> None:
        """Whoever closed it (uvicorn does too), the close itself must come to an end: it waits for the other side."""
        if self._waits is not self.edge.closing and self.transport.is_closing():
            self._ended = True
            self._unsent = self.transport.get_write_buffer_size()
            self._wait_in(self.edge.closing)

    def _gets_on(self) -> bool:
        """Whether half of what was left has been sent: a slow line is given time, but not for ever."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        return 2 * self._unsent <= before

    def _settle(self) -> None:
        """Wait where this connection now belongs; while a request is worked on, nowhere."""
        if self._phase == _BODY:
            self._wait_in(self.edge.bodies)
            if isinstance(self.cycle, IngestRequest) and not self.cycle.response_complete:
                self.cycle.hold()
        elif self.cycle is not None and not self.cycle.response_complete:
            self._wait_in(None)
        elif self._phase == _HEAD or self.cycle is None:
            self._wait_in(self.edge.heads)
        else:
            self._wait_in(self.edge.idle)

    def _wait_in(self, place: dict[HttpConnection, float] | None) -> None:
        if place is self._waits:
            return
        if self._waits is not None:
            del self._waits[self]
        if place is not None:
            place[self] = self.edge.clock()
        self._waits = place

    def _leave(self) -> None:
        """Take no place any more."""
        self._wait_in(None)
        self.edge.stalled.pop(self, None)
        self.edge.connections.discard(self)

    def _answers_due(self) -> bool:
        """Return True if complete requests wait for answers. Drop an incomplete one that is queued behind them."""
        if self._phase == _BODY:
            if not self.pipeline:
                return False
            self.pipeline.popleft()
            return True
        return self.cycle is not None and not self.cycle.response_complete

    def _answer_begun(self) -> bool:
        return bool(self.cycle.response_complete or getattr(self.cycle, "response_started", False))

    def _refuse_after_answers(self, status: bytes, code: bytes, message: bytes, beside: bytes = b"") -> None:
        """Refuse what is no request. Never in the place of another request's answer: then only close, after it."""
        if self._answers_due():
            self._ended = self._last = True
            self._wait_in(None)
        elif self._phase == _BODY and self._answer_begun():
            self._ended = True
            self.transport.close()
            self.notice_close()
        else:
            self._refuse(status, code, message, beside)

    def _stop(self, end: Callable[..., None], *arguments: str | bytes) -> NoReturn:
        """End the connection while the parser is at work, which stops where it is."""
        end(*arguments)
        raise _EndedError

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse_head(self) -> None:
        self.edge.note_limit("head_bytes")
        if self.cycle is not None and not self.cycle.response_complete:  # trailers, or a head behind a pending answer
            self.drop("head-too-large")
            return
        self.edge.count("head-too-large")
        message = b"this head is too large: expected at most %d bytes" % self.edge.head_bytes
        message += b" and %d headers" % _MOST_HEADERS
        self._refuse(b"431 Request Header Fields Too Large", b"too-large", message)

    def _refuse(self, status: bytes, code: bytes, message: bytes, beside: bytes = b"") -> None:
        self._ended = True
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever its application still says is not sent
        if not self.transport.is_closing():
            body = b'{"error": {"code": "%s", "message": "%s"}}' % (code, message)
            self.transport.write(_ANSWER % (status, len(body), beside, body))
            self.transport.close()
        if self in self.edge.connections:
            self.notice_close()


def _since(waiting: tuple[HttpConnection, float]) -> float:
    return waiting[1]


def protocol_of(edge: Edge, ingest: Ingest | None = None) -> type[HttpConnection]:
    """The protocol for uvicorn, with the edge that its connections share, and the short way for reports."""
    return type("EdgeConnection", (HttpConnection,), {"edge": edge, "ingest": ingest})
