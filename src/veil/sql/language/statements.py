"""The text of queries: split into statements, parameters bound, and one query read into a syntax tree with positions.

sqlglot reads DuckDB's grammar. Everything after it works on the tree and never on the text. Errors give the line and
the column. Quoted text and comments are never taken for SQL.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from veil.errors import InputError, SqlError
from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

GRAMMAR = (
    "SELECT keys and aggregates FROM table [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...] [LIMIT n [OFFSET m]]"
)
_DIALECT = "duckdb"
_LONGEST = 100_000
MOST_DIGITS = 400
"""Digits of a number that is written out in a query."""
_ENDS = frozenset({"FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET"})  # of what SELECT lists
_EXPLAIN = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(EXPLAIN)\b", re.IGNORECASE | re.DOTALL)


class Word(NamedTuple):
    """A word or sign of a query: where it begins and ends, and itself in capital letters; quoted words have none."""

    start: int
    stop: int
    text: str


@dataclass(frozen=True, eq=False)
class Statement:
    """A query as it was written, and the tree of its SELECT."""

    text: str
    select: Node
    explain: bool
    words: tuple[Word, ...]

    def start(self, node: Node) -> int:
        """Where a part of the query begins, as an offset: its first word that the tree remembers."""
        known = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta]
        if not known:
            return 0 if node.parent is None else self.start(node.parent)
        if node.key in ("subquery", "select"):
            before = (word.start for word in self.words if word.text in ("SELECT", "FROM") and word.start < min(known))
            return max(before, default=int(min(known)))
        if "start" not in node.meta and hasattr(node, "sql_names"):  # of some functions the tree forgets the name
            called = [word for word in self.words if word.start < min(known)][-2:]
            if len(called) == 2 and called[1].text == "(" and called[0].text in node.sql_names():
                return called[0].start
        return int(min(known))

    def word(self, node: Node) -> str:
        """A function's name as it was written, in lower case; the grammar's own where it has a form of its own."""
        if "start" in node.meta:
            return self.text[node.meta["start"] : node.meta["end"] + 1].lower()
        return str(node.sql_names()[0] if hasattr(node, "sql_names") else node.key).lower()

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The items of SELECT as they were written."""
        start = next(place for place, word in enumerate(self.words) if word.text == "SELECT") + 1
        parts: list[list[Word]] = [[]]
        depth = 0
        for word in self.words[start:]:
            if depth == 0 and (word.text in _ENDS or word.text == ";"):
                break
            depth += (word.text in ("(", "[", "{")) - (word.text in (")", "]", "}"))
            if depth == 0 and word.text == ",":
                parts.append([])
            else:
                parts[-1].append(word)
        return tuple(self.text[part[0].start : part[-1].stop] for part in parts if part)

    def error(self, where: Node | str, message: str) -> SqlError:
        """The error at a part of the query, or at the first place where a keyword stands."""
        if isinstance(where, str):
            return _error(self.text, next((word.start for word in self.words if word.text == where), 0), message)
        return _error(self.text, self.start(where), message)


def read(text: str) -> Statement:
    """A query's syntax tree; refuses what is no single SELECT, with the position."""
    try:
        from sqlglot import ErrorLevel, parse, tokenize
        from sqlglot.errors import ParseError, SqlglotError
    except ImportError:
        raise missing_extra("queries need sqlglot and duckdb", "sql") from None

    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InputError(f"a query is a text of at most {_LONGEST:,} characters")
    half = next((place for place, character in enumerate(text) if "\ud800" <= character <= "\udfff"), None)
    if half is not None:
        raise _error(text, half, "half of a character stands here: a query is Unicode text")
    prefix = _EXPLAIN.match(text)
    body = text if prefix is None else text[: prefix.start(1)] + " " * len("EXPLAIN") + text[prefix.end() :]
    try:
        tokens = tokenize(body, dialect=_DIALECT)
        words = tuple(
            Word(token.start, token.end + 1, token.text.upper() if text.startswith(token.text, token.start) else "")
            for token in tokens
        )
        _check_statement(text, words)
        (select,) = (tree for tree in parse(body, dialect=_DIALECT, error_level=ErrorLevel.IMMEDIATE) if tree)
    except ParseError as problem:
        found = problem.errors[0] if problem.errors else {}
        word = found.get("highlight") or ""
        line, column = found.get("line") or 1, (found.get("col") or 1) - max(len(word) - 1, 0)
        raise SqlError(f"the query cannot be read at {word!r}; supported: {GRAMMAR}", line, max(column, 1)) from None
    except SqlglotError:
        raise _error(text, _unclosed(text), "what begins here is never closed") from None
    except RecursionError:
        raise _error(text, 0, "the query is nested too deeply") from None
    source = Statement(text, select, prefix is not None, words)
    if select.key != "select":
        raise source.error(select.key.upper(), f"found {select.key.upper()}; supported: {GRAMMAR}")
    return source


def without_parentheses(node: Node) -> Node:
    """The node inside any number of parentheses."""
    while node.key == "paren":
        node = node.this
    return node


def plain(node: Node) -> str:
    """A part of a query as DuckDB's SQL, without comments."""
    return str(node.sql(dialect=_DIALECT, comments=False))


def _check_statement(text: str, words: Sequence[Word]) -> None:
    """One statement, and it begins as a SELECT does."""
    if not words:
        raise _error(text, 0, f"the query is empty; supported: {GRAMMAR}")
    first = words[0]
    if first.text not in ("SELECT", "FROM", "("):
        found = text[first.start : first.stop][:40]
        raise _error(text, first.start, f"found {found}, where a query begins; supported: [EXPLAIN] {GRAMMAR}")
    ends = [place for place, word in enumerate(words) if word.text == ";"]
    if ends and ends[0] + 1 < len(words):
        raise _error(text, words[ends[0] + 1].start, "found a second statement; supported: one SELECT at a time")


def _unclosed(text: str) -> int:
    """Where the quote or the comment begins that the text ends in."""
    at = 0
    while at < len(text):
        opened = next((mark for mark in ("--", "/*", "'", '"') if text.startswith(mark, at)), None)
        if opened is None:
            at += 1
            continue
        close = text.find({"--": "\n", "/*": "*/"}.get(opened, opened), at + len(opened))
        if close < 0:
            return at
        at = close + (2 if opened == "/*" else 1)
    return 0


def _error(text: str, offset: int, message: str) -> SqlError:
    before = text[:offset]
    return SqlError(message, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


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


def _literal(value: Any) -> str:
    """A value as SQL writes it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float, Decimal)):
        if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
            raise InputError(f"a parameter that is a number has at most {MOST_DIGITS} digits")
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


def _tokens(text: str) -> list[Any] | None:
    """The tokens of a text, as the parser sees them; None where a quote or a comment does not end."""
    try:
        import sqlglot
    except ImportError:
        raise missing_extra("SQL needs sqlglot and duckdb", "sql") from None
    try:
        return list(sqlglot.tokenize(text, dialect=_DIALECT))
    except sqlglot.errors.TokenError:
        return None


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
