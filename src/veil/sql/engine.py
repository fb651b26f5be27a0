"""Answering a query: which rows count how much, one pass over them, and what follows from the sums."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError
from veil.sql.answer import Answer, KeyColumn, Measured
from veil.sql.design import Design, TalliedDesign, Values
from veil.sql.moments import Moments, Totals
from veil.sql.passes import public_part
from veil.sql.query import (
    Both,
    Box,
    Bucket,
    Compare,
    Expression,
    InRuns,
    KeyValue,
    Number,
    Output,
    PrivateKey,
    PublicKey,
    Query,
    Total,
)
from veil.sql.regions import Patterns, disjoint_boxes, patterns
from veil.sql.rows import Counted, Rows
from veil.sql.tidying import tidied
from veil.wire.layout import Columns

__all__ = ["run"]

_MOST_ROWS = 100_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Part:
    """One class of rows and one combination of private buckets: what is added up for a row of the answer."""

    row: tuple[Any, ...]
    place: int
    """Of the class."""
    boxes: tuple[Box, ...]


Found = dict[tuple[Any, ...], Totals | None]
"""The estimated sums of each row of the answer; None where they are not known."""


def run(query: Query, rows: Rows) -> Answer:
    """Runs at the collector: the answer to a query, with its errors."""
    table = rows.table
    split = patterns(query.where)
    public = [key for key in query.keys if isinstance(key, PublicKey)]
    counted = rows.count(query.sums, split.atoms, [key.sql for key in public], public_part(query.where))
    parts = list(_parts(query, rows, counted, split))
    if isinstance(table.design, TalliedDesign):
        found, used = _from_tallies(rows, counted, parts, table.design)
    else:
        found, used = _from_numbers(rows, counted, parts)
    people = _people(parts, counted)
    if query.keys:  # as in any SQL, a group that nobody can be in is no row
        found = {row: totals for row, totals in found.items() if people[row]}
    ordered = _ordered(query, found)
    counts = _counts(query, found) if table.reading == "consistent" else {}
    return Answer(
        query=query.text,
        keys=tuple(KeyColumn.of(key.name, [labels[i] for labels, _ in ordered]) for i, key in enumerate(query.keys)),
        outputs=tuple(
            _measured(one, ordered, rows.people, counts if _is_count(query, one) else {}) for one in query.outputs
        ),
        people=np.array([people[labels] for labels, _ in ordered], dtype=np.int64),
        n=rows.people,
        population=rows.people,
        used=(used,),
        said=tuple(_said(query, ordered, bool(counts), table.design)),
        lineage=(table.signature,),
        guarantee=table.guarantee,
    )


def _parts(query: Query, rows: Rows, counted: Counted, split: Patterns) -> Iterator[_Part]:
    """For each class of rows and each combination of private buckets, which people are meant."""
    sizes = [part.size for part in rows.table.private.parts]
    choices = list(product(*(key.buckets for key in query.private_keys)))
    many = len(choices) * len(counted.classes)
    if many > _MOST_ROWS:
        raise InputError(f"this query makes {many:,} groups, more than {_MOST_ROWS:,}: group by fewer or wider buckets")
    for place, one in enumerate(counted.classes):
        condition = split.where(one.pattern)
        for buckets in choices:
            keys = zip(query.private_keys, buckets, strict=True)
            inside = [InRuns(key.place, ((bucket.start, bucket.stop),)) for key, bucket in keys]
            boxes = disjoint_boxes(Both((condition, *inside)), sizes)
            yield _Part(_labels(query, one.keys, buckets), place, boxes)


def _labels(query: Query, public: Sequence[Any], buckets: Sequence[Bucket]) -> tuple[Any, ...]:
    """The keys of a row of the answer, in the query's order."""
    own, given = iter(bucket.label for bucket in buckets), iter(public)
    return tuple(next(own) if isinstance(key, PrivateKey) else next(given) for key in query.keys)


def _added(found: Found, row: tuple[Any, ...], totals: Totals | None) -> None:
    """Add the sums of one class to those of a row of the answer; what is not known of one is not known of the row."""
    if row not in found:
        found[row] = totals
        return
    before = found[row]
    found[row] = None if before is None or totals is None else before + totals


