"""Parsing of queries: comparisons with each kind of dimension, hostile names, and arbitrary texts."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.domain import Categories, Domain, Integers, Interval, Record
from veil.errors import InputError, SqlError
from veil.sql.columns import Category, Measure, Moment
from veil.sql.language.dimensions import Dimension
from veil.sql.language.parsing import parse
from veil.sql.language.query import FALSE, TRUE, InRanges, PrivateGroup, PublicCondition, Query, Runs
from veil.sql.table import Table

HOSTILE = 'it"s; DROP TABLE x --'
TABLE = Table(
    1.0,
    Record(
        (
            ("age", Integers(18, 97)),
            ("smoker", Categories(["true", "false"])),
            ("rank", Categories.range(5)),
            (HOSTILE, Integers(0, 9)),
        )
    ),
    (Measure("pay", 2), Category("os", ("a", "b")), Moment("seen", "second"), Measure('odd "name"', 0)),
    name="the people",
)


def ask(where: str, select: str = "COUNT(*)", rest: str = "") -> Query:
    return parse(f'SELECT {select} FROM "the people" WHERE {where} {rest}', TABLE)  # noqa: S608


def read(domain: Domain, sign: Any, value: Any) -> tuple[Runs, str | None]:
    return Dimension(0, "x", domain).compared(sign, value, str(value))


@pytest.mark.parametrize(
    ("sign", "value", "runs"),
    [
        ("<", 0, ()),
        ("<=", 0, ()),
        (">", 10, ()),
        ("<=", 10, ((0, 5),)),
        (">=", 4, ((2, 5),)),
        ("<", 5, ((0, 3),)),  # halfway goes up
        (">", 4.9, ((2, 5),)),
        ("=", 10, ((4, 5),)),
        ("=", 11, ()),
        ("<>", -1, ((0, 5),)),
        ("<>", 3, ((0, 1), (2, 5))),
        (">", -1, ((0, 5),)),
        ("<", 11, ((0, 5),)),
        (">=", 11, ()),
    ],
)
def test_comparison_with_an_interval_uses_the_nearest_edge(sign: str, value: float, runs: Runs) -> None:
    assert read(Interval(0, 10, cells=5), sign, value)[0] == runs


@pytest.mark.parametrize(
    ("sign", "value", "exact"),
    [
        *(("<", 4, True), (">=", 4, True), ("<=", 4, False), (">", 4, False), ("<", 4.1, False), ("=", 4, False)),
        *(("<=", 10, True), ("<", 10, False), (">", 10, True), (">=", 10, False), (">", 0, False), ("<", 11, True)),
    ],
)
def test_inexact_comparison_gives_a_remark(sign: str, value: float, exact: bool) -> None:
    assert (read(Interval(0, 10, cells=5), sign, value)[1] is None) == exact


def test_doubles_near_an_edge_are_at_the_edge() -> None:
    assert read(Interval(0, 1, cells=100), ">=", 0.29) == (((29, 100),), None)
    assert read(Interval(-0.1, 0.2, cells=3), "<", 0.1) == (((0, 2),), None)


WEEKS = Interval(dt.date(2026, 1, 5), dt.date(2026, 2, 2), cells=4)
HOURS = Interval(dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2), cells=24)


@pytest.mark.parametrize(
    ("domain", "sign", "value", "runs", "exact"),
    [
        (WEEKS, "<=", dt.date(2026, 1, 11), ((0, 1),), True),
        (WEEKS, ">", dt.date(2026, 1, 11), ((1, 4),), True),
        (WEEKS, "<", dt.date(2026, 1, 12), ((0, 1),), True),
        (WEEKS, "=", dt.date(2026, 1, 13), ((1, 2),), False),
        (WEEKS, "=", dt.date(2026, 1, 4), (), True),
        (WEEKS, "<>", dt.date(2026, 2, 2), ((0, 4),), True),
        (WEEKS, ">=", dt.date(2026, 1, 14), ((1, 4),), False),
        (WEEKS, "<", dt.date(2027, 1, 1), ((0, 4),), True),
        (HOURS, "<", dt.datetime(2026, 1, 1, 6), ((0, 6),), True),
        (HOURS, ">=", dt.datetime(2026, 1, 1, 6, 40), ((7, 24),), False),
        (HOURS, ">=", "2026-01-01T06:00:00+02:00", ((4, 24),), True),
        (HOURS, ">=", dt.date(2026, 1, 1), ((0, 24),), True),
    ],
)
def test_comparisons_with_dates_and_times(domain: Interval, sign: str, value: Any, runs: Runs, exact: bool) -> None:
    found, remark = read(domain, sign, value)
    assert found == runs
    assert (remark is None) == exact


@pytest.mark.parametrize("value", [3, 3.5, True, "soon", ""])
def test_times_are_compared_with_times_alone(value: Any) -> None:
    with pytest.raises(InputError, match="dates or times"):
        read(HOURS, "<", value)


def test_truth_values_and_numbered_categories() -> None:
    assert ask("smoker").where == InRanges(1, ((0, 1),))
    assert ask("NOT smoker").where == InRanges(1, ((1, 2),))
    assert ask("smoker = FALSE").where == InRanges(1, ((1, 2),))
    assert ask("smoker = 'TRUE'").where == InRanges(1, ((0, 1),))
    assert ask("rank >= 2.5").where == InRanges(2, ((3, 5),))
    assert ask("rank IN (0, 4)").where == InRanges(2, ((0, 1), (4, 5)))
    assert ask("rank = 3.0").where == InRanges(2, ((3, 4),))
    for refused in ("rank = 7", "rank = 2.5", "rank = 'a'", "smoker > TRUE", "smoker = 1", "age = TRUE", "age"):
        with pytest.raises(SqlError):
            ask(refused)


def test_integers_are_exact_beyond_doubles() -> None:
    large = Integers(2**52, 2**52 + 10)
    assert read(large, "=", 2**52 + 3)[0] == ((3, 4),)
    assert read(large, ">", 10**40)[0] == ()


def test_hostile_column_names_are_quoted() -> None:
    """A column may be called anything: it is resolved, and quoted in what DuckDB is asked."""
    found = ask('"odd ""name""" > 3 AND age > 20', 'SUM("ODD ""name""")')
    assert found.sums == ('"odd ""name"""',)
    assert isinstance(found.where, type(ask("pay > 1 AND age > 20").where))
    database = duckdb.connect(":memory:")
    database.execute('CREATE TABLE people ("odd ""name""" INTEGER); INSERT INTO people VALUES (4)')
    assert database.execute(f"SELECT {found.sums[0]} FROM people").fetchall() == [(4,)]  # noqa: S608
    private = ask('"it""s; DROP TABLE x --" < 5')
    assert private.where == InRanges(3, ((0, 5),))
    grouped = parse('SELECT "it""s; DROP TABLE x --", COUNT(*) FROM "the people" GROUP BY 1', TABLE)
    assert grouped.keys[0].name == HOSTILE


