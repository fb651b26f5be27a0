"""Statements of a text, parameters as literals, and carets below errors; quotes and comments are kept apart."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.errors import InputError, SqlError
from veil.sql.language.statements import bind, pointed, split

sqlglot = pytest.importorskip("sqlglot")


@pytest.mark.parametrize(
    ("text", "whole", "rest"),
    [
        ("", (), ""),
        ("  -- nothing\n", (), ""),
        ("SELECT 1", (), "SELECT 1"),
        ("SELECT 1;", ("SELECT 1",), ""),
        ("SELECT 1; ; ;SELECT 2 ;", ("SELECT 1", "SELECT 2"), ""),
        ("SELECT ';' ; SELECT \";\" /* ; */ FROM a -- ;", ("SELECT ';'",), 'SELECT ";" /* ; */ FROM a'),
        ("SELECT 'it''s; ' ; -- done ;", ("SELECT 'it''s; '",), ""),
        ("SELECT 'open ; ", (), "SELECT 'open ; "),
    ],
)
def test_queries_end_with_a_semicolon(text: str, whole: tuple[str, ...], rest: str) -> None:
    assert split(text) == (whole, rest)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("O'Hara", "'O''Hara'"),
        (3, "3"),
        (np.int64(3), "3"),
        (-3, "(-3)"),
        (0.1, "0.1"),
        (Decimal("12.50"), "12.50"),
        (True, "TRUE"),
        (None, "NULL"),
        (dt.date(2026, 5, 1), "DATE '2026-05-01'"),
        (dt.datetime(2026, 5, 1, 12, 30), "TIMESTAMP '2026-05-01 12:30:00'"),
    ],
)
def test_parameters_are_written_as_literals(value: Any, written: str) -> None:
    assert bind("WHERE a = ?", [value]) == f"WHERE a = {written}"
    assert bind("WHERE a -? > '?' -- ?", [value]) == f"WHERE a -{written} > '?' -- ?"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", [1], "zero\0byte", object()])
def test_parameters_of_other_types_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="a parameter"):
        bind("WHERE a = ?", [value])


@pytest.mark.parametrize("parameters", [[], [1, 2]])
def test_there_is_one_parameter_for_each_place(parameters: list[int]) -> None:
    with pytest.raises(InputError, match="1 places"):
        bind("WHERE a = ?", parameters)


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_bound_text_stays_one_literal(value: str) -> None:
    """Whatever is bound, the parser sees one string literal that holds just that."""
    tokens = sqlglot.tokenize(bind("a = ? AND b", [value]), read="duckdb")
    assert [token.token_type.name for token in tokens] == ["VAR", "EQ", "STRING", "AND", "VAR"]
    assert tokens[2].text == value


def test_binding_without_doubled_quotes_lets_text_out() -> None:
    rival = "a = ? AND b".replace("?", "'{}'".format("' OR 1 = 1 --"))
    assert [token.token_type.name for token in sqlglot.tokenize(rival, read="duckdb")][3] == "OR"


def test_a_caret_points_at_the_place() -> None:
    text = "SELECT COUNT(*)\nFROM people\n\tWHERE agee < 3"
    assert pointed(text, SqlError("no such column", 3, 8)) == " WHERE agee < 3\n       ^"
    assert pointed("", SqlError("nothing", 9, 9)) == "\n^"
    long = "x" * 300
    line, caret = pointed(long, SqlError("here", 1, 200)).splitlines()
    assert len(line) <= 120
    assert caret.index("^") == 60
