"""Any result as texts in rows and columns, for the terminal and for notebooks. Bounds of an interval share one cell.

Everything here is read from tables, facts and their units, independent of the kind of result. `to_html` renders the
same cells as HTML, with all text escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from veil.results.base import Result, Truth
from veil.results.units import Unit, key_columns, named_keys
from veil.tools.messages import escape_text

if TYPE_CHECKING:
    import pyarrow


MOST_LISTED = 20
"""How many rows are shown of a list beside the table: quantiles, rounds, rules."""

_HEADINGS = {"frequency": "share", "stderr": "standard error", "std": "standard deviation"}


@dataclass(frozen=True)
class TextColumn:
    """One column of texts. `texts` may wrap where it is text; a number, a time or an interval never does."""

    heading: str
    texts: list[str]
    unit: Unit
    items: list[list[str]] | None = None
    """The items of each cell, where a cell is a set: between them it may wrap."""


@dataclass(frozen=True)
class ResultLayout:
    """One result for people to read: a grid with one row per value, or pairs of names and texts where it is one row."""

    title: str
    grid: list[TextColumn]
    pairs: list[tuple[str, str]]
    lists: list[tuple[str, list[TextColumn]]]
    remarks: list[str]
    bars: list[float]
    """What share of the largest one each row of the grid has; empty where rows have no shares."""
    faint: list[bool]
    """Rows that may be noise."""
    left_out: int
    """How many rows of the table are not shown."""


def show(
    result: Result,
    *,
    level: float = 0.95,
    top: int = 10,
    title: str = "",
    truth: Truth | None = None,
    hide: str | None = None,
) -> ResultLayout:
    """Everything that is shown of one result; of lists among its facts, at most MOST_LISTED rows.

    With `hide`, which says how to see everything, what is not significant is left out: see `Result.told`.
    """
    told = result.told(level, top, truth, hide=hide is not None)
    table = told.table
    grid = result_cells(table, level)
    units, facts = result.fact_units(), result.facts(level)
    alone = table.num_rows == 1 and (table.column_names[0] in facts or named_keys(table) == [])
    pairs: list[tuple[str, str]] = []
    if alone:  # a mean: its columns stand below each other, and are not told twice
        pairs = [(cells.heading, cells.texts[0]) for cells in result_cells(table, level, errors=True)]
        facts = {name: fact for name, fact in facts.items() if name not in table.column_names}
    said = [*result.remarks(), *told.remarks(hide)]
    pairs += fact_pairs({name: fact for name, fact in facts.items() if fact not in said}, units, level)
    shares = [share or 0.0 for share in table["frequency"].to_pylist()] if "frequency" in table.column_names else []
    most = max(shares, default=0.0)
    bars = [max(share, 0.0) / most for share in shares] if most > 0 else []
    verdict = next((name for name in ("significant", "changed") if name in table.column_names), None)
    doubtful = [] if verdict is None else table[verdict].to_pylist()
    return ResultLayout(
        title or _title(result),
        [] if alone else grid,
        pairs,
        fact_lists(facts, units, level),
        [escape_text(remark) for remark in said],
        bars,
        [sure is False for sure in doubtful],
        0 if alone else told.more,
    )


def result_cells(table: pyarrow.Table, level: float, *, errors: bool = False) -> list[TextColumn]:
    """The columns of a table; standard errors are left out beside intervals, which say the same, unless asked for."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    units = {field.name: Unit.of_field(field) for field in table.schema}
    named = named_keys(table)
    if named is not None:
        return _named_cells(columns, units, level, errors=errors)
    keys = key_columns(table) if "frequency" in columns and "from" not in columns else []
    return _cells(columns, units, level, errors=errors, keys=keys)


def fact_pairs(facts: Mapping[str, Any], units: Mapping[str, Unit], level: float) -> list[tuple[str, str]]:
    """Facts that are single numbers or texts, by heading; what is not known, and lists, are left out."""
    single = {name: [fact] for name, fact in facts.items() if not isinstance(fact, list) and fact is not None}
    cells = _cells(single, {name: units.get(name) or _usual(column[0]) for name, column in single.items()}, level)
    return [(column.heading, column.texts[0]) for column in cells]


