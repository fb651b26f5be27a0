"""The server's side of a collection: closing, shuffling, storing the outcome, acknowledging it."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, PartyError
from veil.shuffle.plan import SERVER
from veil.shuffle.protocol import OUTCOME, Elements, Protocol, enter_stage
from veil.shuffle.settings import PartySettings
from veil.shuffle.submissions import LISTING, ROW_BYTES, Seal, pack, unpack
from veil.shuffle.transport.channel import Channel, as_pieces
from veil.shuffle.transport.connections import dial_all
from veil.tools.numbers import is_int

_GRACE = 1.0
"""Seconds in which other parties may still say what they saw, after the first of them failed."""

Bytes = NDArray[np.uint8]
Submissions = list[tuple[bytes, int]]


@dataclass(frozen=True)
class ShufflerCosts:
    """The cost of an attempt for one shuffler: seconds of its processor, bytes sent and received."""

    seconds: float
    sent: int
    received: int


class ShufflerStatus(NamedTuple):
    """The state of a shuffler: people whose shares it stores; True if it is closed, or has deleted its shares."""

    people: int
    closed: bool
    finished: bool


@dataclass(frozen=True)
class ShuffleOutcome:
    """The outcome of a shuffle: mixed reports of `people` people with the plan's fakes among them, and its costs."""

    elements: Elements
    people: int
    costs: tuple[ShufflerCosts, ...]
    received: int
    """Bytes that the server received."""
    seconds: float
    """Seconds of the server's processor."""
    unopened: int = 0
    """Reports that are not counted, because a device sent what cannot be opened."""


