"""Batches and tallies, and damaged ones that decoding must refuse."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from veil import (
    GRR,
    OLH,
    Bits,
    OneOf,
    Question,
    Survey,
)
from veil.entropy import Words
from veil.tools.json_documents import canonical
from veil.view import prefix
from veil.wire.frames import encode_batch
from veil.wire.tallies import encode_tally

from .words import Json, pack, stream


def container_survey() -> Survey:
    domain = Bits(12)
    short = prefix(domain, 3)
    return Survey(OneOf((1, Question(GRR(1.0, Bits(3)), short)), (2, Question(OLH(1.0, domain)))))


def container_reports() -> Any:
    survey = container_survey()
    return survey.randomize([0, 5, 4095, 77], Words(pack(stream("containers", 40))))


def container_tally() -> Any:
    return container_survey().tally(container_reports(), candidates={1: [0, 77, 4095]}, weights=[3, -1, 2**31 - 1, 5])


def containers() -> Json:
    return {
        "task": container_survey().to_json(),
        "task_id": container_survey().task,
        "batch": encode_batch(container_reports()).hex(),
        "tally": encode_tally(container_tally()).hex(),
        "tally_counts": [part.counts.tolist() for part in container_tally().parts],
        "tally_of_wave_2": encode_tally(replace(container_tally(), wave=2)).hex(),
    }


def bad_batches() -> Json:
    good = encode_batch(container_reports())
    head, payloads = good[:38], good[46:]
    cases = [
        ("empty", b"", "WireError"),
        ("ends within its header", good[:40], "WireError"),
        ("one byte short", good[:-1], "WireError"),
        ("one byte too long", good + b"\0", "WireError"),
        ("a foreign magic", b"VEILX" + good[5:], "WireError"),
        ("another wire version", good[:5] + b"\2" + good[6:], "WireError"),
        ("another task", good[:6] + bytes(32) + good[38:], "MismatchError"),
        ("no reports", head + bytes(8), "WireError"),
        ("a count one too high", head + (5).to_bytes(8, "little") + payloads, "WireError"),
        ("a count of 2^64 - 1", head + b"\xff" * 8 + payloads, "WireError"),
        ("a choice out of range in the last report", good[:-11] + b"\2" + good[-10:], "WireError"),
    ]
    return {
        "task": container_survey().to_json(),
        "cases": [{"name": name, "batch": data.hex(), "error": error} for name, data, error in cases],
    }


def bad_tallies() -> Json:
    good = encode_tally(container_tally())
    length = int.from_bytes(good[6:14], "little")
    header, body = json.loads(good[14 : 14 + length]), good[14 + length : -32]

    def sealed(edit: Callable[[Json], None] = lambda _: None, body: bytes = body, text: bytes | None = None) -> bytes:
        """A tally with an edited header and a checksum that is right."""
        edited = copy.deepcopy(header)
        edit(edited)
        raw = canonical(edited) if text is None else text
        whole = good[:6] + len(raw).to_bytes(8, "little") + raw + body
        return whole + hashlib.sha256(whole).digest()

    def setting(key: str, value: Any, part: int | None = None) -> bytes:
        return sealed(lambda h: (h if part is None else h["parts"][part]).update({key: value}))

    spaced = json.dumps(header, sort_keys=True).encode()
    twice = canonical(header).replace(b'{"parts"', b'{"people":"4","parts"', 1)
    repeated = body[:-8] + body[-16:-8]
    cases = [
        ("empty", b"", "WireError"),
        ("one byte short", good[:-1], "WireError"),
        ("one byte too long", good + b"\0", "WireError"),
        ("a flipped bit in the counts", good[:-40] + bytes([good[-40] ^ 1]) + good[-39:], "WireError"),
        ("another wire version", good[:5] + b"\2" + good[6:], "WireError"),
        ("a header longer than the file", sealed(text=b"{}" * 40, body=b"")[:14] + good[14:], "WireError"),
        ("a header that is no JSON", sealed(text=b"\xff"), "WireError"),
        ("a header with spaces", sealed(text=spaced), "WireError"),
        ("a header with a repeated key", sealed(text=twice), "WireError"),
        ("a header of a list", sealed(text=b"[]"), "WireError"),
        ("a header nested a thousand deep", sealed(text=b'{"parts":' * 1500), "WireError"),
        ("another task", setting("task", "00" * 32), "MismatchError"),
        ("another mechanism", setting("task", "00" * 32, 0), "MismatchError"),
        ("an unknown key", setting("note", "hello"), "WireError"),
        ("a first wave that is mentioned", setting("wave", 1), "WireError"),
        ("a wave as text", setting("wave", "2"), "WireError"),
        ("wave 0", setting("wave", 0), "WireError"),
        ("a wave above a million", setting("wave", 1_000_001), "WireError"),
        ("one part too few", sealed(lambda h: h["parts"].pop()), "WireError"),
        ("people as a number", setting("people", 4), "WireError"),
        ("people with a sign", setting("people", "+4"), "WireError"),
        ("fewer people than a part has", setting("people", "0"), "WireError"),
        ("negative people in a part", setting("people", "-1", 0), "WireError"),
        ("2^63 people in a part", setting("people", str(2**63), 0), "WireError"),
        ("a number of 100 digits", setting("weight", "9" * 100, 0), "WireError"),
        ("no people at all", sealed(lambda h: h.pop("people")), "WireError"),
        ("negative counts", setting("counts", -1, 1), "WireError"),
        ("2^53 - 1 counts", setting("counts", 2**53 - 1, 0), "WireError"),
        ("counts that are not the domain's", setting("counts", 7, 0), "WireError"),
        ("candidates in bytes for indices", setting("candidates", ["|u1", 3, 8], 1), "WireError"),
        ("candidates of a type that runs code", setting("candidates", ["|O", 3], 1), "WireError"),
        ("candidates of a huge shape", setting("candidates", ["<u8", 2**53 - 1], 1), "WireError"),
        ("a candidate twice", sealed(body=repeated), "WireError"),
        ("a candidate outside of the domain", sealed(body=body[:-8] + (4096).to_bytes(8, "little")), "WireError"),
        ("integers left over", sealed(body=body + bytes(8)), "WireError"),
    ]
    return {
        "task": container_survey().to_json(),
        "cases": [{"name": name, "tally": data.hex(), "error": error} for name, data, error in cases],
    }
