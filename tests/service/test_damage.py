"""Damaged blocks and pages of ids: they are named, only they are lost, and nothing that lacks them is silent."""
# ruff: noqa: S608

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from tests.service.harness import FRAMED, SURVEY, framed, running
from tests.service.reports import SIZE, group, opened
from tests.support.commands import CliRunner

from veil import GRR, Survey
from veil.cli.main import app
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store.backup import back_up, restore
from veil.collector.store.base import AuditEntry, Chunk, Group, StoredStudy, StoredSurvey, TokenRecord
from veil.collector.store.blocks import BlockStore
from veil.collector.store.checking import DamagedPart, find_damage
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.answers import AnswerRequest, prepare, written
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.collector.surveys.collection import catch_up, rebuild
from veil.collector.surveys.exporting import export_parquet
from veil.collector.surveys.rounds import RunningStudies
from veil.errors import StoreDamagedError

Make = Callable[[], BlockStore]
OTHER = Survey(GRR(1.0, 3))
EACH = 10


def filled(store: BlockStore, commits: int) -> tuple[StoredSurvey, list[bytes]]:
    stored = opened(store)
    sent = [os.urandom(16 * EACH) for _ in range(commits)]
    for mark, ids in enumerate(sent):
        assert store.append([group(stored, ids, mark)], 1_000 + 60 * mark) == [EACH]
    return stored, sent


def damage(store: BlockStore, stored: StoredSurvey, name: str, column: str, where: str) -> None:
    """Change the first byte of a value, as a disk might."""
    table = store.table(name, stored.key)
    with store.writing() as connection:
        keys = "last, last" if name == "blocks" else "run, page"
        rows = connection.execute(f"SELECT {keys}, {column} FROM {table} WHERE {where}").fetchall()
        assert rows
        for *place, value in rows:
            data = bytes(value)
            given = "last = ? AND last = ?" if name == "blocks" else "run = ? AND page = ?"
            statement = f"UPDATE {table} SET {column} = ? WHERE {given}"
            connection.execute(statement, (bytes([data[0] ^ 1]) + data[1:], *place))


def problems(store: BlockStore) -> list[DamagedPart]:
    return list(find_damage(store, lambda _: None))


def whole(store: BlockStore, stored: StoredSurvey) -> Chunk:
    chunk = store.chunk(stored.key, 0, 100_000)
    assert chunk is not None
    return chunk


def test_a_later_wave_is_intact(make: Make) -> None:
    store = make()
    catalogue = Catalogue(store)
    for wave in (1, 2):
        survey = Survey(SURVEY.ask, SURVEY.public, wave)
        catalogue.create(draft_of(survey, {"name": "drinks"}, precision=60, minimum=1))
    stored = catalogue.open(survey.task)
    assert store.append([group(stored, os.urandom(16 * EACH))], 1_000) == [EACH]
    assert problems(store) == []


