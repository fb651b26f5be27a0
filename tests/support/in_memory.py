"""PEOS in one process: every vector that goes between parties is recorded, so that views can be attacked."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.shuffle.peos import Peos, PublicKey, SecretKey, make_keys
from veil.shuffle.peos.protocol import permutation
from veil.shuffle.plan import Address, CollectionPlan
from veil.shuffle.protocol import OUTCOME, Attempt


@lru_cache
def _keys(ring: int) -> tuple[PublicKey, SecretKey]:
    return make_keys(ring, bits=512, order_bits=64)


def small_keys(ring: int = 64) -> tuple[PublicKey, SecretKey]:
    return _keys(ring)


def small_plan(shufflers: int, fakes: int = 0, ring: int = 64, **more: Any) -> CollectionPlan:
    places = tuple((f"shuffler-{i + 1}", Address("127.0.0.1", 7000 + i)) for i in range(shufflers))
    keys = {"server": small_keys(ring)[0].to_json()}
    facts = {"protocol": "peos", "collection": "test", "study": {}, "keys": keys, "shufflers": places} | more
    return CollectionPlan(fakes=fakes, ring=ring, **facts)


@dataclass
class Seen:
    """What went between parties: (sender, receiver, label) -> bytes; the server is -1. And who permuted how."""

    initial: list[NDArray[np.uint8]]
    vectors: dict[tuple[int, int, int], NDArray[np.uint8]] = field(default_factory=dict)
    orders: dict[tuple[int, int], NDArray[np.intp]] = field(default_factory=dict)
    """(party, round) -> permutation."""
    elements: NDArray[np.uint64] | None = None

    def of(self, party: int) -> dict[tuple[int, int, int], NDArray[np.uint8]]:
        """What a party sent and received."""
        return {key: vector for key, vector in self.vectors.items() if party in key[:2]}


class _Wire:
    """A channel of one party to another, by a queue for each label."""

    def __init__(self, seen: Seen, queues: dict[Any, asyncio.Queue[Any]], own: int, other: int) -> None:
        self._seen, self._queues, self._own, self._other = seen, queues, own, other

    async def send_vector(self, label: int, pieces: AsyncIterator[NDArray[np.uint8]]) -> None:
        whole = np.concatenate([piece.reshape(-1).view(np.uint8) async for piece in pieces])
        self._seen.vectors[self._own, self._other, label] = whole
        self._queue((self._own, self._other, label)).put_nowait(whole)

    async def receive_vector(self, label: int, size: int) -> NDArray[np.uint8]:
        whole = await self._queue((self._other, self._own, label)).get()
        assert len(whole) == size
        return whole.copy()

    def _queue(self, key: Any) -> asyncio.Queue[Any]:
        return self._queues.setdefault(key, asyncio.Queue())


def secret_of(party: int, salt: int = 0) -> bytes:
    """What a party draws its fakes from."""
    return hashlib.sha256(f"{party} {salt}".encode()).digest()


def walk(parties: Sequence[Peos], reports: NDArray[np.uint64], salt: int = 0) -> Seen:
    """Split reports, shuffle them between the given parties, open the outcome."""
    many, server = len(parties), Peos(parties[0].plan, small_keys(parties[0].plan.ring)[1])
    shares = parties[0].split(reports)
    seen, queues = Seen(shares), {}

    async def one(i: int) -> None:
        peers = {j: _Wire(seen, queues, i, j) for j in range(many) if j != i}
        attempt = Attempt(
            f"shuffler-{i + 1}",
            i,
            len(reports),
            shares[i],
            secret_of(i, salt),
            peers,  # type: ignore[arg-type]  # as much of a channel as an attempt uses
            _Wire(seen, queues, i, -1),  # type: ignore[arg-type]
        )

        class Recording(type(parties[i])):  # type: ignore[misc]
            async def _agreed(self, one: Any, attempt: Attempt) -> bytes:
                seed: bytes = await super()._agreed(one, attempt)
                seen.orders[attempt.index, one.number] = permutation(seed, len(reports) + self.plan.fakes)
                return seed

        parties[i].__class__ = Recording
        await parties[i].shuffle(attempt)

    async def everybody() -> None:
        await asyncio.gather(*(one(i) for i in range(many)))

    asyncio.run(everybody())
    outcomes = {i: seen.vectors[i, -1, OUTCOME] for i in range(many) if (i, -1, OUTCOME) in seen.vectors}
    seen.elements = server.combine(outcomes)
    return seen
