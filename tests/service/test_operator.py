"""The operator's commands on the collector's database: surveys from draft to purge, tokens, and what they refuse."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from tests.service.harness import SURVEY, framed, running, values
from tests.service.people import STUDIES
from tests.service.postgres import Server
from tests.support.commands import CliRunner
from tests.support.snippets import blocks

from veil import GRR, Survey
from veil.cli.demo import _serving
from veil.cli.main import app
from veil.collector.edge.decoding import decode_requests
from veil.collector.keys_and_tokens import fingerprint, load_key, public_bytes
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings, load_settings
from veil.collector.store.base import Group, StoredTally
from veil.collector.surveys.collection import rebuild
from veil.errors import InputError
from veil.tools.json_documents import digest


def veil(*args: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [*map(str, args), "--json"])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return json.loads(result.stdout) if result.stdout else None


def fill(folder: Path, people: int, survey: Survey = SURVEY) -> None:
    store = open_store(CollectorSettings(folder=str(folder / "data")))
    stored = store.find(survey.task)
    assert stored is not None
    decoded = decode_requests(survey, [framed(survey, values(people))])
    assert store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 86_400 * 100 + 5) == [people]
    store.close()


def test_the_tally_of_a_later_wave_is_rebuilt_and_goes_on(folder: Path) -> None:
    for wave in (1, 2):
        created = ("survey", "create", folder / "task.json", "--name", "drinks", "--wave", wave, "--minimum", 1)
        task = veil(*created, "--open")["task"]
    again = Survey(SURVEY.ask, wave=2)
    assert task == again.task
    fill(folder, 50, again)
    assert veil("survey", "answer", "drinks/2")["people"] == 50  # keeps a tally
    assert veil("survey", "rebuild", "drinks/2")["right"]
    store = open_store(CollectorSettings(folder=str(folder / "data")))
    stored = store.find(again.task)
    assert stored is not None
    assert rebuild(store, stored, again)[1]  # by its own task, too
    store.close()
    fill(folder, 30, again)
    assert veil("survey", "answer", "drinks/2")["people"] == 80
    assert veil("survey", "rebuild", "drinks/2")["right"]


def test_a_survey_from_draft_to_purge(folder: Path) -> None:
    task, short = SURVEY.task, SURVEY.task[:8]
    assert veil("survey", "create", folder / "task.json", "--minimum", 5, "--closes", "2999-01-01T00:00:00Z")[
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
    wanted = {"task": task, "name": None, "wave": None, "reports": 1_000, "right": True}
    assert veil("survey", "rebuild", short) == wanted
    veil("survey", "purge", short, "--yes", code=3)  # it is still open
    assert veil("survey", "close", short)["state"] == "closed"
    veil("survey", "purge", short, code=2)  # without saying so
    assert veil("survey", "purge", short, "--yes")["reports"] == 1_000
    veil("survey", "rebuild", short, code=3)  # the tally is all that is left
    out.unlink()
    for way in ([], ["--folders"]):
        assert "purged" in said("survey", "export", short, "-o", out, *way, code=3)
        assert not out.exists()
    store = open_store(CollectorSettings(folder=str(folder / "data")))
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
    (folder / "data").mkdir(exist_ok=True)
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


def test_no_key_is_made_beside_a_database_that_has_one(folder: Path) -> None:
    own = veil("survey", "create", folder / "task.json", "--open")["key"]
    key = folder / "data" / "signing.key"
    key.rename(folder / "kept.key")
    assert veil("survey", "show", SURVEY.task)["key"] is None
    assert not key.exists()
    (folder / "kept.key").rename(key)
    assert veil("survey", "show", SURVEY.task)["key"] == own


def test_a_folder_is_named_as_for_serve_and_never_made_by_chance(folder: Path) -> None:
    other = folder / "other"
    create = ["survey", "create", folder / "task.json", "--open"]
    restore = ["restore", folder / "b.sqlite3"]
    veil("backup", folder / "b.sqlite3")
    for command in (
        create,
        restore,
        ["survey", "list"],
        ["survey", "open", "a"],
        ["token", "list"],
        ["token", "revoke", "x"],
    ):
        error = veil(*command, "--folder", other, code=3)["error"]["message"]
        assert str(other / "collector.sqlite3") in error
    assert not other.exists()
    made = veil("survey", "create", folder / "task.json", "--new", "--folder", other)
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


# -- names and waves ---------------------------------------------------------------------------------------------------


def drinks(folder: Path, waves: int, name: str = "drinks") -> list[str]:
    """The same question in so many waves of a name, all open; their tasks."""
    made = [
        veil("survey", "create", folder / "task.json", "--open", "--name", name, "--wave", number, "--minimum", 1)
        for number in range(1, waves + 1)
    ]
    return [one["task"] for one in made]


def said(*args: Any, code: int = 0) -> str:
    """What a command says to people, on either stream, on one line."""
    result = CliRunner().invoke(app, [*map(str, args)], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return " ".join((result.stdout + result.stderr).split())


def test_a_name_of_several_waves_never_means_one_of_them(folder: Path) -> None:
    tasks, out = drinks(folder, 3), folder / "reports.parquet"
    fill(folder, 5)  # the first wave
    assert "say which wave: drinks/1 to drinks/3" in said("survey", "close", "drinks", code=3)
    closed = veil("survey", "close", "drinks/3")
    assert (closed["task"], closed["name"], closed["wave"]) == (tasks[2], "drinks", 3)
    for command in (["export", "drinks", "-o", out], ["close", "drinks"], ["purge", "drinks", "--yes"]):
        assert "say which wave" in said("survey", *command, code=3)
    for command in (["answer", "drinks"], ["show", "drinks"], ["open", "drinks"], ["rebuild", "drinks"]):
        assert "say which wave" in said("survey", *command, code=3)
    assert "drinks/1 to drinks/3" in said("survey", "show", "drinks/4", code=3)
    assert [one["state"] for one in veil("survey", "list")["surveys"]] == ["open", "open", "closed"]
    assert not out.exists()
    assert said("survey", "export", "drinks/1", "-o", out) == f"wrote 5 reports of drinks, wave 1 to {out}"
    assert pq.read_metadata(out).num_rows == 5
    assert said("survey", "answer", "drinks/1").startswith("drinks, wave 1 ")
    assert "name drinks wave 2" in said("survey", "show", "drinks/2").replace("│", "").replace("  ", " ")
    found = veil("survey", "answer", "drinks/1")
    assert (found["task"], found["name"], found["wave"]) == (tasks[0], "drinks", 1)
    veil("survey", "close", "drinks/1")
    assert said("survey", "purge", "drinks/1", "--yes") == "forgot 5 reports of drinks, wave 1"
    audited = [(one["action"], one["task"]) for one in veil("audit", "--last", 4)["entries"]]
    assert audited == [("purge", tasks[0]), ("close", tasks[0]), ("answer", tasks[0]), ("answer", tasks[0])]


def test_a_name_of_one_wave_needs_no_number(folder: Path) -> None:
    veil("survey", "create", folder / "task.json", "--name", "drinks")
    assert veil("survey", "open", "drinks")["state"] == "open"  # a draft has its name, too
    assert "--wave 2" in said("survey", "create", folder / "task.json", "--name", "drinks")  # nobody is asked again
    assert veil("survey", "close", "drinks/1")["wave"] == 1
    assert veil("token", "create", "--scope", "answers:read", "--survey", "drinks")["task"] == SURVEY.task


def test_a_name_that_begins_like_an_id_is_refused(folder: Path) -> None:
    def named(name: str, size: int) -> str:
        (folder / "other.json").write_bytes(Survey(GRR(1.0, size)).to_bytes())
        return str(veil("survey", "create", folder / "other.json", "--open", "--name", name)["task"])

    veil("survey", "create", folder / "task.json", "--open")
    begins = SURVEY.task[:6]
    other, cafe = named(begins, 5), named("cafe", 6)
    assert "is the name of one survey" in said("survey", "close", begins, code=3)
    assert veil("survey", "close", f"{begins}/1")["task"] == other
    assert veil("survey", "close", SURVEY.task[:7])["task"] == SURVEY.task
    assert veil("survey", "close", "cafe")["task"] == cafe  # hex digits, but no id begins so
    (folder / "svim.json").write_bytes(STUDIES["svim"].to_bytes())
    study = digest(STUDIES["svim"].to_json())[:5]
    veil("survey", "create", folder / "svim.json", "--open")
    named(study, 7)
    for command in ("show", "answer"):
        assert "is the name of one survey" in said("survey", command, study, code=3)


def test_the_audit_log_says_which_survey_was_created(folder: Path) -> None:
    tasks = drinks(folder, 2)
    veil("survey", "create", folder / "task.json", "--name", "drinks", "--wave", 9, code=7)  # the next is the third
    entries = veil("audit")["entries"]
    refused = Survey(SURVEY.ask, SURVEY.public, 9).task
    assert [(one["action"], one["task"]) for one in entries] == [
        ("create", task) for task in (refused, refused, *reversed(tasks))
    ]
    assert json.loads(entries[0]["parameters"]) == {"outcome": "refused"}
    assert json.loads(entries[1]["parameters"])["wave"] == 9


def test_one_report_is_one_report(folder: Path) -> None:
    drinks(folder, 1)
    fill(folder, 1)
    out = folder / "reports.parquet"
    assert said("survey", "export", "drinks", "-o", out).startswith("wrote 1 report of ")
    assert said("inspect", out).startswith("A file of 1 report.")
    assert "1 report, each guarantees" in said("survey", "answer", "drinks")


def test_a_language_has_one_text(folder: Path) -> None:
    texts = ["--text", "en=How often?", "--text", "de=Wie oft?"]
    create = ["survey", "create", folder / "task.json", "--name", "sleep"]
    assert "a language has one text" in said(*create, *texts, "--text", "en=Why?", code=2)
    assert veil(*create, *texts)["texts"] == {"en": "How often?", "de": "Wie oft?"}


def test_the_audit_log_tells_what_was_refused_and_what_was_made(folder: Path) -> None:
    veil("survey", "create", folder / "task.json")
    veil("token", "create", "--scope", "export:read", "--days", 0, code=3)
    made = veil("token", "create", "--scope", "answers:read", "--days", 3)
    veil("survey", "close", SURVEY.task, code=7)  # a draft
    entries = [(one["action"], json.loads(one["parameters"])) for one in veil("audit")["entries"]]
    assert entries == [
        ("close", {"outcome": "refused"}),
        ("close", {"task": SURVEY.task}),
        ("create-token", {"scopes": ["answers:read"], "name": made["name"], "days": 3}),
        ("create-token", {"outcome": "refused"}),
        ("create-token", {"scopes": ["export:read"], "name": entries[4][1]["name"], "days": 0}),
        ("create", {"study": str(folder / "task.json")}),
    ]


def test_a_key_for_a_rotation_is_made_before_it_is_adopted(folder: Path) -> None:
    veil("survey", "create", folder / "task.json")
    now = veil("key", "show")
    veil("key", "adopt", "--yes")
    assert "already: nothing was changed" in CliRunner().invoke(app, ["key", "adopt"]).output
    made = veil("key", "make", folder / "new.key")
    assert (folder / "new.key").stat().st_mode & 0o777 == 0o600
    assert veil("key", "show") == now
    veil("key", "make", folder / "new.key", code=3)
    (folder / "new.key").replace(folder / "data" / "signing.key")
    assert veil("key", "adopt", "--yes")["fingerprint"] == made["fingerprint"] != now["fingerprint"]
    assert veil("key", "show")["key"] == made["key"]


def test_a_purged_survey_says_so(folder: Path) -> None:
    veil("survey", "create", folder / "task.json", "--open")
    fill(folder, 7)
    veil("survey", "close", SURVEY.task)
    assert veil("survey", "show", SURVEY.task)["purged"] is None
    veil("survey", "purge", SURVEY.task, "--yes")
    shown = veil("survey", "show", SURVEY.task)
    assert (shown["reports"], shown["purged"][:2]) == (7, "20")
    assert "  purged  " in CliRunner().invoke(app, ["survey", "list"]).output


def test_facts_that_go_to_a_pipe_are_whole_lines(folder: Path) -> None:
    task = veil("survey", "create", folder / "task.json", "--open")["task"]
    lines = CliRunner().invoke(app, ["survey", "show", task[:9]]).output.splitlines()
    assert [line.split() for line in lines if line.startswith("path")] == [["path", f"/v1/surveys/{task}"]]
    assert [line.split() for line in lines if line.startswith("study")] == [["study", "-"]]


def test_a_database_that_is_not_empty_is_named_where_a_backup_is_restored(folder: Path) -> None:
    veil("survey", "create", folder / "task.json")
    veil("backup", folder / "b.sqlite3")
    said = veil("restore", folder / "b.sqlite3", code=3)["error"]["message"]
    assert f"{folder / 'data' / 'collector.sqlite3'} has surveys" in said


def test_an_empty_database_of_a_server_is_made_only_when_asked(
    folder: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEIL_DATABASE_URL", postgres.database())
    for command in (["survey", "list"], ["token", "create", "--scope", "answers:read"], ["survey", "create"]):
        given = [folder / "task.json"] if command[-1] == "create" else []
        assert "--new" in veil(*command, *given, code=3)["error"]["message"]
    with psycopg.connect(load_settings().database) as connection:
        tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
        assert connection.execute(tables).fetchone() == (0,)
    veil("survey", "create", folder / "task.json", "--new")
    assert len(veil("survey", "list")["surveys"]) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_another_account_than_the_folders_is_refused(folder: Path) -> None:
    data = folder / "data"
    before = sorted(data.iterdir())
    os.chown(data, 65_534, 65_534)
    for command in (["survey", "create", folder / "task.json"], ["survey", "list"], ["serve"], ["key", "adopt"]):
        message = veil(*command, code=3)["error"]["message"]
        assert message.startswith("account: expected nobody, the owner of ")
        assert "sudo -u nobody veil" in message
    assert sorted(data.iterdir()) == before
    os.chown(data, 0, 0)
    os.chown(data / "collector.sqlite3", 65_534, 65_534)
    assert "account: expected nobody" in veil("survey", "list", code=3)["error"]["message"]


def test_a_new_database_is_logged_once_with_its_key(tmp_path: Path) -> None:
    with running(tmp_path / "data") as collector:
        assert collector.stop() in (0, -signal.SIGTERM)
        collector.start()
        (line,) = [json.loads(line) for line in collector.log.splitlines() if '"new-database"' in line]
        key = load_key(collector.settings.key_path)
    assert (line["key"], line["database"]) == (fingerprint(key), str(tmp_path / "data" / "collector.sqlite3"))


def test_the_runbook_names_account_and_settings_in_every_command_on_the_database() -> None:
    bare = re.compile(r"veil (survey|token|key|backup|restore|check|audit) ")
    for name in ("deployment", "install"):
        page = (Path(__file__).parents[2] / f"docs/collector/{name}.md").read_text(encoding="utf-8")
        lines = [line for block in blocks(page) if block.language == "sh" for line in block.code.splitlines()]
        commands = [line for line in lines if bare.search(line.replace("veil-admin ", "veil "))]
        assert commands
        assert [line for line in commands if "veil-admin " not in line and "docker compose exec" not in line] == []
