"""Which ids a survey has: filters that miss nothing, runs in the database, and nothing taken twice, however old."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import groupby

import numpy as np
import pytest
from tests.service.harness import SURVEY
from tests.service.reports import SIZE, group, opened

from veil.collector.blocks import BlockStore
from veil.collector.seen import Filter, Memory, Mixed, Run, Segment, names_of, sorted_names
from veil.errors import StoreError


def test_a_filter_holds_what_it_was_given_and_little_else() -> None:
    ids, others, key = sorted_names(os.urandom(16 * 20_000)), os.urandom(16 * 100_000), os.urandom(16)
    whole = Segment.of(ids, key)
    several = [Segment.of(ids[start : start + (16 << 12)], key) for start in range(0, len(ids), 16 << 12)]
    for read in (Run(1, [whole]), Run(1, [Segment.from_bytes(whole.to_bytes())]), Run(1, several)):
        assert read.may_hold(Mixed.of(key, ids)).all()
        assert read.may_hold(Mixed.of(key, others)).mean() < 0.004  # about 0.0013
        assert read.count == 20_000
        names = names_of(ids)
        assert all(names[i] in names_of(ids)[1024 * (read.page(names[i]) - 1) :][:1024] for i in range(0, 20_000, 617))
    # a rival: a filter of half the size errs ten times as often
    half = Filter(key, Filter.of(key, ids[: len(ids) // 2]).words)
    places = half._places(Mixed.of(key, ids))
    half.words[:] = 0
    np.bitwise_or.at(half.words, places, Mixed.of(key, ids).bits)
    assert half.may_hold(Mixed.of(key, others)).mean() > 0.004


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
    assert 1 < len(heads) < 40 * 37 // 64  # folded, and merged
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


def test_memory_is_bounded_over_many_surveys() -> None:
    memory = Memory(most_bytes=300 * 112)
    for key in range(10):
        memory.of(key).latest.update(os.urandom(16) for _ in range(100))
        memory.trim()
    assert [key for key in range(10) if key in memory._seen] == [7, 8, 9]
    memory.of(11).latest.update(os.urandom(16) for _ in range(1_000))
    memory.trim()
    assert list(memory._seen) == [11]  # the one in use stays, whatever it takes
