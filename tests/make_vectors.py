"""Writes vectors/*.json: bytes that every language agrees on, and bytes that must be refused. Deterministic.

Run `.venv/bin/python tests/make_vectors.py` after a wanted change of the format; tests/unit/test_vectors.py notices any
other. Not for tests of statistics: nothing here says that a distribution is right.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veil import (
    GRR,
    OLH,
    OUE,
    AllOf,
    Bits,
    Integers,
    Interval,
    Items,
    OneOf,
    Public,
    Question,
    Record,
    SubsetSelection,
    Survey,
    Text,
)
from veil.canonical import canonical, digest
from veil.client import normative_report
from veil.domain import Categories
from veil.entropy import Words
from veil.kernels.hashing import bucket_of, interval_start, spread
from veil.view import Ancestor, Project, SampleItem, Segment, prefix
from veil.wire import encode_batch, encode_tally

FOLDER = Path(__file__).resolve().parent.parent / "vectors"

Json = dict[str, Any]
WORD = 2**64
LAST = WORD - 1
ID_WORDS = 2


def build() -> dict[str, Json]:
    """Every file by its name."""
    return {
        "primitives.json": primitives(),
        "grr.json": {"surveys": [grr_pair(), grr_labels(), grr_wide(), grr_integers(), grr_interval()]},
        "oue.json": {"surveys": [oue(5, 0.1), oue(64, 1.0), oue(70, 4.0), oue(130, 1.0)]},
        "olh.json": {"surveys": [olh_plain(), olh_wide(), olh_bits(), olh_long_bits(), olh_text()]},
        "subset-selection.json": {"surveys": [subset(20, 1.0), subset(70, 0.1), subset(200, 4.0), *subset_lists()]},
        "one-of.json": {"surveys": [mixed(), record(), text_prefixes(), items()]},
        "containers.json": containers(),
        "bad_reports.json": bad_reports(),
        "bad_batches.json": bad_batches(),
        "bad_tasks.json": bad_tasks(),
        "bad_tallies.json": bad_tallies(),
    }


def text_of(document: Json) -> str:
    """A file's text: indented, keys in the order of this module, ASCII only so that no editor renormalizes it."""
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    """Rewrite the folder."""
    FOLDER.mkdir(exist_ok=True)
    for name, document in build().items():
        (FOLDER / name).write_text(text_of(document), encoding="ascii")


# -- entropy -----------------------------------------------------------------------------------------------------------


