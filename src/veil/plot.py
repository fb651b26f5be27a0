"""Pictures of results. Needs matplotlib: `pip install veil[plot]`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.results.units import Unit, key_texts

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from veil.results.base import Result
    from veil.results.distribution import Distribution
    from veil.results.mean import Mean

__all__ = [
    "plot_cells",
    "plot_change",
    "plot_distribution",
    "plot_lines",
    "plot_mean",
    "plot_measured",
    "plot_panels",
    "plot_rows",
    "save",
]

Floats = NDArray[np.float64]

_INK, _DOT, _TRUTH = "#22303c", "#1f6feb", "#d1495b"


def plot_rows(
    found: Result,
    k: int = 20,
    *,
    truth: Any = None,
    note: str | None = None,
    ax: Axes | None = None,
    hide: bool = False,
) -> Axes:
    """The k most important rows of a table with 95 % intervals, beside the truth (one share for each row) if given.

    `hide` leaves out what is not significant, as `Result.told` does; `note` stands above.
    """
    table = found.told(0.95, k, truth, hide=hide).table
    column = "frequency" if "frequency" in table.column_names else "difference"
    shown, low, high = (_percent(table, name) for name in (column, "low", "high"))
    ax = ax or _axes(found.plot_height(k))
    places = np.arange(table.num_rows)
    if np.isnan(low).all() and len(low):
        ax.plot(shown, places, "o", ms=5, color=_DOT, label="estimate, error not known")
    else:
        reach = np.maximum([shown - low, high - shown], 0.0)  # an estimate below 0 lies outside its interval
        ax.errorbar(shown, places, xerr=reach, fmt="o", ms=5, capsize=3, color=_DOT, label="estimate, 95 % interval")
        floor = found.facts().get("threshold")
        if floor is not None and len(found.lineage) < 2:  # significance is judged before post-processing moves points
            ax.axvline(floor * 100, ls=":", lw=1, color=_INK, label="significant above")
    if truth is not None:
        ax.plot(_percent(table, "truth"), places, "|", ms=11, mew=2, color=_TRUTH, label="truth")
    ax.set_yticks(places, key_texts(table), parse_math=False)  # a label may hold dollars
    ax.set_ylim(max(table.num_rows, 1) - 0.5, -0.5)  # the largest on top
    ax.set_xlabel(f"% of {found.population:,} people")
    cut = f"{table.num_rows:,} of {len(found):,} rows" if table.num_rows < len(found) else None
    _finish(ax, found, grid="x", notes=(cut, note))
    below: dict[str, Any] = {"ncols": 3, "loc": "upper right", "bbox_to_anchor": (1.0, 0.0), "borderaxespad": 4.5}
    room = ax.figure.get_layout_engine() is not None  # then it stands below the axis' label, and covers no row
    ax.legend(frameon=False, fontsize=8, **(below if room else {"loc": "best"}))
    return ax


def plot_cells(
    found: Result, among: str, *, note: str | None = None, ax: Axes | None = None, hide: bool = False
) -> Axes:
    """A heat map of a table whose first two columns are values of attributes: the share in each cell, `among` whom.

    A cell whose 95 % interval is wider than half of all colours is pale and shows it; `note` stands above.
    """
    table = found.table()
    sides = [list(dict.fromkeys(column.to_pylist())) for column in table.columns[:2]]
    texts = [[Unit.of_field(table.schema.field(i)).text(value) for value in side] for i, side in enumerate(sides)]
    shares, low, high = (
        _percent(table, name).reshape(len(sides[0]), len(sides[1])) for name in ("frequency", "low", "high")
    )
    shown = shares[~np.isnan(shares)]
    spread = float(shown.max() - shown.min()) if len(shown) else 0.0
    doubtful = np.isnan(shares) | (high - low > max(spread / 2, 1e-9))
    written = np.vectorize(_cell_text, otypes=[object])(shares, low, high, doubtful)
    notes = (
        "errors are not known" if np.isnan(low).all() else None,
        "pale: 95 % interval wider than half of all colours" if doubtful.any() else None,
        note,
    )
    ax = _heat(found, shares, texts, f"% of {among}", ax, doubtful, written, notes, cmap="Blues")
    ax.set_ylabel(table.column_names[0], parse_math=False)
    ax.set_xlabel(table.column_names[1], parse_math=False)
    return ax


def plot_square(
    found: Result,
    names: Sequence[str],
    values: NDArray[np.float64],
    doubtful: NDArray[np.bool_],
    *,
    ax: Axes | None = None,
) -> Axes:
    """A heat map of one number from -1 to 1 for every two names; those in doubt are pale."""
    written = np.vectorize("{:.2f}".format, otypes=[object])(values)
    notes = ("pale: may be independent",) if doubtful.any() else ()
    sides = [list(names)] * 2
    return _heat(found, values, sides, "correlation", ax, doubtful, written, notes, cmap="RdBu_r", vmin=-1, vmax=1)


def _cell_text(share: float, low: float, high: float, doubtful: bool) -> str:
    """What is written into a cell: its share, and the interval where that is wide."""
    shown = "?" if np.isnan(share) else f"{share:.1f}"
    return f"{shown}\n{low:.0f} to {high:.0f}" if doubtful and not np.isnan(low) else shown


def _heat(
    found: Result,
    values: NDArray[np.float64],
    texts: Sequence[Sequence[str]],
    unit: str,
    ax: Axes | None,
    doubtful: NDArray[np.bool_],
    written: NDArray[np.object_],
    notes: Sequence[str | None],
    **colours: Any,
) -> Axes:
    """Cells in colours, pale where they are doubtful, with what is written in them where that fits."""
    longest = max(map(len, texts[1]), default=0)
    turned = len(texts[1]) > 8 or longest * len(texts[1]) > 70
    ax = ax or _axes(1.6 + 0.4 * len(texts[0]) + (0.07 * longest if turned else 0.0))
    image = ax.imshow(values, aspect="auto", alpha=np.where(doubtful, 0.25, 1.0), **colours)
    ax.set_yticks(range(len(texts[0])), texts[0], parse_math=False)
    ax.set_xticks(range(len(texts[1])), texts[1], parse_math=False, rotation=90 if turned else 0)
    if values.size <= 150:
        lit = np.asarray(image.norm(values), dtype=np.float64)
        dark = np.asarray(np.abs(lit - 0.5) > 0.3 if "vmin" in colours else lit > 0.5) & ~doubtful
        for (row, column), text in np.ndenumerate(written):
            ink, size = "white" if dark[row, column] else _INK, 7 if "\n" in text else 8
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color=ink)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(unit)
    ax.set_title(_title(found, notes), loc="left", fontsize=10, color=_INK)
    return ax


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
    ax = ax or _axes(found.plot_height(k))
    ax.axvline(0.0, lw=1, color=_INK)
    ax.plot(shown, places, "o", ms=5, mfc="white", color=_DOT, label="difference")
    if known:
        reach = np.stack([shown - columns["low"], columns["high"] - shown])
        middles, half = shown + (reach[1] - reach[0]) / 2, reach.sum(axis=0) / 2  # an estimate may lie outside
        ax.errorbar(middles, places, xerr=half, fmt="none", capsize=3, color=_DOT, label="95 % interval")
        changed = np.array(table["changed"].to_pylist(), dtype=bool)
        ax.plot(shown[changed], places[changed], "o", ms=5, color=_DOT, label="changed")
    if truth is not None:
        ax.plot(columns["truth"], places, "|", ms=11, mew=2, color=_TRUTH, label="truth")
    ax.set_yticks(places, _row_labels(table), parse_math=False)  # a label may hold dollars
    ax.set_ylim(max(table.num_rows, 1) - 0.5, -0.5)
    ax.set_xlabel("after less before" + (", in percentage points" if unit.name == "share" else ""))
    _finish(ax, found, grid="x")
    ax.legend(frameon=False, fontsize=8)
    return ax


def plot_mean(found: Mean, *, truth: Any = None, ax: Axes | None = None) -> Axes:
    """A mean as a point with its 95 % interval, beside the true mean if given."""
    ax = ax or _axes(found.plot_height())
    domain = found.domain
    value, low, high = (domain.shown(float(end)) for end in (found.value, *found.interval()))
    ax.plot([low, high], [0, 0], "-|", lw=1.5, ms=9, color=_DOT, label="95 % interval")
    ax.plot([value], [0], "o", ms=6, color=_DOT, label="mean")
    if truth is not None:
        known = domain.shown(float(truth[0])) if isinstance(truth, (list, tuple, np.ndarray)) else truth
        ax.plot([known], [0], "|", ms=18, mew=2, color=_TRUTH, label="truth")
    ax.set_yticks([])
    ax.set_xlabel(f"mean of {found.population:,} people")
    _finish(ax, found, grid="x")
    ax.legend(frameon=False, fontsize=8)
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
        axes = _pyplot().subplots(len(shown), figsize=size, layout="constrained", squeeze=False)[1][:, 0]
    else:
        axes = [ax]
    labels = key_texts(found.table().slice(0, k))
    places = np.arange(len(labels))
    for panel, (name, (values, ends)) in zip(axes, shown.items(), strict=True):
        reach = np.abs(ends - values[:, np.newaxis])[:k].T
        panel.errorbar(values[:k], places, xerr=reach, fmt="o", ms=5, capsize=3, color=_DOT)
        panel.set_yticks(places, labels, parse_math=False)  # a label may hold dollars
        panel.set_ylim(max(len(labels), 1) - 0.5, -0.5)  # the first on top
        panel.set_xlabel(f"{name}, with 95 % interval", parse_math=False)
        _finish(panel, None, grid="x")
    cut = f"{len(labels):,} of {len(found):,} rows" if len(labels) < len(found) else None
    axes[0].set_title(_title(found, (cut,)), loc="left", fontsize=10, color=_INK)
    first: Axes = axes[0]
    return first


def plot_panels(results: Sequence[Result], k: int = 20) -> list[Axes]:
    """One panel for each result, below each other in one figure."""
    heights = [result.plot_height(k) for result in results]
    _, axes = _pyplot().subplots(len(results), figsize=(8.0, sum(heights)), height_ratios=heights, layout="constrained")
    return [result.plot(k, ax=ax) for result, ax in zip(results, np.atleast_1d(axes), strict=True)]


def plot_distribution(
    found: Distribution,
    *,
    truth: Any = None,
    ax: Axes | None = None,
    label: str | None = None,
    color: str = _DOT,
) -> Axes:
    """The density of a distribution in steps, with its 95 % bands and the true masses of its buckets where given."""
    ax = ax or _axes(found.plot_height())
    bands = found.bands
    edges = np.array([found.domain.shown(float(edge)) for edge in found.edges])
    percent = 100 / np.diff(found.cells) * found.cells[-1] / len(found)  # of people in a bucket of average width
    if truth is not None:
        known = np.asarray(truth, dtype=np.float64)
        if known.shape != found.masses.shape:
            raise InputError(f"the truth has one mass for each bucket: {len(found)} of them")
        ax.stairs(known * percent, edges, fill=True, color=_TRUTH, alpha=0.45, lw=0, label="truth")
    if bands is not None:
        starts, *sides = bands.grouped()
        wide = np.append(found.cells[starts], found.cells[-1])
        share = 100 / np.diff(wide) * found.cells[-1] / len(found)
        low, high = (np.append(side * share, side[-1] * share[-1]) for side in sides)
        ax.fill_between(
            edges[np.append(starts, len(found))],
            low,
            high,
            step="post",
            alpha=0.25,
            lw=0,
            color=color,
            label=f"95 % band: {bands.rests_briefly}",
        )
    ax.stairs(found.masses * percent, edges, lw=1.2, color=color, label=label or "estimate")
    ax.set_ylabel(f"% of {found.population:,} people per bucket")
    ax.set_ylim(bottom=min(0.0, float((found.masses * percent).min())))
    _finish(ax, found if label is None else None)
    ax.legend(frameon=False, fontsize=8)
    return ax


def plot_lines(
    x: Sequence[float],
    lines: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    x_label: str,
    y_label: str,
    *,
    ax: Axes | None = None,
) -> Axes:
    """One line with standard errors per name, on logarithmic axes, and one legend for all."""
    ax = ax or _axes(4.0)
    from matplotlib.ticker import LogLocator

    for i, (name, (height, spread)) in enumerate(lines.items()):
        known = np.where(np.isnan(spread), 0.0, spread)
        ax.errorbar(x, height, yerr=known, marker="osD^v<>"[i % 7], ms=5, capsize=3, lw=1.2, label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(list(x), [f"{one:g}" for one in x])
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    _finish(ax, None)
    ax.legend(frameon=False, fontsize=8)
    return ax


def _axes(height: float) -> Axes:
    ax: Axes = _pyplot().subplots(figsize=(8.0, height), layout="constrained")[1]
    return ax


def _title(found: Result, notes: Sequence[str | None] = ()) -> str:
    """Every step to a result, and below it what whoever looks at the picture should know."""
    said = "; ".join(note for note in notes if note is not None)
    return " > ".join(found.lineage) + (f"\n{said}" if said else "")


def _finish(
    ax: Axes, titled: Result | None, grid: Literal["both", "x"] = "both", notes: Sequence[str | None] = ()
) -> None:
    if titled is not None:
        ax.set_title(_title(titled, notes), loc="left", fontsize=10, color=_INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, lw=0.4, alpha=0.6)


def _row_labels(table: pyarrow.Table) -> list[str]:
    """What stands beside each row: its value, the range that it covers, or nothing for a single row."""
    if table.column_names[0] == "from":
        unit, ends = Unit.of_field(table.schema.field(0)), (table[name].to_pylist() for name in ("from", "to"))
        return [unit.interval(*pair) for pair in zip(*ends, strict=True)]
    return key_texts(table) if table.column_names[0] == "value" else [""] * table.num_rows


def _percent(table: pyarrow.Table, column: str) -> NDArray[np.float64]:
    """A column of shares in per cent; NaN where they are not known."""
    return np.asarray(table[column].to_numpy(), dtype=np.float64) * 100


def save(ax: Axes, path: str) -> None:
    """Write the figure (SVG, PNG or PDF by its ending), the same bytes for the same picture."""
    plt = _pyplot()
    with plt.rc_context({"svg.hashsalt": "veil"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a label that the font cannot draw shows as a box
        metadata = {"Date": None} if str(path).endswith(".svg") else None
        ax.figure.savefig(path, metadata=metadata)  # type: ignore[union-attr]  # axes made here belong to a Figure
    plt.close(ax.figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'veil[plot]'") from None
    if "matplotlib.pyplot" not in __import__("sys").modules:
        matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
