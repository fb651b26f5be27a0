"""Results of mining: frequent items and itemsets with their errors, and the rounds of the study."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain
from veil.errors import DomainError
from veil.itemsets.missed import Between, divided, shown_interval
from veil.itemsets.rules import AssociationRule, find_rules
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.estimate import Estimate, Row
from veil.results.units import Column, Unit, make_table, value_unit
from veil.tools.numbers import alpha_of, selected_level, two_sided
from veil.view import ItemSets

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MiningRound:
    """One round of mining: its name, people, mechanism, number of candidates and padding length."""

    name: str
    people: int
    mechanism: str
    candidates: int
    length: int = 1
    update: float = 1.0
    """The factor by which estimates were multiplied for what padding to `length` misses (5.5)."""
    update_low: float = 1.0
    """The lower end of a 95 % interval of what that factor should be, by what the reports of sizes leave possible."""
    update_high: float = 1.0
    """The upper end of the same."""

    def widened(self, estimate: Estimate, level: float) -> Floats:
        """Intervals (low, high) of this round's estimates with the doubt about what padding misses in them.

        They are within 0 and 1, for each frequency alone; `veil.itemsets.missed` says what they rest on.
        """
        return divided(estimate.frequencies, estimate.interval(level), self._shown(level))

    def errors(self, estimate: Estimate) -> Floats:
        """Standard errors with the same doubt in them, as far as one number can say it."""
        low, *_, high = self._shown(0.95)
        return np.hypot(estimate.stderr, estimate.frequencies * (high - low) / (2 * two_sided(0.95)))

    def _shown(self, level: float) -> Between:
        return shown_interval(self.update, self.update_low, self.update_high, level)


class MiningResult(Result):
    """What frequent items and frequent itemsets have in common."""

    selection: ClassVar[bool] = True
    history: tuple[MiningRound, ...]

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
        bounds = dict.fromkeys(("low", "high", "alone_low", "alone_high"), share)
        units = {"frequency": share, "count": Unit("people"), "stderr": share, **bounds}
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
        factors = dict.fromkeys(("rounds.update", "rounds.update_low", "rounds.update_high"), Unit("factor"))
        return {**factors, **dict.fromkeys(counts, Unit("people"))}

    def remarks(self) -> list[str]:
        said = [
            f"These were selected for being large, out of {self._tested:,} that were estimated: significance and"
            " intervals take all of them into account."
        ]
        last = self.history[-1]
        if last.length < last.candidates and last.update_low == last.update_high:
            said.append(
                "What larger sets hold beyond the padding length is counted too low; intervals do not know by how much."
            )
        return said if len(self) else []

    @property
    @abstractmethod
    def _tested(self) -> int:
        """How many were estimated to find these."""

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The first k of them with 95 % intervals. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_rows

        return plot_rows(self, k, truth=truth, ax=ax, **style)


@dataclass(frozen=True, eq=False)
class FrequentItems(MiningResult):
    """The k items that most people seem to hold.

    `estimate` has all candidates of the last round, labelled, for post-processing; its errors are the oracle's noise
    and the samplings'. Errors and intervals of `rows` have in them, too, what is in doubt about the factor for what
    padding misses: the noise of the sizes it was read from, and that an item may be held by people of smaller or larger
    sets than others. `low` to `high` holds for the k best of all candidates that were estimated, `alone_low` to
    `alone_high` for an item that was in mind before.
    """

    kind: ClassVar[str] = "items"
    k: int
    estimate: Estimate
    history: tuple[MiningRound, ...]
    guarantee: Guarantee | None = field(default=None, kw_only=True)

    @property
    def lineage(self) -> tuple[str, ...]:
        return self.estimate.lineage

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The items with their frequencies, counts and 95 % intervals, most frequent first."""
        return self._rows(0.95)

    def _rows(self, level: float) -> tuple[Row, ...]:
        sure = selected_level(level, min(self.k, len(self.estimate)), len(self.estimate))
        return tuple(sorted(_doubted(self.estimate, self.history[-1], level, sure), key=_rank)[: self.k])

    def _named(self, level: float) -> dict[str, Column]:
        return {"value": (self.items, value_unit(self.estimate.domain))}

    def _significant(self, level: float) -> list[bool]:
        threshold = self.estimate.threshold(alpha_of(level))
        return [row.frequency > threshold for row in self.rows]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def population(self) -> int:
        return self.estimate.population

    @property
    def _tested(self) -> int:
        return len(self.estimate)

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
    """A set of items, how many people hold all of them, and 95 % intervals: as one of those selected, and alone."""

    items: tuple[Any, ...]
    frequency: float
    count: float
    stderr: float
    low: float
    high: float
    alone_low: float
    alone_high: float


