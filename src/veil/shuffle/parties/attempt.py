"""One run of a protocol as a shuffler sees it: the people of the collection, and channels to the others."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.shuffle.parties.channel import Channel, as_pieces

__all__ = ["OUTCOME", "Attempt", "enter_stage"]

OUTCOME = 0xFFFFFFFF
"""The label of what goes to the server."""

Bytes = NDArray[np.uint8]
_log = logging.getLogger("veil.parties")


def enter_stage(party: str, stage: str) -> None:
    """Say in the log what a party begins with."""
    _log.info("%s: %s", party, stage)


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
