"""Backups while reports come in, and restores into either database; retention, expiry and the audit log."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until
from tests.service.harness import SURVEY, framed, values
from tests.service.test_purge import left
from tests.support.commands import CliRunner
from tests.support.next_schema import register

from veil.cli.main import app
from veil.collector import keys_and_tokens as tokens
from veil.collector.edge.decoding import decode_requests
from veil.collector.keys_and_tokens import authorised, issue_token
from veil.collector.service import Service, open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store import seen
from veil.collector.store import sqlite as sqlite_store
from veil.collector.store.backup import back_up, restore
from veil.collector.store.base import AuditEntry, Group, StoredSurvey
from veil.collector.store.blocks import BlockStore
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.seen import names_of
from veil.collector.store.sqlite import SqliteStore
from veil.collector.surveys.catalogue import Catalogue, draft_of
from veil.collector.surveys.collection import catch_up, rebuild
from veil.errors import InputError, ServiceError, StoreError, WireError

Make = Callable[[], BlockStore]


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Make]]:
    """Makes new databases of a kind; what opens one opens the same again."""
    opened: list[BlockStore] = []

    def new(kind: str) -> Make:
        url = request.getfixturevalue("postgres").database() if kind == "postgres" else ""
        path = tmp_path / f"{len(opened)}-{os.urandom(4).hex()}.sqlite3"

        def one() -> BlockStore:
            opened.append(PostgresStore(url) if url else SqliteStore(path))
            return opened[-1]

        return one

    yield new
    for store in opened:
        store.close()


def opened(store: BlockStore, **options: Any) -> StoredSurvey:
    catalogue = Catalogue(store)
    catalogue.create(draft_of(SURVEY, options, precision=60, minimum=1))
    return catalogue.open(SURVEY.task)


def send(store: BlockStore, stored: StoredSurvey, people: int) -> bytes:
    decoded = decode_requests(SURVEY, [framed(SURVEY, values(people))])
    assert store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 1_000) == [people]
    return decoded.ids


@pytest.mark.parametrize(("kind", "into"), [("sqlite", "sqlite"), ("postgres", "sqlite"), ("sqlite", "postgres")])
def test_a_backup_is_whole_while_reports_come_in(
    database: Callable[[str], Make], kind: str, into: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "FOLDED", 200)
    make = database(kind)
    store = make()
    stored = opened(store)
    sent = send(store, stored, 500)
    tally = catch_up(store, stored, SURVEY)
    record, secret = issue_token(store, ["answers:read"], note="ann")
    store.note(AuditEntry("2026-01-01T00:00:00Z", record.name, "answer", None, "{}"))
    store.fact("signing-key", "abc")
    stop, other = threading.Event(), make()
    commits: list[bytes] = []

    def go_on() -> None:
        while not stop.is_set():
            commits.append(send(other, stored, 20))

    thread = threading.Thread(target=go_on)
    thread.start()
    until(lambda: len(commits) > 2)
    file = tmp_path / "backup.sqlite3"
    reports = back_up(store, file)
    stop.set()
    thread.join()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith((".", "backup"))] == [file.name]
    with pytest.raises(InputError, match="there already"):
        back_up(store, file)
    again = database(into)
    back = again()
    assert restore(file, back) == reports
    found = back.find(SURVEY.task)
    assert found is not None
    assert found.reports == reports
    kept = list(back.report_ids(found.key))
    assert len(kept) == len(set(kept)) == reports
    assert set(names_of(sent)) <= set(kept) <= set(names_of(sent + b"".join(commits)))
    total, right = rebuild(back, found, SURVEY)
    assert right
    assert total is not None
    assert tally is not None
    assert total.people == reports >= tally.people
    assert back.append([Group(found.key, sent, bytes(9 * 500), 500)], 1_000) == [0]  # old reports are known
    assert authorised(back, f"Bearer {secret}", "answers:read", SURVEY.task).note == "ann"
    assert [entry.action for entry in back.audit(9)] == ["answer"]
    assert back.fact("signing-key", "other") == "abc"
    issue_token(back, ["answers:read"])  # keys go on beyond those that came back
    assert len(back.tokens()) == 2
    with pytest.raises(InputError, match="empty database"):
        restore(file, back)
    with pytest.raises(InputError, match="there is no file"):
        restore(tmp_path / "x", database("sqlite")())
    (tmp_path / "y").write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreError, match=f"^{re.escape(str(tmp_path / 'y'))} cannot be restored"):
        restore(tmp_path / "y", database("sqlite")())


def test_a_backup_of_an_earlier_schema_is_restored_and_not_changed(
    database: Callable[[str], Make], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SqliteStore(tmp_path / "old.sqlite3")
    send(old, opened(old), 540)
    old.close()
    before = (tmp_path / "old.sqlite3").read_bytes()
    register(monkeypatch.setattr)
    store = database("sqlite")()
    assert restore(tmp_path / "old.sqlite3", store) == 540
    assert store.survey(1).reports == 540
    assert (tmp_path / "old.sqlite3").read_bytes() == before


def test_reports_are_erased_so_many_days_after_the_end(
    database: Callable[[str], Make], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = database("sqlite")()
    service = Service(CollectorSettings(folder=str(tmp_path)), store)
    stored = opened(store, keep_days=2, closes="2026-01-10T00:00:00Z")
    now = 1_768_000_000 - 1_768_000_000 % 86_400  # 2026-01-09
    monkeypatch.setattr("veil.collector.service.time.time", lambda: now)
    send(store, stored, 50)
    service._forget_due()
    assert len(list(store.report_ids(stored.key))) == 50
    now += 86_400 * 3 - 1  # a second before two days after its end
    service._forget_due()
    assert len(list(store.report_ids(stored.key))) == 50
    now += 1
    service._look_again = 0.0
    service._caught_up()
    assert list(store.report_ids(stored.key)) == []
    assert store.survey(stored.key).state == "closed"
    tally = store.tally(stored.key)
    assert tally is not None
    assert tally.sequence == 50
    assert [(entry.token, entry.action) for entry in store.audit(5)] == [("collector", "purge")]
    assert store.due_to_forget(now + 10**9) == []  # once


def test_retention_is_tried_again_where_somebody_reads_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "_TRUNCATE_TRIES", 1)
    monkeypatch.setattr(sqlite_store, "_TRUNCATE_SECONDS", 0.01)
    service = Service(CollectorSettings(folder=str(tmp_path)))
    store = service.store
    assert isinstance(store, SqliteStore)
    stored = opened(store, keep_days=1)
    ids = send(store, stored, 500)
    store.move(stored.key, "open", "closed", 1)
    with closing(sqlite3.connect(tmp_path / "collector.sqlite3", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM surveys").fetchall()
        for _ in range(2):
            service._forget_due()
            assert store.due_to_forget(10**10) == [stored.key]
        assert left(tmp_path.iterdir(), ids) > 0
        assert [entry.action for entry in store.audit(5)] == ["purge"]  # before anything is erased, and once
    service._forget_due()
    assert left(tmp_path.iterdir(), ids) == 0
    assert store.due_to_forget(10**10) == []
    assert [entry.action for entry in store.audit(5)] == ["purge"]
    store.close()


def test_a_purge_waits_for_a_backup(
    database: Callable[[str], Make], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL empties tables for older snapshots, too."""
    make = database("postgres")
    store, other = make(), make()
    stored = opened(store)
    sent = send(store, stored, 300)
    Catalogue(store).close(SURVEY.task)
    purge = threading.Thread(target=lambda: other.purge(stored.key))
    make_tables = SqliteStore.make_tables

    def waits_or_is_done() -> bool:
        statement = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        with store.reading() as connection:
            return not purge.is_alive() or connection.execute(statement).fetchone()[0] > 0

    def meanwhile(self: SqliteStore, connection: Any, survey: int) -> None:
        purge.start()
        until(waits_or_is_done)
        make_tables(self, connection, survey)

    monkeypatch.setattr(SqliteStore, "make_tables", meanwhile)
    assert back_up(store, tmp_path / "backup.sqlite3") == 300
    monkeypatch.undo()
    purge.join()
    assert list(store.report_ids(stored.key)) == []
    back = database("sqlite")()
    restore(tmp_path / "backup.sqlite3", back)
    assert sorted(back.report_ids(stored.key)) == sorted(names_of(sent))


