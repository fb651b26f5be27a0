"""The budget that a person has spent, in a file on their device. It fails closed: when in doubt, nothing is spent.

The file is a journal of charges and caps (`veil.device.ledger_file`), flushed to the disk before a charge counts. The
last line about caps is in force, for all processes that share the file. Once an answer is delivered, `forget` writes
the file anew without what recognises and repeats it; its charge stays.

Ratios multiply, so their logarithms add: a charge costs ln(ratio) of the exact guarantee, rounded up at the 70th place,
and costs are added exactly. Ten charges of 0.1 are within 1, and so are fifteen of `split_epsilon(1.0, 15)`, although
fifteen times its decimal is not.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from pathlib import Path

from veil.device.ledger_file import CAPS, Caps, Charge, append, create, open_locked, read, read_asked, rewrite, shown
from veil.errors import AnsweredError, BudgetError, LedgerError, ParameterError
from veil.privacy import Guarantee, fraction_text, ln_above, read_fraction
from veil.tools.processes import ProcessLock, process_mark

_WAVE = "wave:"  # begins the name of a note about waves; a task id has 64 hex digits
_PRICE = "price:"  # begins the name of a note of what the first answer to a series of surveys cost
ANSWERED = "answered:"  # begins the name of a note of which round of a study was answered: its number, task and mark
_CLOCK = "clock:"  # the name of a note that moves the ledger's day back; the note is the day before
_LASTING = ("report", "person")  # before a task, the names of notes of answers that are given again and again
_EXACT = Context(prec=200, traps=[Inexact, InvalidOperation])  # the ambient context may round


def _today() -> date:
    return datetime.now(UTC).date()


class Ledger:
    """A budget of epsilon over a lifetime and per day (UTC), kept in a file or, without a path, in memory.

    `per_survey` is for all answers to one task together. `delta` is what all answers together may have of it over the
    lifetime. Default: 0, pure guarantees only.

    A new file stores these caps. Opening it again with a smaller cap lowers that cap for good, with a larger one is
    refused (`BudgetError`), and a cap that is not stated stays as it is stored: `Ledger(path)` changes nothing. Only
    `raise_caps` raises.

    >>> ledger = Ledger(lifetime=1.0, per_day=0.5)
    >>> ledger.spend("a-task", Guarantee(ratio=None))
    Traceback (most recent call last):
    ...
    veil.errors.BudgetError: this task promises nothing on its own: it needs a shuffler
    >>> from veil import GRR
    >>> ledger.spend("a-task", GRR(epsilon=0.5, domain=2).guarantee)
    >>> ledger.left
    Decimal('0.5')
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        lifetime: float | None = None,
        per_day: float | None = None,
        per_survey: float | None = None,
        delta: float | None = None,
        today: Callable[[], date] = _today,
    ) -> None:
        asked = read_asked(lifetime, per_day, per_survey, delta)
        self._path = None if path is None else Path(path)
        self._today = today
        self._memory: list[Charge] = []
        self._thread, self._process = ProcessLock(), process_mark()
        if self._path is None:
            self._memory.append(_noted_caps(Caps.created(asked, today())))
        elif not self._path.exists():
            create(self._path, _noted_caps(Caps.created(asked, today())))
        self._set_caps(lambda caps: caps.opened(asked, today()))  # damage is refused now, not with the first answer

    @property
    def today(self) -> date:
        """The day on which an answer given now counts (UTC)."""
        return self._today()

    @property
    def caps(self) -> Caps:
        """The caps in force. They may have been changed by another process."""
        return self.caps_history[-1]

    @property
    def caps_history(self) -> list[Caps]:
        """All caps since the ledger was created, with their days: the last ones are in force."""
        with self._locked() as file:
            return _all_caps(self._charges(file)[0])

    @property
    def lifetime(self) -> Decimal:
        """Epsilon granted for a lifetime."""
        return self.caps.lifetime

    @property
    def per_day(self) -> Decimal | None:
        """Epsilon granted per day (UTC), if there is such a cap."""
        return self.caps.per_day

    @property
    def per_survey(self) -> Decimal | None:
        """Epsilon granted for all answers to one survey together, if there is such a cap."""
        return self.caps.per_survey

    @property
    def delta(self) -> Fraction:
        """Delta granted for a lifetime."""
        return self.caps.delta

    @property
    def charges(self) -> list[Charge]:
        """All charges and notes, without caps, waves that were seen, prices of series and moves of the clock."""
        own = (CAPS, _WAVE, _PRICE, _CLOCK)
        with self._locked() as file:
            return [charge for charge in self._charges(file)[0] if not charge.task.startswith(own)]

    @property
    def day(self) -> date:
        """The day on which the next answer counts: the device's, or the latest on record if that is later."""
        with self._locked() as file:
            return _latest(self._charges(file)[0], self._today())

    @property
    def spent_today(self) -> Decimal:
        """Epsilon that counts on the ledger's `day`, rounded up to the decimal of a double."""
        with self._locked() as file:
            charges = self._charges(file)[0]
            return shown(_total(_counted(charges, _latest(charges, self._today()))))

    @property
    def spent(self) -> Decimal:
        """Epsilon spent over the lifetime, rounded up to the decimal of a double."""
        return shown(_total(self.charges))

    @property
    def left(self) -> Decimal:
        """Epsilon left over the lifetime."""
        return _EXACT.subtract(self.lifetime, self.spent)

    @property
    def delta_left(self) -> Fraction:
        """Delta left over the lifetime."""
        return self.delta - _total_delta(self.charges)

    @property
    def path(self) -> Path | None:
        """Where it is kept; None for one in memory."""
        return self._path

    def check(self, guarantee: Guarantee) -> None:
        """Refuse a promise that this budget would not grant even if nothing were spent yet."""
        self._granted([_noted_caps(self.caps)], self._asked("task", guarantee, ""))

    def spend(self, task: str, guarantee: Guarantee, note: str = "") -> None:
        """Pay for one answer, durably, or refuse. Call it before the answer leaves the device."""
        asked = self._asked(task, guarantee, note)
        self._add(lambda charges: None, lambda charges: self._granted(charges, asked))

    def spend_once(self, task: str, guarantee: Guarantee, mark: str, kept: str, *, changed: bool = False) -> str:
        """Pay for one answer, unless one with this mark is paid for already. Returns what is kept of the one that is.

        To look and to pay are one step, for all threads and processes that share the ledger: of several that draw the
        same answer at once, one pays, and all of them get what that one drew. Where an earlier answer was forgotten,
        nobody can tell whether this is the same one: raises `AnsweredError`, unless `changed` says that it is another.
        """
        asked = self._asked(task, guarantee, f"{mark}:{kept}")

        def paid(charges: list[Charge]) -> str | None:
            _check_answered(charges, task, mark, changed=changed)
            return _paid(charges, task, mark)

        found = self._add(paid, lambda charges: self._granted(charges, asked))
        return kept if found is None else found

    def check_answered(self, task: str, mark: str, *, changed: bool = False) -> None:
        """Refuse an answer as `spend_once` would because of earlier ones, before it is drawn."""
        _check_answered(self.charges, task, mark, changed=changed)

    def forget(self, task: str, kept: str | None = None) -> None:
        """Forget what recognises and repeats an answer: when it was delivered, or refused for good. Its charge stays.

        The file is written anew without it, and takes the old one's place. Without `kept`, forgets all answers to a
        task: when its survey is closed.
        """
        with self._locked() as file:
            charges, _ = self._charges(file)
            marks = _marks(charges, task, kept)
            left = [_forgotten(charge, task, marks) for charge in charges if kept or not _is_lasting(charge, task)]
            if left == charges:
                return
            if self._path is None:
                self._memory = left
            else:
                rewrite(Path(os.path.realpath(self._path)), left)

    def raise_caps(
        self,
        *,
        lifetime: float | None = None,
        per_day: float | None = None,
        per_survey: float | None = None,
        delta: float | None = None,
    ) -> Caps:
        """Raise caps, durably, and record it with the day. Call it only when the person says so. Returns the new caps.

        A cap per survey that is stated for the first time is a raise, too: with it, a name's later survey may cost more
        than the first answer under that name.
        """
        asked = read_asked(lifetime, per_day, per_survey, delta)
        return self._set_caps(lambda caps: caps.raised(asked, self._today()))

    def recall(self, task: str, mark: str) -> str | None:
        """What was kept when the answer with this mark was paid for; None if it never was."""
        return _paid(self.charges, task, mark)

    def kept(self, task: str) -> list[str]:
        """What was kept of all answers to this task that were paid for, the first one first."""
        notes = (charge.note.partition(":") for charge in self.charges if charge.task == task)
        return [kept for _, mark, kept in notes if mark]

    def holds(self, kept: str) -> bool:
        """Whether this was kept of an answer, paid for or noted at no cost."""
        return any(charge.note == kept or charge.note.endswith(f":{kept}") for charge in self.charges)

    def noted(self, name: str) -> str | None:
        """The note that is kept under a name; None if there is none."""
        return _noted(self.charges, name)

    def remember(self, name: str, note: str) -> str:
        """Keep a note under a name, durably and at no cost. The first one stays: returns the one that is kept."""
        asked = Charge(self._today(), _checked_text(name), Decimal(0), _checked_text(note))
        found = self._add(lambda charges: _noted(charges, name), lambda charges: asked)
        return note if found is None else found

    def see_wave(self, key: bytes, name: str, wave: int) -> int:
        """Record durably that this device has seen a wave of a name, signed with `key`. Return the highest one seen.

        The line has no day: looking at a survey must not move the day on which budgets count.
        """
        seen = Charge(date.min, _checked_text(f"{_WAVE}{key.hex()}:{name}"), Decimal(0), str(wave))

        def recorded(charges: list[Charge]) -> str | None:
            highest = max((int(charge.note) for charge in charges if charge.task == seen.task), default=0)
            return str(highest) if highest >= wave else None

        return int(self._add(recorded, lambda charges: seen) or wave)

    def accept_price(self, series: str, guarantee: Guarantee) -> None:
        """Refuse an answer that costs more than the first one to this series of surveys. Record the price of the first.

        Where there is a cap `per_survey`, that decides instead: it says what a person grants.
        """
        asked = self._asked(f"{_PRICE}{series}", guarantee, "")
        price = f"{asked.cost:f}:{fraction_text(asked.delta)}"

        def new_price(charges: list[Charge]) -> Charge:
            self._granted(charges, asked)  # an answer that is refused sets no price
            return Charge(date.min, asked.task, Decimal(0), price)

        first = self._add(lambda charges: _noted(charges, asked.task), new_price)
        if first is None or self.caps.per_survey is not None:
            return
        cost, _, delta = first.partition(":")
        if asked.cost > Decimal(cost) or asked.delta > read_fraction(delta):
            raise BudgetError(
                f"an answer costs eps {asked.epsilon} and delta {float(asked.delta):g}; to the first survey of this"
                f" name it cost {shown(Decimal(cost))} and {float(read_fraction(delta)):g}. To answer all the"
                " same, set what one survey may cost: veil ledger raise --per-survey, or raise_caps(per_survey=...)"
            )

    def move_clock_back(self, to: date | None = None) -> date:
        """Set the ledger's day back, by default to the device's, after a wrong clock has set it forward.

        Durable, and returns no budget: charges of later days count on the day `to` as well as on their own. Call it
        only when a person says that the ledger's day is wrong. Returns the ledger's new day.
        """
        today = self._today()
        day = today if to is None else to
        if day < today:  # charges of later days would count on a day that is over, and not today
            raise ParameterError(f"to: expected this device's day, {today}, or a later one, got {day}")

        def moved(charges: list[Charge]) -> Charge:
            latest = _latest(charges, date.min)
            if not day < latest:
                raise ParameterError(f"to: expected a day before {latest}, the ledger's latest, got {day}")
            return Charge(day, _CLOCK, Decimal(0), latest.isoformat())

        self._add(lambda charges: None, moved)
        return self.day

    def _set_caps(self, change: Callable[[Caps], Caps]) -> Caps:
        """Record caps in place of those in force, if they differ."""
        with self._locked() as file:
            charges, last = self._charges(file)
            caps = _all_caps(charges)[-1]
            new = change(caps)
            if new != caps:
                self._append(file, _noted_caps(new), last)
            return new

    def _asked(self, task: str, guarantee: Guarantee, note: str) -> Charge:
        if guarantee.ratio is None:
            raise BudgetError("this task promises nothing on its own: it needs a shuffler")
        cost = ln_above(guarantee.ratio)
        return Charge(self._today(), _checked_text(task), cost, note and _checked_text(note), guarantee.delta)

    def _add(self, known: Callable[[list[Charge]], str | None], new: Callable[[list[Charge]], Charge]) -> str | None:
        """What is known of it; or None, after a new charge was written. Nobody else reads or writes in between."""
        with self._locked() as file:
            charges, last = self._charges(file)
            found = known(charges)
            if found is None:
                self._append(file, new(charges), last)
            return found

    def _append(self, file: int | None, charge: Charge, last: str) -> None:
        if file is None:
            self._memory.append(charge)
        else:
            append(file, charge, last)

    def _charges(self, file: int | None) -> tuple[list[Charge], str]:
        return (list(self._memory), "") if file is None else read(file)

    def _granted(self, charges: list[Charge], asked: Charge) -> Charge:
        caps = _all_caps(charges)[-1]
        day = _latest(charges, asked.day)
        if asked.delta and not caps.delta:
            raise BudgetError("this task promises its eps only up to a delta, and this ledger grants none")
        if asked.delta and _total_delta(charges) + asked.delta > caps.delta:
            raise BudgetError(f"this answer would exceed the delta of {float(caps.delta):g} granted for a lifetime")
        if _total([*charges, asked]) > caps.lifetime:
            raise BudgetError(f"this answer would exceed the lifetime budget of {caps.lifetime}")
        mine = [charge for charge in charges if charge.task == asked.task]
        if caps.per_survey is not None and _total([*mine, asked]) > caps.per_survey:
            raise BudgetError(f"this answer would exceed the budget of {caps.per_survey} for one survey")
        if caps.per_day is not None and _total([*_counted(charges, day), asked]) > caps.per_day:
            ahead = "" if day == asked.day else _ahead(day, asked.day)
            raise BudgetError(f"this answer would exceed the daily budget of {caps.per_day}{ahead}")
        return replace(asked, day=day)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int | None]:
        """The open file, or None for one in memory, for this thread of this process alone."""
        with self._thread:
            if self._path is None:
                if self._process != process_mark():
                    raise LedgerError(
                        "this ledger is in another process's memory, so nothing is spent: expected a file"
                    )
                yield None
                return
            try:
                file = open_locked(self._path)
            except OSError as problem:
                raise LedgerError(f"the ledger cannot be opened, so nothing is spent: {problem.strerror}") from None
            try:
                yield file
            finally:
                os.close(file)


