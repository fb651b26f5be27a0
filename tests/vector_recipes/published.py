"""Published surveys with signed statements, shown to one device in turn: what it opens, and what it refuses."""

from __future__ import annotations

import base64
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from veil import GRR, Survey
from veil.collector.surveys.catalogue import draft_of, key_text
from veil.collector.surveys.catalogue import published as signed
from veil.device.verification import ABOUT_PURPOSE, read_signed, read_time, written_time
from veil.tools.json_documents import canonical

from .words import Json

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number] * 32)) for number in (1, 2))
UNTIL = "2026-03-03T00:00:00Z"
NOW = "2026-01-31T12:00:00Z"
MEMBERS = {"kind", "version", "task", "name", "wave", "texts", "valid_until"}


def survey(wave: int) -> Survey:
    return Survey(GRR(1.0, ["tea", "coffee"]), wave=wave)


def shown(wave: int, until: str = UNTIL, name: str = "drinks", key: Ed25519PrivateKey = KEY, **times: str) -> Json:
    draft = draft_of(survey(wave), {"name": name, "texts": {"en": "What?"}, **times}, precision=3600, minimum=1)
    return signed(replace(draft, wave=wave), key, read_time(until))


def stated(**changes: object) -> Json:
    """Return the third wave with other members in its statement, signed with the same key; None leaves one out."""
    document = shown(3)
    about = read_signed(document["about"], None, ABOUT_PURPOSE, MEMBERS)
    altered = canonical({name: part for name, part in {**about, **changes}.items() if part is not None})
    return {**document, "about": {**document["about"], **sign(altered)}}


def sign(document: bytes) -> Json:
    parts = {"document": document, "signature": KEY.sign(ABOUT_PURPOSE + document)}
    return {name: base64.urlsafe_b64encode(part).rstrip(b"=").decode() for name, part in parts.items()}


def published() -> Json:
    """One device, which asks by name unless a step says otherwise, and remembers what it saw in earlier steps."""
    last = written_time((read_time(UNTIL) or 0) + 86_399)
    expired = written_time((read_time(UNTIL) or 0) + 86_400)
    renewed, first, third = "2026-04-03T00:00:00Z", survey(1).task, survey(3).task
    foreign = {**shown(3), "about": shown(3, key=OTHER)["about"]}
    steps: list[tuple[str, str, str, Json, str]] = [
        ("the first wave", NOW, "drinks", shown(1), "open"),
        ("the last second, a day after valid_until", last, "drinks", shown(1), "open"),
        ("a second later", expired, "drinks", shown(1), "outdated"),
        ("then, by its task id", expired, first, shown(1), "open"),
        ("a clock that is a year behind", "2025-01-31T12:00:00Z", "drinks", shown(1), "open"),
        ("renewed", expired, "drinks", shown(1, renewed), "open"),
        ("a wave that waits", NOW, "drinks", shown(3, opens="2026-02-28T00:00:00Z"), "refused"),
        ("the second wave, after one that waits", NOW, "drinks", shown(2), "open"),
        ("the first wave again", NOW, "drinks", shown(1), "rollback"),
        ("the first wave again, renewed", NOW, "drinks", shown(1, renewed), "rollback"),
        ("the second wave again", NOW, "drinks", shown(2), "open"),
        ("the first wave again, by its task id", NOW, first, shown(1), "open"),
        ("another name", NOW, "drinks-2", shown(1, name="drinks-2"), "open"),
        ("another key that the device knows", NOW, "drinks", shown(1, key=OTHER), "open"),
        ("the third wave, by its task id", NOW, third, shown(3), "open"),
        ("the second wave after that", NOW, "drinks", shown(2), "rollback"),
        ("a statement with another key than the survey's", NOW, "drinks", foreign, "refused"),
        ("no validity", NOW, "drinks", stated(valid_until=None), "refused"),
        ("a day as validity", NOW, "drinks", stated(valid_until="2026-03-03"), "refused"),
        ("wave 0", NOW, "drinks", stated(wave=0), "refused"),
        ("a name with a space, by task id", NOW, third, stated(name="drin ks"), "refused"),
        ("the third wave", NOW, "drinks", shown(3), "open"),
    ]
    members = ("name", "now", "asked", "published", "outcome")
    return {
        "keys": [key_text(KEY), key_text(OTHER)],
        "steps": [dict(zip(members, step, strict=True)) for step in steps],
    }
