"""Random queries by what they ask about and how many people they select, and how far answers to them are off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories
from veil.sql import Design
from veil_papers.common.exhibits import Advance
from veil_papers.datasets import Tabular
from veil_papers.sql.asking import Collection, Reading
from veil_papers.sql.law import Box

Floats = NDArray[np.float64]

_SAMPLE, _TRIED, _NEAR = 5_000, 20_000, 1.25
_AT_ONCE = 500

COUNT, SUM, AVG = "COUNT", "SUM", "AVG"


@dataclass(frozen=True)
class Kind:
    """How many ordinal and how many categorical dimensions a query asks about: 1+0, 2+2 and so on."""

    ordinal: int
    categorical: int

    def __str__(self) -> str:
        return f"{self.ordinal}+{self.categorical}"


@dataclass(frozen=True, eq=False)
class Asked:
    """A query with its true answers."""

    box: Box
    count: float
    total: float

    @property
    def truth(self) -> dict[str, float]:
        """The true answer of each aggregate."""
        return {COUNT: self.count, SUM: self.total, AVG: self.total / self.count}


class Drawn:
    """People of whom queries are drawn: ranges between two people's values, and one label of each other dimension."""

    def __init__(self, data: Tabular, measure: str, seed: Sequence[int]) -> None:
        self.data, self.measure = data, measure
        self.weights = data.public[measure].astype(np.float64)
        parts = data.private.domain.parts
        self.categorical = [place for place, part in enumerate(parts) if isinstance(part, Categories)]
        self.ordinal = [place for place in range(len(parts)) if place not in self.categorical]
        self.rng = np.random.default_rng(seed)
        rows = self.rng.integers(0, data.people, min(_SAMPLE, data.people))
        self.sample = data.private.codes[rows].astype(np.int32)

    def queries(self, kind: Kind, selectivity: float, count: int) -> list[Asked]:
        """So many queries that select about this share of the people, or fewer where there are none."""
        found: list[Box] = []
        for _ in range(_TRIED // _AT_ONCE):
            sides = self._sides(kind)
            held = np.ones((_AT_ONCE, len(self.sample)), np.bool_)
            for place, (starts, stops) in sides.items():
                column = self.sample[:, place]
                held &= (column >= starts[:, None]) & (column < stops[:, None])
            shares = held.mean(axis=1)
            near = np.flatnonzero((shares >= selectivity / _NEAR) & (shares <= selectivity * _NEAR))
            for row in near[: count - len(found)].tolist():
                box: list[tuple[int, int] | None] = [None] * self.sample.shape[1]
                for place, (starts, stops) in sides.items():
                    box[place] = int(starts[row]), int(stops[row])
                found.append(tuple(box))
            if len(found) == count:
                break
        return [self.asked(box) for box in found]

    def asked(self, box: Box) -> Asked:
        """A query with its truth."""
        held = np.ones(self.data.people, np.bool_)
        for column, side in zip(self.data.private.codes.T, box, strict=True):
            if side is not None:
                held &= (column >= side[0]) & (column < side[1])
        return Asked(box, float(held.sum()), float(self.weights[held].sum()))

    def _sides(self, kind: Kind) -> dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Sides of many boxes over the same dimensions, drawn at random."""
        found = {}
        for place in self.rng.permutation(self.ordinal)[: kind.ordinal].tolist():
            both = self.sample[self.rng.integers(0, len(self.sample), (2, _AT_ONCE)), place]
            found[place] = both.min(axis=0), both.max(axis=0) + 1
        for place in self.rng.permutation(self.categorical)[: kind.categorical].tolist():
            label = self.rng.integers(0, self.data.private.sizes[place], _AT_ONCE).astype(np.int32)
            found[place] = label, label + 1
        return found


Way = tuple[Design, Reading]
"""How people are asked, and how they are read: "plain" or "levels"."""


def relative_errors(
    drawn: Drawn, epsilon: float, ways: Mapping[str, Way], asked: Sequence[Asked], runs: int,
    seed: Callable[[int], int], advance: Advance, slow: Mapping[str, int],
) -> dict[str, dict[str, Floats]]:  # fmt: skip
    """The error over the true answer of every aggregate: by way, one row per collection and one column per query.

    Ways of the same design read the same reports. Of those that are `slow` one query in so many is
    asked; the others are NaN.
    """
    found: dict[str, dict[str, list[list[float]]]] = {name: {COUNT: [], SUM: [], AVG: []} for name in ways}
    for run in range(runs):
        made: dict[Design, Collection] = {}
        for name, (design, reading) in ways.items():
            if design not in made:
                made[design] = Collection(drawn.data, epsilon, design, seed(run), drawn.measure)
            rows: dict[str, list[float]] = {COUNT: [], SUM: [], AVG: []}
            for number, one in enumerate(asked):
                if number % slow.get(name, 1):
                    for row in rows.values():
                        row.append(np.nan)
                    continue
                count, total = made[design].sums(one.box, reading)
                answers = {COUNT: count, SUM: total, AVG: total / count if count else np.inf}
                for what, truth in one.truth.items():
                    rows[what].append(abs(answers[what] - truth) / abs(truth))
            for what, row in rows.items():
                found[name][what].append(row)
        advance(1)
    return {name: {what: np.array(rows) for what, rows in of.items()} for name, of in found.items()}