class Coordinator:
    """Runs a collection to its end. Whatever fails, the shufflers still hold everything, and it can be run again."""

    def __init__(self, settings: PartySettings, protocol: Protocol) -> None:
        self._settings, self._protocol = settings, protocol
        self.left_out = 0
        """How many people a run went on without, because not every shuffler had their shares."""

    async def status(self) -> dict[str, ShufflerStatus]:
        """What each shuffler holds."""
        channels = await self._dialled()
        try:
            found = await asyncio.gather(*(self._ask(channel, do="status") for channel in channels))
        finally:
            await asyncio.gather(*(channel.close() for channel in channels))
        return {
            channel.peer: ShufflerStatus(_held(channel, one).people, bool(one.get("sealed")), bool(one.get("finished")))
            for channel, one in zip(channels, found, strict=True)
        }

    async def run(self, keep: Callable[[ShuffleOutcome], None], *, kept: bool = False, leave_out: bool = False) -> None:
        """Shuffle the collection; `keep` has to write the outcome down for good before it returns.

        `kept` says that an earlier run wrote it down, and was ended before all shufflers knew. `leave_out` goes on
        without people whose shares are not at every shuffler.
        """
        channels = await self._dialled()
        try:
            if not kept:
                keep(await self._shuffle(channels, leave_out))
            enter_stage(SERVER, "acknowledging")
            await asyncio.gather(*(self._ask(channel, do="finish") for channel in channels))
        finally:
            await asyncio.gather(*(channel.close() for channel in channels))

    async def _dialled(self) -> list[Channel]:
        return await dial_all(self._settings, self._settings.plan.names, "control")

    async def _ask(self, channel: Channel, **request: Any) -> dict[str, Any]:
        async with channel.within(self._settings.limit, f"the request {request['do']}"):
            await channel.send(request)
            return await channel.receive()

    # -- who takes part ------------------------------------------------------------------------------------------------

    async def _shuffle(self, channels: list[Channel], leave_out: bool) -> ShuffleOutcome:
        enter_stage(SERVER, "closing the collection")
        statuses = await asyncio.gather(*(self._ask(channel, do="status") for channel in channels))
        for channel, status in zip(channels, statuses, strict=True):
            if status.get("finished"):
                raise PartyError(channel.peer, "has forgotten its shares: this collection was shuffled before")
        holders = {
            c: s for i, (c, s) in enumerate(zip(channels, statuses, strict=True)) if self._protocol.share_size(i)
        }
        seal, people = await self._people(holders, leave_out)
        if not seal.people:
            raise EmptyError("nobody's shares are at every shuffler: expected at least one person")
        await asyncio.gather(*(self._seal(channel, seal, people) for channel in channels))
        return await self._attempt(channels, seal.people)

    async def _people(self, holders: Mapping[Channel, Any], leave_out: bool) -> tuple[Seal, Submissions | None]:
        """Who takes part: those of an earlier attempt, or all that every shuffler holds.

        Submissions are listed only where shufflers hold different ones; else their digests are enough.
        """
        seals = {_held(channel, status) for channel, status in holders.items()}
        if len(seals) == 1:
            return seals.pop(), None
        for channel, status in holders.items():
            if status.get("sealed"):
                people = await self._listed(channel, status)
                return Seal.of(people), people
        lists = await asyncio.gather(*(self._listed(channel, status) for channel, status in holders.items()))
        everybody, common = set().union(*lists), set(lists[0]).intersection(*lists)
        if not leave_out:
            lacking = {c.peer: Seal.of(everybody - set(one)).people for c, one in zip(holders, lists, strict=True)}
            name = max(lacking, key=lambda one: lacking[one])
            raise PartyError(
                name,
                f"lacks the shares of {lacking[name]:,} of the {Seal.of(everybody).people:,} people that others hold: "
                "run again once they have arrived, or with --leave-out, which goes on without them",
            )
        self.left_out = Seal.of(everybody - common).people
        return Seal.of(common), sorted(common)

    async def _listed(self, channel: Channel, status: Any) -> Submissions:
        size, most = (await self._ask(channel, do="list")).get("bytes"), ROW_BYTES * _held(channel, status).people
        if not is_int(size) or not 0 <= size <= most or size % ROW_BYTES:
            raise PartyError(channel.peer, f"announced a list of submissions that is not one of up to {most} bytes")
        async with channel.within(self._settings.limit, "the list of submissions"):
            return unpack(await channel.receive_vector(LISTING, size))

    async def _seal(self, channel: Channel, seal: Seal, people: Submissions | None) -> None:
        request = {"do": "seal", "people": seal.people, "digest": seal.digest}
        async with channel.within(self._settings.limit, "closing the collection"):
            if people is None:
                await channel.send(request)
            else:
                listed = pack(people)
                await channel.send({**request, "bytes": len(listed)})
                await channel.send_vector(LISTING, as_pieces(listed))
            await channel.receive()

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _attempt(self, channels: list[Channel], people: int) -> ShuffleOutcome:
        enter_stage(SERVER, "waiting for the shufflers")
        name = secrets.token_hex(16)
        before = sum(channel.received for channel in channels)
        follow = [asyncio.ensure_future(self._follow(i, channel, name, people)) for i, channel in enumerate(channels)]
        seconds = self._settings.limit + self._protocol.seconds(people)
        try:
            _, unfinished = await asyncio.wait(follow, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            if unfinished and not any(task.done() and task.exception() for task in follow):
                waits = {i: channels[i].peer_state for i, task in enumerate(follow) if task in unfinished}
                raise _stalled(waits, [channel.peer for channel in channels], seconds)
            if any(task.done() and task.exception() for task in follow):
                await asyncio.wait(follow, timeout=_GRACE)
                raise _blamed(dict(zip((channel.peer for channel in channels), follow, strict=True)))
        finally:
            for task in follow:
                task.cancel()
            await asyncio.gather(*follow, return_exceptions=True)
        results = dict(enumerate(task.result() for task in follow))
        outcomes = {i: outcome for i, (outcome, _) in results.items() if outcome is not None}
        received = sum(channel.received for channel in channels) - before
        enter_stage(SERVER, "opening the outcome")
        start = time.process_time()
        elements = await asyncio.to_thread(self._protocol.combine, outcomes)
        costs = tuple(cost for _, cost in results.values())
        opened = len(elements) - self._settings.plan.fakes
        return ShuffleOutcome(elements, opened, costs, received, time.process_time() - start, people - opened)

    async def _follow(self, i: int, channel: Channel, name: str, people: int) -> tuple[Bytes | None, ShufflerCosts]:
        """One shuffler's attempt: what it sends in the end, and what it took."""
        await channel.send({"do": "run", "attempt": name})
        outcome = None
        if size := self._protocol.outcome_size(i):
            outcome = await channel.receive_vector(OUTCOME, size * (people + self._settings.plan.fakes))
        done = (await channel.receive()).get("done")
        try:
            costs = ShufflerCosts(float(done["seconds"]), int(done["sent"]), int(done["received"]))  # type: ignore[index]
        except (LookupError, TypeError, ValueError, OverflowError):
            costs = ShufflerCosts(math.nan, 0, 0)
        if not math.isfinite(costs.seconds):
            raise PartyError(channel.peer, "does not say what its part took")
        return outcome, costs


def _held(channel: Channel, status: Mapping[str, Any]) -> Seal:
    """Return what a shuffler says that it holds."""
    match status.get("held"):
        case [people, str(digest)] if is_int(people) and people >= 0:
            return Seal(people, digest)
    raise PartyError(channel.peer, "does not say how many people's shares it holds")


def _stalled(waits: Mapping[int, bytes], names: Sequence[str], seconds: float) -> PartyError:
    """Return the failure of an attempt that took too long: the party is the one that waits for nobody.

    `waits` has the unfinished shufflers, each with the indices of those that it waits for. Signs of life carry them.

    >>> str(_stalled({0: bytes([1]), 1: bytes([2]), 2: b""}, ["a", "b", "c"], 60))
    'c has stalled: the shuffle took longer than 60 seconds, and c waits for nobody'
    >>> str(_stalled({0: bytes([1]), 1: bytes([0])}, ["a", "b", "c"], 60))
    'some shuffler has stalled: the shuffle took longer than 60 seconds, and a, b say that they wait for others'
    """
    reason = f"has stalled: the shuffle took longer than {seconds:g} seconds"
    for i, others in waits.items():
        for other in others:
            if other < len(names) and other not in waits:  # it says that it is done
                return PartyError(names[other], f"{reason}, and {names[i]} waits for it")
    working = [i for i, others in waits.items() if not others]
    if working:
        return PartyError(names[working[0]], f"{reason}, and {names[working[0]]} waits for nobody")
    return PartyError(
        "some shuffler", f"{reason}, and {', '.join(names[i] for i in waits)} say that they wait for others"
    )


def _blamed(tasks: Mapping[str, asyncio.Future[Any]]) -> BaseException:
    """The failure to tell of: what the server saw itself comes first, then what most shufflers say."""
    failures = {name: task.exception() for name, task in tasks.items() if task.done() and not task.cancelled()}
    found = {name: failure for name, failure in failures.items() if failure is not None}
    others = [failure for failure in found.values() if not isinstance(failure, PartyError)]
    if others:
        return others[0]
    seen = [failure for name, failure in found.items() if isinstance(failure, PartyError) and failure.party == name]
    if seen:
        return seen[0]
    names = [failure.party for failure in found.values() if isinstance(failure, PartyError)]
    most = max(names, key=names.count)
    return next(failure for failure in found.values() if isinstance(failure, PartyError) and failure.party == most)
