"""Within an hour, and when a survey closes, nothing in the database links a report id to a payload."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.service.reports import group, opened
from tests.service.test_purge import left

from veil import OUE, Survey
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store import seen
from veil.collector.store import sqlite as sqlite_store
from veil.collector.store.backup import back_up
from veil.collector.store.base import Group, StoredSurvey
from veil.collector.store.blocks import BlockStore
from veil.collector.store.checking import find_damage
from veil.collector.store.seen import names_of
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.errors import StoreError

WIDE = Survey(OUE(1.0, 256))  # payloads long enough to be found in a file
NOW = 1_000_000_000
Make = Callable[[], BlockStore]


def posted(store: BlockStore, stored: StoredSurvey, count: int) -> list[tuple[bytes, bytes]]:
    """Single posts: the id and the payload of each."""
    sent = [(os.urandom(16), os.urandom(WIDE.layout.size)) for _ in range(count)]
    for name, payload in sent:
        assert store.append([Group(stored.key, name, payload, 1)], NOW) == [1]
    return sent


def values(path: Path) -> Iterator[bytes]:
    """Every value of every row of every table, the ids and payloads of a row end to end."""
    with sqlite3.connect(path) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f"SELECT * FROM {table}").fetchall():  # noqa: S608
                yield b" ".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
    connection.close()


def links(folder: Path, sent: list[tuple[bytes, bytes]]) -> int:
    """How many reports are linked: by a row of a table, or by bytes side by side in a file of the database."""
    rows = list(values(folder / "x.sqlite3"))
    files = [path.read_bytes() for path in folder.iterdir()]
    return sum(
        any(name in row and payload in row for row in rows) or any(name + payload in data for data in files)
        for name, payload in sent
    )


def in_runs(folder: Path, names: Iterable[bytes]) -> int:
    """How often ids stand in the rows of runs."""
    with sqlite3.connect(folder / "x.sqlite3") as connection:
        runs = [data for (data,) in connection.execute("SELECT data FROM runs_1").fetchall()]
        assert connection.execute("SELECT count(*) FROM blocks_1 WHERE length(ids) > 0").fetchone() == (0,)
    connection.close()
    return sum(data.count(name) for data in runs for name in names)


def check_unlinked(folder: Path, sent: list[tuple[bytes, bytes]]) -> None:
    """No row and no byte links them, and ids stand nowhere but in the rows of runs."""
    assert links(folder, sent) == 0
    names = {name for name, _ in sent}
    assert left(folder.iterdir(), b"".join(names)) <= in_runs(folder, names)  # fewer where one lies across two pages


@pytest.mark.parametrize("count", [1, 300])
def test_after_a_fold_no_byte_of_the_database_links_an_id_to_a_payload(tmp_path: Path, count: int) -> None:
    store = SqliteStore(tmp_path / "x.sqlite3")
    store._writer.execute("PRAGMA synchronous = OFF")  # what is synced is not what is tested here
    stored = opened(store, WIDE)
    sent = posted(store, stored, count)
    assert links(tmp_path, sent) == count  # the rival: as it was until 65,536 had come
    assert store.unfolded(final=False) == [stored.key]
    store.fold_all([stored.key])
    assert store.unfolded(final=False) == []
    if count > 1:  # of a single report there is one id and one payload
        check_unlinked(tmp_path, sent)
    again = posted(store, stored, 40)
    store.fold_all([stored.key])
    check_unlinked(tmp_path, sent + again)
    assert sorted(store.report_ids(stored.key)) == sorted(name for name, _ in sent + again)
    chunk = store.chunk(stored.key, 0, 1_000)
    assert chunk is not None
    assert chunk.payloads == b"".join(payload for _, payload in sent + again)
    assert list(find_damage(store, lambda rows: None)) == []
    store.close()


def test_a_backup_links_what_was_not_folded_when_it_was_made(tmp_path: Path) -> None:
    """The limit that the threat model, the officer's page and the assessment state."""
    database = tmp_path / "database"
    database.mkdir()
    store = SqliteStore(database / "x.sqlite3")
    stored = opened(store, WIDE)
    sent = posted(store, stored, 3)
    for copy, linked in (("before", 3), ("after", 0)):
        folder = tmp_path / copy
        folder.mkdir()
        back_up(store, folder / "x.sqlite3")
        assert links(folder, sent) == linked
        store.fold_all([stored.key])
    store.close()


