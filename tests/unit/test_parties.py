"""Parties: frames that are wrong, what a shuffler keeps through crashes, and settings that do not fit."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.patience import LIMIT
from tests.support.in_memory import small_plan

from veil.errors import InputError, MismatchError, ParameterError, PartyError, StoreError, VeilError, WireError
from veil.shuffle.coordinator import Coordinator
from veil.shuffle.peos import Peos
from veil.shuffle.plan import Address, CollectionPlan
from veil.shuffle.settings import PartySettings
from veil.shuffle.shuffler import ShufflerProcess
from veil.shuffle.submissions import Seal, ShareStore, Submission, SubmissionOutbox, pack, unpack
from veil.shuffle.transport.certificates import PartyIdentity
from veil.shuffle.transport.channel import LONGEST, Channel, as_pieces


def between(talk: Callable[[Channel, asyncio.StreamWriter], Awaitable[Any]], silence: float = 5.0) -> Any:
    """Run `talk` with a channel, and with the raw other end of it."""

    async def run() -> Any:
        arrived: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set_result((reader, writer))

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        raw_reader, raw = await asyncio.open_connection("127.0.0.1", port)
        channel = Channel(*await arrived, "shuffler-9", silence)
        try:
            return await talk(channel, raw)
        finally:
            await channel.close()
            raw.close()
            server.close()
            del raw_reader

    return asyncio.run(run())


def frame(kind: bytes, body: bytes) -> bytes:
    return (len(body) + 1).to_bytes(4) + kind + body


# -- frames ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ((LONGEST + 1).to_bytes(4), "announced a frame of"),
        ((0).to_bytes(4), "announced a frame of 0 bytes"),
        (frame(b"J", b"{}")[:-1], "broke off in the middle of a frame"),
        ((10).to_bytes(4)[:2], "broke off in the middle of a frame"),
        (b"", "went away"),
        (frame(b"J", b"[1]"), "is not a document"),
        (frame(b"J", b"\xff"), "is not a document"),
        (frame(b"J", b"[" * 60_000), "is not a document"),
        (frame(b"J", b'{"a":' * 10_000 + b"1" + b"}" * 10_000), "is not a document"),
        (frame(b"J", b'{"failed":' + b"[" * 60_000), "shuffler-9 failed, and does not say why"),
        (frame(b"J", b'{"a":"' + b"x" * 70_000 + b'"}'), "sent a document of 70009 bytes"),
        (frame(b"J", b'{"failed":{"party":"shuffler-3\\nx","reason":"fell over"}}'), "shuffler-9 failed, and does not"),
        (
            frame(b"J", b'{"failed":{"party":"shuffler-3","reason":"\\u001b[2J"}}'),
            "shuffler-3 failed, and does not say",
        ),
        (frame(b"Z", b"{}"), "something else than the document"),
        (frame(b"J", b'{"failed":{"party":"shuffler-3","reason":"fell over"}}'), "shuffler-3 fell over"),
    ],
)
def test_frames_that_are_wrong_name_the_party(sent: bytes, said: str) -> None:
    async def talk(channel: Channel, raw: asyncio.StreamWriter) -> None:
        raw.write(sent)
        raw.write_eof()
        await channel.receive()

    with pytest.raises(PartyError, match=said) as found:
        between(talk)
    assert found.value.party in ("shuffler-9", "shuffler-3")


@pytest.mark.parametrize(
    "piece",
    [
        frame(b"V", (8).to_bytes(4) + (0).to_bytes(8) + bytes(10)),  # another label
        frame(b"V", (7).to_bytes(4) + (1).to_bytes(8) + bytes(10)),  # another place
        frame(b"V", (7).to_bytes(4) + (0).to_bytes(8)),  # empty
        frame(b"V", (7).to_bytes(4) + (0).to_bytes(8) + bytes(11)),  # longer than expected
        frame(b"J", b"{}"),
    ],
)
def test_vectors_that_are_wrong_are_refused(piece: bytes) -> None:
    async def talk(channel: Channel, raw: asyncio.StreamWriter) -> None:
        raw.write(piece)
        await channel.receive_vector(7, 10)

    with pytest.raises(PartyError, match="shuffler-9 sent"):
        between(talk)


def test_silence_is_noticed_and_signs_of_life_are_not_silence() -> None:
    async def silent(channel: Channel, raw: asyncio.StreamWriter) -> None:
        await channel.receive()

    with pytest.raises(PartyError, match=r"silent for 0\.3 seconds"):
        between(silent, silence=0.3)

    async def busy(channel: Channel, raw: asyncio.StreamWriter) -> dict[str, Any]:
        for _ in range(6):
            raw.write(frame(b"K", b""))
            await asyncio.sleep(0.1)
        raw.write(frame(b"J", b'{"done":1}'))
        return await channel.receive()

    assert between(busy, silence=0.3) == {"done": 1}


def test_signs_of_life_do_not_prolong_an_exchange() -> None:
    async def stalled(channel: Channel, raw: asyncio.StreamWriter) -> None:
        async def alive() -> None:
            while True:
                raw.write(frame(b"K", bytes([2])))
                await asyncio.sleep(0.02)

        signs = asyncio.ensure_future(alive())
        try:
            async with channel.within(0.2, "the greeting"):
                await channel.receive()
        finally:
            signs.cancel()
            assert channel.peer_state == bytes([2])

    with pytest.raises(PartyError, match=r"shuffler-9 has stalled: the greeting took longer than 0\.2 seconds"):
        between(stalled)


def test_frames_that_nobody_receives_are_limited() -> None:
    """A party that sends without end fills neither the memory of one that is at work, nor of one that waits."""

    async def flooded(channel: Channel, raw: asyncio.StreamWriter) -> int:
        sent = 0
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(2.0):
                while sent < 400:
                    raw.write(frame(b"V", bytes(LONGEST - 1)))
                    await raw.drain()
                    sent += 1
        return sent

    assert between(flooded) < 100  # what the system holds for a connection, and a few frames

    async def refused(channel: Channel, raw: asyncio.StreamWriter) -> None:
        channel._room = 1000
        channel._frames = asyncio.Queue()
        for _ in range(10):
            raw.write(frame(b"V", bytes(100)))
        await asyncio.wait_for(channel.closed.wait(), LIMIT)
        await channel.send({})

    with pytest.raises(PartyError, match="shuffler-9 sent more than the protocol has for it to send"):
        between(refused)


def test_a_long_vector_comes_in_pieces_and_is_counted() -> None:
    whole = np.random.default_rng(0).integers(0, 256, 3 * LONGEST, dtype=np.uint8)

    async def both() -> tuple[Any, int, int]:
        arrived: asyncio.Future[Channel] = asyncio.get_running_loop().create_future()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set_result(Channel(reader, writer, "a"))

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        one = Channel(*await asyncio.open_connection(*server.sockets[0].getsockname()), "b")
        other = await arrived
        _, got = await asyncio.gather(one.send_vector(1, as_pieces(whole)), other.receive_vector(1, len(whole)))
        counted = one.sent, other.received
        await asyncio.gather(one.close(), other.close())
        server.close()
        return got, *counted

    got, sent, received = asyncio.run(both())
    assert np.array_equal(got, whole)
    assert sent == received
    assert len(whole) < sent < len(whole) * 1.0001


# -- what a shuffler keeps ---------------------------------------------------------------------------------------------


def body(name: int, people: int, fill: int = 1, size: int = 8) -> bytes:
    return name.to_bytes(16) + people.to_bytes(4) + bytes([fill]) * size * people


def keep(kept: ShareStore, *bodies: bytes) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(kept.keep(one) for one in bodies))

    asyncio.run(all_of_them())


def test_what_is_kept_is_there_after_a_restart_and_half_a_record_is_not(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(2, 3), body(1, 1, 7))
    kept.close()
    log = tmp_path / "shares.log"
    whole = log.read_bytes()
    for cut in (1, 4, 20, len(whole) // 2):
        log.write_bytes(whole + body(3, 2)[:cut])
        again = ShareStore(tmp_path, 8)
        assert [(name[-1], people) for name, people in again.submissions] == [(1, 1), (2, 3)]
        again.close()
        assert log.read_bytes() == whole  # what was cut off never was acknowledged
    for place in (2, 18, 25):  # of the id, the number of people, the shares
        damaged = bytearray(whole)
        damaged[place] ^= 1
        log.write_bytes(bytes(damaged))
        assert ShareStore(tmp_path, 8).submissions == []
    assert (tmp_path / "shares.damaged").read_bytes() == bytes(damaged)  # what is behind it can still be found
    assert (log.stat().st_mode & 0o777) == 0o600


def test_shares_are_in_the_order_of_ids_whatever_the_order_they_came_in(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(9, 1, 9), body(2, 2, 2))
    kept.seal(None, kept.held)
    assert kept.shares().tolist() == [[2] * 8, [2] * 8, [9] * 8]


def test_doubles_are_kept_once_and_other_content_is_refused(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 2), body(1, 2))
    size = (tmp_path / "shares.log").stat().st_size
    for other in (body(1, 2, 5), body(1, 1)):
        with pytest.raises(MismatchError, match="other content"):
            keep(kept, other)
    assert (tmp_path / "shares.log").stat().st_size == size
    for bad in (b"", body(3, 0), body(3, 2)[:-1], body(3, 2) + b"x"):
        with pytest.raises(InputError, match="a submission is"):
            keep(kept, bad)


def test_what_cannot_be_a_ciphertext_is_refused_before_the_collection_is_closed(tmp_path: Path) -> None:
    """Afterwards nobody could take it out again: one device would stop everybody's collection."""
    protocol = Peos(small_plan(3))
    process, size = shuffler_process(tmp_path, protocol), protocol.share_size(0)
    good = Submission.of(protocol, np.arange(3, dtype=np.uint64))
    keep(process._kept, good.body(0))
    modulus = int(protocol.plan.keys["server"]["modulus"], 16)
    for bad in (0, modulus, 2 ** (8 * size) - 1):
        with pytest.raises(WireError, match="not a ciphertext"):
            keep(process._kept, bytes(16) + (1).to_bytes(4) + bad.to_bytes(size))
    assert process._kept.held.people == 3


