"""Leaving shares with every shuffler: the same bytes again and again, until all of them have kept them.

A device writes a submission down before it sends anything of it. If it is ended in between, or a shuffler is down, it
sends the very same shares later: a person's report is drawn once, and whoever sees two of its shares learns no more.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.errors import PartyError, WireError
from veil.shuffle.parties.channel import LONGEST, Channel, reason_in
from veil.shuffle.parties.dialing import dial_all
from veil.shuffle.parties.kept import ID_BYTES
from veil.shuffle.parties.protocol import Protocol
from veil.shuffle.parties.settings import Settings
from veil.tools.filesystem import make_private_folder, sync_folder, write_secret

__all__ = ["Outbox", "Submission", "leave", "most_together"]

_ROOM = 1024


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


class Outbox:
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
    settings: Settings,
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