def test_deleting_rows_alone_would_leave_ids_beside_payloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival: without emptying the log, the log has them; nothing else does, because ids are overwritten first."""
    store = SqliteStore(tmp_path / "x.sqlite3")
    store._writer.execute("PRAGMA synchronous = OFF")
    stored = opened(store, WIDE)
    sent = posted(store, stored, 300)
    with monkeypatch.context() as patch:
        patch.setattr(store, "settle_folds", lambda: None)
        store.fold_all([stored.key])
    assert links(tmp_path, sent) > 0
    store.fold_all([])
    check_unlinked(tmp_path, sent)
    store.close()


@pytest.mark.parametrize("overwrite", [True, False])
def test_ids_are_overwritten_before_rows_are_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    """Without that, the rival: SQLite moves rows while it deletes others, and leaves copies between those of a page."""
    monkeypatch.setattr(seen, "FOLDED", 200)
    monkeypatch.setattr(SqliteStore, "_tend", lambda *given: None)
    if not overwrite:
        monkeypatch.setattr(SqliteStore, "erase_ids", lambda *given: None)
    store, sizes, sent = SqliteStore(tmp_path / "x.sqlite3"), random.Random(1), b""
    store._writer.execute("PRAGMA synchronous = OFF")
    stored = opened(store, WIDE)
    for _ in range(3):
        for _ in range(400):
            count = sizes.randint(1, 5) if sizes.random() < 0.5 else 1
            ids = os.urandom(16 * count)
            store.append([Group(stored.key, ids, bytes(count * WIDE.layout.size), count)], NOW)
            sent += ids
        store.fold_all([stored.key])
    store.close()
    assert (left(tmp_path.iterdir(), sent) <= in_runs(tmp_path, names_of(sent))) == overwrite


def test_closing_folds(make: Make) -> None:
    store = make()
    catalogue, stored = Catalogue(store), opened(store)
    ids = os.urandom(16 * 5)
    store.append([group(stored, ids)], NOW)
    assert store.unfolded(final=True) == []
    catalogue.close(stored.task)
    assert store.unfolded(final=False) == []
    assert len(set(store.report_ids(stored.key))) == 5


def test_a_survey_is_closed_even_if_it_cannot_be_folded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make()
    catalogue, stored = Catalogue(store), opened(store)
    store.append([group(stored, os.urandom(16))], NOW)

    def full(*given: object) -> bool:
        raise StoreError("full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_fold_latest", full)
        assert catalogue.close(stored.task).state == "closed"
    assert store.unfolded(final=True) == [stored.key]
    store.fold_all([stored.key])
    assert store.unfolded(final=False) == []


def test_small_runs_are_joined_and_every_collector_follows(make: Make, small_runs: None) -> None:
    """Three collectors on one database, each of which learns of the runs that another replaced."""
    stores = [make() for _ in range(3)]
    stored, sent = opened(stores[0]), b""
    for i in range(60):
        ids = os.urandom(16 * (1 + i % 7))
        assert stores[i % 3].append([group(stored, ids)], NOW) == [len(ids) // 16]
        sent += ids
        if i % 4 == 0:
            stores[(i + 1) % 3].fold_all([stored.key])
    stores[0].fold_all([stored.key])
    with stores[0].reading() as connection:
        found = connection.execute("SELECT run, sum(length(data)) FROM runs_1 WHERE page > 0 GROUP BY run").fetchall()
    assert sum(int(size) for _, size in found) == len(sent)
    assert len(found) <= 2 + len(sent) // 16 // 40  # and not one for each of the sixteen folds
    for store in stores:
        assert store.append([group(stored, sent), group(stored, os.urandom(16))], NOW) == [0, 1]
        assert all(len(columns._runs) <= 64 for columns in store._memory.of(stored.key).columns)


def test_damaged_ids_put_off_no_other_survey(make: Make) -> None:
    store = make()
    mine, theirs = opened(store), opened(store, WIDE)
    for stored in (mine, theirs):
        store.append([Group(stored.key, os.urandom(32), bytes(2 * stored_size(stored)), 2)], NOW)
    with store.writing() as connection:
        connection.execute("UPDATE blocks_1 SET ids = ?", (bytes(32),))
    store.fold_all([mine.key, theirs.key])
    assert store.unfolded(final=False) == []  # that one is left out from now on
    with store.reading() as connection:
        assert connection.execute("SELECT indexed FROM counters ORDER BY survey").fetchall() == [(0,), (2,)]


def stored_size(stored: StoredSurvey) -> int:
    return Survey.from_json(stored.document).layout.size


def test_reports_that_are_being_erased_are_not_folded(make: Make) -> None:
    store = make()
    stored = opened(store)
    store.append([group(stored, os.urandom(32))], NOW)
    store.move(stored.key, "open", "closed", NOW)
    with store.writing() as connection:
        store.note_purging(connection, stored.key)
    assert store.unfolded(final=False) == []
    store.fold_all([stored.key])
    assert store.purge(stored.key) == 2


def test_the_hour_is_over_or_a_collector_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a collector left behind is folded by the next one at once, and then whatever came in each hour."""
    monkeypatch.setattr(sqlite_store, "_TRUNCATE_SECONDS", 0.01)
    now = float(NOW - NOW % 3_600)
    settings = CollectorSettings(folder=str(tmp_path))

    def service() -> Service:
        return Service(settings, SqliteStore(tmp_path / "x.sqlite3"), clock=lambda: now)

    first = service()
    store = first.store
    assert isinstance(store, BlockStore)
    stored = opened(store, WIDE)
    posted(store, stored, 2)
    store.close()  # as a kill would

    second = service()
    store = second.store
    assert isinstance(store, BlockStore)
    second._caught_up()
    assert store.unfolded(final=False) == []
    posted(store, stored, 2)
    now += 3_599
    second._caught_up()
    assert store.unfolded(final=False) == [stored.key]
    now += 1
    with monkeypatch.context() as patch:
        patch.setattr(store, "settle_folds", lambda: (_ for _ in ()).throw(StoreError("somebody reads")))
        with pytest.raises(StoreError):
            second._caught_up()
    second._caught_up()  # not at once
    assert second._folded * 3_600 == NOW - NOW % 3_600
    second._fold_again = 0.0
    second._caught_up()
    assert second._folded * 3_600 == now
    assert store.unfolded(final=False) == []
    store.close()


