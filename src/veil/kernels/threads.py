"""Spread people over cores and add up what comes back. Integer sums: the split never shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError

__all__ = ["add_up", "in_order", "thread_count"]

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
    if threads <= 1:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, pieces))


def add_up(
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
