"""Answering a query: which rows count how much, one pass over them, and what follows from the sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError
from veil.sql.answer import Answer, KeyColumn, Measured
from veil.sql.design import Values
from veil.sql.moments import Moments, Totals
from veil.sql.query import (
    Both,
    Bucket,
    Compare,
    Condition,
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
from veil.sql.regions import disjoint_boxes, patterns
from veil.sql.rows import Counted, Rows
from veil.sql.tidying import tidied

__all__ = ["run"]

_MOST_ROWS = 100_000


@dataclass(frozen=True)
class _Part:
    """One class of rows and one combination of private buckets: what is added up for a row of the answer."""

    row: tuple[Any, ...]
    place: int
    values: Values | None
    """None where too few people answered to tell."""


def run(query: Query, rows: Rows) -> Answer:
    """Runs at the collector: the answer to a query, with its errors."""
    table = rows.table
    split = patterns(query.where)
    public = [key for key in query.keys if isinstance(key, PublicKey)]
    counted = rows.count(query.sums, split.atoms, [key.sql for key in public])
    parts = list(_parts(query, rows, counted, split.where))
    found = _totals(rows, counted, parts, len(query.sums))
    ordered = _ordered(query, found)
    counts = _counts(query, found) if table.reading == "consistent" else {}
    people = _people(query, counted)
    return Answer(
        query=query.text,
        keys=tuple(KeyColumn.of(key.name, [labels[i] for labels, _ in ordered]) for i, key in enumerate(query.keys)),
        outputs=tuple(
            _measured(output, ordered, counts if _is_count(query, output) else {}) for output in query.outputs
        ),
        people=np.array([people[labels] for labels, _ in ordered], dtype=np.int64),
        n=rows.people,
        population=rows.people,
        used=_used(rows, parts),
        said=tuple(_said(query, ordered, bool(counts))),
        lineage=(table.signature,),
        guarantee=table.guarantee,
    )


def _parts(query: Query, rows: Rows, counted: Counted, where: Any) -> Iterator[_Part]:
    """For each class of rows and each combination of private buckets, how its rows are read."""
    table = rows.table
    sizes = [part.size for part in table.private.parts]
    choices = list(product(*(key.buckets for key in query.private_keys)))
    many = len(choices) * max(len(counted.classes), 1)
    if many > _MOST_ROWS:
        raise InputError(f"this query makes {many:,} groups, more than {_MOST_ROWS:,}: group by fewer or wider buckets")
    for place, one in enumerate(counted.classes):
        condition: Condition = where(one.pattern)
        for buckets in choices:
            row = _labels(query, one.keys, buckets)
            inside = [
                InRuns(key.place, ((b.start, b.stop),)) for key, b in zip(query.private_keys, buckets, strict=True)
            ]
            boxes = disjoint_boxes(Both((condition, *inside)), sizes)
            try:
                values = table.design.values(table, boxes, one.counts, 1 / len(choices)) if boxes else None
            except EmptyError:
                yield _Part(row, place, None)
                continue
            if values is not None:
                yield _Part(row, place, values)
            else:
                yield _Part(row, place, _Nobody())


class _Nobody(Values):
    """The condition holds for nobody."""

    constant = variance = bound = 0.0
    groups: frozenset[int] | None = frozenset()

    def of(self, columns: Any) -> NDArray[np.float64]:
        return np.zeros(0)


def _labels(query: Query, public: Sequence[Any], buckets: Sequence[Bucket]) -> tuple[Any, ...]:
    """The keys of a row of the answer, in the query's order."""
    own, given = iter(bucket.label for bucket in buckets), iter(public)
    return tuple(next(own) if isinstance(key, PrivateKey) else next(given) for key in query.keys)


def _totals(rows: Rows, counted: Counted, parts: Sequence[_Part], sums: int) -> dict[tuple[Any, ...], Totals | None]:
    """The estimated sums of each row of the answer, in one pass over the reports; None where they are not known."""
    by_class: dict[int, list[tuple[_Part, Moments]]] = {}
    for part in parts:
        if part.values is not None:
            groups = len(counted.classes[part.place].counts)
            by_class.setdefault(part.place, []).append((part, Moments(part.values, sums, groups)))
    wanted = sorted(
        place
        for place, some in by_class.items()
        if any(part.values.groups != frozenset() for part, _ in some)  # type: ignore[union-attr]
    )
    if wanted:
        _scan(rows, counted, by_class, wanted)
    units = np.array([10.0**-scale for scale in counted.scales])
    found: dict[tuple[Any, ...], Totals | None] = {}
    for part in parts:
        if part.values is None:
            found[part.row] = None
    for place, some in by_class.items():
        one = counted.classes[place]
        for part, moments in some:
            totals = moments.totals(one.counts, one.totals, one.products, units)
            if part.row not in found:
                found[part.row] = totals
            elif (before := found[part.row]) is not None:
                found[part.row] = before + totals
    return found


