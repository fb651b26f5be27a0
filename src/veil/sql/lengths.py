"""How long the texts of a public expression can become, before anything is evaluated.

A few calls of replace inside each other make a text of any length out of a short query. What could become longer than
the limit is refused, whatever it would be in fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

    from veil.errors import SqlError

__all__ = ["MOST_CHARACTERS", "check_lengths"]

MOST_CHARACTERS = 1 << 16
_NUMBER = 40  # characters of a number, a date or a truth value, at most
_NO_TEXT = frozenset(  # sqlglot's kinds of nodes that are numbers, dates or truth values
    re.findall(
        r"\w+",
        "add sub mul div intdiv mod neg and or not eq neq lt lte gt gte nullsafeeq nullsafeneq between in is like "
        "ilike escape interval extract length contains startswith endswith regexplike regexpilike regexpfullmatch",
    )
)


def check_lengths(node: Node, column: Callable[[Node], int], refused: Callable[[Node, str], SqlError]) -> int:
    """At most so many characters; raises what `refused` makes where there can be too many.

    `column` tells how long the text of a column can be.
    """
    if node.key == "literal":
        found = len(node.this)
    elif node.key == "column":
        found = column(node)
    elif node.key in ("identifier", "datatype", "datatypeparam", "var"):
        return 0
    else:
        parts = {
            name: sum(check_lengths(one, column, refused) for one in (held if isinstance(held, list) else [held]))
            for name, held in node.args.items()
            if hasattr(held, "key") or (isinstance(held, list) and all(hasattr(one, "key") for one in held))
        }
        found = _NUMBER if node.key in _NO_TEXT else _made(node, parts)
    if found > MOST_CHARACTERS:
        raise refused(node, f"this could become a text of more than {MOST_CHARACTERS:,} characters")
    return found


def _made(node: Node, parts: dict[str, int]) -> int:
    """What a function makes of its arguments."""
    if node.key in ("replace", "regexpreplace"):
        return 2 * (parts.get("this", 0) + 1) * (parts.get("replacement", 0) + 1)
    if node.key == "timetostr":  # %A and the like stand for whole words
        return _NUMBER * (1 + parts.get("format", 0))
    return sum(parts.values()) + (0 if node.key in ("paren", "dpipe", "concat") else _NUMBER)
