"""Analysts' tokens: 32 random bytes, of which only the SHA-256 is kept; each with scopes, and perhaps for one survey.

A plain hash is right here: a random token cannot be guessed from its digest, unlike a password.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from veil.collector.store import Store, TokenRecord
from veil.errors import InputError, ServiceError

__all__ = ["ANY_SURVEY", "SCOPES", "AnySurvey", "authorised", "issue_token"]

SCOPES = {
    "surveys:read": "list surveys and see how many reports they have",
    "surveys:write": "make, open and close surveys",
    "answers:read": "ask for estimates",
    "export:read": "download reports",
    "metrics:read": "read the metrics",
    "audit:read": "read the audit log",
}
_PREFIX = "veil_"


class AnySurvey(enum.Enum):
    """In place of a task id, and never equal to one that somebody sends."""

    ANY = enum.auto()


ANY_SURVEY = AnySurvey.ANY


def issue_token(
    store: Store, scopes: Sequence[str], task: str | None = None, note: str = ""
) -> tuple[TokenRecord, str]:
    """A new token, and its secret: this is the only time that it is seen."""
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise InputError(f"a token has one or more of the scopes {', '.join(SCOPES)}")
    secret = _PREFIX + secrets.token_urlsafe(32)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    record = TokenRecord(secrets.token_hex(4), _digest(secret), tuple(dict.fromkeys(scopes)), task, note, today)
    store.add_token(record)
    return record, secret


def authorised(store: Store, header: str | None, scope: str, task: str | AnySurvey | None) -> TokenRecord:
    """The token behind an Authorization header, if it may do this with this survey (None: with all of them).

    With ANY_SURVEY a token for one survey will do: what it gets is then about that one alone.
    """
    kind, _, secret = (header or "").partition(" ")
    if kind.lower() != "bearer" or not secret:
        raise ServiceError(401, "no-token", "this needs a token", expected="Authorization: Bearer veil_...")
    digest = _digest(secret.strip())
    found = store.find_token(digest)
    if found is None or not hmac.compare_digest(found.digest, digest) or found.revoked:
        raise ServiceError(401, "bad-token", "this token is unknown or was revoked")
    if scope not in found.scopes:
        raise ServiceError(403, "wrong-scope", "this token may not do this", expected=scope)
    if found.task is not None and task not in (found.task, ANY_SURVEY):
        raise ServiceError(403, "wrong-survey", "this token is for another survey")
    return found


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", errors="replace")).digest()
