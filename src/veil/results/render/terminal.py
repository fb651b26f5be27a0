"""Any result in a terminal, by rich. A number, a time, an interval or an item is never cut.

If a table is too wide, its bars are dropped first; then labels wrap, and sets wrap between items; if that is not
enough, each row becomes a block of lines. Labels are escaped, so that they cannot format the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from veil.results.base import Result, Truth
from veil.results.render.layout import ResultLayout, TextColumn, show

_BAR, _GAP = 12, 2
_LEAST = 16
"""A label that must be folded anyway gets at least this number of columns."""


def render(
    result: Result,
    *,
    level: float = 0.95,
    top: int = 10,
    title: str | None = None,
    truth: Truth | None = None,
    hide: str | None = None,
) -> Rendered:
    """What `console.print` shows of a result: the `top` most important rows, the facts and the remarks.

    `truth` is the true share of each row, or a mapping from values to shares. `hide` leaves out what is not
    significant, and says how to see it: see `Result.told`.

    >>> from rich.console import Console
    >>> from veil import OLH, simulate
    >>> found = simulate(OLH(epsilon=3.0, domain=["tea", "coffee"]), ["tea"] * 700 + ["coffee"] * 300, seed=1)
    >>> Console(width=60).print(render(found, title="drinks"))  # doctest: +ELLIPSIS
    drinks
    ...
    """
    shown = []
    for number, part in result.parts():
        named = title or ""
        if number is not None:
            named = f"{title + ', ' if title else ''}question {number}"
        shown.append(show(part, level=level, top=top, title=named, truth=truth, hide=hide))
    return Rendered(tuple(shown))


@dataclass(frozen=True)
class Rendered:
    """Results as rich prints them, at any width."""

    shown: tuple[ResultLayout, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for i, one in enumerate(self.shown):
            if i:
                yield Text("")
            for line in _lines(one, _Page(console, options.max_width)):
                line.no_wrap, line.overflow = True, "ignore"
                yield line


@dataclass(frozen=True)
class _Page:
    """Where lines are made to fit."""

    console: Console
    width: int

    def wrapped(self, text: str, width: int) -> list[str]:
        """Lines of at most `width` columns: between words where possible."""
        if cell_len(text) <= width:
            return [text]
        lines = Text(text).wrap(self.console, max(width, 1), overflow="fold")
        return [line.plain.rstrip() for line in lines]

    def cell(self, cells: TextColumn, row: int, width: int) -> list[str]:
        """One cell in lines: sets break between items, other text between words."""
        if cells.items is None:
            return self.wrapped(cells.texts[row], width) if cells.unit.is_text else [cells.texts[row]]
        lines: list[str] = []
        for i, item in enumerate(cells.items[row]):
            part = f"+ {item}" if i else item
            if lines and cell_len(lines[-1]) + 1 + cell_len(part) <= width:
                lines[-1] += f" {part}"
            else:
                lines += self.wrapped(part, width)
        return lines or [""]


def _lines(one: ResultLayout, page: _Page) -> Iterator[Text]:
    for line in page.wrapped(one.title, page.width):
        yield Text(line, style="bold")
    if one.grid and one.grid[0].texts:
        yield Text("")
        yield from _grid(one.grid, page, one.bars, one.faint)
    if one.left_out > 0:
        yield from (Text(line, style="dim") for line in page.wrapped(f"and {one.left_out:,} more", page.width))
    if one.pairs:
        yield Text("")
        yield from _pairs(one.pairs, page)
    for title, cells in one.lists:
        yield Text("")
        yield Text(title, style="bold")
        yield from _grid(cells, page)
    if one.remarks:
        yield Text("")
    for remark in one.remarks:
        yield from (Text(line, style="yellow") for line in page.wrapped(remark, page.width))


def _grid(
    grid: Sequence[TextColumn], page: _Page, bars: Sequence[float] = (), faint: Sequence[bool] = ()
) -> Iterator[Text]:
    widths = _widths(grid, page.width)
    if widths is None:
        for row in range(len(grid[0].texts)):
            yield from _block(grid, row, page)
        return
    drawn = bool(bars) and sum(widths) + _GAP * len(widths) + _BAR <= page.width
    headings = [page.wrapped(cells.heading, width) for cells, width in zip(grid, widths, strict=True)]
    yield from (Text(line, style="bold") for line in _beside(headings, grid, widths))
    yield Text("\N{BOX DRAWINGS LIGHT HORIZONTAL}" * (sum(widths) + _GAP * (len(widths) - 1)), style="dim")
    for row in range(len(grid[0].texts)):
        cells = [page.cell(column, row, width) for column, width in zip(grid, widths, strict=True)]
        for i, line in enumerate(_beside(cells, grid, widths)):
            text = Text(line, style="dim" if faint and faint[row] else "")
            length = round(_BAR * bars[row]) if drawn and not i else 0
            if length:
                pad = sum(widths) + _GAP * len(widths) - cell_len(line)
                text.append(" " * pad + "\N{BLACK SQUARE}" * length, style="blue")
            yield text


def _beside(cells: Sequence[list[str]], grid: Sequence[TextColumn], widths: Sequence[int]) -> Iterator[str]:
    """Cells of several lines next to each other; numbers to the right."""
    for i in range(max(map(len, cells))):
        parts = []
        for lines, column, width in zip(cells, grid, widths, strict=True):
            line = lines[i] if i < len(lines) else ""
            pad = " " * (width - cell_len(line))
            parts.append(line + pad if column.unit.is_text else pad + line)
        yield (" " * _GAP).join(parts).rstrip()


def _widths(grid: Sequence[TextColumn], width: int) -> list[int] | None:
    """How wide each column is; None where numbers and whole items do not fit beside each other."""
    natural = [max(_heading_width(cells), *map(cell_len, cells.texts)) for cells in grid]
    over = sum(natural) + _GAP * (len(grid) - 1) - width
    least = [_least(cells, full, width) for cells, full in zip(grid, natural, strict=True)]
    while over > 0:
        spare = [full - small for full, small in zip(natural, least, strict=True)]
        widest = max(range(len(grid)), key=lambda i: (spare[i] > 0, natural[i]))
        if spare[widest] <= 0:
            return None
        natural[widest] -= 1
        over -= 1
    return natural


def _least(cells: TextColumn, full: int, width: int) -> int:
    """The fewest columns that cut nothing: of text, its longest word or item, unless no line has room for that."""
    if not cells.unit.is_text:
        return full
    if cells.items is None:
        longest = max((cell_len(word) for text in cells.texts for word in text.split()), default=0)
    else:
        longest = max((cell_len(item) + 2 for items in cells.items for item in items), default=0)
    longest = longest if longest <= width else min(full, _LEAST)
    return max(_heading_width(cells), longest)


def _heading_width(cells: TextColumn) -> int:
    """Headings wrap, between words."""
    return max(map(cell_len, cells.heading.split()), default=0)


def _block(grid: Sequence[TextColumn], row: int, page: _Page) -> Iterator[Text]:
    """One row as lines: its first cell, then the others by name."""
    first = grid[0]
    bare = first.unit.is_text or first.heading == "range"
    lines = page.cell(first, row, page.width) if bare else [f"{first.heading} {first.texts[row]}"]
    yield from (Text(line, style="bold") for line in lines)
    narrow = _Page(page.console, page.width - _GAP)
    wide = narrow.width - _GAP
    for line in _pairs([(cells.heading, page.cell(cells, row, wide)) for cells in grid[1:]], narrow):
        yield Text(" " * _GAP) + line


def _pairs(pairs: Sequence[tuple[str, Any]], page: _Page) -> Iterator[Text]:
    """Names and texts in two columns; a text that has no room there stands below its name."""
    most = max(cell_len(name) for name, _ in pairs)
    for name, text in pairs:
        lines = text if isinstance(text, list) else [text]
        if len(lines) == 1 and most + _GAP + cell_len(lines[0]) <= page.width:
            yield Text.assemble((name + " " * (most + _GAP - cell_len(name)), "bold"), lines[0])
            continue
        yield from (Text(line, style="bold") for line in page.wrapped(name, page.width))
        for line in lines:
            yield from (Text(" " * _GAP + part) for part in page.wrapped(line, page.width - _GAP))
