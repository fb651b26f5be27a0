"""Submissions: shares of people's reports, at the device that sends them and at the shuffler that stores them.

A submission contains the shares of one person, or of several who share a device, under an id that is the same at every
shuffler. A device writes a submission to its outbox before it sends any part of it. After a crash, or if a shuffler is
down, it sends the same shares again: a report is drawn once, and two copies of a share reveal no more than one.

A shuffler writes a submission to disk before it acknowledges it, and keeps it until the server has acknowledged the
outcome. Its file is a log of complete records; a record cut off by a crash was never acknowledged, and is removed.

**A collection is closed once.** The seal lists the people who take part, and contains a secret for the shuffler's own
fakes. All later attempts use the same people and the same fakes. Otherwise an observer of two outcomes could subtract
one from the other, and the difference would reveal reports of single people, or separate fakes from people.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, MismatchError, PartyError, StoreError, WireError
from veil.shuffle.protocol import Protocol
from veil.shuffle.settings import PartySettings
from veil.shuffle.transport.channel import LONGEST, Channel, reason_in
from veil.shuffle.transport.connections import dial_all
from veil.tools.filesystem import make_private_folder, open_private, sync_folder, write_atomically, write_secret

Bytes = NDArray[np.uint8]
ID_BYTES = 16
LISTING = 1
"""The label of a list on the way."""

_COUNT, _CHECK = 4, 4
_HEAD = ID_BYTES + _COUNT
_SECRET_BYTES = 32
_ROOM = 1024
_ROW = np.dtype([("name", f"V{ID_BYTES}"), ("count", ">u4")])
ROW_BYTES = _ROW.itemsize
"""Bytes of one submission, which is of at least one person."""


@dataclass(frozen=True)
class Submission:
    """What one device leaves with each shuffler, under one id: the shares of one person, or of several at once."""

    name: bytes
    people: int
    payloads: tuple[bytes, ...]

    @classmethod
    def of(cls, protocol: Protocol, reports: NDArray[np.uint64]) -> Submission:
        """Split reports into shares, under a fresh id."""
        payloads = tuple(rows.tobytes() for rows in protocol.split(reports))
        return cls(os.urandom(ID_BYTES), len(reports), payloads)

    def body(self, shuffler: int) -> bytes:
        """What one shuffler gets."""
        return self.name + self.people.to_bytes(4) + self.payloads[shuffler]

    def to_bytes(self) -> bytes:
        """The submission as a device keeps it."""
        lengths = b"".join(len(payload).to_bytes(8) for payload in self.payloads)
        head = self.name + self.people.to_bytes(4) + len(self.payloads).to_bytes(4)
        return head + lengths + b"".join(self.payloads)

    @classmethod
    def from_bytes(cls, data: bytes) -> Submission:
        """The same backwards."""
        name, people, many = data[:ID_BYTES], int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
        start = 24 + 8 * many
        payloads = []
        for i in range(many):
            length = int.from_bytes(data[24 + 8 * i : 32 + 8 * i])
            payloads.append(data[start : start + length])
            start += length
        if start != len(data):
            raise WireError("this is not a submission that a device kept")
        return cls(name, people, tuple(payloads))


class SubmissionOutbox:
    """Submissions that not every shuffler has acknowledged yet: files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, submissions: Iterable[Submission]) -> None:
        """Write submissions down, all or none, before anything of them is sent."""
        draft = self._folder.with_name(self._folder.name + ".draft")
        shutil.rmtree(draft, ignore_errors=True)  # of a run that was broken off, which has sent nothing
        make_private_folder(draft)
        for submission in submissions:
            write_secret(draft / self._name(submission), submission.to_bytes())
        if self._folder.exists():
            self._folder.rmdir()  # it is empty: whatever was in it has been sent
        draft.rename(self._folder)
        sync_folder(self._folder.parent)

    def __iter__(self) -> Iterator[Submission]:
        for path in sorted(self._folder.glob("*.shares")):
            yield Submission.from_bytes(path.read_bytes())

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.shares"))

    def remove(self, submission: Submission) -> None:
        """Every shuffler has it."""
        (self._folder / self._name(submission)).unlink(missing_ok=True)

    def clear(self) -> None:
        """Throw away everything that is still to be sent."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _name(self, submission: Submission) -> str:
        return f"{submission.name.hex()}.shares"


def most_together(protocol: Protocol) -> int:
    """How many people's shares fit into one submission."""
    sizes = [protocol.share_size(i) for i in range(len(protocol.plan.shufflers))]
    return (LONGEST - _ROOM) // max(sizes)


