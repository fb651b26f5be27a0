"""Analysts' tokens: 32 random bytes, of which only the SHA-256 is kept; each with scopes, and perhaps for one survey.

A plain hash is right here: a random token cannot be guessed from its digest, unlike a password. A token is looked up by
its digest alone. Whatever the time of a look-up tells about a stored digest, it tells nothing about the token.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from veil.collector.store import Store, TokenRecord
from veil.errors import InputError, ServiceError

__all__ = ["ANY_SURVEY", "SCOPES", "AnySurvey", "authorised", "issue_token", "new_name"]

SCOPES = {
    "surveys:read": "list surveys and see how many reports they have",
    "surveys:write": "make, open and close surveys",
    "reports:write": "send batches of reports past the limit by address",
    "answers:read": "ask for estimates",
    "export:read": "download reports",
    "metrics:read": "read the metrics",
    "audit:read": "read the audit log",
}
_PREFIX = "veil_"
_NAME = re.compile(r"[a-z0-9-]{1,32}")
_MOST_DAYS = 36_525


class AnySurvey(enum.Enum):
    """In place of a task id, and never equal to one that somebody sends."""

    ANY = enum.auto()


ANY_SURVEY = AnySurvey.ANY


_UNKNOWN = TokenRecord("", bytes(32), (), None, "", "", revoked=True)
"""Stands for a token that is not stored. No token has this digest."""


def issue_token(
    store: Store,
    scopes: Sequence[str],
    task: str | None = None,
    note: str = "",
    *,
    name: str | None = None,
    days: int | None = None,
) -> tuple[TokenRecord, str]:
    """A new token, and its secret: this is the only time that it is seen. With `days` it ends after so many of them."""
    if name is not None and not _NAME.fullmatch(name):
        raise InputError("a token's name has 1 to 32 small letters, digits and hyphens")
    if name is not None and any(token.name == name for token in store.tokens()):
        raise InputError("there is a token of that name already")
    if days is not None and not 1 <= days <= _MOST_DAYS:
        raise InputError(f"a token is valid for 1 to {_MOST_DAYS:,} days")
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise InputError(f"a token has one or more of the scopes {', '.join(SCOPES)}")
    secret = _PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    expires = None if days is None else _day(now + timedelta(days=days))
    kept = (_digest(secret), tuple(dict.fromkeys(scopes)), task, note, _day(now))
    record = TokenRecord(name or new_name(), *kept, expires=expires)
    store.add_token(record)
    return record, secret


def new_name() -> str:
    """A name for a token that was given none.

    >>> len(new_name())
    8
    """
    return secrets.token_hex(4)


def authorised(store: Store, header: str | None, scope: str, task: str | AnySurvey | None) -> TokenRecord:
    """The token behind an Authorization header, if it may do this with this survey (None: with all of them).

    With ANY_SURVEY a token for one survey will do: what it gets is then about that one alone.
    """
    kind, _, secret = (header or "").partition(" ")
    if kind.lower() != "bearer" or not secret:
        raise ServiceError(401, "no-token", "this needs a token", expected="Authorization: Bearer veil_...")
    digest = _digest(secret.strip())
    found = store.find_token(digest) or _UNKNOWN  # from here on an unknown token takes the way of a revoked one
    if not hmac.compare_digest(found.digest, digest) or found.revoked:
        raise ServiceError(401, "bad-token", "this token is unknown or was revoked")
    if found.expires is not None and _day(datetime.now(UTC)) >= found.expires:
        raise ServiceError(401, "bad-token", "this token has expired")
    if scope not in found.scopes:
        raise ServiceError(403, "wrong-scope", "this token may not do this", expected=scope)
    if found.task is not None and task not in (found.task, ANY_SURVEY):
        raise ServiceError(403, "wrong-survey", "this token is for another survey")
    return found


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", errors="replace")).digest()
