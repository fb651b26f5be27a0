"""The rows of a table: its reports with their public columns, counted and scanned through DuckDB.

A query makes up to three passes. `count` gives the number of people of each class who made each choice, and then the
exact sums of their weights and of products of weights, unless all weights are 1. From these a design decides how rows
are read. `scan` yields the rows that count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, MismatchError
from veil.reports.layout import Columns, Field
from veil.sql.execution.duckdb import LockedDuckDB, select
from veil.sql.execution.passes import Passes
from veil.sql.execution.sums import Grams

if TYPE_CHECKING:
    from veil.sql.execution.accumulators import Accumulator
    from veil.sql.language.query import Query
    from veil.sql.table import Table
    from veil.study import Collection


_MOST_CLASSES = 100_000
_BATCH_ROWS, _LEAST_BATCH_ROWS = 1 << 17, 1 << 11
_BATCH_NUMBERS = 1 << 21  # of weights in a batch


@dataclass(frozen=True, eq=False)
class RowClass:
    """People that a query cannot tell apart by public columns: one class of rows."""

    keys: tuple[Any, ...]
    """The values of the query's public keys."""
    pattern: int
    """Bit i is set where the i-th public condition is true."""
    size: int
    """How many choices there are."""
    answered: tuple[tuple[int, int], ...]
    """The choices that were made, each with how many people made it."""
    grams: Grams | None
    """The sums of products of the weights 1 and those that are not simply 1; None where all are 1."""
    place: int
    """Of this class among `grams`."""
    columns: tuple[int, ...]
    """The place of each weight in `grams`."""

    @property
    def totals(self) -> tuple[int, ...]:
        """The sum of each weight."""
        return self._products(self.columns, (0,))[0]

    @property
    def products(self) -> tuple[tuple[int, ...], ...]:
        """The sum of each product of two weights. Not kept: there may be many."""
        return self._products(self.columns, self.columns)

    def _products(self, some: Sequence[int], others: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        if self.grams is None:
            people = sum(people for _, people in self.answered)
            return tuple(tuple(people for _ in some) for _ in others)
        return self.grams.products(self.place, some, others)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many of these people made each choice; all of them where there is no choice."""
        counts = np.zeros(self.size, np.int64)
        for choice, people in self.answered:
            counts[choice] = people
        return counts


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """What the first pass over a table found, by class."""

    classes: tuple[RowClass, ...]
    scales: tuple[int, ...]
    """The decimal scale of each weight: 1234 with scale 2 stands for 12.34."""
    places: tuple[int, ...]
    """The weight of each sum that was asked for: equal ones are added up once."""
    types: tuple[str, ...]
    """DuckDB's types of the keys."""
    passes: Passes
    grams: Grams | None
    """The sums of products of weights; None where all weights are 1."""


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows: the class of each, the columns of their reports, and one row per weight."""

    classes: NDArray[np.int32]
    columns: Columns
    weights: NDArray[np.int64]


def anything(weights: int, classes: int) -> None:
    """Refuse nothing."""


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
        self,
        sums: Sequence[str],
        atoms: Sequence[str] = (),
        keys: Sequence[str] = (),
        where: str | None = None,
        admit: Callable[[int, int], None] = anything,
    ) -> ClassCounts:
        """The first pass: one class per different combination of the keys' values and of the conditions that hold.

        `sums`, `atoms` and `keys` are expressions over public columns, as DuckDB evaluates them. All numbers are exact
        integers: what is added up is taken on a decimal scale, see `veil.sql.execution.passes`. A NULL counts as 0 and
        as not true. `where` is what the query's condition demands of public columns alone: where it is
        not true no expression is added up or fails, so that SUM(a / b) WHERE b > 0 divides by no zero. `admit` gets
        the number of weights and of classes, and may refuse them before the classes are read and sums are made.
        """
        passes = Passes(self.database(), sums, atoms, keys, where)
        passes.database.execute(passes.connection, passes.count())
        counted = counted_by(passes, admit)
        add_products(counted)
        return counted

    def fill(self, query: Query, reading: Accumulator) -> None:
        """Add all rows up for a query."""
        reading.add(self)

    def scan(self, counted: ClassCounts, classes: Sequence[int], groups: frozenset[int] | None) -> Iterator[RowBatch]:
        """The second pass: the rows of these classes that made one of these choices (None: any), some at a time."""
        passes, wanted = counted.passes, sorted(set(classes))
        if not wanted or (groups is not None and not groups):
            return
        some = None if len(wanted) == len(counted.classes) else wanted
        patterns = [counted.classes[i].pattern for i in wanted]
        of_patterns = None if passes.keys else _Places(patterns, wanted)
        sql = passes.scan(some, patterns, groups)
        for batch in passes.database.batches(passes.connection, sql, _batch_rows(passes)):
            if batch.num_rows:
                yield _batch(batch, passes, of_patterns)


class CollectedRows(Rows):
    """Runs at the collector: the rows of a table whose reports were collected, wherever they are."""

    def __init__(self, table: Table, collected: Collection) -> None:
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


def counted_by(passes: Passes, admit: Callable[[int, int], None] = anything) -> ClassCounts:
    """Return the classes of a query's rows; `admit` may refuse the number of weights and of classes."""
    database, connection = passes.database, passes.connection
    ((many,),) = database.execute(connection, select(["count(*)"], passes.found))
    if many > _MOST_CLASSES:
        raise InputError(f"this query makes {many:,} groups, more than {_MOST_CLASSES:,}: group by fewer values")
    admit(len(passes.weighted), many)
    found = database.execute(connection, select(["*"], passes.found, f"ORDER BY {passes.name('i')}"))
    layout = database.table.survey.ask.layout
    size = 1 if database.choice is None else layout.fields[layout.names.index("choice")].bound
    scales = tuple(weight.scale for weight in passes.weights)
    grams = Grams(many, 1 + len(passes.weighted)) if passes.weighted else None
    classes = tuple(_alike(row, passes, size, grams) for row in found)
    return ClassCounts(classes, scales, passes.places, passes.types, passes, grams)


def _alike(row: tuple[Any, ...], passes: Passes, size: int, grams: Grams | None) -> RowClass:
    keys = len(passes.keys)
    pattern, choices, answered = row[1 + keys :]
    weighted = [a for a, _ in passes.weighted]
    return RowClass(
        keys=tuple(row[1 : 1 + keys]),
        pattern=int(pattern),
        size=size,
        answered=tuple(zip(choices, answered, strict=True)),
        grams=grams,
        place=int(row[0]),
        columns=tuple(1 + weighted.index(a) if a in weighted else 0 for a in range(len(passes.weights))),
    )


def add_products(counted: ClassCounts) -> None:
    """Add up products of weights: one pass over all rows, unless all weights are 1."""
    passes, grams = counted.passes, counted.grams
    if grams is None or not counted.classes:
        return
    patterns = [one.pattern for one in counted.classes]
    of_patterns = None if passes.keys else _Places(patterns, range(len(patterns)))
    for batch in passes.database.batches(passes.connection, passes.weigh(patterns), _batch_rows(passes)):
        if batch.num_rows:
            given = iter(batch.columns)
            weights = np.ones((1 + len(passes.weighted), batch.num_rows), np.int64)
            for a in range(1, len(weights)):
                weights[a] = next(given).to_numpy(zero_copy_only=False)
            grams.add(_classes(given, of_patterns, batch.num_rows), weights)


def _batch_rows(passes: Passes) -> int:
    """How many rows a batch has: the more weights, the fewer, so that memory does not grow with them."""
    return max(_LEAST_BATCH_ROWS, min(_BATCH_ROWS, _BATCH_NUMBERS // (1 + len(passes.weighted))))


def _classes(given: Iterator[Any], of_patterns: _Places | None, rows: int) -> NDArray[np.int32]:
    """The class of each row of a batch, from its last column."""
    last = next(given, None)
    told = None if last is None else last.to_numpy(zero_copy_only=False)
    return np.asarray(told, np.int32) if of_patterns is None else of_patterns.find(told, rows)


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


def _batch(batch: Any, passes: Passes, of_patterns: _Places | None) -> RowBatch:
    """A record batch of the second pass as numpy's arrays."""
    rows, given = batch.num_rows, iter(batch.columns)
    columns = {
        field.name: _column(next(given), field, rows) for field in passes.database.table.survey.ask.layout.fields
    }
    weights = np.ones((len(passes.weights), rows), np.int64)
    for a, _ in passes.weighted:
        weights[a] = next(given).to_numpy(zero_copy_only=False)
    return RowBatch(_classes(given, of_patterns, rows), columns, weights)


def _column(array: Any, field: Field, rows: int) -> NDArray[Any]:
    """A report's column. DuckDB gives packed bits as binary of any length, and vectors as lists."""
    if not field.is_vector:
        return np.asarray(array.to_numpy(zero_copy_only=False), field.dtype)
    if field.width > 1:
        return np.asarray(array.flatten().to_numpy(zero_copy_only=False), field.dtype).reshape(rows, field.count)
    _, offsets, data = array.buffers()
    first = int(np.frombuffer(offsets, np.int32)[array.offset])
    return np.frombuffer(data, np.uint8)[first : first + rows * field.count].reshape(rows, field.count)
