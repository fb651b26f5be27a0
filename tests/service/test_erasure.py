"""What docs/collector/privacy-officer.md says of erasure, by the commands that it names."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.service.harness import SURVEY, framed
from tests.service.test_operator import fill, veil

from veil import OLH, Survey, Text
from veil.collector.edge.decoding import decode_requests
from veil.collector.service import open_store
from veil.collector.settings import CollectorSettings
from veil.collector.store.base import Group
from veil.collector.surveys.assessment import figures
from veil.histogram import Questions

PAGE = (Path(__file__).resolve().parents[2] / "docs/collector/privacy-officer.md").read_text(encoding="utf-8")


def closed(folder: Path, *options: Any) -> Any:
    """A closed survey of 200 reports that was answered, exported and backed up."""
    veil("survey", "create", folder / "task.json", "--open", *options)
    fill(folder, 200)
    answer = veil("survey", "answer", SURVEY.task)
    veil("survey", "export", SURVEY.task, "-o", folder / "reports.parquet")
    veil("backup", folder / "backup.sqlite3")
    veil("survey", "close", SURVEY.task)
    return answer


def test_a_purge_leaves_the_tally_exports_and_backups(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = closed(folder)
    veil("survey", "purge", SURVEY.task, "--yes")
    assert veil("survey", "answer", SURVEY.task) == answer  # from the kept tally
    assert veil("survey", "show", SURVEY.task)["reports"] == 200  # their number stays
    veil("survey", "export", SURVEY.task, "-o", folder / "again.parquet", code=3)
    assert pq.read_table(folder / "reports.parquet").num_rows == 200
    actions = [entry["action"] for entry in veil("audit")["entries"]]
    assert {"purge", "export", "backup", "answer"} <= set(actions)
    assert not {"show", "list"} & set(actions)  # docs/collector/service.md
    monkeypatch.setenv("VEIL_FOLDER", str(folder / "restored"))
    assert veil("restore", folder / "backup.sqlite3", "--new")["reports"] == 200


def test_counts_of_candidates_stay_after_a_purge(folder: Path) -> None:
    survey = Survey(OLH(4.0, Text(4)))
    (folder / "text.json").write_bytes(survey.to_bytes())
    (folder / "candidates.txt").write_text("a\nb\n", encoding="utf-8")
    assert not figures(Questions(survey))["keeps_tally"]
    veil("survey", "create", folder / "text.json", "--open")
    store = open_store(CollectorSettings(folder=str(folder / "data")))
    stored = store.find(survey.task)
    assert stored is not None
    decoded = decode_requests(survey, [framed(survey, ["a"] * 150)])
    store.append([Group(stored.key, decoded.ids, decoded.payloads, decoded.count)], 86_400)
    veil("survey", "answer", survey.task, "--candidates", folder / "candidates.txt")
    veil("survey", "close", survey.task)
    veil("survey", "purge", survey.task, "--yes")
    with store.reading() as connection:  # type: ignore[attr-defined]
        assert connection.execute("SELECT count(*) FROM counted").fetchone()[0] == 1
    store.close()


def test_reports_stay_by_default_and_are_erased_after_keep_days(folder: Path) -> None:
    closed(folder)
    (folder / "kept.json").write_bytes(Survey(OLH(4.0, 5)).to_bytes())
    kept = veil("survey", "create", folder / "kept.json", "--open", "--keep-days", 30)["task"]
    store = open_store(CollectorSettings(folder=str(folder / "data")))
    stored = store.find(SURVEY.task)
    assert stored is not None
    assert stored.keep_days is figures(Questions(SURVEY))["keep_days"] is None
    assert store.due_to_forget(2**40) == []  # nor are those of an open survey, however long ago they came
    store.close()
    veil("survey", "close", kept)
    store = open_store(CollectorSettings(folder=str(folder / "data")))
    short = store.find(kept)
    assert short is not None
    assert store.due_to_forget(2**40) == [short.key]
    assert store.due_to_forget(int(time.time()) + 29 * 86_400) == []
    store.close()


def test_the_defaults_in_the_assessment_are_those_of_a_new_survey(folder: Path) -> None:
    shown, known = veil("survey", "create", folder / "task.json"), figures(Questions(SURVEY))
    assert (shown["precision"], shown["minimum"], shown["keep_days"]) == (
        known["precision_seconds"],
        known["minimum"],
        known["keep_days"],
    )
    assert shown["step"] == known["minimum"]


def test_every_command_on_the_page_exists() -> None:
    import typer

    from veil.cli.main import app

    root: Any = typer.main.get_command(app)
    named = set(re.findall(r"`(veil [a-z-]+(?: [a-z]+)?)", PAGE))
    assert {"veil survey purge", "veil audit prune"} <= named
    for text in named:
        _, name, *rest = text.split()
        assert name in root.commands, text
        if rest:
            assert rest[0] in root.commands[name].commands, text
