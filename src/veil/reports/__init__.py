"""Reports: their layout, their columns, and the tally of one question.

layout    Layout and Field: the columns of a report
columns   Reports: many reports of one task, by column
tally     Tally: counts that add up, with weights and fakes
"""

from veil.reports.columns import Reports
from veil.reports.layout import Columns, Field, Layout, Rows, byte_width
from veil.reports.tally import Tally, check_fakes, check_weights, merge, weight_sums

__all__ = [
    "Columns",
    "Field",
    "Layout",
    "Reports",
    "Rows",
    "Tally",
    "byte_width",
    "check_fakes",
    "check_weights",
    "merge",
    "weight_sums",
]
