"""What the miners find: frequent items and itemsets with their errors, and how each round went."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from veil.domain import Domain
from veil.errors import DomainError
from veil.itemsets.rules import Rule, find_rules
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.estimate import Estimate, Row
from veil.results.units import Column, Unit, make_table, value_unit
from veil.tools.normal import critical, two_sided
from veil.view import ItemSets

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

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


class Mined(Result):
    """What frequent items and frequent itemsets have in common."""

    selection: ClassVar[bool] = True
    history: tuple[Step, ...]

    @abstractmethod
    def _rows(self, level: float) -> Sequence[Row] | Sequence[FrequentItemset]:
        """What was found, the most frequent first, with intervals of this level."""

    @abstractmethod
    def _named(self, level: float) -> dict[str, Column]:
        """The first column of the table."""

    @abstractmethod
    def _significant(self, level: float) -> list[bool]:
        """Which rows exceed what candidates that nobody holds do, but for a chance of 1 - level over all of them."""

    @property
    def n(self) -> int:
        """How many people were asked: each of them once."""
        return sum(step.people for step in self.history)

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """What was found, the most frequent first."""
        rows, share = self._rows(level), Unit("share")
        units = {"frequency": share, "count": Unit("people"), "stderr": share, "low": share, "high": share}
        numbers: dict[str, Column] = {
            name: ([getattr(row, name) for row in rows], unit) for name, unit in units.items()
        }
        return make_table({**self._named(level), **numbers, "significant": (self._significant(level), Unit("flag"))})

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """How many were found, how many of them are significant, and how the rounds went."""
        rounds = [{**asdict(step), "mechanism": step.mechanism.partition("(")[0]} for step in self.history]
        return {"found": len(self), "significant": sum(self._significant(level)), "rounds": rounds}

    def fact_units(self) -> Mapping[str, Unit]:
        counts = ("found", "significant", "rounds.people", "rounds.candidates", "rounds.length")
        factor = Unit("factor")
        return {"rounds.update": factor, "rounds.doubt": factor, **dict.fromkeys(counts, Unit("people"))}

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The first k of them with 95 % intervals. Needs `veil[plot]`."""
        from veil.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)