def test_the_time_of_a_survey_that_is_over_is_over_for_good(make: Make) -> None:
    """A clock that goes back, or is behind on another collector, does not open it again."""
    store = make()
    catalogue = Catalogue(store, lambda: NOW)
    catalogue.create(draft_of(WIDE, {"closes": "2001-09-09T01:46:40Z", "step": 10}, precision=60, minimum=1))
    stored = catalogue.open(WIDE.task)
    assert stored.closes == NOW
    one = Group(stored.key, os.urandom(16), bytes(WIDE.layout.size), 1)
    assert store.append([one], NOW - 1) == [1]
    store.end(stored.key, NOW - 1)
    assert store.to_end(NOW - 1) == []
    assert store.to_end(NOW) == [stored.key]
    assert store.survey(stored.key).mark == 0
    store.end(stored.key, NOW)
    ended = store.survey(stored.key)
    assert (ended.mark, ended.phase(NOW - 100), ended.state) == (1, "expired", "open")
    two = Group(stored.key, os.urandom(16), bytes(WIDE.layout.size), 1)
    assert store.append([two], NOW - 100) == ["expired"]
    assert store.to_end(NOW) == []
    assert store.unfolded(final=True) == [stored.key]


def test_seen_drops_and_reuses_a_column() -> None:
    columns = seen.FilterColumns(bytes(16), 32 * seen.FOLDED)
    names = [seen.sorted_names(os.urandom(16 * seen.FOLDED)) for _ in range(3)]
    for number, ids in enumerate(names[:2], 1):
        columns.add(number, seen.RunHead.of(ids, bytes(16)))
    columns.drop(1)
    columns.add(3, seen.RunHead.of(names[2], bytes(16)))
    for number, ids in ((1, names[0]), (2, names[1]), (3, names[2])):
        some = ids[: 16 * 100]
        hits = columns.may_hold(seen.MixedIds.of(bytes(16), some).places(columns.size)).tolist()
        pages = [list(columns.pages(some[16 * i : 16 * i + 16], hit)) for i, hit in enumerate(hits)]
        assert all((number in dict(found)) == (number != 1) for found in pages)