def _checked_text(text: str) -> str:
    if not text or not text.isprintable() or " " in text:
        raise ParameterError("a task and a note in the ledger are text without spaces")
    return text


def _noted_caps(caps: Caps) -> Charge:
    """Return the line of caps. It has no day of its own, which would move the day on which budgets count."""
    return Charge(date.min, CAPS, Decimal(0), caps.text())


def _all_caps(charges: list[Charge]) -> list[Caps]:
    return [Caps.from_text(charge.note) for charge in charges if charge.task == CAPS]


def _check_answered(charges: list[Charge], task: str, mark: str, *, changed: bool) -> None:
    notes = [charge.note for charge in charges if charge.task == task and charge.cost > 0]
    if "" in notes and not changed and not any(note.startswith(f"{mark}:") for note in notes):
        raise AnsweredError(
            "this survey was answered, and the answer is forgotten since it was delivered or refused: a changed answer"
            " is one more report, and is paid for again (changed)"
        )


def _marks(charges: list[Charge], task: str, kept: str | None) -> set[str]:
    """Return the marks of the answers to a task that were paid for, or of the one with this kept."""
    notes = (charge.note.partition(":") for charge in charges if charge.task == task and charge.cost > 0)
    return {mark for mark, _, its in notes if mark and kept in (None, its)}


