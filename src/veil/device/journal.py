"""The file of a ledger: one line per charge, each with a checksum that covers all lines before it.

A line is flushed to the disk before it counts. A process killed while writing leaves at most an unfinished last line,
of a charge that was never granted. Any other damage, an empty file and a foreign one are refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from veil.device.caps import Caps
from veil.errors import LedgerError
from veil.privacy import decimal_text, fraction_text, read_fraction
from veil.tools.filesystem import make_private, open_regular, remove_temporary_files, write_secret

try:
    import fcntl
except ImportError:  # not on Windows: one process per ledger there
    fcntl = None  # type: ignore[assignment]

__all__ = ["CAPS", "HEADER", "Charge", "append", "create", "open_locked", "read", "rewrite", "shown"]

HEADER = "veil-ledger 2"
CAPS = "caps:"
"""The name of a note of the caps that are in force from then on."""


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
