"""Labels of public columns that a query compares with and that nobody can have: most are misspelt.

Such a comparison holds for nobody, which is an answer, and an exact one; so it is said beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from veil.sql.columns import Category
from veil.sql.source import read, without_parentheses

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

    from veil.sql.table import Table

__all__ = ["unknown_labels"]

_MOST_LISTED = 6


def unknown_labels(text: str, table: Table) -> tuple[str, ...]:
    """A remark for each label in a query that the public column beside it does not have, with those near it."""
    known = {column.name.casefold(): column for column in table.public if isinstance(column, Category)}
    said = (
        _remark(column, label) for column, label in _compared(read(text).select, known) if label not in column.labels
    )
    return tuple(dict.fromkeys(said))


def _compared(select: Node, known: dict[str, Category]) -> Iterator[tuple[Category, str]]:
    """The columns that are compared with labels, as they stand: not what functions make of them."""
    for node in select.walk():
        if node.key not in ("eq", "neq", "in"):
            continue
        sides = [without_parentheses(one) for one in (node.this, node.args.get("expression"), *node.expressions) if one]
        columns = [known[one.name.casefold()] for one in sides if one.key == "column" and one.name.casefold() in known]
        for column in columns:
            yield from ((column, one.name) for one in sides if one.key == "literal" and one.is_string)


def _remark(column: Category, label: str) -> str:
    folded = {str(one).casefold(): str(one) for one in column.labels}
    near = [folded[one] for one in get_close_matches(label.casefold(), folded)]
    if near:
        return f"nobody has the label '{label}' of {column.name}; near it is {' or '.join(near)}"
    more = ", ..." if len(column.labels) > _MOST_LISTED else ""
    return f"nobody has the label '{label}' of {column.name}, which is {', '.join(column.labels[:_MOST_LISTED])}{more}"
