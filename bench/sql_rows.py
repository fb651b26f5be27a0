"""Rows about SQL: a query's loop against C and plain numpy; whole queries, simulation and memory against limits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from acceptance.sql_speed import Kernel, memory, queries, rows_of, simulate, table_of
from numpy.typing import NDArray

from bench.c_loop import CLoop
from bench.timing import Contestant, NotRunError, Outcome, best_times, local, ratio
from veil.sql import create
from veil.sql import open as open_table

__all__ = ["sql_rows"]

PEOPLE, QUERY_SECONDS, SIMULATE_SECONDS, MEMORY_MB = 1_000_000, 0.1, 2.0, 1_000.0
MOST_TURNS, ASKED = 10, 6


def sql_rows(repeats: int, rows: int) -> Iterator[Outcome]:
    """Every row; `rows` are those whose memory is measured."""
    kernel = Kernel()
    what = f"numbers of 10,000 rows from 700 cells ({kernel.pairs / 1e6:.0f} M pairs), one thread"
    ours = local(kernel.run, kernel.pairs)
    yield _row(what, "C, gcc -O3 -march=native", 0.8, lambda: ratio(ours, _in_c(kernel), repeats))
    yield _row(what, "plain numpy", 10, lambda: ratio(ours, _in_numpy(kernel), min(repeats, MOST_TURNS)))
    yield from _limits(min(repeats, MOST_TURNS))
    peak = memory(rows)
    yield Outcome(f"memory: a table of {rows:,} rows made and asked", f"{MEMORY_MB:g} MB", MEMORY_MB / peak, 1.0)


def _row(what: str, against: str, required: float, measured: Callable[[], float]) -> Outcome:
    try:
        return Outcome(what, against, measured(), required)
    except NotRunError as why:
        return Outcome(what, against, None, required, str(why))


def _in_c(kernel: Kernel) -> Contestant:
    loop = CLoop()

    def work() -> NDArray[np.int64]:
        shared = (kernel.oracle.buckets, kernel.low, kernel.high, kernel.coefficients)
        return loop.add(kernel.seeds, kernel.reported, *shared)

    if not np.array_equal(work(), kernel.run()):
        raise AssertionError("the C loop adds something else")
    return local(work, kernel.pairs)


def _in_numpy(kernel: Kernel, rows: int = 500) -> Contestant:
    """The same with one array per step, over some of the rows."""
    seeds, reported, buckets = kernel.seeds[:rows], kernel.reported[:rows], kernel.oracle.buckets
    starts = _starts(reported, buckets).astype(np.uint32)
    widths = (_starts(reported + np.uint64(1), buckets) - _starts(reported, buckets)).astype(np.uint32)

    def work() -> NDArray[np.int64]:
        s0, s1 = seeds.astype(np.uint32)[:, None], (seeds >> np.uint64(32)).astype(np.uint32)[:, None]
        h = kernel.low ^ s0
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x7FEB352D)
        h ^= kernel.high ^ s1
        h ^= h >> np.uint32(15)
        h *= np.uint32(0x846CA68B)
        return np.asarray(((h - starts[:, None]) < widths[:, None]) @ kernel.coefficients.astype(np.int64))

    if not np.array_equal(work(), kernel.run()[:rows]):
        raise AssertionError("numpy adds something else")
    return local(work, rows * len(kernel.low))


def _starts(bucket: NDArray[np.uint64], buckets: int) -> NDArray[np.uint64]:
    """Where a bucket's 32-bit hashes begin."""
    return ((bucket << np.uint64(32)) + np.uint64(buckets - 1)) // np.uint64(buckets)


def _limits(turns: int) -> Iterator[Outcome]:
    table, people = table_of(), rows_of(PEOPLE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        create(path, table).append(simulate(table, people, 0))
        with open_table(path) as db:
            for text in queries(ASKED):
                db.query(text)
            each = (local(partial(db.query, text), 1) for text in queries(ASKED))
            slowest = max(best_times((one,), turns)[0][0] for one in each)
    yield Outcome(
        f"2+2 query over {PEOPLE:,} people, warm, slowest of {ASKED} (best of {turns})",
        f"a limit of {QUERY_SECONDS:g} s", QUERY_SECONDS / slowest, 1.0,
    )  # fmt: skip
    (seconds,), _ = best_times((local(lambda: simulate(table, people, 1), 1),), min(turns, 5))
    what = f"simulating {PEOPLE:,} rows with public columns"
    yield Outcome(what, f"a limit of {SIMULATE_SECONDS:g} s", SIMULATE_SECONDS / seconds, 1.0)
