"""Results chosen for being large: the top of a histogram, what is significant, heavy hitters, itemsets, rules.

`low` and `high` have to hold the truth of what was chosen; `alone_low` and `alone_high` are shown beside them, as the
rival that forgets the choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil import GRR, OLH, OUE, PGR, SHE, SubsetSelection, Text, simulate
from veil.engines import DrawnCollection
from veil.hitters import PEM
from veil.itemsets import SVIM, SVSM
from veil.mechanisms import FrequencyOracle, PureOracle
from veil_papers.coverage.cells import LEVELS, Case, Generator, Seen, never
from veil_papers.coverage.frequencies import support_tally
from veil_papers.datasets import Strings, Transactions, proportional

Ints = NDArray[np.int64]

ITEMS = {0.9: 0.87, 0.95: 0.92, 0.99: 0.96}
"""What intervals of items and sets have to reach: they rest on how sizes of sets were read."""
_TOP, _VALUES = 20, 1_000
_HELD = 20
_REPORTED: tuple[type[FrequencyOracle], ...] = (GRR, OLH, OUE, PGR, SubsetSelection, SHE)
_TRIED, _FOUND = 200_000, 16
_K = 32


def tops(epsilons: Iterable[float], runs: int) -> Iterator[Case]:
    """The top of a histogram of 1,000 values, and what of it is significant."""
    for epsilon in epsilons:
        for n in (1_000, 20_000, 200_000):
            held = proportional(np.arange(1, _VALUES + 1, dtype=np.float64) ** -0.7, n)
            for kind in (GRR, OLH):
                oracle: PureOracle = kind(epsilon, _VALUES)
                yield Case(oracle.name, "Zipf 0.7", n, epsilon, partial(_top, oracle, held), runs)


def _top(oracle: PureOracle, held: Ints, rng: Generator) -> Iterator[Seen]:
    estimate = oracle.estimate(support_tally(oracle, held, rng))
    truth = held / held.sum()
    order = np.argsort(-estimate.frequencies, kind="stable")[:_TOP]
    for level in LEVELS:
        low, high = estimate.selected_interval(_TOP, level)[order].T
        yield Seen("the top 20, selected", level, truth[order], low, high)
        low, high = estimate.interval(level)[order].T
        yield Seen("rival: the top 20, alone", level, truth[order], low, high)
    rows = estimate.significant()
    found = truth[[row.value for row in rows]] if rows else np.empty(0)
    ends = np.array([(row.low, row.high) for row in rows]).reshape(-1, 2)
    yield Seen("significant values, selected", 0.95, found, ends[:, 0], ends[:, 1])


def hitters(names: Strings, epsilon: float, runs: int) -> Iterator[Case]:
    """PEM on names that are nearly as frequent as each other."""
    yield Case("PEM", "flat names", _TRIED, epsilon, partial(_hitters, names, epsilon), runs)


def _hitters(names: Strings, epsilon: float, rng: Generator) -> Iterator[Seen]:
    seed = int(rng.integers(1 << 32))
    held = names.drawn(_TRIED, seed)
    known = {name: count / _TRIED for name, count in zip(names.values, held.tolist(), strict=True)}
    search = PEM(epsilon, Text(6), _FOUND)
    there = np.flatnonzero(held)
    collected = DrawnCollection(search.survey, [names.values[i] for i in there], seed, held[there])
    found = search.read(collected)
    truth = np.array([known.get(value, 0.0) for value in found.values])
    yield from table("heavy hitters", found, truth)
    surely = np.array(found.table().column("significant").to_pylist(), dtype=np.bool_)
    yield never("heavy hitters: nothing significant is held by nobody", (truth[surely] == 0).any(), 0.95)


def table(kind: str, found: Any, truth: NDArray[np.float64]) -> Iterator[Seen]:
    """The intervals of all rows as the table has them."""
    for level in LEVELS:
        columns = found.table(level).to_pydict()
        yield Seen(f"{kind}, selected", level, truth, columns["low"], columns["high"])
        yield Seen(f"rival: {kind}, alone", level, truth, columns["alone_low"], columns["alone_high"])


@dataclass(frozen=True, eq=False)
class Baskets:
    """Transactions, and how many people hold all of any items."""

    data: Transactions

    @cached_property
    def column(self) -> Any:
        """What `simulate` takes."""
        return self.data.to_arrow()

    @cached_property
    def _owners(self) -> tuple[Ints, Ints]:
        """Items in order, and who holds each."""
        order = np.argsort(self.data.sets.items, kind="stable")
        people = np.repeat(np.arange(self.data.people), self.data.sizes)[order]
        return np.searchsorted(self.data.sets.items[order], np.arange(self.data.universe + 1)), people

    def frequency(self, items: Iterable[int]) -> float:
        """The share of the people who hold all of these items."""
        starts, people = self._owners
        both: Ints | None = None
        for item in items:
            mine = people[starts[item] : starts[item + 1]]
            both = mine if both is None else np.intersect1d(both, mine, assume_unique=True)
        assert both is not None
        return len(both) / self.data.people


def mining(sets: Mapping[str, Transactions], epsilons: Iterable[float], runs: int) -> Iterator[Case]:
    """Frequent items by SVIM, frequent sets and rules by SVSM."""
    for label, data in sets.items():
        baskets = Baskets(data)
        for epsilon in epsilons:
            for way, run in (("SVIM", _items), ("SVSM", _itemsets)):
                yield Case(way, label, data.people, epsilon, partial(run, baskets, epsilon), runs, ITEMS)


def _items(baskets: Baskets, epsilon: float, rng: Generator) -> Iterator[Seen]:
    found = simulate(SVIM(_K, epsilon, baskets.data.domain), baskets.column, seed=int(rng.integers(1 << 32)))
    yield from table("items", found, np.array([baskets.frequency([item]) for item in found.items]))


def _itemsets(baskets: Baskets, epsilon: float, rng: Generator) -> Iterator[Seen]:
    found = simulate(SVSM(_K, epsilon, baskets.data.domain), baskets.column, seed=int(rng.integers(1 << 32)))
    yield from table("itemsets", found, np.array([baskets.frequency(items) for items in found.itemsets]))
    for level in LEVELS:
        rules = found.rules(0.2, level)
        ends = np.array([rule.confidence_interval for rule in rules]).reshape(-1, 2)
        truth = [baskets.frequency([*rule.given, *rule.then]) / baskets.frequency(rule.given) for rule in rules]
        yield Seen("rules", level, truth, ends[:, 0], ends[:, 1])


def reported(points: Iterable[tuple[int, float, int]], runs: int) -> Iterator[Case]:
    """The oracles that `choose` takes, at points (n, eps, values): every person's report is drawn and counted."""
    for n, epsilon, values in points:
        for kind in _REPORTED:
            oracle = kind(epsilon, values)
            few = runs if kind is not SHE else max(runs // 10, 2)
            run = partial(_absent, oracle, n)
            yield Case(f"{oracle.name}, {values:,} values", "20 held", n, epsilon, run, few, {0.95: 0.95})


def _absent(oracle: FrequencyOracle, n: int, rng: Generator) -> Iterator[Seen]:
    held = proportional(1.0 / np.arange(1, _HELD + 1), n)
    estimate = simulate(oracle, np.repeat(np.arange(_HELD), held), seed=int(rng.integers(1 << 32)))
    false = any(row.value >= _HELD for row in estimate.significant())
    yield never("significant: nothing is held by nobody", false)
