"""The caps of a ledger: stored at its creation, lowered by opening it, raised only by a separate, recorded step."""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from veil import GRR, Guarantee, Ledger
from veil.device.ledger_file import HEADER, Caps, _line
from veil.errors import BudgetError, LedgerError, ParameterError

NOW = date(2026, 11, 19)
ONE, TENTH = GRR(1.0, 2).guarantee, GRR(0.1, 2).guarantee
ALL: dict[str, float] = {"lifetime": 2.0, "per_day": 1.0, "per_survey": 0.5, "delta": 1e-6}


def opened(path: Path | None, **caps: Any) -> Ledger:
    return Ledger(path, today=lambda: NOW, **caps)


def test_spent_ledger_is_not_opened_with_larger_caps(tmp_path: Path) -> None:
    """The same file was refused with a lifetime of 1, and accepted with one of 30."""
    path = tmp_path / "ledger"
    opened(path, lifetime=1.0).spend("a", ONE)
    whole = path.read_bytes()
    with pytest.raises(BudgetError, match=r"lifetime: expected at most 1, .* got 30\. .*veil ledger raise"):
        opened(path, lifetime=30.0)
    assert path.read_bytes() == whole
    with pytest.raises(BudgetError, match="lifetime budget of 1"):
        opened(path, lifetime=1.0).spend("b", TENTH)


@pytest.mark.parametrize("name", ALL)
def test_each_cap_is_stored_lowered_for_good_and_never_raised_by_opening(tmp_path: Path, name: str) -> None:
    path = tmp_path / "ledger"
    first = opened(path, **ALL)
    with pytest.raises(BudgetError, match=rf"^{name}: expected at most"):
        opened(path, **{**ALL, name: 1.5 * ALL[name]})
    opened(path)  # states nothing, and changes nothing
    assert [caps.change for caps in first.caps_history] == ["created"]
    opened(path, **{name: 0.5 * ALL[name]})
    for ledger in (first, opened(path), opened(path, lifetime=2.0 if name != "lifetime" else 1.0)):
        assert float(getattr(ledger, name)) == 0.5 * ALL[name]
        assert [caps.change for caps in ledger.caps_history] == ["created", "lowered"]
    with pytest.raises(BudgetError, match=rf"^{name}: expected at most"):
        opened(path, **ALL)


def test_one_error_names_all_caps_that_are_larger(tmp_path: Path) -> None:
    opened(tmp_path / "ledger", lifetime=1.0, per_day=0.5)
    with pytest.raises(BudgetError) as caught:
        opened(tmp_path / "ledger", lifetime=2.0, per_day=1.0, per_survey=1.0, delta=0.1)
    for part in ("lifetime: expected at most 1", "per_day: expected at most 0.5", "per_survey: expected none"):
        assert part in str(caught.value)
    assert "delta: expected at most 0, the cap that this ledger keeps, got 0.1" in str(caught.value)


def test_new_daily_cap_counts_as_lowering(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "ledger", lifetime=2.0)
    opened(tmp_path / "ledger", per_day=0.5)
    with pytest.raises(BudgetError, match=r"daily budget of 0\.5"):
        ledger.spend("a", ONE)


def test_caps_changed_by_another_process_apply_at_once(tmp_path: Path) -> None:
    first, other = (opened(tmp_path / "ledger", lifetime=1.0) for _ in range(2))
    opened(tmp_path / "ledger", lifetime=0.5)
    with pytest.raises(BudgetError, match=r"lifetime budget of 0\.5"):
        first.spend("a", ONE)
    with pytest.raises(BudgetError):
        first.check(ONE)
    other.raise_caps(lifetime=1.0)
    first.spend("a", ONE)
    assert (first.left, other.left) == (0, 0)


