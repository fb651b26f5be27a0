"""The text of a query and its syntax tree: where each part stands, and errors that say so.

sqlglot reads the grammar (DuckDB's); everything after it works on the tree and never on the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veil.errors import InputError, SqlError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

__all__ = ["GRAMMAR", "Source", "plain", "read", "without_parentheses"]

GRAMMAR = (
    "SELECT keys and aggregates FROM table [WHERE ...] [GROUP BY ...] [HAVING ...] [ORDER BY ...] [LIMIT n [OFFSET m]]"
)
_LONGEST = 100_000
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Source:
    """A query as it was written, and the tree of its SELECT."""

    text: str
    select: Node
    explain: bool
    words: tuple[tuple[int, str], ...]
    """Where each word stands, and the word in capital letters."""

    def start(self, node: Node) -> int:
        """Where a part of the query begins, as an offset: its first word that the tree remembers."""
        known = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta]
        if not known:
            return 0 if node.parent is None else self.start(node.parent)
        if node.key in ("subquery", "select"):
            return max(start for start, word in self.words if word in ("SELECT", "FROM") and start < min(known))
        if "start" not in node.meta and hasattr(node, "sql_names"):  # of some functions the tree forgets the name
            called = [word for word in self.words if word[0] < min(known)][-2:]
            if len(called) == 2 and called[1][1] == "(" and called[0][1] in node.sql_names():
                return called[0][0]
        return int(min(known))

    def word(self, node: Node) -> str:
        """A function's name as it was written, in lower case; the grammar's own where it has a form of its own."""
        if "start" in node.meta:
            return self.text[node.meta["start"] : node.meta["end"] + 1].lower()
        return str(node.sql_names()[0] if hasattr(node, "sql_names") else node.key).lower()

    def error(self, where: Node | str, message: str) -> SqlError:
        """The error at a part of the query, or at the first place where a keyword stands."""
        if isinstance(where, str):
            return _error(self.text, next((start for start, word in self.words if word == where), 0), message)
        return _error(self.text, self.start(where), message)


def read(text: str) -> Source:
    """A query's syntax tree; refuses what is no single SELECT, with the position."""
    try:
        from sqlglot import ErrorLevel, parse, tokenize
        from sqlglot.errors import ParseError, SqlglotError
    except ImportError:
        raise InputError("queries need sqlglot and duckdb: pip install 'veil[sql]'") from None

    if not isinstance(text, str) or len(text) > _LONGEST:
        raise InputError(f"a query is a text of at most {_LONGEST:,} characters")
    prefix = _EXPLAIN.match(text)
    body = text if prefix is None else " " * prefix.end() + text[prefix.end() :]
    try:
        tokens = tokenize(body, dialect="duckdb")
        words = tuple((token.start, token.text.upper()) for token in tokens if text.startswith(token.text, token.start))
        _check_statement(text, words)
        (select,) = (tree for tree in parse(body, dialect="duckdb", error_level=ErrorLevel.IMMEDIATE) if tree)
    except ParseError as problem:
        found = problem.errors[0] if problem.errors else {}
        word = found.get("highlight") or ""
        line, column = found.get("line") or 1, (found.get("col") or 1) - max(len(word) - 1, 0)
        raise SqlError(f"the query cannot be read at {word!r}; supported: {GRAMMAR}", line, max(column, 1)) from None
    except SqlglotError:
        raise _error(text, _unclosed(text), "what begins here is never closed") from None
    except RecursionError:
        raise _error(text, 0, "the query is nested too deeply") from None
    source = Source(text, select, prefix is not None, words)
    if select.key != "select":
        raise source.error(select.key.upper(), f"found {select.key.upper()}; supported: {GRAMMAR}")
    return source


def without_parentheses(node: Node) -> Node:
    """The node inside any number of parentheses."""
    while node.key == "paren":
        node = node.this
    return node


def plain(node: Node) -> str:
    """A part of a query as text, as DuckDB would be asked: the name of a column that has none of its own."""
    return str(node.sql(dialect="duckdb", comments=False))


def _check_statement(text: str, words: Sequence[tuple[int, str]]) -> None:
    """One statement, and it begins as a SELECT does."""
    if not words:
        raise _error(text, 0, f"the query is empty; supported: {GRAMMAR}")
    start, word = words[0]
    if word not in ("SELECT", "FROM", "("):
        raise _error(text, start, f"found {word[:40]}, where a query begins; supported: [EXPLAIN] {GRAMMAR}")
    ends = [place for place, (_, found) in enumerate(words) if found == ";"]
    if ends and ends[0] + 1 < len(words):
        raise _error(text, words[ends[0] + 1][0], "found a second statement; supported: one SELECT at a time")


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