@pytest.mark.parametrize("column", ["payloads", "buckets", "checks"])
def test_only_the_damaged_block_is_lost(make: Make, column: str) -> None:
    store = make()
    stored, _ = filled(store, 6)
    assert problems(store) == []
    damage(store, stored, "blocks", column, "last = 30")
    chunk = whole(store, stored)
    assert (chunk.last, chunk.missing) == (60, EACH)
    assert [chunk.payloads[i] for i in range(0, len(chunk.payloads), SIZE * EACH)] == [0, 1, 3, 4, 5]
    assert sum(count for _, count in chunk.buckets) == 50
    for after, rows, missing in ((0, 25, 5), (25, 10, 5), (19, 2, 1), (20, 10, 10), (30, 30, 0), (0, 20, 0)):
        part = store.chunk(stored.key, after, rows)
        assert part is not None
        assert (part.last, part.missing, len(part.payloads) // SIZE) == (after + rows, missing, rows - missing)
    (found, *_) = [one for one in problems(store) if one.part == "reports"]
    assert (found.task, found.place, found.reports) == (SURVEY.task, "reports 21 to 30", EACH)
    assert store.missing(stored.key) == store.missing() == EACH
    store.close()


def test_a_block_that_is_gone_leaves_a_gap(make: Make) -> None:
    store = make()
    stored, _ = filled(store, 6)
    with store.writing() as connection:
        connection.execute(f"DELETE FROM {store.table('blocks', stored.key)} WHERE last IN (10, 40, 60)")
    assert whole(store, stored).missing == 30
    assert [one.place for one in problems(store)] == ["reports 1 to 10", "reports 31 to 40", "reports 51 to 60"]


def test_answers_exports_tallies_and_backups_go_on_and_say_so(make: Make, tmp_path: Path) -> None:
    store = make()
    stored, _ = filled(store, 6)
    damage(store, stored, "blocks", "payloads", "last = 30")
    stored = store.survey(stored.key)
    tally = catch_up(store, stored, SURVEY)
    assert tally is not None
    assert tally.people == 50
    assert rebuild(store, stored, SURVEY)[1]  # it lacks the same reports
    studies = RunningStudies(store, Catalogue(store))
    for query in (AnswerRequest(), AnswerRequest(candidates=(1, 2))):
        reading = prepare(store, studies, stored, query)
        found = reading.read()
        assert found.n == 50
        answer = json.loads(written(stored, query, found, reading.missing())[0])
        assert answer["remarks"][-1].startswith("10 reports are damaged")
    assert export_parquet(store, stored, tmp_path / "reports.parquet") == 50
    assert pq.read_metadata(tmp_path / "reports.parquet").num_rows == 50
    assert back_up(store, tmp_path / "backup.sqlite3") == 60
    again = SqliteStore(tmp_path / "again.sqlite3")
    restore(tmp_path / "backup.sqlite3", again)
    assert (again.survey(stored.key).reports, whole(again, stored).missing) == (60, EACH)
    assert again.missing() == EACH
    again.close()


def test_a_tally_that_counted_the_reports_before_stays(make: Make) -> None:
    store = make()
    stored, _ = filled(store, 6)
    before = catch_up(store, store.survey(stored.key), SURVEY)
    damage(store, stored, "blocks", "payloads", "last = 30")
    stored = store.survey(stored.key)
    with pytest.raises(StoreDamagedError, match="10 reports are damaged"):
        rebuild(store, stored, SURVEY)
    assert before is not None
    found = prepare(store, RunningStudies(store, Catalogue(store)), stored, AnswerRequest())
    assert (found.read().n, found.missing()) == (60, 0)


def test_a_damaged_page_of_ids_fails_its_survey_alone(make: Make, small_runs: None) -> None:
    store = make()
    stored, sent = filled(store, 14)  # a run of 70 ids
    other = opened(store, OTHER)
    damage(store, stored, "runs", "data", "page = 2")
    again = make()

    def theirs() -> Group:
        return Group(other.key, os.urandom(32), bytes(2 * OTHER.layout.size), 2)

    known: set[int] = set()
    for i, ids in enumerate(sent):
        mine, beside = again.append([group(stored, ids), theirs()], 9_000)
        assert beside == 2
        if isinstance(mine, StoreDamagedError):
            known.add(i)
            assert f"survey {stored.key}" in str(mine)
        else:
            assert mine == 0
    assert known  # those whose ids may be in that page
    assert again.append([group(stored, os.urandom(16 * 3))], 9_000) == [3]  # new ones are not
    assert any(one.place == "run 1, page 2" for one in problems(again))


def test_a_damaged_filter_is_made_again(make: Make, small_runs: None) -> None:
    store = make()
    stored, sent = filled(store, 14)
    for where in ("UPDATE", "DELETE"):
        if where == "UPDATE":
            damage(store, stored, "runs", "data", "page = 0")
        else:
            with store.writing() as connection:
                connection.execute(f"DELETE FROM {store.table('runs', stored.key)} WHERE page = 0")
        again = make()
        for ids in sent:
            assert again.append([group(stored, ids)], 9_000) == [0]


def test_a_survey_that_lacks_a_run_takes_nothing(make: Make, small_runs: None) -> None:
    """A rival would take what is in that run a second time."""
    store = make()
    stored, sent = filled(store, 14)
    with store.writing() as connection:
        connection.execute(f"DELETE FROM {store.table('runs', stored.key)}")
    again = make()
    (outcome,) = again.append([group(stored, sent[0])], 9_000)
    assert isinstance(outcome, StoreDamagedError)
    assert [one.part for one in problems(again)] == ["ids"]


@pytest.mark.parametrize("gone", [False, True])
def test_ids_that_are_not_in_a_run_yet_may_be_damaged(make: Make, gone: bool) -> None:
    store = make()
    stored, sent = filled(store, 4)
    other = opened(store, OTHER)
    if gone:
        with store.writing() as connection:
            connection.execute(f"DELETE FROM {store.table('blocks', stored.key)} WHERE last = 20")
    else:
        damage(store, stored, "blocks", "ids", "last = 20")
    outcomes = make().append(
        [group(stored, sent[1]), Group(other.key, os.urandom(16), bytes(OTHER.layout.size), 1)], 9_000
    )
    assert isinstance(outcomes[0], StoreDamagedError)
    assert outcomes[1] == 1


def test_a_fold_leaves_a_damaged_block_where_it_is(make: Make, small_runs: None) -> None:
    store = make()
    stored, sent = filled(store, 5)
    damage(store, stored, "blocks", "payloads", "last = 30")
    for mark in range(5, 20):
        sent.append(os.urandom(16 * EACH))
        assert store.append([group(stored, sent[-1], mark)], 2_000) == [EACH]
    chunk = whole(store, stored)
    assert (chunk.last, chunk.missing) == (200, EACH)
    assert [chunk.payloads[i] for i in range(0, len(chunk.payloads), SIZE * EACH)] == [0, 1, *range(3, 20)]
    assert store.missing() == EACH
    ids = list(store.report_ids(stored.key))
    assert len(ids) == len(set(ids)) == 200  # all of them are known
    assert make().append([group(stored, sent[2])], 9_000) == [0]
    assert [one.reports for one in problems(store)] == [EACH]
    assert store.failed_upkeep == 0


def test_a_fold_of_damaged_ids_does_not_hold_up_other_surveys(make: Make, small_runs: None) -> None:
    store = make()
    stored, _ = filled(store, 5)
    other = opened(store, OTHER)
    damage(store, stored, "blocks", "ids", "last = 30")
    for _ in range(20):
        theirs = Group(other.key, os.urandom(16 * EACH), bytes(OTHER.layout.size * EACH), EACH)
        assert store.append([group(stored, os.urandom(16 * EACH)), theirs], 2_000) == [EACH, EACH]
    assert store._memory.of(other.key).runs
    assert not store._memory.of(stored.key).runs


def test_pages_of_the_file_may_be_damaged(tmp_path: Path) -> None:
    """SQLite itself finds some damage and fails the whole statement: the other rows are read one by one."""
    path = tmp_path / "x.sqlite3"
    store = SqliteStore(path)
    stored = opened(store)
    for mark in range(6):  # ids alone take several pages
        store.append([group(stored, os.urandom(16 * 1_000), mark)], 1_000)
    store.close()
    with closing(sqlite3.connect(path)) as direct:
        (size,) = direct.execute("PRAGMA page_size").fetchone()
        (table,) = direct.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'blocks_1'").fetchone()
    for page in range(2, path.stat().st_size // size + 1):
        data = bytearray(path.read_bytes())
        data[(page - 1) * size : (page - 1) * size + 64] = b"\xff" * 64
        (tmp_path / "y.sqlite3").write_bytes(data)
        try:
            broken = SqliteStore(tmp_path / "y.sqlite3")
            found = problems(broken)
        except StoreDamagedError:  # the surveys themselves, or the schema
            continue
        assert found, page
        try:
            chunk = broken.chunk(stored.key, 0, 10_000)
        except StoreDamagedError:  # the index of the blocks, or the survey
            continue
        finally:
            broken.close()
        assert chunk is not None
        if page != table:
            assert chunk.missing in (0, 1_000), page
    store = SqliteStore(path)
    assert problems(store) == []
    store.close()


def test_a_schema_that_is_no_text_is_damage(tmp_path: Path) -> None:
    """SQLite quotes the schema in its message, which Python then cannot decode."""
    path = tmp_path / "x.sqlite3"
    SqliteStore(path).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE surveys", b"CREATE\x96\xc5ABLE surveys"))
    assert path.read_bytes() != data
    with pytest.raises(StoreDamagedError, match="its schema is not UTF-8"):
        SqliteStore(path)


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE surveys SET document = 9000000000", lambda store: store.surveys()),
        ("UPDATE surveys SET study = 'x'", lambda store: store.find(SURVEY.task)),
        ("UPDATE surveys SET precision = 'x'", lambda store: store.survey(1)),
        ("UPDATE counters SET sequence = 1.5", lambda store: store.survey(1)),
        ("UPDATE tallies SET encoded = 9000000000", lambda store: store.tally(1)),
        ("UPDATE studies SET document = 9000000000", lambda store: store.studies()),
        ("UPDATE rounds SET share = 'x'", lambda store: store.rounds("study")),
        ("UPDATE tokens SET digest = 9000000000", lambda store: store.tokens()),
        ("UPDATE tokens SET scopes = x'00'", lambda store: store.tokens()),
        ("DROP TRIGGER audit_update; UPDATE audit SET at = x'00'", lambda store: store.audit(9)),
    ],
)
def test_values_of_another_type_are_damage(
    statement: str, read: Callable[[SqliteStore], object], tmp_path: Path
) -> None:
    """SQLite keeps the type of each value beside it. `bytes` of a large number would take all memory."""
    store = SqliteStore(tmp_path / "x.sqlite3")
    stored, _ = filled(store, 1)
    assert catch_up(store, stored, SURVEY) is not None
    store.set_reading(stored.key, stored.document)
    store.create_study(StoredStudy("study", b"{}"))
    store.add_round("study", 1, Fraction(1, 2), draft_of(OTHER, {}, precision=60, minimum=1))
    store.add_token(TokenRecord("name", bytes(32), ("answers:read",), None, "", "2026-11-19"))
    store.note(AuditEntry("2026-11-19T00:00:00Z", "cli:x", "answer", None, "{}"))
    assert read(store)
    store._writer.executescript(statement)
    with pytest.raises(StoreDamagedError, match="unexpected value of type"):
        read(store)
    store.close()


