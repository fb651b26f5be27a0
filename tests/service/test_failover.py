"""A PostgreSQL server fails over to its standby: nothing is lost or doubled, and nothing remembered is ahead of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import FRAMED, SURVEY, Collector, framed
from tests.service.kills import Devices, check_nothing_lost, ids_of
from tests.service.postgres import Server, binaries, server, server_pair, url_of_both
from tests.service.reports import group, opened

from veil import GRR, Survey
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store.base import Group, StoredSurvey
from veil.collector.store.postgres import PostgresStore
from veil.collector.surveys import collection
from veil.collector.surveys.answers import AnswerRequest, prepare
from veil.collector.surveys.catalogue import Catalogue
from veil.collector.surveys.collection import catch_up, rebuild
from veil.collector.surveys.rounds import RunningStudies
from veil.errors import StoreError, StoreReadOnlyError, StoreUnreachableError

pytestmark = pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed: failover was NOT tested")
OTHER = Survey(GRR(1.0, 3))


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every store in the end."""
    made: list[PostgresStore] = []
    make = PostgresStore.__init__

    def noted(self: PostgresStore, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(PostgresStore, "__init__", noted)
    yield
    for store in made:
        store.close()


@pytest.fixture
def lagging() -> Iterator[tuple[Server, Server]]:
    with server_pair(synchronous=False) as pair:
        yield pair


def take_over(primary: Server, standby: Server) -> None:
    primary.stop()
    standby.promote()


def follow(primary: Server, standby: Server) -> None:
    """Wait until the standby has everything."""
    with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
        caught_up = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication"
        until(lambda: connection.execute(caught_up).fetchone() == (True,))


def find_new_server(store: PostgresStore) -> None:
    """The first call finds that its connection is broken, and the next one makes another."""
    with suppress(StoreError):
        store.probe()
    store.probe()


def cut_off(standby: Server) -> None:
    """From now on the standby receives nothing."""
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    with psycopg.connect(standby.url("postgres"), autocommit=True) as connection:
        until(lambda: connection.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,))


def fail_over_under_load(folder: Path) -> int:
    """Kill the server under two collectors with senders at both. Return how many reports were stored."""
    with server_pair(synchronous=True) as (primary, standby):
        environment = {
            "VEIL_DATABASE_URL": url_of_both(primary, standby),
            "VEIL_KEY_FILE": str(folder / "key"),
            "VEIL_TALLY_SECONDS": "0.1",
            "VEIL_DATABASE_SECONDS": "2",
        }
        collectors = [Collector(folder / name, environment) for name in ("one", "two")]
        acknowledged: list[bytes] = []
        try:
            for collector in collectors:
                collector.start()
            path = collectors[0].open_survey()
            senders = [Devices(collector, path, acknowledged) for collector in collectors]
            threads = [
                threading.Thread(target=devices.send, args=(10 * place + i,), daemon=True)
                for place, devices in enumerate(senders)
                for i in range(3)
            ]
            for thread in threads:
                thread.start()
            senders[0].wait_for_acknowledgements(20)
            take_over(primary, standby)
            for devices in senders:  # each of them gets through again
                done = devices.retries
                devices.wait_for_acknowledgements(20)
                assert devices.retries >= done
            for devices in senders:
                devices.stopping.set()
            for thread in threads:
                thread.join(LIMIT)
                assert not thread.is_alive()
            stored = check_nothing_lost(collectors[0], acknowledged)
            assert sorted(ids_of(acknowledged)) == stored
            for collector in collectors:
                until(lambda at=collector.url: httpx.get(f"{at}/readyz").status_code == 200)
            assert any('"database-server-changed"' in collector.log for collector in collectors)
            return len(stored)
        finally:
            for collector in collectors:
                if collector.process is not None and collector.process.poll() is None:
                    collector.kill()


def test_no_acknowledged_report_is_lost_when_the_server_fails_over(tmp_path: Path) -> None:
    assert fail_over_under_load(tmp_path) > 40


@pytest.mark.acceptance
def test_ten_failovers_lose_and_double_nothing(tmp_path: Path) -> None:
    for i in range(10):
        (tmp_path / str(i)).mkdir()
        fail_over_under_load(tmp_path / str(i))


def outcomes_after_a_lossy_failover(
    primary: Server, standby: Server
) -> tuple[PostgresStore, StoredSurvey, list[object]]:
    """What a collector says to reports that it stored before, and that the new server lacks.

    It met the failover with another survey, so that nothing told it that this one had failed.
    """
    url = url_of_both(primary, standby)
    one, two = PostgresStore(url), PostgresStore(url)
    mine, other = opened(one), opened(one, OTHER)
    kept, lost, new = os.urandom(16 * 30), os.urandom(16 * 70), os.urandom(16 * 100)

    def theirs() -> Group:
        return Group(other.key, os.urandom(16), bytes(OTHER.layout.size), 1)

    assert one.append([group(mine, kept, 1)], 1_000) == [30]
    follow(primary, standby)
    cut_off(standby)
    assert one.append([group(mine, lost, 2)], 1_000) == [70]  # with a run: one is 64 ids
    assert one.append([theirs()], 1_000) == [1]
    take_over(primary, standby)
    with pytest.raises(StoreError):
        one.append([theirs()], 1_000)  # finds out
    find_new_server(two)
    assert two.append([group(mine, new, 3)], 1_000) == [100]  # as many, and a run
    assert two.survey(mine.key).reports == 130
    outcomes = [one.append([group(mine, ids, 4)], 1_000)[0] for ids in (kept, new, lost, lost)]
    return one, mine, outcomes


