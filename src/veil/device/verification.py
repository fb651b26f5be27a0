"""A published survey as a device downloads it: canonical JSON with its times, and a signature that is checked first.

The collector writes it (`veil.collector.surveys.catalogue`) with the names here. Nothing here imports the collector.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Set
from datetime import UTC, datetime
from typing import Any

from veil.errors import CollectorError, InputError, MismatchError, WireError
from veil.survey import Survey
from veil.tools.json_documents import Json, canonical, parse_json
from veil.tools.numbers import is_int

PURPOSE = b"veil-published-survey-v1\x00"
"""What is signed begins with this, so that no other signature of the key can pass for one of a survey."""

KIND, VERSION = "veil-published-survey", 1
ABOUT_PURPOSE = b"veil-survey-about-v1\x00"
ABOUT_KIND = "veil-survey-about"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""What surveys may be called; shorter than a task id, so that none looks like one."""

FINEST_PRECISION = 3_600
"""Seconds. Finer times of reports can show whose they are; a device refuses them unless its owner allows them."""

_MEMBERS = {"kind", "version", "survey", "opens", "closes", "precision"}
_OPTIONAL = {"keep_days", "step"}
_MAX_KEEP_DAYS = 36_525
_ABOUT = {"kind", "version", "task", "name", "wave", "texts", "valid_until"}
_CLOCK_SECONDS = 86_400  # how far a device's clock may be ahead of the collector's
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
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
        raise InputError("a time names a day and an hour that exist") from None


def verified(
    answer: Json,
    key: bytes | None = None,
    task: str | None = None,
    now: float | None = None,
    *,
    allow_fine_times: bool = False,
) -> Survey:
    """Runs on the device: the survey in a published one; refuses all that section 7 of the wire format does not allow.

    With a key, the signature must be of that one; with a task id, the survey must be the one that was asked for. One
    that is right, but not open at this time or with times finer than an hour, is a CollectorError.
    """
    document = read_published(answer, key)
    survey = Survey.from_json(document["survey"])
    if task is not None and survey.task != task:
        raise MismatchError("this is another survey than the one that was asked for")
    _check_open(document, time.time() if now is None else now)
    if document["precision"] < FINEST_PRECISION and not allow_fine_times:
        raise CollectorError(
            f"the collector keeps the times of this survey's reports to {duration(document['precision'])}: expected"
            f" {duration(FINEST_PRECISION)} or more, unless this device's owner allows finer times"
        )
    return survey


def read_published(answer: Json, key: bytes | None = None) -> Json:
    """Runs on the device: return a published survey's signed document; survey and times are not checked."""
    document = read_signed(answer, key, PURPOSE, _MEMBERS, _OPTIONAL)
    if document["kind"] != KIND or document["version"] != VERSION or not is_int(document["version"]):
        raise WireError(f"expected a published survey of version {VERSION}")
    if not is_int(document["precision"]) or document["precision"] < 1:
        raise WireError("the precision of a published survey is an integer of at least 1")
    keep = document.get("keep_days", 1)
    if not is_int(keep) or not 1 <= keep <= _MAX_KEEP_DAYS:
        raise WireError(f"the keep_days of a published survey are an integer from 1 to {_MAX_KEEP_DAYS}")
    step = document.get("step", 1)
    if not is_int(step) or step < 1:
        raise WireError("the step of a published survey is an integer of at least 1")
    return document


def duration(seconds: int) -> str:
    """Return a number of seconds in the largest unit that divides it.

    >>> duration(86_400), duration(5_400), duration(1)
    ('1 day', '90 minutes', '1 second')
    """
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return f"{seconds // size} {unit}{'s' if seconds != size else ''}"


def opening(answer: Json, key: bytes) -> int | None:
    """Runs on the device: when a published survey opens, as its signed document says, whether or not it is open now."""
    return read_time(read_published(answer, key)["opens"])


def published_task(answer: Json, key: bytes) -> str:
    """Runs on the device: return the task id of a published survey, whether or not it is open."""
    return Survey.from_json(read_signed(answer, key, PURPOSE, _MEMBERS)["survey"]).task


def read_about(answer: Json, key: bytes | None, task: str) -> Json | None:
    """Runs on the device: return the signed name, wave, texts and `valid_until` (seconds since 1970) of a survey.

    None where it has no name. Whether the statement is still valid is checked by `check_valid`.
    """
    if "about" not in answer:
        return None
    about = read_signed(answer["about"], key, ABOUT_PURPOSE, _ABOUT)
    if about["kind"] != ABOUT_KIND or about["version"] != VERSION or not is_int(about["version"]):
        raise WireError(f"expected what is said about a survey, of version {VERSION}")
    if about["task"] != task:
        raise MismatchError("what is said here is about another survey")
    name, texts = about["name"], about["texts"]
    named = isinstance(name, str) and NAME.fullmatch(name) and is_int(about["wave"]) and about["wave"] >= 1
    if not named or not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise WireError("a survey has a name, a wave of at least 1, and texts by language")
    try:
        until = read_time(about["valid_until"])
    except InputError:
        until = None
    if until is None:
        raise WireError("expected the end of a statement's validity as 2026-01-31T12:00:00Z")
    return {"name": name, "wave": about["wave"], "texts": texts, "valid_until": until}


def check_valid(about: Json, now: float) -> None:
    """Runs on the device: refuse a statement that the collector has not renewed in time; the clock may be a day ahead.

    >>> check_valid({"name": "drinks", "valid_until": 86_400}, 2 * 86_400 - 1)
    """
    if now >= about["valid_until"] + _CLOCK_SECONDS:
        raise CollectorError(
            f"the statement about {about['name']} was valid until {written_time(about['valid_until'])}: expected one"
            " that the collector has renewed since, and a clock that is right to a day"
        )


def read_signed(
    answer: Any, key: bytes | None, purpose: bytes, members: set[str], optional: Set[str] = frozenset()
) -> Json:
    """Runs on the device: a signed document in canonical form with exactly these members; refuses any other.

    Without a key, the signature may be of the one that stands beside it.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        signed, own, signature = (
            base64.b64decode(answer[name] + "=" * (-len(answer[name]) % 4), altchars=b"-_", validate=True)
            for name in ("document", "key", "signature")
        )
        Ed25519PublicKey.from_public_bytes(own if key is None else key).verify(signature, purpose + signed)
    except (InvalidSignature, KeyError, TypeError, ValueError):
        raise WireError("this survey is not signed with the expected key") from None
    document = parse_json(signed)
    if canonical(document) != signed or set(document) - optional != members:
        raise WireError("expected a published survey in canonical form")
    return document


def _check_open(document: Json, now: float) -> None:
    try:
        opens, closes = read_time(document["opens"]), read_time(document["closes"])
    except InputError:
        raise WireError("expected the times of a published survey as 2026-01-31T12:00:00Z, or null") from None
    if opens is not None and now < opens:
        raise CollectorError(f"this survey is not open yet: it takes answers from {written_time(opens)} on")
    if closes is not None and now >= closes:
        raise CollectorError(f"this survey is closed: it took answers until {written_time(closes)}")
