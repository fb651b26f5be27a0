"""Connections to shufflers: connecting with agreement on the plan, and accepting a limited number of connections.

`dial` connects to a shuffler, and compares the plans before anything else is said. `Listener` accepts connections.
Anybody can open connections, and each takes a file of the process. So there are three kinds of places:

- `connections` for connections that have not identified themselves. That means TLS and the greeting, together within
  `patience` seconds. When all places are taken, the oldest of these connections is closed for a new one: a party that
  greets at once gets in, however many others hold connections open.
- `connections` for devices. When all places are taken, the device that has been idle for longest makes room, if that
  was more than `patience` seconds; else a new device is told to come again.
- A few for each other party. A new connection of a party closes the oldest one of the same party when its places are
  taken.

Events that strangers and devices can cause are logged at most once a minute, with their number.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from veil.errors import InputError, PartyError, VeilError
from veil.shuffle.plan import DEVICE, SERVER
from veil.shuffle.settings import PartySettings
from veil.shuffle.transport.certificates import name_in
from veil.shuffle.transport.channel import Channel, reason_in
from veil.tools.limits import require_files

VERSION = 1
"""Of what is spoken between parties."""

Purpose = Literal["leave", "control", "attempt"]
"""Why somebody connects: devices leave shares, the server closes and starts, shufflers meet for an attempt."""

Serve = Callable[[Channel, dict[str, Any]], Awaitable[None]]
SPARE_FILES = 32
"""Files of a party that are no connections: its data, its settings, standard streams, the event loop."""

_PAUSE = 0.1  # seconds before another attempt to connect or to accept
_PER_PARTY = 4
_BACKLOG = 128
_LOG_SECONDS = 60.0
_log = logging.getLogger("veil.parties")


async def dial_all(settings: PartySettings, names: Sequence[str], purpose: Purpose) -> list[Channel]:
    """Connect to several shufflers at once; if one of them fails, no connection stays open."""
    require_files(len(names) + SPARE_FILES, f"connections to {len(names)} shufflers")
    dials = (dial(settings, name, purpose) for name in names)
    found = await asyncio.gather(*dials, return_exceptions=True)
    channels = [channel for channel in found if isinstance(channel, Channel)]
    for problem in found:
        if isinstance(problem, BaseException):
            await asyncio.gather(*(channel.close() for channel in channels))
            raise problem
    return channels


async def dial(
    settings: PartySettings, name: str, purpose: Purpose, *, room: int | None = None, **more: Any
) -> Channel:
    """A channel to a shuffler who has shown its certificate and has the same plan; `room` as in `Channel`."""
    channel = await _connected(settings, name, room)
    try:
        greeting = {"version": VERSION, "plan": settings.plan.fingerprints(), "purpose": purpose, **more}
        async with channel.within(settings.patience, "the greeting"):
            await channel.send(greeting)
            answer = await channel.receive()
        if "welcome" not in answer:
            raise PartyError(name, reason_in(answer, "refused", "does not speak this protocol"))
    except BaseException:  # also where nobody waits for it any more: it would show signs of life for ever
        await channel.close()
        raise
    return channel


async def _connected(settings: PartySettings, name: str, room: int | None) -> Channel:
    """Try until it listens, or until patience ends: parties do not start at the same moment."""
    address, context = settings.plan.address(name), settings.identity.connecting()
    end = time.monotonic() + settings.patience
    while True:
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=name),
                max(end - time.monotonic(), 1.0),
            )
        except ssl.SSLCertVerificationError:
            raise PartyError(name, f"did not show the certificate of {name} at {address}") from None
        except (OSError, TimeoutError):
            if time.monotonic() > end:
                raise PartyError(name, f"cannot be reached at {address}") from None
            await asyncio.sleep(_PAUSE)
        else:
            return Channel(reader, writer, name, settings.silence, room)


async def greet(settings: PartySettings, channel: Channel, admit: Callable[[], str | None]) -> dict[str, Any]:
    """Return the greeting of a party that connected; refuse it, with the reason, if it has another plan.

    `admit` says why there is no place for this party, or takes one for it.
    """
    greeting = await channel.receive()
    reason = None
    if greeting.get("version") != VERSION:
        reason = f"speaks version {VERSION} of this protocol"
    elif different := settings.plan.differences(greeting.get("plan")):
        reason = f"has another plan than {channel.peer}: they differ in {', '.join(different)}"
    elif greeting.get("purpose") != _allowed(settings, channel.peer):
        reason = (
            f"does not let {channel.peer} do this: only devices leave shares, and only the server closes and starts"
        )
    else:
        reason = admit()
    if reason is not None:
        await channel.send({"refused": reason})
        raise PartyError(channel.peer, f"was refused: {settings.party} {reason}")
    await channel.send({"welcome": settings.party})
    return greeting


def _allowed(settings: PartySettings, peer: str) -> Purpose | None:
    """What a party may connect for, by the name in its certificate."""
    if peer in (DEVICE, SERVER):
        return "leave" if peer == DEVICE else "control"
    return "attempt" if peer in settings.plan.names else None


def files_needed(settings: PartySettings) -> int:
    """Return how many files a shuffler may have open at the same time."""
    return 2 * settings.connections + (_PER_PARTY + 1) * len(settings.plan.shufflers) + SPARE_FILES


class SparseLog:
    """A log of events that others can cause at will: one line per kind and minute, with the number of events."""

    def __init__(self, party: str) -> None:
        self._party = party
        self._counts: dict[str, int] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Log `text` if it is the first event of its kind in this minute; else count it."""
        if kind in self._counts:
            self._counts[kind] += 1
            return
        self._counts[kind] = 0
        _log.warning("%s: %s", self._party, text)
        asyncio.get_running_loop().call_later(_LOG_SECONDS, self._summarise, kind)

    def _summarise(self, kind: str) -> None:
        if count := self._counts.pop(kind):
            _log.warning("%s: %s: %d more times in %g seconds", self._party, kind, count, _LOG_SECONDS)


