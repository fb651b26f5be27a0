"""Files of values and of reports: CSV, JSON lines, Parquet and Arrow in, Arrow out, always in chunks."""

from veil.files.attributes import read_attributes
from veil.files.groups import EXPORTED_TIME
from veil.files.reports import (
    ReportWriter,
    count_fakes,
    count_rows,
    describe_reports,
    is_seeded,
    read_reports,
    which_wave,
)
from veil.files.value_file import ValueFile
from veil.files.values import column_names, read_values, values_of

__all__ = [
    "EXPORTED_TIME",
    "ReportWriter",
    "ValueFile",
    "column_names",
    "count_fakes",
    "count_rows",
    "describe_reports",
    "is_seeded",
    "read_attributes",
    "read_reports",
    "read_values",
    "values_of",
    "which_wave",
]
