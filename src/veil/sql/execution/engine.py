"""The answer to a query: passes over the rows, sums for each row of the answer, and outputs with their errors.

In the reading "consistent", where a query groups by private dimensions, the counts of one public group's rows are made
non-negative with an unchanged sum by Norm-Sub (Wang et al., NDSS 2020). Unbiased counts of small groups are often below
0; consistent counts have smaller errors in total, and small ones are biased.

`true_outputs` evaluates an answer's query on people whose values are known, for simulations: it is not private. The
query takes the same path as any other, over reports that hold the values themselves. Devices never make such reports.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, cmp_to_key
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veil.domain import Record
from veil.mechanisms import GRR
from veil.post.consistency import norm_sub
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.sql.answer import Answer, KeyColumn, MeasuredColumn
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.execution.accumulators import Found, Part, reading_of
from veil.sql.execution.costs import admit, cost_of
from veil.sql.execution.duckdb import LockedDuckDB
from veil.sql.execution.passes import public_part
from veil.sql.execution.rows import ClassCounts, Rows
from veil.sql.execution.sums import NAN, Decimals, Totals, decimals, in_decimals
from veil.sql.language.parsing import parse
from veil.sql.language.query import Box, Compare, Expression, KeyValue, Number, Output, PublicGroup, Query, SumTerm
from veil.sql.language.regions import patterns
from veil.survey import AllOf, Ask, People, Question
from veil.tools.limits import check
from veil.view import Project

if TYPE_CHECKING:
    from veil.sql.table import Table

Row = tuple[tuple[Any, ...], Totals | None]


def run(query: Query, rows: Rows) -> Answer:
    """Runs at the collector: the answer to a query, with its errors."""
    table = rows.table
    split = patterns(query.where)
    public = [key for key in query.keys if isinstance(key, PublicGroup)]
    admit(cost_of(query, table, rows.people))

    def weighed(weights: int, classes: int) -> None:
        """Refuse the query if its classes need more than the limits; called before the classes are read."""
        admit(cost_of(query, table, rows.people, weights, classes))

    counted = rows.count(query.sums, split.atoms, [key.sql for key in public], public_part(query.where), weighed)
    reading = reading_of(query, table, counted)
    rows.fill(query, reading)
    people = _people(reading.parts, counted)
    found: Found = {
        row: None if totals is None else totals.placed(counted.places)
        for row, totals in reading.found().items()
        if people[row] or not query.keys  # as in any SQL, a group that nobody can be in is no row
    }
    counts = _counts(query, found) if table.reading == "consistent" else {}
    ordered = _ordered(query, found | counts)
    return Answer(
        query=query.text,
        keys=tuple(KeyColumn.of(key.name, [labels[i] for labels, _ in ordered]) for i, key in enumerate(query.keys)),
        outputs=tuple(_measured(one, ordered, rows.people) for one in query.outputs),
        people=np.array([people[labels] for labels, _ in ordered], dtype=np.int64),
        n=rows.people,
        population=rows.people,
        used=(reading.used,),
        said=tuple(_said(query, ordered, bool(counts), table.design)),
        lineage=(table.signature,),
        guarantee=table.guarantee,
    )


@in_decimals
def value_of(expression: Expression, totals: ArrayLike, keys: Sequence[Any]) -> tuple[Decimal, Decimals]:
    """An expression's value and its derivatives by the sums; NaN where it has none."""
    return _value_of(expression, decimals(totals), keys)


def _value_of(expression: Expression, totals: Decimals, keys: Sequence[Any]) -> tuple[Decimal, Decimals]:
    still = decimals(np.zeros(len(totals)))
    if isinstance(expression, Number):
        return Decimal(expression.value), still
    if isinstance(expression, KeyValue):
        key = keys[expression.index]
        return (Decimal(key), still) if isinstance(key, (int, float, Decimal)) else (NAN, still)
    if isinstance(expression, SumTerm):
        still[expression.index] = Decimal(1)
        return totals[expression.index], still
    (a, da), *others = (_value_of(part, totals, keys) for part in expression.parts)
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
        return NAN, still * NAN
    return a / b, (da - a / b * db) / b


