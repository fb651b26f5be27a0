"""Pictures of results. Needs matplotlib: `pip install veil-ldp[plot]`.

Drawn on axes that hold a result of the same kind, a second one shares them: rows by their value, distributions by
numbers and in the same unit, each in its own colour, with one legend for all.
"""

from veil.plot.axes import need_matplotlib, save
from veil.plot.heat import plot_cells, plot_square
from veil.plot.numbers import plot_distribution, plot_lines, plot_mean
from veil.plot.rows import plot_change, plot_measured, plot_panels, plot_rows

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
    "save",
]