def test_what_is_remembered_of_ids_is_not_ahead_of_the_new_server(
    lagging: tuple[Server, Server], small_runs: None
) -> None:
    """Reports that are lost are taken again, and those that another collector stored meanwhile are known."""
    store, stored, outcomes = outcomes_after_a_lossy_failover(*lagging)
    assert outcomes == [0, 0, 70, 0]
    ids = list(store.report_ids(stored.key))
    assert len(ids) == len(set(ids)) == store.survey(stored.key).reports == 200


@pytest.mark.acceptance
def test_a_memory_that_outlives_a_failover_would_lose_or_double_reports(
    lagging: tuple[Server, Server], small_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rival: what a collector did before it looked which server it talks to."""
    monkeypatch.setattr(PostgresStore, "_admit", lambda self, connection: self._epochs.update({connection: 0}))
    _, _, outcomes = outcomes_after_a_lossy_failover(*lagging)
    assert outcomes != [0, 0, 70, 0]


def test_tallies_and_answers_of_the_server_before_do_not_reach_the_new_one(
    lagging: tuple[Server, Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, standby = lagging
    url = url_of_both(primary, standby)
    service = Service(CollectorSettings(folder=str(tmp_path), database_url=url))
    store = service.store
    assert isinstance(store, PostgresStore)
    stored = opened(store)
    store.append([group(stored, os.urandom(16 * 10), 1)], 1_000)
    catch_up(store, stored, SURVEY)
    follow(primary, standby)
    cut_off(standby)
    store.append([group(stored, os.urandom(16 * 40), 2)], 1_000)
    studies = RunningStudies(store, Catalogue(store))
    before = prepare(store, studies, store.survey(stored.key), AnswerRequest())
    assert before.mark == 50
    chunks = collection._chunks

    def replaced(*given: object) -> object:
        yield from chunks(*given)  # type: ignore[arg-type]
        monkeypatch.undo()
        take_over(primary, standby)
        find_new_server(store)

    with store.writing() as connection:  # as if these had not been counted yet
        connection.execute("UPDATE tallies SET sequence = 10 WHERE survey = ?", (stored.key,))
    monkeypatch.setattr(collection, "_chunks", replaced)
    with pytest.raises(StoreError):
        catch_up(store, stored, SURVEY)
    assert store.epoch == 1
    store.append([group(stored, os.urandom(16 * 40), 3)], 1_000)
    tally = catch_up(store, stored, SURVEY)
    assert tally is not None
    assert tally.people == 50
    assert rebuild(store, stored, SURVEY)[1]
    after = prepare(store, studies, store.survey(stored.key), AnswerRequest())
    assert after.mark == before.mark  # as many reports, but others
    assert after.study != before.study
    with store.steady(0), pytest.raises(StoreError, match="took over"):
        store.ping()
    store.close()
    service.health.stop()


def test_a_commit_that_did_not_wait_for_the_standby_is_not_acknowledged() -> None:
    """PostgreSQL says that it succeeded, with a warning."""
    with server_pair(synchronous=True) as (primary, standby):
        store = PostgresStore(url_of_both(primary, standby))
        stored = opened(store)
        standby.stop()
        outcome: list[object] = []

        def append() -> None:
            try:
                outcome.append(store.append([group(stored, os.urandom(16 * 3))], 1_000))
            except StoreError as problem:
                outcome.append(problem)

        thread = threading.Thread(target=append)
        thread.start()
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
            until(lambda: connection.execute(cancel).fetchone())
        thread.join(LIMIT)
        assert isinstance(outcome[0], StoreError)
        assert "standby" in str(outcome[0])
        primary.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        store.close()


def test_readiness_says_that_the_server_was_demoted(lagging: tuple[Server, Server], tmp_path: Path) -> None:
    primary, standby = lagging
    url = primary.database()  # this server alone: nobody told the collector of the other one
    collector = Collector(tmp_path / "data", {"VEIL_DATABASE_URL": url})
    collector.start()
    try:
        path = collector.open_survey()
        take_over(primary, standby)
        primary.demote()
        ready = httpx.get(f"{collector.url}/readyz")
        assert ready.status_code == 503
        assert "takes no writes" in ready.json()["error"]["message"]
        sent = httpx.post(f"{collector.url}{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED)
        assert sent.status_code == 503
        with pytest.raises(StoreReadOnlyError):
            PostgresStore(url)
    finally:
        collector.kill()


@pytest.mark.acceptance
def test_a_server_that_was_replaced_and_still_runs_is_refused(lagging: tuple[Server, Server]) -> None:
    primary, standby = lagging
    url = url_of_both(primary, standby)
    store = PostgresStore(url)
    stored = opened(store)
    follow(primary, standby)
    take_over(primary, standby)
    with pytest.raises(StoreError):
        store.probe()
    store.probe()
    standby.stop()
    primary.start()  # somebody did not know
    with pytest.raises(StoreError):
        store.append([group(stored, os.urandom(16))], 1_000)
    with pytest.raises(StoreUnreachableError, match="history is older"):
        store.append([group(stored, os.urandom(16))], 1_000)
    store.close()


def test_a_server_that_turns_read_only_under_open_connections_says_so() -> None:
    with server() as primary:
        check_read_only(primary)


def check_read_only(primary: Server) -> None:
    store = PostgresStore(primary.database())
    stored = opened(store)
    store.ping()
    primary.execute("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")

    def says_so() -> bool:
        try:
            store.ping()
        except StoreReadOnlyError:
            return True
        return False

    until(says_so)
    with pytest.raises(StoreReadOnlyError):
        store.append([group(stored, os.urandom(16))], 1_000)
    writable = "SET default_transaction_read_only = off"
    primary.execute(writable, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
    until(lambda: not says_so())
    assert store.append([group(stored, os.urandom(16))], 1_000) == [1]
    store.close()
