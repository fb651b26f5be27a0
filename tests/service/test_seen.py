"""Which ids a survey has: filters that miss nothing, runs in the database, and nothing taken twice, however old."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import pytest
from tests.service.harness import SURVEY
from tests.service.reports import SIZE, group, opened

from veil import GRR, Survey
from veil.collector.store.base import Group
from veil.collector.store.blocks import BlockStore
from veil.collector.store.seen import (
    FOLDED,
    FilterColumns,
    MixedIds,
    RunHead,
    SeenIds,
    SeenIdsCache,
    cut_into_runs,
    names_of,
    sorted_names,
)
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.errors import StoreError


def columns_of(heads: Sequence[RunHead]) -> list[FilterColumns]:
    seen = SeenIds()
    for number, head in enumerate(heads, 1):
        seen.add(number, head)
    return seen.columns


def test_filters_hold_what_they_were_given_and_little_else() -> None:
    count, key = FOLDED, os.urandom(16)
    runs, others = [sorted_names(os.urandom(16 * count)) for _ in range(9)], os.urandom(16 * 200_000)
    heads = [RunHead.of(ids, key) for ids in runs]
    for some in (heads, [RunHead.from_bytes(head.to_bytes()) for head in heads]):
        (columns,) = columns_of(some)
        assert columns.words.itemsize == 2
        for lane, ids in enumerate(runs):
            hits = columns.may_hold(MixedIds.of(key, ids).places(columns.size))
            assert ((hits >> lane) & 1).all()
            names = names_of(ids)
            for i in range(0, count, 617):
                assert (lane + 1, 1 + i // 1024) in list(columns.pages(names[i], int(hits[i])))
        vain = np.bitwise_count(columns.may_hold(MixedIds.of(key, others).places(columns.size))).sum() / (9 * 200_000)
        assert vain < 1e-5  # 9e-7 by Bloom's formula
    # a rival: filters of half the size err a thousand times as often
    half = []
    for ids in runs:
        is_set = np.zeros(heads[0].places // 2, dtype=np.uint8)
        is_set[MixedIds.of(key, ids).places(len(is_set))] = 1
        half.append(RunHead(key, [], np.packbits(is_set)))
    (columns,) = columns_of(half)
    assert np.bitwise_count(columns.may_hold(MixedIds.of(key, others).places(columns.size))).mean() > 9 * 1e-4


@pytest.mark.parametrize("count", [1, 5, 131, 40_000, 43_690, 65_536, 98_303])
def test_a_filter_is_as_large_as_its_run_needs(count: int) -> None:
    head = RunHead.of(sorted_names(os.urandom(16 * count)), os.urandom(16))
    assert 21 * count <= head.places <= max(43 * count, 32 * 8)


def test_a_filter_that_would_miss_ids_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another version, as the one before wrote it (how many ids, how many pages, key, ...), or of a part of one."""
    data = RunHead.of(sorted_names(os.urandom(16 * 100)), os.urandom(16)).to_bytes()
    before = (100).to_bytes(8, "little") + (1).to_bytes(8, "little") + data[8:]
    for bad in (before, data[:24], data[:20], b""):
        with pytest.raises(StoreError, match="filter"):
            RunHead.from_bytes(bad)
    monkeypatch.setattr("veil.collector.store.seen._PLACES", 10)
    with pytest.raises(StoreError, match="filter"):
        RunHead.from_bytes(data)