def _from_numbers(rows: Rows, counted: Counted, parts: Sequence[_Part]) -> tuple[Found, str]:
    """The sums of each row of the answer, from one number per report and condition; and what was read, in words."""
    table, sums = rows.table, len(counted.scales)
    effort = len(counted.classes) / max(len(parts), 1)  # each class has its share of all rows
    by_class: dict[int, list[tuple[Values, Moments]]] = {}
    moments: list[Moments | None] = []
    for part in parts:
        one = counted.classes[part.place]
        try:
            values = table.design.values(table, part.boxes, one.counts, effort) if part.boxes else NOBODY
        except EmptyError:
            moments.append(None)
            continue
        made = Moments(values, sums, len(one.counts))
        moments.append(made)
        if values.groups != frozenset():
            by_class.setdefault(part.place, []).append((values, made))
    every = [values.groups for some in by_class.values() for values, _ in some]
    groups = None if None in every else frozenset[int]().union(*(some for some in every if some is not None))
    for place, columns, weights in _batches(rows, counted, sorted(by_class), groups):
        choice = columns.get("choice")
        for values, mine in by_class[place]:
            numbers = values.of(columns)
            mine.add(np.zeros(len(numbers), np.int64) if choice is None else choice, numbers, weights)
    found: Found = {}
    units = np.array([10.0**-scale for scale in counted.scales])
    for part, made_ in zip(parts, moments, strict=True):
        one = counted.classes[part.place]
        _added(found, part.row, None if made_ is None else made_.totals(one.counts, one.totals, one.products, units))
    asked = len(table.survey.ask)
    return found, f"all {asked:,} questions" if groups is None else f"{len(groups):,} of {asked:,} groups"


def _from_tallies(rows: Rows, counted: Counted, parts: Sequence[_Part], design: TalliedDesign) -> tuple[Found, str]:
    """The same, where reports are read all together."""
    table, sums = rows.table, len(counted.scales)
    wanted = sorted({part.place for part in parts if part.boxes})
    by_class = {place: design.tallies(table, sums) for place in wanted}
    for place, columns, weights in _batches(rows, counted, wanted, None):
        by_class[place].add(columns, weights)
    units = np.array([10.0**-scale for scale in counted.scales])
    found: Found = {}
    for part in parts:
        try:
            own = design.totals(table, part.boxes, by_class[part.place]) if part.boxes else Totals.nothing(sums)
            _added(found, part.row, own.scaled(units))
        except EmptyError:
            _added(found, part.row, None)
    return found, f"all {len(table.survey.ask):,} grids"


def _batches(
    rows: Rows, counted: Counted, wanted: Sequence[int], groups: frozenset[int] | None
) -> Iterator[tuple[int, Columns, NDArray[np.int64]]]:
    """Some rows of one class at a time: the class, the columns of their reports, and their weights."""
    if not wanted:
        return
    for batch in rows.scan(counted, wanted, groups):
        if len(wanted) == 1:
            yield wanted[0], batch.columns, batch.weights
            continue
        order = np.argsort(batch.classes, kind="stable")
        ends = np.searchsorted(batch.classes[order], [[place, place + 1] for place in wanted])
        for place, (start, stop) in zip(wanted, ends.tolist(), strict=True):
            if start < stop:
                mine = order[start:stop]
                yield place, {name: column[mine] for name, column in batch.columns.items()}, batch.weights[:, mine]


class _Nobody(Values):
    """A condition that holds for nobody."""

    constant = variance = bound = 0.0
    groups: frozenset[int] | None = frozenset()

    def of(self, columns: Columns) -> Floats:
        return np.zeros(len(next(iter(columns.values()))))


NOBODY = _Nobody()


# -- from sums to the columns of the answer ----------------------------------------------------------------------------


def value_of(expression: Expression, totals: Floats, keys: Sequence[Any]) -> tuple[float, Floats]:
    """An expression's value and its derivatives by the sums; nan where it has none."""
    still = np.zeros(len(totals))
    if isinstance(expression, Number):
        return expression.value, still
    if isinstance(expression, KeyValue):
        key = keys[expression.index]
        return (float(key), still) if isinstance(key, (int, float, Decimal)) else (math.nan, still)
    if isinstance(expression, Total):
        still[expression.index] = 1.0
        return float(totals[expression.index]), still
    (a, da), *others = (value_of(part, totals, keys) for part in expression.parts)
    if not others:
        return _unary(expression.name, a, da)
    ((b, db),) = others
    if expression.name == "+":
        return a + b, da + db
    if expression.name == "-":
        return a - b, da - db
    if expression.name == "*":
        return a * b, a * db + b * da
    if b == 0:
        return math.nan, still * math.nan
    return a / b, (da - a / b * db) / b