def test_texts_are_quoted_again() -> None:
    assert ask("os = 'a'' OR TRUE --'").where == PublicCondition("\"os\" = 'a'' OR TRUE --'")


def test_comments_do_not_reach_duckdb() -> None:
    assert ask("os = 'a' /* b */ -- c\n").where == PublicCondition("\"os\" = 'a'")


def test_conditions_without_columns_are_evaluated() -> None:
    assert ask("1 < 2").where == TRUE
    assert ask("NULL").where == FALSE
    assert ask("NOT (1 < 2) OR age > 20").where == InRanges(0, ((3, 80),))


def test_groups_that_the_condition_excludes_are_left_out() -> None:
    (key,) = ask("age BETWEEN 30 AND 41 OR (os = 'a' AND age = 90)", rest="GROUP BY BUCKET(age, 10)").keys
    assert isinstance(key, PrivateGroup)
    assert [bucket.label for bucket in key.buckets] == [30, 40, 90]


def test_too_many_groups_are_refused() -> None:
    wide = Table(1.0, Record.of(x=Interval(0, 1)))
    with pytest.raises(SqlError, match=r"BUCKET\(x, width\)"):
        parse("SELECT x, COUNT(*) FROM people GROUP BY x", wide)
    found = parse("SELECT BUCKET(x, 0.25), COUNT(*) FROM people GROUP BY 1", wide).keys[0]
    assert isinstance(found, PrivateGroup)
    assert [bucket.label for bucket in found.buckets] == [0, 0.25, 0.5, 0.75]


def test_long_and_deeply_nested_queries() -> None:
    long = ask(" OR ".join(f"age = {18 + i % 80}" for i in range(1500)))
    assert long.where == TRUE
    with pytest.raises(InputError):
        ask("(" * 20_000 + "age > 3" + ")" * 20_000)
    with pytest.raises(InputError):
        ask("NOT " * 20_000 + "age > 3")
    with pytest.raises(InputError, match="at most 100,000"):
        ask("age > 3" + " " * 100_000)


WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN BETWEEN IS NULL CASE WHEN THEN END AS DATE INTERVAL
( ) , * + - / = < >= <> . ; ' " -- /* */ [ ] { } :: ? $1 @ é 😀 3 2.5 'a' 'NY'
age smoker rank pay os seen "the people" COUNT(*) SUM(pay) AVG( BUCKET(age, 10) lower( t.
"""


@given(st.lists(st.sampled_from(WORDS.split()), max_size=14), st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(words: list[str], framed: bool) -> None:
    """Nothing but a Query or an InputError comes out, whatever goes in; a SqlError points into the text."""
    text = " ".join(words)
    if framed:
        text = f'SELECT COUNT(*) FROM "the people" WHERE {text}'  # noqa: S608
    with contextlib.suppress(InputError):
        parse(text, TABLE)
        return
    with pytest.raises(SqlError) as caught:
        parse(text, TABLE)
    lines = text.split("\n")
    assert 1 <= caught.value.line <= len(lines)
    assert 1 <= caught.value.column <= len(lines[caught.value.line - 1]) + 1


@pytest.mark.parametrize("text", [None, 3, b"SELECT"])
def test_query_other_than_valid_text_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="a query is a text"):
        parse(text, TABLE)


MIXED = Table(
    1.0,
    Record.of(
        lab=Categories(["a", 1, "b", 2]),
        rank=Categories([1, 2, 3]),
        born=Interval(dt.date(1990, 1, 1), dt.date(1991, 1, 1), cells=365),
    ),
    (Category("os", ("ios", "web")), Measure("pay", 2)),
)
MANY = "9" * 5000


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("FROM people", 1, "SELECT is missing"),
        (f"SELECT COUNT(*) FROM people WHERE rank < {MANY}", 42, "more than 400 digits"),  # noqa: S608
        (f"SELECT COUNT(*) FROM people LIMIT {MANY}", 35, "more than 400 digits"),  # noqa: S608
        (f"SELECT os, COUNT(*) FROM people GROUP BY {MANY}", 42, "more than 400 digits"),  # noqa: S608
        ("SELECT COUNT(*) FROM people WHERE rank = 1e999", 42, "not finite"),
        ("SELECT COUNT(*) FROM people WHERE rank < 1e999", 42, "not finite"),
        ("SELECT COUNT(*) FROM people WHERE rank = CAST('nan' AS DOUBLE)", 42, "not finite"),
        ("SELECT COUNT(*) FROM people GROUP BY BUCKET(born, INTERVAL '1/0' DAY)", 60, "supported: INTERVAL '7' DAY"),
        ("SELECT COUNT(*) FROM people GROUP BY BUCKET(born, INTERVAL '5000' YEAR)", 38, "the years 1 to 9999"),
        ("SELECT COUNT(*) FROM people GROUP BY BUCKET(born, 10000000)", 38, "the years 1 to 9999"),
        ("SELECT lab, COUNT(*) FROM people GROUP BY lab ORDER BY lab", 56, "lab have no order"),
        ("SELECT lab, COUNT(*) FROM people GROUP BY lab HAVING lab > 'a'", 54, "lab have no order"),
        ("SELECT COUNT(*) FROM people WHERE os = '\ud800'", 41, "half of a character"),
        ("SELECT COUNT(*) FROM people WHERE NOT os", 39, "expected a condition, that is true or false, and found os"),
        ("SELECT COUNT(*) FROM people WHERE pay > 1 OR (os)", 47, "expected a condition"),
        ("SELECT SUM(CASE WHEN os THEN 1 END) FROM people", 22, "expected a condition"),
        ("SELECT COUNT(*) FROM people WHERE os LIKE '%' ESCAPE 'xx'", 54, "ESCAPE takes one character"),
        ("SELECT os, COUNT(*) FROM people GROUP BY ALL ORDER BY ALL", 46, "ORDER BY ALL is not supported: name"),
    ],
)
def test_errors_have_the_column_of_the_mistake(text: str, column: int, says: str) -> None:
    with pytest.raises(SqlError, match=says) as caught:
        parse(text, MIXED)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_mixed_labels_can_be_counted_and_compared_for_equality() -> None:
    found = parse("SELECT lab, COUNT(*) FROM people GROUP BY lab HAVING lab = 'a'", MIXED)
    assert isinstance(found.keys[0], PrivateGroup)
    assert [bucket.label for bucket in found.keys[0].buckets] == ["a", 1, "b", 2]


@pytest.mark.parametrize(
    "text",
    [
        "replace(" * 5 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 5,
        "replace(" * 6 + "os" + ", 'i', 'iiiiiiiiii')" * 6,
        "regexp_replace(" * 9 + "'a'" + ", '.*', '\\0\\0', 'g')" * 9,
        "'" + "a" * 70_000 + "'",
        " || ".join(["'" + "a" * 40_000 + "'"] * 2),
        "strftime(DATE '2020-01-01', '" + "%A" * 2000 + "')",
    ],
)
def test_texts_cannot_grow_beyond_a_limit(text: str) -> None:
    with pytest.raises(SqlError, match=r"could become a text of more than 65,536 bytes"):
        parse(f"SELECT COUNT(*) FROM people WHERE os = {text}", MIXED)  # noqa: S608


def test_ordinary_texts_are_not_too_long() -> None:
    listed = ", ".join(f"'{i:05}'" for i in range(5000))
    parse(f"SELECT COUNT(*) FROM people WHERE os IN ({listed})", MIXED)  # noqa: S608
    parse("SELECT COUNT(*) FROM people WHERE replace(upper(os), 'I', 'i') || '-' = concat('ios', '-')", MIXED)
