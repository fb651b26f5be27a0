"""Runs of ids: made once and never touched again, read once, by whichever collector; and no id is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.service.harness import SURVEY
from tests.service.reports import group, opened

from veil import OLH, Survey
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store.base import StoredSurvey
from veil.collector.store.blocks import BlockStore
from veil.collector.store.seen import SeenIdsCache, names_of
from veil.collector.store.timing import Upkeep
from veil.collector.surveys.catalogue import Catalogue
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
    """A connection to a distant server: after `calls` statements the time for a transaction is over.

    Reads of pages do not count. Filters of small runs ask for some in vain, and how many depends on random ids.
    """

    def __init__(self, connection: Any, calls: int) -> None:
        self._connection, self._left = connection, calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)
        return self._counted(method) if name in ("execute", "executemany") else method

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(statement: str, *values: Any) -> Any:
            self._left -= "AND page = ?" not in statement
            if self._left < 0:
                raise StoreTimeoutError("the database did not answer in time")
            return method(statement, *values)

        return call


def distant(store: BlockStore, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = store.writing

    @contextmanager
    def limited() -> Iterator[Any]:
        with writing() as connection:
            yield Distant(connection, calls)

    monkeypatch.setattr(store, "writing", limited)


def test_a_run_is_written_once_and_fits_into_a_short_transaction(
    make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    distant(store, 12, monkeypatch)
    sent = send(store, stored, 20)
    first = rows_of(store, stored)
    sent += send(store, stored, 60)
    assert store.failed_upkeep == 0
    assert set(first) <= set(rows_of(store, stored))
    assert len(store._memory.of(stored.key).runs) == 80
    check_all_known(make(), stored, sent)


def test_ids_are_looked_for_in_64_runs_at_once(make: Make, small_runs: None) -> None:
    """The filters of 150 runs are three tables of words, of as many bytes as bits for all ids, and little more."""
    store = make()
    stored = opened(store)
    sent = send(store, stored, 150)
    again = make()
    check_all_known(again, stored, sent)
    for one in (store, again):
        known = one._memory.of(stored.key)
        assert len(known.runs) == 150
        assert [columns.words.itemsize for columns in known.columns] == [8, 8, 4]
        assert known.size - 112 * len(known.latest) == 32 * 64 * (8 + 8 + 4)


def test_a_commit_of_many_reports_makes_several_runs(make: Make, small_runs: None) -> None:
    store = make()
    stored = opened(store)
    sent = send(store, stored, 3, each=64 * 5 + 40)
    assert len(store._memory.of(stored.key).runs) == 3 * 6
    check_all_known(make(), stored, sent)


def test_runs_are_made_of_more_surveys_than_memory_has_room_for(make: Make, small_runs: None) -> None:
    store = make()
    store._memory = SeenIdsCache(most_bytes=1)
    stored = [opened(store, survey) for survey in (SURVEY, Survey(OLH(1.0, 4)), Survey(OLH(1.0, 5)))]
    for _ in range(4):
        groups = [group(one, os.urandom(16 * 40)) for one in stored]
        assert store.append(groups, 1_000) == [40] * 3
    assert [len({run for run, _ in rows_of(store, one)}) for one in stored] == [2] * 3


@pytest.mark.parametrize(("megabytes", "known"), [(1, 1), (256, 2)])
def test_how_much_is_known_of_ids_is_a_setting(tmp_path: Path, megabytes: int, known: int) -> None:
    store = open_store(CollectorSettings(folder=str(tmp_path), ids_megabytes=megabytes))
    assert isinstance(store, BlockStore)
    for survey in (SURVEY, Survey(OLH(1.0, 4))):
        stored = opened(store, survey)
        assert store.append([group(stored, os.urandom(16 * 6_000))], 1_000) == [6_000]
    assert len(store._memory._seen) == known
    store.close()


def test_a_fold_that_fails_is_put_off_and_counted(
    make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    now = 0.0
    store.folding = Upkeep(lambda: now)
    tries = 0
    write = store.write_runs

    def fails(*given: Any) -> None:
        nonlocal tries
        write(*given)  # and all that it did is undone
        tries += 1
        raise StoreTimeoutError("late")

    monkeypatch.setattr(store, "write_runs", fails)
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
    monkeypatch.setattr(store, "write_runs", write)
    assert rows_of(store, stored) == []
    now = 100.0
    check_all_known(store, stored, sent)
    sent += send(store, stored, 9)  # in small portions, because of the failures
    assert store._memory.of(stored.key).runs
    check_all_known(make(), stored, sent)


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
    done: list[int] = []
    for _ in range(4 * 64):
        upkeep.do(lambda: done.append(7))
    assert len(done) == 4 * 64
    assert upkeep.portion(64) == 64


def test_what_was_read_of_runs_is_not_read_again(make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that starts reads filters before its transaction, and goes on where a broken connection left it."""
    store = make()
    stored = opened(store)
    sent = send(store, stored, 18)
    heads = sum(page == 0 for _, page in rows_of(store, stored))
    assert heads == 18
    again = make()
    monkeypatch.setattr("veil.collector.store.blocks._HEADS_AT_ONCE", 1)
    distant(again, 40, monkeypatch)
    read: list[tuple[int, int]] = []
    read_pages = again.read_pages

    def breaks(connection: Any, survey: int, places: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for place, data in read_pages(connection, survey, places):
            if place[1] == 0:
                assert not isinstance(connection, Distant)  # not within the transaction
                read.append(place)
                if len(read) % 4 == 0:
                    raise StoreTimeoutError("late")
            yield place, data

    monkeypatch.setattr(again, "read_pages", breaks)
    tries = failed = 0
    while tries == failed and tries < 100:
        tries += 1
        try:
            assert again.append([group(stored, sent[0])], 1_000) == [0]
        except StoreError:
            failed += 1
    assert 0 < failed < tries
    assert len(set(read)) == heads
    assert len(read) < heads + tries
    check_all_known(make(), stored, sent)


def test_a_failed_commit_keeps_what_is_known_of_runs(
    make: Make, small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    sent = send(store, stored, 18)
    columns = list(store._memory.of(stored.key).columns)
    insert = store.insert_blocks

    def fails(*_: object) -> None:
        raise StoreError("full")

    monkeypatch.setattr(store, "insert_blocks", fails)
    with pytest.raises(StoreError):
        store.append([group(stored, os.urandom(16))], 1_000)
    monkeypatch.setattr(store, "insert_blocks", insert)
    monkeypatch.setattr(store, "_load", fails)
    assert store.append([group(stored, sent[0])], 1_000) == [0]
    assert all(one is other for one, other in zip(columns, store._memory.of(stored.key).columns, strict=True))


def test_ids_that_begin_alike_are_told_apart(make: Make, small_runs: None) -> None:
    store = make()
    stored = opened(store)
    sent = [b"".join(bytes(8) + os.urandom(8) for _ in range(64)) for _ in range(16)]
    for ids in sent:
        assert store.append([group(stored, ids)], 1_000) == [64]
    check_all_known(make(), stored, sent)


def test_a_purge_is_known_to_every_collector(make: Make, small_runs: None) -> None:
    store, other = make(), make()
    stored = opened(store)
    send(store, stored, 18)
    send(other, stored, 1)
    closed = Catalogue(store).close(SURVEY.task)
    store.purge(closed.key)
    for one in (store, other):
        one.fold(closed.key)
        one._load(closed.key)
        assert (one._memory.of(closed.key).runs, one._memory.of(closed.key).columns) == (set(), [])
    assert rows_of(store, stored) == []
    assert list(store.report_ids(stored.key)) == []
