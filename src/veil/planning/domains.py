"""Domains from the words of a command line: labels, numbers, times, sets of items, and attributes of records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from veil.domain import Categories, Domain, Integers, Interval, Items, Numeric
from veil.domain.text_values import parse_time
from veil.errors import InputError, ParameterError
from veil.files.attributes import is_whole

_ATTRIBUTE = (
    "an attribute is NAME=VALUES: labels as in sex=f,m; whole numbers as in age=18..99; a number or a time in equal "
    "cells as in age=0..100/10; or how many values 0, 1, ... there are, as in smokes=2"
)


def labelled(text: str, *, missing: Literal["refuse", "category"] = "refuse") -> Categories:
    """One of the labels in a text with commas; with `missing="category"`, or none of them.

    >>> labelled("tea, coffee").labels
    ('tea', 'coffee')
    """
    names = [label.strip() for label in text.split(",")]
    if not all(names):
        raise InputError("a label is missing between two commas: expected --labels tea,coffee,water")
    return Categories(names, missing=missing)


def items_of(lines: Sequence[str]) -> Items:
    """Sets of these items; whole numbers where all lines are.

    >>> items_of(["3", "7"]).universe.labels
    (3, 7)
    """
    whole = all(line.removeprefix("-").isdecimal() for line in lines)
    return Items(Categories([int(line) for line in lines] if whole else list(lines)))


def attribute(text: str) -> tuple[str, Domain]:
    """A named attribute of a record, and its values.

    >>> attribute("sex=f,m"), attribute("age=18..99")
    (('sex', Categories(['f', 'm'], 2 labels)), ('age', Integers(lo=18, hi=99)))
    >>> attribute("age=0..100/10")[1].size, attribute("smokes=2")[1].size
    (10, 2)
    """
    name, _, values = text.partition("=")
    name, values = name.strip(), values.strip()
    if not name or not values:
        raise InputError(f"{text.strip() or 'nothing'} is no attribute: {_ATTRIBUTE}")
    try:
        return name, _values(values)
    except (ParameterError, InputError) as problem:
        raise type(problem)(f"attribute {name}: {problem}") from None


def _values(values: str) -> Domain:
    """What people hold, of the text after the name of an attribute."""
    low, dots, rest = values.partition("..")
    high, slash, cells = rest.partition("/")
    if not dots:
        return Categories.range(int(values)) if values.isdecimal() else _labels(values)
    try:
        first, last = (_end(low), _end(high)) if slash else (int(low), int(high))
        if type(first) is type(last) and not first < last:  # type: ignore[operator]  # both are numbers, or times
            raise ParameterError(f"{low} is not below {high}: expected the smaller end first, as in 0..100/10")
        if isinstance(first, int) and isinstance(last, int):
            return Integers(first, last)
        return Interval(first, last, cells=int(cells))  # type: ignore[arg-type]  # refuses a number beside a time
    except ParameterError:
        raise
    except ValueError:
        raise InputError(_ATTRIBUTE) from None


def _labels(values: str) -> Categories:
    labels = [label.strip() for label in values.split(",")]
    if len(labels) < 2 or not all(labels):
        raise InputError(_ATTRIBUTE)
    return Categories([int(label) for label in labels] if all(map(is_whole, labels)) else labels)


def between(low: str, high: str, *, integers: bool = False, buckets: int | None = None) -> Numeric:
    """Numbers, integers, or dates and times in ISO 8601 between two ends; its cells make whole buckets.

    >>> between("18", "99", integers=True)
    Integers(lo=18, hi=99)
    """
    if integers:
        try:
            ends = int(low), int(high)
        except ValueError:
            raise InputError("expected two integers: --range 18 99 --integers") from None
        return Integers(*ends)
    whole = Interval(_end(low), _end(high))  # type: ignore[arg-type]  # refuses a number beside a time
    if buckets is None or not 1 <= buckets <= whole.cells:
        return whole
    return replace(whole, cells=whole.cells // buckets * buckets)  # a day's bucket ends at midnight


def _end(text: str) -> float | dt.datetime:
    try:
        return float(text)
    except ValueError:
        found = parse_time(text)
    if found is None:
        raise InputError("expected two numbers or two times: --range 0 250000, or --range 2026-01-01 2027-01-01")
    return found
