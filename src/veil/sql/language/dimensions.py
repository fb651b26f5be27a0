"""Private dimensions in queries: comparisons with values as ranges of codes, and buckets to group by.

Integers are compared exactly. An Interval is known only by its cells: a comparison inside a cell is moved to the
nearest edge, with a remark. Categories are compared by their labels.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from veil.domain import Categories, Domain, Integers, Interval
from veil.domain.text_values import parse_time
from veil.errors import DomainError, InputError
from veil.sql.language.query import Bucket, Runs
from veil.sql.language.regions import complement, union
from veil.tools.messages import unknown_name

Comparison = Literal["=", "<>", "<", "<=", ">", ">="]
NEGATED: dict[Comparison, Comparison] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_MOST_BUCKETS = 100_000
_NEAR = Fraction(1, 10**6)  # of a cell: doubles that stand for an edge are nearer to it than this
_DAY = 86_400
_EPOCH = dt.datetime(1970, 1, 1)
_MONDAY = int((dt.datetime(2000, 1, 3) - _EPOCH).total_seconds())  # weeks begin on Mondays: DuckDB's time_bucket


@dataclass(frozen=True)
class Width:
    """How wide the buckets of times are: seconds, or months of the calendar."""

    seconds: Fraction = Fraction(0)
    months: int = 0


@dataclass(frozen=True)
class Dimension:
    """A private dimension of a table: its place, its name and what it holds."""

    place: int
    name: str
    domain: Domain

    @property
    def size(self) -> int:
        """How many codes there are."""
        return self.domain.size

    @property
    def known(self) -> Runs:
        """The codes of values that are not missing."""
        missing = isinstance(self.domain, Categories) and self.domain.missing == "category"
        return ((0, self.size - missing),)

    def compared(self, sign: Comparison, value: Any, written: str) -> tuple[Runs, str | None]:
        """The codes for which the comparison with a value is true, and a remark where it was read at an edge.

        `written` is the value as it stands in the query. What is compared with NULL is never true. Raises InputError
        for a value of another type, and for a label that the dimension does not have.

        >>> Dimension(0, "age", Integers(18, 99)).compared("<", Decimal("30.5"), "30.5")
        (((0, 13),), None)
        >>> runs, remark = Dimension(0, "pay", Interval(0, 100, cells=10)).compared(">=", 42, "42")
        >>> runs, remark.split(":")[0]
        (((4, 10),), 'pay >= 42 is read as pay >= 40')
        """
        if value is None:
            return (), None
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{self.name} is compared with a number that is not finite")
        if isinstance(self.domain, Interval):
            return self._in_cells(sign, value, written)
        if isinstance(self.domain, Categories):
            return self._in_labels(sign, value, written), None
        assert isinstance(self.domain, Integers)
        return self._in_order(sign, self._number(value), self.domain.lo), None

    def _in_order(self, sign: Comparison, value: Fraction, lowest: int) -> Runs:
        """Codes of whole numbers from `lowest` on, compared with any number."""
        count = self.known[0][1]
        below, upto = (min(max(edge - lowest, 0), count) for edge in (math.ceil(value), math.floor(value) + 1))
        runs: dict[Comparison, Runs] = {
            "<": ((0, below),),
            "<=": ((0, upto),),
            ">": ((upto, count),),
            ">=": ((below, count),),
            "=": ((below, upto),),
            "<>": ((0, below), (upto, count)),
        }
        return union(runs[sign])

    def _in_labels(self, sign: Comparison, value: Any, written: str) -> Runs:
        domain = self.domain
        assert isinstance(domain, Categories)
        kinds = {kind_of(label) for label in domain.labels or (0,)}
        given = kind_of(value)
        if given not in kinds and given != "truth value":
            raise InputError(f"{self.name} holds {' and '.join(sorted(kinds))}s, and {written} is a {given}")
        if sign in ("=", "<>"):
            code = self._label(value, written)
            return ((code, code + 1),) if sign == "=" else complement(((code, code + 1),), self.known[0][1])
        if given == "truth value" or len(kinds) > 1:
            raise InputError(f"the values of {self.name} have no order: it takes =, <> and IN")
        if domain.labels is None:
            return self._in_order(sign, self._number(value), 0)
        after = [(label > value) - (label < value) for label in domain.labels]
        wanted = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[sign]
        return union(tuple((code, code + 1) for code, order in enumerate(after) if order in wanted))

    def _label(self, value: Any, written: str) -> int:
        assert isinstance(self.domain, Categories)
        whole = int(value) if isinstance(value, (Decimal, float)) and value == int(value) else value
        try:
            return int(self.domain.encode([whole])[0])
        except DomainError as problem:
            labels = [label for label in self.domain.labels or () if isinstance(label, str)]
            if labels and isinstance(value, str):
                raise InputError(unknown_name(f"a value of {self.name}", value, labels)) from None
            raise InputError(f"{self.name}: expected {problem.expected}, got {written}") from None

    def _in_cells(self, sign: Comparison, value: Any, written: str) -> tuple[Runs, str | None]:
        domain, cells = self.domain, self.size
        assert isinstance(domain, Interval)
        if self._of_dates and isinstance(self._time(value), dt.date) and not isinstance(self._time(value), dt.datetime):
            return self._in_days(sign, self._at(value), written)
        at = self._at(value)
        if at < 0 or at > cells:
            return self._outside(sign, at), None
        if sign in ("=", "<>"):
            code = min(math.floor(at + _NEAR), cells - 1)
            return self._bucket(sign, code, code + 1, written)
        edge = math.floor(at + Fraction(1, 2))
        runs: Runs = ((0, edge),) if sign in ("<", "<=") else ((edge, cells),)
        exact = abs(at - edge) <= _NEAR and sign in (("<=", ">") if edge == cells else ("<", ">="))
        return union(runs), None if exact else self._moved(sign, edge, written)

    def _in_days(self, sign: Comparison, at: Fraction, written: str) -> tuple[Runs, str | None]:
        """A date compared with dates: the whole day, from its midnight to the next."""
        day = Fraction(self.size * _DAY, int(self._ends[1] - self._ends[0]))
        if sign in ("=", "<>"):
            if at + day <= 0 or at >= self.size:
                return self._outside(sign, at), None
            if day == 1:
                return self._bucket(sign, int(at), int(at) + 1, None)
            return self._bucket(sign, math.floor(at), math.floor(at) + 1, written)
        at = at + day if sign in ("<=", ">") else at
        edge = min(max(math.floor(at + Fraction(1, 2)), 0), self.size)
        runs: Runs = ((0, edge),) if sign in ("<", "<=") else ((edge, self.size),)
        exact = at == edge or at < 0 or at > self.size
        return union(runs), None if exact else self._moved(sign, edge, written)

    def _outside(self, sign: Comparison, at: Fraction) -> Runs:
        """Compared with a value below or above everything that the dimension holds."""
        return ((0, self.size),) if sign == "<>" or ((sign in ("<", "<=")) == (at > 0) and sign != "=") else ()

    def _bucket(self, sign: Comparison, start: int, stop: int, written: str | None) -> tuple[Runs, str | None]:
        inside: Runs = ((start, stop),)
        runs = inside if sign == "=" else complement(inside, self.size)
        if written is None:
            return runs, None
        where = "within" if sign == "=" else "outside of"
        ends = f"{self.edge(start)} to {self.edge(stop)}"
        return runs, f"{self.name} {sign} {written} is read as {where} {ends}, the bucket that holds it"

    def _moved(self, sign: Comparison, edge: int, written: str) -> str:
        below = "<" if edge < self.size else "<="
        read = below if sign in ("<", "<=") else ">=" if edge < self.size else ">"
        return (
            f"{self.name} {sign} {written} is read as {self.name} {read} {self.edge(edge)}: "
            "people are known by buckets, and this is the nearest edge of one"
        )

    @cached_property
    def _ends(self) -> tuple[Fraction, Fraction]:
        assert isinstance(self.domain, Interval)
        return Fraction(self.domain.lo), Fraction(self.domain.hi)

    @cached_property
    def _of_dates(self) -> bool:
        """Whether all edges are midnights: then a date stands for its whole day."""
        lo, hi = self._ends
        timed = isinstance(self.domain, Interval) and self.domain.unit == "time"
        return timed and lo % _DAY == 0 and (hi - lo) % (self.size * _DAY) == 0

    def _at(self, value: Any) -> Fraction:
        """A value's place on the scale of cells: cell i is [i, i + 1)."""
        lo, hi = self._ends
        return (self._number(value) - lo) / (hi - lo) * self.size

    def _number(self, value: Any) -> Fraction:
        """A number exactly, a time as seconds since 1970; refuses a value of another type."""
        timed = isinstance(self.domain, Interval) and self.domain.unit == "time"
        read = self._time(value) if timed else value
        if timed and isinstance(read, dt.date):
            moment = read if isinstance(read, dt.datetime) else dt.datetime(read.year, read.month, read.day)
            if moment.tzinfo is not None:
                moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
            return Fraction((moment - _EPOCH) // dt.timedelta(microseconds=1), 10**6)
        if timed or kind_of(value) != "number":
            holds = "dates or times (DATE '2026-01-31', TIMESTAMP '...')" if timed else "numbers"
            raise InputError(f"{self.name} holds {holds}, and is compared with a {kind_of(value)}")
        return Fraction(value)

    def _time(self, value: Any) -> Any:
        """A text that is a date or a time as such; anything else as it is."""
        if not isinstance(value, str):
            return value
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            return parse_time(value) or value

    def edge(self, cell: int) -> int | float | dt.date:
        """Where a cell of an Interval begins: a number, a date or a time."""
        lo, hi = self._ends
        return self._label_of(lo + (hi - lo) * cell / self.size)

    def buckets(self, width: Fraction | Width | None) -> tuple[tuple[Bucket, ...], str | None]:
        """Buckets of a width, each labelled by its lower end, and a remark where their edges were moved.

        They begin at the multiples of the width; those of times where DuckDB's time_bucket lets them begin (weeks on
        Mondays). Without a width there is one bucket for each code.

        >>> Dimension(0, "age", Integers(18, 39)).buckets(Fraction(10))[0][:2]
        (Bucket(start=0, stop=2, label=10), Bucket(start=2, stop=12, label=20))
        """
        if width is None:
            return self._one_by_one(), None
        if isinstance(self.domain, Categories):
            raise InputError(f"{self.name} has labels, which have no width: group by {self.name} itself")
        timed = isinstance(self.domain, Interval) and self.domain.unit == "time"
        if timed and isinstance(width, Fraction):
            width = Width(seconds=width * _DAY)
        if timed != isinstance(width, Width):
            raise InputError(f"{self.name} holds numbers: the width of its buckets is a number")
        if isinstance(self.domain, Integers):
            return self._of_integers(width), None  # type: ignore[arg-type]  # it is a Fraction
        return self._of_cells(width)

    def type_of(self, buckets: Sequence[Bucket]) -> str:
        """The type of the labels of buckets, as DuckDB calls it."""
        labels = [bucket.label for bucket in buckets if bucket.label is not None]
        if all(isinstance(label, (int, float)) for label in labels):
            return "DOUBLE"
        if isinstance(self.domain, Interval):
            return "TIMESTAMP" if any(isinstance(label, dt.datetime) for label in labels) else "DATE"
        return "VARCHAR"

    def _one_by_one(self) -> tuple[Bucket, ...]:
        self._check_number(self.size)
        if isinstance(self.domain, Interval):
            labels: Sequence[Any] = [self.edge(cell) for cell in range(self.size)]
        else:
            labels = self.domain.decode(range(self.size))
        return tuple(Bucket(code, code + 1, label) for code, label in enumerate(labels))

    def _of_integers(self, width: Fraction) -> tuple[Bucket, ...]:
        assert isinstance(self.domain, Integers)
        if width.denominator != 1 or width < 1:
            raise InputError(f"{self.name} holds whole numbers: the width of its buckets is a whole number from 1 on")
        step, lo, hi = int(width), self.domain.lo, self.domain.hi
        self._check_number(hi // step - lo // step + 1)
        starts = range(lo // step * step, hi + 1, step)
        return tuple(Bucket(max(start, lo) - lo, min(start + step, hi + 1) - lo, start) for start in starts)

    def _of_cells(self, width: Fraction | Width) -> tuple[tuple[Bucket, ...], str | None]:
        lo, hi = self._ends
        cell = (hi - lo) / self.size
        least = width if isinstance(width, Fraction) else width.seconds or Fraction(28 * _DAY * width.months)
        if least < cell * (1 - _NEAR):
            raise InputError(
                f"{self.name} is known by buckets of {_amount(cell, isinstance(width, Width))}: no narrower"
            )
        self._check_number(math.ceil((hi - lo) / least))
        try:
            starts = list(_starts(width, lo, hi))
            labels = _times(starts) if isinstance(width, Width) else [_number(start) for start in starts]
        except (OverflowError, ValueError):
            raise InputError(f"buckets of {self.name} so wide would begin outside of the years 1 to 9999") from None
        places = [(start - lo) / cell for start in starts]
        edges = [min(max(math.floor(place + Fraction(1, 2)), 0), self.size) for place in places]
        moved = any(
            abs(place - edge) > _NEAR for place, edge in zip(places, edges, strict=True) if 0 < place < self.size
        )
        found = zip(edges, [*edges[1:], self.size], labels, strict=True)
        remark = f"the edges of buckets of {self.name} are moved to the nearest edges at which people are known"
        return tuple(Bucket(a, b, label) for a, b, label in found if a < b), remark if moved else None

    def _check_number(self, count: int) -> None:
        if count > _MOST_BUCKETS:
            raise InputError(f"{self.name} would make {count:,} groups: group by BUCKET({self.name}, width)")

    def _label_of(self, number: Fraction) -> int | float | dt.date:
        if not (isinstance(self.domain, Interval) and self.domain.unit == "time"):
            return _number(number)
        return _moment(number).date() if self._of_dates else _moment(number)


def kind_of(value: Any) -> str:
    """What a value is, in a word for messages."""
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    return (
        "text" if isinstance(value, str) else "date or time" if isinstance(value, dt.date) else "value of another type"
    )


def _starts(width: Fraction | Width, lo: Fraction, hi: Fraction) -> Iterator[Fraction]:
    """Where buckets begin that reach into [lo, hi)."""
    if isinstance(width, Fraction) or not width.months:
        step, origin = (width, 0) if isinstance(width, Fraction) else (width.seconds, _MONDAY)
        first = (lo - origin) // step
        yield from (origin + step * place for place in range(first, math.ceil((hi - origin) / step)))
        return
    moment = _moment(lo)
    month = (moment.year - 2000) * 12 + moment.month - 1
    month -= month % width.months
    while month < 8000 * 12 - 12:  # the year 9999
        begins = Fraction(int((dt.datetime(2000 + month // 12, month % 12 + 1, 1) - _EPOCH).total_seconds()))
        if begins >= hi:
            return
        yield begins
        month += width.months


def _moment(seconds: Fraction) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=round(seconds * 10**6))


def _times(starts: Sequence[Fraction]) -> Sequence[dt.date]:
    """Times since 1970, as dates where all of them are midnights."""
    moments = [_moment(start) for start in starts]
    return [moment.date() for moment in moments] if all(start % _DAY == 0 for start in starts) else moments


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(f"{float(value):.12g}")


def _amount(width: Fraction, timed: bool) -> str:
    if not timed:
        return f"{_number(width)}"
    return f"{_number(width / _DAY)} days" if width % _DAY == 0 else f"{_number(width)} seconds"
