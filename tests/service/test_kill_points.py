"""Collectors killed at one statement after another: while they purge a survey, and while they close a round."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.patience import LIMIT, until
from tests.service.harness import SURVEY
from tests.service.people import STUDIES, held, reports
from tests.service.postgres import Server
from tests.service.reports import SIZE, group, opened
from tests.service.test_purge import left
from tests.support.warm_start import start

from veil.collector.edge.decoding import decode_requests
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store import seen
from veil.collector.store import sqlite as sqlite_store
from veil.collector.store.base import Group
from veil.collector.store.blocks import BlockStore
from veil.collector.store.seen import names_of
from veil.collector.surveys.catalogue import Catalogue
from veil.collector.surveys.collection import catch_up, rebuild
from veil.collector.surveys.rounds import RunningStudies
from veil.tools.json_documents import digest

# Kills itself before the statement of the given number, counted from when `begin` is called; 0 is never.
KILLED = """
import itertools, os, signal, sys
import psycopg
from tests.service.test_kill_points import store_at
from veil.collector.store import sqlite as sqlite_store
from veil.collector.surveys.catalogue import Catalogue
from veil.collector.surveys.rounds import RunningStudies

place, what, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
counted, begun = itertools.count(1), []

def count(*given):
    if begun and next(counted) == number:
        os.kill(os.getpid(), signal.SIGKILL)

def counting(method):
    def call(self, *given, **named):
        count()
        return method(self, *given, **named)
    return call

for name in ("execute", "executemany"):
    setattr(psycopg.Cursor, name, counting(getattr(psycopg.Cursor, name)))
connect = sqlite_store.SqliteStore._connect
def watched(self, *given):
    connection = connect(self, *given)
    connection.set_trace_callback(count)
    return connection
sqlite_store.SqliteStore._connect = watched
"""
OPENED = """
store = store_at(place)
catalogue = Catalogue(store)
studies = RunningStudies(store, catalogue)
"""
PURGE = """
sqlite_store._ERASED_BYTES = 20_000
stored = catalogue.look_up(sys.argv[4])
begun.append(True)
os.write(1, b"x")
studies.purge(stored)
"""
ROUND = """
import threading
from tests.service.reports import SIZE
from veil.collector.store.base import Group

stored, said = catalogue.look_up(sys.argv[4]), os.open(sys.argv[6], os.O_WRONLY | os.O_APPEND)
size = int(sys.argv[7])

def send():
    while True:
        ids = os.urandom(16 * 20)
        (outcome,) = store.append([Group(stored.key, ids, bytes(size * 20), 20)], 1_000)
        if not isinstance(outcome, int):
            return
        os.write(said, ids)

