"""Queries evaluated on raw rows without noise give the answers of DuckDB to the same text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.domain import Categories, Integers, Interval, Record
from veil.sql.columns import Category, Measure, Moment
from veil.sql.language.parsing import parse
from veil.sql.language.query import (
    Box,
    Expression,
    InRanges,
    KeyValue,
    Number,
    Operation,
    PrivateGroup,
    PublicCondition,
    Query,
    SumTerm,
)
from veil.sql.language.regions import disjoint_boxes, patterns
from veil.sql.table import Table

STATES = ("NY", "WA", "CA", "TX", "it's")
SYSTEMS = ("Win", "iOS", "Android")
TABLE = Table(
    2.0,
    Record(
        (
            ("age", Integers(18, 40)),
            ("salary", Interval(0, 100, cells=20)),
            ("state", Categories(STATES, missing="category")),
            ("joined", Interval(dt.date(2026, 1, 1), dt.date(2026, 3, 2), cells=60)),
        )
    ),
    (Category("os", SYSTEMS), Measure("active", 1), Measure("purchase", 2), Moment("seen")),
)
PEOPLE = 400


@cache
def raw() -> tuple[Any, Any]:
    """People in DuckDB as they are, and their codes. Salaries lie inside of their buckets."""
    rng = np.random.default_rng(7)
    rows = [
        (
            int(rng.integers(18, 41)),
            float(rng.integers(0, 20) * 5 + rng.integers(1, 5)),
            [*STATES, None][rng.integers(0, 6)],
            dt.date(2026, 1, 1) + dt.timedelta(days=int(rng.integers(0, 60))),
            SYSTEMS[rng.integers(0, 3)],
            int(rng.integers(0, 50)) / 10,
            int(rng.integers(-2000, 10_000)) / 100,
            dt.date(2026, 1, 1) + dt.timedelta(days=int(rng.integers(0, 90))),
        )
        for _ in range(PEOPLE)
    ]
    database = duckdb.connect(":memory:")
    database.execute(
        "CREATE TABLE people (age INTEGER, salary DOUBLE, state VARCHAR, joined DATE, os VARCHAR, "
        "active DECIMAL(18, 1), purchase DECIMAL(18, 2), seen DATE)"
    )
    database.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    database.execute("CREATE MACRO bucket(x, width) AS CAST(floor(x / width) * width AS INTEGER)")
    columns = list(zip(*rows, strict=True))
    return database, TABLE.private.encode(dict(zip(TABLE.private.names, map(list, columns[:4]), strict=True)))


def selected(sql: list[str]) -> list[tuple[Any, ...]]:
    if not sql:
        return [()] * PEOPLE
    found: list[tuple[Any, ...]] = raw()[0].execute(f"SELECT {', '.join(sql)} FROM people").fetchall()  # noqa: S608
    return found


def inside(boxes: tuple[Box, ...], codes: Any) -> bool:
    hits = [
        all(side is None or any(a <= code < b for a, b in side) for side, code in zip(box, codes, strict=True))
        for box in boxes
    ]
    assert sum(hits) <= 1
    return any(hits)


def holding(query: Query, drop: int | None = None) -> list[bool]:
    """For whom the condition holds, by patterns of public conditions and boxes of private cells."""
    split = patterns(query.where)
    sizes = [part.size for part in TABLE.private.parts]
    boxes: dict[int, tuple[Box, ...]] = {}
    found = []
    for truth, codes in zip(selected(list(split.atoms)), raw()[1].tolist(), strict=True):
        bits = sum(bool(value) << i for i, value in enumerate(truth))
        if bits not in boxes:
            boxes[bits] = disjoint_boxes(split.where(bits), sizes)[drop:]
        found.append(inside(boxes[bits], codes))
    return found


def value(expression: Expression, totals: list[float], keys: tuple[Any, ...]) -> float:
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, SumTerm):
        return totals[expression.index]
    if isinstance(expression, KeyValue):
        return float(keys[expression.index])
    assert isinstance(expression, Operation)
    parts = [value(part, totals, keys) for part in expression.parts]
    if expression.name == "/":
        return parts[0] / parts[1] if parts[1] else math.nan
    if expression.name == "sqrt":
        return math.sqrt(max(parts[0], 0.0))
    return {
        "+": sum,
        "-": lambda p: p[0] - p[1],
        "*": math.prod,
        "negate": lambda p: -p[0],
        "abs": lambda p: abs(p[0]),
    }[expression.name](parts)  # type: ignore[operator]


def answered(query: Query, drop: int | None = None) -> dict[tuple[Any, ...], list[float]]:
    """The outputs of each group, from raw rows."""
    public = iter(zip(*selected([key.sql for key in query.keys if not isinstance(key, PrivateGroup)]), strict=True))
    labels: list[list[Any]] = []
    for key in query.keys:
        if isinstance(key, PrivateGroup):
            codes = raw()[1][:, key.place].tolist()
            buckets = key.buckets  # without those that the condition leaves nobody in: DuckDB has no such label
            labels.append([next((b.label for b in buckets if b.start <= c < b.stop), "nobody") for c in codes])
        else:
            labels.append(list(next(public)))
    groups = list(zip(*labels, strict=True)) if labels else [()] * PEOPLE
    totals: dict[tuple[Any, ...], list[float]] = {} if labels else {(): [0.0] * len(query.sums)}
    for group, weights, holds in zip(groups, selected(list(query.sums)), holding(query, drop), strict=True):
        if holds:
            held = totals.setdefault(group, [0.0] * len(query.sums))
            for i, weight in enumerate(weights):
                held[i] += float(weight or 0)  # what is NULL is added up as 0
    return {group: [value(output.value, held, group) for output in query.outputs] for group, held in totals.items()}


def as_label(key: Any) -> Any:
    return str(key) if isinstance(key, dt.date) else key


def duckdb_says(text: str, keys: int) -> dict[tuple[Any, ...], list[float]]:
    rows = raw()[0].execute(text).fetchall()
    return {tuple(map(as_label, row[:keys])): [math.nan if v is None else float(v) for v in row[keys:]] for row in rows}


def agree(text: str, asked_of_duckdb: str | None = None) -> None:
    query = parse(text, TABLE)
    ours = {tuple(map(as_label, group)): held for group, held in answered(query).items()}
    theirs = duckdb_says(asked_of_duckdb or text, len(query.keys))
    assert ours.keys() == theirs.keys()
    for group, held in ours.items():
        # a sum over nobody is 0 here and NULL there
        expected = [0.0 if math.isnan(b) and a == 0 else b for a, b in zip(held, theirs[group], strict=True)]
        np.testing.assert_allclose(held, expected, rtol=1e-9, atol=1e-6)


def private_atoms() -> Iterator[st.SearchStrategy[str]]:
    signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    ages = st.integers(16, 42) | st.sampled_from([20.5, 33.25])
    dates = st.integers(-3, 63).map(lambda day: f"DATE '{dt.date(2026, 1, 1) + dt.timedelta(days=day)}'")
    edges = st.integers(-1, 21).map(lambda edge: edge * 5)
    states = st.sampled_from([f"'{state}'".replace("it's", "it''s") for state in STATES])
    yield st.builds("age {} {}".format, signs, ages)
    yield st.builds("{1} {0} age".format, signs, ages)
    yield st.builds("age {}BETWEEN {} AND {}".format, st.sampled_from(["", "NOT "]), ages, ages)
    yield st.builds(
        "age {}IN ({})".format,
        st.sampled_from(["", "NOT "]),
        st.lists(ages | st.just("NULL"), min_size=1, max_size=4).map(lambda some: ", ".join(map(str, some))),
    )
    yield st.builds("salary {} {}".format, st.sampled_from(["<", "<=", ">", ">="]), edges)
    yield st.builds("joined {} {}".format, signs, dates)
    yield st.builds("joined BETWEEN {} AND {}".format, dates, dates)
    yield st.builds("state {} {}".format, signs, states)
    yield st.builds("state {}IN ({}, {})".format, st.sampled_from(["", "NOT "]), states, states)
    yield st.sampled_from(["state IS NULL", "state IS NOT NULL", "age IS NULL", "state = NULL", "NOT (state = 'NY')"])


PUBLIC = (
    "os = 'iOS'",
    "os LIKE '%i%'",
    "purchase > 20",
    "NULLIF(os, 'Win') <> 'iOS'",
    "purchase / NULLIF(active, 0) > 10",
    "seen >= DATE '2026-02-01' AND active < 2.5",
    "month(seen) IN (1, 3)",
    "TRUE",
    "NULL",
    "lower(os) = 'win' OR purchase BETWEEN 0 AND 10",
)
predicates: st.SearchStrategy[str] = st.recursive(
    st.one_of(*private_atoms(), st.sampled_from(PUBLIC)),
    lambda parts: (
        parts.map("NOT ({})".format)
        | st.builds("({}) AND ({})".format, parts, parts)
        | st.builds("({}) OR ({})".format, parts, parts)
    ),
    max_leaves=6,
)
KEYS = ("", "os", "state", "age", "BUCKET(age, 5)", "month(seen)", "os, state", "BUCKET(salary, 20), os")
AGGREGATES = (
    "COUNT(*)",
    "SUM(purchase), AVG(purchase)",
    "SUM(NULLIF(active, 0)), COUNT(NULLIF(active, 0)), AVG(NULLIF(active, 0))",
    "VAR_POP(active), 2 * SUM(purchase) / COUNT(*) - 1",
    "SUM(CASE WHEN os = 'iOS' THEN purchase END), COUNT(*) FILTER (WHERE os = 'Win'), COUNT_IF(active > 1)",
    "SUM(purchase * active), SUM(os = 'Win')",
)


@given(predicates, st.sampled_from(KEYS), st.sampled_from(AGGREGATES))
@settings(max_examples=150, deadline=None)
def test_any_predicate_answers_what_duckdb_answers_on_raw_rows(predicate: str, keys: str, aggregates: str) -> None:
    selected = f"{keys}, {aggregates}" if keys else aggregates
    grouped = f" GROUP BY {keys}" if keys else ""
    agree(f"SELECT {selected} FROM people WHERE {predicate}{grouped}")  # noqa: S608


@pytest.mark.parametrize(
    "aggregate", ["VARIANCE", "VAR_SAMP", "VAR_POP", "STDDEV", "STDDEV_SAMP", "STDDEV_POP", "MEAN"]
)
def test_variances_and_deviations_answer_what_duckdb_answers(aggregate: str) -> None:
    agree(f"SELECT os, {aggregate}(purchase), {aggregate}(NULLIF(active, 0)) FROM people GROUP BY os")  # noqa: S608


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("BUCKET(joined, 7)", "time_bucket(INTERVAL 7 DAY, joined)"),
        ("BUCKET(joined, INTERVAL 1 MONTH)", "time_bucket(INTERVAL 1 MONTH, joined)"),
        ("BUCKET(joined, INTERVAL '2' WEEKS)", "time_bucket(INTERVAL 14 DAY, joined)"),
        ("BUCKET(seen, 10)", "time_bucket(INTERVAL 10 DAY, seen)"),
        ("joined", "joined"),
    ],
)
def test_buckets_of_dates_are_those_of_time_bucket(ours: str, theirs: str) -> None:
    text = "SELECT {0}, COUNT(*) FROM people WHERE age > 20 GROUP BY {0}"
    agree(text.format(ours), text.format(theirs))


EXPRESSIONS = (
    "3 * mod(active * 10 + 7, 4)",
    "2 - mod(CAST(purchase AS INTEGER), 5) * 3",
    "- (purchase - active) - (active - 3)",
    "2 ** 3 * active",
    "purchase - (active - (1 - active)) * 2 / (1 + active)",
    "(purchase // 7) % 3 - (7 // 2)",
    "CASE os WHEN 'Win' THEN 1 WHEN 'iOS' THEN 2 END * 3",
    "if(purchase > 10 AND NOT (os = 'iOS' OR active > 2), 1, 2) + 1",
    "CAST(purchase AS INTEGER) + active::DOUBLE",
    "COALESCE(NULLIF(active, 0), IFNULL(NULLIF(purchase, 1), 2))",
    "round(purchase / 3, 1) + floor(purchase) + abs(purchase - 5) + least(purchase, 1) + greatest(active, 2)",
    "sqrt(active) + ln(active + 1) + log(10, active + 1) + exp(active / 10) + pow(active, 2) + sign(purchase)",
    "length(os || 'x' || os) + strpos(os, 'i') + position('n' IN os) + instr(os, 'd')",
    "CAST(upper(left(os, 1)) || lower(right(os, 2)) || substring(os, 2, 1) = 'WinI' AS INTEGER)",
    "CAST(trim('  ' || os || ' ') = os AND ltrim(os, 'W') <> os AS INTEGER)",
    "CAST(replace(os, 'i', 'j') = 'jOS' AND concat(os, 'a', 'b') <> os AS INTEGER)",
    "CAST(contains(os, 'n') OR starts_with(os, 'i') OR ends_with(os, 'd') AS INTEGER)",
    "CAST(regexp_matches(os, '^[A-W]') AND os NOT LIKE '%x_' ESCAPE 'x' OR os ILIKE 'ios' AS INTEGER)",
    "year(seen) * 100 + month(seen) - day(seen) + extract(quarter FROM seen) + week(seen) + dayofweek(seen)",
    "date_diff('day', date_trunc('month', seen), seen) + datediff('day', seen, last_day(seen))",
    "CAST(seen + INTERVAL 3 DAY > date_add(DATE '2026-02-01', INTERVAL 1 WEEK) AS INTEGER) * 2",
    "CAST(seen - 3 BETWEEN DATE '2026-01-10' AND '2026-02-10' AS INTEGER) + date_part('year', seen)",
    "CAST(strftime(seen, '%Y-%m') = '2026-02' AS INTEGER) + CAST(dayname(seen) IN ('Monday', 'Sunday') AS INTEGER)",
    "CAST(os IS DISTINCT FROM 'Win' AS INTEGER) + CAST((os = 'Win') IS NOT TRUE AS INTEGER)",
    "CAST(TRY_CAST(os AS INTEGER) IS NULL AND NOT os IN ('Win', 'iOS') AS INTEGER)",
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rewritten_public_expressions_have_the_same_values(expression: str) -> None:
    ours = parse(f"SELECT {expression} AS k, COUNT(*) FROM people GROUP BY k", TABLE).keys[0]  # noqa: S608
    assert not isinstance(ours, PrivateGroup)
    assert selected([ours.sql]) == selected([expression])


def test_comparison_notices_a_missing_box() -> None:
    """The rival: without its first box a condition of several boxes holds for other people."""
    query = parse("SELECT COUNT(*) FROM people WHERE age < 25 OR state = 'NY' OR joined >= DATE '2026-02-01'", TABLE)
    assert holding(query) != holding(query, drop=1)
    assert answered(query) != answered(query, drop=1)


def test_comparison_notices_a_negation_that_includes_missing_values() -> None:
    query = parse("SELECT COUNT(*) FROM people WHERE NOT (state = 'NY')", TABLE)
    assert query.where == InRanges(2, ((1, 5),))  # not the code of missing values, 5
    agree(query.text)
    assert parse("SELECT COUNT(*) FROM people WHERE NOT (os = 'iOS')", TABLE).where == PublicCondition(
        "NOT (\"os\" = 'iOS')"
    )
