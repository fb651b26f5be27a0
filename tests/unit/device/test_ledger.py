"""The ledger: exact sums, caps per day and for life, restarts, kills while writing, damage, and wrong clocks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from datetime import date
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil import GRR, Guarantee, Ledger
from veil.errors import BudgetError, LedgerError, ParameterError
from veil.privacy import exp_below, split_epsilon

TENTH = GRR(0.1, 2).guarantee

# Written by version 0.1, which stored no caps.
OLD = """\
veil-ledger 1 3e254440c6ea6657
2026-11-16 t 0.1 - a6b3b4360f58ea94
"""


def test_ten_charges_of_a_tenth_fit_into_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=1.0)
    for _ in range(10):
        ledger.spend("t", TENTH)
    assert ledger.left <= Decimal("1e-15")
    with pytest.raises(BudgetError, match="lifetime"):
        ledger.spend("t", TENTH)
    assert len(ledger.charges) == 10


@pytest.mark.parametrize("lifetime", [0.3, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("parts", [3, 7, 11, 15, 49, 100])
def test_exact_parts_of_the_lifetime_are_all_granted_and_nothing_beyond(lifetime: float, parts: int) -> None:
    """Fifteen of `split_epsilon(1.0, 15)`: the decimals add up to more than 1, the ratios multiply to less than e."""
    part = GRR(split_epsilon(lifetime, parts), 2).guarantee
    ledger = Ledger(lifetime=lifetime, per_day=lifetime)
    for _ in range(parts):
        ledger.spend("t", part)
    assert 0 <= ledger.left <= Decimal("1e-14")
    assert all(charge.epsilon == Decimal(repr(part.epsilon)) for charge in ledger.charges)
    with pytest.raises(BudgetError, match="lifetime"):
        ledger.spend("t", part)


@pytest.mark.parametrize("lifetime", [0.5, 1.0, 2.5, 37.0])
def test_no_ratio_above_that_of_the_lifetime_is_granted(lifetime: float) -> None:
    """By exact bounds on e^lifetime: the ratio just below is granted, also in two parts, and 1e-55 more is not."""
    whole = exp_below(lifetime)
    for first in (Fraction(1), Fraction(11, 10)):
        for excess, granted in ((0, True), (Fraction(1, 10**55), False)):
            ledger = Ledger(lifetime=lifetime)
            ledger.spend("t", Guarantee(first))
            rest = Guarantee(whole / first * (1 + excess))
            if granted:
                ledger.spend("t", rest)
                assert ledger.left == 0
            else:
                with pytest.raises(BudgetError, match="lifetime"):
                    ledger.spend("t", rest)


def test_very_large_budgets_add_up() -> None:
    ledger = Ledger(lifetime=1000.0)
    for _ in range(25):
        ledger.spend("t", Guarantee.of(40.0))
    assert ledger.left == 0
    with pytest.raises(BudgetError, match="lifetime"):
        ledger.spend("t", Guarantee(Fraction(10**20 + 1, 10**20)))


def test_a_ledger_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_text(OLD)
    with pytest.raises(LedgerError, match="not a ledger of this version"):
        Ledger(path, lifetime=1.0)
    assert path.read_text() == OLD


def test_days_and_a_clock_that_was_set_back(tmp_path: Path) -> None:
    today = date(2026, 11, 15)
    ledger = Ledger(tmp_path / "ledger", lifetime=1.0, per_day=0.2, today=lambda: today)
    ledger.spend("a", TENTH)
    ledger.spend("b", TENTH)
    with pytest.raises(BudgetError, match="daily"):
        ledger.spend("c", TENTH)
    today = date(2026, 11, 16)
    ledger.spend("c", TENTH)
    today = date(2026, 11, 10)  # an earlier day must not be a fresh one
    ledger.spend("d", TENTH)
    with pytest.raises(BudgetError, match="daily"):
        ledger.spend("e", TENTH)


def test_charges_survive_a_restart(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger", lifetime=1.0).spend("t", GRR(0.7, 2).guarantee, note="memo")
    again = Ledger(tmp_path / "ledger", lifetime=1.0)
    assert [charge.note for charge in again.charges] == ["memo"]
    with pytest.raises(BudgetError):
        again.spend("t", GRR(0.4, 2).guarantee)


@pytest.mark.parametrize("guarantee", [Guarantee(None), Guarantee(Fraction(2), delta=Fraction(1, 10**9))])
def test_charges_without_a_guarantee_are_refused(guarantee: Guarantee) -> None:
    ledger = Ledger(lifetime=10.0)
    with pytest.raises(BudgetError):
        ledger.spend("t", guarantee)
    assert ledger.spent == 0


def test_deltas_add_up_exactly_and_outlive_a_restart(tmp_path: Path) -> None:
    third = Guarantee(Fraction(2), delta=Fraction(1, 3 * 10**6))
    path = tmp_path / "ledger"
    Ledger(path, lifetime=10.0, delta=1e-6).spend("t", TENTH)  # a line without a delta
    before = path.read_bytes()
    for _ in range(3):
        Ledger(path, lifetime=10.0, delta=1e-6).spend("t", third, note="memo")
    again = Ledger(path, lifetime=10.0, delta=1e-6)
    assert path.read_bytes().startswith(before)
    assert [charge.delta for charge in again.charges] == [0, *[Fraction(1, 3 * 10**6)] * 3]
    assert [charge.note for charge in again.charges] == ["", *["memo"] * 3]
    assert again.delta_left == 0
    with pytest.raises(BudgetError, match="exceed the delta of 1e-06"):
        again.spend("t", Guarantee(Fraction(2), delta=Fraction(1, 10**30)))
    with pytest.raises(BudgetError, match="grants none"):
        Ledger(path, lifetime=10.0, delta=0.0).spend("t", third)
    again.spend("t", TENTH)  # what is pure is still granted
    assert len(again.charges) == 5


def test_delta_does_not_pay_for_epsilon() -> None:
    ledger = Ledger(lifetime=0.5, delta=0.5)
    with pytest.raises(BudgetError, match="lifetime budget"):
        ledger.spend("t", Guarantee(Fraction(2), delta=Fraction(1, 10)))
    assert (ledger.spent, ledger.delta_left) == (0, Fraction(1, 2))


@pytest.mark.parametrize("delta", [-0.1, 1, 1.5, float("nan"), "small", True])
def test_deltas_are_checked(delta: object) -> None:
    with pytest.raises(ParameterError, match="delta"):
        Ledger(lifetime=1.0, delta=delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("cap", [0, -1, float("nan"), float("inf"), "much", None])
def test_caps_are_checked(cap: object) -> None:
    with pytest.raises(ParameterError):
        Ledger(lifetime=cap)  # type: ignore[arg-type]


def _next_line(path: Path) -> bytes:
    """The bytes that one more charge adds."""
    whole = path.read_bytes()
    Ledger(path, lifetime=1.0).spend("t", TENTH)
    added = path.read_bytes()[len(whole) :]
    path.write_bytes(whole)
    return added


def test_an_unfinished_line_was_never_granted(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path, lifetime=1.0)
    ledger.spend("t", TENTH)
    whole = path.read_bytes()
    second = _next_line(path)
    for cut in range(1, len(second) - 1):  # all of it but the last byte would be a line that lost its end: refused
        path.write_bytes(whole + second[:cut])
        assert len(Ledger(path, lifetime=1.0).charges) == 1
        assert path.read_bytes() == whole


def test_damage_is_refused_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger(path, lifetime=1.0)
    for _ in range(3):
        ledger.spend("task", TENTH)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(bytes(damaged))
        with pytest.raises(LedgerError):
            Ledger(path, lifetime=1.0)
    for lost in (whole[:-1], whole.splitlines(keepends=True)[0] + whole.splitlines(keepends=True)[2]):
        path.write_bytes(lost)  # the end of the last line, or a whole line in between
        with pytest.raises(LedgerError):
            Ledger(path, lifetime=1.0)


@pytest.mark.parametrize("foreign", [b"", b"something else\n", b"no newline", b"line\nlast line", bytes(100)])
def test_foreign_files_are_refused_and_left_alone(tmp_path: Path, foreign: bytes) -> None:
    path = tmp_path / "key.bin"
    path.write_bytes(foreign)
    with pytest.raises(LedgerError):
        Ledger(path, lifetime=1.0)
    assert path.read_bytes() == foreign


@pytest.mark.parametrize("where", [None, "ledger"])
def test_text_that_a_journal_cannot_hold_is_refused_before_it_is_written(tmp_path: Path, where: str | None) -> None:
    ledger = Ledger(None if where is None else tmp_path / where, lifetime=1.0)
    for task, note in (("my task", ""), ("task", "a note"), ("", ""), ("task", "line\nbreak")):
        with pytest.raises(ParameterError):
            ledger.spend(task, TENTH, note)
    assert ledger.charges == []


def test_sums_do_not_depend_on_the_ambient_decimal_context() -> None:
    ledger = Ledger(lifetime=1.0)
    with localcontext() as context:
        context.prec = 2
        ledger.spend("t", GRR(0.99, 2).guarantee)
        ledger.spend("t", GRR(0.004, 2).guarantee)
        ledger.spend("t", GRR(0.004, 2).guarantee)
        with pytest.raises(BudgetError):
            ledger.spend("t", GRR(0.004, 2).guarantee)


def test_a_charge_does_not_print_what_recognises_the_answer() -> None:
    ledger = Ledger(lifetime=1.0)
    ledger.spend("t", TENTH, note="recognise-me")
    assert "recognise" not in repr(ledger.charges)


def test_a_ledger_that_cannot_be_opened_spends_nothing(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "ledger", lifetime=1.0)


def test_a_full_disk_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=1.0)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(LedgerError, match="No space"):
            ledger.spend("t", TENTH)
    assert ledger.spent == 0


SPENDER = """
    import sys
    from veil import GRR, Ledger
    ledger = Ledger(sys.argv[1], lifetime=1000.0)
    guarantee = GRR(0.001, 2).guarantee
    for i in range(10**9):
        ledger.spend("task", guarantee, note=str(i))
        print(i, flush=True)
