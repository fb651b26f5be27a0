"""Timing in stores: pauses of upkeep after failures, and deadlines of calls to a database server.

Upkeep is work after a commit that keeps later commits cheap. Nothing but speed depends on it. After a failure it waits
longer and does less at once, so that a slow or distant server gets through a part of it in time.

PostgreSQL's own time-outs are kept by the server, and those of the network by its kernel: neither notices a server
whose processes stand still. `Deadlines` therefore shuts the socket of an overdue call, which then fails as if the
connection had been lost. What the call was about to commit may still be committed; nobody was told so, and devices send
it again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from veil.collector.monitoring.logs import log
from veil.errors import StoreError, StoreTimeoutError

_PAUSES = (1.0, 60.0)  # seconds after the first failure in a row, and at most
_SMALLEST = 16  # a part of the ordinary size
_GOOD = 64  # so many successes, and twice as much is done at once
_GRACE_SECONDS = 0.5  # the server's own time-out comes first where it works: the connection outlives it
_LOOK_SECONDS = 0.1


class Upkeep:
    """The decision whether upkeep is due, and how much of it to do at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._again = self._pause = 0.0
        self._part, self._good = 1, 0
        self.failures = 0

    def portion(self, whole: int) -> int:
        """How much to do at once of what is ordinarily done."""
        return max(1, whole // self._part)

    def do(self, work: Callable[[], object]) -> None:
        """Do it, unless the pause after a failure is not over."""
        if self._clock() < self._again:
            return
        try:
            work()
        except StoreError as problem:
            self.failures += 1
            self._pause = min(max(_PAUSES[0], 2 * self._pause), _PAUSES[1])
            self._again = self._clock() + self._pause
            self._part, self._good = min(2 * self._part, _SMALLEST), 0
            log("warning", "upkeep-wait", problem, failures=self.failures, seconds=self._pause)
            return
        self._pause = 0.0
        self._good += 1
        if self._good >= _GOOD:
            self._part, self._good = max(1, self._part // 2), 0


class SocketConnection(Protocol):
    """A connection with a socket."""

    def fileno(self) -> int: ...


class Deadlines:
    """A limit in seconds for calls to a database; None is no limit."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._calls: set[_Call] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watch(self, connection: SocketConnection, *, patient: bool = False) -> Iterator[None]:
        """Give the block so many seconds; a StoreTimeoutError is raised where they were not enough."""
        if self.seconds is None or patient:
            yield
            return
        # a socket of our own: the connection may close its one at any time, and the number would be somebody else's
        call = _Call(
            socket.socket(fileno=os.dup(connection.fileno())), time.monotonic() + self.seconds + _GRACE_SECONDS
        )
        self._begin(call)
        try:
            yield
        except Exception as problem:
            if call.overdue:
                raise StoreTimeoutError("the database did not answer in time") from problem
            raise
        finally:
            with self._changed:
                self._calls.discard(call)
            call.socket.close()

    def _begin(self, call: _Call) -> None:
        with self._changed:
            self._calls.add(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="veil-deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _look(self) -> None:
        while True:
            with self._changed:
                while not self._calls:
                    self._changed.wait()
                now = time.monotonic()
                for call in self._calls:
                    if now >= call.until and not call.overdue:
                        call.overdue = True
                        with contextlib.suppress(OSError):  # it is gone already
                            call.socket.shutdown(socket.SHUT_RDWR)
            time.sleep(_LOOK_SECONDS)


@dataclass(eq=False)
class _Call:
    socket: socket.socket
    until: float
    overdue: bool = False
