"""The pieces that reports are made of, one by one: draws, the hash, encodings of values, canonical JSON."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from veil import (
    Bits,
    Interval,
    Text,
)
from veil.entropy import Words
from veil.kernels.hashing import bucket_of, interval_start, splitmix64_each
from veil.tools.json_documents import canonical, digest
from veil.view import Segment

from .words import LAST, WORD, Json, limit, pack, stream


def primitives() -> Json:
    return {
        "coin": coins(),
        "below": draws(),
        "below_each": draws_each(),
        "coin_bits": bit_coins(),
        "splitmix64": [
            {"value": str(value), "spread": f"{int(splitmix64_each(np.array([value], np.uint64))[0]):016x}"}
            for value in (0, 1, 2, 255, 2**32, 2**53, 2**63, LAST)
        ],
        "salted": [salted(0, b"tea"), salted(1, bytes(13)), salted(2, b"\xff" * 40)],
        "bucket": [
            bucket(seed, value, buckets)
            for seed in (0, 1, 2**32, LAST, 0x0123456789ABCDEF)
            for value, buckets in ((0, 2), (1, 3), (1023, 4), (2**40, 1000), (LAST, 2**31))
        ],
        "interval_start": [
            {"bucket": y, "buckets": g, "start": int(interval_start.py_func(np.uint64(y), np.uint64(g)))}
            for g in (2, 3, 7, 1000, 2**31)
            for y in (0, 1, g // 2, g - 1, g)
        ],
        "grid": [grid(*case) for case in GRID],
        "text": [
            {"max_bytes": size, "value": value, "code": Text(size).encode([value])[0].tobytes().hex()}
            for size, value in TEXTS
        ],
        "bits": [
            bits(*case) for case in ((1, 1), (8, 181), (40, 2**40 - 1), (64, LAST), (65, 2**64), (100, 2**99 + 5))
        ],
        "segment": [segment(*case) for case in SEGMENTS],
        "canonical": [
            {"document": document, "text": canonical(document).decode(), "sha256": digest(document)}
            for document in JSONS
        ],
    }


GRID = (
    ("0", "1", 10, 0.0),
    ("0", "1", 10, 0.1),
    ("0", "1", 10, 0.3),
    ("0", "1", 10, 0.30000000000000004),
    ("0", "1", 10, 0.7),
    ("0", "1", 10, 0.9999999999999999),
    ("0", "1", 10, 1.0),
    ("-1.5", "2.25", 7, -1.5),
    ("-1.5", "2.25", 7, 0.6428571428571428),
    ("-1.5", "2.25", 7, 2.25),
    ("0.1", "0.3", 3, 0.2),
    ("0", "100000", 4294967296, 99999.99999999999),
    ("-0.0000001", "0.0000001", 1048576, 0.0),
)
TEXTS = (
    (4, ""),
    (4, "tea"),
    (4, "coffee"),
    (6, "cafe\u0301"),
    (4, "caf\u00e9"),
    (4, "水水"),
    (8, "🍵🍵🍵"),
    (4, "\u212b"),
)
SEGMENTS = (
    (8, 0b10110101, 0, 3),
    (64, LAST - 1, 1, 64),
    (72, 0xABCDEF0123456789AB, 0, 64),
    (72, 0xABCDEF0123456789AB, 3, 70),
)
JSONS: tuple[Json, ...] = (
    {},
    {"b": [1, "x", None, True, False], "a": "1.5", "": {}},
    {"\U0001f600": 1, "\ufb33": 2, "a\u0301": 3, "\u00e9": 4},
    {"text": 'quote " backslash \\ slash / \b\f\n\r\t\u0000\u001f\u007f\u2028é🍵'},
    {"integers": [0, -1, 2**53 - 1, 1 - 2**53], "nested": [[], [{}], {"kind": "bits", "bits": 8}]},
)


def coins() -> list[Json]:
    edges = [(t, w) for t in (1, 2**63, LAST) for w in (t - 1, t)]
    rows = [*edges, (0, 0), (WORD, LAST), (0x8000000000000001, 0x8000000000000000)]
    return [{"threshold": f"{t:016x}", "entropy": pack([w]).hex(), "heads": Words(pack([w])).coin(t)} for t, w in rows]


def draws() -> list[Json]:
    rows = [(1, [LAST]), (5, [12]), (WORD, [LAST]), (2**63, [LAST]), (2**32, [2**40 + 9])]
    for bound in (3, 10, 299, 2**32 + 1, 2**63 + 1):
        rows += [(bound, [limit(bound) - 1]), (bound, [limit(bound), LAST, bound - 1])]
    found = []
    for bound, words in rows:
        source = Words(pack(words))
        drawn = source.below(bound)
        found.append({"bound": str(bound), "entropy": pack(words).hex(), "words": source.used, "drawn": str(drawn)})
    return found


def draws_each() -> list[Json]:
    found = []
    for bounds, words in (
        ([3, 4, 5], [7, 7, 7]),
        ([3, 4, 5, 6], [LAST, LAST, LAST, LAST, 100, LAST, 101, 102]),
        ([299], [LAST, limit(299), 298]),
    ):
        source = Words(pack(words))
        drawn = source.below(np.array(bounds, dtype=np.uint64), len(bounds)).tolist()
        found.append(
            {"bounds": bounds, "entropy": pack(words[: source.used]).hex(), "words": source.used, "drawn": drawn}
        )
    return found


def bit_coins() -> list[Json]:
    found = []
    for t, width in (
        (2**63, 8),
        (2**62, 3),
        (1, 9),
        (LAST, 70),
        (0, 5),
        (WORD, 13),
        (0x4491F0C8B6A3D517, 64),
        (0x4491F0C8B6A3D517, 65),
        (0x00FF00FF00FF00FF, 200),
        (3 << 62, 128),
    ):
        words = stream(f"coin_bits {t} {width}", 64 * 4)
        source = Words(pack(words))
        row = source.coin_bits(t, 1, width)[0].tobytes().hex()
        entropy = pack(words[: source.used]).hex()
        found.append({"threshold": f"{t:016x}", "width": width, "entropy": entropy, "words": source.used, "bits": row})
    return found


def salted(index: int, code: bytes) -> Json:
    salt = hashlib.sha256(f"salt {index}".encode()).digest()
    word = int.from_bytes(hashlib.sha256(salt + code).digest()[:8], "little")
    return {"salt": salt.hex(), "code": code.hex(), "spread": f"{word:016x}"}


def bucket(seed: int, value: int, buckets: int) -> Json:
    place = bucket_of(np.array([seed], np.uint64), splitmix64_each(np.array([value], np.uint64)), buckets)
    return {"seed": f"{seed:016x}", "value": str(value), "buckets": buckets, "bucket": int(place[0])}


def grid(lo: str, hi: str, cells: int, value: float) -> Json:
    index = int(Interval(float(lo), float(hi), cells).encode([value])[0])
    assert index == min(math.floor((value - float(lo)) / (float(hi) - float(lo)) * cells), cells - 1)
    return {"lo": lo, "hi": hi, "cells": cells, "value": value, "index": index}


def code_text(code: Any) -> str:
    """A code of one value: decimal up to 64 bits, else hex bytes."""
    return code.tobytes().hex() if isinstance(code, np.ndarray) else str(int(code))


def bits(size: int, value: int) -> Json:
    return {"bits": size, "value": str(value), "code": code_text(Bits(size).encode([value])[0])}


def segment(size: int, value: int, start: int, stop: int) -> Json:
    view = Segment(Bits(size), start, stop)
    code = view.apply(view.held.encode([value]), Words(b""))[0]
    return {"bits": size, "value": str(value), "start": start, "stop": stop, "code": code_text(code)}
