"""A published survey, written: what is asked, when, and how coarse times are; and its signature. Rounds of studies too.

Devices check it with `veil.device.verification` and `veil.device.client`.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from veil.collector.keys import fingerprint, is_signed_for, known_fingerprint, load_key, public_bytes
from veil.collector.settings import Settings
from veil.collector.store import Store, StoredSurvey
from veil.device.client import ROUND_PURPOSE, RoundPart
from veil.device.verification import ABOUT_KIND, ABOUT_PURPOSE, KIND, PURPOSE, VERSION, written_time
from veil.tools.json_documents import Json, canonical, parse_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["for_devices", "key_text", "published", "published_round", "unsigned", "valid_until"]

_DAY = 86_400


def unsigned(stored: StoredSurvey) -> bytes:
    """The bytes that are signed."""
    document: Json = {
        "kind": KIND,
        "version": VERSION,
        "survey": parse_json(stored.document),
        "opens": written_time(stored.opens),
        "closes": written_time(stored.closes),
        "precision": stored.precision,
        **({} if stored.keep_days is None else {"keep_days": stored.keep_days}),
        **({} if stored.step == 1 else {"step": stored.step}),
    }
    return canonical(document)


def valid_until(now: float, days: int) -> int:
    """Return when a statement that is signed now expires, in seconds since 1970: `days` after the end of today (UTC).

    All statements of a day are the same bytes, whichever process signs them: no device can be told from another by one.

    >>> valid_until(0, 30) == valid_until(86_399, 30) == 31 * 86_400
    True
    """
    return (int(now) // _DAY + 1 + days) * _DAY


def published(stored: StoredSurvey, key: Ed25519PrivateKey, until: int | None = None) -> Json:
    """Return the document that a device downloads. A survey with a name has a signed statement beside it.

    `until` is when that statement expires, in seconds since 1970; devices refuse one without.
    """
    document = _signed(unsigned(stored), PURPOSE, key)
    if stored.name is None:
        return document
    about: Json = {
        "kind": ABOUT_KIND,
        "version": VERSION,
        "task": stored.task,
        "name": stored.name,
        "wave": stored.wave,
        "texts": parse_json(stored.texts or "{}"),
        "valid_until": written_time(until),
    }
    return {**document, "about": _signed(canonical(about), ABOUT_PURPOSE, key)}


def published_round(stored: StoredSurvey, part: RoundPart, key: Ed25519PrivateKey) -> Json:
    """The same for a round of a study, with whom it asks: signed on its own, and again for people to read."""
    shown = {"round": part.number, "from": float(part.begin), "to": float(part.end)}
    return {**published(stored, key), "part": _signed(canonical(part.to_json()), ROUND_PURPOSE, key), **shown}


def for_devices(settings: Settings, store: Store, stored: StoredSurvey) -> Json:
    """What goes into the devices' software: where the survey is, and the key that it must be signed with."""
    key = None
    made_here = settings.database_file is not None and not is_signed_for(store)  # a server's collectors have theirs
    if settings.key_path.exists() or made_here:
        here = load_key(settings.key_path)
        if known_fingerprint(store, here) == fingerprint(here):
            key = key_text(here)
    return {"path": f"/v1/surveys/{stored.task}", "key": key}


def key_text(key: Ed25519PrivateKey) -> str:
    """The public key as devices' software has it."""
    return _text(public_bytes(key))


def _signed(document: bytes, purpose: bytes, key: Ed25519PrivateKey) -> Json:
    parts = {"document": document, "key": public_bytes(key), "signature": key.sign(purpose + document)}
    return {name: _text(part) for name, part in parts.items()}


def _text(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()
