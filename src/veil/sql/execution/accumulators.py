"""Accumulators: the sums that one pass over the rows adds up for a query.

The sums do not depend on the order of the rows or on their split. An accumulator follows from the query, the table and
the classes of rows alone. So each task of a cluster makes its own and fills it from its rows, and the driver merges
them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError
from veil.reports.layout import Columns
from veil.sql.designs.base import JointDesign, RowEstimator
from veil.sql.execution.costs import Cost, admit, cost_of
from veil.sql.execution.sums import RowMoments, Totals
from veil.sql.language.query import And, Box, Bucket, InRanges, PrivateGroup, Query
from veil.sql.language.regions import disjoint_boxes, patterns
from veil.tools.limits import check

if TYPE_CHECKING:
    from veil.sql.designs.grid_reading import GridTallies
    from veil.sql.execution.rows import ClassCounts, Rows
    from veil.sql.table import Table


_MOST_ROWS = 100_000
_FEW_CONDITIONS = 8

Floats = NDArray[np.float64]
_Batch = tuple[int, Columns, NDArray[np.int64]]
"""Some rows of one class: the class, the columns of their reports, and their weights."""
Found = dict[tuple[Any, ...], Totals | None]
"""The estimated sums of each row of the answer; None where they are not known."""


@dataclass(frozen=True)
class Part:
    """One class of rows and one combination of private buckets: what is added up for a row of the answer."""

    row: tuple[Any, ...]
    place: int
    """Of the class."""
    boxes: tuple[Box, ...]


class Accumulator(ABC):
    """What is added up over the rows. Readings of parts of the rows merge into that of all of them."""

    used: str
    """What is read, in words."""

    def __init__(self, table: Table, counted: ClassCounts, parts: Sequence[Part]) -> None:
        self.table, self.counted, self.parts = table, counted, parts
        self.sums = len(counted.scales)
        self.units = [Decimal(1).scaleb(-scale) for scale in counted.scales]

    @abstractmethod
    def add(self, rows: Rows) -> None:
        """Runs at the collector: go through rows, and add them up."""

    @abstractmethod
    def state(self) -> list[bytes]:
        """What was added up so far, as bytes."""

    @abstractmethod
    def merge(self, state: Sequence[bytes]) -> None:
        """Add what the same reading found in other rows."""

    @abstractmethod
    def found(self) -> Found:
        """The sums of each row of the answer."""


def reading_of(query: Query, table: Table, counted: ClassCounts) -> Accumulator:
    """The reading of a query over rows of these classes, with nothing added up yet."""
    check_groups(query, len(counted.classes))
    parts = list(_parts(query, table, counted))
    if isinstance(table.design, JointDesign):
        return _JointAccumulator(table, counted, parts)
    people = sum(people for one in counted.classes for _, people in one.answered)
    cost = cost_of(query, table, people, len(counted.passes.weighted), len(counted.classes))
    return _RowAccumulator(table, counted, parts, cost)


def check_groups(query: Query, classes: int) -> None:
    """Refuse a query whose answer would have too many rows, before any is made."""
    many = math.prod(len(key.buckets) for key in query.private_keys) * classes
    if many > _MOST_ROWS:
        raise InputError(f"this query makes {many:,} groups, more than {_MOST_ROWS:,}: group by fewer or wider buckets")


def _parts(query: Query, table: Table, counted: ClassCounts) -> Iterator[Part]:
    """For each class of rows and each combination of private buckets, which people are meant."""
    sizes, split = [part.size for part in table.private.parts], patterns(query.where)
    choices = list(product(*(key.buckets for key in query.private_keys)))
    for place, one in enumerate(counted.classes):
        condition = split.where(one.pattern)
        for buckets in choices:
            check()
            keys = zip(query.private_keys, buckets, strict=True)
            inside = [InRanges(key.place, ((bucket.start, bucket.stop),)) for key, bucket in keys]
            boxes = disjoint_boxes(And((condition, *inside)), sizes)
            yield Part(_labels(query, one.keys, buckets), place, boxes)


def _labels(query: Query, public: Sequence[Any], buckets: Sequence[Bucket]) -> tuple[Any, ...]:
    """The keys of a row of the answer, in the query's order."""
    own, given = iter(bucket.label for bucket in buckets), iter(public)
    return tuple(next(own) if isinstance(key, PrivateGroup) else next(given) for key in query.keys)


def _added(found: Found, row: tuple[Any, ...], totals: Totals | None) -> None:
    """Add the sums of one class to those of a row of the answer; what is not known of one is not known of the row."""
    if row not in found:
        found[row] = totals
        return
    before = found[row]
    found[row] = None if before is None or totals is None else before + totals


