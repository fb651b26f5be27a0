"""The file of a ledger: one line per charge, and the caps that are in force.

Each line has a checksum that covers all lines before it, and is flushed to the disk before it counts. A process killed
while writing leaves at most an unfinished last line, of a charge that was never granted. Any other damage, an empty
file and a foreign one are refused. Caps are set when the ledger is created; opening it may lower them, for good, and
raising them is a separate step.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from veil.errors import BudgetError, LedgerError, ParameterError
from veil.privacy import decimal_text, fraction_text, read_fraction
from veil.tools.filesystem import make_private, open_regular, remove_temporary_files, write_secret

try:
    import fcntl
except ImportError:  # not on Windows: one process per ledger there
    fcntl = None  # type: ignore[assignment]

HEADER = "veil-ledger 2"
CAPS = "caps:"
"""The name of a note of the caps that are in force from then on."""
_NONE = "-"

Asked = dict[str, Any]
"""The caps that a caller states, by name; those not stated are left out."""


@dataclass(frozen=True)
class Caps:
    """Epsilon for a lifetime, per day (UTC) and for all answers to one survey, and delta for a lifetime.

    `change` is how they came into force (created, lowered or raised), and `day` is the device's day then.
    """

    lifetime: Decimal
    per_day: Decimal | None = None
    per_survey: Decimal | None = None
    delta: Fraction = Fraction(0)
    change: str = "created"
    day: date = date.min

    @classmethod
    def created(cls, asked: Asked, day: date) -> Caps:
        """Return the caps of a new ledger."""
        if "lifetime" not in asked:
            raise ParameterError("lifetime: expected the eps that a new ledger grants for a lifetime, as 2.0")
        return cls(**asked, day=day)

    @classmethod
    def from_text(cls, text: str) -> Caps:
        """Read a line of the ledger. Raises ValueError or ArithmeticError where it cannot be read."""
        change, day, lifetime, per_day, per_survey, delta = text.split(":")
        daily, each = (None if cap == _NONE else Decimal(cap) for cap in (per_day, per_survey))
        return cls(Decimal(lifetime), daily, each, read_fraction(delta), change, date.fromisoformat(day))

    def text(self) -> str:
        """Return the caps as they stand in the ledger.

        >>> Caps.from_text("raised:2026-11-19:2:-:0.5:0/1").text()
        'raised:2026-11-19:2:-:0.5:0/1'
        """
        caps = (_NONE if cap is None else f"{cap:f}" for cap in (self.per_day, self.per_survey))
        return ":".join((self.change, self.day.isoformat(), f"{self.lifetime:f}", *caps, fraction_text(self.delta)))

    def opened(self, asked: Asked, day: date) -> Caps:
        """Return the caps after a ledger was opened with others: the smaller of each. Refuses larger ones.

        A cap per survey lifts the rule that a name's later survey may cost no more than the first answer under it, so
        to state one where there is none counts as a raise.
        """
        larger = [name for name, cap in asked.items() if cap > self._cap(name)]
        if larger:
            raise BudgetError(
                f"{'; '.join(self._expected(name, 'at most', cap) for name, cap in asked.items() if name in larger)}."
                " To raise a cap is a step of its own: veil ledger raise, or Ledger.raise_caps()"
            )
        smaller = {name: cap for name, cap in asked.items() if cap < self._cap(name)}
        return replace(self, **smaller, change="lowered", day=day) if smaller else self

    def raised(self, asked: Asked, day: date) -> Caps:
        """Return the caps after a person has raised some of them. Refuses one that is not larger than before."""
        if not asked:
            raise ParameterError("expected at least one cap to raise: lifetime, per_day, per_survey or delta")
        for name, cap in asked.items():
            if not cap > self._cap(name):
                raise ParameterError(self._expected(name, "more than", cap))
        return replace(self, **asked, change="raised", day=day)

    def _cap(self, name: str) -> Any:
        """Return a cap to compare with. See `opened` for a missing cap per survey."""
        cap = getattr(self, name)
        return cap if cap is not None else Decimal(0 if name == "per_survey" else "Infinity")

    def _expected(self, name: str, relation: str, got: Any) -> str:
        own = getattr(self, name)
        if own is None:
            return f"{name}: expected none, as in this ledger, got {_shown(got)}"
        return f"{name}: expected {relation} {_shown(own)}, the cap that this ledger keeps, got {_shown(got)}"


def read_asked(lifetime: float | None, per_day: float | None, per_survey: float | None, delta: float | None) -> Asked:
    """Return the caps that are stated, checked and exact."""
    epsilons = {"lifetime": lifetime, "per_day": per_day, "per_survey": per_survey}
    asked: Asked = {name: _read_epsilon(name, cap) for name, cap in epsilons.items() if cap is not None}
    if delta is not None:
        if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 <= delta < 1:
            raise ParameterError("delta: expected a number of at least 0 and below 1")
        asked["delta"] = Fraction(decimal_text(delta))
    return asked


def _read_epsilon(name: str, epsilon: Any) -> Decimal:
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < math.inf:
        raise ParameterError(f"{name}: expected a budget that is a finite epsilon above 0")
    return Decimal(decimal_text(float(epsilon)))


def _shown(cap: Decimal | Fraction) -> str:
    return f"{float(cap):g}" if isinstance(cap, Fraction) else f"{cap:f}"


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
        return shown(self.cost)


def shown(cost: Decimal) -> Decimal:
    """The smallest decimal of a double that is not below the cost."""
    nearest = float(cost)
    candidates = (math.nextafter(nearest, 0.0), nearest, math.nextafter(nearest, math.inf))
    return next(shown for x in candidates if (shown := Decimal(decimal_text(x))) >= cost)


def open_locked(path: Path) -> int:
    """Open the file, for this process alone. One that is replaced while this process waits for it is opened anew."""
    while True:
        file = open_regular(path, os.O_RDWR)
        try:
            make_private(file)  # one that was copied here may be open to others
            if fcntl is None:
                return file
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _whole(charges: list[Charge]) -> bytes:
    """Return the file with these charges."""
    data, last = b"", ""
    for text in (HEADER, *map(_text, charges)):
        line = _line(text, last)
        data, last = data + line, line.decode().split(" ")[-1].rstrip("\n")
    return data


def create(path: Path, caps: Charge) -> None:
    """A new ledger appears with its header and caps in it: an empty file is never one of ours."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # another process was first
            write_secret(path, _whole([caps]), replace=False)
    except OSError as problem:
        raise LedgerError(f"the ledger cannot be created, so nothing is spent: {problem.strerror}") from None


