"""Shufflers that stall at each stage, and strangers who hold connections open: nobody waits without a limit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.patience import LIMIT, until
from tests.support.warm_start import run
from tests.support.world import World

from veil.errors import PartyError
from veil.shuffle.coordinator import Coordinator, ShuffleOutcome
from veil.shuffle.peos import Peos
from veil.shuffle.plan import DEVICE, SERVER
from veil.shuffle.protocol import Attempt
from veil.shuffle.settings import PartySettings
from veil.shuffle.shuffler import ShufflerProcess
from veil.shuffle.submissions import leave
from veil.shuffle.transport.channel import Channel
from veil.shuffle.transport.connections import dial

REPORTS = np.random.default_rng(0).integers(0, 2**64, 20, dtype=np.uint64)
SILENCE, MAX_SECONDS = 4.0, 10.0


async def forever() -> None:
    await asyncio.Event().wait()


# -- shufflers that stall; signs of life go on unless the stage says otherwise -----------------------------------------


class Stalling(ShufflerProcess):
    """A shuffler that does no work from the given request of the server on, or from the first shares on."""

    stage = ""

    async def _take_shares(self, channel: Channel) -> None:
        if self.stage == "shares":
            await channel.receive_shares()
            await forever()
        await super()._take_shares(channel)

    async def _do(self, channel: Channel, request: dict[str, Any]) -> None:
        if request["do"] == self.stage:
            await forever()
        await super()._do(channel, request)


class StallingWhileMixing(Peos):
    """Takes part until the second round."""

    async def _reshare(self, one: Any, attempt: Attempt, state: Any, source: Any) -> None:
        if one.number == 1:
            await forever()
        await super()._reshare(one, attempt, state, source)


class HalfFrameWhileMixing(Peos):
    """Sends another shuffler the beginning of a frame, and nothing more, not even signs of life."""

    async def _reshare(self, one: Any, attempt: Attempt, state: Any, source: Any) -> None:
        if one.number == 1:
            for peer in attempt.peers.values():
                peer._tasks[1].cancel()
                peer._writer.write((1000).to_bytes(4) + b"V")
            await forever()
        await super()._reshare(one, attempt, state, source)


@contextlib.asynccontextmanager
async def honest(settings: PartySettings, protocol: Peos) -> AsyncIterator[None]:
    async with _listening(ShufflerProcess(settings, protocol)):
        yield


@contextlib.asynccontextmanager
async def stalling(settings: PartySettings, protocol: Peos, stage: str) -> AsyncIterator[None]:
    process = Stalling(settings, protocol)
    process.stage = stage
    async with _listening(process):
        yield


@contextlib.asynccontextmanager
async def mixing(settings: PartySettings, protocol: Peos, kind: type[Peos]) -> AsyncIterator[None]:
    async with _listening(ShufflerProcess(settings, kind(protocol.plan))):
        yield


@contextlib.asynccontextmanager
async def _listening(process: ShufflerProcess) -> AsyncIterator[None]:
    ready = asyncio.Event()
    task = asyncio.ensure_future(process.listen(ready.set))
    try:
        await ready.wait()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        process._kept.close()


@contextlib.asynccontextmanager
async def impostor(settings: PartySettings, protocol: Peos, talk: str) -> AsyncIterator[None]:
    """A shuffler with a certificate that never greets: "tcp" accepts alone, "tls" does the handshake, and so on."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while talk == "alive":
                writer.write((1).to_bytes(4) + b"K")
                await asyncio.sleep(1)
            if talk == "half":
                writer.write((100).to_bytes(4) + b"J")
            await reader.read()
        writer.transport.abort()

    context = None if talk == "tcp" else settings.identity.listening()
    address = settings.plan.address(settings.party)
    server = await asyncio.start_server(take, address.host, address.port, ssl=context)
    try:
        yield
    finally:
        server.close()