def _unary(name: str, a: float, da: Floats) -> tuple[float, Floats]:
    if name == "negate":
        return -a, -da
    if name == "abs":
        return abs(a), da if a >= 0 else -da
    return (math.sqrt(a), da / (2 * math.sqrt(a))) if a > 0 else (math.nan, da * math.nan)


Row = tuple[tuple[Any, ...], Totals | None]


def _is_count(query: Query, output: Output) -> bool:
    """Whether a column of the answer is COUNT(*)."""
    return isinstance(output.value, Total) and query.sums[output.value.index] == "1"


def _counts(query: Query, found: Mapping[tuple[Any, ...], Totals | None]) -> dict[tuple[Any, ...], float]:
    """Counts that fit together, where the query counts groups of private dimensions."""
    if "1" not in query.sums or not any(query.private_keys):
        return {}
    return tidied(query, found, query.sums.index("1"))


def _measured(output: Output, rows: Sequence[Row], people: int, counts: Mapping[tuple[Any, ...], float]) -> Measured:
    """A column of the answer; `counts` stand for the values of the rows that they name."""
    found, errors, sampling = [], [], []
    for keys, totals in rows:
        if totals is None:
            found.append(math.nan)
            errors.append(math.nan)
            sampling.append(math.nan)
            continue
        value, slope = value_of(output.value, totals.values, keys)
        variance = float(slope @ totals.covariance @ slope)
        found.append(counts.get(keys, value))
        errors.append(_rounded(math.sqrt(max(variance, 0.0))) if not math.isnan(variance) else math.nan)
        sampling.append(_rounded(totals.sampled(slope, people)))
    columns = [np.array(column, dtype=np.float64) for column in (found, errors, sampling)]
    return Measured(output.name, *columns)


def _rounded(error: float) -> float:
    """Nine digits of a standard error: further ones depend on the order in which rows were added up."""
    return float(f"{error:.9g}")


def _ordered(query: Query, found: Mapping[tuple[Any, ...], Totals | None]) -> list[Row]:
    """The rows that HAVING keeps, in the query's order, as many as it asks for."""
    rows: list[Row] = [row for row in found.items() if query.having is None or _holds(query.having, *row)]
    if query.order:

        def compared(one: Row, other: Row) -> int:
            return _compared(query, one, other)

        rows.sort(key=cmp_to_key(compared))
    stop = None if query.limit is None else query.offset + query.limit
    return rows[query.offset : stop]


def _compared(query: Query, one: Row, other: Row) -> int:
    for expression, down in query.order:
        a, b = _sortable(expression, one), _sortable(expression, other)
        if a != b:
            if a is None or b is None:
                return 1 if a is None else -1  # what is not known comes last
            return (1 if a > b else -1) * (-1 if down else 1)
    return 0


def _sortable(expression: Expression, row: Row) -> Any:
    keys, totals = row
    if isinstance(expression, KeyValue):
        return keys[expression.index]
    if totals is None:
        return None
    value, _ = value_of(expression, totals.values, keys)
    return None if math.isnan(value) else value


_COMPARISONS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _holds(test: Compare, keys: tuple[Any, ...], totals: Totals | None) -> bool:
    if test.name in ("and", "or", "not"):
        parts = [_holds(part, keys, totals) for part in test.parts if isinstance(part, Compare)]
        return all(parts) if test.name == "and" else any(parts) if test.name == "or" else not parts[0]
    sides = [
        part if isinstance(part, (str, dt.date)) else _sortable(part, (keys, totals))
        for part in test.parts
        if not isinstance(part, Compare)
    ]
    return None not in sides and bool(_COMPARISONS[test.name](*sides))


def _people(parts: Sequence[_Part], counted: Counted) -> dict[tuple[Any, ...], int]:
    """The reports that each row of the answer rests on: those of people who may be meant, as far as is public."""
    found: dict[tuple[Any, ...], int] = {}
    for part in parts:
        meant = int(counted.classes[part.place].counts.sum()) if part.boxes else 0
        found[part.row] = found.get(part.row, 0) + meant
    return found


def _said(query: Query, rows: Sequence[Row], tidy: bool, design: Design) -> Iterator[str]:
    yield from query.remarks
    if tidy:
        yield "Counts of groups were made to fit together, none below 0; their errors are those of the unbiased counts."
    unknown = sum(totals is None for _, totals in rows)
    if unknown:
        yield (
            f"{unknown:,} of {len(rows):,} rows are not known: too few people of the group answered about the levels "
            "that this needs"
        )
    if isinstance(design, TalliedDesign) and any(totals is not None and totals.covariance.any() for _, totals in rows):
        yield design.said
