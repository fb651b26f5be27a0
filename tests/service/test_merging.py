"""Runs of ids are merged in small steps: no commit waits for long, whoever does the next step, and no id is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.service.harness import SURVEY
from tests.service.reports import group, opened

from veil.collector import seen
from veil.collector.backup import back_up, restore
from veil.collector.blocks import BlockStore
from veil.collector.catalogue import Catalogue
from veil.collector.merging import Merging
from veil.collector.seen import names_of
from veil.collector.sqlite_store import SqliteStore
from veil.collector.store import StoredSurvey
from veil.collector.upkeep import Upkeep
from veil.errors import StoreError, StoreTimeoutError

Make = Callable[[], BlockStore]


def send(store: BlockStore, stored: StoredSurvey, commits: int, each: int = 64) -> list[bytes]:
    sent = [os.urandom(16 * each) for _ in range(commits)]
    for ids in sent:
        assert store.append([group(stored, ids)], 1_000) == [each]
    return sent


def check_all_known(store: BlockStore, stored: StoredSurvey, sent: Sequence[bytes]) -> None:
    assert sorted(store.report_ids(stored.key)) == sorted(names_of(b"".join(sent)))
    assert store.append([group(stored, b"".join(sent))], 1_000) == [0]


def rows_of(store: BlockStore, stored: StoredSurvey) -> list[tuple[int, int]]:
    """The runs and pages that the database holds."""
    with store.snapshot() as connection:
        found = connection.execute(f"SELECT run, page FROM {store.table('runs', stored.key)}").fetchall()  # noqa: S608
    return [(run, page) for run, page in found]


class Distant:
    """A connection to a server that is far away: so many calls, and the time for a transaction is over."""

    def __init__(self, connection: Any, calls: int) -> None:
        self._connection, self._left = connection, calls

    def __getattr__(self, name: str) -> Any:
        self._left -= name in ("execute", "executemany")
        if self._left < 0:
            raise StoreTimeoutError("the database did not answer in time")
        return getattr(self._connection, name)


def distant(store: BlockStore, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = store.writing

    @contextmanager
    def limited() -> Iterator[Any]:
        with writing() as connection:
            yield Distant(connection, calls)

    monkeypatch.setattr(store, "writing", limited)


def test_merges_fit_into_the_time_of_a_short_transaction(
    make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    distant(store, 24 if not isinstance(store, SqliteStore) else 40, monkeypatch)
    sent = send(store, stored, 24)
    assert store.failed_upkeep == 0
    assert max(run.count for run in store._memory.of(stored.key).runs) > 64 * 4 * 4 // 2  # merged, and merged again
    check_all_known(make(), stored, sent)


def test_the_number_of_runs_grows_with_the_logarithm(make: Make, small_runs: None) -> None:
    store = make()
    stored = opened(store)
    sent = send(store, stored, 55)
    runs = store._memory.of(stored.key).runs
    largest = sum(run.level == seen.LEVELS for run in runs)
    assert largest == 3
    assert len(runs) - largest <= seen.LEVELS * seen.MERGED
    assert all(sum(run.level == level for run in runs) <= seen.MERGED for level in range(seen.LEVELS))
    while not store._memory.of(stored.key).settled:
        store.merge(stored.key)
    found = rows_of(store, stored)
    assert {run for run, _ in found} == {
        run.number for run in store._memory.of(stored.key).runs
    }  # nothing is left over
    check_all_known(make(), stored, sent)


def test_whoever_comes_next_goes_on_with_a_merge(make: Make, small_runs: None) -> None:
    """Each commit is another collector's, as if all before it had been killed; two others take turns."""
    stored = opened(make())
    others = make(), make()
    sent: list[bytes] = []
    between = 0
    for i in range(30):
        store = make() if i % 3 == 0 else others[i % 2]
        sent += send(store, stored, 1)
        between += any(run == 0 for run, _ in rows_of(store, stored))
        if i % 5 == 0:
            assert store.append([group(stored, sent[i // 2])], 1_000) == [0]
        if store not in others:
            store.close()
    assert between > 5  # a merge was often under way
    assert max(run.level for run in others[0]._memory.of(stored.key).runs) == seen.LEVELS
    check_all_known(make(), stored, sent)


def test_a_step_that_fails_is_put_off_and_counted(
    make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    now = 0.0
    store.merging = Upkeep(lambda: now)
    tries = 0
    step = Merging.step

    def fails(self: Merging, pages: int) -> int | None:
        nonlocal tries
        step(self, pages)  # and all that it did is undone
        tries += 1
        raise StoreTimeoutError("late")

    monkeypatch.setattr(Merging, "step", fails)
    sent = send(store, stored, 12)
    assert (tries, store.failed_upkeep) == (1, 1)  # not with every commit
    now = 1.0
    sent += send(store, stored, 3)
    now = 2.9
    sent += send(store, stored, 3)
    assert tries == 2
    now = 3.0
    sent += send(store, stored, 3)
    assert tries == 3
    monkeypatch.undo()
    now = 100.0
    check_all_known(store, stored, sent)


def test_less_is_done_at_once_after_failures() -> None:
    now = 0.0
    upkeep = Upkeep(lambda: now)

    def fails() -> None:
        raise StoreError("full")

    pauses = []
    for _ in range(9):
        upkeep.do(fails)
        pauses.append(upkeep._again - now)
        now = upkeep._again
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert (upkeep.portion(64), upkeep.portion(3)) == (4, 1)
    for _ in range(4 * 64):
        assert upkeep.do(lambda: 7) == 7
    assert upkeep.portion(64) == 64


def test_what_was_read_of_runs_is_not_read_again(make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that starts reads filters before its transaction, and goes on where a broken connection left it."""
    store = make()
    stored = opened(store)
    sent = send(store, stored, 18)
    parts = sum(
        page <= 0 and run in {one.number for one in store._memory.of(stored.key).runs}
        for run, page in rows_of(store, stored)
    )
    assert parts > 10
    again = make()
    monkeypatch.setattr("veil.collector.blocks._SEGMENTS_AT_ONCE", 1)
    distant(again, 40, monkeypatch)
    read: list[tuple[int, int]] = []
    read_pages = again.read_pages

    def breaks(connection: Any, survey: int, places: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for place, data in read_pages(connection, survey, places):
            if place[1] <= 0:
                assert not isinstance(connection, Distant)  # not within the transaction
                read.append(place)
                if len(read) % 4 == 0:
                    raise StoreTimeoutError("late")
            yield place, data

    monkeypatch.setattr(again, "read_pages", breaks)
    monkeypatch.setattr(again, "_tend", lambda *given: None)  # merges read others
    tries = failed = 0
    while tries == failed and tries < 100:
        tries += 1
        try:
            assert again.append([group(stored, sent[0])], 1_000) == [0]
        except StoreError:
            failed += 1
    assert 0 < failed < tries
    assert len(set(read)) == parts
    assert len(read) < parts + tries
    check_all_known(make(), stored, sent)


def test_a_failed_commit_keeps_what_is_known_of_runs(
    make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    sent = send(store, stored, 18)
    runs = list(store._memory.of(stored.key).runs)
    insert = store.insert_blocks

    def fails(*_: object) -> None:
        raise StoreError("full")

    monkeypatch.setattr(store, "insert_blocks", fails)
    with pytest.raises(StoreError):
        store.append([group(stored, os.urandom(16))], 1_000)
    monkeypatch.setattr(store, "insert_blocks", insert)
    monkeypatch.setattr(store, "_load", fails)
    assert store.append([group(stored, sent[0])], 1_000) == [0]
    assert all(one is other for one, other in zip(runs, store._memory.of(stored.key).runs, strict=True))


def test_ids_that_begin_alike_are_found_in_whichever_segment(make: Make, small_runs: None) -> None:
    store = make()
    stored = opened(store)
    sent = [b"".join(bytes(8) + os.urandom(8) for _ in range(64)) for _ in range(16)]
    for ids in sent:
        assert store.append([group(stored, ids)], 1_000) == [64]
    assert max(len(run._heads) for run in store._memory.of(stored.key).runs) > 1
    check_all_known(make(), stored, sent)


def test_a_backup_and_a_purge_amid_a_merge(make: Make, small_runs: None, tmp_path: Path) -> None:
    store = make()
    stored = opened(store)
    sent = send(store, stored, 18)
    while not any(run == 0 for run, _ in rows_of(store, stored)):
        sent += send(store, stored, 1)
    back_up(store, tmp_path / "backup.sqlite3")
    back = SqliteStore(tmp_path / "back.sqlite3")
    restore(tmp_path / "backup.sqlite3", back)
    more = send(back, stored, 10)
    assert any(run.level == seen.LEVELS for run in back._memory.of(stored.key).runs)
    check_all_known(back, stored, sent + more)
    back.close()
    other = make()
    send(other, stored, 1)
    closed = Catalogue(store).close(SURVEY.task)
    store.purge(closed.key)
    for one in (store, other):
        one.merge(closed.key)
        one.fold(closed.key)
    assert rows_of(store, stored) == []
    assert list(store.report_ids(stored.key)) == []
