"""The rows of a table: its reports with their public columns, counted and gone through by DuckDB.

A query makes two passes. `count` tells how many people of each class made which choice, and the exact sums of their
weights, as integers; from these a design decides how rows are read. `scan` then goes through the rows that count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, MismatchError
from veil.sql.locked import LockedDuckDB, select
from veil.sql.passes import Passes
from veil.wire.layout import Columns, Field

if TYPE_CHECKING:
    from veil.sql.query import Query
    from veil.sql.readings import Reading
    from veil.sql.table import Table
    from veil.study import Collected

__all__ = ["Alike", "Batch", "CollectedRows", "Counted", "Rows", "counted_by"]

_MOST_CLASSES = 100_000
_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class Alike:
    """People that a query cannot tell apart by public columns: one class of rows."""

    keys: tuple[Any, ...]
    """The values of the query's public keys."""
    pattern: int
    """Bit i is set where the i-th public condition is true."""
    size: int
    """How many choices there are."""
    answered: tuple[tuple[int, int], ...]
    """The choices that were made, each with how many people made it."""
    totals: tuple[int, ...]
    """The sum of each weight."""
    products: tuple[tuple[int, ...], ...]
    """The sum of each product of two weights."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many of these people made each choice; all of them where there is no choice."""
        counts = np.zeros(self.size, np.int64)
        for choice, people in self.answered:
            counts[choice] = people
        return counts


@dataclass(frozen=True, eq=False)
class Counted:
    """What the first pass over a table found, by class."""

    classes: tuple[Alike, ...]
    scales: tuple[int, ...]
    """The decimal scale of each weight: 1234 with scale 2 stands for 12.34."""
    places: tuple[int, ...]
    """The weight of each sum that was asked for: equal ones are added up once."""
    types: tuple[str, ...]
    """DuckDB's types of the keys."""
    passes: Passes


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: the class of each, the columns of their reports, and one row per weight."""

    classes: NDArray[np.int32]
    columns: Columns
    weights: NDArray[np.int64]


class Rows(ABC):
    """Runs at the collector: the rows of a table."""

    table: Table

    @property
    @abstractmethod
    def people(self) -> int:
        """How many people reported."""

    @abstractmethod
    def database(self) -> LockedDuckDB:
        """The rows as they are now, in DuckDB."""

    def count(
        self, sums: Sequence[str], atoms: Sequence[str] = (), keys: Sequence[str] = (), where: str | None = None
    ) -> Counted:
        """The first pass: one class per different combination of the keys' values and of the conditions that hold.

        `sums`, `atoms` and `keys` are expressions over public columns, as DuckDB evaluates them. All numbers are exact
        integers: what is added up is taken on a decimal scale, see `veil.sql.weights`. A NULL counts as 0 and as not
        true. `where` is what the query's condition demands of public columns alone: where it is
        not true no expression is added up or fails, so that SUM(a / b) WHERE b > 0 divides by no zero.
        """
        passes = Passes(self.database(), sums, atoms, keys, where)
        passes.database.execute(passes.connection, passes.count())
        return counted_by(passes)

    def fill(self, query: Query, reading: Reading) -> None:
        """Add all rows up for a query."""
        reading.add(self)

    def scan(self, counted: Counted, classes: Sequence[int], groups: frozenset[int] | None) -> Iterator[Batch]:
        """The second pass: the rows of these classes that made one of these choices (None: any), some at a time."""
        passes, wanted = counted.passes, sorted(set(classes))
        if not wanted or (groups is not None and not groups):
            return
        some = None if len(wanted) == len(counted.classes) else wanted
        patterns = [counted.classes[i].pattern for i in wanted]
        of_patterns = None if passes.keys else _Places(patterns, wanted)
        sql = passes.scan(some, patterns, groups)
        for batch in passes.database.batches(passes.connection, sql, _BATCH_ROWS):
            if batch.num_rows:
                yield _batch(batch, passes, of_patterns)


class CollectedRows(Rows):
    """Runs at the collector: the rows of a table whose reports were collected, wherever they are."""

    def __init__(self, table: Table, collected: Collected) -> None:
        if collected.survey.task != table.survey.task:
            raise MismatchError("expected what was collected of this table; this was made for another task")
        self.table = table
        self._collected = collected

    @property
    def people(self) -> int:
        return self._collected.people

    def database(self) -> LockedDuckDB:
        return self._database

    @cached_property
    def _database(self) -> LockedDuckDB:
        return LockedDuckDB(self.table, self.people, reports=self._collected.reports)


def counted_by(passes: Passes) -> Counted:
    """The classes of a query's rows, once the table of classes is made."""
    database, connection = passes.database, passes.connection
    ((many,),) = database.execute(connection, select(["count(*)"], passes.found))
    if many > _MOST_CLASSES:
        raise InputError(f"this query makes {many:,} groups, more than {_MOST_CLASSES:,}: group by fewer values")
    found = database.execute(connection, select(["*"], passes.found, f"ORDER BY {passes.name('i')}"))
    layout = database.table.survey.ask.layout
    size = 1 if database.choice is None else layout.fields[layout.names.index("choice")].bound
    classes, scales = (_alike(row, passes, size) for row in found), (weight.scale for weight in passes.weights)
    return Counted(tuple(classes), tuple(scales), passes.places, passes.types, passes)


