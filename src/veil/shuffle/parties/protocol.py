"""What a protocol between parties fills in; everything around it is the same for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.shuffle.parties.attempt import Attempt
from veil.shuffle.parties.plan import Plan

__all__ = ["Protocol"]

Bytes = NDArray[np.uint8]
Elements = NDArray[np.uint64]


_SECONDS = 0.02
"""Per report and round."""
_VECTORS, _WORD, _MIN_ROOM = 4, 64, 1 << 24


class Protocol(ABC):
    """A way to mix reports so that nobody knows who sent which. Reports are integers modulo 2^`plan.ring`.

    Devices `split` reports into what each shuffler gets; each shuffler runs `shuffle`; the server `combine`s what the
    shufflers sent it. All of it is about the people of a closed collection, and the plan's number of fakes.
    """

    name: ClassVar[str]

    def __init__(self, plan: Plan) -> None:
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
