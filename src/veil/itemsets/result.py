"""What the miners find: frequent items and itemsets with their errors, and how each round went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from veil.domain import Domain
from veil.errors import ParameterError
from veil.itemsets.rules import Rule, find_rules
from veil.results.estimate import Estimate, Row
from veil.tools.normal import two_sided
from veil.view import ItemSets

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FrequentItems", "FrequentItemset", "FrequentItemsets", "Step"]


@dataclass(frozen=True)
class Step:
    """One round, as it went: what was asked for, of how many people, through what, padded to which length."""

    name: str
    people: int
    mechanism: str
    candidates: int
    length: int = 1
    update: float = 1.0
    """The factor by which estimates were multiplied for what padding to `length` misses (5.5)."""
    doubt: float = 0.0
    """How far that factor may be off, relatively: by another reading of the sizes (`Sizes.doubt`)."""


@dataclass(frozen=True, eq=False)
class FrequentItems:
    """The k items that most people seem to hold.

    `estimate` has all candidates of the last round, labelled, for post-processing; its errors are the oracle's noise
    and the samplings'. Errors and intervals of `rows` have the doubt about the update factor in them, too, which is
    the same for all rows. Neither knows that an item may be held by people of smaller or larger sets than others.
    """

    k: int
    estimate: Estimate
    history: tuple[Step, ...]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The items with their frequencies, counts and 95 % intervals, most frequent first."""
        return tuple(_doubted(row, self.history[-1].doubt) for row in self.estimate.top(self.k))

    @property
    def items(self) -> list[Any]:
        """The items alone, most frequent first."""
        return [row.value for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FrequentItems({len(self)} items, {_rounds(self.history)})"

    def to_arrow(self) -> pyarrow.Table:
        """value, frequency, count, stderr, low, high as an Arrow table."""
        import pyarrow as pa

        try:
            values = pa.array(self.items)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # labels of several types
            values = pa.array([str(item) for item in self.items])
        return pa.table({"value": values, **_columns(self.rows)})


@dataclass(frozen=True)
class FrequentItemset:
    """A set of items, how many people hold all of them, and a 95 % interval."""

    items: tuple[Any, ...]
    frequency: float
    count: float
    stderr: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class FrequentItemsets:
    """The k sets of items that most people seem to hold; single items are sets too.

    `singles` are the frequent items, from their own rounds. `estimate` is of the candidate sets of two and more items,
    by their number in `candidates` (codes of the universe); it is None where no set could be guessed. What
    FrequentItems says of intervals holds here too.
    """

    k: int
    singles: FrequentItems
    candidates: ItemSets
    estimate: Estimate | None
    history: tuple[Step, ...]

    @property
    def universe(self) -> Domain:
        """The items."""
        return self.singles.estimate.domain

    @cached_property
    def rows(self) -> tuple[FrequentItemset, ...]:
        """The sets with their frequencies, counts and 95 % intervals, most frequent first."""
        return tuple(sorted(self.mined, key=lambda row: -row.frequency)[: self.k])

    @cached_property
    def mined(self) -> tuple[FrequentItemset, ...]:
        """All sets with an estimate: the k items, then all candidates, in their order."""
        found = [_itemset((row.value,), row) for row in self.singles.rows]
        doubt = self.history[-1].doubt
        if self.estimate is not None:
            by_number = sorted(self.estimate.top(len(self.estimate)), key=lambda row: row.value)
            for row in by_number:
                codes = np.array(self.candidates[row.value], dtype=np.uint64)
                found.append(_itemset(tuple(self.universe.decode(codes)), _doubted(row, doubt)))
        return tuple(found)

    @property
    def itemsets(self) -> list[tuple[Any, ...]]:
        """The sets alone, most frequent first; items in the order of the universe."""
        return [row.items for row in self.rows]

    def at(self, items: Any) -> FrequentItemset:
        """One set that was estimated, in any order of its items."""
        wanted = frozenset(items)
        for row in self.mined:
            if frozenset(row.items) == wanted:
                return row
        raise ParameterError("this set was not among the candidates")

    def rules(self, confidence: float = 0.5, level: float = 0.95) -> list[Rule]:
        """Association rules among the k sets, highest confidence first; their errors: see `veil.itemsets.rules`."""
        return find_rules(self.rows, self.mined, confidence, level)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FrequentItemsets({len(self)} sets, {_rounds(self.history)})"

    def to_arrow(self) -> pyarrow.Table:
        """items (lists of labels as text), frequency, count, stderr, low, high as an Arrow table."""
        import pyarrow as pa

        return pa.table({"items": [[str(item) for item in row.items] for row in self.rows], **_columns(self.rows)})


def _itemset(items: tuple[Any, ...], row: Row) -> FrequentItemset:
    return FrequentItemset(items, row.frequency, row.count, row.stderr, row.low, row.high)


def _doubted(row: Row, doubt: float) -> Row:
    """The row with the doubt about its update factor in its error."""
    stderr = math.hypot(row.stderr, doubt * row.frequency)
    reach = two_sided(0.95) * stderr
    return replace(row, stderr=stderr, low=row.frequency - reach, high=row.frequency + reach)


def _columns(rows: Sequence[Row] | Sequence[FrequentItemset]) -> dict[str, list[float]]:
    names = ("frequency", "count", "stderr", "low", "high")
    return {name: [getattr(row, name) for row in rows] for name in names}


def _rounds(history: tuple[Step, ...]) -> str:
    return f"{len(history)} rounds of {sum(step.people for step in history)} people"
