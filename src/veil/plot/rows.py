"""Rows of a table as points with intervals: estimates, differences, answers to queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.plot.axes import (
    DOT,
    INK,
    TRUTH,
    Floats,
    Overlay,
    as_result,
    finish,
    new_axes,
    one_legend,
    percent,
    pyplot,
    thousands,
    title_of,
)
from veil.results.units import Unit, key_texts

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from veil.results.base import Result

__all__ = ["plot_change", "plot_measured", "plot_panels", "plot_rows"]

_BESIDE = (0.0, 0.22, -0.22, 0.36, -0.36)
"""How far below its value's line each result on the same axes stands."""
_IN = {"share": ", in percentage points", "duration": ", in seconds"}


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

    On axes that hold rows, those of the same values stand beside them, and others below. `hide` leaves out what is not
    significant, as `Result.told` does; `note` stands above, and `label` in the legend.
    """
    on, overlay = _rows_on(ax), Overlay(ax, found, label)
    table = found.told(0.95, k, truth, hide=hide).table
    if on:
        table = _with_those_on(found, table, on, truth)
    ax = ax or new_axes(found.plot_height(k))
    texts = key_texts(table)
    names = list(dict.fromkeys([*on, *texts])) if on else texts
    rows = np.array([names.index(text) for text in texts] if on else range(len(texts)), dtype=np.float64)
    _draw_rows(ax, found, table, rows + _BESIDE[overlay.number % len(_BESIDE)], overlay)
    if truth is not None:
        ax.plot(percent(table, "truth"), rows, "|", ms=11, mew=2, color=TRUTH, label="truth")
    ax.set_yticks(range(len(names)), names, parse_math=False)  # a label may hold dollars
    ax.set_ylim(max(len(names), 1) - (0.5 if overlay.first else 0.3), -0.5)  # the largest on top
    told = f"% of {found.population:,} people"
    ax.set_xlabel(told if overlay.first or ax.get_xlabel() == told else "% of people")
    thousands(ax.xaxis)
    cut = f"{table.num_rows:,} of {len(found):,} rows" if table.num_rows < len(found) else None
    finish(ax, found if overlay.first else None, grid="x", notes=(cut, note))
    _legend_below(ax, found.plot_height(len(names)))
    return ax


def _draw_rows(ax: Axes, found: Result, table: pyarrow.Table, places: Floats, overlay: Overlay) -> None:
    """Points with their intervals, and from where on they are significant."""
    column = "frequency" if "frequency" in table.column_names else "difference"
    shown, low, high = (percent(table, name) for name in (column, "low", "high"))
    colour = overlay.colour
    drawn: Any
    if np.isnan(low).all() and len(low):
        (drawn,) = ax.plot(shown, places, "o", ms=5, color=colour, label=f"{overlay.label}, error not known")
    else:
        reach = np.maximum([shown - low, high - shown], 0.0)  # an estimate below 0 lies outside its interval
        named = f"{overlay.label}, 95 % interval"
        drawn = ax.errorbar(shown, places, xerr=reach, fmt="o", ms=5, capsize=3, color=colour, label=named)
        floor = found.facts().get("threshold")
        if floor is not None and len(found.lineage) < 2:  # significance is judged before post-processing moves points
            first = overlay.first
            ax.axvline(floor * 100, ls=":", lw=1, color=INK if first else colour, label="significant above")
    as_result(drawn)


def _rows_on(ax: Axes | None) -> list[str]:
    """The values that rows were drawn for on some axes; none if they hold something else."""
    from matplotlib.ticker import FixedLocator

    if ax is None or not isinstance(ax.yaxis.get_major_locator(), FixedLocator):
        return []
    return [tick.get_text() for tick in ax.get_yticklabels()]


def _with_those_on(found: Result, table: pyarrow.Table, on: Sequence[str], truth: Any) -> pyarrow.Table:
    """The rows of a table, and those of the values that are on the axes already."""
    whole = found.told(0.95, len(found), truth).table
    wanted = {*on, *key_texts(table)}
    return whole.take(np.flatnonzero([text in wanted for text in key_texts(whole)]))


def _legend_below(ax: Axes, height: float) -> None:
    """A legend that covers no row: below the axis' label, in a figure of ours; which is as high as its rows need."""
    if ax.figure.get_layout_engine() is None:
        one_legend(ax, loc="best")
        return
    if len(ax.figure.axes) == 1 and height > ax.figure.get_figheight():  # type: ignore[union-attr]
        ax.figure.set_figheight(height)  # type: ignore[union-attr]  # axes made here belong to a Figure
    one_legend(ax, ncols=3, loc="upper right", bbox_to_anchor=(1.0, 0.0), borderaxespad=4.5)


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
    ax = ax or new_axes(found.plot_height(k))
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
    ax.set_yticks(places, _row_labels(table), parse_math=False)  # a label may hold dollars
    ax.set_ylim(max(table.num_rows, 1) - 0.5, -0.5)
    ax.set_xlabel("after less before" + _IN.get(unit.name, ""))
    thousands(ax.xaxis)
    finish(ax, found, grid="x")
    _legend_below(ax, found.plot_height(k))
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
    labels = key_texts(found.table().slice(0, k))
    places = np.arange(len(labels))
    for panel, (name, (values, ends)) in zip(axes, shown.items(), strict=True):
        reach = np.abs(ends - values[:, np.newaxis])[:k].T
        panel.errorbar(values[:k], places, xerr=reach, fmt="o", ms=5, capsize=3, color=DOT)
        panel.set_yticks(places, labels, parse_math=False)  # a label may hold dollars
        panel.set_ylim(max(len(labels), 1) - 0.5, -0.5)  # the first on top
        thousands(panel.xaxis)
        panel.set_xlabel(f"{name}, with 95 % interval", parse_math=False)
        finish(panel, None, grid="x")
    cut = f"{len(labels):,} of {len(found):,} rows" if len(labels) < len(found) else None
    axes[0].set_title(title_of(found, (cut,)), loc="left", fontsize=10, color=INK)
    first: Axes = axes[0]
    return first


def plot_panels(results: Sequence[Result], k: int = 20) -> list[Axes]:
    """One panel for each result, below each other in one figure."""
    heights = [result.plot_height(k) for result in results]
    _, axes = pyplot().subplots(len(results), figsize=(8.0, sum(heights)), height_ratios=heights, layout="constrained")
    return [result.plot(k, ax=ax) for result, ax in zip(results, np.atleast_1d(axes), strict=True)]


def _row_labels(table: pyarrow.Table) -> list[str]:
    """What stands beside each row: its value, the range that it covers, or nothing for a single row."""
    if table.column_names[0] == "from":
        unit, ends = Unit.of_field(table.schema.field(0)), (table[name].to_pylist() for name in ("from", "to"))
        return [unit.interval(*pair) for pair in zip(*ends, strict=True)]
    return key_texts(table) if table.column_names[0] == "value" else [""] * table.num_rows
