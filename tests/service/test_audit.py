"""The audit log's retention, and the account that its entries name."""

from __future__ import annotations

import json
import os
import pwd
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.service.harness import SURVEY
from tests.support.commands import CliRunner

from veil.cli.main import app
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store.backup import back_up, restore
from veil.collector.store.base import PRUNED, AuditEntry
from veil.collector.store.blocks import BlockStore
from veil.collector.store.postgres import PostgresStore
from veil.collector.store.sqlite import SqliteStore
from veil.errors import StoreError

OLD = [f"analyst-{number:05}" for number in range(3_000)]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store with an audit log of 3,000 old entries, one about pruning among them, and a new one."""
    path = tmp_path / "x.sqlite3"
    of_postgres = request.param == "postgres"
    made = PostgresStore(request.getfixturevalue("postgres").database()) if of_postgres else SqliteStore(path)
    with made.writing() as connection:
        rows = [(f"2026-01-{1 + i % 28:02}T00:00:00Z", name, "answer", None, "{}") for i, name in enumerate(OLD)]
        made.insert_rows(connection, "audit", ("at", "token", "action", "task", "parameters"), rows)
    made.note(AuditEntry("2026-01-09T00:00:00Z", "cli:ann", PRUNED, None, "{}"))
    made.note(AuditEntry("2026-02-01T00:00:00Z", "dashboard", "answer", None, "{}"))
    yield made
    made.close()


def still_named(folder: Path) -> bool:
    """Return whether a file of the database holds an account that only old entries name."""
    return any(b"analyst-" in file.read_bytes() for file in folder.iterdir())


def by_ann(erased: int) -> AuditEntry:
    return AuditEntry("2026-02-02T00:00:00Z", "cli:ann", PRUNED, None, json.dumps({"entries": erased}))


def test_pruned_entries_are_erased_and_counted(store: BlockStore, tmp_path: Path) -> None:
    assert store.prune_audit("2026-02-01", by_ann) == 3_000
    kept = [(entry.action, entry.parameters) for entry in store.audit(9)]
    assert kept == [(PRUNED, '{"entries": 3000}'), ("answer", "{}"), (PRUNED, "{}")]
    if isinstance(store, SqliteStore):
        assert not still_named(tmp_path)
    for statement in ("DELETE FROM audit", "UPDATE audit SET action = 'nothing'"):  # guarded as before
        with pytest.raises(StoreError), store.writing() as connection:
            connection.execute(statement)


def test_no_entry_is_erased_without_the_entry_that_says_so(store: BlockStore) -> None:
    def fails(erased: int) -> AuditEntry:
        raise StoreError("no entry")

    with pytest.raises(StoreError, match="no entry"):
        store.prune_audit("2026-02-01", fails)
    assert len(store.audit(9_999)) == 3_002
    with pytest.raises(StoreError), store.writing() as connection:
        connection.execute("DELETE FROM audit")


def test_a_restored_log_is_pruned_and_guarded(store: BlockStore, tmp_path: Path) -> None:
    back_up(store, tmp_path / "backup")
    back = SqliteStore(tmp_path / "back.sqlite3")
    restore(tmp_path / "backup", back)
    assert back.prune_audit("2026-02-01", by_ann) == 3_000
    with pytest.raises(StoreError), back.writing() as connection:
        connection.execute("DELETE FROM audit")
    back.close()


def veil(*arguments: Any, code: int = 0, environment: dict[str, str] | None = None) -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"], env=environment)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout) if done.stdout else None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    for name in ("LOGNAME", "USER", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "task.json").write_bytes(SURVEY.to_bytes())
    veil("survey", "create", tmp_path / "task.json", "--new")
    return tmp_path


def test_the_audit_log_is_pruned_by_a_command(folder: Path) -> None:
    opened = open_store(CollectorSettings(folder=str(folder / "data")))
    opened.note(AuditEntry("2026-01-01T23:59:59Z", "dashboard", "answer", None, "{}"))
    opened.close()
    assert len(veil("audit")["entries"]) == 2
    assert veil("audit", "prune", "--before", "2026-01-02") == {"before": "2026-01-02", "entries": 1}
    latest, *others = veil("audit", "--last", 9)["entries"]
    assert [one["action"] for one in others] == ["create"]
    assert (latest["action"], json.loads(latest["parameters"])) == (PRUNED, {"before": "2026-01-02", "entries": 1})
    assert latest["token"] == f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
    assert veil("audit") == veil("audit", "list")
    for wrong in ("yesterday", "9999-01-01"):
        assert "--before: expected a day" in veil("audit", "prune", "--before", wrong, code=3)["error"]["message"]
    veil("audit", "prune", code=2)


def test_entries_name_the_account_of_the_process(folder: Path) -> None:
    faked = {"LOGNAME": "alice", "USER": "alice", "LNAME": "alice", "USERNAME": "alice"}
    veil("survey", "open", SURVEY.task, environment=faked)
    assert veil("audit")["entries"][0]["token"] == f"cli:{pwd.getpwuid(os.getuid()).pw_name}"


def test_the_caller_of_sudo_is_noted_as_unverified(folder: Path) -> None:
    for claimed in ("1000", "alice", "-1", "9" * 11, "\u0662"):
        veil("survey", "close", SURVEY.task, code=7, environment={"SUDO_UID": claimed})  # a draft
    entries = [json.loads(entry["parameters"]) for entry in veil("audit", "--last", 99)["entries"]]
    assert [entry.get("sudo_uid_unverified") for entry in entries if "sudo_uid_unverified" in entry] == [1000, 1000]
    assert {entry["token"] for entry in veil("audit")["entries"]} == {f"cli:{pwd.getpwuid(os.getuid()).pw_name}"}


def test_a_log_that_somebody_reads_is_emptied_by_pruning_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veil.collector.store.sqlite._TRUNCATE_TRIES", 1)
    monkeypatch.setattr("veil.collector.store.sqlite._BUSY_SECONDS", 0.01)
    store = SqliteStore(tmp_path / "x.sqlite3")
    store.note(AuditEntry("2026-01-01T00:00:00Z", "analyst-00000", "answer", None, "{}"))
    assert still_named(tmp_path)
    with sqlite3.connect(tmp_path / "x.sqlite3", isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM audit").fetchall()
        with pytest.raises(StoreError, match="prune or purge again"):
            store.prune_audit("2026-02-01", by_ann)
        reader.execute("ROLLBACK")
    reader.close()
    assert store.prune_audit("2026-02-01", by_ann) == 0
    assert not still_named(tmp_path)
    store.close()