def stream(name: str, words: int) -> list[int]:
    """Words that look random and depend on the name alone."""
    data = b"".join(hashlib.sha256(f"veil vectors:{name}:{i}".encode()).digest() for i in range(-(-words // 4)))
    return [int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(words)]


def pack(words: Iterable[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def limit(bound: int) -> int:
    """The smallest word that `below` rejects."""
    return WORD // bound * bound


# -- surveys and their cases -------------------------------------------------------------------------------------------

Case = tuple[str, Any, Sequence[int]]
"""A name, a value, and the first words of the entropy; the rest comes from the stream of that name."""


def vectors(name: str, survey: Survey, cases: Iterable[Case], public: Json | None = None) -> Json:
    ratio = survey.guarantee.ratio
    assert ratio is not None
    return {
        "name": name,
        "task": survey.to_json(),
        "task_id": survey.task,
        "ratio": [str(ratio.numerator), str(ratio.denominator)],
        "columns": [
            {"name": field.name, "width": field.width, "count": field.count, "bits": field.bits}
            for field in survey.layout.fields
        ],
        "cases": [one_case(f"{name}: {case}", survey, value, first, public) for case, value, first in cases],
    }


def one_case(name: str, survey: Survey, value: Any, first: Sequence[int], public: Json | None) -> Json:
    words = [*first, *stream(name, 3000)]
    source = Words(pack(words))
    beside = None if public is None else {column: [number] for column, number in public.items()}
    report = normative_report(survey, held(value), source, beside)
    spare = 2 if name.endswith("(spare entropy)") else 0
    shown: Json = {"name": name, "value": value}
    if public is not None:
        shown["public"] = public
    return shown | {
        "entropy": pack(words[: source.used + spare]).hex(),
        "words": source.used,
        "report": report.hex(),
    }


def held(value: Any) -> Any:
    """A value as it stands in a vector; {"hex": ...} are bytes."""
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) and set(value) == {"hex"} else value


def grr_pair() -> Json:
    survey = Survey(GRR(1.0, 2))
    stay = threshold(survey, "stay")
    return vectors(
        "GRR of two values",
        survey,
        [
            ("the first stays, coin just below its threshold", 0, [stay - 1]),
            ("the first moves, coin at its threshold; below(1) takes a word", 0, [stay, LAST]),
            ("the last stays", 1, [0]),
            ("the last moves (spare entropy)", 1, [LAST]),
        ],
    )


def grr_labels() -> Json:
    labels = ["thé", "café", "水", "Straße", "🍵 vert"]
    survey = Survey(GRR(0.1, Categories(labels, missing="category")))
    stay = threshold(survey, "stay")
    return vectors(
        "GRR of labels, eps 0.1, missing as a category",
        survey,
        [
            ("the first label", "thé", [stay - 1]),
            ("a label in decomposed form means the same", "cafe\u0301", [0]),
            ("an astral label moves", "🍵 vert", [stay, 7]),
            ("missing is the last answer", None, [stay - 1]),
            ("missing moves; below(5) rejects the last word", None, [LAST, LAST, 12]),
        ],
    )


def grr_wide() -> Json:
    survey = Survey(GRR(4.0, 300))
    stay, others = threshold(survey, "stay"), 299
    return vectors(
        "GRR of 300 values, eps 4: two bytes",
        survey,
        [
            ("the first stays", 0, [stay - 1]),
            ("the last stays", 299, [stay - 1]),
            ("the largest accepted word", 17, [stay, limit(others) - 1]),
            ("the smallest rejected word, then the largest, then one that skips", 17, [stay, limit(others), LAST, 17]),
            ("just before the held value: no skip", 17, [stay, 16]),
            ("as the stream falls", 256, []),
        ],
    )


def grr_integers() -> Json:
    survey = Survey(GRR(1.5, Integers(-5, 94)))
    stay = threshold(survey, "stay")
    return vectors(
        "GRR of the integers -5 to 94",
        survey,
        [("the lowest", -5, [stay - 1]), ("the highest", 94, [0]), ("zero moves", 0, [stay, 5]), ("streamed", 41, [])],
    )


def grr_interval() -> Json:
    survey = Survey(GRR(2.0, Interval(-1.5, 2.25, cells=10)))
    return vectors(
        "GRR of an interval of ten cells",
        survey,
        [("the low end", -1.5, [0]), ("the high end", 2.25, [0]), ("inside", 0.1, [0]), ("an edge", 0.375, [0])],
    )


def oue(size: int, epsilon: float) -> Json:
    survey = Survey(OUE(epsilon, size))
    others, half = threshold(survey, "others"), WORD // 2
    blocks = -(-size // 64)
    # Words that repeat the threshold's own bits in every lane leave all lanes undecided to the last round.
    rounds = 64 - (others & -others).bit_length() + 1
    equal = [LAST if others >> (63 - i) & 1 else 0 for i in range(rounds) for _ in range(blocks)]
    return vectors(
        f"OUE of {size} values, eps {epsilon:g}",
        survey,
        [
            ("the first, streamed", 0, []),
            ("the last, streamed", size - 1, []),
            ("the middle, streamed (spare entropy)", size // 2, []),
            ("zeros: every lane is decided by the first set bit", 1, [0] * 64 * blocks),
            ("ones: no lane is below", size - 2, [LAST] * 64 * blocks),
            ("every lane equals the threshold: not below it; held coin just below", 0, [*equal, half - 1]),
            ("every lane equals the threshold; held coin at a half", size - 1, [*equal, half]),
        ],
    )


def olh_plain() -> Json:
    survey = Survey(OLH(1.0, 1024))
    stay = threshold(survey, "stay")
    return vectors(
        "OLH of 1024 values, eps 1",
        survey,
        [
            ("the first stays, seed 0", 0, [0, stay - 1]),
            ("the last moves, the largest seed", 1023, [LAST, stay, 5]),
            ("below(3) rejects the last word", 512, [0x0123456789ABCDEF, stay, LAST, 1]),
            ("streamed", 77, []),
            ("streamed (spare entropy)", 78, []),
        ],
    )


def olh_wide() -> Json:
    survey = Survey(OLH(4.0, 5, hash_range=1000))
    stay = threshold(survey, "stay")
    return vectors(
        "OLH with a hash range of 1000, eps 4: a bucket of two bytes",
        survey,
        [
            ("stays", 4, [0x9E3779B97F4A7C15, stay - 1]),
            ("moves", 4, [0x9E3779B97F4A7C15, stay, 998]),
            ("moves after two rejections", 0, [1, LAST, limit(999), LAST, limit(999) - 1]),
            ("streamed", 2, []),
        ],
    )


def olh_bits() -> Json:
    survey = Survey(OLH(0.1, Bits(40)))
    return vectors(
        "OLH of 40 bits, eps 0.1",
        survey,
        [("all zeros", 0, []), ("all ones", 2**40 - 1, []), ("some", 0xC0FFEE1234, [])],
    )


def olh_long_bits() -> Json:
    survey = Survey(OLH(2.0, Bits(100)))
    return vectors(
        "OLH of 100 bits: codes are 13 bytes, hashed by SHA-256 under the mechanism's digest",
        survey,
        [
            ("zeros", {"hex": "00" * 13}, []),
            ("ones", {"hex": "0f" + "ff" * 12}, []),
            ("one", {"hex": "00" * 12 + "01"}, []),
        ],
    )


def olh_text() -> Json:
    survey = Survey(OLH(2.0, Text(12)))
    return vectors(
        "OLH of text of at most 12 bytes",
        survey,
        [
            ("empty", "", []),
            ("ASCII", "tea", []),
            ("composed", "café", []),
            ("decomposed is the same text", "cafe\u0301", []),
            ("cut within a character", "水水水水水", []),
        ],
    )


def subset(size: int, epsilon: float) -> Json:
    survey = Survey(SubsetSelection(epsilon, size))
    inside = threshold(survey, "inside")
    return vectors(
        f"SubsetSelection of {size} values, eps {epsilon:g}",
        survey,
        [
            ("the first, inside", 0, [inside - 1]),
            ("the first, outside", 0, [inside]),
            ("the last, inside (spare entropy)", size - 1, [0]),
            ("the last, outside", size - 1, [LAST]),
            ("zeros: Floyd's replacement at every step", size // 2, [0] * size),
            ("ones: every draw whose bound is no power of two is drawn again, after all first draws", 1, [LAST] * 3),
        ],
    )


def subset_lists() -> list[Json]:
    return [subset(1000, 4.0), subset(30, 4.0)]


def mixed() -> Json:
    domain = Categories.range(100)
    level = Ancestor(domain, branching=4, level=2)
    survey = Survey(
        OneOf(
            (1, Question(GRR(1.0, domain))),
            (2, Question(OUE(1.0, domain))),
            (3, Question(OLH(1.0, domain, hash_range=300))),
            (4, AllOf(Question(SubsetSelection(0.5, domain)), Question(GRR(0.5, level.domain), level))),
            (5, Question(SubsetSelection(4.0, domain))),
            (6, AllOf(Question(OLH(0.25, domain)), Question(SubsetSelection(0.75, level.domain), level))),
        )
    )
    starts = [0, 1, 3, 6, 10, 15]
    cases: list[Case] = [(f"branch {i}", 16 * i + 3, [start]) for i, start in enumerate(starts)]
    cases += [
        ("the last of branch 3", 99, [9]),
        ("the last of all", 0, [20]),
        ("rejected, then branch 0", 99, [LAST, 21]),
    ]
    return vectors("a OneOf of four mechanisms and two AllOf", survey, cases)


def record() -> Json:
    domain = Record.of(sex=["f", "m", "x"], age=Integers(0, 99), married=2)
    both, sex, age = (Project(domain, names) for names in (("age", "sex"), ("sex",), ("age",)))
    survey = Survey(
        OneOf(
            (3, Question(OLH(1.0, both.domain), both)),
            (1, AllOf(Question(GRR(0.5, sex.domain), sex), Question(OUE(0.5, age.domain), age))),
        ),
        public=[Public("income", 2), Public("region")],
    )
    public = {"income": -123456, "region": 7}
    cases: list[Case] = [
        ("two attributes as one index", {"sex": "m", "age": 30, "married": 1}, [0]),
        ("two attributes side by side", {"sex": "x", "age": 99, "married": 0}, [3]),
    ]
    return vectors("a record with projections and public columns", survey, cases, public)


def text_prefixes() -> Json:
    domain = Text(12)
    views = [prefix(domain, 8), prefix(domain, 12), Segment(domain, 12, 84)]
    survey = Survey(
        OneOf(
            (1, Question(GRR(1.0, Bits(8)), views[0])),
            (1, Question(OLH(1.0, Bits(12)), views[1])),
            (1, Question(OLH(1.0, Bits(72)), views[2])),
            (1, Question(OLH(1.0, domain))),
        )
    )
    return vectors("segments of text", survey, [(f"branch {i}", "Zürich", [i]) for i in range(4)])


def items() -> Json:
    view = SampleItem(Items(10), length=3)
    survey = Survey(Question(GRR(1.0, view.domain), view))
    cases: list[Case] = [
        ("a full set", [7, 2, 9], []),
        ("padded: a dummy is drawn", [4], [1]),
        ("empty: dummies only", [], [2, 0]),
        ("larger than the padding length", [0, 1, 2, 3, 4], []),
        ("larger, its draw rejected once", [9, 8, 7, 6, 5], [LAST, 4, 0]),
    ]
    return vectors("one sampled item of a padded set", survey, cases)


def threshold(survey: Survey, name: str) -> int:
    return survey.question(0).mechanism.thresholds[name]


# -- primitives --------------------------------------------------------------------------------------------------------


def primitives() -> Json:
    return {
        "coin": coins(),
        "below": draws(),
        "below_each": draws_each(),
        "coin_bits": bit_coins(),
        "splitmix64": [
            {"value": str(value), "spread": f"{int(spread(np.array([value], np.uint64))[0]):016x}"}
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
    place = bucket_of(np.array([seed], np.uint64), spread(np.array([value], np.uint64)), buckets)
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
    code = view.apply(view.source.encode([value]), Words(b""))[0]
    return {"bits": size, "value": str(value), "start": start, "stop": stop, "code": code_text(code)}


# -- batches and tallies -----------------------------------------------------------------------------------------------


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


# -- bad reports -------------------------------------------------------------------------------------------------------


def bad_reports() -> Json:
    return {
        "surveys": [
            bad_frames(),
            bad_payloads(
                "OUE of 13 values", Survey(OUE(1.0, 13)), [("a bit beyond the width", "0020"), ("all bits", "ffff")]
            ),
            bad_payloads("OLH with 5 buckets", Survey(OLH(1.0, 9, hash_range=5)), [("bucket 5", "00" * 8 + "05")]),
            bad_payloads(
                "SubsetSelection of 3 in 10, as bits",
                Survey(SubsetSelection(1.0, 10, subset_size=3)),
                [("too small a subset", "0300"), ("too large a subset", "0f00"), ("a bit beyond the width", "0304")],
            ),
            bad_payloads(
                "SubsetSelection of 3 in 200, as a list",
                Survey(SubsetSelection(4.0, 200, subset_size=3)),
                [("not increasing", "030201"), ("a value twice", "010101"), ("a value out of range", "0102c8")],
            ),
            bad_choices(),
        ]
    }


def bad_payloads(name: str, survey: Survey, payloads: list[tuple[str, str]]) -> Json:
    head = bytes([1]) + bytes.fromhex(survey.task) + bytes(16)
    cases = [(case, head + bytes.fromhex(payload), "WireError") for case, payload in payloads]
    return bad_cases(name, survey, cases)


def bad_frames() -> Json:
    survey = Survey(GRR(1.0, 5))
    good = normative_report(survey, 3, Words(pack(stream("bad frames", 8))))
    cases = [
        ("empty", b"", "WireError"),
        ("one byte short", good[:-1], "WireError"),
        ("one byte too long", good + b"\0", "WireError"),
        ("no payload", good[:49], "WireError"),
        ("wire version 0", b"\0" + good[1:], "WireError"),
        ("wire version 2", b"\2" + good[1:], "WireError"),
        ("another task", good[:1] + bytes([good[1] ^ 1]) + good[2:], "MismatchError"),
        ("the first value out of range", good[:-1] + b"\5", "WireError"),
        ("the largest byte", good[:-1] + b"\xff", "WireError"),
    ]
    return bad_cases("GRR of 5 values", survey, cases)


def bad_choices() -> Json:
    survey = Survey(
        OneOf(
            (1, Question(GRR(1.0, 20))),
            (1, Question(OLH(1.0, 20, hash_range=300))),
            (1, Question(SubsetSelection(4.0, 20, subset_size=1))),
            (1, Question(SubsetSelection(4.0, 20, subset_size=2))),
            (1, AllOf(Question(GRR(1.0, 20)), Question(GRR(1.0, 20)))),
        )
    )
    # choice, value, seed (8), bucket (2), subset (2), 0.value, 1.value
    assert [field.size for field in survey.layout.fields] == [1, 1, 8, 2, 2, 1, 1]
    return bad_payloads(
        "a OneOf of five branches",
        survey,
        [
            ("choice out of range", "05" + "00" * 15),
            ("branch 0: value out of range", "0014" + "00" * 14),
            ("branch 0: a seed that is not its own", "000101" + "00" * 13),
            ("branch 0: a column of the AllOf", "0001" + "00" * 13 + "01"),
            ("branch 1: a value that is not its own", "0101" + "00" * 14),
            ("branch 1: bucket out of range", "0100" + "00" * 8 + "2c01" + "00" * 4),
            ("branch 2: bytes beyond its own subset", "0200" + "00" * 10 + "0102" + "0000"),
            ("branch 3: not increasing", "0300" + "00" * 10 + "0201" + "0000"),
            ("branch 4: second value out of range", "0400" + "00" * 12 + "0114"),
            ("branch 4: the outer value column", "0401" + "00" * 12 + "0101"),
        ],
    )


def bad_cases(name: str, survey: Survey, cases: list[tuple[str, bytes, str]]) -> Json:
    return {
        "name": name,
        "task": survey.to_json(),
        "cases": [{"name": case, "report": data.hex(), "error": error} for case, data, error in cases],
    }


# -- bad tasks ---------------------------------------------------------------------------------------------------------


def bad_tasks() -> Json:
    """Texts that reading must refuse.

    `ratio` says what a client does that checks the ratio alone: "above" must be refused by it too, "within" is private
    (and refused only because the thresholds are not those that epsilon gives); null where it does not matter.
    """
    grr, oue_, olh, sub = (made.to_json() for made in (Survey(GRR(1.0, 8)), *other_surveys()))
    text = canonical(grr).decode()
    stay = grr["ask"]["mechanism"]["thresholds"]["stay"]
    cases: list[tuple[str, str, str, str | None]] = []

    def edited(name: str, document: Json, edit: Callable[[Json], None], error: str, ratio: str | None = None) -> None:
        changed = copy.deepcopy(document)
        edit(changed)
        cases.append((name, json.dumps(changed, sort_keys=True, separators=(",", ":")), error, ratio))

    def mechanism(name: str, key: str, value: Any, error: str) -> None:
        edited(name, grr, lambda d: d["ask"]["mechanism"].update({key: value}), error)

    def domain(name: str, value: Any, error: str) -> None:
        def edit(document: Json) -> None:
            document["ask"]["mechanism"]["domain"] = document["ask"]["view"]["source"] = value

        edited(name, grr, edit, error)

    def coin(name: str, document: Json, key: str, step: int, ratio: str) -> None:
        def edit(changed: Json) -> None:
            coins = changed["ask"]["mechanism"]["thresholds"]
            coins[key] = f"{int(coins[key], 16) + step:016x}"

        edited(name, document, edit, "WireError", ratio)

    coin("GRR: the threshold one higher", grr, "stay", 1, "above")
    coin("GRR: the threshold one lower", grr, "stay", -1, "within")
    coin("GRR: the threshold far higher", grr, "stay", 2**60, "above")
    coin("GRR: the threshold so low that moving gives the value away", grr, "stay", -int(stay, 16) + 1, "above")
    coin("OUE: others one lower", oue_, "others", -1, "above")
    coin("OUE: others one higher", oue_, "others", 1, "within")
    coin("OUE: held raised", oue_, "held", 2**40, "above")
    coin("OLH: the threshold one higher", olh, "stay", 1, "above")
    coin("OLH: the threshold one lower", olh, "stay", -1, "within")
    coin("SubsetSelection: the threshold one higher", sub, "inside", 1, "above")
    coin("SubsetSelection: the threshold one lower", sub, "inside", -1, "within")
    mechanism("a larger epsilon than the thresholds'", "epsilon", "1.1", "WireError")
    mechanism("a smaller epsilon than the thresholds'", "epsilon", "0.9", "WireError")
    mechanism("epsilon as a float", "epsilon", 1.5, "WireError")
    mechanism("epsilon as an integer", "epsilon", 1, "WireError")
    mechanism("epsilon with a zero at the end", "epsilon", "1.0", "WireError")
    mechanism("epsilon in scientific notation", "epsilon", "1e0", "WireError")
    mechanism("epsilon zero", "epsilon", "0", "ParameterError")
    mechanism("epsilon negative", "epsilon", "-1", "ParameterError")
    mechanism("epsilon not a number", "epsilon", "NaN", "WireError")
    mechanism("epsilon infinite", "epsilon", "Infinity", "WireError")
    mechanism("epsilon too large for a coin", "epsilon", "41", "ParameterError")
    mechanism("thresholds without their zeros", "thresholds", {"stay": stay.lstrip("0") + " "}, "WireError")
    mechanism("thresholds in capitals", "thresholds", {"stay": stay.upper()}, "WireError")
    mechanism("thresholds as numbers", "thresholds", {"stay": 5}, "WireError")
    mechanism("one threshold more", "thresholds", {"stay": stay, "go": stay}, "WireError")
    mechanism("an unknown key in the mechanism", "note", "hello", "WireError")
    mechanism("a parameter of another mechanism", "hash_range", 4, "WireError")
    mechanism("an unknown mechanism", "kind", "RAPPOR", "WireError")
    edited("a missing key", grr, lambda d: d["ask"]["mechanism"].pop("thresholds"), "WireError")
    edited("an unknown key in the survey", grr, lambda d: d.update(note="hello"), "WireError")
    edited("an unknown kind of document", grr, lambda d: d.update(kind="veil-campaign"), "WireError")
    edited("an unknown kind of ask", grr, lambda d: d["ask"].update(kind="some-of"), "WireError")
    edited("an unknown kind of view", grr, lambda d: d["ask"]["view"].update(kind="mirror"), "WireError")
    edited("another task version", grr, lambda d: d.update(version=2), "WireError")
    edited("a version that is a boolean", grr, lambda d: d.update(version=True), "WireError")
    edited("a public column with a bad scale", grr, lambda d: d.update(public=[["income", 10]]), "ParameterError")
    edited("a public column twice", grr, lambda d: d.update(public=[["a", 0], ["a", 0]]), "ParameterError")
    edited("a view of another domain", grr, lambda d: d["ask"]["view"]["source"].update(size=9), "ParameterError")
    edited("OneOf without branches", grr, lambda d: d.update(ask={"kind": "one-of", "branches": []}), "ParameterError")
    edited("a share of zero", grr, lambda d: d.update(ask=one_of(d["ask"], 0)), "ParameterError")
    edited("a share that is a string", grr, lambda d: d.update(ask=one_of(d["ask"], "1")), "ParameterError")
    edited("OneOf directly within OneOf", grr, lambda d: d.update(ask=one_of(one_of(d["ask"], 1), 1)), "ParameterError")
    edited("AllOf without asks", grr, lambda d: d.update(ask={"kind": "all-of", "asks": []}), "ParameterError")
    edited("a tree nine levels deep", grr, lambda d: d.update(ask=nested(d["ask"], 9)), "WireError")
    edited("a tree a thousand levels deep", grr, lambda d: d.update(ask=nested(d["ask"], 200)), "WireError")
    domain("an unknown kind of domain", {"kind": "reals"}, "WireError")
    domain("a domain of one value", {"kind": "categories", "missing": "refuse", "size": 1}, "ParameterError")
    domain("a size that is a boolean", {"kind": "categories", "missing": "refuse", "size": True}, "ParameterError")
    domain("an integer of 2^53", {"kind": "integers", "lo": 0, "hi": 2**53}, "WireError")
    domain("an integer of 2^64", {"kind": "categories", "missing": "refuse", "size": 2**64}, "WireError")
    domain("labels and a size", {"kind": "categories", "missing": "refuse", "size": 8, "labels": ["a"]}, "WireError")
    domain("a label twice after NFC", labelled("caf\u00e9", "cafe\u0301"), "ParameterError")
    domain("a label that is not NFC", labelled("cafe\u0301", *"abcdefg"), "WireError")
    domain("a label that is no Unicode", labelled("\ud800", *"abcdefg"), "WireError")
    domain("an interval with a zero at the end", {"kind": "interval", "lo": "0.0", "hi": "1", "cells": 8}, "WireError")
    domain("an interval backwards", {"kind": "interval", "lo": "1", "hi": "0", "cells": 8}, "ParameterError")
    domain("an attribute whose name is a list", {"kind": "record", "attributes": [[[], {}]]}, "WireError")
    cases += [
        ("not JSON", "veil", "WireError", None),
        ("empty", "", "WireError", None),
        ("a list", "[]", "WireError", None),
        ("a number", "1", "WireError", None),
        ("cut off", text[:-1], "WireError", None),
        ("something after the end", text + "{}", "WireError", None),
        ("a repeated key", text.replace('"version":1', '"version":1,"version":1'), "WireError", None),
        ("a float", text.replace('"version":1', '"version":1.0'), "WireError", None),
        ("NaN", text.replace('"version":1', '"version":NaN'), "WireError", None),
        ("an integer with an exponent", text.replace('"version":1', '"version":1e0'), "WireError", None),
        ("an integer of 5000 digits", text.replace('"version":1', '"version":' + "9" * 5000), "WireError", None),
    ]
    return {
        "cases": [{"name": name, "text": body, "error": error, "ratio": ratio} for name, body, error, ratio in cases]
    }


def other_surveys() -> list[Survey]:
    return [Survey(OUE(0.1, 8)), Survey(OLH(4.0, 8)), Survey(SubsetSelection(1.0, 20))]


def one_of(ask: Json, share: Any) -> Json:
    return {"kind": "one-of", "branches": [[share, ask]]}


def nested(ask: Json, levels: int) -> Json:
    for _ in range(levels):
        ask = {"kind": "all-of", "asks": [ask]}
    return ask


def labelled(*labels: str) -> Json:
    return {"kind": "categories", "missing": "refuse", "labels": list(labels)}


if __name__ == "__main__":
    main()
