"""Purged means erased: no id in any file of the database, while other surveys go on."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest
from tests.patience import until
from tests.service.harness import FRAMED, SURVEY, framed, running
from tests.service.kills import ids_of
from tests.service.postgres import Server

from veil import GRR, Survey
from veil.collector.store import seen
from veil.collector.store import sqlite as sqlite_store
from veil.collector.store.base import Group, StoredSurvey
from veil.collector.store.blocks import BlockStore
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.seen import names_of
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.errors import StoreError, StoreTimeoutError

OTHER = Survey(GRR(1.0, 4))


def left(files: Iterable[Path], ids: bytes) -> int:
    """At how many places an id stands in some files."""
    wanted, found = set(names_of(ids)), 0
    beginnings = np.frombuffer(ids, np.uint64)[::2]
    for file in files:
        data = file.read_bytes() if file.is_file() else b""
        for shift in range(min(8, len(data))):
            places = np.flatnonzero(
                np.isin(np.frombuffer(data, np.uint64, (len(data) - shift) // 8, shift), beginnings)
            )
            found += sum(data[8 * i + shift : 8 * i + shift + 16] in wanted for i in places.tolist())
    return found


def filled(store: BlockStore, commits: int) -> tuple[StoredSurvey, StoredSurvey, bytes]:
    """Two surveys whose small commits take turns; and the ids of the first."""
    catalogue, chance = Catalogue(store), random.Random(1)
    for survey in (SURVEY, OTHER):
        catalogue.create(draft_of(survey, {}, precision=60, minimum=1))
    mine, theirs = catalogue.open(SURVEY.task), catalogue.open(OTHER.task)
    sent = []
    for _ in range(commits):
        sent.append(os.urandom(16 * chance.choice([1, 1, 2, 5, 70, 300])))
        count = len(sent[-1]) // 16
        others = Group(theirs.key, os.urandom(32), bytes(2 * OTHER.layout.size), 2)
        store.append([Group(mine.key, sent[-1], bytes(count * SURVEY.layout.size), count), others], 1_000)
    store.move(mine.key, "open", "closed", 1_000)  # past the catalogue, which folds what it closes
    return catalogue.look_up(SURVEY.task), theirs, b"".join(sent)


@pytest.mark.parametrize("run", [1_000, seen.FOLDED])
def test_no_id_is_left_in_any_file(tmp_path: Path, run: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "FOLDED", run)
    monkeypatch.setattr(sqlite_store, "_ERASED_BYTES", 10_000)
    store = SqliteStore(tmp_path / "x.sqlite3")
    store._writer.execute("PRAGMA synchronous = OFF")  # what is synced is not what is tested here
    mine, theirs, ids = filled(store, 600)
    kept = sorted(store.report_ids(theirs.key))
    assert left(tmp_path.iterdir(), ids)
    before = store._commits
    assert store.purge(mine.key) == len(ids) // 16
    assert store._commits - before > 10  # in short transactions
    assert left(tmp_path.iterdir(), ids) == 0  # while it is open: the log is cut as well
    assert sorted(store.report_ids(theirs.key)) == kept
    assert left(tmp_path.iterdir(), kept[0])
    assert store.purge(mine.key) == 0
    assert store.append([Group(theirs.key, kept[0] + os.urandom(16), bytes(2 * OTHER.layout.size), 2)], 1_000) == [1]
    store.close()


def test_purging_again_keeps_the_time_of_the_first_purge(
    make: Callable[[], BlockStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    mine, _, _ = filled(store, 3)
    for now in (5_000, 6_000):
        monkeypatch.setattr("veil.collector.store.sql.time.time", lambda now=now: now)
        store.purge(mine.key)
        assert store.survey(mine.key).purged == 5_000


def test_deleting_rows_alone_would_leave_ids(tmp_path: Path) -> None:
    """The rival: what SQLite does without being asked to overwrite."""
    store = SqliteStore(tmp_path / "x.sqlite3")
    store._writer.execute("PRAGMA synchronous = OFF")
    mine, _, ids = filled(store, 50)
    store._writer.execute("PRAGMA secure_delete = OFF")
    for name in ("blocks", "runs"):
        store._writer.execute(f"DELETE FROM {store.table(name, mine.key)}")  # noqa: S608
    store._empty_log()
    assert left(tmp_path.iterdir(), ids)
    store.close()


def test_a_purge_says_so_where_the_log_cannot_be_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "_TRUNCATE_TRIES", 1)
    monkeypatch.setattr(sqlite_store, "_BUSY_SECONDS", 0.01)
    store = SqliteStore(tmp_path / "x.sqlite3")
    mine, _, ids = filled(store, 20)
    with sqlite3.connect(tmp_path / "x.sqlite3", isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM surveys").fetchall()
        with pytest.raises(StoreError, match="purge again"):
            store.purge(mine.key)
        reader.execute("ROLLBACK")
    reader.close()
    assert store.purge(mine.key) == 0
    assert left(tmp_path.iterdir(), ids) == 0
    store.close()


def test_others_have_their_turn_during_a_purge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for SQLite's lock looks for it ever more rarely, and must find it free before the purge is over."""
    store, other = SqliteStore(tmp_path / "x.sqlite3"), SqliteStore(tmp_path / "x.sqlite3")
    mine, theirs, _ = filled(store, 2)
    pieces = iter([1] * 40)

    def erase(survey: int) -> int | None:
        with store.writing():
            time.sleep(0.02)
        return next(pieces, None)

    monkeypatch.setattr(store, "_erase_blocks", erase)
    waits: list[float] = []
    done = threading.Event()

    def append() -> None:
        while not done.wait(0.005):
            start = time.perf_counter()
            other.append([Group(theirs.key, os.urandom(16), bytes(OTHER.layout.size), 1)], 1_000)
            waits.append(time.perf_counter() - start)

    thread = threading.Thread(target=append)
    thread.start()
    until(lambda: waits)
    waits.clear()
    start = time.perf_counter()
    store.purge(mine.key)
    took = time.perf_counter() - start
    done.set()
    thread.join()
    assert max(waits) < 0.75 * took
    store.close()
    other.close()


