"""SQL over data nobody may see: private dimensions, public columns, and answers with error bars.

    table                        Table: a study whose reports are kept and whose reading is a query
    hio, budget, conjunction,    HIO, HI, SC, MG, Grids: how people are asked, and how their reports are read
      marginal, grids
    parsing, query, regions      from SQL to what it asks for
    folder, rows                 a folder is a table; DuckDB reads what is public
    engine, moments              one pass over the reports for all sums of a query, and their errors
    opened, dbapi                veil.sql.open and veil.sql.connect
    choosing, fanouts            which design errs least for a schema and a workload; fitted fan-outs
    explaining, schema           plans of queries before they are asked; tables as people write them

Needs `veil-ldp[sql]`: DuckDB, sqlglot, and prompt_toolkit for the shell.
"""

from __future__ import annotations

from veil.sql.answer import Answer, KeyColumn, Measured
from veil.sql.change import AnswerChange
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.sql.database import Database, open  # noqa: A004  # veil.sql.open
from veil.sql.dbapi import connect
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.budget import HI
from veil.sql.designs.choosing import Predicted, choose_design
from veil.sql.designs.conjunction import SC
from veil.sql.designs.grids import Grids
from veil.sql.designs.hio import HIO
from veil.sql.designs.marginal import MG
from veil.sql.designs.rivals import QuadTree, Wavelet
from veil.sql.execution.explaining import Explanation, explain
from veil.sql.folder import create
from veil.sql.schema import read_schema
from veil.sql.table import Table

__all__ = [
    "HI",
    "HIO",
    "MG",
    "SC",
    "Answer",
    "AnswerChange",
    "Category",
    "Database",
    "Design",
    "Explanation",
    "Grids",
    "KeyColumn",
    "Measure",
    "Measured",
    "Moment",
    "Predicted",
    "PublicColumn",
    "QuadTree",
    "RowEstimator",
    "Table",
    "Wavelet",
    "choose_design",
    "connect",
    "create",
    "explain",
    "open",
    "read_schema",
]
