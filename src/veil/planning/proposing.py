"""Columns of a file as dimensions and public columns of a table: buckets, labels and scales for a person to look at."""

from __future__ import annotations

from collections.abc import Sequence

from veil.domain import Categories, Domain, Integers, Interval
from veil.errors import InputError
from veil.files.attributes import MOST_VALUES, ColumnFacts, is_whole, read_facts
from veil.files.groups import PathLike
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.sql.schema import days

__all__ = ["proposed_dimensions", "proposed_public", "round_buckets"]

_MOST_BUCKETS = 1024
_FEW = 12  # so many different whole numbers far apart are labels


def proposed_dimensions(path: PathLike, names: Sequence[str]) -> dict[str, Domain]:
    """A dimension for each column: whole numbers, numbers in round buckets, days, or the labels that there are.

    Never more than 1,024 buckets. Whole numbers are labels where there are at most 12, with large gaps.
    """
    return {name: _dimension(name, facts) for name, facts in read_facts(path, names).items()} if names else {}


def proposed_public(path: PathLike, names: Sequence[str]) -> tuple[PublicColumn, ...]:
    """A public column for each column: a measure with the digits that it has, a day or a second, or the labels."""
    return tuple(_column(name, facts) for name, facts in read_facts(path, names).items()) if names else ()


def round_buckets(low: float, high: float, most: int = _MOST_BUCKETS) -> Interval:
    """At most so many equal buckets around two numbers, which begin at round ones.

    >>> salaries = round_buckets(1200.0, 248_000.0)
    >>> salaries.lo, salaries.hi, salaries.cells
    (1000.0, 248000.0, 494)
    """
    power = -15
    while True:
        for digit in (1, 2, 5):
            step = digit * 10**power if power >= 0 else digit / 10**-power
            first, last = low // step, -(-high // step)
            if max(last - first, 1) <= most:
                last = max(last, first + 1)
                return Interval(first * step, last * step, cells=int(last - first))
        power += 1


def _dimension(name: str, facts: ColumnFacts) -> Domain:
    if facts.kind != "labels" and facts.missing:
        raise InputError(f"column {name} has empty cells among its numbers or times: fill them, or leave it out")
    if facts.kind == "times":
        assert facts.first is not None
        assert facts.last is not None
        first, last = facts.first.date(), facts.last.date()
        return days(first, last, -(-((last - first).days + 1) // _MOST_BUCKETS))
    if facts.kind == "labels":
        return Categories(sorted(_labels(name, facts)), missing="category" if facts.missing else "refuse")
    if not facts.whole:
        return round_buckets(facts.low, facts.high)
    low, high, told = int(facts.low), int(facts.high), facts.labels
    if told is not None and len(told) <= _FEW and high - low + 1 > 4 * len(told) and all(map(is_whole, told)):
        return Categories(sorted(map(int, told)))
    return Integers(low, high) if high - low < _MOST_BUCKETS else round_buckets(low, high)


def _column(name: str, facts: ColumnFacts) -> PublicColumn:
    if facts.missing:
        raise InputError(f"column {name} has empty cells: fill them, or leave it out")
    if facts.kind == "numbers":
        return Measure(name, facts.decimals)
    if facts.kind == "times":
        return Moment(name, "day" if facts.days else "second")
    return Category(name, tuple(sorted(_labels(name, facts))))


def _labels(name: str, facts: ColumnFacts) -> set[str]:
    if facts.labels is None:
        raise InputError(
            f"column {name} has more than {MOST_VALUES:,} different labels: put them together in fewer groups, or "
            "leave it out"
        )
    return facts.labels
