"""What a person has spent, in a file on their device. It fails closed: when in doubt, nothing is spent.

The file is a journal: one line per charge, each with a checksum that covers all lines before it, flushed to the disk
before the charge counts. A process killed while writing leaves at most an unfinished last line, of a charge that was
never granted. Any other damage, an empty file and a foreign one are refused.

Ratios multiply, so their logarithms add: a charge costs ln(ratio) of what was really promised, rounded up at the 70th
place, and costs are added exactly. Ten charges of 0.1 are within 1, and so are fifteen of `split_epsilon(1.0, 15)`,
although fifteen times its decimal is not. A line of an older version has a shorter decimal, and counts as what it says.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from pathlib import Path

from veil.errors import BudgetError, LedgerError, ParameterError
from veil.privacy import Guarantee, decimal_text, fraction_text, ln_above, read_fraction
from veil.tools.durable import make_private, open_regular, write_secret
from veil.tools.processes import ProcessLock, process_mark

try:
    import fcntl
except ImportError:  # not on Windows: one process per ledger there
    fcntl = None  # type: ignore[assignment]

__all__ = ["Charge", "Ledger"]

_HEADER = "veil-ledger 1"
_WAVE = "wave:"  # begins the name of a note about waves; a task id has 64 hex digits
_PRICE = "price:"  # begins the name of a note of what the first answer to a series of surveys cost
_CLOCK = "clock:"  # the name of a note that moves the ledger's day back; the note is the day before
_EXACT = Context(prec=200, traps=[Inexact, InvalidOperation])  # the ambient context may round


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Charge:
    """One answer that was paid for: when, for which task, how much, and a note (the client's memory of its answer).

    `cost` is ln(ratio) of what was promised, rounded up at the 70th place. A note that was kept at no cost has its name
    in place of a task, and a cost of 0.
    """

    day: date
    task: str
    cost: Decimal
    note: str = field(default="", repr=False)  # it recognises an answer, so it is not for printing
    delta: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Decimal:
        """The cost for people to read: rounded up to the decimal of a double."""
        return _shown(self.cost)


class Ledger:
    """A budget of epsilon over a lifetime and per day (UTC), kept in a file or, without a path, in memory.

    `per_survey` is for all answers to one task together. `delta` is what all answers together may have of it over the
    lifetime. Default: 0, pure guarantees only.

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
        lifetime: float,
        per_day: float | None = None,
        per_survey: float | None = None,
        delta: float = 0.0,
        today: Callable[[], date] = _today,
    ) -> None:
        self.lifetime = Decimal(decimal_text(_check_cap(lifetime)))
        self.per_day = None if per_day is None else Decimal(decimal_text(_check_cap(per_day)))
        self.per_survey = None if per_survey is None else Decimal(decimal_text(_check_cap(per_survey)))
        if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
            raise ParameterError("a delta is at least 0 and below 1")
        self.delta = Fraction(decimal_text(delta))
        self._path = None if path is None else Path(path)
        self._today = today
        self._memory: list[Charge] = []
        self._thread, self._process = ProcessLock(), process_mark()
        if self._path is not None:
            _create(self._path)
            with self._locked() as file:
                self._charges(file)  # damage is refused now, not with the first answer

    @property
    def today(self) -> date:
        """The day on which an answer given now counts (UTC)."""
        return self._today()

    @property
    def charges(self) -> list[Charge]:
        """All charges and notes, without waves that this device has seen, prices of series and moves of the clock."""
        with self._locked() as file:
            return [charge for charge in self._charges(file)[0] if not charge.task.startswith((_WAVE, _PRICE, _CLOCK))]

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
            return _shown(_total(_counted(charges, _latest(charges, self._today()))))

    @property
    def spent(self) -> Decimal:
        """Epsilon spent over the lifetime, rounded up to the decimal of a double."""
        return _shown(_total(self.charges))

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
        self._granted([], self._asked("task", guarantee, ""))

    def spend(self, task: str, guarantee: Guarantee, note: str = "") -> None:
        """Pay for one answer, durably, or refuse. Call it before the answer leaves the device."""
        asked = self._asked(task, guarantee, note)
        self._add(lambda charges: None, lambda charges: self._granted(charges, asked))

    def spend_once(self, task: str, guarantee: Guarantee, mark: str, kept: str) -> str:
        """Pay for one answer, unless one with this mark is paid for already. Returns what is kept of the one that is.

        To look and to pay are one step, for all threads and processes that share the ledger: of several that draw the
        same answer at once, one pays, and all of them get what that one drew.
        """
        asked = self._asked(task, guarantee, f"{mark}:{kept}")
        found = self._add(lambda charges: _paid(charges, task, mark), lambda charges: self._granted(charges, asked))
        return kept if found is None else found

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
        noted = Charge(date.min, asked.task, Decimal(0), price)
        first = self._add(lambda charges: _noted(charges, asked.task), lambda charges: noted)
        if first is None or self.per_survey is not None:
            return
        cost, _, delta = first.partition(":")
        if asked.cost > Decimal(cost) or asked.delta > read_fraction(delta):
            raise BudgetError(
                f"an answer costs eps {asked.epsilon} and delta {float(asked.delta):g}; to the first survey of this"
                f" name it cost {_shown(Decimal(cost))} and {float(read_fraction(delta)):g}. To answer all the"
                " same, state what one survey may cost (per_survey)"
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
                charge = new(charges)
                if file is None:
                    self._memory.append(charge)
                else:
                    _write(file, _line(_text(charge), last))
            return found

    def _charges(self, file: int | None) -> tuple[list[Charge], str]:
        return (list(self._memory), "") if file is None else _read(file)

    def _granted(self, charges: list[Charge], asked: Charge) -> Charge:
        day = _latest(charges, asked.day)
        if asked.delta and not self.delta:
            raise BudgetError("this task promises its eps only up to a delta, and this ledger grants none")
        if asked.delta and _total_delta(charges) + asked.delta > self.delta:
            raise BudgetError(f"this answer would exceed the delta of {float(self.delta):g} granted for a lifetime")
        if _total([*charges, asked]) > self.lifetime:
            raise BudgetError(f"this answer would exceed the lifetime budget of {self.lifetime}")
        mine = [charge for charge in charges if charge.task == asked.task]
        if self.per_survey is not None and _total([*mine, asked]) > self.per_survey:
            raise BudgetError(f"this answer would exceed the budget of {self.per_survey} for one survey")
        if self.per_day is not None and _total([*_counted(charges, day), asked]) > self.per_day:
            ahead = "" if day == asked.day else _ahead(day, asked.day)
            raise BudgetError(f"this answer would exceed the daily budget of {self.per_day}{ahead}")
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
                file = open_regular(self._path, os.O_RDWR)
            except OSError as problem:
                raise LedgerError(f"the ledger cannot be opened, so nothing is spent: {problem.strerror}") from None
            try:
                make_private(file)  # one that was copied here may be open to others
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)


