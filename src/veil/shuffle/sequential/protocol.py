"""The sequential shuffle between parties: the work of devices, shufflers and the server, as a `veil.shuffle.protocol`.

Devices leave one onion, with the first shuffler alone. Each shuffler takes a batch from the one before it, opens its
layer, adds its fakes, mixes and passes it on; the last one sends the server messages that only the server can open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from veil.entropy import Batch
from veil.errors import InputError, MismatchError, ParameterError
from veil.shuffle.plan import DEVICE, SERVER, CollectionPlan
from veil.shuffle.protocol import Attempt, Protocol
from veil.shuffle.sequential.mixing import BatchError, ShufflerMemory, draw_fakes, fakes_of, mix, open_batch
from veil.shuffle.sequential.onion import U64, Bytes, Key, Route, reports_in, wrap_many
from veil.shuffle.settings import PartySettings
from veil.shuffle.transport.channel import as_pieces
from veil.tools.json_documents import Json, digest


def keys_in_plan(shufflers: Sequence[bytes], server: bytes) -> Json:
    """What stands under `keys` in a plan: the public keys of the shufflers, in their order, and of the server.

    >>> keys_in_plan([bytes(32)], bytes(32))["server"][:8]
    '00000000'
    """
    return {"shufflers": [key.hex() for key in shufflers], "server": server.hex()}


def route_of(plan: CollectionPlan) -> Route:
    """The route of a plan. Bound to the collection's name and its study; addresses may change while it runs."""
    keys = plan.keys
    try:
        if set(keys) != {"shufflers", "server"} or len(keys["shufflers"]) != len(plan.shufflers):
            raise ValueError
        shufflers, server = tuple(bytes.fromhex(key) for key in keys["shufflers"]), bytes.fromhex(keys["server"])
    except (TypeError, ValueError):
        raise ParameterError(
            "a plan's keys are the server's, and one for each shuffler, as hexadecimal digits"
        ) from None
    return Route(plan.collection.encode() + b"/" + bytes.fromhex(digest(plan.study)), shufflers, server)


class Sequential(Protocol):
    """The sequential shuffle of a plan. Devices need nothing else; shufflers and the server their key.

    A shuffler has a `folder` where it remembers what its fakes were. `workers` are processes that open layers.
    """

    name: ClassVar[str] = "sequential"

    def __init__(
        self, plan: CollectionPlan, key: Key | None = None, folder: Path | None = None, workers: int = 1
    ) -> None:
        super().__init__(plan)
        if plan.protocol != self.name:
            raise MismatchError(f"this plan is for the protocol {plan.protocol}, not {self.name}")
        self.route = route_of(plan)
        if key is not None and key.public not in self.route.keys:
            raise InputError("this private key belongs to no party in the plan")
        self._key, self._folder, self._workers = key, folder, workers

    @classmethod
    def of(cls, settings: PartySettings, workers: int = 1) -> Sequential:
        """As the party of these settings takes part: with its key and its folder."""
        if settings.party == DEVICE:
            return cls(settings.plan)
        names = (*settings.plan.names, SERVER)
        if settings.party not in names:
            raise InputError(f"the plan has no party {settings.party}: it has {', '.join(names)}")
        if settings.secret is None:
            raise InputError(f"the settings of {settings.party} lack the setting secret: the file with its private key")
        protocol = cls(settings.plan, Key.read(settings.secret), settings.folder, workers)
        protocol._own_key(names.index(settings.party))
        return protocol

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def share_size(self, shuffler: int) -> int:
        return 0 if shuffler else self.route.size(0)

    def outcome_size(self, shuffler: int) -> int:
        return 0 if shuffler < self._last else self.route.size(self._last + 1)

    @property
    def _last(self) -> int:
        return len(self.plan.shufflers) - 1

    # -- devices -------------------------------------------------------------------------------------------------------

    def split(self, reports: U64) -> list[Bytes]:
        nothing = np.zeros((len(reports), 0), dtype=np.uint8)
        return [wrap_many(self.route, reports, workers=self._workers), *[nothing] * self._last]

    # -- shufflers -----------------------------------------------------------------------------------------------------

    async def shuffle(self, attempt: Attempt) -> None:
        place = attempt.index
        messages = attempt.shares if place == 0 else await self._received(attempt)
        attempt.stage(f"opening and mixing {len(messages):,} messages")
        mixed = await asyncio.to_thread(self._step, place, messages, attempt.secret)
        attempt.stage(f"handing on {len(mixed):,} messages")
        if place == self._last:
            await attempt.hand_over(as_pieces(mixed))
        else:
            await attempt.send(place + 1, place, mixed)

    async def _received(self, attempt: Attempt) -> Bytes:
        before, size = attempt.index - 1, self.route.size(attempt.index)
        count = attempt.people + sum(self._fakes_of(place) for place in range(attempt.index))
        return (await attempt.receive(before, before, count * size)).reshape(count, size)

    def _step(self, place: int, messages: Bytes, secret: bytes) -> Bytes:
        """What this shuffler hands on. Nothing is fixed by messages that were refused, and fixed before any leaves."""
        if self._folder is None:
            raise InputError("a shuffler needs a folder where it remembers its fakes")
        key, memory = self._own_key(place), ShufflerMemory(self._folder, secret)
        try:
            known = memory.recall(messages, self.route.size(place + 1))
        except MismatchError as problem:
            raise BatchError(self._before(place), str(problem)) from None
        fakes = known if known is not None else self._draw(place)
        mixed = mix(self.route, place, key, messages, fakes, Batch(), sender=self._before(place), workers=self._workers)
        if known is None:
            memory.remember(messages, fakes)
        return mixed

    def _draw(self, place: int) -> Bytes:
        count, ring = self._fakes_of(place), self.plan.ring
        return draw_fakes(self.route, place, count, Batch(), ring=ring, workers=self._workers)

    def _fakes_of(self, place: int) -> int:
        return fakes_of(self.plan.fakes, len(self.plan.shufflers), place)

    def _before(self, place: int) -> str:
        return self.plan.names[place - 1] if place else DEVICE

    def _own_key(self, place: int) -> Key:
        if self._key is None or self._key.public != self.route.keys[place]:
            name = self.plan.names[place] if place <= self._last else SERVER
            raise InputError(f"this is not the private key to the key of {name} in the plan")
        return self._key

    # -- the server ----------------------------------------------------------------------------------------------------

    def combine(self, outcomes: Mapping[int, Bytes]) -> U64:
        layer = self._last + 1
        rows = outcomes[self._last].reshape(-1, self.route.size(layer))
        key, sender = self._own_key(layer), self.plan.names[self._last]
        opened = open_batch(self.route, layer, key, rows, sender=sender, workers=self._workers)
        # A device may have sent more bits than reports have: what counts is the report modulo 2^ring, as in sums.
        return reports_in(opened) & np.uint64((1 << self.plan.ring) - 1)
