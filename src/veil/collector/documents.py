"""A published survey: canonical JSON that says what is asked, when, and how coarse times are; and its signature."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from veil.canonical import Json, canonical, parse
from veil.collector.keys import public_bytes
from veil.collector.store import StoredSurvey
from veil.errors import InputError, WireError
from veil.survey import Survey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["published", "read_time", "unsigned", "verified", "written_time"]

_PURPOSE = b"veil-published-survey-v1\x00"  # so that no other signature of this key can pass for one of a survey
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def written_time(seconds: int | None) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC.

    >>> written_time(0)
    '1970-01-01T00:00:00Z'
    """
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: Any) -> int | None:
    """The same backwards.

    >>> read_time("1970-01-02T00:00:00Z")
    86400
    """
    if text is None:
        return None
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise InputError("a time is written as 2026-01-31T12:00:00Z (UTC, whole seconds)")
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise InputError("a time names a day and an hour that there are") from None


def unsigned(stored: StoredSurvey) -> bytes:
    """The bytes that are signed."""
    document: Json = {
        "kind": "veil-published-survey",
        "version": 1,
        "survey": parse(stored.document),
        "opens": written_time(stored.opens),
        "closes": written_time(stored.closes),
        "precision": stored.precision,
    }
    return canonical(document)


def published(stored: StoredSurvey, key: Ed25519PrivateKey) -> Json:
    """What a device downloads."""
    document = unsigned(stored)
    parts = {"document": document, "key": public_bytes(key), "signature": key.sign(_PURPOSE + document)}
    return {name: base64.urlsafe_b64encode(part).rstrip(b"=").decode() for name, part in parts.items()}


def verified(answer: Json, key: bytes | None = None) -> Survey:
    """Runs on the device: the survey in a published one; refuses a signature that is not of this key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        document, own, signature = (
            base64.b64decode(answer[name] + "=" * (-len(answer[name]) % 4), altchars=b"-_", validate=True)
            for name in ("document", "key", "signature")
        )
        Ed25519PublicKey.from_public_bytes(own if key is None else key).verify(signature, _PURPOSE + document)
    except (InvalidSignature, KeyError, TypeError, ValueError):
        raise WireError("this survey is not signed with the expected key") from None
    return Survey.from_json(parse(document).get("survey"))
