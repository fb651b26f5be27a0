"""What is true of people whose values are known, beside an answer about them: for trials, it is not private.

The query goes the same way as any other, over reports that hold the values themselves. Such reports never leave a
device: nothing but a trial makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.mechanisms import GRR
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.sql.answer import Answer, Measured
from veil.sql.design import Design, Values
from veil.sql.engine import run
from veil.sql.locked import LockedDuckDB
from veil.sql.parsing import parse
from veil.sql.query import Box
from veil.sql.rows import Rows
from veil.survey import AllOf, Ask, People, Question
from veil.view import Project

if TYPE_CHECKING:
    from veil.sql.table import Table

__all__ = ["true_outputs"]


def true_outputs(found: Answer, table: Table, people: People) -> tuple[Measured, ...]:
    """The true values of an answer's outputs, in its rows; NaN in rows that nobody is in.

    Conditions mean what they mean to the answer: a number that is known in cells is compared at the edges of cells.
    """
    query = parse(found.query, table)
    every = run(replace(query, having=None, order=(), limit=None, offset=0), _KnownRows(table, people))
    rows = {labels: row for row, labels in enumerate(zip(*(key.labels for key in every.keys), strict=True))}
    wanted = list(zip(*(key.labels for key in found.keys), strict=True)) or [()]
    places = [rows.get(labels, -1) if found.keys else 0 for labels in wanted][: len(found)]
    nothing = np.zeros(len(places))
    return tuple(
        Measured(one.name, np.array([one.values[place] if place >= 0 else np.nan for place in places]), nothing)
        for one in every.outputs
    )


@dataclass(frozen=True)
class _Known(Design):
    """Everybody tells the code of each dimension."""

    kind = "known"

    def ask(self, private: Record, epsilon: float) -> Ask:
        shown = [Project(private, (name,)) for name in private.names]
        return AllOf(
            *(Question(GRR(epsilon, view.domain), view) for view in shown)
        )  # of these, the layout alone is used

    def values(self, table: Table, boxes: Sequence[Box], counts: NDArray[np.int64], effort: float = 1.0) -> Values:
        return _Inside(boxes)


class _Inside(Values):
    """1 for people in one of the boxes, which are disjoint, and 0 for others."""

    constant = variance = 0.0
    bound = 1.0
    groups: frozenset[int] | None = None

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._boxes = boxes

    def of(self, columns: Columns) -> NDArray[np.float64]:
        inside = np.zeros(len(next(iter(columns.values()))), dtype=bool)
        for box in self._boxes:
            fits = np.ones(len(inside), dtype=bool)
            for place, runs in enumerate(box):
                if runs is not None:
                    codes = np.asarray(columns[f"{place}.value"], dtype=np.int64)
                    fits &= np.logical_or.reduce([(codes >= start) & (codes < stop) for start, stop in runs])
            inside |= fits
        return inside.astype(np.float64)


class _KnownRows(Rows):
    """The rows of people whose values are known."""

    def __init__(self, table: Table, people: People) -> None:
        self.table = replace(table, design=_Known(), query=None, reading="levels")
        self._held = people

    @property
    def people(self) -> int:
        return len(self._held)

    def database(self) -> LockedDuckDB:
        return self._database

    @cached_property
    def _database(self) -> LockedDuckDB:
        return LockedDuckDB(self.table, self.people, reports=lambda: [self._reports])

    @cached_property
    def _reports(self) -> Reports:
        survey = self.table.survey
        codes = np.asarray(self._held.codes)
        held = {f"{place}.value": codes[:, place] for place in range(codes.shape[1])} | dict(self._held.public)
        typed = {field.name: np.asarray(held[field.name], field.dtype) for field in survey.layout.fields}
        return Reports(survey.task, survey.layout, typed)