CASES: dict[str, tuple[str, Callable[..., Any], Any]] = {
    "accepts and says nothing": ("shuffler-2", impostor, "tcp"),
    "handshake and then nothing": ("shuffler-2", impostor, "tls"),
    "handshake and then signs of life alone": ("shuffler-2", impostor, "alive"),
    "half a frame": ("shuffler-2", impostor, "half"),
    "after the shares": ("shuffler-3", stalling, "shares"),
    "when it is asked what it holds": ("shuffler-1", stalling, "status"),
    "at closing": ("shuffler-2", stalling, "seal"),
    "before the first of the others meets it": ("shuffler-1", stalling, "run"),
    "after the others met it": ("shuffler-3", stalling, "run"),
    "while mixing, first": ("shuffler-1", mixing, StallingWhileMixing),
    "while mixing, second": ("shuffler-2", mixing, StallingWhileMixing),
    "while mixing, third": ("shuffler-3", mixing, StallingWhileMixing),
    "half a frame while mixing": ("shuffler-2", mixing, HalfFrameWhileMixing),
    "before the acknowledgement": ("shuffler-2", stalling, "finish"),
}


async def _stalls(world: World, name: str, how: Callable[..., Any], what: Any) -> None:
    """The run ends with the name of the party that stalled; with an honest one on the same disk it succeeds."""
    kept: list[ShuffleOutcome] = []
    submissions = world.submissions(REPORTS, together=10)
    short: dict[str, Any] = {"silence": SILENCE, "limit": MAX_SECONDS}

    def party(name: str, **changes: Any) -> tuple[PartySettings, Peos]:
        return world.settings(name, **changes), Peos(world.plan)

    async def leave_shares(**changes: Any) -> None:
        await leave(*party(DEVICE, **changes), submissions)

    async def shuffle(**changes: Any) -> None:
        await Coordinator(world.settings(SERVER, **changes), Peos(world.plan, world.secret)).run(
            kept.append, kept=bool(kept)
        )

    async def blamed(work: Awaitable[None]) -> None:
        with pytest.raises(PartyError) as stopped:
            await work
        assert stopped.value.party == name, str(stopped.value)

    others = [one for one in world.plan.names if one != name]
    async with contextlib.AsyncExitStack() as stack:
        for other in others:
            await stack.enter_async_context(honest(*party(other, **short)))
        async with how(*party(name, **short), what):
            if how is impostor or what == "shares":
                await blamed(leave_shares(**short))
            else:
                await leave_shares(**short)
            if what != "shares":
                await blamed(shuffle(**short))
        assert bool(kept) == (what == "finish")
        await stack.enter_async_context(honest(*party(name)))
        if not kept:
            with contextlib.suppress(
                PartyError
            ):  # too late, where the collection was closed: then all shares are there
                await leave_shares()
        await shuffle()
    expected = [*REPORTS.tolist(), *_fakes(world, kept[0])]
    assert sorted(kept[0].elements.tolist()) == sorted(expected)


def _fakes(world: World, shuffled: ShuffleOutcome) -> list[int]:
    rest = list(shuffled.elements.tolist())
    for report in REPORTS.tolist():
        rest.remove(report)
    assert len(rest) == world.plan.fakes
    return rest


def test_a_shuffler_that_stalls_is_named_and_a_later_run_succeeds(tmp_path: Path) -> None:
    """All stages at once, because each of them waits for its limit."""

    async def everything() -> list[BaseException | None]:
        work = []
        for i, (name, how, what) in enumerate(CASES.values()):
            folder = tmp_path / str(i)
            folder.mkdir()
            work.append(_stalls(World(folder, fakes=10), name, how, what))
        async with asyncio.timeout(LIMIT):
            return await asyncio.gather(*work, return_exceptions=True)

    problems = {case: found for case, found in zip(CASES, asyncio.run(everything()), strict=True) if found is not None}
    assert not problems, "\n".join(f"{case}: {type(found).__name__}: {found}" for case, found in problems.items())


# -- strangers ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, fakes=10)
    yield made
    made.end()


def _limited(files: int) -> str:
    return f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files})); "


def _idle_socket(world: World, name: str) -> socket.socket:
    address = world.plan.address(name)
    return socket.create_connection((address.host, address.port))


