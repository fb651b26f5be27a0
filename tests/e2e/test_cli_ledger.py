"""`veil ledger`: what is on record, and a day that a wrong clock has set forward."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import CliRunner

from veil import GRR, Ledger
from veil.cli.main import app
from veil.errors import BudgetError

TENTH = GRR(0.1, 2).guarantee
NOW, WRONG = date(2026, 11, 19), date(9999, 12, 31)


def veil(*args: Any, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["ledger", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ledger of a device that was on for a day of the year 9999, and its clock now."""
    monkeypatch.setattr("veil.device.ledger._today", lambda: NOW)
    ledger = Ledger(tmp_path / "ledger", lifetime=1.0, per_day=0.1, today=lambda: WRONG)
    ledger.spend("a", TENTH)
    return tmp_path / "ledger"


def at(path: Path, day: date) -> Ledger:
    return Ledger(path, lifetime=1.0, per_day=0.1, today=lambda: day)


def test_a_ledger_that_is_ahead_is_shown_and_moved_back(path: Path) -> None:
    shown = veil("show", path)
    assert "eps 0.1 spent on 1 answer" in shown
    assert "the next answer counts on 9999-12-31" in shown
    assert "veil ledger move-clock-back" in shown
    moved = json.loads(veil("move-clock-back", path, "--to", "2026-11-19", "--json"))
    assert (moved["day"], moved["spent_on_day"], moved["spent"], moved["answers"]) == (str(NOW), 0.1, 0.1, 1)
    assert "move-clock-back" not in veil("show", path)
    with pytest.raises(BudgetError, match=r"daily budget of 0\.1$"):
        at(path, NOW).spend("b", TENTH)
    at(path, date(2026, 11, 20)).spend("b", TENTH)
    assert "expected a day before 2026-11-20" in veil("move-clock-back", path, "--to", "2026-11-20", code=3)


def test_bad_days_and_files_are_refused(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    assert "expected a day as 2026-01-31, got yesterday" in veil("move-clock-back", path, "--to", "yesterday", code=3)
    assert "there is no ledger" in veil("show", tmp_path / "other", code=3)
    assert not (tmp_path / "other").exists()
    (tmp_path / "foreign").write_text("something else\n")
    assert "not a ledger" in veil("move-clock-back", tmp_path / "foreign", code=6)
    os.mkfifo(tmp_path / "fifo")
    assert "expected a regular file, got a fifo" in veil("show", tmp_path / "fifo", code=6)
    assert path.read_bytes() == whole


def test_the_default_is_the_ledger_of_veil_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    Ledger(tmp_path / "veil" / "ledger", lifetime=1.0).spend("a", TENTH)
    assert json.loads(veil("show", "--json"))["path"] == str(tmp_path / "veil" / "ledger")