def _alike(row: tuple[Any, ...], passes: Passes, size: int) -> Alike:
    keys, weights = len(passes.keys), passes.weights
    pattern, choices, answered = row[1 + keys : 4 + keys]
    sums = {alias: int(found) for alias, found in zip(passes.sums, row[4 + keys :], strict=True)}
    people = sums[passes.name("n")]

    def total(a: int) -> int:
        return people if weights[a].sql is None else sums[passes.name(f"t{a}")]

    def product(a: int, b: int) -> int:
        if weights[a].sql is None or weights[b].sql is None:
            return total(b if weights[a].sql is None else a)
        pair = f"{max(a, b)}_{min(a, b)}"
        return sums[passes.name(f"low{pair}")] + (sums.get(passes.name(f"high{pair}"), 0) << 32)

    every = range(len(weights))
    return Alike(
        keys=tuple(row[1 : 1 + keys]),
        pattern=int(pattern),
        size=size,
        answered=tuple(zip(choices, answered, strict=True)),
        totals=tuple(total(a) for a in every),
        products=tuple(tuple(product(a, b) for b in every) for a in every),
    )


class _Places:
    """The class of each pattern, where patterns alone make classes."""

    def __init__(self, patterns: Sequence[int], classes: Sequence[int]) -> None:
        order = np.argsort(np.asarray(patterns, np.int64))
        self._patterns = np.asarray(patterns, np.int64)[order]
        self._classes = np.asarray(classes, np.int32)[order]

    def find(self, patterns: NDArray[np.int64] | None, rows: int) -> NDArray[np.int32]:
        if patterns is None:
            return np.full(rows, self._classes[0], np.int32)
        return np.asarray(self._classes[np.searchsorted(self._patterns, patterns)])


def _batch(batch: Any, passes: Passes, of_patterns: _Places | None) -> Batch:
    """A record batch of the second pass as numpy's arrays."""
    rows, given = batch.num_rows, iter(batch.columns)
    columns = {
        field.name: _column(next(given), field, rows) for field in passes.database.table.survey.ask.layout.fields
    }
    weights = np.ones((len(passes.weights), rows), np.int64)
    for a, _ in passes.weighted:
        weights[a] = next(given).to_numpy(zero_copy_only=False)
    last = next(given, None)
    told = None if last is None else last.to_numpy(zero_copy_only=False)
    classes = np.asarray(told, np.int32) if of_patterns is None else of_patterns.find(told, rows)
    return Batch(classes, columns, weights)


def _column(array: Any, field: Field, rows: int) -> NDArray[Any]:
    """A report's column. DuckDB gives packed bits as binary of any length, and vectors as lists."""
    if not field.is_vector:
        return np.asarray(array.to_numpy(zero_copy_only=False), field.dtype)
    if field.width > 1:
        return np.asarray(array.flatten().to_numpy(zero_copy_only=False), field.dtype).reshape(rows, field.count)
    _, offsets, data = array.buffers()
    first = int(np.frombuffer(offsets, np.int32)[array.offset])
    return np.frombuffer(data, np.uint8)[first : first + rows * field.count].reshape(rows, field.count)
