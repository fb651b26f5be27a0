"""Many reports of one task as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veil.errors import MismatchError
from veil.reports.layout import Columns, Layout, Rows


@dataclass(frozen=True, eq=False)
class Reports:
    """Many reports of one task, by column.

    >>> from veil.reports.layout import Field
    >>> layout = Layout((Field("value", 4),))
    >>> reports = Reports("t", layout, {"value": np.array([3, 1], dtype=np.uint8)})
    >>> len(reports), reports.to_bytes()
    (2, b'\\x03\\x01')
    """

    task: str
    layout: Layout
    columns: Columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: Rows) -> Reports:
        return Reports(self.task, self.layout, {name: column[rows] for name, column in self.columns.items()})

    def __repr__(self) -> str:
        return f"Reports({len(self)} of task {self.task[:12]}, {self.layout.size} bytes each)"

    def to_bytes(self) -> bytes:
        """All payloads, one after another. Runs on the device."""
        return self.layout.pack(self.columns)

    @staticmethod
    def from_bytes(task: str, layout: Layout, data: bytes) -> Reports:
        """Runs at the collector: strict, ranges are checked and leftovers refused."""
        return Reports(task, layout, layout.unpack(data))

    @staticmethod
    def concatenate(parts: Sequence[Reports]) -> Reports:
        """Reports of one task, end to end."""
        first = parts[0]
        if any((part.task, part.layout) != (first.task, first.layout) for part in parts):
            raise MismatchError("reports of different tasks cannot be joined")
        if len(parts) == 1:
            return first
        names = first.layout.names
        return Reports(
            first.task, first.layout, {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
        )
