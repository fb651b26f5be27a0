"""CALM: a record is answered as a record, through whichever view was drawn and the oracle for its number of cells."""

from __future__ import annotations

from veil import Integers, Record
from veil.marginals import CALM

from .surveys import Case, vectors
from .words import LAST, Json, limit

PERSON = Record.of(age=["18-39", "40-64", "65+"], sex=["f", "m"], smokes=2, children=Integers(0, 7), region=16)


def every_survey() -> list[Json]:
    return [pairs(), views()]


def person(age: str = "40-64", sex: str = "m", smokes: int = 1, children: int = 3, region: int = 11) -> Json:
    return {"region": region, "age": age, "sex": sex, "smokes": smokes, "children": children}  # in any order


def pairs() -> Json:
    survey = CALM(1.0, PERSON, k=2, sets=2).survey
    cases: list[Case] = [(f"view {i}", person(), [i]) for i in range(10)]
    cases += [
        ("the view drawn again, then the last one", person("65+", "f", 0, 7, 15), [limit(10), LAST, 9]),
        ("other attributes beside", {**person("18-39", "f", 0, 0, 0), "income": 50_000}, [0]),
    ]
    return vectors("CALM with all pairs of five attributes", survey, cases)


def views() -> Json:
    sets = (("age", "sex", "smokes"), ("sex", "smokes", "children"), ("age", "region"), ("children", "region"))
    survey = CALM(2.0, PERSON, k=3, sets=sets).survey
    cases: list[Case] = [(f"view {i}", person(), [i]) for i in range(4)]
    cases += [("streamed", person("18-39", "f", 0, 0, 0), [])]
    return vectors("CALM with views of two and three attributes, by several oracles", survey, cases)
