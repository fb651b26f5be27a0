"""The contract of the stores, on SQLite and on a real PostgreSQL: once, in order, durable, the same integers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, framed, running, values
from tests.service.kills import kill_under_load
from tests.service.postgres import Server

from veil.collector.edge.commit import CommitQueue
from veil.collector.edge.decoding import decode_requests
from veil.collector.keys_and_tokens import issue_token
from veil.collector.monitoring.metrics import Metrics
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store import sqlite as sqlite_store
from veil.collector.store.base import AuditEntry, Group, Store, StoredSurvey, StoredTally
from veil.collector.store.seen import names_of
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys import collection
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.collector.surveys.collection import catch_up, rebuild
from veil.errors import InputError, ServiceError, StoreError
from veil.wire.frames import report_size
from veil.wire.tallies import encode_tally

NOW = 1_000_000_007


@pytest.fixture(params=["sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same database again each time, as several collectors do."""
    opened: list[Store] = []
    if request.param == "postgres":
        from veil.collector.store.postgres import PostgresStore

        url = request.getfixturevalue("postgres").database()

        def make() -> Store:
            opened.append(PostgresStore(url))
            return opened[-1]
    else:

        def make() -> Store:
            opened.append(SqliteStore(tmp_path / "x.sqlite3"))
            return opened[-1]

    yield make
    for store in opened:
        store.close()


def survey_in(store: Store, state: str = "open") -> StoredSurvey:
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, {}, precision=3_600, minimum=1))
    if state != "draft":
        catalogue.open(SURVEY.task)
    return catalogue.look_up(SURVEY.task)


def group_of(stored: StoredSurvey, people: int, seed: int = 0) -> Group:
    decoded = decode_requests(SURVEY, [framed(SURVEY, values(people, seed))])
    return Group(stored.key, decoded.ids, decoded.payloads, decoded.count)


