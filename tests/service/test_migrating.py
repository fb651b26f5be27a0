"""Databases that the version before wrote, opened by this one: nothing lost, nothing counted twice.

`tests/fixtures/v2` was written by the code of schema 2: a survey of 400 reports, some of which came again (so that
numbers have gaps), counted by a tally up to the 300th; a second survey; one that was purged; a token, an audit entry,
a study with a round, and what readings took. `tests/fixtures/v3` was written by the code of schema 3, with runs of 32
ids: two surveys of 300 reports, one amid a merge of its runs, the other with those that a merge replaced half erased.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.service.harness import SURVEY
from tests.support.commands import CliRunner

from veil import GRR, OLH, Survey
from veil.cli.main import app
from veil.collector import seen
from veil.collector.backup import back_up, restore
from veil.collector.blocks import BlockStore
from veil.collector.catalogue import Catalogue
from veil.collector.postgres_store import PostgresStore
from veil.collector.service import Service
from veil.collector.settings import Settings
from veil.collector.sqlite_store import SqliteStore
from veil.collector.store import Group
from veil.collector.tallying import catch_up, rebuild
from veil.errors import StoreError
from veil.wire.tallies import decode_tally

FIXTURES = Path(__file__).parents[1] / "fixtures"
OLD = FIXTURES / "v2"
PURGED = Survey(OLH(2.0, 5))

Make = Callable[[], BlockStore]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], Make]:
    """A new database from a folder's script; what it gives opens it."""

    def from_script(folder: Path) -> Make:
        if request.param == "sqlite":
            with closing(sqlite3.connect(tmp_path / "old.sqlite3")) as old:
                old.executescript((folder / "collector.sqlite.sql").read_text())
            return lambda: SqliteStore(tmp_path / "old.sqlite3")
        url = request.getfixturevalue("postgres").database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((folder / "collector.postgres.sql").read_bytes())
        return lambda: PostgresStore(url)

    return from_script


