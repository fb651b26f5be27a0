"""One person's answers over time: the cohort once, the permanent step once per value, one report per occasion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veil import Ledger, Public, Question, Rappor, Record, Survey, Text
from veil.device.repeated_answers import RepeatedAnswers
from veil.entropy import Words
from veil.view import Project

from .words import LAST, Json, limit, pack, stream

Step = tuple[str, Any, str, Sequence[int]]
"""A name, a value, an occasion, and the first words of the entropy; the rest comes from the stream of that name."""


def lasting() -> Json:
    return {"people": [plain(), with_instant(), beside_public_columns(), text()]}


def plain() -> Json:
    return person(
        "Rappor without an instantaneous step: 300 cohorts, 70 bits",
        Survey(Rappor(1.0, 20, bits=70, hashes=1, cohorts=300)),
        [
            ("the cohort is drawn, a word rejected", 19, "monday", [limit(300), 299]),
            ("another value: no cohort is drawn", 0, "tuesday", [0]),
            ("the same occasion again: no word is taken", 0, "tuesday", []),
            ("the first value again: an id, and nothing else", 19, "wednesday", [LAST, LAST]),
        ],
    )


def with_instant() -> Json:
    return person(
        "Rappor with an instantaneous step",
        Survey(Rappor(3.0, 50, bits=32, hashes=3, cohorts=4, instant=(0.25, 0.75))),
        [
            ("the first report, as if it were the only one", 7, "a", [3]),
            ("the same value on another occasion", 7, "b", []),
            ("another value", 49, "c", []),
            ("both again", 7, "d", []),
            ("both again, the other", 49, "d", []),
            ("an occasion that was there", 7, "a", []),
        ],
    )


def beside_public_columns() -> Json:
    record = Record.of(sex=["f", "m"], age=100)
    return person(
        "Rappor behind a view, with a public column",
        Survey(Question(Rappor(2.0, 100), Project(record, ("age",))), public=[Public("week")]),
        [("one week", {"sex": "f", "age": 30}, "1", []), ("the next", {"sex": "f", "age": 30}, "2", [])],
        public={"week": 46},
    )


def text() -> Json:
    survey = Survey(Rappor(4.0, Text(12), instant=(0.1, 0.9)))
    return person("Rappor of text", survey, [("tea", "tea", "1", []), ("milk", "milk", "2", []), ("", "", "3", [])])


def person(name: str, survey: Survey, steps: Sequence[Step], public: Json | None = None) -> Json:
    """One ledger for all steps: what was kept before decides what is drawn."""
    ledger = Ledger(lifetime=1000.0)
    shown = []
    for step, value, occasion, first in steps:
        words = [*first, *stream(f"{name}: {step}", 3000)]
        source = Words(pack(words))
        report = replayed(survey, ledger, value, occasion, source, public)
        shown.append(
            {
                "name": f"{name}: {step}",
                "value": value,
                "occasion": occasion,
                "entropy": pack(words[: source.used]).hex(),
                "words": source.used,
                "report": report.hex(),
            }
        )
    return {
        "name": name,
        "task": survey.to_json(),
        "task_id": survey.task,
        "public": public or {},
        "steps": shown,
        "paid": sum(charge.cost > 0 for charge in ledger.charges),
    }


def replayed(survey: Survey, ledger: Ledger, value: Any, occasion: str, source: Words, public: Json | None) -> bytes:
    """A report on an occasion; marks are plain text here, as any are good that tell answers apart."""
    answers = RepeatedAnswers.of(survey, ledger)
    assert answers is not None
    beside = survey.read_public(None if public is None else {name: [n] for name, n in public.items()}, 1)
    of_value = f"{value}".encode().hex() or "-"
    marks = of_value, f"{of_value}-{occasion}"
    return answers.report(survey.domain.encode([value]), beside, marks, source, lambda report: None)
