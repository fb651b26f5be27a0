"""Files of values and of reports: CSV, JSON lines, Parquet and Arrow in, Arrow and Parquet out, in chunks.

ValueFile, read_values, values_of, column_names   files of people's values
read_attributes                                   the domains of a file's columns
ReportWriter, read_reports, describe_reports      files of reports
count_rows, count_fakes, is_seeded, which_wave    what a file of reports says of itself
EXPORTED_TIME                                     the column of times in exported reports
"""

from veil.files.attributes import read_attributes
from veil.files.reports import (
    EXPORTED_TIME,
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
