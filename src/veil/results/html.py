"""Any result in a notebook: the same cells as in the terminal, as HTML. All text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from veil.results.base import Result, Truth
from veil.results.cells import Cells, Shown, show

__all__ = ["to_html"]


def to_html(result: Result, *, level: float = 0.95, top: int = 20, truth: Truth | None = None) -> str:
    """The `top` most important rows, the facts and the remarks.

    >>> from veil import OLH, simulate
    >>> "&lt;b&gt;" in to_html(simulate(OLH(1.0, ["<b>", "tea"]), ["tea"] * 100, seed=1))
    True
    """
    parts = []
    for number, part in result.parts():
        title = "" if number is None else f"question {number}"
        parts.append(_part(show(part, level=level, top=top, title=title, truth=truth)))
    return f'<div class="veil-result">{"".join(parts)}</div>'


def _part(one: Shown) -> str:
    made = [f"<p><strong>{escape(one.title)}</strong></p>"]
    if one.grid:
        made.append(_table(one.grid))
    if one.left_out > 0:
        made.append(f"<p>and {one.left_out:,} more</p>")
    if one.pairs:
        rows = (f'<tr><th style="text-align: left">{escape(name)}</th>{_cell(text)}</tr>' for name, text in one.pairs)
        made.append(f"<table><tbody>{''.join(rows)}</tbody></table>")
    made += [f"<p><strong>{escape(title)}</strong></p>{_table(cells)}" for title, cells in one.lists]
    made += [f"<p><em>{escape(remark)}</em></p>" for remark in one.remarks]
    return "".join(made)


def _table(grid: Sequence[Cells]) -> str:
    head = "".join(f"<th>{escape(cells.heading)}</th>" for cells in grid)
    rows = []
    for row in range(len(grid[0].texts)):
        cells = (_cell(column.texts[row], left=column.unit.is_text) for column in grid)
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(text: str, *, left: bool = True) -> str:
    return f'<td style="text-align: {"left" if left else "right"}">{escape(text)}</td>'