def test_a_server_without_enough_locks_for_all_tables_says_what_to_raise(database: Callable[[str], Make]) -> None:
    """As in a restore of thousands of surveys, whose tables are made in one transaction."""
    store = database("postgres")()
    with pytest.raises(StoreError, match="max_locks_per_transaction"), store.writing() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(i) FROM generate_series(1, 1000000) AS i")
    store.ping()


def test_a_backup_is_restored_where_a_collector_was_started(database: Callable[[str], Make], tmp_path: Path) -> None:
    """The database is then signed for with the key that devices know, and says so to a collector with another."""
    first, second = (CollectorSettings(folder=str(tmp_path / name)) for name in ("one", "two"))
    store, again = database("sqlite")(), database("sqlite")
    Service(first, store)
    opened(store)
    back_up(store, tmp_path / "backup.sqlite3")
    Service(second, again())
    restore(tmp_path / "backup.sqlite3", again())
    with pytest.raises(InputError, match="another key"):
        Service(second, again())
    Service(first, again())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("more", ["1; --", "key", '1", "2', "(SELECT 1)"])
def test_a_backup_with_other_columns_is_refused(
    database: Callable[[str], Make], tmp_path: Path, kind: str, more: str
) -> None:
    # names of columns in a foreign file would become part of a statement
    made = tmp_path / "made.sqlite3"
    store = SqliteStore(made)
    issue_token(store, ["answers:read"])
    back_up(store, tmp_path / "backup")
    store.close()
    quoted = more.replace('"', '""')
    with closing(sqlite3.connect(tmp_path / "backup")) as connection:
        connection.execute(f'ALTER TABLE tokens ADD COLUMN "{quoted} " TEXT')
        connection.commit()
    target = database(kind)()
    with pytest.raises(WireError, match="the table tokens of this backup: expected the columns key, "):
        restore(tmp_path / "backup", target)
    assert target.tokens() == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_audit_log_is_only_added_to(database: Callable[[str], Make], kind: str) -> None:
    store = database(kind)()
    store.note(AuditEntry("2026-01-01T00:00:00Z", "x", "answer", None, "{}"))
    for statement in ("DELETE FROM audit", "UPDATE audit SET action = 'nothing'"):
        with pytest.raises(StoreError), store.writing() as connection:
            connection.execute(statement)
    assert len(store.audit(5)) == 1


