"""Published surveys and what a person is told about each, from the signed document alone."""

from __future__ import annotations

from typing import Any

from veil import GRR, OLH, AllOf, Public, Rappor, Survey
from veil.collector.surveys.catalogue import draft_of, key_text
from veil.collector.surveys.catalogue import published as signed
from veil.device.statements import statements as sentences
from veil.itemsets import PSFO

from .published import KEY
from .words import Json

COLLECTOR = "https://collector.example"
SURVEYS: list[tuple[str, Survey, int, int | None]] = [
    ("one question", Survey(GRR(1.0, ["tea", "coffee"])), 86_400, 30),
    ("ln 3, kept a day", Survey(GRR(1.0986122886681096, 2)), 3_600, 1),
    ("no days", Survey(GRR(0.1, 7)), 5_400, None),
    ("eps 3", Survey(GRR(3.0, 5)), 604_800, 36_525),
    ("above 3", Survey(GRR(3.001, 5)), 86_400, 30),
    ("eps 10", Survey(GRR(10.0, 5)), 86_400, 30),
    ("above 10, to the second", Survey(GRR(10.001, 5)), 1, None),
    ("eps 40", Survey(GRR(40.0, 5)), 3_599, 90),
    ("public columns", Survey(GRR(2.0, 5), [Public("region"), Public("Größe", 2)]), 86_400, 30),
    ("two questions", Survey(AllOf(GRR(1.0, 5), GRR(1.5, 5))), 7_200, 30),
    ("a delta", PSFO(10, OLH, 2.0, ["tea", "salt", "rice", "soap"], delta=1e-3).survey, 86_400, 30),
    ("over time", Survey(Rappor(1.0, 10, instant=(0.25, 0.75))), 60, 30),
]


def case(name: str, survey: Survey, precision: int, keep_days: int | None) -> Json:
    options: dict[str, Any] = {} if keep_days is None else {"keep_days": keep_days}
    published = signed(draft_of(survey, options, precision=precision, minimum=1), KEY)
    return {"name": name, "published": published, "statements": sentences(published, COLLECTOR)}


def statements() -> Json:
    return {"key": key_text(KEY), "collector": COLLECTOR, "cases": [case(*survey) for survey in SURVEYS]}
