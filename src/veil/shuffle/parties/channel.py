"""Frames between two parties: a length, a kind and a body, over a stream that TLS protects.

Both ends send a sign of life now and then, so that a party that hangs is told from one that works for long. Whatever
goes wrong becomes a `PartyError` with the name of the party at the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import PartyError
from veil.tools.bounded_json import load_json

__all__ = ["LONGEST", "PIECE", "Channel", "as_pieces"]

PIECE = 1 << 20
"""Bytes of a vector that go into one frame."""
LONGEST = PIECE + 1024
"""The longest frame that is read: whoever announces a longer one is not a party of ours."""

_ALIVE, _DOCUMENT, _VECTOR, _SHARES = b"K", b"J", b"V", b"S"
_FAILED = b'{"failed":'
_HEAD = 4
_LABEL = 12  # of a piece of a vector: its label, 4 bytes, and where in the vector it begins, 8 bytes
_SIGNS = 4  # signs of life in the time after which silence is a failure

Bytes = NDArray[np.uint8]


class Channel:
    """One connection to another party. `sent` and `received` count bytes, frames' heads included, TLS's not."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: str,
        silence: float = 20.0,
        backlog: int = 0,
    ) -> None:
        self.peer = peer
        self.sent = 0
        self.received = 0
        self._reader, self._writer, self._silence = reader, writer, silence
        # without a limit for parties, who send no more than the protocol has; a stranger must not fill the memory
        self._frames: asyncio.Queue[tuple[bytes, bytes] | PartyError] = asyncio.Queue(backlog)
        self._failure: PartyError | None = None
        self.closed = asyncio.Event()
        """Set once the connection is over, by either end."""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._show_life())]

    # -- sending -------------------------------------------------------------------------------------------------------

    async def send(self, document: dict[str, Any]) -> None:
        """Send a document."""
        await self._send(_DOCUMENT, json.dumps(document, separators=(",", ":")).encode())

    async def send_failure(self, failure: PartyError) -> None:
        """Tell the other end that one's work failed, and who is to blame: whatever it waits for, it gets this."""
        await self.send({"failed": {"party": failure.party, "reason": failure.reason}})

    async def send_shares(self, body: bytes) -> None:
        """Send what people leave with a shuffler."""
        await self._send(_SHARES, body)

    async def send_vector(self, label: int, pieces: AsyncIterator[Bytes]) -> None:
        """Send a vector a piece at a time; its length is known to the receiver."""
        start = 0
        async for piece in pieces:
            for begin in range(0, len(piece), PIECE):
                part = piece[begin : begin + PIECE].tobytes()
                await self._send(_VECTOR, label.to_bytes(4) + (start + begin).to_bytes(8) + part)
            start += len(piece)

    async def _send(self, kind: bytes, body: bytes) -> None:
        if self._failure is not None:
            raise self._failure
        frame = (len(body) + 1).to_bytes(_HEAD) + kind + body
        try:
            self._writer.write(frame)
            await self._writer.drain()
        except (OSError, ssl.SSLError) as problem:
            raise self._failed(problem) from None
        self.sent += len(frame)

    async def _show_life(self) -> None:
        with contextlib.suppress(PartyError):
            while True:
                await asyncio.sleep(self._silence / _SIGNS)
                await self._send(_ALIVE, b"")

    # -- receiving -----------------------------------------------------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        """The next frame, which has to be a document."""
        kind, body = await self._next()
        if kind != _DOCUMENT:
            raise PartyError(self.peer, "sent something else than the document that was expected")
        try:
            document = load_json(body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise PartyError(self.peer, "sent a frame that is not a document")
        return document

    async def receive_shares(self) -> bytes | None:
        """The next frame, which has to be somebody's shares; None where the other end is done."""
        try:
            kind, body = await self._next()
        except PartyError:
            return None
        if kind != _SHARES:
            raise PartyError(self.peer, "sent something else than shares")
        return body

    async def receive_vector(self, label: int, size: int) -> Bytes:
        """All pieces of a vector of `size` bytes."""
        whole = np.empty(size, dtype=np.uint8)
        have = 0
        while have < size:
            kind, body = await self._next()
            start, piece = int.from_bytes(body[4:_LABEL]), body[_LABEL:]
            if kind != _VECTOR or int.from_bytes(body[:4]) != label or start != have or not piece:
                raise PartyError(self.peer, "sent something else than the vector that was expected")
            if have + len(piece) > size:
                raise PartyError(self.peer, "sent more than was expected: its vector has another length")
            whole[have : have + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            have += len(piece)
        return whole

    async def _next(self) -> tuple[bytes, bytes]:
        found = await self._frames.get()
        if isinstance(found, PartyError):
            if self._frames.empty():
                self._frames.put_nowait(found)  # for whoever asks next
            raise found
        kind, body = found
        if kind == _DOCUMENT and body.startswith(_FAILED):
            try:
                failed = load_json(body)["failed"]
                told = PartyError(str(failed["party"]), str(failed["reason"]))
            except (ValueError, TypeError, LookupError):
                told = PartyError(self.peer, "failed, and does not say why")
            raise told
        return found

    async def _read(self) -> None:
        """Read frames as they come, whether or not somebody waits: then nobody's sending waits for anybody's work."""
        try:
            while True:
                head = await asyncio.wait_for(self._reader.readexactly(_HEAD), self._silence)
                length = int.from_bytes(head)
                if not 1 <= length <= LONGEST:
                    raise PartyError(self.peer, f"announced a frame of {length} bytes; frames have 1 to {LONGEST}")
                body = await asyncio.wait_for(self._reader.readexactly(length), self._silence)
                self.received += _HEAD + length
                if body[:1] != _ALIVE:
                    await self._frames.put((body[:1], body[1:]))
        except (OSError, EOFError, TimeoutError, ssl.SSLError, PartyError) as problem:
            await self._frames.put(self._failed(problem))

    def _failed(self, problem: Exception) -> PartyError:
        """What went wrong first, in words."""
        if self._failure is None:
            self._failure = problem if isinstance(problem, PartyError) else PartyError(self.peer, self._reason(problem))
            self.closed.set()
            self._writer.transport.abort()  # whoever waits for this connection goes on, with this failure
        return self._failure

    def _reason(self, problem: Exception) -> str:
        if isinstance(problem, ssl.SSLError):
            return f"refused the connection by TLS ({problem.reason or 'certificates do not match'})"
        if isinstance(problem, TimeoutError):
            return f"has been silent for {self._silence:g} seconds"
        if isinstance(problem, asyncio.IncompleteReadError) and problem.partial:
            return "broke off in the middle of a frame"
        return "went away: the connection was closed"

    async def close(self) -> None:
        """End the connection; frames that came before can still be received."""
        self.closed.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), 1.0)


async def as_pieces(array: NDArray[Any]) -> AsyncIterator[Bytes]:
    """A whole array as one piece, for `send_vector`."""
    yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
