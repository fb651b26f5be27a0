"""Rows of a table as points with intervals: estimates, differences, answers to queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.results.render.plot.axes import (
    DOT,
    INK,
    TRUTH,
    Floats,
    Overlay,
    as_result,
    finish,
    legend_below,
    new_axes,
    percent,
    pyplot,
    short_labels,
    thousands,
    title_of,
)
from veil.results.units import Unit, key_columns, key_texts

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from veil.results.base import Result


_BESIDE = (0.0, 0.22, -0.22, 0.36, -0.36)
"""How far below its value's line each result on the same axes stands."""
_IN = {"share": ", in percentage points", "duration": ", in seconds"}


@dataclass(eq=False)
class _Layer:
    """The rows of one result on some axes. They are drawn again where another result brings further values."""

    found: Result
    table: pyarrow.Table
    truth: Any
    overlay: Overlay
    handles: list[Any] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The values that it has rows for."""
        return key_texts(self.table)

    def draw(self, ax: Axes, names: Sequence[str]) -> None:
        """Points with their intervals beside the names, also those of values that only other results brought.

        A value that the result knows nothing about stays empty: it is neither in its domain nor among its candidates.
        """
        label = self.handles[0].get_label() if self.handles else None
        for before in self.handles:
            before.remove()
        self._complete(names)
        lines = {name: line for line, name in enumerate(names)}
        rows = np.array([lines[text] for text in self.texts], dtype=np.float64)
        places = rows + _BESIDE[self.overlay.number % len(_BESIDE)]
        self.handles = [self._points(ax, places, label)]
        self.handles[0]._veil_rows = self
        if self.truth is not None:
            known = percent(self.table, "truth")
            self.handles += ax.plot(known, rows, "|", ms=11, mew=2, color=TRUTH, label="truth")

    def _complete(self, names: Sequence[str]) -> None:
        """Add rows of further values. They were not picked for being large here: their intervals stand alone."""
        import pyarrow as pa

        lacking = set(names) - set(self.texts)
        if not lacking:
            return
        whole = self.found.told(0.95, len(self.found), self.truth).table
        further = whole.take(np.flatnonzero([text in lacking for text in key_texts(whole)]))
        columns = [name for name in further.column_names if name in self.table.column_names]
        self.table = pa.concat_tables([self.table.select(columns), further.select(columns)])

    def _points(self, ax: Axes, places: Floats, label: str | None) -> Any:
        column = "frequency" if "frequency" in self.table.column_names else "difference"
        shown, low, high = (percent(self.table, name) for name in (column, "low", "high"))
        colour, named = self.overlay.colour, self.overlay.label
        handle: Any
        if np.isnan(low).all() and len(low):
            named = label or f"{named}, error not known"
            (handle,) = ax.plot(shown, places, "o", ms=5, color=colour, label=named)
        else:
            reach = np.maximum([shown - low, high - shown], 0.0)  # an estimate below 0 lies outside its interval
            named = label or f"{named}, 95 % interval"
            handle = ax.errorbar(shown, places, xerr=reach, fmt="o", ms=5, capsize=3, color=colour, label=named)
        as_result(handle)
        return handle


def plot_rows(
    found: Result,
    k: int = 20,
    *,
    truth: Any = None,
    note: str | None = None,
    ax: Axes | None = None,
    hide: bool = False,
    label: str | None = None,
) -> Axes:
    """The k most important rows of a table with 95 % intervals, beside the truth (one share for each row) if given.

    On axes that hold rows, those of the same values stand beside them, and others below: every result shows what it
    knows about all of them. `hide` leaves out what is not significant, as `Result.told` does; `note` stands above, and
    `label` in the legend.
    """
    overlay = Overlay(ax, found, label)
    own = _Layer(found, found.told(0.95, k, truth, hide=hide).table, truth, overlay)
    layers = [*(handle._veil_rows for handle in overlay.drawn if hasattr(handle, "_veil_rows")), own]
    names = list(dict.fromkeys(text for layer in layers for text in layer.texts))
    height = max(layer.found.plot_height(max(len(names), 1)) for layer in layers)
    drawn, ax = own.table.num_rows, ax or new_axes(height)
    for layer in layers:
        layer.draw(ax, names)
    _draw_floor(ax, own)
    if not names:
        ax.set_xlim(left=0.0, auto=None)  # there is nothing else to scale it by
    _name_rows(ax, names, ", ".join(key_columns(own.table)), room=0.5 if overlay.first else 0.3)
    told = f"% of {found.population:,} people"
    ax.set_xlabel(told if overlay.first or ax.get_xlabel() == told else "% of people")
    thousands(ax.xaxis)
    finish(ax, found if overlay.first else None, grid="x", notes=(_cut(drawn, len(found)), note))
    legend_below(ax, height)
    return ax


def _draw_floor(ax: Axes, layer: _Layer) -> None:
    """From where on rows are significant, where that is judged: before post-processing moves points."""
    floor, overlay = layer.found.facts().get("threshold"), layer.overlay
    if floor is not None and len(layer.found.lineage) < 2:
        ax.axvline(floor * 100, ls=":", lw=1, color=INK if overlay.first else overlay.colour, label="significant above")


def _name_rows(ax: Axes, names: Sequence[str], named: str, room: float = 0.5) -> None:
    """Rows from the top down with their names, what these are, and room below the last one."""
    ax.set_yticks(range(len(names)), short_labels(names), parse_math=False)  # a label may hold dollars
    ax.set_ylim(max(len(names), 1) - room, -0.5)
    ax.set_ylabel(named if names else "", parse_math=False)


def _cut(shown: int, every: int) -> str | None:
    """How many rows are left out, if any, or why there is nothing to see."""
    if not every:
        return "nothing was found"
    if not shown:
        return f"0 of {every:,} rows: nothing stands out of the noise"
    return f"{shown:,} of {every:,} rows" if shown < every else None


def plot_change(found: Result, k: int = 20, *, truth: Any = None, ax: Axes | None = None, hide: bool = False) -> Axes:
    """The k clearest differences with 95 % intervals, beside no change; changed ones are filled.

    `hide` leaves out what did not change, as `Result.told` does.
    """
    table = found.told(0.95, k, truth, hide=hide).table
    unit = Unit.of_field(table.schema.field("difference"))
    factor = 100.0 if unit.name == "share" else 1.0
    known = "low" in table.column_names
    columns = {
        name: np.asarray(table[name].to_numpy(), dtype=np.float64) * factor
        for name in ("difference", "low", "high", "truth")
        if name in table.column_names
    }
    shown, places = columns["difference"], np.arange(table.num_rows)
    height = found.plot_height(max(table.num_rows, 1))
    ax = ax or new_axes(height)
    ax.axvline(0.0, lw=1, color=INK)
    ax.plot(shown, places, "o", ms=5, mfc="white", color=DOT, label="difference")
    if known:
        reach = np.stack([shown - columns["low"], columns["high"] - shown])
        middles, half = shown + (reach[1] - reach[0]) / 2, reach.sum(axis=0) / 2  # an estimate may lie outside
        ax.errorbar(middles, places, xerr=half, fmt="none", capsize=3, color=DOT, label="95 % interval")
        changed = np.array(table["changed"].to_pylist(), dtype=bool)
        ax.plot(shown[changed], places[changed], "o", ms=5, color=DOT, label="changed")
    if truth is not None:
        ax.plot(columns["truth"], places, "|", ms=11, mew=2, color=TRUTH, label="truth")
    _name_rows(ax, *_row_labels(table))
    ax.set_xlabel("after less before" + _IN.get(unit.name, ""))
    thousands(ax.xaxis)
    ranged = "from" in table.column_names  # fewer ranges have all people in them, too
    cut = _cut(table.num_rows, table.num_rows if ranged and table.num_rows else len(found))
    finish(ax, found, grid="x", notes=(cut,))
    legend_below(ax, height)
    return ax


def plot_measured(
    found: Result, outputs: Mapping[str, tuple[Floats, Floats]], k: int = 20, *, ax: Axes | None = None
) -> Axes:
    """The first k rows as points with their ends (low and high in columns), one panel for each output by its name.

    Returns the first panel; given axes hold the first output.
    """
    from veil.results.answers import MOST_PANELS

    shown = dict(list(outputs.items())[: MOST_PANELS if ax is None else 1])
    if ax is None:
        size = (8.0, found.plot_height(k) * len(shown))
        axes = pyplot().subplots(len(shown), figsize=size, layout="constrained", squeeze=False)[1][:, 0]
    else:
        axes = [ax]
    table = found.table().slice(0, k)
    labels, keys = key_texts(table), key_columns(table)
    places = np.arange(len(labels))
    for panel, (name, (values, ends)) in zip(axes, shown.items(), strict=True):
        reach = np.abs(ends - values[:, np.newaxis])[:k].T
        panel.errorbar(values[:k], places, xerr=reach, fmt="o", ms=5, capsize=3, color=DOT)
        _name_rows(panel, labels, ", ".join(keys))
        thousands(panel.xaxis)
        panel.set_xlabel(f"{name}, with 95 % interval", parse_math=False)
        finish(panel, None, grid="x")
    title = title_of(found, (_cut(len(labels), len(found)),))
    axes[0].set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    first: Axes = axes[0]
    return first


def plot_panels(results: Sequence[Result], k: int = 20) -> list[Axes]:
    """One panel for each result, below each other in one figure."""
    heights = [result.plot_height(k) for result in results]
    _, axes = pyplot().subplots(len(results), figsize=(8.0, sum(heights)), height_ratios=heights, layout="constrained")
    return [result.plot(k, ax=ax) for result, ax in zip(results, np.atleast_1d(axes), strict=True)]


def _row_labels(table: pyarrow.Table) -> tuple[list[str], str]:
    """What stands beside each row, and what that is: a value, the range that it covers, or nothing for a single row."""
    if table.column_names[0] == "from":
        unit, ends = Unit.of_field(table.schema.field(0)), (table[name].to_pylist() for name in ("from", "to"))
        return [unit.interval(*pair) for pair in zip(*ends, strict=True)], "value"
    return (key_texts(table), "value") if table.column_names[0] == "value" else ([""] * table.num_rows, "")