thread = threading.Thread(target=send)
thread.start()
begun.append(True)
studies.request_next(sys.argv[5])
studies.advance(sys.argv[5])
thread.join()
"""


def store_at(place: str) -> BlockStore:
    from veil.collector.store.postgres import PostgresStore

    return PostgresStore(place) if place.startswith("postgresql") else sqlite_store.SqliteStore(place)


@pytest.fixture(params=["sqlite", "postgres"])
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Callable[[int], str]]:
    """The place of a database, and what makes copies of it; nobody may have it open then."""
    if request.param == "sqlite":
        folder = tmp_path / "first"
        folder.mkdir()

        def copy(number: int) -> str:
            shutil.copytree(folder, tmp_path / str(number))
            return str(tmp_path / str(number) / "collector.sqlite3")

        return str(folder / "collector.sqlite3"), copy
    server: Server = request.getfixturevalue("postgres")
    first = server.database()

    def template(number: int) -> str:
        source = first.rpartition("/")[2]
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {source}_{number} TEMPLATE {source}".encode())
        return f"{first}_{number}"

    return first, template


def purged_or_whole(place: str, folder: Path, ids: bytes, people: int) -> bool:
    """Look at a database after a kill, and let a collector start on it. Whether the survey is purged."""
    store = store_at(place)
    stored = store.find(SURVEY.task)
    assert stored is not None
    chunk = store.chunk(stored.key, 0, 10 * people)  # also before anybody goes on with the purge
    assert chunk is None or len(chunk.payloads) == people * SIZE
    assert (chunk is None) == stored.is_purged
    store.close()
    url = place if place.startswith("postgresql") else ""
    service = Service(CollectorSettings(folder=str(folder), database_url=url))
    service._caught_up()
    found = service.store.find(SURVEY.task)
    assert found is not None
    assert (found.purged is not None) == found.is_purged == stored.is_purged
    assert found.state == "closed"
    tally = service.store.tally(found.key)
    assert isinstance(service.store, BlockStore)
    if found.is_purged:
        assert tally is not None
        assert tally.sequence == people
        assert list(service.store.report_ids(found.key)) == []
        assert service.store.damage.reports() == 0
        if not url:
            assert left(folder.iterdir(), ids[: 16 * 5_000]) == 0
    elif people < 100_000:
        assert len(set(service.store.report_ids(found.key))) == people
    service.store.close()
    return found.is_purged


def filled(place: str, people: int, *, fold: bool = True) -> bytes:
    store = store_at(place)
    stored, each, sent = opened(store), min(people // 8, 20_000), b""
    for _ in range(people // each):
        ids = os.urandom(16 * each)
        store.append([group(stored, ids)], 1_000)
        sent += ids
    catch_up(store, store.survey(stored.key), SURVEY)
    if fold:
        Catalogue(store).close(SURVEY.task)
    else:  # past the catalogue, which folds what it closes
        store.move(stored.key, "open", "closed", 1_000)
    store.close()
    return sent


def test_a_purge_that_is_killed_is_finished_or_was_not_begun(
    copied: tuple[str, Callable[[int], str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "FOLDED", 1_000)
    first, copy = copied
    people = 4_000
    ids = filled(first, people)
    outcomes: list[bool] = []
    number, code = 1, -signal.SIGKILL
    while code == -signal.SIGKILL:  # until it was not killed any more
        place = copy(number)
        folder = Path(place).parent if not place.startswith("postgresql") else tmp_path / str(number)
        code = start(
            KILLED + OPENED + PURGE, "purge", place, "purge", str(number), SURVEY.task, stdout=subprocess.DEVNULL
        ).wait(LIMIT)
        outcomes.append(purged_or_whole(place, folder, ids, people))
        number += 1 if number < 6 else 1 + number // 2
    assert code == 0
    assert outcomes == sorted(outcomes)  # not begun, and from some statement on finished
    assert outcomes[-1]
    assert not outcomes[0]


@pytest.mark.acceptance
def test_kills_during_the_purge_of_5_000_000_reports(copied: tuple[str, Callable[[int], str]], tmp_path: Path) -> None:
    first, copy = copied
    people, chance = 5_000_000, random.Random(0)
    ids = filled(first, people)
    took, outcomes = 0.0, []
    for number in range(11):  # the first one tells how long it takes
        place = copy(number)
        folder = Path(place).parent if not place.startswith("postgresql") else tmp_path / str(number)
        with (tmp_path / "said").open("wb") as said:
            process = start(KILLED + OPENED + PURGE, "purge", place, "purge", "0", SURVEY.task, stdout=said)
            until(lambda: (tmp_path / "said").stat().st_size)
            begun = time.monotonic()
            if number:
                time.sleep(chance.uniform(0.0, took))
                process.kill()
            process.wait(LIMIT)
            took = took or time.monotonic() - begun
        outcomes.append(purged_or_whole(place, folder, ids, people))
        if not place.startswith("postgresql"):
            shutil.rmtree(folder)
    assert outcomes[0]


def test_rows_deleted_without_a_recorded_purge_count_as_damage(tmp_path: Path) -> None:
    """A killed purge that had not recorded its beginning would look like this."""
    place = str(tmp_path / "collector.sqlite3")
    filled(place, 4_000, fold=False)
    with closing(sqlite3.connect(place)) as direct:
        direct.execute("DELETE FROM blocks_1 WHERE last <= 2000")
        direct.commit()
    store = store_at(place)
    chunk = store.chunk(1, 0, 10_000)
    assert chunk is not None
    assert chunk.missing == 2_000  # taken for damage
    store.close()


@pytest.fixture
def round_begun(copied: tuple[str, Callable[[int], str]]) -> tuple[Callable[[int], str], str, str]:
    """Copies of a database whose study is in its first round; the study, and the round's task."""
    first, copy = copied
    study, people = STUDIES["svim"], held(STUDIES["svim"], 600)
    store = store_at(first)
    studies = RunningStudies(store, Catalogue(store))
    stored, _ = studies.publish(study, {}, precision=3_600, minimum=10)
    Catalogue(store).open(stored.task)
    survey = study.survey
    decoded = decode_requests(survey, [reports(survey, people)])
    store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 1_000)
    store.close()
    return copy, digest(study.to_json()), stored.task


def test_a_round_whose_close_is_killed_stays_closed_with_its_counts(
    round_begun: tuple[Callable[[int], str], str, str], tmp_path: Path
) -> None:
    copy, study, task = round_begun
    survey = STUDIES["svim"].survey

    def attempt(number: int) -> tuple[bool, bool]:
        """Kill the program before this statement; return whether it was killed, and whether the round was closed."""
        place, log = copy(number), tmp_path / f"log-{number}"
        log.touch()
        asked = ("round", place, "round", str(number), task, study, str(log), str(survey.layout.size))
        code = start(KILLED + OPENED + ROUND, *asked, stdout=subprocess.DEVNULL).wait(LIMIT)
        assert code in (0, -signal.SIGKILL)
        store = store_at(place)
        studies = RunningStudies(store, Catalogue(store))
        stored = store.find(task)
        assert stored is not None
        acknowledged = names_of(log.read_bytes())
        before = sorted(store.report_ids(stored.key))
        assert len(before) == len(set(before)) == stored.reports
        assert set(acknowledged) <= set(before)
        studies.request_next(study, 0)
        studies.advance(study)
        after = store.find(task)
        assert after is not None
        assert (after.state, after.reports) == ("closed", stored.reports)
        assert sorted(store.report_ids(stored.key)) == before
        assert store.append([Group(stored.key, os.urandom(16), bytes(survey.layout.size), 1)], 1_000) == ["closed"]
        tally, right = rebuild(store, after, survey)
        assert right
        assert tally is not None
        assert tally.people == stored.reports
        assert [one.number for one in store.rounds(study)] == [0, 1]
        assert studies.advance(study) == 0  # all is done, and once
        store.close()
        return code != 0, stored.state == "closed"

    number, last, closed = 1, 0, False
    while (outcome := attempt(number))[0]:
        closed |= outcome[1]
        last, number = number, number + (1 if number < 3 else 1 + number // 2)
    # some kills come after the round was closed, and before it was read; posts of another thread shift the statements
    for earlier in range(number - 1, last, -1):
        if closed:
            break
        closed = attempt(earlier) == (True, True)
    assert closed
