"""Worker processes on one socket: starts them, puts another in the place of one that died, and ends them all.

The first one opens the database and makes the key, if they are not there, before the others begin. Each is a collector
of its own; what they share is the socket, the board of numbers and the table of the limit by address, made before them.
A worker whose supervisor is gone ends as if it had been told to.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable

from veil.collector.logs import log
from veil.errors import InputError, VeilError

__all__ = ["supervise"]

_PAUSE_SECONDS = 1.0
Work = Callable[[int, Callable[[], None]], None]
"""What a worker does, given its number; it calls the second argument once it has opened what it works with."""


def supervise(work: Work, workers: int, patience: float) -> None:
    """Run so many workers until SIGTERM or SIGINT; `patience` is how long they may take to end."""
    _Supervisor(work, workers, patience).run()


class _Supervisor:
    def __init__(self, work: Work, workers: int, patience: float) -> None:
        self._work, self._patience = work, patience
        self._alive: dict[int, int] = {}  # process to number
        self._ready: set[int] = set()
        self._waiting: dict[int, int] = {}  # the end of a pipe to the process that will say that it is ready
        self._stopping, self._give_up = False, float("inf")
        self._due: dict[int, float] = dict.fromkeys(range(1, workers), float("inf"))  # numbers to start, and when
        self._life, self._held = os.pipe()  # nobody writes: the reading end tells of the writing one's end

    def run(self) -> None:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._stop)
        wake, told = os.pipe()
        for end in (wake, told):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # only so that it wakes us
        failed = 0
        self._start(0)
        while self._alive or (self._due and not self._stopping):
            found, _, _ = select.select([wake, *self._waiting], [], [], self._until_due())
            if wake in found:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
            for end in [end for end in found if end != wake]:
                self._heard(end)
            failed = self._reap() or failed
            for number in [number for number, due in self._due.items() if due <= time.monotonic()]:
                if not self._stopping:
                    self._start(number)
            if time.monotonic() > self._give_up:
                self._send(signal.SIGKILL)
        if failed:
            raise InputError("a worker could not start: its own lines say why")

    def _start(self, number: int) -> None:
        self._due.pop(number, None)
        said, say = os.pipe()
        sys.stderr.flush()
        process = os.fork()
        if process:
            os.close(say)
            self._alive[process], self._waiting[said] = number, process
            return
        code = 1
        try:  # the worker: nothing of the supervisor's may run in it
            os.close(said)
            os.close(self._held)
            signal.set_wakeup_fd(-1)
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(name, signal.SIG_DFL)
            threading.Thread(target=_end_with_supervisor, args=(self._life,), daemon=True).start()
            self._work(number, lambda: _say_ready(say))
            code = 0
        except VeilError as problem:  # our own words, which show nothing private
            log("error", "not-started", problem)
            os.write(2, f"{problem}\n".encode())
        except BaseException as problem:
            log("error", "worker-failed", problem)
        finally:
            os._exit(code)

    def _heard(self, end: int) -> None:
        """A worker is ready, or ended before that."""
        process = self._waiting.pop(end)
        if os.read(end, 1):
            self._ready.add(process)
            for number in [number for number, due in self._due.items() if due == float("inf")]:
                self._due[number] = 0.0  # the first has made what the others only open
        os.close(end)

    def _reap(self) -> int:
        """What became of workers that ended; 1 where one could not even start, which ends the others too."""
        failed = 0
        while self._alive:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            number, ready = self._alive.pop(process), process in self._ready
            self._ready.discard(process)
            if self._stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            log("error", "worker-ended", number=number, code=code)
            if not ready and code > 0:
                failed = 1
                self._stop()
            else:
                self._due[number] = time.monotonic() + _PAUSE_SECONDS
        return failed

    def _until_due(self) -> float | None:
        """Seconds until somebody is to be started; None where nobody is, for certain."""
        due = min([*self._due.values(), self._give_up])
        return None if due == float("inf") else max(0.0, due - time.monotonic())

    def _stop(self, *arguments: object) -> None:
        if not self._stopping:
            self._stopping, self._give_up = True, time.monotonic() + self._patience
            self._due.clear()
        self._send(signal.SIGTERM)

    def _send(self, name: signal.Signals) -> None:
        for process in list(self._alive):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, name)


def _say_ready(end: int) -> None:
    os.write(end, b"1")
    os.close(end)


def _end_with_supervisor(life: int) -> None:
    os.read(life, 1)  # returns when nobody holds the other end any more
    os.kill(os.getpid(), signal.SIGTERM)
