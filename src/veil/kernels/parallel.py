"""Where kernels run: on threads of this machine, or on a counting device chosen for a block of code.

`sum_over_threads` spreads people over cores and adds up the results. They are integer sums, so the split does not
change them. A counting device gets the same arrays and returns the same integers (`veil.engines.gpu` has one for GPUs).
The choice of a device belongs to the context that made it: to its thread, and to the threads that work for it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.tools.limits import check

_NAME = "veil-work"
_PIECE = 1 << 22  # reports per call: far below the 2^32 that a kernel's counters hold
_WORTH_A_THREAD = 1 << 22  # (report, candidate) pairs below which a second thread costs more than it gives


def thread_count() -> int:
    """Cores to use: VEIL_THREADS, or all that this process may run on."""
    asked = os.environ.get("VEIL_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdigit() or not int(asked):
        raise ParameterError("VEIL_THREADS must be an integer of at least 1")
    return int(asked)


Piece = TypeVar("Piece")
Result = TypeVar("Result")


def in_order(work: Callable[[Piece], Result], pieces: Sequence[Piece], threads: int | None = None) -> list[Result]:
    """work(piece) for every piece, spread over threads; the results in the order of the pieces."""
    threads = min(threads or thread_count(), len(pieces))
    if threads <= 1 or _in_a_piece():
        return [_checked(work, piece) for piece in pieces]
    under_way = [_submit(threads, partial(_checked, work), piece) for piece in pieces]
    return [done.result() for done in under_way]


def _checked(work: Callable[[Piece], Result], piece: Piece) -> Result:
    """work(piece), unless the time of the whole work is over."""
    check()
    return work(piece)


def ahead(work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Result]]:
    """Every piece with work(piece), in order; threads work on the next pieces while the caller looks at one.

    >>> list(ahead(abs, [-1, 2]))
    [(-1, 1), (2, 2)]
    """
    threads = thread_count()
    if threads <= 1 or _in_a_piece():
        yield from ((piece, work(piece)) for piece in pieces)
        return
    under_way: deque[tuple[Piece, Future[Result]]] = deque()
    for piece in pieces:
        under_way.append((piece, _submit(threads, work, piece)))
        if len(under_way) > threads:
            first, done = under_way.popleft()
            yield first, done.result()
    for first, done in under_way:
        yield first, done.result()


def _submit(threads: int, work: Callable[[Piece], Result], piece: Piece) -> Future[Result]:
    """Work in the caller's context, so that a device chosen there counts in our threads too."""
    return _waiting(threads).submit(copy_context().run, work, piece)


def _in_a_piece() -> bool:
    """Whether this is one of our threads already: the others are at work too, and may wait for this one."""
    return threading.current_thread().name.startswith(_NAME)


@lru_cache(maxsize=8)
def _waiting(threads: int) -> ThreadPoolExecutor:
    """So many threads that wait for work: to start them anew takes longer than a short piece of work."""
    return ThreadPoolExecutor(threads, _NAME)


if hasattr(os, "register_at_fork"):  # a forked process has none of them
    os.register_at_fork(after_in_child=_waiting.cache_clear)


def sum_over_threads(
    count: Callable[..., NDArray[np.int64]],
    by_row: tuple[NDArray[Any] | None, ...],
    *shared: Any,
    work: int,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """The sum of count(rows' columns..., shared...) over pieces of the rows.

    `by_row` are columns with one entry per report (None is left out), `work` the pairs that one report costs.
    """
    columns = [column for column in by_row if column is not None]
    rows = len(columns[0])
    threads = threads or thread_count()
    if rows * work < _WORTH_A_THREAD:
        threads = 1
    pieces = list(_pieces(rows, threads))

    def run(piece: slice) -> NDArray[np.int64]:
        return count(*(column[piece] for column in columns), *shared)

    return np.sum(in_order(run, pieces, threads), axis=0, dtype=np.int64)


def _pieces(rows: int, threads: int) -> Iterator[slice]:
    count = max(threads, -(-rows // _PIECE))
    count = min(count, rows) or 1
    return (slice(rows * i // count, rows * (i + 1) // count) for i in range(count))


Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Pieces = Callable[[], Iterable[tuple[Words, NDArray[Any]]]]
"""Seeds and buckets, a piece at a time; anew with every call."""


@dataclass(frozen=True, eq=False)
class HashedReports:
    """Reports of a local hash, a seed and one of `buckets` buckets each, and the spread values of candidates."""

    seeds: Words
    reported: NDArray[Any]
    buckets: int
    spread: Words


class CountingDevice(Protocol):
    """Something beside this machine's cores that counts."""

    name: str

    def count_hashed(self, given: HashedReports, weights: Ints | None) -> Ints:
        """The reports, or the weight of the reports, that support each candidate."""

    def joint_hashed(self, first: HashedReports, second: HashedReports) -> Ints:
        """result[a, b, s, t]: people who support a in the first question or not (s), and b in the second or not (t)."""

    def decodes(self, prime: int, cells: int) -> bool:
        """Whether `cosets` is worth it for a field and a number of cells: memory grows with their product."""

    def cosets(self, pieces: Pieces, prefixes: Words, prime: int, digits: int, kept: int) -> Iterator[Ints]:
        """For each spread prefix, the support of the first `kept` values behind it by linear hashing."""


_CHOSEN: ContextVar[CountingDevice | None] = ContextVar("veil_counting_device", default=None)


def current_device() -> CountingDevice | None:
    """The device that counts here and now; None stands for this machine's cores."""
    return _CHOSEN.get()


@contextmanager
def counting_on(device: CountingDevice | None) -> Iterator[None]:
    """Count on a device while this lasts; None is this machine's cores again.

    >>> with counting_on(None):
    ...     current_device() is None
    True
    """
    before = _CHOSEN.set(device)
    try:
        yield
    finally:
        _CHOSEN.reset(before)


def dispatch_count_hashed(given: HashedReports, weights: Ints | None) -> Ints:
    """The reports, or the weight of the reports, that support each candidate."""
    device = current_device()
    if device is not None:
        return device.count_hashed(given, weights)
    from veil.kernels import counting

    count = counting.count_hashed if weights is None else counting.count_hashed_weighted
    by_row = (given.seeds, given.reported, weights)
    return sum_over_threads(count, by_row, given.buckets, *counting.halves(given.spread), work=len(given.spread))
