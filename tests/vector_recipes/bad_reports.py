"""Reports that decoding must refuse, each for one reason."""

from __future__ import annotations

from veil import (
    GRR,
    OLH,
    OUE,
    SHE,
    AllOf,
    HaarResponse,
    HadamardResponse,
    OneOf,
    Piecewise,
    Question,
    SquareWave,
    StochasticRounding,
    SubsetSelection,
    Survey,
)
from veil.device.client import normative_report
from veil.entropy import Words

from . import each_of
from .words import Json, pack, stream


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
            bad_payloads(
                "HadamardResponse of 33 values", Survey(HadamardResponse(1.0, 33)), [("a row out of range", "80")]
            ),
            bad_payloads("SHE of 2 values", Survey(SHE(1.0, 2, reach=3)), [("beyond the clamp", "0008")]),
            bad_payloads("HaarResponse of 33 values", Survey(HaarResponse(1.0, 33)), [("a row out of range", "40")]),
            bad_payloads(
                "SquareWave of 10 cells and 4 to either side",
                Survey(SquareWave(1.0, 10, half_width=4)),
                [("the first cell out of range", "12"), ("the largest byte", "ff")],
            ),
            bad_payloads(
                "SquareWave of 250 cells and 4 to either side: two bytes",
                Survey(SquareWave(1.0, 250, half_width=4)),
                [("the first cell out of range", "0201"), ("one byte short", "01")],
            ),
            bad_payloads("StochasticRounding", Survey(StochasticRounding(1.0, 10)), [("neither end", "02")]),
            bad_payloads(
                "Piecewise of 300 steps", Survey(Piecewise(1.0, 10, steps=300)), [("a step out of range", "2c01")]
            ),
            bad_choices(),
            *(bad_payloads(*group) for group in each_of.bad_payload_groups()),
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
