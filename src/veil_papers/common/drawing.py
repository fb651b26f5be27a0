"""Exhibits as pictures: one panel beside the other, each method in its own colour throughout. Needs `veil[plot]`."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from veil.errors import InputError
from veil_papers.common.exhibits import Curve, Exhibit, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _GRID = "#22303c", "#d9dee3"
_LOOKS = {  # by colour: the methods that have it, each with its mark
    "#d1495b": "OLH o|people o|Norm-Sub D|noise o|OUE-Calibrate o|PEM o|reports o|SVIM o|SVSM o|"
    "(OLH,1)(Adap,L)(c) o|SW-EMS o|square s|Beta o|256 buckets o",
    "#f2a541": "OUE D|Norm-Mul v|PrivTrie D|(OLH,1)(OLH,2k) o|SW-EM s|0.8 o|wages v|512 buckets o",
    "#1f6feb": "BLH s|budget s|Base-Pos s|OUE-Zero s|PEM1 s|drawn s|LDPMiner s|(BLH,L)(SUE,2k) o|HH-ADMM D|0.2 o|"
    "flights s|1024 buckets o",
    "#2a9d8f": "SUE ^|RAP(8) ^|Norm-Cut v|maximum likelihood D|SPM ^|(OLH,L)(OLH,2k) o|HH v|0.4 o|income D",
    "#7a5195": "SHE v|RAP(16) v|Base-Cut ^|probability > 1/2 v|HASH v|(OLH,1)(Adap,2k) o|HaarHRR ^|triangle ^|"
    "2048 buckets o",
    "#b07aa1": "THE <",
    "#8d6e63": "DE P|MLE-Apx x|(OLH,1)(Adap,L) o|0.6 o",
    "#111111": "SubsetSelection x|auto (ours) o|true counts as prior +|SW-auto (ours) o",
    "#6b7785": "PGR +",
    "#22303c": "truth none|Base o",
    "#56b4e9": "Post-Pos +|HH-exact (ours) D",
    "#8a949e": "Norm x|printed x|HM (ours) +",
    "#d977c0": "Power P|PM +",
    "#2e7d32": "PowerNS s|learned prior ^|SR P",
    "#c9b1a8": "CFO-16 x",
    "#a5867b": "CFO-32 x",
    "#6d4c41": "CFO-64 x",
}  # fmt: skip
_LOOK = {
    name: (colour, mark.replace("none", ""))
    for colour, names in _LOOKS.items()
    for name, mark in (look.rsplit(" ", 1) for look in names.split("|"))
}
_DE_SHADES = ("#c9b1a8", "#a5867b", "#6d4c41")
_OTHERS = (_INK, "#1f6feb", "#2a9d8f", "#f2a541", "#7a5195", "#d1495b", "#8d6e63", "#56b4e9", "#d977c0")


def draw(exhibit: Exhibit) -> Figure:
    """The exhibit's figure, ready to be saved."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'veil[plot]'") from None
    count = len(exhibit.panels)
    columns = min(count, 2)
    rows = -(-count // columns)
    size = (5.6 * columns + (1.4 if count == 1 else 0.4), 3.9 * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for panel, ax in zip(exhibit.panels, grid.flat, strict=False):
        _panel(panel, ax)
    for ax in list(grid.flat)[count:]:
        ax.remove()
    figure.suptitle(exhibit.title, x=0.01, ha="left", fontsize=12, color=_INK, fontweight="bold")
    return figure


def _panel(panel: Panel, ax: Axes) -> None:
    shades, others = iter(_DE_SHADES), cycle(_OTHERS)
    for curve in panel.curves:
        family = curve.name if curve.name in _LOOK else curve.name.split(",")[0]
        colour, mark = _LOOK.get(family) or (next(others), "o")
        if family == "DE" and "," in curve.name:
            colour = next(shades, _DE_SHADES[-1])
        _curve(curve, ax, colour, mark)
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


def _curve(curve: Curve, ax: Axes, colour: str, mark: str) -> None:
    dense = len(curve.x) > 24
    style: dict[str, Any] = {
        "color": colour,
        "lw": 1.2 if curve.faint else 3.4 if curve.name == "OUE" and dense else 1.6,  # OUE shows below OLH
        "ls": "--" if curve.faint else "-",
        "marker": None if dense else mark,
        "ms": 4.5,
        "mfc": "white" if curve.faint and mark not in "x+" else colour,
    }
    if curve.theory is not None:  # the line is the analysis, the marks are measured
        ax.plot(curve.x, curve.theory, color=colour, lw=1.1, ls=style["ls"], alpha=0.75)
        style["ls"] = "none"
    bars = None
    if curve.spread is not None:  # a bar that reaches down to zero has no end on a logarithmic axis
        lower = [min(spread, 0.9 * y) for spread, y in zip(curve.spread, curve.y, strict=True)]
        bars = [lower, curve.spread]
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
