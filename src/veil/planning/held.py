"""What people hold, from the words of a command line: labels, numbers, times, strings, sets of items."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

from veil.domain import Categories, Integers, Interval, Items, Numeric
from veil.domain.times import parse_time
from veil.errors import InputError

__all__ = ["between", "items_of", "labelled"]


def labelled(text: str) -> Categories:
    """One of the labels in a text with commas.

    >>> labelled("tea, coffee").labels
    ('tea', 'coffee')
    """
    names = [label.strip() for label in text.split(",")]
    if not all(names):
        raise InputError("a label is missing between two commas: expected --labels tea,coffee,water")
    return Categories(names)


def items_of(lines: Sequence[str]) -> Items:
    """Sets of these items; whole numbers where all lines are.

    >>> items_of(["3", "7"]).universe.labels
    (3, 7)
    """
    whole = all(line.removeprefix("-").isdecimal() for line in lines)
    return Items(Categories([int(line) for line in lines] if whole else list(lines)))


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
