"""How long the texts of a public expression can become, before anything is evaluated.

A few calls of replace inside each other make a text of any length out of a short query. What could become longer than
the limit is refused, whatever it would be in fact. DuckDB keeps all texts that the expressions of a query make for a
vector of rows, and its memory limit does not count them: `veil.sql.costs` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

    from veil.errors import SqlError

__all__ = ["MOST_BYTES", "Lengths", "check_lengths"]

MOST_BYTES = 1 << 16
_NUMBER = 40  # bytes of a number, a date or a truth value, at most
_NO_TEXT = frozenset(  # sqlglot's kinds of nodes that are numbers, dates or truth values
    re.findall(
        r"\w+",
        "add sub mul div intdiv mod neg and or not eq neq lt lte gt gte nullsafeeq nullsafeneq between in is like "
        "ilike escape interval extract length contains startswith endswith regexplike regexpilike regexpfullmatch",
    )
)
_NO_COPY = frozenset({"paren", "case", "if", "coalesce", "nullif"})  # these return one of their arguments as it is


class Lengths(NamedTuple):
    """Upper bounds on the texts of an expression, in bytes of UTF-8."""

    result: int
    """The text that the expression returns."""
    made: int = 0
    """All texts together that its functions make for one row."""


def check_lengths(node: Node, column: Callable[[Node], int], refused: Callable[[Node, str], SqlError]) -> Lengths:
    """Return how long the texts of an expression can be; raise what `refused` makes where one can be too long.

    `column` tells how long the text of a column can be.
    """
    made = 0
    if node.key == "literal":
        found = len(node.this.encode())
    elif node.key == "column":
        found = column(node)
    elif node.key in ("identifier", "datatype", "datatypeparam", "var"):
        return Lengths(0)
    else:
        parts = dict[str, int]()
        for name, held in node.args.items():
            inner = held if isinstance(held, list) else [held]
            if all(hasattr(one, "key") for one in inner):
                lengths = [check_lengths(one, column, refused) for one in inner]
                parts[name] = sum(one.result for one in lengths)
                made += sum(one.made for one in lengths)
        found = _NUMBER if node.key in _NO_TEXT else _made(node, parts)
        made += 0 if node.key in _NO_TEXT or node.key in _NO_COPY else found
    if found > MOST_BYTES:
        raise refused(node, f"this could become a text of more than {MOST_BYTES:,} bytes")
    return Lengths(found, made)


def _made(node: Node, parts: dict[str, int]) -> int:
    """What a function makes of its arguments."""
    if node.key in ("replace", "regexpreplace"):
        return 2 * (parts.get("this", 0) + 1) * (parts.get("replacement", 0) + 1)
    if node.key == "timetostr":  # %A and the like stand for whole words
        return _NUMBER * (1 + parts.get("format", 0))
    return sum(parts.values()) + (0 if node.key in ("paren", "dpipe", "concat") else _NUMBER)
