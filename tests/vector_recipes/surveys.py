"""Surveys of every mechanism, and trees of them, with reports from given entropy: coins at thresholds, draws again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

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
from veil.device.client import normative_report
from veil.domain import Categories
from veil.entropy import Words
from veil.view import Ancestor, Project, SampleItem, Segment, prefix

from .words import LAST, WORD, Json, limit, pack, stream, threshold

Case = tuple[str, Any, Sequence[int]]
"""A name, a value, and the first words of the entropy; the rest comes from the stream of that name."""


def vectors(name: str, survey: Survey, cases: Iterable[Case], public: Json | None = None) -> Json:
    ratio, delta = survey.guarantee.ratio, survey.guarantee.delta
    assert ratio is not None
    return {
        "name": name,
        "task": survey.to_json(),
        "task_id": survey.task,
        "ratio": [str(ratio.numerator), str(ratio.denominator)],
        **({"delta": [str(delta.numerator), str(delta.denominator)]} if delta else {}),
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
    """A value as it stands in a vector; {"hex": ...} are bytes, {"time": ...} is a time."""
    if isinstance(value, dict) and set(value) == {"time"}:
        return dt.datetime.fromisoformat(value["time"])
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


def olh_short() -> Json:
    survey = Survey(OLH(1.0, 1024, seed_bytes=4))
    stay = threshold(survey, "stay")
    return vectors(
        "OLH with seeds of 4 bytes",
        survey,
        [
            ("the first stays, seed 0", 0, [0, stay - 1]),
            ("the last moves, the largest seed", 1023, [LAST, stay, 5]),
            ("a word above 2^32 is taken modulo it", 512, [0x0123456789ABCDEF, stay, LAST, 1]),
            ("streamed", 77, []),
        ],
    )


def olh_short_text() -> Json:
    survey = Survey(OLH(4.0, Text(12), hash_range=300, seed_bytes=4))
    return vectors(
        "OLH of text with seeds of 4 bytes, a bucket of two bytes",
        survey,
        [("ASCII", "tea", []), ("empty", "", [1, 0])],
    )


def olh_short_items() -> Json:
    view = SampleItem(Items(10), length=3)
    survey = Survey(Question(OLH(1.0, view.domain, seed_bytes=4), view))
    return vectors("one sampled item, OLH with seeds of 4 bytes", survey, [("a set", [7, 2, 9], []), ("one", [4], [])])


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