def rewrite(path: Path, charges: list[Charge]) -> None:
    """Put a new file in the place of the ledger, and remove what processes that were killed in this left."""
    try:
        write_secret(path, _whole(charges))
        remove_temporary_files(path)
    except OSError as problem:
        raise LedgerError(f"the ledger cannot be written, so nothing is forgotten: {problem.strerror}") from None


def append(file: int, charge: Charge, last: str) -> None:
    """Write a charge after the line with the checksum `last`. It is on the disk before this returns."""
    data = _line(_text(charge), last)
    try:
        os.lseek(file, 0, os.SEEK_END)
        if os.write(file, data) != len(data):
            raise OSError(0, "short write")
        os.fsync(file)
    except OSError as problem:
        raise LedgerError(f"the ledger cannot be written, so nothing is spent: {problem.strerror}") from None


def read(file: int) -> tuple[list[Charge], str]:
    """All charges, and the last checksum. Cuts off an unfinished last line; changes nothing else."""
    os.lseek(file, 0, os.SEEK_SET)
    data = b""
    while part := os.read(file, 1 << 20):
        data += part
    if not data.startswith(_line(HEADER, "")):
        raise LedgerError("this file is not a ledger of this version, so nothing is spent")
    charges: list[Charge] = []
    last = ""
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        text, last = _verified(line, last, number)
        if number > 1:
            charges.append(_charge(text, number))
    if not charges or charges[0].task != CAPS:
        raise LedgerError("the ledger has no caps, so nothing is spent")
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
        if task == CAPS:
            Caps.from_text(note)
        return Charge(date.fromisoformat(day), task, Decimal(epsilon), "" if note == "-" else note, delta)
    except (ValueError, TypeError, ArithmeticError):
        raise LedgerError(f"line {number} of the ledger cannot be read, so nothing is spent") from None


def _text(charge: Charge) -> str:
    delta = f" {fraction_text(charge.delta)}" if charge.delta else ""
    return f"{charge.day.isoformat()} {charge.task} {charge.cost:f} {charge.note or '-'}{delta}"


def _line(text: str, before: str) -> bytes:
    """A line of the journal; its checksum covers the one before it."""
    return f"{text} {hashlib.sha256(f'{before} {text}'.encode()).hexdigest()[:16]}\n".encode()
