"""Limits on the memory and time of queries and readings, and on the open files of this process.

Work whose estimate is beyond a limit is refused before it starts; running work is stopped. Limits hold within a
`limited` block, also in threads that it starts (`veil.kernels.parallel`). Outside of one, `check` and `admit` do
nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from veil.errors import InputError, LimitError

_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Limits:
    """How much memory a query or reading may take, in units of 10^6 bytes, and how long it may run."""

    megabytes: int
    seconds: float
    stop: Callable[[], object] = lambda: None
    """Raises an error when the work must stop for another reason."""


class _Running:
    """Work under a limit. Its thread interrupts calls that cannot look at the clock themselves."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._until = time.monotonic() + limits.seconds
        self._interrupts: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        self.limits.stop()
        if time.monotonic() >= self._until:
            raise LimitError(
                f"this took longer than {self.limits.seconds:g} seconds and was stopped",
                f"less work, or more seconds (query_seconds is {self.limits.seconds:g})",
            )

    @contextlib.contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Iterator[None]:
        self.check()
        with self._lock:
            self._interrupts.append(interrupt)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="veil-limits", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)

    def end(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(_LOOK_SECONDS):
            try:
                self.check()
            except Exception:  # the interrupted call raises it again, where somebody catches it
                with self._lock:
                    for interrupt in self._interrupts:
                        interrupt()


_running: ContextVar[_Running | None] = ContextVar("veil-limits", default=None)


@contextlib.contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Limit the work in this block.

    >>> with limited(Limits(megabytes=100, seconds=60)):
    ...     check()
    """
    running = _Running(limits)
    before = _running.set(running)
    try:
        yield
    finally:
        _running.reset(before)
        running.end()


def current() -> Limits | None:
    """Return the limits of the work under way, if it has any."""
    running = _running.get()
    return None if running is None else running.limits


def check() -> None:
    """Raise a LimitError when the work under way has taken its time; long loops call this now and then."""
    running = _running.get()
    if running is not None:
        running.check()


def admit(what: str, megabytes: float, seconds: float, fewer: str) -> None:
    """Refuse work that takes about this much, before it starts, if that is beyond the limits of the work under way.

    `what` names the work with its numbers, and `fewer` what to ask for instead.

    >>> with limited(Limits(megabytes=100, seconds=60)):
    ...     admit("this table", 8, 0.5, "fewer attributes")
    """
    limits = current()
    if limits is not None and (megabytes > limits.megabytes or seconds > limits.seconds):
        raise LimitError(
            f"{what} needs about {megabytes:,.0f} MB and {seconds:,.0f} s",
            f"at most {limits.megabytes:,} MB and {limits.seconds:g} s (query_megabytes, query_seconds): {fewer}",
        )


@contextlib.contextmanager
def interruptible(interrupt: Callable[[], object]) -> Iterator[None]:
    """Call `interrupt`, from another thread and maybe several times, when the time is over within this block."""
    running = _running.get()
    with contextlib.nullcontext() if running is None else running.interruptible(interrupt):
        yield


def require_files(count: int, purpose: str) -> None:
    """Make sure that this process may open `count` files; raise the soft limit to that where it is lower.

    Without this, a process that has no files left could neither accept connections nor open the files it works on.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise InputError(
            f"open files: expected a limit of at least {count} for {purpose}, got {hard}; "
            f"raise the limit first (`ulimit -n {count}`, or LimitNOFILE= in a unit)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