@dataclass(frozen=True, eq=False)
class FrequentItems(Mined):
    """The k items that most people seem to hold.

    `estimate` has all candidates of the last round, labelled, for post-processing; its errors are the oracle's noise
    and the samplings'. Errors and intervals of `rows` have the doubt about the update factor in them, too, which is
    the same for all rows. Neither knows that an item may be held by people of smaller or larger sets than others.
    """

    kind: ClassVar[str] = "items"
    k: int
    estimate: Estimate
    history: tuple[Step, ...]
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    @property
    def lineage(self) -> tuple[str, ...]:
        return self.estimate.lineage

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The items with their frequencies, counts and 95 % intervals, most frequent first."""
        return self._rows(0.95)

    def _rows(self, level: float) -> tuple[Row, ...]:
        return tuple(_doubted(row, self.history[-1].doubt, level) for row in self.estimate.top(self.k))

    def _named(self, level: float) -> dict[str, Column]:
        return {"value": (self.items, value_unit(self.estimate.domain))}

    def _significant(self, level: float) -> list[bool]:
        return [_surely(row, self.estimate, self.history[-1].doubt, level) for row in self.rows]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def population(self) -> int:
        return self.estimate.population

    @property
    def items(self) -> list[Any]:
        """The items alone, most frequent first."""
        return [row.value for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FrequentItems({len(self)} items, {_rounds(self.history)})"


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
class FrequentItemsets(Mined):
    """The k sets of items that most people seem to hold; single items are sets too.

    `singles` are the frequent items, from their own rounds. `estimate` is of the candidate sets of two and more items,
    by their number in `candidates` (codes of the universe); it is None where no set could be guessed. What
    FrequentItems says of intervals holds here too.
    """

    kind: ClassVar[str] = "itemsets"
    k: int
    singles: FrequentItems
    candidates: ItemSets
    estimate: Estimate | None
    history: tuple[Step, ...]
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    @property
    def lineage(self) -> tuple[str, ...]:
        return (self.singles if self.estimate is None else self.estimate).lineage

    @property
    def population(self) -> int:
        return self.singles.population

    @property
    def universe(self) -> Domain:
        """The items."""
        return self.singles.estimate.domain

    @cached_property
    def rows(self) -> tuple[FrequentItemset, ...]:
        """The sets with their frequencies, counts and 95 % intervals, most frequent first."""
        return self._rows(0.95)

    @cached_property
    def mined(self) -> tuple[FrequentItemset, ...]:
        """All sets with an estimate: the k items, then all candidates, in their order."""
        return self._mined(0.95)

    def _rows(self, level: float) -> tuple[FrequentItemset, ...]:
        return tuple(sorted(self._mined(level), key=lambda row: -row.frequency)[: self.k])

    def _mined(self, level: float) -> tuple[FrequentItemset, ...]:
        found = [_itemset((row.value,), row) for row in self.singles._rows(level)]
        doubt = self.history[-1].doubt
        if self.estimate is not None:
            by_number = sorted(self.estimate.top(len(self.estimate)), key=lambda row: row.value)
            for row in by_number:
                codes = np.array(self.candidates[row.value], dtype=np.uint64)
                found.append(_itemset(tuple(self.universe.decode(codes)), _doubted(row, doubt, level)))
        return tuple(found)

    def _named(self, level: float) -> dict[str, Column]:
        return {"items": (self.itemsets, Unit("items"))}

    def _significant(self, level: float) -> list[bool]:
        singles = self.singles.estimate, self.singles.history[-1].doubt
        larger = self.estimate or singles[0], self.history[-1].doubt
        return [_surely(row, *(singles if len(row.items) == 1 else larger), level) for row in self.rows]

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """What the others say, and association rules of a confidence of at least one half."""
        return {**super().facts(level), "rules": [rule.to_json() for rule in self.rules(level=level)]}

    def fact_units(self) -> Mapping[str, Unit]:
        items, ends = Unit("items"), ("", "_stderr", "_low", "_high")
        shares = {f"rules.confidence{end}": Unit("share") for end in ends}
        lifts = {f"rules.lift{end}": Unit("factor") for end in ends}
        sides = {"rules.given": items, "rules.then": items, "rules.frequency": Unit("share")}
        return {**super().fact_units(), **sides, **shares, **lifts}

    def __iter__(self) -> Iterator[FrequentItemset]:
        return iter(self.rows)

    def __getitem__(self, items: Any) -> FrequentItemset:
        """One set that was estimated, in any order of its items; one item may stand alone."""
        return self.at(items if isinstance(items, (tuple, list, set, frozenset)) else (items,))

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
        raise DomainError("expected a set that was among the candidates")

    def rules(self, confidence: float = 0.5, level: float = 0.95) -> list[Rule]:
        """Association rules among the k sets, highest confidence first; their errors: see `veil.itemsets.rules`."""
        return find_rules(self.rows, self.mined, confidence, level)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FrequentItemsets({len(self)} sets, {_rounds(self.history)})"


def _itemset(items: tuple[Any, ...], row: Row) -> FrequentItemset:
    return FrequentItemset(items, row.frequency, row.count, row.stderr, row.low, row.high)


def _surely(row: Row | FrequentItemset, estimate: Estimate, doubt: float, level: float) -> bool:
    """Whether a row exceeds what absent candidates do, and what the doubt about its update factor may have added."""
    alpha = round(1 - level, 12)
    doubted = critical(alpha / len(estimate)) * doubt * row.frequency
    return row.frequency > math.hypot(estimate.threshold(alpha), doubted)


def _doubted(row: Row, doubt: float, level: float) -> Row:
    """The row with the doubt about its update factor in its error, and an interval of this level."""
    stderr = math.hypot(row.stderr, doubt * row.frequency)
    reach = two_sided(level) * stderr
    return replace(row, stderr=stderr, low=row.frequency - reach, high=row.frequency + reach)


def _rounds(history: tuple[Step, ...]) -> str:
    return f"{len(history)} rounds of {sum(step.people for step in history)} people"
