"""SQL over private dimensions and public columns: tables, queries, and answers with error bars.

    table                  Table: a study whose reports are kept and answered by queries
    columns, schema        public columns; tables as TOML or JSON files
    folder, database       a folder with a table and its reports; `open`, to query it
    dbapi                  `connect`: the same by Python's DB-API 2.0
    answer, change         the result of a query, and the change between two answers
    language               from the text of a query to a Query: grammar, names, conditions as boxes
    designs                how people are asked and how their reports are read: HIO, HI, SC, MG, Grids, rivals
    execution              passes over the reports through DuckDB, sums, answers, EXPLAIN, costs, clusters

Needs `veil-ldp[sql]`: DuckDB, sqlglot, and prompt_toolkit for the shell.
"""

from __future__ import annotations

from veil.sql.answer import Answer, KeyColumn, MeasuredColumn
from veil.sql.change import AnswerChange
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.sql.database import Database, open  # noqa: A004  # veil.sql.open
from veil.sql.dbapi import connect
from veil.sql.designs.base import Design, RowEstimator
from veil.sql.designs.choosing import PredictedDesign, choose_design
from veil.sql.designs.conjunction import SC
from veil.sql.designs.grids import Grids
from veil.sql.designs.hio import HI, HIO
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
    "MeasuredColumn",
    "Moment",
    "PredictedDesign",
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
