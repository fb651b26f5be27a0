"""Mechanisms for answers that are given repeatedly: a permanent randomization, then a light one for every report.

The device keeps the outcome of the first step, a Memo. Its reports, however many, reveal no more about the value than
the Memo does, so the guarantee holds for a lifetime and is paid for once. The part of a Memo that belongs to the person
and not to the value (Rappor's cohort) is drawn once per person: a new one with every new value would reveal each
change.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from veil.entropy import Source
from veil.errors import MismatchError
from veil.mechanisms.base import Mechanism
from veil.reports.columns import Reports
from veil.reports.layout import Columns, Layout


@dataclass(frozen=True, eq=False)
class Memo:
    """What devices keep of their permanent step, by column, one row per person."""

    task: str
    layout: Layout
    columns: Columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"Memo(of {len(self)} people, task {self.task[:12]})"

    def to_bytes(self) -> bytes:
        """All rows, one after another."""
        return self.layout.pack(self.columns)

    @staticmethod
    def from_bytes(task: str, layout: Layout, data: bytes) -> Memo:
        """Read back what `to_bytes` wrote; strict, like reports."""
        return Memo(task, layout, layout.unpack(data))


class Longitudinal(Mechanism):
    """A mechanism in two steps: `permanent`, paid for, and `instant_reports`, free. `randomize` does both."""

    @property
    @abstractmethod
    def memo_layout(self) -> Layout:
        """The columns of a Memo."""

    @property
    @abstractmethod
    def person_layout(self) -> Layout:
        """Those columns of a Memo that belong to the person: the same in all Memos of one person."""

    @abstractmethod
    def draw_person(self, people: int, source: Source) -> dict[str, NDArray[Any]]:
        """Runs on the device: the columns that belong to people, whatever they hold."""

    @abstractmethod
    def draw_permanent(
        self, codes: NDArray[Any], source: Source, person: Columns | None = None
    ) -> dict[str, NDArray[Any]]:
        """Runs on the device: the columns of a Memo, for at most one chunk of rows.

        `person` are the columns that belong to these people, where they were drawn before; else they are drawn now.
        """

    @abstractmethod
    def draw_instant(self, memo: Columns, source: Source) -> dict[str, NDArray[Any]]:
        """Runs on the device: columns of reports from the columns of a Memo, for at most one chunk of rows."""

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        return self.draw_instant(self.draw_permanent(codes, source), source)

    def permanent(self, values: Any, source: Source | None = None, *, earlier: Memo | None = None) -> Memo:
        """Runs on the device: the step whose outcome is kept, one row per value. This is what epsilon pays for.

        `earlier` is any Memo of the same people, row by row: what it says of a person, rather than of a value, stays.
        """
        codes = self.domain.encode(values)
        layout = self.memo_layout
        if earlier is not None:
            self._check_memo(earlier)
            if len(earlier) != len(codes):
                raise MismatchError("the earlier memo is of another number of people")

        def draw(rows: slice, stream: Source) -> dict[str, NDArray[Any]]:
            person = None if earlier is None else self.person_of(earlier.columns, rows)
            return self.draw_permanent(codes[rows], stream, person)

        return Memo(self.digest, layout, self.by_chunk(len(codes), source, draw, layout).columns)

    def person_of(self, memo: Columns, rows: slice = slice(None)) -> dict[str, NDArray[Any]]:
        """What the columns of a Memo say of the people, rather than of their values."""
        return {name: memo[name][rows] for name in self.person_layout.names}

    def instant_reports(self, memo: Memo, source: Source | None = None) -> Reports:
        """Runs on the device: fresh reports of a Memo, one per row, at no further cost."""
        self._check_memo(memo)

        def draw(rows: slice, stream: Source) -> dict[str, NDArray[Any]]:
            return self.draw_instant({name: column[rows] for name, column in memo.columns.items()}, stream)

        return self.by_chunk(len(memo), source, draw)

    def _check_memo(self, memo: Memo) -> None:
        if not isinstance(memo, Memo) or memo.task != self.digest:
            raise MismatchError("this memo was made for another task")