def test_the_command_names_what_is_damaged(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make()
    if isinstance(store, PostgresStore):
        monkeypatch.setenv("VEIL_DATABASE_URL", _url_of(store))
    else:
        monkeypatch.setenv("VEIL_DATABASE_URL", f"sqlite:///{tmp_path / 'x.sqlite3'}")
    stored, _ = filled(store, 6)
    done = CliRunner().invoke(app, ["check"])
    assert (done.exit_code, done.stdout) == (0, "no damage in 60 reports of 1 survey\n")
    damage(store, stored, "blocks", "payloads", "last = 30")
    done = CliRunner().invoke(app, ["check"])
    assert done.exit_code == 5
    assert f"survey {SURVEY.task[:12]}, reports reports 21 to 30" in done.stdout
    done = CliRunner().invoke(app, ["check", "--json"])
    assert done.exit_code == 5
    facts: dict[str, Any] = json.loads(done.stdout)
    assert (facts["surveys"], facts["reports"], facts["missing"]) == (1, 60, EACH)
    assert facts["damaged"][0]["task"] == SURVEY.task
    done = CliRunner().invoke(app, ["survey", "export", SURVEY.task[:8], "-o", str(tmp_path / "r.parquet")])
    assert "10 damaged reports are not in the file" in done.stderr
    done = CliRunner().invoke(app, ["survey", "answer", SURVEY.task[:8], "--json"])
    assert any("10 reports are damaged" in one for one in json.loads(done.stdout)["remarks"])
    done = CliRunner().invoke(app, ["backup", str(tmp_path / "b.sqlite3")])
    assert "10 reports are damaged" in done.stderr


def _url_of(store: PostgresStore) -> str:
    with store.reading() as connection:
        info = connection.raw.info
        return f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}"


