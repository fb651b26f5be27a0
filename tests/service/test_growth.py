"""Storing a report costs the same however many there are: by the bytes written, beside an index of random ids."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from acceptance.ingest import SURVEY, Window, grow, new_store, written_by_process
from tests.service.postgres import Server
from tests.support.old_index import OldPostgres, OldSqlite

from veil.collector.store import seen
from veil.collector.store.base import Group
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore

REPORTS = 1 << 16
"""In four windows, each of which makes runs of ids."""


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "FOLDED", 1 << 10)


def check(ours: list[Window], theirs: list[Window]) -> None:
    assert max(one.written for one in ours) < 1.3 * min(one.written for one in ours), ours
    assert theirs[-1].written > 1.5 * theirs[0].written, theirs  # the rival's bytes grow
    assert theirs[-1].written > 3 * ours[-1].written


def test_bytes_written_to_sqlite_stay_the_same(tmp_path: Path) -> None:
    if not Path("/proc/self/io").exists():
        pytest.skip("nothing says here how many bytes a process writes: NOT tested")
    with closing(SqliteStore(tmp_path / "new.sqlite3")) as store, closing(OldSqlite(tmp_path / "old.sqlite3")) as old:
        for one in (store._writer, old._connection):
            one.execute("PRAGMA synchronous = OFF")  # the same bytes, and a busy disk is not waited for
        check(
            grow(new_store(store), written_by_process, REPORTS, 4),
            grow(old.append, written_by_process, REPORTS // 2, 4),
        )


def test_bytes_written_to_postgres_stay_the_same(postgres: Server) -> None:
    ours, theirs = postgres.database(), postgres.database()
    with (
        closing(psycopg.connect(ours, autocommit=True)) as beside,
        closing(PostgresStore(ours)) as store,
        closing(OldPostgres(theirs)) as old,
    ):

        def written() -> int:
            row = beside.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')").fetchone()
            assert row is not None
            return int(row[0])

        def checkpoint() -> None:
            beside.execute("CHECKPOINT")

        check(
            grow(new_store(store), written, REPORTS, 4, checkpoint, every=4),
            grow(old.append, written, REPORTS // 2, 4, checkpoint, every=4),
        )


def test_looking_for_an_old_id_reads_its_page_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/io").exists():
        pytest.skip("nothing says here how many bytes a process reads: NOT tested")
    monkeypatch.setattr(seen, "FOLDED", 1 << 14)
    ids = [os.urandom(16 << 10) for _ in range(64)]
    with closing(SqliteStore(tmp_path / "x.sqlite3")) as store:
        store._writer.execute("PRAGMA synchronous = OFF")
        append = new_store(store)
        for some in ids:
            append(some, bytes(SURVEY.layout.size << 10))
    before = read_by_process()
    with closing(SqliteStore(tmp_path / "x.sqlite3")) as store:
        store._writer.execute("PRAGMA cache_size = 20")  # pages: as if the database were large
        stored = store.find(SURVEY.task)
        assert stored is not None
        old = b"".join(some[:16] for some in ids)  # as good as all of the 64 pages, of 16 kB
        assert store.append([Group(stored.key, old, bytes(SURVEY.layout.size * 64), 64)], 0) == [0]
        read = read_by_process() - before
        assert 600_000 < read < 2_500_000  # a table without rowids reads whole rows to find one


def read_by_process() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])