def test_a_token_ends_on_its_day(database: Callable[[str], Make], monkeypatch: pytest.MonkeyPatch) -> None:
    store = database("sqlite")()
    record, secret = issue_token(store, ["answers:read"], name="dashboard", days=30)
    assert record.expires is not None
    assert record.expires > record.created
    assert authorised(store, f"Bearer {secret}", "answers:read", None).name == "dashboard"
    monkeypatch.setattr(tokens, "_day", lambda moment: record.expires)
    with pytest.raises(ServiceError, match="expired"):
        authorised(store, f"Bearer {secret}", "answers:read", None)
    for wrong in ({"name": "dashboard"}, {"name": "A b"}, {"days": 0}):
        with pytest.raises(InputError):
            issue_token(store, ["answers:read"], **wrong)  # type: ignore[arg-type]


def test_commands_are_in_the_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    (tmp_path / "task.json").write_bytes(SURVEY.to_bytes())

    def veil(*arguments: Any) -> Any:
        done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
        return json.loads(done.stdout) if done.stdout else None

    veil("survey", "create", tmp_path / "task.json", "--keep-days", 9, "--open", "--new")
    made = veil("token", "create", "--scope", "answers:read", "--days", 3, "--name", "ann")
    assert veil("token", "list")["tokens"][0]["expires"] == made["expires"]
    veil("survey", "close", SURVEY.task[:9])
    veil("survey", "purge", SURVEY.task[:9], "--yes")
    assert veil("backup", tmp_path / "b.sqlite3")["reports"] == 0
    entries = veil("audit")["entries"]
    assert [one["action"] for one in entries] == ["backup", "purge", "close", "create-token", "create"]
    assert {one["token"] for one in entries} == {next(iter(entries))["token"]}
    assert entries[0]["token"].startswith("cli:")
    assert [entries[i]["task"] for i in (1, 2, 4)] == [SURVEY.task] * 3
    assert json.loads(entries[-1]["parameters"])["keep_days"] == 9
    assert made["token"] not in json.dumps(entries)
    assert veil("survey", "show", SURVEY.task[:9])["keep_days"] == 9
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "again"))
    assert veil("restore", tmp_path / "b.sqlite3", "--new")["reports"] == 0
    store = open_store(CollectorSettings(folder=str(tmp_path / "again")))
    assert [one.action for one in store.audit(2)] == ["restore", "backup"]
    store.close()
    own = veil("key", "show", "--folder", tmp_path / "data")
    refused = veil("key", "show")["error"][
        "message"
    ]  # the database came with its key's fingerprint, and without its file
    assert f"({own['fingerprint']}) that is not at" in refused
    assert not (tmp_path / "again" / "signing.key").exists()
    assert veil("key", "adopt") is None
    assert len(veil("key", "adopt", "--yes")["fingerprint"]) == 16
    assert veil("key", "show")["key"] != own["key"]