def test_a_full_disk_keeps_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    real = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, data: real(file, data[:10]))
        with pytest.raises(StoreError, match="nothing was kept"):
            keep(kept, body(2, 1))
    keep(kept, body(3, 1))
    kept.close()
    assert [name[-1] for name, _ in ShareStore(tmp_path, 8).submissions] == [1, 3]


def test_a_collection_is_closed_once(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1), body(2, 1))
    with pytest.raises(MismatchError, match="holds shares of 2 of the 3 people"):
        kept.seal(None, Seal(3, "0" * 64))
    chosen = Seal.of([(body(1, 1)[:16], 1)])
    kept.seal([body(1, 1)[:16]], chosen)
    secret = kept.secret
    kept.close()
    again = ShareStore(tmp_path, 8)
    assert (again.secret, again.sealed, len(again.shares())) == (secret, chosen, 1)
    again.seal(None, chosen)  # the same again
    with pytest.raises(MismatchError, match="with other people"):
        again.seal(None, Seal.of([(body(2, 1)[:16], 1)]))
    with pytest.raises(MismatchError, match="closed"):
        keep(again, body(3, 1))
    keep(again, body(2, 1))  # what it holds already it may acknowledge again
    again.finish()
    assert (tmp_path / "shares.log").read_bytes() == b""
    assert secret.hex() not in "".join(p.read_text(errors="ignore") for p in tmp_path.iterdir())
    with pytest.raises(MismatchError, match="shuffled before"):
        again.seal(None, Seal.of([]))


