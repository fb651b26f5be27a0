"""Rows about SQL: a query's loop against C and plain numpy; whole queries, simulation and memory against limits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from acceptance.sql_speed import Kernel, memory, queries, rows_of, simulate, table_of
from numpy.typing import NDArray

from bench.c_loop import CLoop
from bench.timing import Contestant, Row, Setting, best_times, local, once
from veil.sql import create
from veil.sql import open as open_table

PEOPLE, QUERY_SECONDS, SIMULATE_SECONDS, MEMORY_MB = 1_000_000, 0.1, 2.0, 1_000.0
MOST_TURNS, ASKED = 10, 6


def sql_rows(setting: Setting) -> Iterator[Row]:
    """Every row."""
    kernel, turns = Kernel(), min(setting.repeats, MOST_TURNS)
    what = f"numbers of 10,000 rows from 700 cells ({kernel.pairs / 1e6:.0f} M pairs), one thread"
    ours = local(kernel.run, kernel.pairs)
    yield Row(what, "C, gcc -O3 -march=native", 0.8, ours, lambda: _in_c(kernel), setting.repeats)
    yield Row(what, "plain numpy", 10, ours, lambda: _in_numpy(kernel), turns)
    yield from _limits(turns)
    what, against = f"memory: a table of {setting.reports:,} rows made and asked", f"{MEMORY_MB:g} MB"
    yield Row(what, against, 1.0, once(lambda: memory(setting.reports)), MEMORY_MB, 1)


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


def _limits(turns: int) -> Iterator[Row]:
    table, people = table_of(), rows_of(PEOPLE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        create(path, table).append(simulate(table, people, 0))
        with open_table(path) as db:

            def slowest() -> float:
                each = (local(partial(db.query, text), 1) for text in queries(ASKED))
                return max(best_times((one,), turns)[0][0] for one in each)

            what = f"2+2 query over {PEOPLE:,} people, warm, slowest of {ASKED} (best of {turns})"
            yield Row(what, f"a limit of {QUERY_SECONDS:g} s", 1.0, once(slowest), QUERY_SECONDS, 1)
    what, ours = f"simulating {PEOPLE:,} rows with public columns", local(lambda: simulate(table, people, 1), 1)
    yield Row(what, f"a limit of {SIMULATE_SECONDS:g} s", 1.0, ours, SIMULATE_SECONDS, min(turns, 5))
