"""Heat maps: cells of two attributes, and one number for every pair of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.results.render.plot.axes import INK, new_axes, percent, short_labels, title_of
from veil.results.units import Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from veil.results.base import Result


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
        percent(table, name).reshape(len(sides[0]), len(sides[1])) for name in ("frequency", "low", "high")
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
    texts = [short_labels(side) for side in texts]
    longest = max(map(len, texts[1]), default=0)
    turned = len(texts[1]) > 8 or longest * len(texts[1]) > 70
    ax = ax or new_axes(1.6 + 0.4 * len(texts[0]) + (0.07 * longest if turned else 0.0))
    image = ax.imshow(values, aspect="auto", alpha=np.where(doubtful, 0.25, 1.0), **colours)
    ax.set_yticks(range(len(texts[0])), texts[0], parse_math=False)
    ax.set_xticks(range(len(texts[1])), texts[1], parse_math=False, rotation=90 if turned else 0)
    if values.size <= 150:
        lit = np.asarray(image.norm(values), dtype=np.float64)
        dark = np.asarray(np.abs(lit - 0.5) > 0.3 if "vmin" in colours else lit > 0.5) & ~doubtful
        for (row, column), text in np.ndenumerate(written):
            ink, size = "white" if dark[row, column] else INK, 7 if "\n" in text else 8
            ax.text(column, row, text, ha="center", va="center", fontsize=size, color=ink)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(unit)
    ax.set_title(title_of(found, notes), loc="left", fontsize=10, color=INK, parse_math=False)
    return ax
