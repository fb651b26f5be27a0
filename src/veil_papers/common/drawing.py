"""Exhibits as pictures: one panel beside the other, each method in its own colour throughout. Needs `veil[plot]`."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from veil.errors import InputError
from veil_papers.common.exhibits import Curve, Exhibit, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_INK, _GRID = "#22303c", "#d9dee3"
_COLOURS = {
    "OLH": "#d1495b",
    "OUE": "#f2a541",
    "BLH": "#1f6feb",
    "SUE": "#2a9d8f",
    "SHE": "#7a5195",
    "THE": "#b07aa1",
    "DE": "#8d6e63",
    "RAP(8)": "#2a9d8f",
    "RAP(16)": "#7a5195",
    "SubsetSelection": "#111111",
    "PGR": "#6b7785",
    "people": "#d1495b",
    "budget": "#1f6feb",
    "truth": "#22303c",
    "Base": "#22303c",
    "Base-Pos": "#1f6feb",
    "Post-Pos": "#56b4e9",
    "Norm": "#8a949e",
    "Norm-Mul": "#f2a541",
    "Norm-Sub": "#d1495b",
    "MLE-Apx": "#8d6e63",
    "Base-Cut": "#7a5195",
    "Norm-Cut": "#2a9d8f",
    "Power": "#d977c0",
    "PowerNS": "#2e7d32",
    "auto (ours)": "#111111",
    "noise": "#d1495b",
    "OUE-Zero": "#1f6feb",
    "OUE-Calibrate": "#d1495b",
    "learned prior": "#2e7d32",
    "probability > 1/2": "#7a5195",
    "maximum likelihood": "#2a9d8f",
    "true counts as prior": "#111111",
    "printed": "#8a949e",
    "PEM": "#d1495b",
    "PEM1": "#1f6feb",
    "SPM": "#2a9d8f",
    "HASH": "#7a5195",
    "PrivTrie": "#f2a541",
    "drawn": "#1f6feb",
    "reports": "#d1495b",
    "SVIM": "#d1495b",
    "SVSM": "#d1495b",
    "LDPMiner": "#1f6feb",
    "(BLH,L)(SUE,2k)": "#1f6feb",
    "(OLH,L)(OLH,2k)": "#2a9d8f",
    "(OLH,1)(OLH,2k)": "#f2a541",
    "(OLH,1)(Adap,2k)": "#7a5195",
    "(OLH,1)(Adap,L)": "#8d6e63",
    "(OLH,1)(Adap,L)(c)": "#d1495b",
    "SW-EMS": "#d1495b",
    "SW-EM": "#f2a541",
    "SW-auto (ours)": "#111111",
    "HH-ADMM": "#1f6feb",
    "HH-exact (ours)": "#56b4e9",
    "HH": "#2a9d8f",
    "HaarHRR": "#7a5195",
    "CFO-16": "#c9b1a8",
    "CFO-32": "#a5867b",
    "CFO-64": "#6d4c41",
    "SR": "#2e7d32",
    "PM": "#d977c0",
    "HM (ours)": "#8a949e",
    "square": "#d1495b",
    "0.8": "#f2a541",
    "0.6": "#8d6e63",
    "0.4": "#2a9d8f",
    "0.2": "#1f6feb",
    "triangle": "#7a5195",
    "Beta": "#d1495b",
    "flights": "#1f6feb",
    "income": "#2a9d8f",
    "wages": "#f2a541",
    "256 buckets": "#d1495b",
    "512 buckets": "#f2a541",
    "1024 buckets": "#1f6feb",
    "2048 buckets": "#7a5195",
}
_MARKS = {
    "OLH": "o", "OUE": "D", "BLH": "s", "SUE": "^", "SHE": "v", "THE": "<", "DE": "P", "RAP(8)": "^", "RAP(16)": "v",
    "SubsetSelection": "x", "PGR": "+", "people": "o", "budget": "s",
    "truth": "", "Base": "o", "Base-Pos": "s", "Post-Pos": "+", "Norm": "x", "Norm-Mul": "v", "Norm-Sub": "D",
    "MLE-Apx": "x", "Base-Cut": "^", "Norm-Cut": "v", "Power": "P", "PowerNS": "s", "auto (ours)": "o",
    "noise": "o", "OUE-Zero": "s", "OUE-Calibrate": "o", "learned prior": "^", "probability > 1/2": "v",
    "maximum likelihood": "D", "true counts as prior": "+", "printed": "x",
    "PEM": "o", "PEM1": "s", "SPM": "^", "HASH": "v", "PrivTrie": "D", "drawn": "s", "reports": "o",
    "SVIM": "o", "SVSM": "o", "LDPMiner": "s",
    "SW-EMS": "o", "SW-EM": "s", "SW-auto (ours)": "o", "HH-ADMM": "D", "HH-exact (ours)": "D", "HH": "v",
    "HaarHRR": "^", "CFO-16": "x", "CFO-32": "x", "CFO-64": "x", "SR": "P", "PM": "+", "HM (ours)": "+",
    "square": "s", "triangle": "^", "Beta": "o", "flights": "s", "income": "D", "wages": "v",
}  # fmt: skip
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
        family = curve.name if curve.name in _COLOURS else curve.name.split(",")[0]
        shaded = family == "DE" and "," in curve.name
        known = _COLOURS.get(family) or next(others)
        colour = next(shades, _DE_SHADES[-1]) if shaded else known
        _curve(curve, ax, colour, _MARKS.get(family, "o"))
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