def test_300_idle_sockets_stop_no_handshake(world: World) -> None:
    """With 256 files, strangers who hold connections open took all of them: nobody else got in."""
    world.start(first=_limited(256))
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(_idle_socket(world, "shuffler-1"))
        world.leave(world.submissions(REPORTS))
        assert len(world.shuffle()[0].elements) == len(REPORTS) + 10
    log = world.log("shuffler-1")
    assert "Traceback" not in log
    assert log.count("connections without a greeting for a new one") == 1
    assert "up to 175 open files" in log


def test_a_connection_that_does_not_greet_is_closed(tmp_path: Path) -> None:
    world = World(tmp_path, patience=1.0)
    try:
        world.start("shuffler-1")
        with _idle_socket(world, "shuffler-1") as idle:
            idle.settimeout(LIMIT)
            assert idle.recv(1) == b""
        until(lambda: "a stranger did not greet within 1 seconds" in world.log("shuffler-1"))
    finally:
        world.end()


def test_devices_leave_places_for_parties_and_make_room_for_each_other(tmp_path: Path) -> None:
    """Devices that are connected and do nothing are closed for new ones, and never keep the server out."""
    world = World(tmp_path, fakes=10, patience=2.5, more="connections = 2")
    try:
        world.start()

        async def crowd() -> None:
            settings = world.settings(DEVICE)
            idle = [await dial(settings, "shuffler-1", "leave") for _ in range(2)]
            with pytest.raises(PartyError, match="serves 2 devices already: come again later"):
                await dial(settings, "shuffler-1", "leave")
            statuses = await Coordinator(world.settings(SERVER), Peos(world.plan, world.secret)).status()
            assert statuses["shuffler-1"].people == 0
            await _admitted(settings)  # once those have been idle for long enough
            await asyncio.gather(*(channel.close() for channel in idle))

        async def _admitted(settings: PartySettings) -> None:
            async with asyncio.timeout(LIMIT):
                while True:
                    try:
                        channel = await dial(settings, "shuffler-1", "leave")
                    except PartyError:
                        await asyncio.sleep(0.2)
                    else:
                        return await channel.close()

        asyncio.run(crowd())
        assert "closes the connection of an idle device for a new one" in world.log("shuffler-1")
    finally:
        world.end()


def test_a_party_that_connects_again_and_again_keeps_nobody_out(world: World) -> None:
    world.start("shuffler-1")

    async def many() -> None:
        settings = world.settings("shuffler-2")
        channels = [await dial(settings, "shuffler-1", "attempt", attempt=os.urandom(16).hex()) for _ in range(8)]
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*(channel.closed.wait() for channel in channels[:4]))
        assert not any(channel.closed.is_set() for channel in channels[4:])
        await asyncio.gather(*(channel.close() for channel in channels))

    asyncio.run(many())


def test_a_shuffler_refuses_to_start_with_too_few_files(world: World) -> None:
    command = ["veil", "shuffler", "--config", str(world.folder / "shuffler-1.toml")]
    code = _limited(100) + "from veil.cli.main import run; run()"
    ended, _, said = run(code, *command)
    assert ended == 3, said
    assert "open files: expected a limit of at least 175 for shuffler-1 (connections = 64), got 100" in " ".join(
        said.split()
    )


# -- greetings ---------------------------------------------------------------------------------------------------------


def test_greetings_forge_no_lines_of_the_log(world: World) -> None:
    """What a party says of itself is checked before it comes into the log."""
    world.start("shuffler-1")
    forged = "x\n2026-01-01 00:00:00,000 shuffler-1: forgetting\x1b[2J"

    async def greet() -> None:
        settings = world.settings("shuffler-2")
        channel = await dial(settings, "shuffler-1", "attempt", attempt=forged)
        await channel.closed.wait()
        await channel.close()
        plan = replace(settings.plan, fakes=11)
        with pytest.raises(PartyError, match="they differ in fakes"):
            await dial(replace(settings, plan=plan), "shuffler-1", "attempt", attempt=forged)

    asyncio.run(greet())
    until(lambda: "joined an attempt without giving its name" in world.log("shuffler-1"))
    assert "forgetting" not in world.log("shuffler-1")
    assert "\x1b" not in world.log("shuffler-1")
