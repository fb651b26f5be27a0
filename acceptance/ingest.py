"""Whether storing reports stays as cheap as it was at first: bytes written and time per report, million by million.

Beside the rival, a row per report with a unique index of their random ids. For SQLite the bytes are those that the
process hands to the system; for PostgreSQL those of its log, with checkpoints in between, as a busy server has them.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.support.old_index import OldPostgres, OldSqlite

from veil import OLH, Survey
from veil.collector.store.base import Group, Store
from veil.collector.surveys.catalogue import Catalogue, draft_of

SURVEY = Survey(OLH(epsilon=1.0, domain=1024))
BATCH = 512
MILLION = 1 << 20  # so that every window has as many folds as any other
RIVAL = MILLION // 2
_COMMITS_BETWEEN_CHECKPOINTS = 200

Append = Callable[[bytes, bytes], object]


@dataclass(frozen=True)
class Window:
    """What some reports in a row took, per report."""

    reports: int
    written: float
    seconds: float
    processor: float


def grow(
    append: Append,
    written: Callable[[], int],
    reports: int,
    windows: int,
    between: Callable[[], object] | None = None,
    every: int = _COMMITS_BETWEEN_CHECKPOINTS,
) -> list[Window]:
    """Store so many reports in batches, and measure as many windows; `between` is called after so many commits."""
    payloads, each = bytes(SURVEY.layout.size * BATCH), reports // windows
    found = []
    for _ in range(windows):
        size, start, busy = written(), time.perf_counter(), time.process_time()
        for i in range(each // BATCH):
            append(os.urandom(16 * BATCH), payloads)
            if between is not None and i % every == every - 1:
                between()
        took = (written() - size, time.perf_counter() - start, time.process_time() - busy)
        found.append(Window(each, *(part / each for part in took)))
    return found


def new_store(store: Store) -> Append:
    """What appends to a new survey of a store."""
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, {}, precision=86_400, minimum=1))
    key = catalogue.open(SURVEY.task).key

    def append(ids: bytes, payloads: bytes) -> object:
        (new,) = store.append([Group(key, ids, payloads, len(ids) // 16)], 86_400)
        assert new == len(ids) // 16
        return new

    return append


def written_by_process() -> int:
    """Bytes that this process handed to the system so far."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def on_sqlite(millions: int) -> tuple[list[Window], list[Window]]:
    """Windows of 2^20 reports each; and those of the rival, of its first 2^19."""
    from veil.collector.store.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # a disk, where /tmp may be memory
        store, old = SqliteStore(Path(folder) / "new.sqlite3"), OldSqlite(Path(folder) / "old.sqlite3")
        ours = grow(new_store(store), written_by_process, millions * MILLION, millions)
        theirs = grow(old.append, written_by_process, RIVAL, 5)
        store.close()
        old.close()
    return ours, theirs


def on_postgres(millions: int) -> tuple[list[Window], list[Window]]:
    """The same in PostgreSQL."""
    import psycopg
    from tests.service.postgres import server

    from veil.collector.store.postgres import PostgresStore

    with server() as one:
        ours, theirs = one.database(), one.database()
        with psycopg.connect(ours, autocommit=True) as beside:

            def written() -> int:
                row = beside.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()
                assert row is not None
                return int(row[0])

            with closing(PostgresStore(ours)) as store:
                checkpoint = lambda: beside.execute("CHECKPOINT")  # noqa: E731
                first = grow(new_store(store), written, millions * MILLION, millions, checkpoint)
            with closing(OldPostgres(theirs)) as old:
                return first, grow(old.append, written, RIVAL, 5, checkpoint)


def judge(name: str, ours: list[Window], theirs: list[Window]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of (what, measured, required), and whether all of it holds."""
    bytes_ratio = ours[-1].written / ours[0].written
    busy_ratio = ours[-1].processor / ours[0].processor
    third = max(1, len(ours) // 3)
    rate = sum(one.seconds for one in ours[:third]) / sum(one.seconds for one in ours[-third:])
    rival = theirs[-1].written / ours[-1].written
    rows = [
        (f"{name}: reports stored", f"{sum(one.reports for one in ours):,}", ""),
        (
            f"{name}: bytes written per report, first and last 2^20",
            f"{ours[0].written:.0f}, {ours[-1].written:.0f}",
            "",
        ),
        (f"{name}: the last 2^20 over the first, bytes", f"{bytes_ratio:.2f}", "at most 1.25"),
        (f"{name}: the last 2^20 over the first, processor time", f"{busy_ratio:.2f}", "at most 2"),
        (f"{name}: reports a second, last third over first third", f"{rate:.2f}", "at least 0.6"),
        (f"{name}: bytes of an index of ids after {RIVAL:,} over ours", f"{rival:.0f}", "at least 3"),
    ]
    return rows, bytes_ratio <= 1.25 and busy_ratio <= 2 and rate >= 0.6 and rival >= 3
