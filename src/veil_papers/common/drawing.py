"""Exhibits as pictures: panels side by side, each method in the same colour everywhere. Needs `veil-ldp[plot]`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from veil.results import need_matplotlib
from veil_papers.common.exhibits import Curve, Exhibit, Grid, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _GRID, _RED = "#22303c", "#d9dee3", "#b3261e"
_COLOURS = (
    "#d1495b", "#1f6feb", "#2a9d8f", "#f2a541", "#7a5195", "#8d6e63", "#56b4e9", "#d977c0", "#2e7d32", "#8a949e",
    "#b07aa1", "#111111",
)  # fmt: skip
_MARKS = "osD^vPx+<>*"
Looks = dict[str, tuple[str, str]]  # a colour and a mark for each method


def looks(exhibits: Iterable[Exhibit]) -> Looks:
    """One look for each method throughout: in the order in which they appear."""
    panels = (panel for one in exhibits for panel in one.panels if isinstance(panel, Panel))
    names = dict.fromkeys(curve.name for panel in panels for curve in panel.curves)
    return {name: (_COLOURS[i % len(_COLOURS)], _MARKS[i % len(_MARKS)]) for i, name in enumerate(names)}


def draw(exhibit: Exhibit, look: Looks) -> Figure:
    """The exhibit's figure, ready to be saved."""
    need_matplotlib()
    from matplotlib.figure import Figure

    count, columns = len(exhibit.panels), min(len(exhibit.panels), 2)
    rows = -(-count // columns)
    longest = max((len(panel.rows) for panel in exhibit.panels if isinstance(panel, Grid)), default=0)
    size = (5.6 * columns + (1.4 if count == 1 else 0.4), max(3.9, 0.17 * longest + 1.2) * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for panel, ax in zip(exhibit.panels, grid.flat, strict=False):
        if isinstance(panel, Grid):
            _grid(panel, ax)
        else:
            _panel(panel, ax, look)
    for ax in list(grid.flat)[count:]:
        ax.remove()
    figure.suptitle(exhibit.title, x=0.01, ha="left", fontsize=12, color=_INK, fontweight="bold")
    return figure


def _panel(panel: Panel, ax: Axes, look: Looks) -> None:
    for curve in panel.curves:
        _curve(curve, ax, *look[curve.name])
    for mark in panel.marks:
        ax.axvline(mark, color=_INK, lw=0.9, ls=":")
    _axes(panel, ax)
    outside = len(panel.curves) > 6
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {"loc": "best"}
    order = sorted(range(len(panel.curves)), key=lambda i: -panel.curves[i].y[-1])
    handles, labels = ax.get_legend_handles_labels()
    if len(handles) == len(order):  # in the order in which the curves end, so that the eye finds them
        handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    ax.legend(handles, labels, frameon=False, fontsize=8, labelcolor=_INK, **place)


def _grid(grid: Grid, ax: Axes) -> None:
    """A heat map: the number in each cell; what fails is red, whatever its number."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high, shades = grid.low, grid.high, ["#f6e2b3", "#ffffff", "#bfe3d0"]
    if low > high:  # less is better
        low, high, shades = high, low, shades[::-1]
    colours = LinearSegmentedColormap.from_list("held", shades)
    ax.imshow(grid.numbers, aspect="auto", cmap=colours, vmin=low, vmax=high)
    for i, row in enumerate(grid.numbers):
        for j, number in enumerate(row):
            if number == number:  # NaN is a cell without a number
                red = grid.fails[i][j]
                box = {"facecolor": _RED, "edgecolor": "none", "pad": 1.0} if red else None
                ink, weight = ("white", "bold") if red else (_INK, "normal")
                ax.text(
                    j, i, f"{number:.3f}", ha="center", va="center", fontsize=6, color=ink, fontweight=weight, bbox=box
                )
    ax.set_xticks(range(len(grid.columns)), grid.columns, fontsize=6, rotation=30, ha="right")
    ax.set_yticks(range(len(grid.rows)), grid.rows, fontsize=6)
    ax.set_title(f"{grid.title}: {grid.y_label}", loc="left", fontsize=9, color=_INK)
    ax.tick_params(colors=_INK, width=0)
    ax.spines[:].set_visible(False)


def _curve(curve: Curve, ax: Axes, colour: str, mark: str) -> None:
    dense = len(curve.x) > 24
    style: dict[str, Any] = {
        "color": colour,
        "lw": 1.2 if curve.faint else 1.6,
        "ls": "--" if curve.faint else "-",
        "marker": None if dense else mark,
        "ms": 4.5,
        "mfc": "white" if curve.faint and mark not in "x+" else colour,
    }
    if curve.theory is not None:  # the line is the analysis, the marks are measured
        ax.plot(curve.x, curve.theory, color=colour, lw=1.1, ls=style["ls"], alpha=0.75)
        style["ls"] = "none"
    # a bar that reaches down to zero has no end on a logarithmic axis
    bars = curve.spread and [[min(of, 0.9 * y) for of, y in zip(curve.spread, curve.y, strict=True)], curve.spread]
    ax.errorbar(curve.x, curve.y, yerr=bars, capsize=2, elinewidth=0.9, label=curve.name, **style)


def _axes(panel: Panel, ax: Axes) -> None:
    from matplotlib.ticker import StrMethodFormatter

    if panel.x_log:
        ax.set_xscale("log", base=panel.x_log)
    else:
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    if panel.y_log:
        ax.set_yscale("log", nonpositive="mask")
    ax.set_xlabel(panel.x_label, color=_INK, fontsize=9)
    ax.set_ylabel(panel.y_label, color=_INK, fontsize=9)
    ax.set_title(panel.title, loc="left", fontsize=10, color=_INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_GRID)
    ax.tick_params(colors=_INK, labelsize=8, which="both", width=0.6)
    ax.grid(which="major", lw=0.6, color=_GRID)
    ax.set_axisbelow(True)