def _scan(
    rows: Rows, counted: Counted, by_class: Mapping[int, list[tuple[_Part, Moments]]], wanted: Sequence[int]
) -> None:
    every = [part.values.groups for place in wanted for part, _ in by_class[place] if part.values is not None]
    groups = None if None in every else frozenset().union(*(some for some in every if some is not None))
    for batch in rows.scan(counted, wanted, groups):
        for place in wanted if len(wanted) > 1 else [None]:
            columns, weights = batch.columns, batch.weights
            if place is not None:
                mine = np.flatnonzero(batch.classes == place)
                columns = {name: column[mine] for name, column in columns.items()}
                weights = weights[:, mine]
            for part, moments in by_class[wanted[0] if place is None else place]:
                assert part.values is not None
                numbers = part.values.of(columns)
                choice = columns.get("choice")
                slots = np.zeros(len(numbers), np.int64) if choice is None else choice.astype(np.int64)
                moments.add(slots, numbers, weights)


# -- from sums to the columns of the answer ----------------------------------------------------------------------------


def value_of(expression: Expression, totals: Floats, keys: Sequence[Any]) -> tuple[float, Floats]:
    """An expression's value and its derivatives by the sums; nan where it has none."""
    still = np.zeros(len(totals))
    if isinstance(expression, Number):
        return expression.value, still
    if isinstance(expression, KeyValue):
        key = keys[expression.index]
        return (float(key), still) if isinstance(key, (int, float)) else (math.nan, still)
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


Floats = NDArray[np.float64]
Row = tuple[tuple[Any, ...], Totals | None]


def _is_count(query: Query, output: Output) -> bool:
    """Whether a column of the answer is COUNT(*)."""
    return isinstance(output.value, Total) and query.sums[output.value.index] == "1"


def _counts(query: Query, found: Mapping[tuple[Any, ...], Totals | None]) -> dict[tuple[Any, ...], float]:
    """Counts that fit together, where the query counts groups of private dimensions."""
    if "1" not in query.sums or not any(query.private_keys):
        return {}
    return tidied(query, found, query.sums.index("1"))


def _measured(output: Output, rows: Sequence[Row], counts: Mapping[tuple[Any, ...], float]) -> Measured:
    """A column of the answer; `counts` stand for the values of the rows that they name."""
    found, errors = [], []
    for keys, totals in rows:
        if totals is None:
            found.append(math.nan)
            errors.append(math.nan)
            continue
        value, slope = value_of(output.value, totals.values, keys)
        variance = float(slope @ totals.covariance @ slope)
        found.append(counts.get(keys, value))
        errors.append(_rounded(math.sqrt(max(variance, 0.0))) if not math.isnan(variance) else math.nan)
    return Measured(output.name, np.array(found, dtype=np.float64), np.array(errors, dtype=np.float64))


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
    sides = [part if isinstance(part, str) else _sortable(part, (keys, totals)) for part in test.parts]  # type: ignore[arg-type]
    return None not in sides and bool(_COMPARISONS[test.name](*sides))


def _people(query: Query, counted: Counted) -> dict[tuple[Any, ...], int]:
    """The reports that each row of the answer rests on: those of its public group."""
    found: dict[tuple[Any, ...], int] = {}
    choices = list(product(*(key.buckets for key in query.private_keys)))
    for one in counted.classes:
        for buckets in choices:
            row = _labels(query, one.keys, buckets)
            found[row] = found.get(row, 0) + int(one.counts.sum())
    return found


def _used(rows: Rows, parts: Sequence[_Part]) -> tuple[str, ...]:
    every = [part.values.groups for part in parts if part.values is not None]
    asked = len(rows.table.survey.ask)
    if None in every:
        return (f"all {asked:,} questions of everybody",)
    used = frozenset().union(*(some for some in every if some is not None)) if every else frozenset()
    return (f"{len(used):,} of {asked:,} groups",)


def _said(query: Query, rows: Sequence[Row], tidy: bool) -> Iterator[str]:
    yield from query.remarks
    if tidy:
        yield "Counts of groups were made to fit together, none below 0; their errors are those of the unbiased counts."
    unknown = sum(totals is None for _, totals in rows)
    if unknown:
        yield (
            f"{unknown:,} of {len(rows):,} rows are not known: too few people of the group answered about the levels "
            "that this needs"
        )
