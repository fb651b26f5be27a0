"""Reading request bodies within limits: of bytes, of time, and of all bodies together."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from starlette.requests import Request

from veil.collector.service import Service
from veil.errors import ServiceError, WireError
from veil.tools.json_documents import load_json

__all__ = ["read_body", "read_json"]


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
