"""What is measured: how often intervals of one kind hold the truth, cell by cell, and how wide they are.

A case makes one collection and says which intervals it gave; a cell is what all its runs come to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from veil_papers.common.exhibits import Advance, Grid

Generator = np.random.Generator

LEVELS = (0.9, 0.95, 0.99)
LEAST: Mapping[float, float] = {0.9: 0.87, 0.95: 0.93, 0.99: 0.98}
"""How often intervals of each level have to hold the truth, up to two standard errors of the measurement."""

_TOGETHER = 3  # intervals of a run that count as independent of each other, at most


@dataclass(frozen=True)
class Seen:
    """Intervals of one kind and level that one collection gave, with the truth beside."""

    kind: str
    nominal: float
    truth: ArrayLike
    low: ArrayLike
    high: ArrayLike
    least: float | None = None
    """What it has to reach, where that is not what its case says."""
    most: float = 1.0
    """What it may cover at most; more would say that intervals are wider than they need to be."""


def never(kind: str, happened: bool | np.bool_, least: float | None = None) -> Seen:
    """Return one interval for a run, at 95 %: it holds if what must not happen did not."""
    return Seen(kind, 0.95, float(happened), 0.0, 0.0, least)


@dataclass(frozen=True)
class Case:
    """One kind of result on one data set: `run` makes a collection and gives the intervals that are printed.

    A kind that begins with "rival" is shown and not judged.
    """

    way: str
    data: str
    n: int
    epsilon: float
    run: Callable[[Generator], Iterable[Seen]]
    runs: int
    least: Mapping[float, float] = field(default_factory=lambda: LEAST)


@dataclass(frozen=True)
class Cell:
    """How often intervals held the truth: `error` is the standard error over runs, 0 where no chance was involved."""

    kind: str
    way: str
    data: str
    n: int
    epsilon: float
    nominal: float
    coverage: float
    error: float
    width: float
    intervals: int
    least: float
    most: float = 1.0

    @property
    def judged(self) -> bool:
        """Whether it has to hold: the rivals don't."""
        return not self.kind.startswith("rival")

    @property
    def fails(self) -> bool:
        """Whether it covers less than it has to, or more than it may, by more than two standard errors."""
        return self.coverage + 2 * self.error < self.least or self.coverage - 2 * self.error > self.most

    def __str__(self) -> str:
        off = f" \N{PLUS-MINUS SIGN} {self.error:.3f}" if self.error else ""
        what = f"{self.kind}, {self.way}, {self.data}, n = {self.n:,}, eps = {self.epsilon:g}, {self.nominal:.0%}"
        return f"{what}: {self.coverage:.3f}{off}"


class _Runs:
    """Runs of one kind and level. A run that selected nothing has nothing that is false: all of it holds.

    So what is measured of selected intervals is the false coverage rate (Benjamini and Yekutieli 2005), less from 1.
    """

    def __init__(self, kind: str, nominal: float) -> None:
        self.kind, self.nominal = kind, nominal
        self.held: list[float] = []
        self.width, self.intervals = 0.0, 0
        self.least: float | None = None
        self.most = 1.0

    def add(self, seen: Seen) -> None:
        truth, low, high = (np.atleast_1d(np.asarray(of, np.float64)) for of in (seen.truth, seen.low, seen.high))
        slack = 1e-9 * np.maximum(1.0, np.abs(truth))  # rounding of doubles
        held = (low <= truth + slack) & (truth - slack <= high)
        self.held.append(float(held.mean()) if len(truth) else 1.0)
        self.width += float((high - low).sum())
        self.intervals += len(truth)
        self.least, self.most = seen.least, seen.most

    def cell(self, case: Case) -> Cell:
        held, level = np.array(self.held), self.nominal
        runs, chance = len(held), self.nominal * (1 - self.nominal)
        # Few runs may agree by chance: one more run is added to their squares, as far off as the level itself scatters.
        one_more = chance / np.clip(self.intervals / runs, 1.0, _TOGETHER)
        squares = float(np.sum((held - held.mean()) ** 2))
        error = float(np.sqrt((squares + one_more) / (runs * max(runs - 1, 1))))
        return Cell(
            self.kind,
            case.way,
            case.data,
            case.n,
            case.epsilon,
            level,
            float(held.mean()),
            error,
            self.width / self.intervals if self.intervals else float("nan"),
            self.intervals,
            case.least.get(level, 0.0) if self.least is None else self.least,
            self.most,
        )


def measure(cases: Iterable[Case], seed: Iterable[int], advance: Advance) -> Iterator[Cell]:
    """The cells of all cases; each run has a seed of its own, so that a case is the same alone."""
    for place, case in enumerate(cases):
        found: dict[tuple[str, float], _Runs] = {}
        for run in range(case.runs):
            for seen in case.run(np.random.default_rng([*seed, place, run])):
                at = seen.kind, seen.nominal
                found.setdefault(at, _Runs(*at)).add(seen)
            advance(1)
        for runs in found.values():
            yield runs.cell(case)


def pooled(cells: Iterable[Cell]) -> list[Cell]:
    """One cell for each kind and level: the mean over all its cells, which each have to reach the same."""
    groups: dict[tuple[str, float, float], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.kind, cell.nominal, cell.least), []).append(cell)
    found = []
    for same in groups.values():
        together = float(np.mean([cell.coverage for cell in same]))
        error = float(np.sqrt(np.sum([cell.error**2 for cell in same]))) / len(same)
        name = f"{len(same)} cells"
        found.append(replace(same[0], way=name, data="all", n=0, epsilon=0.0, coverage=together, error=error, most=1.0))
    return found


def worst(cells: Iterable[Cell]) -> Cell:
    """The cell with the least coverage beyond what it has to reach."""
    return min(cells, key=lambda cell: cell.coverage + 2 * cell.error - cell.least)


def grid(
    title: str,
    cells: Iterable[Cell],
    rows: Callable[[Cell], str],
    columns: Callable[[Cell], str],
    of: Callable[[list[float]], float] = min,
) -> Grid:
    """Coverage as a table; where several cells meet the lowest is shown, or the mean, red if any of them fails."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((rows(cell), columns(cell)), []).append(cell)
    numbers = {at: of([cell.coverage for cell in here]) for at, here in found.items()}
    return filled(
        title, "coverage", numbers, {at: any(c.judged and c.fails for c in here) for at, here in found.items()}
    )


def filled(
    title: str, y_label: str, numbers: Mapping[tuple[str, str], float], fails: Mapping[tuple[str, str], bool],
    low: float = 0.8, high: float = 1.0,
) -> Grid:  # fmt: skip
    """Return a grid of numbers by row and column, in the order in which these appear."""
    down, across = (tuple(dict.fromkeys(at[i] for at in numbers)) for i in (0, 1))
    shown = tuple(tuple(numbers.get((row, column), float("nan")) for column in across) for row in down)
    red = tuple(tuple(fails.get((row, column), False) for column in across) for row in down)
    return Grid(title, y_label, down, across, shown, red, low, high)
