"""The cost of a query: upper estimates of its memory and its time, and its refusal beyond the limits.

A query is estimated before it starts, with the fewest groups that it can have; again when its groups of people are
counted, and when the cells to read are known; in every case before anything large is made. The numbers per unit were
measured (docs/sql.md); `tests/unit/sql/test_costs.py` compares the estimates with the measured memory of queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from veil.errors import LimitError
from veil.kernels.parallel import thread_count
from veil.sql.designs.base import JointDesign
from veil.sql.execution.duckdb import IN_MEMORY
from veil.sql.execution.sums import pair_count
from veil.tools.limits import current

if TYPE_CHECKING:
    from veil.sql.language.query import Query
    from veil.sql.table import Table


MEGABYTE = 10**6
_DECIMAL_BYTES = 140  # a number with a hundred digits, and its place in an array
_WORDS_BYTES = 32  # an exact sum of products
_CLASS_BYTES, _PART_BYTES, _CELL_BYTES, _CHOICE_BYTES = 4_000, 4_000, 24, 200
_FIXED_BYTES = 40_000_000
_BATCH_NUMBERS, _NUMBER_BYTES = 1 << 21, 80  # weights of a batch of rows, with their limbs
_EXPRESSION_BYTES = 400_000  # vectors of DuckDB's threads
_VECTOR_ROWS, _THREAD_ROWS = 2_048, 1 << 16  # rows whose texts each thread holds, and rows for which there is a thread
_COPIES, _KEY_COPIES = 4, 8  # of each byte of a text; Python takes up to 4 bytes for a character
_SHORT_TEXTS = 512  # bytes for each row that the numbers above leave room for


@dataclass(frozen=True)
class Cost:
    """What a query adds up, and how much memory and time that takes at most, roughly."""

    people: int
    report_bytes: int
    sums: int
    """Different sums, of numbers other than 1."""
    outputs: int
    classes: int
    """Groups of people that public columns tell apart."""
    buckets: int
    """Groups by private dimensions, within each class."""
    choices: int
    """Questions of which each person answered one."""
    asked_cells: int
    """Cells of all questions together, where a design tallies all of them; 0 otherwise."""
    cells: int = 0
    pairs: int = 0
    text_bytes: int = 0
    """Bytes of the texts that public expressions make for one row."""
    key_bytes: int = 0
    """Bytes of the public keys of one group."""

    @property
    def rows(self) -> int:
        """Rows of the answer, at most."""
        return self.classes * self.buckets

    @property
    def bytes(self) -> int:
        """The peak of memory."""
        kept, every = self.sums + 1, pair_count(self.sums + 1)
        stored = 3 * min(self.people * self.report_bytes, IN_MEMORY)
        answered = min(self.people, self.classes * self.choices)
        each = max(_CLASS_BYTES, _KEY_COPIES * self.key_bytes) + every * _WORDS_BYTES
        classes = self.classes * each + answered * _CHOICE_BYTES
        if self.asked_cells:
            read = self.classes * (self.choices * 4 * kept * kept * 60 + self.asked_cells * 2 * kept * 120)
        else:
            moments = (self.choices + 1) * every * _WORDS_BYTES + self.choices * kept * 16
            read = self.rows * (_PART_BYTES + moments) + self.cells * _CELL_BYTES
        found = self.rows * (2 * kept * kept * _DECIMAL_BYTES + self.outputs * 300)
        making = 9 * kept * kept * _DECIMAL_BYTES
        batches = (
            _NUMBER_BYTES * min(self.people * kept, _BATCH_NUMBERS) + (self.sums + self.outputs) * _EXPRESSION_BYTES
        )
        return _FIXED_BYTES + stored + classes + read + found + making + batches + self._texts

    @property
    def _texts(self) -> int:
        """The texts that DuckDB has at once. Its own memory limit does not count them."""
        threads = min(thread_count(), -(-self.people // _THREAD_ROWS))
        return _COPIES * max(self.text_bytes - _SHORT_TEXTS, 0) * min(self.people, _VECTOR_ROWS * threads)

    @property
    def seconds(self) -> float:
        """The time on one core of usual speed."""
        kept, every = self.sums + 1, pair_count(self.sums + 1)
        passes = self.people * (2e-8 * (3 + 2 * self.sums) + 3e-9 * every * (1 + min(self.buckets, self.choices)))
        numbers = self.rows * (5e-4 + 2e-5 * kept * kept + 1e-5 * self.outputs * kept)
        return 0.1 + passes + numbers + 1e-9 * self.pairs

    @property
    def megabytes(self) -> int:
        """The peak of memory in units of 10^6 bytes."""
        return -(-self.bytes // MEGABYTE)

    def __str__(self) -> str:
        return f"about {self.megabytes:,} MB and {self.seconds:,.0f} s"


def cost_of(query: Query, table: Table, people: int, sums: int | None = None, classes: int = 1) -> Cost:
    """Return the cost of a query over so many people, of whom public columns make so many classes."""
    buckets = 1
    for key in query.private_keys:
        buckets *= len(key.buckets)
    tallied = isinstance(table.design, JointDesign)
    return Cost(
        people=people,
        report_bytes=table.survey.layout.size,
        sums=len(set(query.sums) - {"1"}) if sums is None else sums,
        outputs=len(query.outputs),
        classes=max(classes, 1),
        buckets=buckets,
        choices=len(table.survey.ask),
        asked_cells=sum(one.mechanism.domain.size for one in table.survey.questions) if tallied else 0,
        text_bytes=query.text_bytes,
        key_bytes=query.key_bytes,
    )


def admit(cost: Cost) -> None:
    """Refuse a cost beyond the limits of the work under way, if it has any."""
    limits = current()
    if limits is None:
        return

    def fits(one: Cost) -> bool:
        return one.megabytes <= limits.megabytes and one.seconds <= limits.seconds

    if fits(cost):
        return
    raise LimitError(
        f"this query needs {cost}, with {_counted(cost.sums, 'sum')}, {_counted(cost.outputs, 'output')} and "
        f"{_counted(cost.rows, 'group')} of {cost.people:,} reports",
        f"at most {limits.megabytes:,} MB and {limits.seconds:g} s (query_megabytes, query_seconds): "
        + _what_fits(cost, fits),
    )


def _what_fits(cost: Cost, fits: Callable[[Cost], bool]) -> str:
    def most(number: int, changed: Callable[[int], Cost]) -> int:
        """The largest number below this one that fits; 0 if none does."""
        low, high = 0, number
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(changed(middle)) else (low, middle)
        return low

    def with_sums(sums: int) -> Cost:
        return replace(cost, sums=sums, outputs=min(cost.outputs, 2 * sums))

    def with_rows(rows: int) -> Cost:
        share = rows / cost.rows
        read = {"cells": int(cost.cells * share), "pairs": int(cost.pairs * share)}
        return replace(cost, classes=min(cost.classes, rows), buckets=max(1, rows // cost.classes), **read)

    sums, rows = most(cost.sums, with_sums), most(cost.rows, with_rows)
    said = [f"{_counted(sums, 'sum')} at once"] if sums else []
    said += [_counted(rows, "group")] if rows else []
    return (
        f"{' or '.join(said)} would fit"
        if said
        else "fewer sums and groups, shorter texts, or rounder ranges, would fit"
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
