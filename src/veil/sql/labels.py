"""Labels of public columns that a query compares with and that nobody can have: most are misspelt.

Such a comparison holds for nobody, which is an answer, and an exact one; so it is said beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from veil.sql.columns import Category
from veil.sql.source import read, without_parentheses
from veil.tools.messages import unknown_name

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

    from veil.sql.table import Table

__all__ = ["unknown_labels"]


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
    return f"no row has this label: {unknown_name(f'a label of {column.name}', label, column.labels)}"
