"""Tables: a record is answered for one combination of levels, and public columns stand beside the report."""

from __future__ import annotations

import datetime as dt

from veil import Integers, Interval, Record
from veil.sql import HIO, Category, Measure, Moment, Table

from .surveys import Case, vectors
from .words import LAST, Json, limit

PRIVATE = Record.of(age=Integers(18, 97), salary=Interval(0.0, 5000.0, cells=25), state=["NY", "WA", "CA"])
PUBLIC = (
    Measure("purchase", 2),
    Category('the "os"', ("ios", "android", "größe")),
    Moment("bought"),
    Moment("seen", "second"),
)


def every_survey() -> list[Json]:
    return [levels(), one_dimension()]


def levels() -> Json:
    table = Table(2.0, PRIVATE, PUBLIC, HIO(fan_outs=5))
    person = {"state": "CA", "age": 61, "salary": 1234.5}  # in any order
    many = len(table.survey.ask)
    cases: list[Case] = [(f"combination {i}", person, [i]) for i in range(0, many, 5)]
    cases += [
        ("the last combination", person, [many - 1]),
        ("drawn again", {"state": "NY", "age": 18, "salary": 0.0}, [limit(many), LAST, 3]),
        ("streamed", {"state": "WA", "age": 97, "salary": 5000.0}, []),
    ]
    public = table.encode_person(
        {
            "purchase": -1234.565,
            'the "os"': "größe",
            "bought": dt.date(1969, 12, 31),
            "seen": "2026-01-31T12:00:00+02:00",
        }
    )
    return vectors("a table of three dimensions with public columns", table.survey, cases, public)


def one_dimension() -> Json:
    table = Table(1.0, PRIVATE, (Measure("purchase", 9),), HIO(fan_outs=3, most=1, oracle="OLH"))
    person = {"state": "WA", "age": 40, "salary": 4999.0}
    cases: list[Case] = [(f"group {i}", person, [i]) for i in range(len(table.survey.ask))]
    public = table.encode_person({"purchase": 999_999_999})
    return vectors("a table asked about one dimension at a time", table.survey, cases, public)
