"""Frames between two parties: a length, a kind and a body, over a stream protected by TLS.

Both ends send regular signs of life, so that a party that hangs is told from one that works for long. Every failure
becomes a `PartyError` with the name of the party at the other end.

The other end is not trusted: frames and documents have a maximum size, frames that wait to be received have one
together, and `within` limits the time of an exchange, because an idle party can still send signs of life.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import PartyError
from veil.shuffle.plan import is_party_name
from veil.tools.json_documents import JsonLimits, load_json

PIECE = 1 << 20
"""Bytes of a vector that go into one frame."""

LONGEST = PIECE + 1024
"""The longest frame that is read: whoever announces a longer one is not a party of ours."""

_ALIVE, _DOCUMENT, _VECTOR, _SHARES = b"K", b"J", b"V", b"S"
_FAILED = b'{"failed":'
_HEAD = 4
_LABEL = 12  # of a piece of a vector: its label, 4 bytes, and where in the vector it begins, 8 bytes
_SIGNS = 4  # signs of life in the time after which silence is a failure
_MAX_DOCUMENT = 1 << 16
_DOCUMENT_LIMITS = JsonLimits(bytes=_MAX_DOCUMENT, depth=8, nodes=1 << 12)
_MAX_REASON = 2_000
_MAX_STATE = 255  # bytes of a sign of life
_BACKLOG = 8  # frames that wait to be received before the other end has to wait
_OVERHEAD = 256  # bytes that a waiting frame takes beside its body

Bytes = NDArray[np.uint8]


class Channel:
    """One connection to another party. `sent` and `received` count bytes, frames' heads included, TLS's not.

    Without `room`, the other end waits while 8 frames are still to be received. With `room` it never waits, so that
    shufflers that send to each other cannot block; it is refused once more than `room` bytes are to be received.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: str,
        silence: float = 20.0,
        room: int | None = None,
    ) -> None:
        self.peer = peer
        self.sent = 0
        self.received = 0
        self.state: Callable[[], bytes] = bytes
        """What signs of life tell the other end, as bytes; nothing by default."""
        self.peer_state = b""
        """What the latest sign of life of the other end told."""
        self.active = asyncio.get_running_loop().time()
        """When the latest frame came that was not a sign of life."""
        self._waiting = 0
        self._reader, self._writer, self._silence = reader, writer, silence
        self._room, self._queued = room, 0
        self._frames: asyncio.Queue[tuple[bytes, bytes] | PartyError] = asyncio.Queue(_BACKLOG if room is None else 0)
        self._failure: PartyError | None = None
        self.closed = asyncio.Event()
        """Set once the connection is over, by either end."""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._show_life())]

    @property
    def waiting(self) -> bool:
        """True while something waits for the other end to send, or to read what is sent to it."""
        return self._waiting > 0

    @contextlib.asynccontextmanager
    async def within(self, seconds: float, what: str) -> AsyncIterator[None]:
        """Blame the other end if the block is not over within `seconds`, whatever signs of life there are."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise PartyError(
                self.peer, f"has stalled: {what} took longer than {seconds:g} seconds, though it shows signs of life"
            ) from None

    @contextlib.contextmanager
    def _wait(self) -> Iterator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

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
                with self._wait():
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
                await self._send(_ALIVE, self.state()[:_MAX_STATE])

    # -- receiving -----------------------------------------------------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        """The next frame, which has to be a document."""
        kind, body = await self._next()
        if kind != _DOCUMENT:
            raise PartyError(self.peer, "sent something else than the document that was expected")
        document = _document(body)
        if document is None:
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
        with self._wait():
            found = await self._frames.get()
        if isinstance(found, PartyError):
            if self._frames.empty():
                self._frames.put_nowait(found)  # for whoever asks next
            raise found
        kind, body = found
        self._queued -= len(body) + _OVERHEAD
        if kind == _DOCUMENT and body.startswith(_FAILED):
            raise self._reported(body)
        return found

    def _reported(self, body: bytes) -> PartyError:
        """Return the failure that the other end reports; it may not name what cannot be the name of a party."""
        failed = (_document(body) or {}).get("failed")
        if not isinstance(failed, dict) or not is_party_name(party := failed.get("party")):
            return PartyError(self.peer, "failed, and does not say why")
        return PartyError(party, reason_in(failed, "reason", "failed, and does not say why"))

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
                if body[:1] == _ALIVE:
                    self.peer_state = body[1 : 1 + _MAX_STATE]
                    continue
                if body[:1] == _DOCUMENT and length > _MAX_DOCUMENT:
                    raise PartyError(self.peer, f"sent a document of {length} bytes; at most {_MAX_DOCUMENT} are read")
                self.active = asyncio.get_running_loop().time()
                self._queued += length - 1 + _OVERHEAD
                if self._room is not None and self._queued > self._room:
                    raise PartyError(self.peer, "sent more than the protocol has for it to send")
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
        self.abort()  # else a party that does not answer the end of TLS would keep the file open for half a minute

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        found = load_json(body, _DOCUMENT_LIMITS)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def reason_in(document: dict[str, Any], key: str, otherwise: str) -> str:
    """Return what another party gives as a reason, if it is one line of printable text.

    It goes into messages and logs, where other characters could forge lines or control a terminal.

    >>> reason_in({"refused": "has another plan"}, "refused", "does not say why")
    'has another plan'
    >>> reason_in({"refused": "later\\n12:00:00 ready"}, "refused", "does not say why")
    'does not say why'
    """
    text = document.get(key)
    return text if isinstance(text, str) and len(text) <= _MAX_REASON and text.isprintable() else otherwise


async def as_pieces(array: NDArray[Any]) -> AsyncIterator[Bytes]:
    """A whole array as one piece, for `send_vector`."""
    yield np.ascontiguousarray(array).reshape(-1).view(np.uint8)