async def leave(
    settings: PartySettings,
    protocol: Protocol,
    submissions: Iterable[Submission],
    left: Callable[[Submission], None] = lambda submission: None,
) -> None:
    """Leave submissions with all shufflers that keep something; `left` is called for each that all of them have."""
    names = [name for i, name in enumerate(settings.plan.names) if protocol.share_size(i)]
    channels = await dial_all(settings, names, "leave")
    try:
        places = [settings.plan.index(name) for name in names]
        for submission in submissions:
            sends = (
                _leave(channel, i, submission, settings.limit) for channel, i in zip(channels, places, strict=True)
            )
            await asyncio.gather(*sends)
            left(submission)
    finally:
        await asyncio.gather(*(channel.close() for channel in channels))


async def _leave(channel: Channel, shuffler: int, submission: Submission, seconds: float) -> None:
    async with channel.within(seconds, "keeping shares"):
        await channel.send_shares(submission.body(shuffler))
        answer = await channel.receive()
    if answer.get("kept") != submission.name.hex():
        raise PartyError(channel.peer, f"refused shares: {reason_in(answer, 'refused', 'it did not say why')}")


class Seal(NamedTuple):
    """Who takes part: how many people, and the digest of their submissions."""

    people: int
    digest: str

    @classmethod
    def of(cls, submissions: Collection[tuple[bytes, int]]) -> Seal:
        """The seal of submissions, ids with their numbers of people, whatever their order."""
        found = sorted(submissions)
        named = hashlib.sha256(b"".join(name + count.to_bytes(_COUNT) for name, count in found))
        return cls(sum(count for _, count in found), named.hexdigest())


class _Record(NamedTuple):
    start: int
    people: int
    check: int


