"""A mark and a lock that belong to one process: both are renewed in a forked child."""

from __future__ import annotations

import os
import threading

_forks = [object()]  # replaced in every forked child: the id of a process may be used again, or be 1 in a container


def _renew() -> None:
    _forks[0] = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def process_mark() -> tuple[int, object]:
    """Return a value that differs in every process, also in forked children and where a process id is used again.

    State that must not be used in two processes keeps the mark of the process that made it and compares. The id alone
    would not do: it can be used again. The hook alone would not do: a fork by other code than Python's runs no hooks.
    """
    return os.getpid(), _forks[0]


class ProcessLock:
    """A re-entrant lock for the threads of one process. A forked child never waits for a thread of its parent.

    >>> lock = ProcessLock()
    >>> with lock, lock:
    ...     pass
    """

    def __init__(self) -> None:
        self._locks: dict[tuple[int, object], threading.RLock] = {}

    def _own(self) -> threading.RLock:
        mark = process_mark()
        return self._locks.get(mark) or self._locks.setdefault(mark, threading.RLock())  # atomic, for all threads

    def __enter__(self) -> None:
        self._own().acquire()

    def __exit__(self, *problem: object) -> None:
        self._own().release()
