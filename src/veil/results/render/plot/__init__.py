"""Pictures of results. Needs matplotlib: `pip install veil-ldp[plot]`.

    rows      rows of a table as points with intervals        heat   heat maps of tables
    numbers   distributions, means, and lines over a number   axes   axes, titles, legends and files

If a result is drawn on axes that already hold one of the same kind, they share the axes: rows by their value,
distributions by numbers and in the same unit, each in its own colour, with one legend for all.
"""

from veil.results.render.plot.axes import need_matplotlib, save_figure
from veil.results.render.plot.heat import plot_cells, plot_square
from veil.results.render.plot.numbers import plot_distribution, plot_lines, plot_mean
from veil.results.render.plot.rows import plot_change, plot_measured, plot_panels, plot_rows

__all__ = [
    "need_matplotlib",
    "plot_cells",
    "plot_change",
    "plot_distribution",
    "plot_lines",
    "plot_mean",
    "plot_measured",
    "plot_panels",
    "plot_rows",
    "plot_square",
    "save_figure",
]