def fact_lists(facts: Mapping[str, Any], units: Mapping[str, Unit], level: float) -> list[tuple[str, list[TextColumn]]]:
    """Facts that are lists of objects, as columns under a title."""
    made = []
    for name, rows in facts.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            columns = {key: [row[key] for row in rows[:MOST_LISTED]] for key in rows[0]}
            own = {key: units.get(f"{name}.{key}") or _usual(column[0]) for key, column in columns.items()}
            shown = f", {MOST_LISTED} of {len(rows):,}" if len(rows) > MOST_LISTED else ""
            made.append((f"{_heading(name)}{shown}", _cells(columns, own, level)))
    return made


def _cells(
    columns: Mapping[str, Sequence[Any]],
    units: Mapping[str, Unit],
    level: float,
    *,
    errors: bool = False,
    keys: Sequence[str] = (),
) -> list[TextColumn]:
    made = [_one(escape_text(name.replace("_", " ")), columns[name], units[name]) for name in keys]  # as they are named
    for name, column in columns.items():
        unit = units[name]
        if name in keys:
            continue
        if name.endswith("high") and _low(name) in columns:
            continue  # stands beside the low end
        if name == "to" and "from" in columns:
            continue
        if name.endswith("stderr") and not errors and f"{name.removesuffix('stderr')}low" in columns:
            continue
        if name == "from" and "to" in columns:
            pairs = zip(column, columns["to"], strict=True)
            made.append(TextColumn("range", [_range(unit, low, high) for low, high in pairs], unit))
        elif name.endswith("low") and (high := f"{name.removesuffix('low')}high") in columns:
            ends = [unit.interval(*pair) for pair in zip(column, columns[high], strict=True)]
            interval = f"{100 * level:g} % interval"
            of = _heading(name.removesuffix("low").rstrip("_"))
            made.append(TextColumn(f"{of}, {interval}" if of else interval, ends, unit))
        else:
            made.append(_one(_heading(name), column, unit))
    return made


def _named_cells(
    columns: Mapping[str, Sequence[Any]], units: Mapping[str, Unit], level: float, *, errors: bool
) -> list[TextColumn]:
    """Columns under their own names, which mean nothing here: an interval is known by what stands before it."""
    made, names, place = [], list(columns), 0
    while place < len(names):
        name = names[place]
        unit, heading, of = units[name], escape_text(name), [f"{name}_{part}" for part in ("stderr", "low", "high")]
        made.append(_one(heading, columns[name], unit))
        place += 1
        if names[place : place + 3] != of:
            continue
        if errors:
            made.append(_one(f"{heading}, {_HEADINGS['stderr']}", columns[of[0]], unit))
        ends = [unit.interval(*pair) for pair in zip(columns[of[1]], columns[of[2]], strict=True)]
        interval = f"{100 * level:g} % interval"
        made.append(TextColumn(f"{heading}, {interval}" if errors else interval, ends, unit))
        place += 3
    return made


def _one(heading: str, column: Sequence[Any], unit: Unit) -> TextColumn:
    items = [[Unit("label").text(item) for item in cell] for cell in column] if unit.name == "items" else None
    return TextColumn(heading, [unit.text(cell) for cell in column], unit, items)


def _low(name: str) -> str:
    return f"{name.removesuffix('high')}low"


def _range(unit: Unit, low: Any, high: Any) -> str:
    return unit.text(low) if low == high else unit.interval(low, high)


def _heading(name: str) -> str:
    of, _, what = name.rpartition("_")
    if of and what in _HEADINGS:
        return f"{_heading(of)}, {_HEADINGS[what]}"
    return _HEADINGS.get(name, escape_text(name.replace("_", " ")))


def _usual(fact: Any) -> Unit:
    """What a fact without a unit is taken for."""
    if isinstance(fact, bool):
        return Unit("flag")
    return Unit("people" if isinstance(fact, int) else "length" if isinstance(fact, float) else "label")


def _title(result: Result) -> str:
    promise = "" if result.guarantee is None else f", each guarantees {result.guarantee}"
    steps = f"; {' > '.join(result.lineage)}" if result.lineage else ""
    return escape_text(result.answered() + promise + steps)


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


def _part(one: ResultLayout) -> str:
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


def _table(grid: Sequence[TextColumn]) -> str:
    head = "".join(f"<th>{escape(cells.heading)}</th>" for cells in grid)
    rows = []
    for row in range(len(grid[0].texts)):
        cells = (_cell(column.texts[row], left=column.unit.is_text) for column in grid)
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(text: str, *, left: bool = True) -> str:
    return f'<td style="text-align: {"left" if left else "right"}">{escape(text)}</td>'
