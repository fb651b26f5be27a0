"""From today's schema to an invented next one: entirely or not at all, and no report is lost or counted twice."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.patience import LIMIT
from tests.service.harness import SURVEY
from tests.service.postgres import Server
from tests.service.reports import group, opened
from tests.service.test_kill_points import KILLED, copied, store_at  # noqa: F401
from tests.support.commands import CliRunner
from tests.support.next_schema import migrate, register
from tests.support.warm_start import start

from veil import GRR, Survey
from veil.cli.main import app
from veil.collector.service import Service
from veil.collector.settings import CollectorSettings
from veil.collector.store import backup, seen
from veil.collector.store import schema as migrating
from veil.collector.store.base import Group
from veil.collector.store.blocks import BlockStore
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.schema import FIRST, latest
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.catalogue import Catalogue
from veil.collector.surveys.collection import catch_up, rebuild
from veil.errors import InputError, StoreError

OTHER = Survey(GRR(1.0, 4))
IDS = [bytes([0, i]) + bytes(14) for i in range(150)]
OTHER_IDS = [bytes([1, i]) + bytes(14) for i in range(20)]
TIMES = (1_000, 1_000, 5_000)
MIGRATE = """
from tests.support.next_schema import register
register()
begun.append(True)
store_at(place).close()
"""

Copied = tuple[str, Callable[[int], str]]


@pytest.fixture
def filled(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> Copied:  # noqa: F811
    """A database of today's schema with two surveys, one with a run of ids, latest ids and a tally, and its copies."""
    monkeypatch.setattr(seen, "FOLDED", 64)
    fill(store_at(copied[0]))
    return copied


def fill(store: BlockStore) -> None:
    stored = opened(store)
    for i, now in enumerate(TIMES):
        store.append([group(stored, b"".join(IDS[50 * i : 50 * (i + 1)]))], now)
    catch_up(store, store.survey(stored.key), SURVEY)
    other = opened(store, OTHER)
    store.append([Group(other.key, b"".join(OTHER_IDS), bytes(OTHER.layout.size * 20), 20)], 2_000)
    store.close()


def check(store: BlockStore) -> None:
    """Every report is there once, is counted once, and is known when it comes again."""
    for survey, ids in ((SURVEY, IDS), (OTHER, OTHER_IDS)):
        stored = Catalogue(store).look_up(survey.task)
        assert stored.reports == len(ids)
        assert sorted(store.report_ids(stored.key)) == ids
        again = Group(stored.key, b"".join(ids), bytes(survey.layout.size * len(ids)), len(ids))
        assert store.append([again], 6_000) == [0]
        tally, right = rebuild(store, stored, survey)
        assert right
        assert tally is not None
        assert tally.people == len(ids)


def columns(store: BlockStore, table: str) -> set[str]:
    with store.reading() as connection:
        return set(store.columns(connection, table))


def is_migrated(place: str) -> bool:
    """Look at a database with today's code, which must find it entirely as it was or refuse it."""
    try:
        store = store_at(place)
    except StoreError:
        with pytest.raises(StoreError, match=f"expected schema {FIRST}, got {FIRST + 1}: another version"):
            store_at(place)
        return True
    assert "edition" in columns(store, "counters")
    assert columns(store, "days") == set()
    check(store)
    store.close()
    return False


def check_migrated(place: str) -> None:
    """Open a database with the code of the next schema; it must be entirely of that schema then."""
    store = store_at(place)
    assert store.version == latest() == FIRST + 1
    assert columns(store, "counters") == {"survey", "sequence", "indexed", "changes"}
    for stored in store.surveys():
        counts: Counter[int] = Counter()
        for bucket, count in store.buckets(stored.key, stored.reports):
            counts[bucket] += count
        with store.reading() as connection:
            days = connection.execute("SELECT bucket, reports FROM days WHERE survey = ?", (stored.key,)).fetchall()
        assert dict(days) == counts
    check(store)
    stored = Catalogue(store).look_up(SURVEY.task)
    more = IDS[-3:] + [bytes([2, i]) + bytes(14) for i in range(70)]  # as many as make another run
    assert store.append([group(stored, b"".join(more))], 7_000) == [70]
    assert store.survey(stored.key).reports == len(IDS) + 70
    assert len(list(store.report_ids(stored.key))) == len(IDS) + 70
    store.close()


