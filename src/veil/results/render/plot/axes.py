"""Axes, titles, ticks, the legend, and files of pictures."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from veil.results.base import Result


Floats = NDArray[np.float64]

INK, DOT, TRUTH = "#22303c", "#1f6feb", "#d1495b"
_LONGEST = (40, 60, 80)  # characters of a label, as far as needed
_LEGEND_WIDTH = 0.9  # of the figure's: it stands in from the right
COLOURS = (DOT, "#e08600", "#2a9d5c", "#8a5cd1", "#7a6a58")
"""Those of results on the same axes, in the order of drawing; red is the truth's."""


class Overlay:
    """The results that were drawn on some axes: by their names in the legend, none on fresh axes.

    The first one is called "estimate" while it is alone, and by its own steps as soon as there is another.
    """

    _ALONE = "estimate"

    def __init__(self, ax: Axes | None, found: Result, label: str | None) -> None:
        named: list[Any] = [] if ax is None else ax.get_legend_handles_labels()[0]
        self.drawn: list[Any] = [handle for handle in named if _kind(handle) == "result"]
        self.number = len(self.drawn)
        own = " > ".join(found.lineage) if self.number else self._ALONE
        self.label = own if label is None else label
        if ax is None:
            return
        first = ax.get_title(loc="left").split("\n")[0]
        for handle in self.drawn:
            if handle.get_label().startswith(self._ALONE) and first:
                handle.set_label(first + handle.get_label().removeprefix(self._ALONE))
        for handle in named:
            if _kind(handle) == "nameless" and first:
                handle.set_label(f"{first}, {handle.get_label()}")
                handle._veil_kind = None
        taken = [handle.get_label() for handle in self.drawn]
        if any(one.startswith(self.label) for one in taken):
            self.label = f"{self.label} ({self.number + 1})"

    @property
    def colour(self) -> str:
        """That of the next result."""
        return COLOURS[self.number % len(COLOURS)]

    @property
    def first(self) -> bool:
        """Whether the axes are fresh."""
        return not self.number


def _kind(handle: Any) -> str | None:
    """What something in a legend is: a result, or something beside it."""
    gid = getattr(handle, "_veil_kind", None)
    return gid if isinstance(gid, str) else None


def as_result(handle: Any) -> None:
    """Mark what was drawn as the result itself, so that the next one finds it."""
    handle._veil_kind = "result"


def as_nameless(handle: Any) -> None:
    """Mark what belongs to the first result and does not name it: it will, as soon as there is another."""
    handle._veil_kind = "nameless"


def _is_seen(handle: Any) -> bool:
    """Whether something in a legend is to be seen on the axes, which no points and no intervals are not."""
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D

    if isinstance(handle, ErrorbarContainer):
        return any(len(bars.get_segments()) for bars in handle[2])
    return not isinstance(handle, Line2D) or len(np.atleast_1d(handle.get_xdata())) > 0


def one_legend(ax: Axes, **place: Any) -> None:
    """One legend for everything that is to be seen on the axes; what is named twice stands there once."""
    found = [pair for pair in zip(*ax.get_legend_handles_labels(), strict=True) if _is_seen(pair[0])]
    if not found:
        return
    handles, labels = zip(*found, strict=True)
    once = dict(zip(reversed(labels), reversed(handles), strict=True))  # of the same name the first one
    legend = ax.legend(
        [once[name] for name in dict.fromkeys(labels)], list(dict.fromkeys(labels)), frameon=False, fontsize=8, **place
    )
    for text in legend.get_texts():  # a name is no formula
        text.set_parse_math(False)


def legend_below(ax: Axes, height: float) -> None:
    """A legend that covers nothing: below the axis' label, in a figure of ours; which is as high as is needed."""
    if ax.figure.get_layout_engine() is None:
        one_legend(ax, loc="best")
        return
    if len(ax.figure.axes) == 1 and height > ax.figure.get_figheight():  # type: ignore[union-attr]
        ax.figure.set_figheight(height)  # type: ignore[union-attr]  # axes made here belong to a Figure
    for columns in (3, 2, 1):
        one_legend(ax, ncols=columns, loc="upper right", bbox_to_anchor=(1.0, 0.0), borderaxespad=4.5)
        legend = ax.get_legend()
        if legend is None or legend.get_window_extent().width <= ax.figure.bbox.width * _LEGEND_WIDTH:
            return


def short_labels(labels: Sequence[str]) -> list[str]:
    """Labels that leave room for the picture: of long ones both ends, as far as different ones still look different.

    >>> short_labels(["tea", "the first of two answers that are long enough to need some room"])
    ['tea', 'the first of two an\N{HORIZONTAL ELLIPSIS}gh to need some room']
    """
    for most in _LONGEST:
        short = [_shortened(label, most) for label in labels]
        if len(set(short)) == len(set(labels)):
            return short
    return list(labels)


def _shortened(label: str, most: int) -> str:
    before, after = (most - 1) // 2, most // 2
    return label if len(label) <= most else f"{label[:before]}\N{HORIZONTAL ELLIPSIS}{label[-after:]}"


def new_axes(height: float) -> Axes:
    """Axes in a figure of their own."""
    ax: Axes = pyplot().subplots(figsize=(8.0, height), layout="constrained")[1]
    return ax


def title_of(found: Result, notes: Sequence[str | None] = ()) -> str:
    """Every step to a result, and below it what whoever looks at the picture should know."""
    said = "; ".join(note for note in notes if note is not None)
    return " > ".join(found.lineage) + (f"\n{said}" if said else "")


def finish(
    ax: Axes, titled: Result | None, grid: Literal["both", "x"] = "both", notes: Sequence[str | None] = ()
) -> None:
    """Title, grid and frame; without a result, the axes have no title."""
    title = "" if titled is None else title_of(titled, notes)
    ax.set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, lw=0.4, alpha=0.6)


def thousands(axis: Any) -> None:
    """Numbers of an axis as people write them: 250,000 rather than 250000 or 2.5e5."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x + 0.0:,.10g}".replace("-", "\N{MINUS SIGN}")))


def percent(table: pyarrow.Table, column: str) -> Floats:
    """A column of shares in per cent; NaN where they are not known."""
    return np.asarray(table[column].to_numpy(), dtype=np.float64) * 100


def save_figure(ax: Axes, path: str) -> None:
    """Write the figure (SVG, PNG or PDF by its ending), the same bytes for the same picture."""
    plt = pyplot()
    with plt.rc_context({"svg.hashsalt": "veil"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a label that the font cannot draw shows as a box
        metadata = {"Date": None} if str(path).endswith(".svg") else None
        ax.figure.savefig(path, metadata=metadata)  # type: ignore[union-attr]  # axes made here belong to a Figure
    plt.close(ax.figure)


def need_matplotlib() -> None:
    """Refuse to draw where matplotlib is not there: before the work, not after it."""
    if find_spec("matplotlib") is None:
        raise missing_extra("pictures need matplotlib", "plot")


def pyplot() -> Any:
    """matplotlib.pyplot; without windows, unless somebody chose where pictures go, as notebooks do."""
    need_matplotlib()
    import matplotlib

    if "matplotlib.pyplot" not in sys.modules and "MPLBACKEND" not in os.environ:
        matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