class _RowAccumulator(Accumulator):
    """One number per report and condition, for designs that read row by row."""

    def __init__(self, table: Table, counted: ClassCounts, parts: Sequence[Part], cost: Cost) -> None:
        super().__init__(table, counted, parts)
        effort = len(counted.classes) / max(len(parts), 1)  # each class has its share of all rows
        self._by_class: dict[int, list[tuple[RowEstimator, RowMoments]]] = {}
        self._moments: list[RowMoments | None] = []
        for part in parts:
            one = counted.classes[part.place]
            try:
                values = table.design.values(table, part.boxes, one.counts, effort) if part.boxes else EMPTY_ESTIMATOR
            except EmptyError:
                self._moments.append(None)
                continue
            cost = replace(cost, cells=cost.cells + values.cells, pairs=cost.pairs + values.pairs)
            admit(cost)
            check()
            made = RowMoments(values, self.sums, len(one.counts))
            self._moments.append(made)
            if values.groups != frozenset():
                self._by_class.setdefault(part.place, []).append((values, made))
        every = [values.groups for some in self._by_class.values() for values, _ in some]
        named = (some for some in every if some is not None)
        self._groups = None if None in every else frozenset[int]().union(*named)
        asked = len(table.survey.ask)
        read = self._groups
        self.used = f"all {asked:,} questions" if read is None else f"{len(read):,} of {asked:,} groups"

    def add(self, rows: Rows) -> None:
        batches = _batches(rows, self.counted, sorted(self._by_class), self._groups)
        for (place, columns, weights), numbers in _numbers(batches, self._by_class):
            choice = columns.get("choice")
            for (_, mine), own in zip(self._by_class[place], numbers, strict=True):
                check()
                mine.add(np.zeros(len(own), np.int64) if choice is None else choice, own, weights)

    def _filled(self) -> Iterator[RowMoments]:
        return (moments for place in sorted(self._by_class) for _, moments in self._by_class[place])

    def state(self) -> list[bytes]:
        return [moments.state() for moments in self._filled()]

    def merge(self, state: Sequence[bytes]) -> None:
        for moments, own in zip(self._filled(), state, strict=True):
            moments.merge(own)

    def found(self) -> Found:
        found: Found = {}
        for part, made in zip(self.parts, self._moments, strict=True):
            check()
            one = self.counted.classes[part.place]
            _added(
                found,
                part.row,
                None if made is None else made.totals(one.counts, one.totals, one.products, self.units),
            )
        return found


def _numbers(
    batches: Iterable[_Batch], by_class: Mapping[int, Sequence[tuple[RowEstimator, RowMoments]]]
) -> Iterator[tuple[_Batch, Iterable[Floats]]]:
    """Batches with the numbers of their rows, for each condition of their class.

    Of few conditions the next batches are worked on meanwhile; of many, one condition after the other, so that memory
    does not grow with them.
    """
    from veil.kernels.parallel import ahead

    def work(batch: _Batch) -> list[Floats]:
        return [values.of(batch[1]) for values, _ in by_class[batch[0]]]

    if max(map(len, by_class.values()), default=0) <= _FEW_CONDITIONS:
        yield from ahead(work, batches)
    else:
        yield from ((batch, (values.of(batch[1]) for values, _ in by_class[batch[0]])) for batch in batches)


class _JointAccumulator(Accumulator):
    """Tallies of all questions, for designs whose reports are read all together."""

    def __init__(self, table: Table, counted: ClassCounts, parts: Sequence[Part]) -> None:
        super().__init__(table, counted, parts)
        assert isinstance(table.design, JointDesign)
        self._design = table.design
        self._wanted = sorted({part.place for part in parts if part.boxes})
        self._by_class: dict[int, GridTallies] = {
            place: self._design.tallies(table, self.sums) for place in self._wanted
        }
        self.used = f"all {len(table.survey.ask):,} grids"

    def add(self, rows: Rows) -> None:
        for place, columns, weights in _batches(rows, self.counted, self._wanted, None):
            check()
            self._by_class[place].add(columns, weights)

    def state(self) -> list[bytes]:
        return [self._by_class[place].state() for place in self._wanted]

    def merge(self, state: Sequence[bytes]) -> None:
        for place, own in zip(self._wanted, state, strict=True):
            self._by_class[place].merge(own)

    def found(self) -> Found:
        found: Found = {}
        for part in self.parts:
            check()
            own = Totals.nothing(self.sums)
            try:
                if part.boxes:
                    own = self._design.totals(self.table, part.boxes, self._by_class[part.place])
                _added(found, part.row, own.scaled(np.array(self.units, np.float64)))
            except EmptyError:
                _added(found, part.row, None)
        return found


def _batches(
    rows: Rows, counted: ClassCounts, wanted: Sequence[int], groups: frozenset[int] | None
) -> Iterator[_Batch]:
    """Some rows of one class at a time."""
    if not wanted:
        return
    for batch in rows.scan(counted, wanted, groups):
        if len(wanted) == 1:
            yield wanted[0], batch.columns, batch.weights
            continue
        order = np.argsort(batch.classes, kind="stable")
        ends = np.searchsorted(batch.classes[order], [[place, place + 1] for place in wanted])
        for place, (start, stop) in zip(wanted, ends.tolist(), strict=True):
            if start < stop:
                mine = order[start:stop]
                yield place, {name: column[mine] for name, column in batch.columns.items()}, batch.weights[:, mine]


class EmptyEstimator(RowEstimator):
    """A condition that holds for nobody."""

    constant = variance = bound = 0.0
    groups: frozenset[int] | None = frozenset()

    def of(self, columns: Columns) -> Floats:
        return np.zeros(len(next(iter(columns.values()))))


EMPTY_ESTIMATOR = EmptyEstimator()
