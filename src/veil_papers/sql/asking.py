"""Real reports of everybody, read by `veil.sql`'s own numbers per row: sums and averages over boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil import Integers, Record
from veil.datasets import Tabular
from veil.domain import Categories
from veil.entropy import Seeded
from veil.sql import Design, Table
from veil_papers.sql.law import Box

Floats = NDArray[np.float64]


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

    def __init__(self, data: Tabular, epsilon: float, design: Design, seed: int) -> None:
        self.table = Table(epsilon, schema(data), design=design)
        self.people = data.people
        codes = data.private.codes.astype(np.uint64)
        self.columns: Any = self.table.survey.reports(codes, Seeded(seed)).columns
        choice = self.columns.get("choice")
        groups = len(self.table.survey.ask)
        self.counts = np.array([self.people]) if choice is None else np.bincount(choice, minlength=groups)

    def sums(self, box: Box, weights: Sequence[Floats | None], reading: str = "levels") -> list[float]:
        """For each of the weights (None: counts), their sum over the people in the box, estimated."""
        table = self.table if reading == self.table.reading else replace(self.table, reading=reading)  # type: ignore[arg-type]
        runs = tuple(None if side is None else (side,) for side in box)
        values = table.design.values(table, [runs], self.counts)
        numbers = values.of(self.columns)
        return [
            values.constant * (self.people if w is None else float(w.sum()))
            + float(numbers.sum() if w is None else w @ numbers)
            for w in weights
        ]
