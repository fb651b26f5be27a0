"""Reports that are not delivered yet, in a private file beside the ledger.

A report is written down before it is paid for, and marked as paid after. A process that is killed in between leaves
either a report that the ledger knows, which is sent later, or one that it does not know, which is deleted. The fetched
surveys are kept here too, to be verified again when the collector cannot be reached.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from veil.device.repeated_answers import read_kept
from veil.errors import LedgerError
from veil.tools.filesystem import open_private, open_regular, remove_temporary_files, write_secret
from veil.tools.json_documents import Json
from veil.tools.processes import ProcessLock

try:
    import fcntl
except ImportError:  # not on Windows: one process per outbox there
    fcntl = None  # type: ignore[assignment]


_KIND, _VERSION = "veil-outbox", 1
T = TypeVar("T")


@dataclass(frozen=True)
class Refusal:
    """Why the collector will never take a report: its status of HTTP, a code for programs, and words for people."""

    status: int
    code: str
    message: str


@dataclass(frozen=True)
class Parcel:
    """One framed report, as base64url text, and how its delivery stands. Times are seconds since 1970.

    Of one that the collector refuses for good the report is forgotten (an empty text), and so are its times.
    """

    id: str
    collector: str
    task: str
    report: str = field(repr=False)
    drawn: float
    paid: bool = False
    attempts: int = 0
    not_before: float = 0.0
    """Our own patience: when the next attempt is due."""
    held_until: float = 0.0
    """The collector's wish (Retry-After), for all reports."""
    opens: float = 0.0
    """When this report's survey opens, once the collector has said that it is not open yet."""
    refusal: Refusal | None = None

    @property
    def body(self) -> bytes:
        """What is sent: the very same bytes every time."""
        return read_kept(self.report)

    def refused(self, reason: Refusal) -> Parcel:
        """Return what is kept once the collector has refused it for good: neither the report nor a time."""
        return replace(self, report="", drawn=0.0, attempts=0, not_before=0.0, held_until=0.0, refusal=reason)

    @property
    def waits(self) -> bool:
        """Whether it is to be sent."""
        return self.paid and self.refusal is None


class Outbox:
    """Parcels and surveys in a file that its owner alone may read; without a path, in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._thread = ProcessLock()
        self._memory: Json = {"kind": _KIND, "version": _VERSION, "surveys": {}, "parcels": []}

    def parcels(self) -> list[Parcel]:
        """All of them, the first one first."""
        with self._locked():
            return _parcels(self._read())

    def put(self, parcel: Parcel) -> Parcel:
        """Keep a parcel. One that is there already keeps its place and its history; returns the one that is kept.

        A report that is given again to a collector at another address goes there: perhaps the first one has moved.
        """

        def change(parcels: dict[str, Parcel]) -> Parcel:
            there = parcels.get(parcel.id, parcel)
            settled = there.paid and there.collector == parcel.collector
            parcels[parcel.id] = kept = there if settled or not parcel.paid else parcel
            return kept

        return self._change(change)

    def update(self, parcel: Parcel) -> None:
        """Write down how a delivery stands, unless another process has delivered it meanwhile."""
        self._change(lambda parcels: parcels.update({parcel.id: parcel}) if parcel.id in parcels else None)

    def remove(self, id_: str) -> None:
        """Forget a parcel, also where a process was killed while it wrote it down."""
        self._change(lambda parcels: parcels.pop(id_, None))
        if self._path is not None:
            with self._locked():
                remove_temporary_files(self._path)

    def discard(self, id_: str) -> None:
        """Forget a parcel, unless it is paid for."""
        self._change(lambda parcels: parcels.pop(id_, None) if id_ in parcels and not parcels[id_].paid else None)

    def survey(self, address: str) -> Json | None:
        """The published survey that was last fetched from an address."""
        with self._locked():
            found = self._read()["surveys"].get(address)
            return found if isinstance(found, dict) else None

    def keep_survey(self, address: str, published: Json | None) -> None:
        """Keep it; None forgets it."""
        with self._locked():
            document = self._read()
            if document["surveys"].get(address) != published:
                document["surveys"][address] = published
                self._write(document)

    def _change(self, change: Callable[[dict[str, Parcel]], T]) -> T:
        with self._locked():
            document = self._read()
            parcels = {parcel.id: parcel for parcel in _parcels(document)}
            before = dict(parcels)
            found = change(parcels)
            if parcels != before:
                self._write({**document, "parcels": [asdict(parcel) for parcel in parcels.values()]})
            return found

    def _read(self) -> Json:
        if self._path is None:
            return self._memory
        try:
            with os.fdopen(open_regular(self._path, os.O_RDONLY), "rb") as file:
                document = json.loads(file.read())
        except FileNotFoundError:
            return {"kind": _KIND, "version": _VERSION, "surveys": {}, "parcels": []}
        except OSError as problem:
            raise LedgerError(f"the outbox cannot be read, so nothing is sent: {problem.strerror}") from None
        except (ValueError, RecursionError):
            raise _damaged() from None
        if not isinstance(document, dict) or (document.get("kind"), document.get("version")) != (_KIND, _VERSION):
            raise _damaged()
        if not isinstance(document.get("surveys"), dict) or not isinstance(document.get("parcels"), list):
            raise _damaged()
        return document

    def _write(self, document: Json) -> None:
        if self._path is None:
            self._memory = document
            return
        try:
            write_secret(self._path, json.dumps(document, indent=1).encode())
        except OSError as problem:
            raise LedgerError(f"the outbox cannot be written, so nothing is sent: {problem.strerror}") from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """For this thread of this process alone. The lock is a file of its own: the outbox is replaced as a whole."""
        with self._thread:
            if self._path is None or fcntl is None:
                yield
                return
            try:
                lock = open_private(f"{self._path}.lock")
            except OSError as problem:
                raise LedgerError(f"the outbox cannot be locked, so nothing is sent: {problem.strerror}") from None
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)


def _parcels(document: Json) -> list[Parcel]:
    try:
        return [_parcel(**written) for written in document["parcels"]]
    except (TypeError, ValueError):
        raise _damaged() from None


def _parcel(refusal: dict[str, Any] | None = None, **fields: Any) -> Parcel:
    return Parcel(**fields, refusal=None if refusal is None else Refusal(**refusal))


def _damaged() -> LedgerError:
    return LedgerError("the outbox is damaged, or of another version, so nothing is sent")
