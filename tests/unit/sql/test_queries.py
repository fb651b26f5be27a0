"""Queries in `tests/sql`: good ones with their plans, bad ones with the position and the reason of the refusal.

The schema is the thesis's Table 7.1 with a date. After an intended change, `python tests/unit/sql/test_queries.py`
writes the expectations again, to be read before they are committed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from veil.domain import Categories, Integers, Interval, Record
from veil.errors import SqlError
from veil.sql.columns import Category, Measure, Moment
from veil.sql.language.parsing import parse
from veil.sql.language.query import Box, Compare, Expression, KeyValue, Number, PrivateGroup, Query, SumTerm
from veil.sql.language.regions import disjoint_boxes, patterns
from veil.sql.table import Table

FOLDER = Path(__file__).parents[2] / "sql"
GOOD, BAD = sorted(FOLDER.glob("good/*.sql")), sorted(FOLDER.glob("bad/*.sql"))
TABLE = Table(
    2.0,
    Record(
        (
            ("Age", Integers(18, 97)),
            ("Salary", Interval(0, 200_000, cells=200)),
            ("State", Categories(["NY", "WA", "CA", "TX"], missing="category")),
            ("Joined", Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1), cells=365)),
        )
    ),
    (
        Category("OS", ("Win", "iOS", "Android")),
        Measure("ActiveTime", 1),
        Measure("Purchase", 2),
        Moment("Seen"),
    ),
    name="T",
)
NAMES = TABLE.private.names


def box_text(box: Box) -> str:
    sides = [
        f"{name} {' '.join(f'[{start}, {stop})' for start, stop in side)}"
        for name, side in zip(NAMES, box, strict=True)
        if side is not None
    ]
    return " x ".join(sides) or "everybody"


def where_lines(query: Query) -> Iterator[str]:
    split = patterns(query.where)
    sizes = [part.size for part in TABLE.private.parts]
    for place, atom in enumerate(split.atoms):
        yield f"public {place}: {atom}"
    for bits in range(1 << len(split.atoms)):
        held = ", ".join(f"{'' if bits >> i & 1 else 'not '}{i}" for i in range(len(split.atoms)))
        boxes = disjoint_boxes(split.where(bits), sizes)
        yield f"cells{f' if {held}' if held else ''}: {' + '.join(map(box_text, boxes)) or 'nobody'}"


def expression_text(expression: Expression | Compare | str | dt.date) -> str:
    if isinstance(expression, (str, dt.date)):
        return repr(str(expression))
    if isinstance(expression, Number):
        return f"{expression.value:g}"
    if isinstance(expression, (SumTerm, KeyValue)):
        return f"{'sum' if isinstance(expression, SumTerm) else 'key'}{expression.index}"
    parts = [expression_text(part) for part in expression.parts]
    return f"({f' {expression.name} '.join(parts)})" if len(parts) == 2 else f"{expression.name}({parts[0]})"


def key_text(key: object) -> str:
    if not isinstance(key, PrivateGroup):
        return f"{key.name}: {key.sql}"  # type: ignore[attr-defined]  # of a PublicKey
    shown = [f"{bucket.label} [{bucket.start}, {bucket.stop})" for bucket in key.buckets]
    listed = shown if len(shown) <= 5 else [*shown[:2], "...", *shown[-2:]]
    return f"{key.name}: {len(shown)} buckets of {NAMES[key.place]}: {', '.join(listed)}"


def plan(query: Query) -> str:
    """Everything that is known about a query, as text."""
    lines = ["explain"] if query.explain else []
    lines += [f"sum {place}: {sql}" for place, sql in enumerate(query.sums)]
    lines += where_lines(query)
    lines += [f"key {place}: {key_text(key)}" for place, key in enumerate(query.keys)]
    lines += [f"output {output.name}: {expression_text(output.value)}" for output in query.outputs]
    lines += [] if query.having is None else [f"having: {expression_text(query.having)}"]
    lines += [f"order: {expression_text(by)}{' down' if down else ''}" for by, down in query.order]
    lines += [] if query.limit is None else [f"limit: {query.limit}"]
    lines += [f"offset: {query.offset}"] if query.offset else []
    lines += [f"remark: {remark}" for remark in query.remarks]
    return "\n".join(lines) + "\n"


def refusal(text: str) -> str:
    with pytest.raises(SqlError) as caught:
        parse(text, TABLE)
    problem = caught.value
    return f"line {problem.line}, column {problem.column}: {problem.message}\n"


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_query_has_the_expected_plan(path: Path) -> None:
    assert plan(parse(path.read_text(), TABLE)) == path.with_suffix(".plan").read_text()


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_query_is_refused_at_the_expected_position(path: Path) -> None:
    assert refusal(path.read_text()) == path.with_suffix(".error").read_text()


def test_number_of_good_and_bad_queries() -> None:
    assert len(GOOD) >= 60
    assert len(BAD) >= 25


if __name__ == "__main__":
    for good in GOOD:
        good.with_suffix(".plan").write_text(plan(parse(good.read_text(), TABLE)))
    for bad in BAD:
        bad.with_suffix(".error").write_text(refusal(bad.read_text()))
