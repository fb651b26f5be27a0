"""Real reports of everybody, read by `veil.sql`'s own numbers per row: sums and averages over boxes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from veil import Integers, Record
from veil.domain import Categories
from veil.entropy import SeededForExperiments
from veil.sql import Design, Grids, Table
from veil_papers.datasets import Tabular
from veil_papers.sql.law import Box

Reading = Literal["levels", "plain"]


def schema(data: Tabular) -> Record:
    """The private dimensions, with buckets by their number instead of their ends."""
    return Record(
        tuple(
            (name, part if isinstance(part, Categories) else Integers(0, part.size - 1))
            for name, part in data.private.domain.attributes
        )
    )


class Collection:
    """One collection: everybody's report on a table of one design; `sums` answers as often as one likes."""

    def __init__(self, data: Tabular, epsilon: float, design: Design, seed: int, measure: str | None = None) -> None:
        self.table = Table(epsilon, schema(data), design=design)
        self.people = data.people
        columns: Any = self.table.survey.reports(
            data.private.codes.astype(np.uint64), SeededForExperiments(seed)
        ).columns
        weights = np.ones(self.people) if measure is None else data.public[measure].astype(np.float64)
        if "choice" in columns:  # rows of a group stand together, so that a query looks at the groups that it needs
            groups = len(self.table.survey.ask)
            order = np.argsort(columns["choice"], kind="stable")
            columns, weights = {name: column[order] for name, column in columns.items()}, weights[order]
            self.counts = np.bincount(columns["choice"], minlength=groups)
            self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        else:
            self.counts = np.array([self.people])
        self.columns, self.weights, self.total = columns, weights, float(weights.sum())

    @cached_property
    def _tallies(self) -> Any:
        """What is read of grids: all reports together, of two sums."""
        assert isinstance(self.table.design, Grids)
        tallies = self.table.design.tallies(self.table, 2)
        tallies.add(self.columns, np.stack([np.ones(self.people), self.weights]).astype(np.int64))
        return tallies

    def sums(self, box: Box, reading: Reading = "levels") -> tuple[float, float]:
        """How many people are in the box, and the sum of their measure, estimated."""
        table = self.table if reading == self.table.reading else replace(self.table, reading=reading)
        runs = tuple(None if side is None else (side,) for side in box)
        if isinstance(table.design, Grids):
            count, total = table.design.totals(table, [runs], self._tallies).values.tolist()
            return count, total
        values = table.design.values(table, [runs], self.counts)
        columns, weights = self.columns, self.weights
        if values.groups is not None and 2 * sum(self.counts[list(values.groups)].tolist()) < self.people:
            parts = [slice(self._starts[group], self._starts[group + 1]) for group in sorted(values.groups)]
            columns = {name: np.concatenate([column[part] for part in parts]) for name, column in columns.items()}
            weights = np.concatenate([weights[part] for part in parts])
        numbers = values.of(columns)
        return values.constant * self.people + float(numbers.sum()), values.constant * self.total + float(
            weights @ numbers
        )