def test_a_killed_migration_leaves_the_schema_before_or_the_next_one(filled: Copied) -> None:
    _, copy = filled
    outcomes: list[bool] = []
    number, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:  # before each statement in turn, until there are no more
        number += 1
        place = copy(number)
        run = start(KILLED + MIGRATE, "migrate", place, "migrate", str(number), stdout=subprocess.DEVNULL)
        code = run.wait(LIMIT)
        outcomes.append(is_migrated(place))
        with pytest.MonkeyPatch.context() as patch:
            register(patch.setattr)
            check_migrated(place)
    assert code == 0
    assert outcomes[-1]
    assert not outcomes[0]
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 10


def test_a_failed_migration_changes_nothing(filled: Copied) -> None:
    place, _ = filled

    def fail(*given: object) -> None:
        raise StoreError("no")

    with pytest.MonkeyPatch.context() as patch:
        register(patch.setattr)
        patch.setattr(migrating, "MIGRATIONS", [migrate, fail])
        with pytest.raises(StoreError, match="no"):
            store_at(place)
    assert not is_migrated(place)


def test_a_new_database_has_the_tables_of_a_migrated_one(
    filled: Copied, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch.setattr)
    is_file = not filled[0].startswith("postgresql")
    new = str(tmp_path / "new.sqlite3") if is_file else request.getfixturevalue("postgres").database()
    tables: list[dict[str, set[str]]] = []
    for place in (filled[0], new):
        store = store_at(place)
        tables.append({table: columns(store, table) for table in backup.SHARED})
        store.close()
    assert tables[0] == tables[1]
    assert tables[0]["days"] == {"survey", "bucket", "reports"}


def test_a_running_collector_of_the_schema_before_stores_nothing_more(
    filled: Copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = filled
    running = store_at(place)
    stored = Catalogue(running).look_up(SURVEY.task)
    assert running.append([group(stored, IDS[0])], 6_000) == [0]
    run = start(KILLED + MIGRATE, "migrate", place, "migrate", "0", stdout=subprocess.DEVNULL)
    assert run.wait(LIMIT) == 0
    for ids in (IDS[0], b"new" + bytes(13)):
        with pytest.raises(StoreError):
            running.append([group(stored, ids)], 6_000)
    running.close()
    register(monkeypatch.setattr)
    check_migrated(place)


@pytest.mark.parametrize("schema", [1, FIRST - 1, FIRST + 1, 1_000])
def test_another_schema_is_refused(copied: Copied, schema: int) -> None:  # noqa: F811
    place, _ = copied
    store_at(place).close()
    if place.startswith("postgresql"):
        with psycopg.connect(place, autocommit=True) as server:
            server.execute("UPDATE veil_version SET version = %s", (schema,))
    else:
        with closing(sqlite3.connect(place)) as file:
            file.execute(f"PRAGMA user_version = {schema}")
    for old in ("update", "refuse", "keep"):
        with pytest.raises(StoreError, match=f"^database: expected schema {FIRST}, got {schema}: another version"):
            PostgresStore(place, old=old) if place.startswith("postgresql") else SqliteStore(place, old=old)


def test_only_a_collector_brings_a_database_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy can be made before, as it is; other commands say so."""
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path))
    fill(SqliteStore(tmp_path / "collector.sqlite3"))
    register(monkeypatch.setattr)
    refused = CliRunner().invoke(app, ["audit"])
    assert refused.exit_code == 7
    assert f"expected schema {FIRST + 1}, got {FIRST}" in refused.stderr
    assert "veil backup" in refused.stderr
    made = CliRunner().invoke(app, ["backup", str(tmp_path / "copy.sqlite3"), "--json"])
    assert json.loads(made.stdout)["reports"] == len(IDS) + len(OTHER_IDS)
    assert (tmp_path / "copy.sqlite3").stat().st_mode & 0o777 == 0o600
    for name in ("collector", "copy"):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite3")) as kept:
            assert kept.execute("PRAGMA user_version").fetchone() == (FIRST,)
    Service(CollectorSettings(folder=str(tmp_path))).store.close()
    assert CliRunner().invoke(app, ["audit"]).exit_code == 0
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "again"))
    restored = CliRunner().invoke(app, ["restore", str(tmp_path / "copy.sqlite3"), "--new"])
    assert restored.exit_code == 0, restored.stderr
    for folder in (tmp_path, tmp_path / "again"):
        check_migrated(str(folder / "collector.sqlite3"))


def test_a_postgres_database_of_an_earlier_schema_is_copied_by_its_own_tools(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.database()
    fill(PostgresStore(url))
    register(monkeypatch.setattr)
    store = PostgresStore(url, old="keep")
    with pytest.raises(InputError, match="pg_dump"):
        backup.back_up(store, tmp_path / "copy.sqlite3")
    store.close()
    assert list(tmp_path.iterdir()) == []
