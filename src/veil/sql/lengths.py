"""How long the texts of a public expression can become, before anything is evaluated.

A few calls of replace inside each other make a text of any length out of a short query. What could become longer than
the limit is refused, whatever it would be in fact. DuckDB keeps all texts that the expressions of a query make for a
vector of rows, and its memory limit does not count them: `veil.sql.costs` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    copies: int = 0
    """The sum of all texts that its functions return for one row."""


def check_lengths(node: Node, column: Callable[[Node], int], refused: Callable[[Node, str], SqlError]) -> Lengths:
    """Return upper bounds on the texts of an expression; raise the error of `refused` if a text can be too long.

    `column` returns the maximum length of the text of a column.
    """
    if node.key in ("identifier", "datatype", "datatypeparam", "var"):
        return Lengths(0)
    copies = 0
    if node.key == "literal":
        length = len(node.this.encode())
    elif node.key == "column":
        length = column(node)
    else:
        arguments = {name: [check_lengths(x, column, refused) for x in parts] for name, parts in _arguments(node)}
        length = _result_length(node, {name: sum(x.result for x in parts) for name, parts in arguments.items()})
        copies = sum(x.copies for parts in arguments.values() for x in parts)
        copies += 0 if node.key in _NO_TEXT | _NO_COPY else length
    if length > MOST_BYTES:
        raise refused(node, f"this could become a text of more than {MOST_BYTES:,} bytes")
    return Lengths(length, copies)


def _arguments(node: Node) -> Iterator[tuple[str, list[Node]]]:
    for name, value in node.args.items():
        parts = value if isinstance(value, list) else [value]
        if all(hasattr(part, "key") for part in parts):
            yield name, parts


def _result_length(node: Node, parts: dict[str, int]) -> int:
    """Return an upper bound on the text that a function returns for arguments of these lengths."""
    if node.key in _NO_TEXT:
        return _NUMBER
    if node.key in ("replace", "regexpreplace"):
        return 2 * (parts.get("this", 0) + 1) * (parts.get("replacement", 0) + 1)
    if node.key == "timetostr":  # %A and the like stand for whole words
        return _NUMBER * (1 + parts.get("format", 0))
    return sum(parts.values()) + (0 if node.key in ("paren", "dpipe", "concat") else _NUMBER)
