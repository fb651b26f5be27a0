"""The interface of a shuffling protocol between parties.

`Protocol` has the methods that a protocol implements, for devices, shufflers and the server. An `Attempt` is one run of
it as a shuffler sees it. `protocol_of` returns the implementation that a plan names.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, WireError
from veil.shuffle.plan import CollectionPlan
from veil.shuffle.transport.channel import Channel, as_pieces
from veil.tools.json_documents import load_json

Bytes = NDArray[np.uint8]
Elements = NDArray[np.uint64]
OUTCOME = 0xFFFFFFFF
"""The label of what goes to the server."""

_SECONDS = 0.02
"""Per report and round."""

_VECTORS, _WORD, _MIN_ROOM = 4, 64, 1 << 24
_log = logging.getLogger("veil.parties")


class Protocol(ABC):
    """A way to mix reports so that nobody knows who sent which. Reports are integers modulo 2^`plan.ring`.

    Devices `split` reports into what each shuffler gets; each shuffler runs `shuffle`; the server `combine`s what the
    shufflers sent it. All of it is about the people of a closed collection, and the plan's number of fakes.
    """

    name: ClassVar[str]

    def __init__(self, plan: CollectionPlan) -> None:
        self.plan = plan

    @abstractmethod
    def share_size(self, shuffler: int) -> int:
        """How many bytes of one person a shuffler keeps; 0 where it keeps nothing."""

    def check_shares(self, shuffler: int, shares: Bytes) -> None:  # noqa: B027  # nothing to refuse, by default
        """Runs at a shuffler when shares come: refuse (WireError) what would stop the collection once it is closed."""

    @abstractmethod
    def split(self, reports: Elements) -> list[Bytes]:
        """Runs on the device: for each shuffler, a row of `share_size` bytes per report."""

    @abstractmethod
    async def shuffle(self, attempt: Attempt) -> None:
        """Runs at a shuffler: its part of the protocol, up to sending the server what it gets."""

    @property
    def rounds(self) -> int:
        """How often the reports are processed one after the other."""
        return len(self.plan.shufflers)

    def seconds(self, people: int) -> float:
        """Return how long a shuffle may take beside the `limit` of the settings: about 50 times what it needs."""
        return _SECONDS * self.rounds * (people + self.plan.fakes)

    def room(self, people: int) -> int:
        """Return how many bytes of one shuffler may wait at another one: several vectors, the largest there are."""
        sizes = [self.share_size(i) for i in range(len(self.plan.shufflers))]
        return _VECTORS * (people + self.plan.fakes) * (max(sizes) + _WORD) + _MIN_ROOM

    @abstractmethod
    def outcome_size(self, shuffler: int) -> int:
        """How many bytes of each report, fakes among them, a shuffler sends the server in the end; 0 for none."""

    @abstractmethod
    def combine(self, outcomes: Mapping[int, Bytes]) -> Elements:
        """Runs at the server: the mixed reports and fakes, from the bytes that shufflers sent."""


@dataclass
class Attempt:
    """What a shuffler works with: `shares`, a row per person in everybody's order, and a `secret` for its own fakes.

    `people` is how many take part; a shuffler that keeps no shares has an empty array.
    """

    party: str
    index: int
    people: int
    shares: Bytes
    secret: bytes
    peers: Mapping[int, Channel]
    server: Channel

    def stage(self, text: str) -> None:
        """Say in the log what comes now."""
        enter_stage(self.party, text)

    async def send(self, to: int, label: int, array: NDArray[Any]) -> None:
        """Send a vector to another shuffler."""
        await self.peers[to].send_vector(label, as_pieces(array))

    async def stream(self, to: int, label: int, pieces: AsyncIterator[Bytes]) -> None:
        """Send a vector that is still being computed, a piece at a time."""
        await self.peers[to].send_vector(label, pieces)

    async def receive(self, sender: int, label: int, size: int) -> Bytes:
        """A vector of `size` bytes from another shuffler."""
        return await self.peers[sender].receive_vector(label, size)

    async def hand_over(self, pieces: AsyncIterator[Bytes]) -> None:
        """Send the server its part of the outcome."""
        await self.server.send_vector(OUTCOME, pieces)


def enter_stage(party: str, stage: str) -> None:
    """Say in the log what a party begins with."""
    _log.info("%s: %s", party, stage)


def protocol_of(plan: CollectionPlan, secret: Path | None = None, folder: Path | None = None) -> Protocol:
    """The protocol of a plan, with the party's secret key from its file where it has one.

    In PEOS that is the server; in the sequential shuffle every shuffler too, and a shuffler remembers in its `folder`.
    """
    if plan.protocol == "peos":
        from veil.shuffle.peos import Peos, PublicKey, SecretKey

        if secret is None:
            return Peos(plan)
        try:
            document = load_json(secret.read_bytes())
        except ValueError:
            raise WireError(f"{secret} is not a secret key") from None
        return Peos(plan, SecretKey.from_json(document, PublicKey.from_json(plan.keys.get("server"))))
    if plan.protocol == "sequential":
        from veil.shuffle.sequential import Key, Sequential

        return Sequential(plan, None if secret is None else Key.read(secret), folder)
    raise InputError(f"there is no protocol {plan.protocol!r} between parties: expected peos or sequential")