class ShareStore:
    """The shares that one shuffler holds, `size` bytes for each person. `check` refuses what cannot be shares."""

    def __init__(self, folder: Path, size: int, check: Callable[[Bytes], None] = lambda shares: None) -> None:
        make_private_folder(folder)
        self._folder, self._size, self._check = folder, size, check
        self._log = folder / "shares.log"
        self._records: dict[bytes, _Record] = {}
        self._sealed: list[bytes] | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._syncing = asyncio.Lock()
        self._broken = False
        self._file = self._open_log()
        sync_folder(folder)  # the file's and the folder's own names have to be there as well as what is in them
        sync_folder(folder.parent)
        if self.finished:
            self.finish()  # what a crash may have left over
        self._read_log()
        self._read_seal()

    def _open_log(self) -> int:
        try:
            return open_private(self._log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as problem:
            raise StoreError(f"{self._log} cannot be opened: {problem.strerror}") from None

    # -- people's shares -----------------------------------------------------------------------------------------------

    async def keep(self, body: bytes) -> bytes:
        """Keep a submission for good, and return its id; one that is kept already is not kept twice.

        Many may wait for one flush of the disk together.
        """
        if self._broken:
            raise StoreError(f"{self._log} could not be written: this shuffler takes shares again once it is restarted")
        name, count, payload = self._parsed(body)
        check = zlib.crc32(body)
        known = self._records.get(name)
        if known is not None:
            if (known.people, known.check) != (count, check) or self._payload(known) != payload:
                raise MismatchError("these shares came before, with other content: they are counted once, as they were")
        else:
            if self._sealed is not None or self.finished:
                raise MismatchError("this collection is closed: these shares come too late, and belong to another one")
            self._check(np.frombuffer(payload, dtype=np.uint8).reshape(count, self._size))
            self._records[name] = _Record(self._append(body + check.to_bytes(_CHECK)) + _HEAD, count, check)
        await self._flushed()
        return name

    def _append(self, record: bytes) -> int:
        """Write a record at the end, whole or not at all: behind half a record, the next ones would be lost."""
        start = os.lseek(self._file, 0, os.SEEK_END)
        try:
            written = os.write(self._file, record)
        except OSError:
            written = 0
        if written < len(record):
            os.ftruncate(self._file, start)
            raise StoreError(f"{self._log} cannot be written: nothing was kept")
        return start

    def _parsed(self, body: bytes) -> tuple[bytes, int, bytes]:
        name, count, payload = body[:ID_BYTES], int.from_bytes(body[ID_BYTES:_HEAD]), body[_HEAD:]
        if len(body) <= _HEAD or not count or len(payload) != count * self._size:
            raise InputError(f"a submission is an id, a number of people and {self._size} bytes for each of them")
        return name, count, payload

    async def _flushed(self) -> None:
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._flush())
        await asyncio.shield(self._waiting)

    async def _flush(self) -> None:
        async with self._syncing:
            self._waiting = None  # whoever comes from now on waits for the next flush
            try:
                await asyncio.to_thread(os.fsync, self._file)
            except OSError:
                self._broken = True  # what the system has dropped, a later flush would not bring back
                raise StoreError(f"{self._log} cannot be written: nothing was kept") from None

    def _payload(self, record: _Record) -> bytes:
        return os.pread(self._file, record.people * self._size, record.start)

    def _read_log(self) -> None:
        """Find all whole records; cut off what a crash left behind the last of them."""
        end, length = 0, os.fstat(self._file).st_size
        while end + _HEAD <= length:
            head = os.pread(self._file, _HEAD, end)
            record = _Record(end + _HEAD, int.from_bytes(head[ID_BYTES:]), 0)
            payload = os.pread(self._file, record.people * self._size + _CHECK, record.start)
            whole = len(payload) == record.people * self._size + _CHECK
            if not whole or zlib.crc32(head + payload[:-_CHECK]) != int.from_bytes(payload[-_CHECK:]):
                break
            self._records[head[:ID_BYTES]] = record._replace(check=int.from_bytes(payload[-_CHECK:]))
            end = record.start + len(payload)
        if end < length:
            rest = os.pread(self._file, length - end, end)
            if len(rest) > _HEAD and whole:  # not cut off, but damaged: there may be shares behind it
                write_secret(self._folder / "shares.damaged", rest)
            os.ftruncate(self._file, end)
            os.fsync(self._file)

    # -- closing -------------------------------------------------------------------------------------------------------

    @property
    def submissions(self) -> list[tuple[bytes, int]]:
        """Ids and numbers of people: of those who take part where the collection is closed, else of all."""
        names = self._records if self._sealed is None else self._sealed
        return sorted((name, self._records[name].people) for name in names)

    @property
    def closed(self) -> bool:
        """Whether it is decided who takes part."""
        return self._sealed is not None

    @property
    def held(self) -> Seal:
        """What a seal of all `submissions` would be."""
        return Seal.of(self.submissions)

    @property
    def sealed(self) -> Seal | None:
        """Who takes part, once that is decided."""
        return None if self._sealed is None else self.held

    def seal(self, names: Collection[bytes] | None, expected: Seal) -> None:
        """Close the collection: these submissions take part (all, where None), and nobody else ever."""
        if self.finished:
            raise MismatchError("has forgotten its shares: this collection was shuffled before")
        if self._sealed is not None:
            if self.sealed != expected:
                raise MismatchError("was closed before, with other people: they are the ones who take part")
            return
        chosen = list(self._records) if names is None else [name for name in names if name in self._records]
        found = Seal.of([(name, self._records[name].people) for name in chosen])
        if found != expected:
            raise MismatchError(f"holds shares of {found.people:,} of the {expected.people:,} people who take part")
        os.fsync(self._file)  # some may still wait for their flush: sealed shares must not be lost
        document = {"submissions": [name.hex() for name in sorted(chosen)], "secret": os.urandom(_SECRET_BYTES).hex()}
        write_secret(self._folder / "seal.json", json.dumps(document).encode())
        self._read_seal()

    def _read_seal(self) -> None:
        path = self._folder / "seal.json"
        if path.exists():
            try:
                document = json.loads(path.read_bytes())
                self._sealed = [bytes.fromhex(name) for name in document["submissions"]]
                self._secret = bytes.fromhex(document["secret"])
            except (ValueError, TypeError, LookupError):
                raise InputError(f"{path} is damaged: this collection cannot be shuffled") from None
            if any(name not in self._records for name in self._sealed):
                raise InputError(f"{self._log} has lost shares that were sealed: this collection cannot be shuffled")

    @property
    def secret(self) -> bytes:
        """Where this shuffler's fakes come from: drawn once, when the collection was closed."""
        return self._secret

    def shares(self) -> Bytes:
        """The shares of those who take part, a row for each person, in the order of ids that all parties have."""
        rows = [self._payload(self._records[name]) for name, _ in self.submissions]
        return np.frombuffer(bytearray(b"".join(rows)), dtype=np.uint8).reshape(-1, self._size or 1)

    # -- the end -------------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the server has acknowledged the outcome."""
        return (self._folder / "finished").exists()

    def finish(self) -> None:
        """Forget everything: the server has the outcome for good."""
        if self._sealed is None and not self.finished:
            raise MismatchError("was asked to forget shares that were never shuffled: it keeps them")
        write_atomically(self._folder / "finished", b"")
        os.ftruncate(self._file, 0)
        os.fsync(self._file)
        (self._folder / "seal.json").unlink(missing_ok=True)
        sync_folder(self._folder)
        self._records, self._sealed = {}, None

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def pack(submissions: Sequence[tuple[bytes, int]]) -> NDArray[np.uint8]:
    """Submissions as bytes.

    >>> unpack(pack([(bytes(16), 3)])) == [(bytes(16), 3)]
    True
    """
    return np.array(list(submissions), dtype=_ROW).view(np.uint8)


def unpack(data: NDArray[np.uint8]) -> list[tuple[bytes, int]]:
    """The same backwards."""
    rows = np.frombuffer(data.tobytes(), dtype=_ROW)
    return [(bytes(row["name"]), int(row["count"])) for row in rows]