def test_many_ids_are_cut_into_runs_of_about_one_size(small_runs: None) -> None:
    for count in (1, 64, 95, 97, 500, 1_000):
        ids = os.urandom(16 * count)
        runs = list(cut_into_runs(ids))
        assert b"".join(runs) == ids
        assert all(count < 64 or 2 * 64 // 3 <= len(run) // 16 <= 3 * 64 // 2 for run in runs)


def test_ids_that_end_in_zeros_stay_themselves() -> None:
    names = [bytes(15) + bytes([i]) for i in range(3)] + [b"\x01" + bytes(15)]
    assert names_of(sorted_names(b"".join(reversed(names)))) == names


def test_an_old_report_that_comes_again_is_known_however_often_runs_were_made(
    make: Callable[[], BlockStore], small_runs: None
) -> None:
    store = make()
    stored = opened(store)
    sent = [os.urandom(16 * 37) for _ in range(40)]
    for i, ids in enumerate(sent):
        assert store.append([group(stored, ids, i)], 1_000 + 60 * i) == [37]
    with store.snapshot() as connection:
        table = store.table("runs", stored.key)
        heads = connection.execute(f"SELECT run FROM {table} WHERE page = 0").fetchall()  # noqa: S608
    assert len(heads) == 40 * 37 // (64 + 10)  # every second commit fills a run
    for one in (store, make(), make()):  # one that knows them, and others that have to look
        for ids in sent:
            mixed = sorted_names(ids[: 16 * 20] + (fresh := os.urandom(16)))
            assert one.append([group(stored, mixed, 99)], 9_000) == [1]
            assert one.append([group(stored, fresh * 2 + ids, 99)], 9_000) == [0]
    found = store.chunk(stored.key, 0, 100_000)
    assert found is not None
    assert found.last == (store.find(SURVEY.task) or stored).reports == 40 * 37 + 3 * 40
    firsts = [found.payloads[i * SIZE] for i in range(found.last)]
    assert firsts[: 40 * 37] == [i for i in range(40) for _ in range(37)]  # the first payloads, in the order of commits
    assert sum(count for _, count in found.buckets) == found.last
    assert [bucket for bucket, _ in groupby(bucket for bucket, _ in found.buckets)][:3] == [960, 1_020, 1_080]
    kept = list(store.report_ids(stored.key))
    assert len(kept) == len(set(kept)) == found.last
    assert set(names_of(b"".join(sent))) <= set(kept)


def test_chunks_begin_and_end_anywhere(make: Callable[[], BlockStore], small_runs: None) -> None:
    store = make()
    stored = opened(store)
    for i in range(30):
        store.append([group(stored, os.urandom(16 * 7), i)], 1_000 + 60 * i)
    whole = store.chunk(stored.key, 0, 10_000)
    assert whole is not None
    assert store.buckets(stored.key, 210) == store.buckets(stored.key, 10_000)
    for after, rows, until in ((0, 1, None), (3, 50, None), (63, 5, 65), (100, 1_000, 170), (209, 9, None)):
        part = store.chunk(stored.key, after, rows, until)
        assert part is not None
        end = min(after + rows, 210 if until is None else until)
        assert (part.last, part.payloads) == (end, whole.payloads[after * SIZE : end * SIZE])
        assert sum(count for _, count in part.buckets) == end - after
    assert store.chunk(stored.key, 210, 5) is None
    assert store.chunk(stored.key, 5, 5, 5) is None


def test_two_collectors_that_fold_in_turns_agree(make: Callable[[], BlockStore], small_runs: None) -> None:
    one, two = make(), make()
    stored = opened(one)
    sent: list[bytes] = []
    for i in range(60):
        ids = os.urandom(16 * 11)
        assert (one, two)[i % 2].append([group(stored, ids)], 1_000) == [11]
        assert (two, one)[i % 2].append([group(stored, ids)], 1_000) == [0]
        assert (two, one)[i % 2].append([group(stored, sent[i // 2])], 1_000) == [0] if sent else True
        sent.append(ids)
    assert sorted(two.report_ids(stored.key)) == sorted(names_of(b"".join(sent)))


def test_a_commit_that_failed_is_not_remembered(
    make: Callable[[], BlockStore], small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    stored = opened(store)
    first, second = os.urandom(16 * 40), os.urandom(16 * 40)
    assert store.append([group(stored, first)], 1_000) == [40]
    insert = store.insert_blocks

    def full(*given: object) -> None:
        raise StoreError("full")

    def fails(*block: object) -> None:
        insert(*block)  # type: ignore[arg-type]
        full()

    monkeypatch.setattr(store, "insert_blocks", fails)
    with pytest.raises(StoreError):
        store.append([group(stored, second)], 1_000)
    monkeypatch.setattr(store, "insert_blocks", insert)
    fold = store._fold
    monkeypatch.setattr(store, "_fold", lambda *given: (fold(*given), full()))
    assert store.append([group(stored, second)], 1_000) == [40]  # stored, although no run could be made
    monkeypatch.setattr(store, "_fold", fold)
    assert store.append([group(stored, first + second)], 1_000) == [0]
    assert store.append([group(stored, os.urandom(16))], 1_000) == [1]
    assert len(set(store.report_ids(stored.key))) == 81
    assert (store.find(SURVEY.task) or stored).reports == 81


def test_nothing_is_remembered_where_runs_could_not_be_read(
    make: Callable[[], BlockStore], small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two surveys' reports are undone with those of a third, whose runs another collector made; reading them fails."""
    one, two = make(), make()
    asked = [Survey(GRR(1.0, k)) for k in (3, 4, 5)]
    stored = []
    for survey in asked:
        Catalogue(one).create(draft_of(survey, {}, precision=60, minimum=1))
        stored.append(Catalogue(one).open(survey.task))

    def some(which: int, ids: bytes) -> Group:
        count = len(ids) // 16
        return Group(stored[which].key, ids, bytes(asked[which].layout.size * count), count)

    for which in range(3):
        one.append([some(which, os.urandom(16 * 5))], 1_000)
    two.append([some(2, os.urandom(16 * 70))], 1_000)
    sent, others = [os.urandom(16 * 3) for _ in range(3)], os.urandom(16 * 3)
    load = one._load

    def fails(survey: int) -> None:
        monkeypatch.setattr(one, "_load", load)
        raise StoreError("the database cannot be reached")

    monkeypatch.setattr(one, "_load", fails)
    with pytest.raises(StoreError):
        one.append([some(which, ids) for which, ids in enumerate(sent)], 1_000)
    assert two.append([some(1, others)], 1_000) == [3]
    assert one.append([some(1, sent[1])], 1_000) == [3]  # refused, and so not known
    assert one.append([some(1, others)], 1_000) == [0]
    kept = list(one.report_ids(stored[1].key))
    assert len(kept) == len(set(kept)) == 5 + 3 + 3


def test_memory_is_bounded_over_many_surveys() -> None:
    memory = SeenIdsCache(most_bytes=300 * 112)
    for key in range(10):
        memory.of(key).latest.update(os.urandom(16) for _ in range(100))
        memory.trim()
    assert [key for key in range(10) if key in memory._seen] == [7, 8, 9]
    memory.of(11).latest.update(os.urandom(16) for _ in range(1_000))
    memory.trim()
    assert list(memory._seen) == [11]  # the one in use stays, whatever it takes
