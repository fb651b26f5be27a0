"""Connecting to a shuffler, and agreeing with it on the plan before anything else is said."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from veil.errors import PartyError
from veil.shuffle.parties.channel import Channel, reason_in
from veil.shuffle.parties.plan import DEVICE, SERVER
from veil.shuffle.parties.settings import Settings
from veil.tools.limits import require_files

__all__ = ["SPARE_FILES", "VERSION", "Purpose", "dial", "dial_all", "greet"]

VERSION = 1
"""Of what is spoken between parties."""

Purpose = Literal["leave", "control", "attempt"]
"""Why somebody connects: devices leave shares, the server closes and starts, shufflers meet for an attempt."""

SPARE_FILES = 32
"""Files of a party that are no connections: its data, its settings, standard streams, the event loop."""

_PAUSE = 0.1


async def dial_all(settings: Settings, names: Sequence[str], purpose: Purpose) -> list[Channel]:
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


async def dial(settings: Settings, name: str, purpose: Purpose, *, room: int | None = None, **more: Any) -> Channel:
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


async def _connected(settings: Settings, name: str, room: int | None) -> Channel:
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


async def greet(settings: Settings, channel: Channel, admit: Callable[[], str | None]) -> dict[str, Any]:
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


def _allowed(settings: Settings, peer: str) -> Purpose | None:
    """What a party may connect for, by the name in its certificate."""
    if peer in (DEVICE, SERVER):
        return "leave" if peer == DEVICE else "control"
    return "attempt" if peer in settings.plan.names else None