"""


@pytest.mark.parametrize("pause", [0.05, 0.13, 0.31])
def test_kill_while_writing_loses_no_granted_charge(tmp_path: Path, pause: float) -> None:
    path = tmp_path / "ledger"
    script = textwrap.dedent(SPENDER)
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"0\n"
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    granted = [0, *(int(line) for line in process.stdout.read().splitlines())]
    process.stdout.close()
    process.wait()
    kept = [int(charge.note) for charge in Ledger(path, lifetime=1000.0).charges]
    assert kept[: len(granted)] == granted
    assert len(kept) - len(granted) <= 1  # at most the one charge that was written and not yet told


def test_the_highest_wave_of_each_name_and_key_is_kept(tmp_path: Path) -> None:
    path, today = tmp_path / "ledger", date(2026, 11, 19)
    key, other = bytes(32), bytes([1] * 32)
    for ledger in (Ledger(lifetime=1.0), Ledger(path, lifetime=1.0, per_day=0.1, today=lambda: today)):
        seen = [ledger.see_wave(key, "drinks", wave) for wave in (2, 1, 2, 10, 9)]
        assert seen == [2, 2, 2, 10, 10]
        assert ledger.see_wave(other, "drinks", 1) == ledger.see_wave(key, "drinks-2", 1) == 1
        assert (ledger.charges, ledger.spent, ledger.left) == ([], 0, 1)
    again = Ledger(path, lifetime=1.0, per_day=0.1, today=lambda: today)
    assert (again.see_wave(key, "drinks", 3), again.see_wave(other, "drinks", 3)) == (10, 3)
    again.spend("t", TENTH)  # what was seen has no day, and takes nothing from the budget of one
    assert [charge.day for charge in again.charges] == [today]


def test_a_wave_that_was_being_written_is_seen_or_not(tmp_path: Path) -> None:
    path, key = tmp_path / "ledger", bytes(32)
    ledger = Ledger(path, lifetime=1.0)
    ledger.see_wave(key, "drinks", 1)
    ledger.spend("t", TENTH)
    before = path.stat().st_size
    ledger.see_wave(key, "drinks", 2)
    whole = path.read_bytes()
    for size in range(before, len(whole) - 1):  # a line that is whole but for its end is damage
        path.write_bytes(whole[:size])
        again = Ledger(path, lifetime=1.0)
        assert (again.spent, again.see_wave(key, "drinks", 1)) == (Decimal("0.1"), 1)
    path.write_bytes(whole)
    assert Ledger(path, lifetime=1.0).see_wave(key, "drinks", 1) == 2


def test_two_processes_share_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    script = textwrap.dedent("""
        import sys
        from veil import GRR, Ledger
        from veil.errors import BudgetError
        ledger, granted = Ledger(sys.argv[1], lifetime=5.0), 0
        try:
            while True:
                ledger.spend("task", GRR(0.1, 2).guarantee)
                granted += 1
        except BudgetError:
            print(granted)
    """)
    running = [subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) for _ in range(2)]
    granted = sum(int(process.communicate()[0]) for process in running)
    assert granted == 50


# -- a clock that was wrong --------------------------------------------------------------------------------------------

NOW, WRONG = date(2026, 11, 19), date(9999, 12, 31)


class Clocked:
    """A ledger on a device whose clock can be set."""

    def __init__(self, path: Path | None, per_day: float | None = 0.2) -> None:
        self.day = NOW
        self.ledger = Ledger(path, lifetime=100.0, per_day=per_day, today=lambda: self.day)

    def left_today(self) -> Decimal:
        return Decimal("0.2") - self.ledger.spent_today


@pytest.mark.parametrize("where", [None, "ledger"])
def test_a_ledger_once_set_to_the_year_9999_says_so_and_is_moved_back(tmp_path: Path, where: str | None) -> None:
    device = Clocked(None if where is None else tmp_path / where)
    device.day = WRONG
    device.ledger.spend("a", TENTH)
    device.day = NOW
    device.ledger.spend("b", TENTH)
    with pytest.raises(BudgetError, match=r"ledger is at 9999-12-31 and this device's clock at 2026-11-19.*move_clock"):
        device.ledger.spend("c", TENTH)
    assert device.ledger.day == WRONG
    assert device.ledger.move_clock_back() == device.ledger.day == NOW
    assert (device.ledger.spent, len(device.ledger.charges)) == (Decimal("0.2"), 2)
    with pytest.raises(BudgetError, match=r"daily budget of 0\.2$"):  # what was spent in the year 9999 counts today
        device.ledger.spend("c", TENTH)
    device.day = date(2026, 11, 20)
    device.ledger.spend("c", TENTH)
    device.day = WRONG  # the day there is as spent as it was
    with pytest.raises(BudgetError, match="daily"):
        device.ledger.spend("d", TENTH)
    if where is not None:
        again = Ledger(tmp_path / where, lifetime=100.0, per_day=0.2, today=lambda: date(2026, 11, 21))
        assert (again.day, again.spent_today, len(again.charges)) == (date(2026, 11, 21), 0, 3)


def test_a_wrong_day_without_a_daily_budget_blocks_nothing() -> None:
    device = Clocked(None, per_day=None)
    device.day = WRONG
    device.ledger.spend("a", TENTH)
    device.day = NOW
    device.ledger.spend("b", TENTH)
    assert device.ledger.charges[-1].day == WRONG


@pytest.mark.parametrize("to", [date(2026, 11, 19), date(2026, 11, 20), WRONG])
def test_a_clock_is_only_moved_back(to: date) -> None:
    device = Clocked(None)
    with pytest.raises(ParameterError, match="expected a day before"):
        device.ledger.move_clock_back(to)  # there is nothing on record
    device.ledger.spend("a", TENTH)
    with pytest.raises(ParameterError, match="expected a day before 2026-11-19"):
        device.ledger.move_clock_back(to)
    assert device.ledger.spent_today == Decimal("0.1")


@pytest.mark.parametrize("where", [None, "ledger"])
def test_a_move_to_a_day_that_is_over_returns_no_budget(tmp_path: Path, where: str | None) -> None:
    device = Clocked(None if where is None else tmp_path / where)
    device.day = date(2026, 11, 20)
    for _ in range(2):
        device.ledger.spend("a", TENTH)
    device.day = NOW
    with pytest.raises(ParameterError, match="expected this device's day, 2026-11-19, or a later one, got 2026-11-18"):
        device.ledger.move_clock_back(date(2026, 11, 18))
    with pytest.raises(BudgetError, match="daily"):
        device.ledger.spend("b", TENTH)


@given(st.lists(st.tuples(st.sampled_from(["clock", "spend", "move"]), st.integers(0, 5)), max_size=30))
def test_moving_the_clock_back_never_returns_budget(steps: list[tuple[str, int]]) -> None:
    """At the moment of a move less is left or the same; no day is granted twice; a lifetime is not touched."""
    device, start = Clocked(None), NOW.toordinal()
    for step, number in steps:
        if step == "clock":
            device.day = date.fromordinal(start + number)
        elif step == "spend":
            with contextlib.suppress(BudgetError):
                device.ledger.spend("t", TENTH)
        else:
            left, spent = device.left_today(), device.ledger.spent
            with contextlib.suppress(ParameterError):
                device.ledger.move_clock_back(date.fromordinal(start + number))
            assert device.left_today() <= left
            assert device.ledger.spent == spent
    by_day = Counter(charge.day for charge in device.ledger.charges)
    assert all(count <= 2 for count in by_day.values())


def test_rival_that_forgets_later_days_is_caught() -> None:
    """The rival of the property: with charges counted on their own day alone, a move returns budget at once."""
    device = Clocked(None)
    device.day = date(2026, 11, 20)
    for _ in range(2):
        device.ledger.spend("t", TENTH)
    left = device.left_today()
    device.day = NOW
    device.ledger.move_clock_back()
    own = [charge for charge in device.ledger.charges if charge.day == NOW]
    assert device.left_today() == left == 0
    assert Decimal("0.2") - sum((charge.cost for charge in own), Decimal(0)) > left


def test_one_survey_has_a_cap_of_its_own_beside_the_lifetime(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", lifetime=10.0, per_survey=1.0)
    one, half = GRR(1.0, 2).guarantee, GRR(0.5, 2).guarantee
    ledger.spend("first", half)
    ledger.spend("first", half)
    with pytest.raises(BudgetError, match="one survey"):
        ledger.spend("first", half)
    ledger.spend("second", one)
    with pytest.raises(BudgetError, match="one survey"):
        ledger.check(GRR(1.1, 2).guarantee)
    with pytest.raises(ParameterError, match="budget"):
        Ledger(lifetime=1.0, per_survey=0.0)


def test_the_first_price_of_a_series_lasts_and_is_no_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    cheap, dear = GRR(1.0, 2).guarantee, GRR(2.0, 2).guarantee
    with pytest.raises(BudgetError, match="lifetime budget"):
        Ledger(path, lifetime=9.0).accept_price("here:drinks", GRR(9.5, 2).guarantee)
    Ledger(path, lifetime=9.0).accept_price("here:drinks", cheap)
    ledger = Ledger(path, lifetime=9.0)
    ledger.accept_price("here:drinks", cheap)
    ledger.accept_price("there:drinks", dear)
    assert (ledger.charges, ledger.spent) == ([], 0)
    with pytest.raises(BudgetError, match="per_survey"):
        ledger.accept_price("here:drinks", dear)
    with pytest.raises(BudgetError, match="per_survey: expected none"):  # it would lift the rule: a raise
        Ledger(path, lifetime=9.0, per_survey=9.0)
    ledger.raise_caps(per_survey=9.0)
    ledger.accept_price("here:drinks", dear)