def _check_cap(epsilon: float) -> float:
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < math.inf:
        raise ParameterError("a budget is a finite epsilon above 0")
    return float(epsilon)


def _checked_text(text: str) -> str:
    if not text or not text.isprintable() or " " in text:
        raise ParameterError("a task and a note in the ledger are text without spaces")
    return text


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


def _shown(cost: Decimal) -> Decimal:
    """The smallest decimal of a double that is not below the cost."""
    nearest = float(cost)
    candidates = (math.nextafter(nearest, 0.0), nearest, math.nextafter(nearest, math.inf))
    return next(shown for x in candidates if (shown := Decimal(decimal_text(x))) >= cost)


def _total_delta(charges: list[Charge]) -> Fraction:
    return sum((charge.delta for charge in charges), start=Fraction(0))


def _text(charge: Charge) -> str:
    delta = f" {fraction_text(charge.delta)}" if charge.delta else ""
    return f"{charge.day.isoformat()} {charge.task} {charge.cost:f} {charge.note or '-'}{delta}"


def _line(text: str, before: str) -> bytes:
    """A line of the journal; its checksum covers the one before it."""
    return f"{text} {hashlib.sha256(f'{before} {text}'.encode()).hexdigest()[:16]}\n".encode()


def _create(path: Path) -> None:
    """A new ledger appears with its header in it: an empty file is never one of ours."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # another process was first
            write_secret(path, _line(_HEADER, ""), replace=False)
    except OSError as problem:
        raise LedgerError(f"the ledger cannot be created, so nothing is spent: {problem.strerror}") from None


def _write(file: int, data: bytes) -> None:
    """At the end of the file, and on the disk before this returns."""
    try:
        os.lseek(file, 0, os.SEEK_END)
        if os.write(file, data) != len(data):
            raise OSError(0, "short write")
        os.fsync(file)
    except OSError as problem:
        raise LedgerError(f"the ledger cannot be written, so nothing is spent: {problem.strerror}") from None


def _read(file: int) -> tuple[list[Charge], str]:
    """All charges, and the last checksum. Cuts off an unfinished last line; changes nothing else."""
    os.lseek(file, 0, os.SEEK_SET)
    data = b""
    while part := os.read(file, 1 << 20):
        data += part
    if not data.startswith(_line(_HEADER, "")):
        raise LedgerError("this file is not a ledger of this version, so nothing is spent")
    charges: list[Charge] = []
    last = ""
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        text, last = _verified(line, last, number)
        if number > 1:
            charges.append(_charge(text, number))
    if lines[-1]:
        _cut_unfinished(file, lines[-1], last, len(data))
    return charges, last


def _cut_unfinished(file: int, tail: bytes, last: str, size: int) -> None:
    """A line that was being written when the process died was never granted. One that is whole but for its end was."""
    for whole in (tail, tail[:-1]):
        text, _, checksum = whole.decode("utf-8", errors="replace").rpartition(" ")
        if checksum and _line(text, last) == whole + b"\n":
            raise LedgerError("the last line of the ledger is damaged, so nothing is spent")
    os.ftruncate(file, size - len(tail))


def _verified(line: bytes, before: str, number: int) -> tuple[str, str]:
    text, _, checksum = line.decode("utf-8", errors="replace").rpartition(" ")
    if _line(text, before) != line + b"\n":
        raise LedgerError(f"line {number} of the ledger is damaged, so nothing is spent")
    return text, checksum


def _charge(text: str, number: int) -> Charge:
    try:
        day, task, epsilon, note, *deltas = text.split(" ")
        (delta,) = [read_fraction(written) for written in deltas] or [Fraction(0)]
        return Charge(date.fromisoformat(day), task, Decimal(epsilon), "" if note == "-" else note, delta)
    except (ValueError, ArithmeticError):
        raise LedgerError(f"line {number} of the ledger cannot be read, so nothing is spent") from None
