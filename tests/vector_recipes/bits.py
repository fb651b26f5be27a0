"""Families of questions about bits of a record's attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from veil import GRR, EachOf, Record, Survey
from veil.domain import Categories
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.survey import ListedBits, Parities

from .each_of import PERSON, BadTask, person
from .surveys import Case, vectors
from .words import LAST, Json, limit


def every_survey() -> list[Json]:
    return [parities(), binary_parities(), listed()]


def parities() -> Json:
    """Masks of two, seven, one and three bits: an attribute of 100 values has 127 masks."""
    rule = Parities(PERSON, 2)
    survey = Survey(EachOf(rule, lambda domain: GRR(1.0, domain)))
    last = len(rule) - 1
    cases: list[Case] = [(f"question {i}", person(age=85), [i]) for i in (0, 6, 7, 8, 14, 15, 16, 1031, 1500, last)]
    cases += [
        ("the choice rejected, then the last question", person("x", 99, 0, 0), [limit(len(rule)), LAST, last]),
        ("streamed (spare entropy)", person("f", 0, 0, 3), []),
    ]
    return vectors("parities of bits of at most two of four attributes", survey, cases)


def binary_parities() -> Json:
    record = Record(tuple((f"a{i}", Categories.range(1 if i == 3 else 2)) for i in range(9)))
    survey = Survey(EachOf(Parities(record, 3), lambda domain: GRR(2.0, domain)))
    assert len(survey.questions) == 92
    value = {f"a{i}": int(i % 3 == 0 and i != 3) for i in range(9)}
    cases: list[Case] = [(f"question {i}", value, [i]) for i in (0, 1, 2, 7, 46, 63, 64, 91)]
    return vectors("parities of at most three of eight binary attributes, and one of one value", survey, cases)


def listed() -> Json:
    """GRR or OLH, whichever is better for a size: both kinds of columns."""
    sets = (
        (("age", 0),),
        (("sex", 1), ("age", 6)),
        (("sex", 0), ("age", 2), ("age", 3), ("married", 0), ("children", 0), ("children", 2)),
        (("sex", 0), ("sex", 1)),
    )
    survey = Survey(EachOf(ListedBits(PERSON, sets), lambda domain: direct_or_hashed(1.0, domain)))
    cases: list[Case] = [(f"question {i}", person(age=77, children=5), [i]) for i in range(4)]
    return vectors("listed sets of bits, by GRR or OLH", survey, cases)


def bad_tasks() -> Iterator[BadTask]:
    """As in `each_of`."""
    parities_, listed_ = parities()["task"], listed()["task"]

    def rule(name: str, task: Json, keys: Json, error: str = "ParameterError") -> BadTask:
        return f"EachOf: {name}", task, lambda d: d["ask"]["rule"].update(keys), error, None

    yield rule("parities of no attributes", parities_, {"size": 0})
    yield rule("parities of more attributes than there are", parities_, {"size": 5})
    yield rule("parities of a size that is true", parities_, {"size": True})
    yield rule("parities with an unknown key", parities_, {"note": 1}, "WireError")
    yield rule("no listed bits", listed_, {"sets": []})
    yield rule("an empty listed set of bits", listed_, {"sets": [[1], []]})
    yield rule("a listed set of bits twice", listed_, {"sets": [[2], [1, 8], [0, 4, 5, 9, 10, 12], [0, 1], [0, 1]]})
    yield rule("a listed set of bits that falls", listed_, {"sets": [[2], [8, 1]]}, "WireError")
    yield rule("a bit twice in a listed set", listed_, {"sets": [[1, 1]]})
    yield rule("a listed bit that is not there", listed_, {"sets": [[13]]}, "WireError")
    yield rule("a listed bit below 0", listed_, {"sets": [[-1]]}, "WireError")
    yield rule("a listed bit by its attribute", listed_, {"sets": [[["age", 0]]]}, "WireError")
    yield with_attributes("parities of attributes without bits", parities_, [1, 1], 2)
    yield with_attributes("more than 2^20 parities", parities_, [2**11, 2**10], 2)
    yield with_attributes("parities of an attribute of 2^40 values", parities_, [2**40], 1)
    yield with_attributes("parities of more attributes than memory holds", parities_, [2] * 60, 30)
    wide: Callable[[Json], Any] = lambda d: (  # noqa: E731  # one recipe among others
        d.update(domain=_record([2**40, 2**13])),
        d["ask"]["rule"].update(sets=[list(range(53))]),
    )
    yield "EachOf: a listed set of 53 bits", listed_, wide, "ParameterError", None


def with_attributes(name: str, task: Json, sizes: list[int], size: int) -> BadTask:
    def edit(document: Json) -> None:
        document["domain"] = _record(sizes)
        document["ask"]["rule"]["size"] = size

    return f"EachOf: {name}", task, edit, "ParameterError", None


def _record(sizes: list[int]) -> Json:
    return Record(tuple((f"a{i}", Categories.range(size)) for i, size in enumerate(sizes))).to_json()
