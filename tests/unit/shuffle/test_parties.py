"""Shufflers and the server: failures of an attempt, connections, invalid requests and answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.in_memory import small_plan
from tests.unit.shuffle.transport.test_channel import between

from veil.errors import PartyError, WireError
from veil.shuffle.coordinator import Coordinator
from veil.shuffle.peos import Peos
from veil.shuffle.settings import PartySettings
from veil.shuffle.shuffler import ShufflerProcess
from veil.shuffle.submissions import Seal, Submission
from veil.shuffle.transport.certificates import PartyIdentity
from veil.shuffle.transport.channel import Channel


class _Peer:
    """As much of a channel as a failed attempt uses."""

    sent = received = 0

    def __init__(self) -> None:
        self.told: list[str] = []
        self.closed = False

    async def send_failure(self, failure: PartyError) -> None:
        self.told.append(failure.party)

    async def close(self) -> None:
        self.closed = True


def shuffler_process(tmp_path: Path, protocol: Any, **more: Any) -> ShufflerProcess:
    identity = PartyIdentity(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    return ShufflerProcess(
        PartySettings("shuffler-1", protocol.plan, identity, tmp_path, patience=0.1, **more), protocol
    )


def test_invalid_ciphertexts_are_refused_on_arrival(tmp_path: Path) -> None:
    """Afterwards nobody could take it out again: one device would stop everybody's collection."""
    protocol = Peos(small_plan(3))
    process, size = shuffler_process(tmp_path, protocol), protocol.share_size(0)
    good = Submission.of(protocol, np.arange(3, dtype=np.uint64))
    asyncio.run(process._kept.keep(good.body(0)))
    modulus = int(protocol.plan.keys["server"]["modulus"], 16)
    for bad in (0, modulus, 2 ** (8 * size) - 1):
        with pytest.raises(WireError, match="not a ciphertext"):
            asyncio.run(process._kept.keep(bytes(16) + (1).to_bytes(4) + bad.to_bytes(size)))
    assert process._kept.held.people == 3


def test_shuffler_reports_the_failed_party_to_the_others(tmp_path: Path) -> None:
    """Else they only see that this shuffler goes away, and outvote it with its own name."""

    class Failing(Peos):
        async def shuffle(self, attempt: Any) -> None:
            raise PartyError("shuffler-3", "has been silent")

    process, peers = shuffler_process(tmp_path, Failing(small_plan(3))), {1: _Peer(), 2: _Peer()}
    process._kept.seal([], Seal.of([]))
    process._people = 1

    async def met(attempt: str) -> Any:
        return peers

    process._peers = met  # type: ignore[method-assign]
    with pytest.raises(PartyError, match="shuffler-3"):
        asyncio.run(process._attempt(_Peer(), "a"))  # type: ignore[arg-type]
    assert [peer.told for peer in peers.values()] == [["shuffler-3"], ["shuffler-3"]]
    assert all(peer.closed for peer in peers.values())


def test_server_that_does_not_end_an_attempt_is_named(tmp_path: Path) -> None:
    """It should have ended the attempt, and named who stalled: the shuffler does not wait for ever."""

    class Stalled(Peos):
        async def shuffle(self, attempt: Any) -> None:
            await asyncio.Event().wait()

        def seconds(self, people: int) -> float:
            return 0.0

    class Server(_Peer):
        async def receive(self) -> Any:
            await asyncio.Event().wait()

    process, peers = shuffler_process(tmp_path, Stalled(small_plan(3)), limit=0.1), {1: _Peer(), 2: _Peer()}
    process._kept.seal([], Seal.of([]))
    process._people = 1

    async def met(attempt: str) -> Any:
        return peers

    process._peers = met  # type: ignore[method-assign]
    with pytest.raises(PartyError, match=r"server did not end an attempt within 0\.2 seconds"):
        asyncio.run(process._run(Server(), "a"))  # type: ignore[arg-type]
    assert all(peer.closed for peer in peers.values())


def test_cancelled_attempt_closes_its_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = shuffler_process(tmp_path, Peos(small_plan(3)))
    made: list[Channel] = []

    async def dialled(settings: PartySettings, name: str, purpose: str, **more: Any) -> Channel:
        if name == "shuffler-3":
            await asyncio.sleep(60)
        return made[0]

    async def talk(channel: Channel, raw: asyncio.StreamWriter) -> None:
        made.append(channel)
        work = asyncio.ensure_future(process._peers("a"))
        await asyncio.sleep(0.05)
        work.cancel()  # as when the server goes away
        with pytest.raises(asyncio.CancelledError):
            await work
        assert channel.closed.is_set()

    monkeypatch.setattr("veil.shuffle.shuffler.dial", dialled)
    between(talk)


def test_newest_server_connection_is_served(tmp_path: Path) -> None:
    process = shuffler_process(tmp_path, Peos(small_plan(3)))
    working: set[Any] = set()

    async def follow(channel: Any) -> None:
        working.add(channel)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            working.discard(channel)

    async def run() -> None:
        process._follow = follow  # type: ignore[method-assign]
        first = asyncio.ensure_future(process._obey("first"))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        others = [asyncio.ensure_future(process._obey(name)) for name in ("second", "third")]  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        assert len(working) == 1
        for task in (first, *others):
            task.cancel()
        await asyncio.gather(first, *others, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("do", "answer", "said"),
    [
        ("status", {}, "does not say how many people's shares it holds"),
        ("status", {"held": [-1, "x"]}, "does not say how many people's shares it holds"),
        ("status", {"held": ["3", ["x"]]}, "does not say how many people's shares it holds"),
        ("list", {}, "announced a list of submissions"),
        ("list", {"bytes": 10**15}, "announced a list of submissions"),
        ("list", {"bytes": 19}, "announced a list of submissions"),
    ],
)
def test_incomplete_answers_name_the_shuffler(tmp_path: Path, do: str, answer: dict[str, Any], said: str) -> None:
    class Peer:
        peer = "shuffler-2"

        async def send(self, document: dict[str, Any]) -> None:
            assert document["do"] == do

        async def receive(self) -> dict[str, Any]:
            return answer

        within = Channel.within

    identity = PartyIdentity(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    protocol = Peos(small_plan(3))
    coordinator, peer = Coordinator(PartySettings("server", protocol.plan, identity, tmp_path), protocol), Peer()

    async def ask() -> None:
        if do == "list":
            await coordinator._listed(peer, {"held": [3, ""]})  # type: ignore[arg-type]
        else:
            await coordinator._people({peer: await coordinator._ask(peer, do=do)}, False)  # type: ignore[arg-type, dict-item]

    with pytest.raises(PartyError, match=f"shuffler-2 {said}"):
        asyncio.run(ask())


@pytest.mark.parametrize("request_", [{}, {"people": "x", "digest": ""}, {"people": 3, "digest": "", "bytes": 10**15}])
def test_incomplete_requests_of_the_server_are_refused(tmp_path: Path, request_: dict[str, Any]) -> None:
    process = shuffler_process(tmp_path, Peos(small_plan(3)))
    with pytest.raises(PartyError, match=r"server (asked to close|announced a list)"):
        asyncio.run(process._do(_Peer(), {"do": "seal", **request_}))  # type: ignore[arg-type]
