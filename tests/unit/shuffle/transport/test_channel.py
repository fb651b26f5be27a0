"""Channels between parties: invalid frames and vectors, silence, limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from tests.patience import LIMIT

from veil.errors import PartyError
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
def test_invalid_frames_name_the_party(sent: bytes, said: str) -> None:
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
def test_invalid_vectors_are_refused(piece: bytes) -> None:
    async def talk(channel: Channel, raw: asyncio.StreamWriter) -> None:
        raw.write(piece)
        await channel.receive_vector(7, 10)

    with pytest.raises(PartyError, match="shuffler-9 sent"):
        between(talk)


def test_silence_is_an_error_and_signs_of_life_are_not_silence() -> None:
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


def test_frames_waiting_to_be_received_are_limited() -> None:
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
