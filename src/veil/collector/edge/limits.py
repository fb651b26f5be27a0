"""Limits of requests: how many come from one address, and how large and how slow their bodies may be.

`AddressLimit` keeps no addresses. A keyed hash turns an address into two cells of a table of counts; the smaller count
decides. Every minute the table is emptied and the key is replaced, so that nothing shows afterwards whether an address
was here. Two addresses that share both cells share their limit, which is rare in so large a table.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any, NoReturn

from starlette.requests import Request

from veil.collector.service import Service
from veil.errors import ServiceError, WireError
from veil.tools.json_documents import load_json

_WINDOW_SECONDS = 60
_CELLS = 1 << 16
_TABLE_BYTES = 2 * 4 * _CELLS
_KEY_BYTES = 32
_PREFIX_BYTES = 8  # of an address of version 6: a household has all that follow
_MAPPED = bytes(10) + b"\xff\xff"


class AddressLimit:
    """A limit of requests per minute and address. It is used within the event loop only.

    >>> limit = AddressLimit(2, clock=lambda: 30.0)
    >>> [limit.wait("192.0.2.1") for _ in range(3)], limit.wait("192.0.2.2")
    ([0, 0, 30], 0)
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.time) -> None:
        self._most, self._clock = most, clock
        self._table, self._key = bytearray(_TABLE_BYTES), bytearray(_KEY_BYTES)
        self._counts = memoryview(self._table).cast("I")
        self._window = self._minute()
        self._forget()

    def wait(self, address: str, kind: bytes = b"", count: int = 1) -> int:
        """Count `count` requests of a kind. Return 0 if they may go on, otherwise the seconds until the next minute.

        Each kind of requests has a limit of its own.
        """
        now = self._clock()
        self.turn()
        digest = hashlib.blake2b(_packed(address) + kind, key=self._key, digest_size=8).digest()
        fewest = too_many = self._most + 1
        for row in range(2):
            cell = row * _CELLS + int.from_bytes(digest[4 * row : 4 * row + 2], "little")
            total = min(self._counts[cell] + count, too_many)
            self._counts[cell] = total
            fewest = min(fewest, total)
        return 0 if fewest < too_many else max(1, int((self._window + 1) * _WINDOW_SECONDS - now))

    def turn(self) -> None:
        """In a new minute, forget the counts and the key of the last one. Call it also when nobody sends."""
        window = self._minute()
        if window != self._window:
            self._window = window
            self._forget()

    def _minute(self) -> int:
        return int(self._clock()) // _WINDOW_SECONDS

    def _forget(self) -> None:
        """Overwrite the table and the key, so that neither stays in memory."""
        self._table[:] = bytes(_TABLE_BYTES)
        self._key[:] = secrets.token_bytes(_KEY_BYTES)


def _packed(address: str) -> bytes:
    """An address of version 4, the network part of one of version 6; whatever else it is, its text."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, address)
        except (OSError, ValueError):
            continue
        if len(packed) == 16:
            return packed[12:] if packed.startswith(_MAPPED) else packed[:_PREFIX_BYTES]
        return packed
    return address.encode("utf-8", "replace")


async def read_body(service: Service, request: Request) -> bytes:
    """The whole body, or a refusal: too large, too slow, or too many at once.

    Bytes count against the bound of all bodies once they are here: a declared length costs the sender nothing.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise ServiceError(415, "wrong-type", "bodies must not be encoded", expected="no Content-Encoding")
    limit = service.settings.max_body_bytes
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(service.settings.body_seconds):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ServiceError(400, "gone", "the connection was closed within the body")
                part, more = message.get("body", b""), message.get("more_body", False)
                if size + len(part) > limit:
                    raise _too_large(limit)
                if service.body_bytes + len(part) > service.settings.queue_bytes:
                    busy = "the collector is busy: send it again later"
                    raise ServiceError(429, "busy", busy, retry_after=1, limit="queue_bytes")
                service.body_bytes += len(part)
                size += len(part)
                parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise ServiceError(408, "too-slow", "the body did not come in time") from None
    finally:
        service.body_bytes -= size


def _too_large(limit: int) -> ServiceError:
    expected = f"at most {limit} bytes"
    return ServiceError(413, "too-large", "this request is too large", expected=expected, limit="max_body_bytes")


async def read_json(service: Service, request: Request) -> dict[str, Any]:
    """A body that is one JSON object, without NaN and without a key that stands twice."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ServiceError(415, "wrong-type", "expected another content type", expected="application/json")
    body = await read_body(service, request)
    try:
        document = load_json(body, object_pairs_hook=_unique, parse_constant=_refuse)
    except WireError:
        raise
    except ValueError:
        raise WireError("expected a JSON object") from None
    if not isinstance(document, dict):
        raise WireError("expected a JSON object")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise WireError("a key stands twice")
    return document


def _refuse(text: str) -> NoReturn:
    raise WireError("expected numbers that are finite")