def test_only_a_collector_brings_a_database_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy can be made before, as it is; other commands say so."""
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path))
    with sqlite3.connect(tmp_path / "collector.sqlite3") as old:
        old.executescript((OLD / "collector.sqlite.sql").read_text())
    old.close()
    refused = CliRunner().invoke(app, ["audit"])
    assert refused.exit_code != 0
    assert "veil backup" in refused.stderr
    made = CliRunner().invoke(app, ["backup", str(tmp_path / "copy.sqlite3"), "--json"])
    assert json.loads(made.stdout)["reports"] == 400 + 50 + 90
    assert (tmp_path / "copy.sqlite3").stat().st_mode & 0o777 == 0o600
    for name in ("collector", "copy"):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite3")) as kept:
            assert kept.execute("PRAGMA user_version").fetchone() == (2,)
            assert kept.execute("SELECT count(*) FROM reports").fetchone() == (450,)
    Service(Settings(folder=str(tmp_path))).store.close()
    assert CliRunner().invoke(app, ["audit"]).exit_code == 0
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "again"))
    assert CliRunner().invoke(app, ["restore", str(tmp_path / "copy.sqlite3"), "--new"]).exit_code == 0


def ids(name: str, count: int) -> list[bytes]:
    return [hashlib.sha256(f"{name} {i}".encode()).digest()[:16] for i in range(count)]


@pytest.mark.parametrize("run", [seen.FOLDED, 64])
def test_everything_of_version_2_is_there(
    database: Callable[[Path], Make], run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "FOLDED", run)
    make = database(OLD)
    for _ in range(2):  # as it is brought up to date, and as it is then
        store = make()
        stored = store.find(SURVEY.task)
        assert stored is not None
        assert (stored.reports, stored.sequence, stored.state, stored.precision) == (400, 400, "open", 60)
        assert sorted(store.report_ids(stored.key)) == sorted(ids("a", 400))
        assert store.buckets(stored.key, 400) == [(999_960, 200), (1_000_020, 100), (1_000_200, 100)] or run == 64
        tally = store.tally(stored.key)
        assert tally is not None
        assert (tally.sequence, decode_tally(SURVEY, tally.encoded).people) == (300, 300)
        assert store.take(SURVEY.task, 300, 0, 0) == b"taken from 300 reports"
        purged = store.find(PURGED.task)
        assert purged is not None
        assert (purged.reports, purged.sequence, list(store.report_ids(purged.key))) == (90, 90, [])
        assert (store.tally(purged.key) or tally).sequence == 90
        assert store.take(PURGED.task, 90, 0, 0) == b"taken before the purge"
        assert [token.note for token in store.tokens()] == ["ann"]
        assert [entry.action for entry in store.audit(5)] == ["answer"]
        assert [study.people for study in store.studies()] == [100]
        assert [one.number for one in store.rounds("f" * 64)] == [0]
        assert store.take("f" * 64, 0, 0, 0) == b"of a study"
        store.close()
    store = make()
    right = rebuild(store, stored, SURVEY)
    assert right[1]
    assert right[0] is not None
    assert right[0].people == 400
    names = ids("a", 402)
    again = Group(stored.key, b"".join(names[:40] + names[398:]), bytes(SURVEY.layout.size * 44), 44)
    assert store.append([again], 2_000_000) == [2]  # what was sent to the version before is still known
    assert (catch_up(store, stored, SURVEY) or right[0]).people == 402
    other = Catalogue(store).look_up(Survey(GRR(1.0, 4)).task)
    assert sorted(store.report_ids(other.key)) == sorted(ids("b", 50))
    store.close()


@pytest.mark.parametrize("run", [seen.FOLDED, 64])
def test_every_id_of_version_3_is_known(
    database: Callable[[Path], Make], run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "FOLDED", run)
    make = database(FIXTURES / "v3")
    for _ in range(2):
        store = make()
        for name, survey in (("a", SURVEY), ("b", Survey(GRR(1.0, 4)))):
            stored = Catalogue(store).look_up(survey.task)
            assert stored.reports == 300
            assert sorted(store.report_ids(stored.key)) == sorted(ids(name, 300))
            with store.snapshot() as connection:
                table = store.table("runs", stored.key)
                heads = connection.execute(f"SELECT run FROM {table} WHERE page = 0").fetchall()  # noqa: S608
                every = connection.execute(f"SELECT DISTINCT run FROM {table}").fetchall()  # noqa: S608
            assert sorted(heads) == sorted(every)  # nothing is left of a merge
            assert len(heads) == (1 if run > 300 else 5)  # of 280 ids: the others are in blocks
            again = Group(stored.key, b"".join(ids(name, 300)), bytes(survey.layout.size * 300), 300)
            assert store.append([again], 2_000) == [0]
        store.close()


def test_a_collector_of_version_3_that_still_runs_takes_nothing_more(database: Callable[[Path], Make]) -> None:
    """It would not know the filters: what it reads with every commit has another name."""
    store = database(FIXTURES / "v3")()
    with store.snapshot() as connection:
        columns = store.columns(connection, "counters")
    assert sorted(columns) == ["edition", "indexed", "sequence", "survey"]  # it was folds
    store.close()


def test_a_database_that_lacks_ids_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(path)) as old:
        old.executescript((FIXTURES / "v3" / "collector.sqlite.sql").read_text())
        old.execute("DELETE FROM runs_1 WHERE run = 2 AND page = 1")
        old.commit()
        before = list(old.iterdump())
    with pytest.raises(StoreError, match="lacks"):
        SqliteStore(path)
    with closing(sqlite3.connect(path)) as old:
        assert list(old.iterdump()) == before


def test_a_copy_of_version_3_is_restored(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.sqlite3")) as old:
        old.executescript((FIXTURES / "v3" / "collector.sqlite.sql").read_text())
    store = SqliteStore(tmp_path / "old.sqlite3", old="keep")
    assert back_up(store, tmp_path / "copy.sqlite3") == 600
    store.close()
    restored = SqliteStore(tmp_path / "new.sqlite3")
    assert restore(tmp_path / "copy.sqlite3", restored) == 600
    stored = Catalogue(restored).look_up(SURVEY.task)
    assert sorted(restored.report_ids(stored.key)) == sorted(ids("a", 300))
    restored.close()