class _Connection:
    """A connection, and the task that serves it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.channel: Channel | None = None

    def drop(self) -> None:
        """Close the connection without waiting for its other end."""
        if self.channel is not None:
            self.channel.abort()
        if self.task is not None:
            self.task.cancel()


class Listener:
    """Accepts connections to a shuffler; `serve` is called for each party that has been admitted, with its greeting.

    `room` returns how much of another shuffler may wait to be received (see `Channel`).
    """

    def __init__(self, settings: PartySettings, serve: Serve, room: Callable[[], int], log: SparseLog) -> None:
        self._settings, self._serve, self._room, self._log = settings, serve, room, log
        self._context = settings.identity.listening()
        self._strangers: dict[_Connection, None] = {}
        self._devices: dict[_Connection, None] = {}
        self._parties: dict[str, list[_Connection]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, ready: Callable[[], None]) -> None:
        """Accept connections until cancelled; `ready` is called once they are accepted."""
        require_files(
            files_needed(self._settings), f"{self._settings.party} (connections = {self._settings.connections})"
        )
        sockets = await self._bound()
        try:
            ready()
            async with asyncio.TaskGroup() as group:
                for one in sockets:
                    group.create_task(self._accept(one))
        finally:
            for one in sockets:
                one.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _bound(self) -> list[socket.socket]:
        address, sockets = self._settings.plan.address(self._settings.party), list[socket.socket]()
        try:
            places = await asyncio.get_running_loop().getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            for family, _, _, _, place in dict.fromkeys(places):
                sockets.append(socket.create_server(place, family=family, backlog=_BACKLOG))
                sockets[-1].setblocking(False)
        except OSError as problem:
            for one in sockets:
                one.close()
            raise InputError(f"{self._settings.party} cannot listen at {address}: {problem.strerror}") from None
        return sockets

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as problem:  # no files or no memory left, or the connection is gone already
                self._log("connections that could not be accepted", f"cannot accept a connection: {problem.strerror}")
                self._drop_stranger()
                await asyncio.sleep(_PAUSE)
                continue
            if len(self._strangers) >= self._settings.connections:
                kind = "connections closed for newer ones"
                self._log(
                    kind, f"closes the oldest of {len(self._strangers)} connections without a greeting for a new one"
                )
                self._drop_stranger()
            connection = _Connection()
            self._strangers[connection] = None
            connection.task = asyncio.create_task(self._visit(connection, accepted))
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0)  # files of closed connections are given back in between

    def _drop_stranger(self) -> None:
        if self._strangers:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.drop()

    async def _visit(self, connection: _Connection, accepted: socket.socket) -> None:
        """Serve one connection to its end."""
        try:
            try:
                async with asyncio.timeout(self._settings.patience):
                    channel = connection.channel = await self._identified(accepted)
                    greeting = await greet(self._settings, channel, lambda: self._admit(connection, channel))
            finally:
                self._strangers.pop(connection, None)
            await self._serve(channel, greeting)
        except TimeoutError:
            who = "a stranger" if connection.channel is None else connection.channel.peer
            self._log(
                "connections without a greeting", f"{who} did not greet within {self._settings.patience:g} seconds"
            )
        except ssl.SSLError as problem:
            self._log("connections refused by TLS", f"refused a connection by TLS ({problem.reason or 'no reason'})")
        except (VeilError, OSError) as problem:
            who = "a stranger" if connection.channel is None else connection.channel.peer
            self._log(f"connections of {who} that failed", str(problem) or f"the connection of {who} was closed")
        finally:
            self._leave(connection)
            if connection.channel is not None:
                await connection.channel.close()

    async def _identified(self, accepted: socket.socket) -> Channel:
        """Do the handshake, and return the channel to the party that the certificate names."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, accepted, ssl=self._context, ssl_handshake_timeout=2 * self._settings.patience
        )
        try:
            peer = name_in(transport.get_extra_info("peercert"))
        except PartyError:
            transport.abort()
            raise
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        room = self._room() if peer in self._settings.plan.names else None
        return Channel(reader, writer, peer, self._settings.silence, room)

    # -- places --------------------------------------------------------------------------------------------------------

    def _admit(self, connection: _Connection, channel: Channel) -> str | None:
        """Take a place for a party that has greeted, or say why there is none."""
        if channel.peer == DEVICE:
            if len(self._devices) >= self._settings.connections and not self._drop_device():
                return f"serves {self._settings.connections} devices already: come again later"
            self._devices[connection] = None
            return None
        places = self._parties.setdefault(channel.peer, [])
        if len(places) >= _PER_PARTY:
            places.pop(0).drop()
        places.append(connection)
        return None

    def _drop_device(self) -> bool:
        """Close the connection of the device that left nothing for longest, unless all of them are active."""
        quiet = min(self._devices, key=lambda one: one.channel.active if one.channel else 0.0)
        since = quiet.channel.active if quiet.channel else 0.0
        if asyncio.get_running_loop().time() - since < self._settings.patience:
            return False
        self._log("idle devices closed for newer ones", "closes the connection of an idle device for a new one")
        del self._devices[quiet]
        quiet.drop()
        return True

    def _leave(self, connection: _Connection) -> None:
        self._devices.pop(connection, None)
        if connection.channel is not None:
            with contextlib.suppress(ValueError):
                self._parties.get(connection.channel.peer, []).remove(connection)