def test_reports_are_kept_once_with_their_first_payload_and_a_coarse_time(make_store: Callable[[], Store]) -> None:
    store = make_store()
    stored = survey_in(store)
    group = group_of(stored, 100)
    assert store.append([group], NOW) == [100]
    other = group_of(stored, 100, seed=1)
    again = Group(stored.key, group.ids[:160] + other.ids[:160], other.payloads[:180], 20)
    assert store.append([again, other], NOW) == [10, 90]
    assert sorted(store.report_ids(stored.key)) == sorted(names_of(group.ids + other.ids))
    assert store.buckets(stored.key, 200) == [(NOW // 3_600 * 3_600, count) for count in (100, 10, 90)]
    found = store.chunk(stored.key, 0, 1_000)
    assert found is not None
    assert found.payloads[: 9 * 100] == group.payloads  # as they came first
    assert found.payloads[9 * 100 :] == other.payloads[90:180] + other.payloads[90:]
    assert (store.find(SURVEY.task) or stored).reports == found.last == 200


def test_what_is_not_open_takes_nothing(make_store: Callable[[], Store]) -> None:
    store = make_store()
    stored = survey_in(store, "draft")
    assert store.append([group_of(stored, 3)], NOW) == ["draft"]
    assert store.move(stored.key, "draft", "open")
    assert not store.move(stored.key, "draft", "open")
    assert store.append([group_of(stored, 3)], NOW) == [3]
    assert store.move(stored.key, "open", "closed")
    assert store.append([group_of(stored, 3)], NOW) == ["closed"]
    assert len(list(store.report_ids(stored.key))) == 3


def test_a_tally_is_caught_up_from_its_mark_and_equals_a_rebuild(make_store: Callable[[], Store]) -> None:
    store = make_store()
    stored = survey_in(store)
    assert catch_up(store, stored, SURVEY) is None
    for i in range(5):
        store.append([group_of(stored, 200 + i, seed=i)], NOW)
        kept = catch_up(store, stored, SURVEY)
        assert kept is not None
        found = store.tally(stored.key)
        assert found is not None
        assert found.encoded == encode_tally(kept)
    total, right = rebuild(store, stored, SURVEY)
    assert right
    assert total == kept
    # a rival: a tally that missed a group is found out, and put right
    part = catch_up(store, stored, SURVEY)
    assert part is not None
    wrong = encode_tally(part + part)
    store.save_tally(stored.key, StoredTally(wrong, found.sequence), None)
    total, right = rebuild(store, stored, SURVEY)
    assert not right
    assert (store.tally(stored.key) or found).encoded == encode_tally(kept)


def test_a_purge_within_a_rebuild_leaves_the_tally_as_it_was(
    make_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    stored = survey_in(store)
    store.append([group_of(stored, 100)], NOW)
    catch_up(store, stored, SURVEY)
    before = store.tally(stored.key)
    monkeypatch.setattr(collection, "_CHUNK_BYTES", 40 * SURVEY.layout.size)
    chunk = store.chunk

    def chunk_then_purge(survey: int, after: int, rows: int, until: int | None = None) -> Any:
        found = chunk(survey, after, rows, until)
        if until is not None and after == 0:
            assert store.purge(survey) == 100
        return found

    monkeypatch.setattr(store, "chunk", chunk_then_purge)
    with pytest.raises(InputError, match="purged"):
        rebuild(store, stored, SURVEY)
    assert store.tally(stored.key) == before


def test_several_collectors_at_once_lose_and_double_nothing(make_store: Callable[[], Store]) -> None:
    """Writers share ids and race with a reader that follows the mark: it must not miss a number committed late."""
    first = make_store()
    stored = survey_in(first)
    shared = [group_of(stored, 40, seed=i) for i in range(12)]
    new: list[int] = []
    done = threading.Event()

    def write(store: Store, order: list[int]) -> None:
        for i in order:
            outcome = store.append([shared[i]], NOW)[0]
            assert isinstance(outcome, int)
            new.append(outcome)

    def follow(store: Store) -> None:
        while not done.is_set():
            catch_up(store, stored, SURVEY)

    writers = [
        threading.Thread(target=write, args=(make_store(), list(range(12))[:: 1 if i % 2 else -1])) for i in range(4)
    ]
    followers = [threading.Thread(target=follow, args=(make_store(),)) for _ in range(2)]
    for thread in writers + followers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in followers:
        thread.join()
    assert sum(new) == 12 * 40
    total, right = rebuild(first, stored, SURVEY)
    assert right
    assert total is not None
    assert total.people == 12 * 40


def test_tokens_and_audit(make_store: Callable[[], Store]) -> None:
    store = make_store()
    hostile = "x'); DROP TABLE surveys; --"
    record, secret = issue_token(store, ["answers:read"], note=hostile)
    assert [token.note for token in store.tokens()] == [hostile]
    assert secret.encode() not in record.digest
    store.note(AuditEntry("2026-01-01T00:00:00Z", record.name, "answer", None, hostile))
    assert store.audit(5)[0].parameters == hostile
    assert not store.revoke_token(hostile)
    assert store.revoke_token(record.name)
    assert store.tokens()[0].revoked
    assert store.surveys() == []


def test_a_full_database_is_no_false_acknowledgement(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.sqlite3")
    stored = survey_in(store)
    store.append([group_of(stored, 10)], NOW)
    with store.writing() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    store._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    group = group_of(stored, 5_000)  # more than two pages
    with pytest.raises(StoreError, match="full"):
        store.append([group], NOW)
    kept = len(list(store.report_ids(stored.key)))
    assert kept == 10
    assert (store.find(SURVEY.task) or stored).reports == kept
    store._writer.execute("PRAGMA max_page_count = 1000000")
    assert store.append([group], NOW) == [5_000]
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB; only root may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if not mounted or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk: a full disk was NOT tested over HTTP")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_a_503_and_heals(small_disk: Path) -> None:
    with running(small_disk / "data") as collector, httpx.Client(base_url=collector.url) as client:
        path = collector.open_survey()
        taken: list[bytes] = []
        for _ in range(200):
            body = framed(SURVEY, [1] * 500)
            answer = client.post(f"{path}/reports", content=body, headers=FRAMED)
            if answer.status_code != 200:
                break
            taken.append(body)
        assert answer.status_code == 503, answer.text
        assert answer.json()["error"]["code"] == "unavailable"
        assert int(answer.headers["retry-after"]) > 0
        subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
        assert client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200
        each = report_size(SURVEY)
        ids = [one[i + 33 : i + 49] for one in [*taken, body] for i in range(0, len(one), each)]
        assert collector.stored_ids() == sorted(ids)


def test_a_database_that_is_down_is_a_503_and_heals(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database()
    with running(tmp_path / "data", VEIL_DATABASE_URL=url) as collector, httpx.Client(base_url=collector.url) as client:
        path = collector.open_survey()
        bodies = [framed(SURVEY, [1] * 5) for _ in range(3)]
        assert client.post(f"{path}/reports", content=bodies[0], headers=FRAMED).status_code == 200
        postgres.stop()
        try:
            for _ in range(3):
                answer = client.post(f"{path}/reports", content=bodies[1], headers=FRAMED)
                assert answer.status_code == 503, answer.text
                assert answer.json()["error"]["code"] == "unavailable"
            assert client.get("/readyz").status_code == 503
            assert client.get("/healthz").status_code == 200
        finally:
            postgres.start()
        for body in bodies[1:]:  # each idle connection is found broken once
            until(lambda body=body: client.post(f"{path}/reports", content=body, headers=FRAMED).status_code == 200)
        assert len(collector.stored_ids()) == 15


def test_one_call_finds_out_that_all_connections_are_gone(postgres: Server) -> None:
    """Each of them would fail once, and a collector whose database is back would not be ready for as many looks."""
    from veil.collector.store.postgres import PostgresStore

    store = PostgresStore(postgres.database())
    with contextlib.ExitStack() as at_once:
        for _ in range(3):
            at_once.enter_context(store.reading())
    postgres.stop()
    postgres.start()
    with pytest.raises(StoreError):
        store.surveys()
    assert store.surveys() == []
    postgres.stop()
    postgres.start()
    store.ping()
    store.close()


def test_kills_on_postgres(postgres: Server, tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.1", VEIL_DATABASE_URL=postgres.database()) as collector:
        assert kill_under_load(collector, kills=2)["retries"]


@pytest.mark.acceptance
def test_25_kills_on_postgres(postgres: Server, tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.1", VEIL_DATABASE_URL=postgres.database()) as collector:
        assert kill_under_load(collector, kills=25, seed=1)["retries"]


def test_purged_reports_are_overwritten_and_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.sqlite3")
    stored = survey_in(store)
    group = group_of(stored, 50)
    store.append([group], NOW)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    store.purge(stored.key)
    store.close()
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(group.ids[i : i + 16] in left for i in range(0, len(group.ids), 16))


def test_the_log_is_moved_only_after_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "_CHECKPOINT_SECONDS", 0.01)
    store = SqliteStore(tmp_path / "x.sqlite3")
    stored = survey_in(store)
    reading, looks, moves = store.reading, [], []

    class Counted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            looks.append(1)
            return super().wait(timeout)

    def counted() -> Any:
        if threading.current_thread().name == "veil-checkpoint":
            moves.append(1)
        return reading()

    def let_it_look(times: int) -> None:
        goal = len(looks) + times
        until(lambda: len(looks) >= goal)

    monkeypatch.setattr(store, "_closing", Counted())
    monkeypatch.setattr(store, "reading", counted)
    for i in range(2):
        before = len(moves)
        store.append([group_of(stored, 5, seed=i)], NOW)
        let_it_look(3)
        assert before < len(moves) <= before + 2  # the first look may come before the commit
        settled = len(moves)
        let_it_look(10)
        assert len(moves) == settled
    store.close()


def test_a_failed_commit_writes_one_line_for_all_its_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "x.sqlite3")
    stored = survey_in(store)
    proceed = threading.Event()

    def fail(groups: Any, now: int) -> Any:
        proceed.wait(LIMIT)
        raise StoreError("full")

    monkeypatch.setattr(store, "append", fail)

    async def send() -> list[Any]:
        queue = CommitQueue(store, Metrics(), most_reports=100, most_bytes=10**6, group_reports=100)
        tasks = [asyncio.create_task(queue.submit(stored, SURVEY, framed(SURVEY, [1]), 1)) for _ in range(20)]
        await asyncio.sleep(0)  # all of them are in the queue now: the first is being stored, the others wait
        proceed.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await queue.drain()
        return outcomes

    outcomes = asyncio.run(send())
    assert {(one.status, one.code) for one in outcomes if isinstance(one, ServiceError)} == {(503, "unavailable")}
    assert len(outcomes) == 20
    assert 1 <= len([record for record in caplog.records if record.getMessage() == "unavailable"]) <= 2
    store.close()


def test_a_database_that_is_away_for_long_writes_two_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "veil.collector")
    service = Service(CollectorSettings(folder=str(tmp_path), tally_seconds=1e-4))
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries in (10, 20):
            raise InputError("a study is refused, and goes on no more")
        if tries < 5 or 40 < tries < 50:
            raise StoreError("away")
        if tries == 60:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(service._now_and_then("tallies", work))
    said = [record for record in caplog.records if record.getMessage().startswith("tallies")]
    assert [(record.getMessage(), getattr(record, "facts", {}).get("problem")) for record in said] == [
        ("tallies-wait", "StoreError"),
        ("tallies-go-on", None),
        ("tallies-wait", "InputError"),
        ("tallies-wait", "InputError"),
        ("tallies-wait", "StoreError"),
        ("tallies-go-on", None),
    ]
    service.store.close()


def test_stopping_drains_whatever_became_of_the_tallies(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.sqlite3")
    stored = survey_in(store)

    async def live() -> None:
        service = Service(CollectorSettings(folder=str(tmp_path)), store)
        await service.start()
        assert service._tallier is not None
        service._tallier.cancel()
        service._tallier = asyncio.create_task(broken())
        await asyncio.sleep(0)
        sent = asyncio.create_task(service.queue.submit(stored, SURVEY, framed(SURVEY, [1, 2]), 2))
        await asyncio.sleep(0)
        await service.stop()
        await sent

    async def broken() -> None:
        raise RuntimeError

    asyncio.run(live())
    again = SqliteStore(tmp_path / "x.sqlite3")
    assert len(list(again.report_ids(stored.key))) == 2
    again.close()
