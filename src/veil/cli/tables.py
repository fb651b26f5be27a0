"""Plain tables for people to read, of what is not a result. No label can format the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from veil.tools.messages import escape_text

if TYPE_CHECKING:
    from veil.cli.screen import Screen

__all__ = ["facts_table", "plain_table", "show_facts"]

_MOST_NESTED = 12


def show_facts(screen: Screen, facts: Mapping[str, Any]) -> None:
    """Facts in two columns; where no terminal is wrapping them, one line for each, however long."""
    if screen.is_terminal:
        screen.print(facts_table(facts))
        return
    width = max(map(len, facts), default=0)
    for name, line in _lines(facts):
        screen.print_line(f"{name:{width}} {' '.join(line.split())}".rstrip())


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Two columns: what, and the answer."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, line in _lines(facts):
        table.add_row(escape_text(name), Text(escape_text(line)))
    return table


def _lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, fact in facts.items():
        lines = fact if isinstance(fact, list) and fact and isinstance(fact[0], dict) else [fact]
        for line in lines:
            yield name, _plain(line)


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of text, its first column in bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(Text(escape_text(heading)), no_wrap=not i, style="" if i else "bold")
    for row in rows:
        table.add_row(*(Text(escape_text(cell)) for cell in row))
    return table


def _plain(fact: Any) -> str:
    if fact is None:
        return "-"
    if isinstance(fact, dict):  # of what is described inside, its kind: a domain may have thousands of labels
        inner = {name: value.get("kind", "...") if isinstance(value, dict) else value for name, value in fact.items()}
        return ", ".join(f"{name} {_nested(value)}" for name, value in inner.items())
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def _nested(value: Any) -> str:
    """What stands inside a list of facts: the first of many."""
    if not isinstance(value, list):
        return str(value)
    more = [f"and {len(value) - _MOST_NESTED:,} more"] if len(value) > _MOST_NESTED else []
    return f"({', '.join([*map(_nested, value[:_MOST_NESTED]), *more])})"