def test_sealed_shares_that_are_lost_stop_the_shuffler(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    kept.seal(None, kept.held)
    kept.close()
    (tmp_path / "shares.log").write_bytes(b"")
    with pytest.raises(InputError, match="has lost shares that were sealed"):
        ShareStore(tmp_path, 8)


def test_shares_that_were_never_shuffled_are_not_forgotten(tmp_path: Path) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    with pytest.raises(MismatchError, match="never shuffled"):
        kept.finish()
    kept.close()
    assert len(ShareStore(tmp_path, 8).submissions) == 1


def test_shares_are_on_disk_before_the_seal_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ShareStore(tmp_path, 8)
    keep(kept, body(1, 1))
    synced: list[bool] = []
    real = os.fsync

    def watched(file: int) -> None:
        synced.append((tmp_path / "seal.json").exists())
        real(file)

    monkeypatch.setattr(os, "fsync", watched)
    kept.seal(None, kept.held)
    assert synced[0] is False
    assert len(synced) >= 3  # the log, the seal, the folder


# -- failures between shufflers ----------------------------------------------------------------------------------------


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


def test_whoever_notices_a_failure_tells_the_others_whose_it_was(tmp_path: Path) -> None:
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


def test_a_server_that_does_not_end_an_attempt_is_named(tmp_path: Path) -> None:
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


def test_connections_do_not_stay_behind_where_an_attempt_ends_while_others_are_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_the_newest_of_three_servers_is_the_one_that_is_obeyed(tmp_path: Path) -> None:
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
def test_answers_of_a_shuffler_without_their_fields_name_it(
    tmp_path: Path, do: str, answer: dict[str, Any], said: str
) -> None:
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
def test_requests_of_the_server_without_their_fields_are_refused(tmp_path: Path, request_: dict[str, Any]) -> None:
    process = shuffler_process(tmp_path, Peos(small_plan(3)))
    with pytest.raises(PartyError, match=r"server (asked to close|announced a list)"):
        asyncio.run(process._do(_Peer(), {"do": "seal", **request_}))  # type: ignore[arg-type]


# -- devices, plans, settings ------------------------------------------------------------------------------------------


def test_an_outbox_has_all_or_nothing_and_the_same_bytes(tmp_path: Path) -> None:
    protocol = Peos(small_plan(3))
    made = [Submission.of(protocol, np.arange(3, dtype=np.uint64)) for _ in range(4)]
    outbox = SubmissionOutbox(tmp_path / "outbox")
    assert not len(outbox)

    def broken() -> Any:
        yield made[0]
        raise VeilError("the device died")

    with pytest.raises(VeilError):
        outbox.fill(broken())
    assert not len(outbox)
    outbox.fill(made)
    assert {one.to_bytes() for one in outbox} == {one.to_bytes() for one in made}
    outbox.remove(made[0])
    assert len(outbox) == 3
    with pytest.raises(WireError):
        Submission.from_bytes(made[0].to_bytes()[:-1])


def test_lists_of_submissions_as_bytes() -> None:
    rows = [(bytes(15) + b"\0", 1), (b"\0" * 15 + b"\1", 70_000)]
    assert unpack(pack(rows)) == rows
    assert unpack(pack([])) == []


@pytest.mark.parametrize(
    "change",
    [
        {"collection": "Has Capitals"},
        {"ring": 16},
        {"fakes": -1},
        {"shufflers": (("a", Address("h", 1)), ("a", Address("h", 2)))},
        {"shufflers": (("server", Address("h", 1)),)},
    ],
)
def test_plans_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    facts = {"protocol": "peos", "collection": "c", "study": {}, "fakes": 0, "ring": 64, "shufflers": (), "keys": {}}
    with pytest.raises(ParameterError):
        CollectionPlan(**{**facts, **change})


def test_plans_as_documents() -> None:
    plan = small_plan(3, fakes=5)
    assert CollectionPlan.from_json(json.loads(plan.to_bytes())) == plan
    for broken in ({}, {**plan.to_json(), "more": 1}, {**plan.to_json(), "shufflers": [["a"]]}, [1]):
        with pytest.raises(WireError):
            CollectionPlan.from_json(broken)
    with pytest.raises(ParameterError, match="HOST:PORT"):
        Address.read("nowhere")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("party = ", "is not a TOML file"),
        ("party = " + "9" * 5_000, "is not a TOML file"),
        ('party = "a"', "lacks the setting plan"),
        ('colour = "red"', "got 'colour'"),
    ],
)
def test_settings_that_are_wrong_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "party.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        PartySettings.read(tmp_path / "party.toml")


@pytest.mark.parametrize("value", ["0", "100001", "true", '"64"', "1.5"])
def test_a_number_of_connections_that_is_wrong_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "plan.json").write_bytes(small_plan(3).to_bytes())
    lines = [f'{key} = "x"' for key in ("party", "certificate", "key", "authority", "data")]
    (tmp_path / "party.toml").write_text("\n".join([*lines, 'plan = "plan.json"', f"connections = {value}"]))
    with pytest.raises(ParameterError, match="connections: expected an integer from 1 to 100,000"):
        PartySettings.read(tmp_path / "party.toml")


def test_a_soft_limit_on_files_is_raised_and_a_hard_one_is_an_error() -> None:
    code = (
        "import resource; from veil.tools.limits import require_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))\n"
        "require_files(150, 'a test'); print(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "require_files(201, 'a test')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(150, 200)\n"
    assert done.stderr.splitlines()[-1] == (
        "veil.errors.InputError: open files: expected a limit of at least 201 for a test, got 200; "
        "raise the limit first (`ulimit -n 201`, or LimitNOFILE= in a unit)"
    )