@pytest.mark.parametrize("where", [None, "ledger"])
def test_a_raise_is_recorded_with_its_day_and_moves_no_other_day(tmp_path: Path, where: str | None) -> None:
    path = None if where is None else tmp_path / where
    today = date(9999, 12, 31)  # a wrong clock
    ledger = Ledger(path, lifetime=1.0, today=lambda: today)
    ledger.raise_caps(lifetime=2.0, delta=0.25)
    today = NOW
    ledger.raise_caps(per_survey=1.5)
    assert ledger.day == NOW
    assert ledger.charges == []
    wrong = date(9999, 12, 31)
    assert ledger.caps_history == [
        Caps(Decimal(1), change="created", day=wrong),
        Caps(Decimal(2), delta=Fraction(1, 4), change="raised", day=wrong),
        Caps(Decimal(2), per_survey=Decimal("1.5"), delta=Fraction(1, 4), change="raised", day=NOW),
    ]
    assert ledger.caps == ledger.caps_history[-1]
    ledger.spend("a", Guarantee.of(1.5))
    assert ledger.charges[0].day == NOW


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ({}, "at least one cap"),
        ({"lifetime": 1.0}, "lifetime: expected more than 1"),
        ({"lifetime": 0.5, "delta": 0.5}, "lifetime: expected more than 1"),
        ({"per_day": 3.0}, "per_day: expected none"),
        ({"lifetime": float("inf")}, "lifetime: expected a budget"),
        ({"lifetime": "much"}, "lifetime: expected a budget"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_raise_caps_refuses_changes_that_raise_nothing(tmp_path: Path, raised: dict[str, Any], message: str) -> None:
    ledger = opened(tmp_path / "ledger", lifetime=1.0)
    whole = (tmp_path / "ledger").read_bytes()
    with pytest.raises(ParameterError, match=message):
        ledger.raise_caps(**raised)
    assert (tmp_path / "ledger").read_bytes() == whole


def test_a_new_ledger_needs_a_lifetime(tmp_path: Path) -> None:
    for path in (None, tmp_path / "ledger"):
        with pytest.raises(ParameterError, match="lifetime"):
            opened(path, per_day=1.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", ["raised", "lowered"])
def test_caps_that_were_being_written_are_in_force_or_not(tmp_path: Path, change: str) -> None:
    path = tmp_path / "ledger"
    ledger = opened(path, lifetime=1.0)
    before = path.stat().st_size
    if change == "raised":
        ledger.raise_caps(lifetime=2.0)
    else:
        opened(path, lifetime=0.5)
    whole = path.read_bytes()
    for size in range(before, len(whole) - 1):  # a line that is whole but for its end is damage
        path.write_bytes(whole[:size])
        assert opened(path).lifetime == 1
    path.write_bytes(whole)
    assert opened(path).lifetime == Decimal(2 if change == "raised" else "0.5")


def test_a_full_disk_changes_no_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path / "ledger", lifetime=1.0)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        for change in (lambda: ledger.raise_caps(lifetime=2.0), lambda: opened(tmp_path / "ledger", lifetime=0.5)):
            with pytest.raises(LedgerError, match="No space"):
                change()
    assert ledger.lifetime == 1


@pytest.mark.parametrize("note", [None, "created", "created:2026-11-19:1:-:-", "created:2026-11-19:x:-:-:0/1"])
def test_a_ledger_whose_caps_are_missing_or_unreadable_is_refused(tmp_path: Path, note: str | None) -> None:
    header = _line(HEADER, "")
    last = header.decode().split(" ")[-1].strip()
    caps = b"" if note is None else _line(f"0001-01-01 caps: 0 {note}", last)
    (tmp_path / "ledger").write_bytes(header + caps)
    with pytest.raises(LedgerError):
        opened(tmp_path / "ledger", lifetime=1.0)
    assert (tmp_path / "ledger").read_bytes() == header + caps


def test_threads_that_raise_at_once_leave_the_largest(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    opened(path, lifetime=1.0)

    def one(lifetime: int) -> None:
        with contextlib.suppress(ParameterError):  # another one was first, with more
            opened(path).raise_caps(lifetime=float(lifetime))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, [3, 2, 5, 4, 7, 6, 9, 8]))
    history = [caps.lifetime for caps in opened(path).caps_history]
    assert history == sorted(history)
    assert history[-1] == 9


def test_a_copied_ledger_is_a_second_budget(tmp_path: Path) -> None:
    """As docs/collector/threat-model.md says: the ledgers of a person add up."""
    first = opened(tmp_path / "ledger", lifetime=1.0)
    shutil.copy(tmp_path / "ledger", tmp_path / "copy")
    copy = opened(tmp_path / "copy")
    first.spend("a", ONE)
    copy.spend("a", ONE)
    assert first.left == copy.left == 0
    with pytest.raises(BudgetError, match="lifetime: expected at most 1"):
        opened(tmp_path / "copy", lifetime=2.0)
