"""Text with several queries in pieces, and parameters put into a query. What is quoted or a comment stays as it is."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from veil.errors import InputError, SqlError
from veil.tools.messages import missing_extra

__all__ = ["Statements", "bind", "pointed", "split"]

_DIALECT = "duckdb"
_MOST_DIGITS = 400


class Statements(NamedTuple):
    """The queries of a text that a semicolon ends, and what stands behind the last one."""

    whole: tuple[str, ...]
    rest: str


def split(text: str) -> Statements:
    """The queries of a text, each without its semicolon; comments alone are no query.

    >>> split("SELECT ';' FROM a; -- and\\nSELECT 2")
    Statements(whole=("SELECT ';' FROM a",), rest='SELECT 2')
    """
    tokens = _tokens(text)
    if tokens is None:  # a quote or a comment that does not end: what is before it is still whole
        return Statements((), text)
    whole, started, end = [], None, 0
    for token in tokens:
        if token.token_type.name == "SEMICOLON":
            if started is not None:
                whole.append(text[started : token.start].strip())
            started = None
        elif started is None:
            started = token.start
        end = token.end + 1
    return Statements(tuple(whole), "" if started is None else text[started:end])


def bind(text: str, parameters: Sequence[Any]) -> str:
    """The query with each `?` replaced by a parameter as a literal, quoted so that it can be nothing else.

    >>> bind("SELECT COUNT(*) FROM people WHERE state = ? AND age < ?", ["O'Hara'; --", 30])
    "SELECT COUNT(*) FROM people WHERE state = 'O''Hara''; --' AND age < 30"
    """
    places = [token for token in _tokens(text) or () if token.token_type.name == "PLACEHOLDER"]
    if len(places) != len(parameters):
        raise InputError(f"the query has {len(places)} places for parameters (?), and {len(parameters)} were given")
    made, done = [], 0
    for token, value in zip(places, parameters, strict=True):
        made += [text[done : token.start], _literal(value)]
        done = token.end + 1
    return "".join([*made, text[done:]])


def pointed(text: str, problem: SqlError) -> str:
    """The line of a query that a problem is about, and a caret below the place.

    >>> print(pointed("SELECT\\nmany FROM people", SqlError("there is no such column", 2, 1)))
    many FROM people
    ^
    """
    lines = text.expandtabs(1).splitlines() or [""]
    line = lines[min(max(problem.line, 1), len(lines)) - 1]
    place = min(max(problem.column, 1) - 1, len(line))
    first = max(0, place - 60)  # of a long line, what stands around the place
    cut = line[first : place + 60]
    return f"{cut}\n{' ' * (place - first)}^"


def _tokens(text: str) -> list[Any] | None:
    """The tokens of a text, as the parser sees them; None where a quote or a comment does not end."""
    try:
        import sqlglot
    except ImportError:
        raise missing_extra("SQL needs sqlglot and duckdb", "sql") from None
    try:
        return list(sqlglot.tokenize(text, read=_DIALECT))
    except sqlglot.errors.TokenError:
        return None


def _literal(value: Any) -> str:
    """A value as SQL writes it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float, Decimal)):
        if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
            raise InputError(f"a parameter that is a number has at most {_MOST_DIGITS} digits")
        if not isinstance(value, int) and not math.isfinite(value):
            raise InputError("a parameter that is a number is finite")
        text = f"{value:f}" if isinstance(value, Decimal) else repr(value)
        return f"({text})" if text.startswith("-") else text  # a minus before it would make a comment
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        if "\0" in value:
            raise InputError("a parameter that is text holds no zero byte")
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    raise InputError("a parameter is text, a number, a date, a time, true, false or None")