def _forgotten(charge: Charge, task: str, marks: set[str]) -> Charge:
    """Return a charge or a note without what recognises and repeats an answer, if it has one of the marks."""
    mark = charge.note.partition(":")[0]
    if charge.task == task and charge.cost > 0 and mark in marks:
        return replace(charge, note="")
    round_, _, mark = charge.note.rpartition(":")
    if charge.task.startswith(ANSWERED) and mark in marks:
        return replace(charge, note=round_)
    return charge


def _is_lasting(charge: Charge, task: str) -> bool:
    """Whether it is a note about one person's answers to a task over time."""
    kind, _, rest = charge.task.partition(":")
    return kind in _LASTING and rest.partition(":")[0] == task


def _latest(charges: list[Charge], today: date) -> date:
    """Return the day on which an answer counts. A clock that was set back must not open a day again."""
    moves = [i for i, charge in enumerate(charges) if charge.task == _CLOCK]
    return max([today, *(charge.day for charge in charges[moves[-1] if moves else 0 :])])


def _counted(charges: list[Charge], day: date) -> list[Charge]:
    """Return the charges that count on a day: its own, and those of later days before a move back to it."""
    moves = [i for i, charge in enumerate(charges) if charge.task == _CLOCK and charge.day == day]
    last = moves[-1] if moves else 0
    return [charge for i, charge in enumerate(charges) if charge.day == day or (i < last and charge.day > day)]


def _ahead(day: date, today: date) -> str:
    return (
        f"; the ledger is at {day} and this device's clock at {today}, and no new day begins before the ledger's is"
        " over. If the ledger's day is wrong, move it back: veil ledger move-clock-back, or Ledger.move_clock_back()"
    )


def _noted(charges: list[Charge], name: str) -> str | None:
    return next((charge.note for charge in charges if charge.task == name), None)


def _paid(charges: list[Charge], task: str, mark: str) -> str | None:
    notes = (charge.note for charge in charges if charge.task == task)
    return next((note.removeprefix(f"{mark}:") for note in notes if note.startswith(f"{mark}:")), None)


def _total(charges: list[Charge]) -> Decimal:
    return functools.reduce(_EXACT.add, (charge.cost for charge in charges), Decimal(0))


def _total_delta(charges: list[Charge]) -> Fraction:
    return sum((charge.delta for charge in charges), start=Fraction(0))
