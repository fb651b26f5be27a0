"""The short way of reports: from the parser to the queue, and from the commit back to the socket, past ASGI.

Nearly all requests are one report each, and a task, a scope and a request object for each cost more than the report.
Other requests (Arrow, a long body, a survey that was not asked for lately) go through `http.routes.post_reports`. Tests
compare the answers and refusals of both ways.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from veil.collector.http.routes import FRAMED, RequestCounter, check_batch, check_count
from veil.collector.problems import error_response, noted
from veil.collector.surveys.catalogue import parsed
from veil.errors import ServiceError, VeilError

if TYPE_CHECKING:
    from veil.collector.edge.protocol import HttpConnection
    from veil.collector.http.app import App
    from veil.collector.store.base import StoredSurvey


_BEGIN, _END = b"/v1/surveys/", b"/reports"
_TASK_DIGITS = 64
_URL_BYTES = len(_BEGIN) + _TASK_DIGITS + len(_END)
_MOST_BYTES = 1 << 16  # beyond it uvicorn stops reading until somebody asks for more
_GRACE_SECONDS = 10.0  # a survey may have been looked up so long ago: the transaction that stores looks again anyway
_KIND = FRAMED.encode()
_OTHERWISE = frozenset((b"content-encoding", b"transfer-encoding", b"expect"))  # headers of what goes the ordinary way
_ROUTE = "POST /v1/surveys/{task}/reports"
_Headers = list[tuple[bytes, bytes]]


class Ingest:
    """The short way for requests with framed reports."""

    def __init__(self, app: App) -> None:
        self.app, self.service = app, app.service
        self._acknowledged: tuple[bytes, _Headers | None, _Headers | None, bool] = (b"", None, None, True)
        self._most_bytes = min(_MOST_BYTES, app.service.settings.max_body_bytes)
        self._looking: set[asyncio.Task[None]] = set()
        self._looked_for: set[str] = set()

    def take(
        self,
        connection: HttpConnection,
        url: bytes,
        headers: dict[bytes, bytes],
        keep_alive: bool,
        charge: RequestCounter | None = None,
    ) -> IngestRequest | None:
        """Take a request whose head has just come; return None if it goes the ordinary way."""
        if len(url) != _URL_BYTES or not (url.startswith(_BEGIN) and url.endswith(_END)):
            return None
        if headers.get(b"content-type") != _KIND or not _OTHERWISE.isdisjoint(headers):
            return None
        length = headers.get(b"content-length", b"")
        if not 0 < len(length) <= 5 or int(length) > self._most_bytes:
            return None
        stored = self._survey(url[len(_BEGIN) : len(_BEGIN) + _TASK_DIGITS].decode("latin-1"))
        if stored is None:
            return None
        return IngestRequest(self, connection, stored, headers.get(b"origin", b""), keep_alive, charge)

    def _survey(self, task: str) -> StoredSurvey | None:
        """The survey, if it was looked up a while ago and is open; after a moment it is looked up again beside."""
        found = self.service.catalogue.recall(task, grace=_GRACE_SECONDS)
        if found is None or found.phase(int(time.time())) != "open":
            return None
        if self.service.catalogue.recall(task) is None and task not in self._looked_for:
            self._looked_for.add(task)
            looking = asyncio.get_running_loop().create_task(self._look_up(task))
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)
        return found

    async def _look_up(self, task: str) -> None:
        try:
            with contextlib.suppress(VeilError):  # whoever sends next meets it
                await self.service.in_thread(self.service.catalogue.look_up, task)
        finally:
            self._looked_for.discard(task)

    def answer(
        self, connection: HttpConnection, problem: Exception | None, count: int, origin: bytes, keep: bool
    ) -> bytes:
        """The whole answer as bytes."""
        beside = self.app.beside(origin)
        every = connection.server_state.default_headers  # another list every second, with another date
        if problem is not None:
            refusal = noted(self.service.metrics, problem)
            response = error_response(refusal)
            self.service.metrics.add("veil_requests_total", route=_ROUTE, status=str(refusal.status))
            headers = [*every, *response.raw_headers, *beside]
            return _head(refusal.status, headers, keep) + b"\r\n" + bytes(response.body)
        self.service.metrics.add("veil_requests_total", route=_ROUTE, status="200")
        head, *made_for = self._acknowledged
        if made_for[0] is not every or made_for[1] is not beside or made_for[2] is not keep:
            head = _head(200, [*every, (b"content-type", b"application/json"), *beside], keep)
            self._acknowledged = (head, every, beside, keep)
        body = b'{"acknowledged":%d}' % count
        return b"%scontent-length: %d\r\n\r\n%s" % (head, len(body), body)


def _head(status: int, headers: _Headers, keep: bool) -> bytes:
    lines = [b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode())]
    lines += [b"%s: %s\r\n" % header for header in headers]
    return b"".join(lines) if keep else b"".join([*lines, b"connection: close\r\n"])


class _Silent:
    def set(self) -> None:
        """Nobody waits."""


class IngestRequest:
    """A request on the short way, with the interface of uvicorn's cycle of a request and its answer."""

    message_event = _Silent()

    def __init__(
        self,
        ingest: Ingest,
        connection: HttpConnection,
        stored: StoredSurvey,
        origin: bytes,
        keep_alive: bool,
        charge: RequestCounter | None = None,
    ) -> None:
        self._charge = charge
        self._ingest, self._of, self._stored, self._origin = ingest, connection, stored, origin
        self._count = self._held = 0
        self._start = time.perf_counter()
        self.keep_alive, self.body, self.more_body = keep_alive, bytearray(), True
        self.disconnected = self.response_complete = False

    def begin(self) -> None:
        """The body is whole: into the queue with it."""
        service = self._ingest.service
        self.release()
        try:
            survey = parsed(self._stored.document)
            self._count = check_count(service, survey, len(self.body))
            check_batch(service, self._count, self._charge)
            service.queue.offer(self._stored, survey, bytes(self.body), self._count, self.done)
        except Exception as problem:  # whatever it is, it is answered
            self.done(problem)

    def hold(self) -> None:
        """The body is not whole: what has come counts among all bodies."""
        service, more = self._ingest.service, len(self.body) - self._held
        if service.body_bytes + more > service.settings.queue_bytes:
            message = "the collector is busy: send it again later"
            self.done(ServiceError(429, "busy", message, retry_after=1, limit="queue_bytes"))
            return
        service.body_bytes += more
        self._held += more

    def release(self) -> None:
        """The body is not being read any more."""
        self._ingest.service.body_bytes -= self._held
        self._held = 0

    def done(self, problem: Exception | None) -> None:
        """Acknowledge or refuse: the reports are on the disk, or they are not."""
        self.release()
        if self.response_complete or self._of.transport.is_closing():
            return
        self.response_complete = True
        seconds = time.perf_counter() - self._start
        self._ingest.service.metrics.observe("veil_request_seconds", seconds, route=_ROUTE)
        keep = self.keep_alive
        self._of.transport.write(self._ingest.answer(self._of, problem, self._count, self._origin, keep))
        if not keep:
            self._of.transport.close()
        self._of.on_response_complete()
