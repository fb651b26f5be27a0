"""What a person has spent, in a file on their device. It fails closed: when in doubt, nothing is spent.

The file is a journal: one line a charge, each with a checksum, flushed to the disk before the charge counts. A process
killed while writing leaves at most an unfinished last line, of a charge that was never granted. Any other damage is
refused. Sums are exact decimals, so ten charges of 0.1 are 1.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from veil.durable import sync_folder
from veil.errors import BudgetError, LedgerError, ParameterError
from veil.privacy import Guarantee, decimal_text

try:
    import fcntl
except ImportError:  # not on Windows: one process a ledger there
    fcntl = None  # type: ignore[assignment]

__all__ = ["Charge", "Ledger"]

_HEADER = "veil-ledger 1"


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Charge:
    """One answer that was paid for: when, for which task, how much, and a note (the client's memory of its answer)."""

    day: date
    task: str
    epsilon: Decimal
    note: str = ""


class Ledger:
    """A budget of epsilon over a lifetime and per day (UTC), kept in a file or, without a path, in memory.

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
        today: Callable[[], date] = _today,
    ) -> None:
        self.lifetime = Decimal(decimal_text(_check_cap(lifetime)))
        self.per_day = None if per_day is None else Decimal(decimal_text(_check_cap(per_day)))
        self._path = None if path is None else Path(path)
        self._today = today
        self._memory: list[Charge] = []
        if self._path is not None:
            with self._locked() as file:
                _read(file)

    @property
    def charges(self) -> list[Charge]:
        """Everything spent so far."""
        if self._path is None:
            return list(self._memory)
        with self._locked() as file:
            return _read(file)

    @property
    def spent(self) -> Decimal:
        """Epsilon spent over the lifetime."""
        return sum((charge.epsilon for charge in self.charges), Decimal(0))

    @property
    def left(self) -> Decimal:
        """Epsilon left over the lifetime."""
        return self.lifetime - self.spent

    def spend(self, task: str, guarantee: Guarantee, note: str = "") -> None:
        """Pay for one answer, durably, or refuse. Call it before the answer leaves the device."""
        if guarantee.ratio is None:
            raise BudgetError("this task promises nothing on its own: it needs a shuffler")
        if guarantee.delta:
            raise BudgetError("this task may fail with probability delta: this ledger grants pure guarantees only")
        cost = Decimal(decimal_text(guarantee.epsilon))
        if self._path is None:
            self._memory.append(self._granted(self._memory, task, cost, note))
            return
        with self._locked() as file:
            charge = self._granted(_read(file), task, cost, note)
            _append(file, charge)

    def _granted(self, charges: list[Charge], task: str, cost: Decimal, note: str) -> Charge:
        # A clock that was set back must not open a day again: the latest day on record counts.
        day = max([self._today(), *(charge.day for charge in charges)])
        if sum((charge.epsilon for charge in charges), cost) > self.lifetime:
            raise BudgetError(f"this answer would exceed the lifetime budget of {self.lifetime}")
        if self.per_day is not None:
            today = sum((charge.epsilon for charge in charges if charge.day == day), cost)
            if today > self.per_day:
                raise BudgetError(f"this answer would exceed the daily budget of {self.per_day}")
        return Charge(day, task, cost, note)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, for this process alone."""
        assert self._path is not None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            is_new = not self._path.exists()
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if is_new:
                sync_folder(self._path.parent)  # a ledger that vanished with the power would grant everything again
        except OSError as problem:
            raise LedgerError(f"the ledger cannot be opened, so nothing is spent: {problem.strerror}") from None
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _check_cap(epsilon: float) -> float:
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < math.inf:
        raise ParameterError("a budget is a finite epsilon above 0")
    return float(epsilon)


def _line(text: str) -> bytes:
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n".encode()


def _append(file: int, charge: Charge) -> None:
    text = f"{charge.day.isoformat()} {charge.task} {charge.epsilon} {charge.note or '-'}"
    _write(file, _line(text))


def _write(file: int, data: bytes) -> None:
    """At the end of the file, and on the disk before this returns."""
    try:
        os.lseek(file, 0, os.SEEK_END)
        if os.write(file, data) != len(data):
            raise OSError(0, "short write")
        os.fsync(file)
    except OSError as problem:
        raise LedgerError(f"the ledger cannot be written, so nothing is spent: {problem.strerror}") from None


def _read(file: int) -> list[Charge]:
    """All charges; starts a new file, and cuts off an unfinished last line."""
    os.lseek(file, 0, os.SEEK_SET)
    data = b""
    while part := os.read(file, 1 << 20):
        data += part
    complete = data.rfind(b"\n") + 1
    if complete < len(data):
        os.ftruncate(file, complete)
    lines = data[:complete].splitlines()
    if not lines:
        _write(file, _line(_HEADER))
        return []
    texts = [_verified(line, number) for number, line in enumerate(lines, 1)]
    if texts[0] != _HEADER:
        raise LedgerError("this file is not a ledger of this version, so nothing is spent")
    return [_charge(text, number) for number, text in enumerate(texts[1:], 2)]


def _verified(line: bytes, number: int) -> str:
    text, _, _ = line.decode("utf-8", errors="replace").rpartition(" ")
    if _line(text) != line + b"\n":
        raise LedgerError(f"line {number} of the ledger is damaged, so nothing is spent")
    return text


def _charge(text: str, number: int) -> Charge:
    try:
        day, task, epsilon, note = text.split(" ")
        return Charge(date.fromisoformat(day), task, Decimal(epsilon), "" if note == "-" else note)
    except (ValueError, ArithmeticError):
        raise LedgerError(f"line {number} of the ledger cannot be read, so nothing is spent") from None
