"""SQL over data nobody may see: private dimensions, public columns, and answers with error bars.

table       Table: a study whose reports are kept and whose reading is a query
hio         HIO: people split over combinations of levels of all dimensions (thesis 7.4)
engine      one pass over the reports for all sums of a query
"""

from __future__ import annotations

from veil.sql.answer import Answer, KeyColumn, Measured
from veil.sql.change import AnswerChange
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.sql.dbapi import connect
from veil.sql.design import Design, Values
from veil.sql.hio import HIO
from veil.sql.opened import Database, open  # noqa: A004  # veil.sql.open
from veil.sql.table import Table

__all__ = [
    "HIO",
    "Answer",
    "AnswerChange",
    "Category",
    "Database",
    "Design",
    "KeyColumn",
    "Measure",
    "Measured",
    "Moment",
    "PublicColumn",
    "Table",
    "Values",
    "connect",
    "open",
]
