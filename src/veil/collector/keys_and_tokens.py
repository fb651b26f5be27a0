"""Access to a collector: the key that signs published surveys, and the tokens of analysts.

The signing key (Ed25519) is in a file that only its owner can read; the database knows its fingerprint. A token is 32
random bytes with scopes and perhaps one survey. Only its SHA-256 is stored: unlike a password, a random token cannot be
guessed from its digest. Tokens are looked up by digest, so the time of a look-up tells nothing about a token.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from veil.collector.monitoring.logs import log
from veil.collector.settings import MAX_DAYS
from veil.collector.store.base import Store, TokenRecord
from veil.errors import InputError, ServiceError
from veil.tools.filesystem import make_private_folder, write_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_FACT = "signing-key"
_RETRY_SECONDS = 60
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


class AnySurvey(enum.Enum):
    """A marker that stands for any survey in place of a task id. It equals no text from a request."""

    ANY = enum.auto()


ANY_SURVEY = AnySurvey.ANY


_UNKNOWN = TokenRecord("", bytes(32), (), None, "", "", revoked=True)
"""A token that is not stored. No token has this digest."""


def load_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file (PEM, PKCS #8); on the first start it is made, readable by its owner alone."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not path.exists():
        _create(path)
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(f"the key {path} can be read by others: run chmod 600 on it")
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError):
        raise InputError(f"{path} is not a key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path} holds another kind of key (expected Ed25519)")
    return key


def make_key(path: Path) -> Ed25519PrivateKey:
    """A new key in a new file, readable by its owner alone; devices get its public key before it is adopted."""
    if path.exists():
        raise InputError(f"{path} is there already: expected a new file")
    return load_key(path)


def own_key(store: Store, path: Path) -> Ed25519PrivateKey:
    """The key that a collector signs with: the database's own. It is made only where the database has none yet.

    A new one beside a database that is signed for with another would be refused, and stay there as if it were right.
    """
    check_key_file(store, path)
    claim(store, key := load_key(path))
    return key


def check_key_file(store: Store, path: Path) -> None:
    """Refuse where the database has a key and its file is not there."""
    if is_signed_for(store) and not path.exists():
        raise InputError(
            f"this database is signed for with a key ({store.known(_FACT)}) that is not at {path}: put its file there,"
            " or make another key and put it in its place with veil key adopt"
        )


def is_signed_for(store: Store) -> bool:
    """Whether the database knows its key."""
    return store.known(_FACT) is not None


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes of the public key."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def claim(store: Store, key: Ed25519PrivateKey) -> None:
    """Refuse a key that is not the one of the database: the first collector on it says which one that is.

    Devices know one key. Two collectors on the same database with different keys would answer them by turns.
    """
    mine, known = fingerprint(key), known_fingerprint(store, key)
    if known != mine:
        raise InputError(
            f"this database is signed for with another key ({known}, and this one is {mine}): take that key's file, or"
            " put this key in its place with veil key adopt"
        )


def known_fingerprint(store: Store, key: Ed25519PrivateKey) -> str:
    """The fingerprint of the database's key; where it has none yet, it is this one from now on."""
    return store.fact(_FACT, fingerprint(key))


def is_own(store: Store, key: Ed25519PrivateKey) -> bool:
    """Whether the database is signed for with this key."""
    return store.known(_FACT) == fingerprint(key)


def adopt(store: Store, key: Ed25519PrivateKey) -> str:
    """From now on the database's surveys are signed with this key. Returns its fingerprint."""
    store.set_fact(_FACT, fingerprint(key))
    return fingerprint(key)


def fingerprint(key: Ed25519PrivateKey) -> str:
    """The first 16 digits of the public key's SHA-256."""
    return hashlib.sha256(public_bytes(key)).hexdigest()[:16]


class KeyWatch:
    """A watch on the database's key, which `veil key adopt` changes while a collector signs with its own.

    After a change nothing is signed or published by this process until it is started again.
    """

    def __init__(self, store: Store, key: Ed25519PrivateKey) -> None:
        self._store, self._key = store, key
        self._changed = False

    def look(self) -> None:
        """Compare the fingerprints; log a change once. Blocks for one read of the database."""
        own = is_own(self._store, self._key)
        if own == self._changed:
            mine, known = fingerprint(self._key), self._store.known(_FACT)
            level, event = ("info", "key-restored") if own else ("error", "key-changed")
            log(level, event, signs_with=mine, database=known, advice=None if own else "restart this collector")
        self._changed = not own

    def check(self) -> None:
        """Refuse to sign or publish if the key was another one when `look` compared them last."""
        if self._changed:
            message = "the signing key of the database was changed: this collector signs nothing until it is restarted"
            raise ServiceError(503, "unavailable", message, retry_after=_RETRY_SECONDS)

    def confirm(self) -> None:
        """Compare the fingerprints, and refuse if the key was changed."""
        self.look()
        self.check()


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
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise InputError(f"a token is valid for 1 to {MAX_DAYS:,} days")
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


def _create(path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    make_private_folder(path.parent)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with contextlib.suppress(FileExistsError):  # the first process wins; a half-written key is never seen
        write_secret(path, pem, replace=False)


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", errors="replace")).digest()
