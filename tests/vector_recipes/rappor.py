"""Rappor: filters in cohorts, with and without the instantaneous step, of indices and of text."""

from __future__ import annotations

from veil import Rappor, Survey, Text

from .surveys import vectors
from .words import LAST, Json, limit


def every_survey() -> list[Json]:
    return [plain(), odd_width(), with_instant(), text()]


def plain() -> Json:
    survey = Survey(Rappor.with_f(0.5, 1000))
    return vectors(
        "Rappor of 1000 values, f 1/2: 128 bits, 2 hashes, 8 cohorts",
        survey,
        [
            ("the first value, cohort 0", 0, [0]),
            ("the last value, cohort 7", 999, [7]),
            ("no bit is flipped", 123, [8 + 3, *[LAST] * 128]),
            ("every bit is flipped", 123, [3, *[0] * 128]),
            ("streamed (spare entropy)", 500, []),
        ],
    )


def odd_width() -> Json:
    survey = Survey(Rappor(1.0, 20, bits=70, hashes=1, cohorts=300))
    return vectors(
        "Rappor of 70 bits, one hash, 300 cohorts: a cohort of two bytes",
        survey,
        [
            ("the last cohort", 19, [limit(300) - 1]),
            ("a rejected word, then cohort 256", 0, [limit(300), 256]),
            ("streamed", 7, []),
        ],
    )


def with_instant() -> Json:
    survey = Survey(Rappor(3.0, 50, bits=32, hashes=3, cohorts=4, instant=(0.25, 0.75)))
    return vectors(
        "Rappor with an instantaneous step, p 1/4 and q 3/4",
        survey,
        [("the first", 0, [0]), ("the last", 49, [3]), ("streamed", 7, []), ("streamed again", 7, [1])],
    )


def text() -> Json:
    survey = Survey(Rappor(4.0, Text(12), instant=(0.1, 0.9)))
    return vectors(
        "Rappor of text of at most 12 bytes",
        survey,
        [("empty", "", []), ("ASCII", "tea", []), ("decomposed is the same text", "cafe\u0301", [])],
    )