def test_purged_beside_a_collector_that_serves_another_survey(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector:
        path = collector.open_survey()
        body = framed(SURVEY, [1] * 3_000)
        other = collector.open_survey(OTHER)
        assert httpx.post(f"{collector.url}{path}/reports", content=body, headers=FRAMED).status_code == 200
        stop = threading.Event()
        sent: list[int] = []

        def send() -> None:
            with httpx.Client(base_url=collector.url) as client:
                while not stop.is_set():
                    answer = client.post(f"{other}/reports", content=framed(OTHER, [1] * 20), headers=FRAMED)
                    sent.append(answer.status_code)

        thread = threading.Thread(target=send)
        thread.start()
        until(lambda: len(sent) > 3)
        store = SqliteStore(tmp_path / "data" / "collector.sqlite3")
        closed = Catalogue(store).close(SURVEY.task)
        assert store.purge(closed.key) == 3_000
        store.close()
        assert left((tmp_path / "data").iterdir(), b"".join(ids_of([body]))) == 0
        seen_before = len(sent)
        until(lambda: len(sent) > seen_before + 3)
        stop.set()
        thread.join()
        assert set(sent) == {200}


def test_no_id_is_left_in_postgres_outside_its_log(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "FOLDED", 1_000)
    url = postgres.database()
    store = PostgresStore(url)
    mine, theirs, ids = filled(store, 100)
    kept = sorted(store.report_ids(theirs.key))
    data = postgres.folder / "data"

    def files(*, log: bool) -> list[Path]:
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            row = connection.execute("SELECT oid FROM pg_database WHERE datname = %s", (name,)).fetchone()
            assert row is not None
        return list((data / "pg_wal").rglob("*") if log else (data / "base" / str(row[0])).rglob("*"))

    assert left(files(log=False), ids)
    with psycopg.connect(url, autocommit=True) as connection:  # the rival: a row that is deleted
        connection.execute("CREATE TABLE rival (id bytea)")
        connection.execute("INSERT INTO rival VALUES (%s)", (rival := os.urandom(16),))
        connection.execute("DELETE FROM rival")
    assert store.purge(mine.key) == len(ids) // 16
    assert left(files(log=False), ids) == 0
    assert left(files(log=False), rival)
    assert left(files(log=True), ids)  # as the documentation says
    assert sorted(store.report_ids(theirs.key)) == kept
    store.close()


def test_posts_do_not_wait_for_a_purge_that_waits_for_a_backup(postgres: Server) -> None:
    store = PostgresStore(postgres.database())
    mine, theirs, ids = filled(store, 3)
    purged: list[int] = []
    thread = threading.Thread(target=lambda: purged.append(store.purge(mine.key)))
    with store.snapshot([mine.key]) as backup:
        thread.start()
        until(lambda: backup.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone())
        posted: list[object] = []
        fresh = Group(theirs.key, os.urandom(16), bytes(OTHER.layout.size), 1)
        post = threading.Thread(target=lambda: posted.extend(store.append([fresh], 1_000)))
        post.start()
        post.join(10)
        assert (posted, purged) == ([1], [])
    thread.join()
    post.join()
    assert purged == [len(ids) // 16]
    assert list(store.report_ids(mine.key)) == []
    store.close()


def test_readers_do_not_wait_behind_a_purge_that_waits_for_a_backup(postgres: Server) -> None:
    """An answer that waits too long for its tables would look like a database that hangs."""
    url = postgres.database()
    patient, hurried = PostgresStore(url), PostgresStore(url, 2.0)
    mine, _, ids = filled(patient, 3)
    purge = threading.Thread(target=lambda: patient.purge(mine.key))
    with patient.snapshot([mine.key]) as backup:
        purge.start()
        until(lambda: backup.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone())
        found = hurried.chunk(mine.key, 0, len(ids))
        assert found is not None
        assert found.last == len(ids) // 16
        with pytest.raises(StoreTimeoutError):  # a collector tries again later
            hurried.purge(mine.key)
        assert purge.is_alive()
    purge.join()
    assert list(hurried.report_ids(mine.key)) == []
    patient.close()
    hurried.close()


def test_a_purge_that_is_cancelled_does_not_try_again(postgres: Server) -> None:
    """Only another's lock is waited for: who administers the server must be able to end it."""
    url = postgres.database()
    first = PostgresStore(url)
    mine, _, ids = filled(first, 3)
    with first.reading() as connection:
        name = url.rpartition("/")[2]
        connection.execute(f"ALTER DATABASE {name} SET statement_timeout = '100ms'")  # sooner than a lock is given up
    store = PostgresStore(url)
    with first.snapshot([mine.key]), pytest.raises(StoreTimeoutError, match="QueryCanceled"):
        store.purge(mine.key)
    assert len(list(first.report_ids(mine.key))) == len(ids) // 16
    first.close()
    store.close()
