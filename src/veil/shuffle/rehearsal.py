"""A whole collection on this machine with one process per shuffler, to try protocols out and to measure their cost."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veil.entropy import Batch
from veil.errors import InputError, PartyError
from veil.histogram import Histogram
from veil.mechanisms import OLH
from veil.shuffle.collection import make_folder
from veil.shuffle.coordinator import Coordinator, ShuffleOutcome, ShufflerCosts
from veil.shuffle.plan import Address, CollectionPlan
from veil.shuffle.protocol import protocol_of
from veil.shuffle.settings import PartySettings
from veil.shuffle.submissions import Submission, leave, most_together

_START = 60.0
"""Seconds in which a shuffler has to listen."""

_TOGETHER = 1000
_PORTS = range(20_000, 32_768)  # systems give higher ones to connections


@dataclass(frozen=True)
class Rehearsal:
    """What a collection of so many people and fakes took. Seconds are of one processor core."""

    people: int
    fakes: int
    user_seconds: float
    """Of one person's device."""
    user_bytes: float
    shufflers: tuple[ShufflerCosts, ...]
    server_seconds: float
    server_bytes: int
    whole: bool
    """Whether all reports came out, among as many fakes as there should be."""

    @property
    def reports(self) -> int:
        """Of people and fakes."""
        return self.people + self.fakes

    @property
    def core_seconds(self) -> float:
        """Of everybody together."""
        return self.people * self.user_seconds + sum(cost.seconds for cost in self.shufflers) + self.server_seconds

    @property
    def shuffled_bytes(self) -> float:
        """What all shufflers together sent, for each report."""
        return sum(cost.sent for cost in self.shufflers) / self.reports


def rehearse(
    protocol: str = "peos", *, shufflers: int = 3, people: int = 20_000, fakes: int = 2_000, bits: int = 3072
) -> Rehearsal:
    """Collect random reports through a protocol between processes on this machine, and say what it took.

    >>> found = rehearse(people=50, fakes=10, bits=512)
    >>> found.whole, found.reports
    (True, 60)
    """
    with tempfile.TemporaryDirectory(prefix="veil-rehearsal-") as temporary:
        folder = Path(temporary) / "parties"
        study, places = Histogram(OLH(3.0, 1000, 20, seed_bytes=4)), free_addresses(shufflers)
        plan = make_folder(folder, study, places, collection="rehearsal", fakes=fakes, bits=bits, protocol=protocol)
        with running(plan, folder):
            return asyncio.run(_collected(plan, folder, people))


async def _collected(plan: CollectionPlan, folder: Path, people: int) -> Rehearsal:
    device, server = (PartySettings.read(folder / f"{name}.toml") for name in ("device", "server"))
    sender, receiver = protocol_of(plan), protocol_of(plan, server.secret, server.folder)
    reports = Batch().words(people)
    together = min(_TOGETHER, most_together(sender))
    sender.split(reports[:1])  # makes tables, once per device
    start = time.process_time()
    submissions = [Submission.of(sender, reports[i : i + together]) for i in range(0, people, together)]
    user = (time.process_time() - start) / people
    await leave(device, sender, submissions)
    found: list[ShuffleOutcome] = []
    await Coordinator(server, receiver).run(found.append)
    (shuffled,) = found
    whole = len(shuffled.elements) == people + plan.fakes and bool(np.isin(reports, shuffled.elements).all())
    sizes = sum(len(one.body(i)) for one in submissions for i, size in enumerate(one.payloads) if size)
    return Rehearsal(
        people,
        plan.fakes,
        user,
        sizes / people,
        shuffled.costs,
        shuffled.seconds,
        shuffled.received,
        whole,
    )


def free_addresses(count: int) -> list[Address]:
    """Addresses on this machine where nobody listens, and which no connection is given while a party starts again.

    >>> len({address.port for address in free_addresses(3)})
    3
    """
    places: list[Address] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(places) == count:
            break
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            places.append(Address("127.0.0.1", port))
    if len(places) < count:
        raise InputError(f"expected {count} free ports from {_PORTS.start} to {_PORTS.stop - 1}, found {len(places)}")
    return places


@contextlib.contextmanager
def running(plan: CollectionPlan, folder: Path) -> Iterator[None]:
    """All shufflers of a folder, as processes, for the length of a block; what they say is in NAME.log."""
    processes = {}
    try:
        for name in plan.names:
            command = [sys.executable, "-m", "veil.cli", "shuffler", "--config", str(folder / f"{name}.toml")]
            with (folder / f"{name}.log").open("wb") as log:
                processes[name] = subprocess.Popen(command, stderr=log)  # noqa: S603  # our own command
        end = time.monotonic() + _START
        for name, process in processes.items():
            while b": ready at" not in (folder / f"{name}.log").read_bytes():
                if process.poll() is not None or time.monotonic() > end:
                    said = (folder / f"{name}.log").read_text().strip().rpartition("\n")[2]
                    raise PartyError(name, f"did not start: {said}")
                time.sleep(0.05)
        yield
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(timeout=30)