def _unary(name: str, a: Decimal, da: Decimals) -> tuple[Decimal, Decimals]:
    if name == "negate":
        return -a, -da
    if name == "abs":
        return abs(a), da if a >= 0 else -da
    return (a.sqrt(), da / (2 * a.sqrt())) if a > 0 else (NAN, da * NAN)


def _people(parts: Sequence[Part], counted: ClassCounts) -> dict[tuple[Any, ...], int]:
    """The reports that each row of the answer rests on: those of people who may be meant, as far as is public."""
    found: dict[tuple[Any, ...], int] = {}
    for part in parts:
        meant = int(counted.classes[part.place].counts.sum()) if part.boxes else 0
        found[part.row] = found.get(part.row, 0) + meant
    return found


def _counts(query: Query, found: Found) -> Found:
    """The rows with counts that fit together, where the query counts groups of private dimensions."""
    if "1" not in query.sums or not any(query.private_keys):
        return {}
    return dict(tidied(query, found, query.sums.index("1")))


def tidied(query: Query, found: Mapping[tuple[Any, ...], Totals | None], place: int) -> dict[tuple[Any, ...], Totals]:
    """The rows of an answer with counts, which are the sum at `place`, that are not below 0 and add up as they did.

    The rows of a public group that has one which is not known are left out: nothing is known of their sum.
    """
    together: dict[tuple[Any, ...], dict[tuple[Any, ...], Totals | None]] = {}
    for row, totals in found.items():
        public = tuple(label for key, label in zip(query.keys, row, strict=True) if isinstance(key, PublicGroup))
        together.setdefault(public, {})[row] = totals
    fitted: dict[tuple[Any, ...], Totals] = {}
    for rows in together.values():
        known = {row: totals for row, totals in rows.items() if totals is not None}
        if len(known) == len(rows) > 1:
            fitted |= _fitted(known, place)
    return fitted


def _fitted(rows: Mapping[tuple[Any, ...], Totals], place: int) -> dict[tuple[Any, ...], Totals]:
    """The rows of one public group, with counts by Norm-Sub."""
    counts = np.array([totals.values[place] for totals in rows.values()], np.float64)
    made = {}
    for (row, totals), count in zip(rows.items(), norm_sub(counts, max(float(counts.sum()), 0.0)), strict=True):
        values = totals.values.copy()
        values[place] = Decimal(float(count)) if values.dtype == object else count
        made[row] = replace(totals, values=values)
    return made


def _ordered(query: Query, found: Mapping[tuple[Any, ...], Totals | None]) -> list[Row]:
    """The rows that HAVING keeps, in the query's order, as many as it asks for."""
    rows: list[Row] = [row for row in found.items() if query.having is None or _holds(query.having, *row) is True]
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
    check()
    if isinstance(expression, KeyValue):
        return keys[expression.index]
    if totals is None:
        return None
    value, _ = value_of(expression, totals.values, keys)
    return None if value.is_nan() else float(value)


_COMPARISONS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _holds(test: Compare, keys: tuple[Any, ...], totals: Totals | None) -> bool | None:
    """Whether HAVING holds, in SQL's logic of three values: None where that is not known."""
    parts = [_holds(part, keys, totals) for part in test.parts if isinstance(part, Compare)]
    if test.name == "not":
        return None if parts[0] is None else not parts[0]
    if test.name in ("and", "or"):
        decides = test.name == "or"  # one part that is false decides AND, one that is true OR
        return decides if decides in parts else None if None in parts else not decides
    sides = [
        part if isinstance(part, (str, dt.date)) else _sortable(part, (keys, totals))
        for part in test.parts
        if not isinstance(part, Compare)
    ]
    return None if None in sides else bool(_COMPARISONS[test.name](*sides))