@dataclass(frozen=True, eq=False)
class FrequentItemsets(MiningResult):
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
    history: tuple[MiningRound, ...]
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
        """All sets with an estimate: the k items, then all candidates, in their order; none of them is selected."""
        return self._mined(0.95, 0.95)

    @property
    def _tested(self) -> int:
        """How many items and larger sets were estimated."""
        return len(self.singles.estimate) + len(self.candidates)

    def _rows(self, level: float) -> tuple[FrequentItemset, ...]:
        sure = selected_level(level, min(self.k, self._tested), self._tested)
        return tuple(sorted(self._mined(level, sure), key=_rank)[: self.k])

    def _mined(self, level: float, sure: float) -> tuple[FrequentItemset, ...]:
        singles = sorted(_doubted(self.singles.estimate, self.singles.history[-1], level, sure), key=_rank)
        found = [_itemset((row.value,), row) for row in singles[: self.singles.k]]
        if self.estimate is not None:
            for codes, row in zip(self.candidates, _doubted(self.estimate, self.history[-1], level, sure), strict=True):
                found.append(_itemset(tuple(self.universe.decode(np.array(codes, dtype=np.uint64))), row))
        return tuple(found)

    def _named(self, level: float) -> dict[str, Column]:
        return {"items": (self.itemsets, Unit("items"))}

    def _significant(self, level: float) -> list[bool]:
        return [self._surely(row, level) for row in self.rows]

    def _surely(self, row: FrequentItemset, level: float) -> bool:
        """Whether a set is above its round's threshold, where the chance of 1 - level is for both rounds together."""
        estimate = self.singles.estimate if len(row.items) == 1 else self.estimate
        assert estimate is not None  # larger sets come from it
        return row.frequency > estimate.threshold(alpha_of(level) * len(estimate) / self._tested)

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

    def rules(self, confidence: float = 0.5, level: float = 0.95) -> list[AssociationRule]:
        """Association rules among the significant ones of the k sets, highest confidence first.

        Their errors and intervals: see `veil.itemsets.rules`. Intervals hold for sets that were selected for being
        significant: the fewer there are of all that were tried, the wider.
        """
        significant = [self._surely(row, level) for row in self.mined]
        sure = selected_level(level, max(1, sum(significant)), self._tested)
        known = [row for row, clear in zip(self._mined(sure, sure), significant, strict=True) if clear]
        return find_rules(self.rows, known, confidence)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"FrequentItemsets({len(self)} sets, {_rounds(self.history)})"


def _itemset(items: tuple[Any, ...], row: Row) -> FrequentItemset:
    bounds = row.low, row.high, row.alone_low, row.alone_high
    return FrequentItemset(items, row.frequency, row.count, row.stderr, *bounds)


def _rank(row: Row | FrequentItemset) -> float:
    return -row.frequency


def _doubted(estimate: Estimate, step: MiningRound, level: float, sure: float) -> list[Row]:
    """All that a round estimated, in its order, with the doubt about what padding misses in every error."""
    parts = estimate.shown, estimate.counts, step.errors(estimate)
    bounds = np.column_stack([*parts, step.widened(estimate, sure), step.widened(estimate, level)])
    return [Row(value, *map(float, numbers)) for value, numbers in zip(estimate.values, bounds, strict=True)]


def _rounds(history: tuple[MiningRound, ...]) -> str:
    return f"{len(history)} rounds of {sum(step.people for step in history)} reports"