def test_a_collector_that_serves_says_what_is_missing(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.05", VEIL_METRICS_OPEN="true") as collector:
        path = collector.open_survey()
        other = collector.open_survey(OTHER)
        token = collector.token()
        post = f"{collector.url}{path}/reports"
        for _ in range(2):
            assert httpx.post(post, content=framed(SURVEY, [1] * 30), headers=FRAMED).status_code == 200
    store = open_store(CollectorSettings(folder=str(tmp_path / "data")))
    assert isinstance(store, BlockStore)
    stored = store.find(SURVEY.task)
    assert stored is not None
    with store.writing() as connection:
        connection.execute("DELETE FROM tallies")
    damage(store, stored, "blocks", "payloads", "last = 30")
    damage(store, stored, "blocks", "ids", "last = 60")
    store.close()
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.05", VEIL_METRICS_OPEN="true") as collector:
        answer = httpx.get(f"{collector.url}{path}/answer", headers=token)
        assert any("30 reports are damaged" in one for one in answer.json()["remarks"])
        assert "veil_damaged_reports 30" in httpx.get(f"{collector.url}/metrics").text
        assert '"damaged-reports"' in collector.log
        refused = httpx.post(f"{collector.url}{path}/reports", content=framed(SURVEY, [1]), headers=FRAMED)
        assert refused.status_code == 503
        taken = httpx.post(f"{collector.url}{other}/reports", content=framed(OTHER, [1]), headers=FRAMED)
        assert taken.status_code == 200
        assert httpx.get(f"{collector.url}/readyz").status_code == 200