def _measured(output: Output, rows: Sequence[Row], people: int) -> MeasuredColumn:
    """A column of the answer."""
    found, errors, sampling = [], [], []
    for keys, totals in rows:
        check()
        if totals is None:
            found.append(math.nan)
            errors.append(math.nan)
            sampling.append(math.nan)
            continue
        value, slope = value_of(output.value, totals.values, keys)
        found.append(float(value))
        errors.append(totals.error(slope))
        sampling.append(totals.sampled(slope, people))
    columns = [np.array(column, dtype=np.float64) for column in (found, errors, sampling)]
    return MeasuredColumn(output.name, *columns)


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
    yield from design.remarks(totals for _, totals in rows if totals is not None)


def true_outputs(found: Answer, table: Table, people: People) -> tuple[MeasuredColumn, ...]:
    """The true values of an answer's outputs, in its rows; NaN in rows that nobody is in.

    Conditions mean what they mean to the answer: a number that is known in cells is compared at the edges of cells.
    """
    query = parse(found.query, table)
    every = run(replace(query, having=None, order=(), limit=None, offset=0), _KnownRows(table, people))
    rows = {labels: row for row, labels in enumerate(zip(*(key.labels for key in every.keys), strict=True))}
    wanted = list(zip(*(key.labels for key in found.keys), strict=True)) or [()]
    places = [rows.get(labels, -1) if found.keys else 0 for labels in wanted][: len(found)]
    nothing = np.zeros(len(places))
    return tuple(
        MeasuredColumn(one.name, np.array([one.values[place] if place >= 0 else np.nan for place in places]), nothing)
        for one in every.outputs
    )


@dataclass(frozen=True)
class _Known(Design):
    """Everybody tells the code of each dimension."""

    kind = "known"

    def ask(self, private: Record, epsilon: float) -> Ask:
        shown = [Project(private, (name,)) for name in private.names]
        return AllOf(
            *(Question(GRR(epsilon, view.domain), view) for view in shown)
        )  # of these, the layout alone is used

    def values(
        self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0
    ) -> RowEstimator:
        return _Inside(boxes)


class _Inside(RowEstimator):
    """1 for people in one of the boxes, which are disjoint, and 0 for others."""

    constant = variance = 0.0
    bound = 1.0
    groups: frozenset[int] | None = None

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._boxes = boxes

    def of(self, columns: Columns) -> NDArray[np.float64]:
        inside = np.zeros(len(next(iter(columns.values()))), dtype=bool)
        for box in self._boxes:
            fits = np.ones(len(inside), dtype=bool)
            for place, runs in enumerate(box):
                if runs is not None:
                    codes = np.asarray(columns[f"{place}.value"], dtype=np.int64)
                    fits &= np.logical_or.reduce([(codes >= start) & (codes < stop) for start, stop in runs])
            inside |= fits
        return inside.astype(np.float64)


class _KnownRows(Rows):
    """The rows of people whose values are known."""

    def __init__(self, table: Table, people: People) -> None:
        self.table = replace(table, design=_Known(), query=None, reading="levels")
        self._held = people

    @property
    def people(self) -> int:
        return len(self._held)

    def database(self) -> LockedDuckDB:
        return self._database

    @cached_property
    def _database(self) -> LockedDuckDB:
        return LockedDuckDB(self.table, self.people, reports=lambda: [self._reports])

    @cached_property
    def _reports(self) -> Reports:
        survey = self.table.survey
        codes = np.asarray(self._held.codes)
        held = {f"{place}.value": codes[:, place] for place in range(codes.shape[1])} | dict(self._held.public)
        typed = {field.name: np.asarray(held[field.name], field.dtype) for field in survey.layout.fields}
        return Reports(survey.task, survey.layout, typed)
