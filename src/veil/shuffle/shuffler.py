"""The process of a shuffler: it stores shares from devices, and runs a protocol when the server asks."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from veil.errors import InputError, MismatchError, PartyError, StoreError, VeilError, WireError
from veil.shuffle.plan import SERVER
from veil.shuffle.protocol import Attempt, Protocol, enter_stage
from veil.shuffle.settings import PartySettings
from veil.shuffle.submissions import LISTING, ROW_BYTES, Seal, ShareStore, pack, unpack
from veil.shuffle.transport.channel import Channel, as_pieces
from veil.shuffle.transport.connections import Listener, SparseLog, dial

_ATTEMPT = re.compile(r"[0-9a-f]{32}")
_TELLING = 0.5
"""Seconds for telling the others who failed: less than the server waits for what they say."""


class ShufflerProcess:
    """A shuffler that listens until it is cancelled.

    Devices may leave shares, the server may close the collection and start attempts, the other shufflers take part in
    those. Who somebody is follows from the certificate alone.
    """

    def __init__(self, settings: PartySettings, protocol: Protocol) -> None:
        if settings.party not in settings.plan.names:
            raise InputError(f"the plan has no shuffler {settings.party}: it has {', '.join(settings.plan.names)}")
        self._settings, self._protocol = settings, protocol
        self._index = settings.plan.index(settings.party)
        check = partial(protocol.check_shares, self._index)
        self._kept = ShareStore(settings.folder, protocol.share_size(self._index), check)
        self._people = 0
        self._log = SparseLog(settings.party)
        self._arrived: dict[tuple[str, str], asyncio.Future[Channel]] = {}
        self._control: asyncio.Task[None] | None = None

    async def listen(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until cancelled; `ready` is called once connections are accepted."""
        await Listener(self._settings, self._serve, self._room, self._log).listen(ready)

    async def _serve(self, channel: Channel, greeting: dict[str, Any]) -> None:
        """Do what a party has connected for."""
        if greeting["purpose"] == "leave":
            await self._take_shares(channel)
        elif greeting["purpose"] == "control":
            await self._obey(channel)
        else:
            attempt = greeting.get("attempt")
            if not isinstance(attempt, str) or not _ATTEMPT.fullmatch(attempt):
                raise PartyError(channel.peer, "joined an attempt without giving its name")
            await self._meet(channel, attempt)

    def _room(self) -> int:
        return self._protocol.room(self._people)

    # -- devices -------------------------------------------------------------------------------------------------------

    async def _take_shares(self, channel: Channel) -> None:
        while (body := await channel.receive_shares()) is not None:
            try:
                name = await self._kept.keep(body)
            except (InputError, MismatchError, StoreError, WireError) as problem:
                self._log("refused shares", f"refused shares: {problem}")
                await channel.send({"refused": str(problem)})
            else:
                await channel.send({"kept": name.hex()})

    # -- the server ----------------------------------------------------------------------------------------------------

    async def _obey(self, channel: Channel) -> None:
        """Do what the server asks for. A new connection of the server ends what an older one was about."""
        while self._control is not None:  # again, where somebody else came while this one waited
            older = self._control
            older.cancel()
            await asyncio.wait([older])
            if self._control is older:
                self._control = None
        task = self._control = asyncio.ensure_future(self._follow(channel))
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
        finally:
            if self._control is task:
                self._control = None

    async def _follow(self, channel: Channel) -> None:
        while True:
            try:
                request = await channel.receive()
            except PartyError:
                return  # the server has nothing more to ask for; attempts notice by themselves if it goes away
            try:
                await self._do(channel, request)
            except PartyError as problem:
                await channel.send_failure(problem)
            except (VeilError, OSError) as problem:
                await channel.send_failure(PartyError(self._settings.party, str(problem)))

    async def _do(self, channel: Channel, request: dict[str, Any]) -> None:
        match request.get("do"):
            case "status":
                await channel.send(self._status())
            case "list":
                listed = pack(self._kept.submissions)
                await channel.send({"bytes": len(listed)})
                await channel.send_vector(LISTING, as_pieces(listed))
            case "seal":
                enter_stage(self._settings.party, "closing")
                await self._seal(channel, request)
            case "run":
                await self._run(channel, str(request.get("attempt")))
            case "finish":
                enter_stage(self._settings.party, "forgetting")
                await asyncio.to_thread(self._kept.finish)
                await channel.send({"finished": True})
            case _:
                raise PartyError(SERVER, "asked for something that shufflers do not do")

    def _status(self) -> dict[str, Any]:
        return {
            "held": list(self._kept.held),
            "sealed": self._kept.closed,
            "finished": self._kept.finished,
        }

    async def _seal(self, channel: Channel, request: dict[str, Any]) -> None:
        try:
            people, digest = int(request["people"]), str(request["digest"])
            size = None if request.get("bytes") is None else int(request["bytes"])
        except (LookupError, TypeError, ValueError, OverflowError):
            raise PartyError(SERVER, "asked to close the collection without saying who takes part") from None
        if people < self._settings.plan.least:
            raise MismatchError(
                f"does not close the collection with {people:,} of the {self._settings.plan.least:,} people that the "
                "plan promises at least: wait until more have reported"
            )
        names = None
        if size is not None:
            if not 0 <= size <= ROW_BYTES * people or size % ROW_BYTES:
                raise PartyError(SERVER, f"announced a list of {size} bytes for {people} people")
            async with channel.within(self._settings.limit, "the list of people"):
                names = [name for name, _ in unpack(await channel.receive_vector(LISTING, size))]
        if self._protocol.share_size(self._index):
            self._kept.seal(names, Seal(people, digest))
        else:
            self._kept.seal([], Seal.of([]))
        self._people = people
        await channel.send({"sealed": True})

    # -- attempts ------------------------------------------------------------------------------------------------------

    async def _run(self, control: Channel, name: str) -> None:
        """Run the protocol once, unless the server goes away or says something before it is over."""
        work = asyncio.ensure_future(self._attempt(control, name))
        heard = asyncio.ensure_future(control.receive())
        # the server ends an attempt that takes too long, and says who has stalled; this is for one that does not
        seconds = 2 * (self._settings.limit + self._protocol.seconds(self._people))
        try:
            await asyncio.wait([work, heard], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                heard.result()  # the server went away
                raise PartyError(SERVER, "spoke while an attempt was under way")
            if not work.done():
                raise PartyError(SERVER, f"did not end an attempt within {seconds:g} seconds")
        finally:
            if not work.done():
                work.cancel()
            heard.cancel()  # before the server hears of the end: what it says next is another request
            await asyncio.gather(work, heard, return_exceptions=True)
        await control.send({"done": work.result()})

    async def _attempt(self, control: Channel, name: str) -> dict[str, Any]:
        if not self._people or not self._kept.closed:
            raise PartyError(self._settings.party, "was asked to shuffle a collection that is not closed")
        cpu, before = time.process_time(), (control.sent, control.received)
        enter_stage(self._settings.party, "meeting the others")
        peers = await self._peers(name)
        control.state = lambda: bytes(i for i, peer in peers.items() if peer.waiting)
        try:
            attempt = Attempt(
                self._settings.party,
                self._index,
                self._people,
                self._kept.shares(),
                self._kept.secret,
                peers,
                control,
            )
            try:
                await self._protocol.shuffle(attempt)
            except PartyError as problem:
                await _tell(peers.values(), problem)
                raise
            sent = sum(peer.sent for peer in peers.values()) + control.sent - before[0]
            received = sum(peer.received for peer in peers.values()) + control.received - before[1]
        finally:
            control.state = bytes
            for peer in peers.values():
                await peer.close()
        return {"seconds": time.process_time() - cpu, "sent": sent, "received": received}

    async def _peers(self, attempt: str) -> dict[int, Channel]:
        """Connections to all other shufflers: one calls those behind it in the order, and waits for those before."""
        names = self._settings.plan.names
        others = {i: name for i, name in enumerate(names) if i != self._index}

        async def met(i: int, name: str) -> Channel:
            if i > self._index:
                return await dial(self._settings, name, "attempt", room=self._room(), attempt=attempt)
            try:
                return await asyncio.wait_for(self._arrival(name, attempt), self._settings.patience)
            except BaseException as problem:
                self._arrived.pop((name, attempt), None)
                if isinstance(problem, TimeoutError):
                    reason = f"did not join within {self._settings.patience:g} seconds"
                    raise PartyError(name, reason) from None
                raise

        tasks = {i: asyncio.ensure_future(met(i, name)) for i, name in others.items()}
        try:
            await asyncio.wait(tasks.values())
            return {i: task.result() for i, task in tasks.items()}
        except BaseException:  # also where the server goes away in the meantime: connections must not stay behind
            for task in tasks.values():
                task.cancel()
            for channel in await asyncio.gather(*tasks.values(), return_exceptions=True):
                if isinstance(channel, Channel):
                    await channel.close()
            raise

    def _arrival(self, name: str, attempt: str) -> asyncio.Future[Channel]:
        return self._arrived.setdefault((name, attempt), asyncio.get_running_loop().create_future())

    async def _meet(self, channel: Channel, attempt: str) -> None:
        """Hand a connection of another shuffler to the attempt that it is for; the attempt closes it."""
        arrival = self._arrival(channel.peer, attempt)
        if arrival.done():
            raise PartyError(channel.peer, "joined the same attempt twice")
        arrival.set_result(channel)
        await channel.closed.wait()
        self._arrived.pop((channel.peer, attempt), None)


async def _tell(peers: Iterable[Channel], problem: PartyError) -> None:
    """Say who is to blame to all who wait: else they would only see that this party went away, and blame it."""
    sends = asyncio.gather(*(peer.send_failure(problem) for peer in peers), return_exceptions=True)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(sends, _TELLING)
