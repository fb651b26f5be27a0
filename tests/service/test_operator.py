"""The operator's commands on the collector's database: surveys from draft to purge, tokens, and what they refuse."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.service.harness import SURVEY, framed, values
from typer.testing import CliRunner

from veil.cli.demo_online import _serving
from veil.cli.main import app
from veil.collector.decoding import decode_requests
from veil.collector.keys import load_key, public_bytes
from veil.collector.service import open_store
from veil.collector.settings import Settings
from veil.collector.store import Group, StoredTally
from veil.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEIL_FOLDER", str(tmp_path / "data"))
    (tmp_path / "task.json").write_bytes(SURVEY.to_bytes())
    return tmp_path


def veil(*args: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*map(str, args), "--json"])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return json.loads(result.stdout) if result.stdout else None


def fill(folder: Path, people: int) -> None:
    store = open_store(Settings(folder=str(folder / "data")))
    stored = store.find(SURVEY.task)
    assert stored is not None
    decoded = decode_requests(SURVEY, [framed(SURVEY, values(people))])
    assert store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 86_400 * 100 + 5) == [people]
    store.close()


def test_a_survey_from_draft_to_purge(folder: Path) -> None:
    task, short = SURVEY.task, SURVEY.task[:8]
    assert veil("survey", "create", folder / "task.json", "--minimum", 7, "--closes", "2999-01-01T00:00:00Z")[
        "state"
    ] == ("draft")
    veil("survey", "create", folder / "task.json", "--minimum", 8, code=7)
    veil("survey", "create", folder / "task.json", "--closes", "tomorrow", code=3)
    veil("survey", "close", short, code=7)
    assert veil("survey", "open", short)["state"] == "open"
    fill(folder, 1_000)
    assert veil("survey", "show", short)["reports"] == 1_000
    assert [one["task"] for one in veil("survey", "list")["surveys"]] == [task]
    veil("survey", "show", "ffff", code=3)
    out = folder / "reports.parquet"
    assert veil("survey", "export", short, "-o", out)["reports"] == pq.read_metadata(out).num_rows == 1_000
    assert veil("survey", "rebuild", short) == {"task": task, "reports": 1_000, "right": True}
    veil("survey", "purge", short, "--yes", code=3)  # it is still open
    assert veil("survey", "close", short)["state"] == "closed"
    veil("survey", "purge", short, code=2)  # without saying so
    assert veil("survey", "purge", short, "--yes")["reports"] == 1_000
    veil("survey", "rebuild", short, code=3)  # the tally is all that is left
    store = open_store(Settings(folder=str(folder / "data")))
    stored = store.find(task)
    assert stored is not None
    assert isinstance(store.tally(stored.key), StoredTally)
    store.close()


def test_tokens(folder: Path) -> None:
    veil("survey", "create", folder / "task.json")
    made = veil("token", "create", "--scope", "answers:read", "--scope", "export:read", "--note", "ann")
    assert made["token"].startswith("veil_")
    veil("token", "create", "--scope", "everything", code=3)
    veil("token", "create", "--scope", "answers:read", "--survey", "abc", code=3)
    listed = veil("token", "list")["tokens"]
    assert [(one["name"], one["note"], one["revoked"]) for one in listed] == [(made["name"], "ann", False)]
    assert made["token"] not in json.dumps(listed)
    veil("token", "revoke", made["name"])
    assert veil("token", "list")["tokens"][0]["revoked"]
    veil("token", "revoke", "nobody", code=3)


def test_a_database_of_another_kind_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_DATABASE_URL", "mysql://x")
    veil("survey", "list", code=3)
    monkeypatch.setenv("VEIL_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert "nobody" not in json.dumps(veil("survey", "list", code=7))
    (folder / "data").mkdir()
    (folder / "data" / "foreign.sqlite3").write_bytes(b"not a database at all" * 100)
    monkeypatch.setenv("VEIL_DATABASE_URL", f"sqlite:///{folder / 'data' / 'foreign.sqlite3'}")
    veil("survey", "list", code=7)


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "signing.key"
    first = load_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path).private_bytes_raw() == first.private_bytes_raw()
    assert [file.name for file in path.parent.iterdir()] == ["signing.key"]
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod"):
        load_key(path)
    path.write_text("no key")
    path.chmod(0o600)
    with pytest.raises(InputError):
        load_key(path)


def test_a_folder_is_named_as_for_serve_and_never_made_by_chance(folder: Path) -> None:
    other = folder / "other"
    for command in (["survey", "list"], ["survey", "open", "a"], ["token", "list"], ["token", "revoke", "x"]):
        error = veil(*command, "--folder", other, code=3)["error"]["message"]
        assert str(other / "collector.sqlite3") in error
    assert not other.exists()
    made = veil("survey", "create", folder / "task.json", "--folder", other)
    assert made["database"] == str(other / "collector.sqlite3")
    assert other.stat().st_mode & 0o777 == 0o700
    opened = veil("survey", "open", SURVEY.task[:8], "--folder", other)
    key = base64.urlsafe_b64encode(public_bytes(load_key(other / "signing.key"))).rstrip(b"=").decode()
    assert (opened["path"], opened["key"]) == (f"/v1/surveys/{SURVEY.task}", key)
    assert veil("survey", "show", SURVEY.task[:8], "--folder", other)["key"] == key
    assert veil("token", "create", "--scope", "answers:read", "--folder", other)["token"]


def test_the_demo_has_settings_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "veil.toml").write_text("port = 'none'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VEIL_DATABASE_URL", "mysql://x")
    with _serving(tmp_path / "demo") as port:
        assert port > 0
    assert (tmp_path / "demo" / "collector.sqlite3").exists()
