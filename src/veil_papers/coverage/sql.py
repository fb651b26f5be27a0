"""Answers in SQL: counts, sums and averages, groups, and differences between two collections; real reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.sql import HI, HIO, MG, SC, Answer, Category, Design, Grids, Measure, Table
from veil_papers.coverage.cells import LEVELS, Case, Generator, Seen
from veil_papers.datasets import online_retail

Bools = NDArray[np.bool_]

LEAST: Mapping[float, float] = {0.9: 0.87, 0.95: 0.92, 0.99: 0.97}
DESIGNS: dict[str, Design] = {
    "HIO": HIO(),
    "MG": MG(),
    "SC": SC(levels="sampled"),
    "HI": HI(),
    "Grids": Grids(fine=25, coarse=5, people=20_000),
}
_SHIFT = 0.3


@dataclass(frozen=True, eq=False)
class Rows:
    """People with two private dimensions, age (25 values) and state (4), a public region and a public purchase."""

    label: str
    age: NDArray[np.int64]
    state: NDArray[np.int64]
    region: NDArray[np.int64]
    purchase: NDArray[np.int64]


def census(people: int, later: float = 0.0) -> Rows:
    """People whose age, state, region and purchase go together; purchases have a long tail (in cents)."""
    rng = np.random.default_rng([people, round(100 * later)])
    hidden = rng.normal(size=people)
    age = np.clip(np.floor(12 + 5 * (hidden + later) + 2 * rng.normal(size=people)), 0, 24).astype(np.int64)
    state = np.clip(np.floor(1 + 0.8 * hidden + rng.normal(size=people)), 0, 3).astype(np.int64)
    region = (rng.random(people) < 1 / (1 + np.exp(-hidden))).astype(np.int64) + (rng.random(people) < 0.1)
    purchase = np.rint(np.exp(6 + 0.5 * hidden + 0.9 * rng.normal(size=people))).astype(np.int64)
    return Rows("census", age, state, region, purchase)


def shop(people: int, folder: str | Path | None = None) -> Rows:
    """Order lines of Online Retail: price in 25 buckets, region in four, public category in three, postage in pence."""
    data = online_retail(folder).resample(people, people)
    region, category, price = data.private.codes.T.astype(np.int64)
    postage = np.rint(100 * data.public["postage"]).astype(np.int64)
    return Rows("shop", price // 5, np.minimum(region, 3), np.minimum(category, 2), postage)


RECORD = Record.of(age=Integers(0, 24), state=4)
PUBLIC = (Category("region", ("0", "1", "2")), Measure("purchase"))


def asked(rows: Rows, epsilon: float, design: Design, rng: Generator) -> tuple[Table, MemoryCollection]:
    """One collection of real reports."""
    table = Table(epsilon, RECORD, PUBLIC, design)
    public = table.encode_public({"region": rows.region.astype(str), "purchase": rows.purchase})
    held = {"age": rows.age, "state": rows.state}
    reports = table.survey.randomize(held, SeededForExperiments(int(rng.integers(1 << 62))), public=public)
    return table, MemoryCollection(table.survey, reports)


# -- queries with their truth ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """A WHERE clause, and who it holds for."""

    sql: str
    low: int
    high: int
    states: tuple[int, ...] = (0, 1, 2, 3)

    def holds(self, rows: Rows) -> Bools:
        """Who is selected."""
        return np.asarray((rows.age >= self.low) & (rows.age <= self.high) & np.isin(rows.state, self.states))


CONDITIONS = (
    Condition("age BETWEEN 5 AND 14", 5, 14),
    Condition("age <= 17 AND state = 1", 0, 17, (1,)),
    Condition("age BETWEEN 8 AND 20 AND state IN (0, 2)", 8, 20, (0, 2)),
)
_SELECT = "COUNT(*) AS people, SUM(purchase) AS purchases, AVG(purchase) AS mean"


def _text(where: Condition, key: str | None = None) -> str:
    """The query, by groups of a column where one is named."""
    first, last = ("", "") if key is None else (f"{key}, ", f" GROUP BY {key} ORDER BY {key}")
    return f"SELECT {first}{_SELECT} FROM people WHERE {where.sql}{last}"  # noqa: S608  # parts of this module's own


def _truth(rows: Rows, held: Bools) -> dict[str, float]:
    count, total = float(held.sum()), float(rows.purchase[held].sum())
    return {"people": count, "purchases": total, "mean": total / count if count else np.nan}


_KINDS = {"people": "SQL: COUNT", "purchases": "SQL: SUM", "mean": "SQL: AVG"}


def totals(rows: Rows, epsilon: float, design: Design, rng: Generator) -> Iterator[Seen]:
    """Counts, sums and averages of several conditions; the same by public and by private groups."""
    table, collected = asked(rows, epsilon, design, rng)
    plain = [(replace(table, query=_text(one)).read(collected), _truth(rows, one.holds(rows))) for one in CONDITIONS]
    for name, kind in _KINDS.items():
        yield from _seen(kind, [(answer, name, [truth[name]]) for answer, truth in plain])
    yield from _groups(table, collected, rows)


def _groups(table: Table, collected: MemoryCollection, rows: Rows) -> Iterator[Seen]:
    where = CONDITIONS[0]
    held = where.holds(rows)
    found = []
    for key, column in (("region", rows.region), ("state", rows.state)):
        answer = replace(table, query=_text(where, key)).read(collected)
        labels = [int(label) for label in answer.table().column(key).to_pylist()]
        each = [_truth(rows, held & (column == label)) for label in labels]
        found += [(answer, "people", [truth["people"] for truth in each])]
    yield from _seen("SQL: GROUP BY", found)


def differences(rows: Rows, before: Rows, epsilon: float, design: Design, rng: Generator) -> Iterator[Seen]:
    """How counts and averages changed from one collection to the next."""
    one = CONDITIONS[0]
    answers = []
    for some in (rows, before):
        table, collected = asked(some, epsilon, design, rng)
        answers.append(replace(table, query=_text(one)).read(collected))
    now, then = (_truth(some, one.holds(some)) for some in (rows, before))
    for level in LEVELS:
        found = answers[0].difference(answers[1]).table(level).to_pydict()
        truth = [now[name] - then[name] for name in found["output"]]
        yield Seen("SQL: differences", level, truth, found["difference_low"], found["difference_high"])


def _seen(kind: str, found: Sequence[tuple[Answer, str, list[float]]]) -> Iterator[Seen]:
    """The intervals of one output of each answer, beside the truth of its rows; what is not known is left out."""
    for level in LEVELS:
        rows = [
            (true, *ends)
            for answer, name, truth in found
            for true, ends in zip(truth, answer.output(name).interval(level), strict=True)
            if np.isfinite([true, *ends]).all()
        ]
        yield Seen(kind, level, *np.array(rows).reshape(-1, 3).T)


def cases(
    epsilons: Iterable[float],
    people: Iterable[int],
    designs: Iterable[str],
    runs: int,
    folder: str | Path | None = None,
) -> Iterator[Case]:
    """Every design on both tables, and differences of the default one."""
    for n in people:
        tables = (census(n), shop(n, folder))
        before = census(n, _SHIFT)
        for epsilon in epsilons:
            for name in designs:
                for rows in tables:
                    way = partial(totals, rows, epsilon, DESIGNS[name])
                    yield Case(name, rows.label, n, epsilon, way, runs, LEAST)
            way = partial(differences, tables[0], before, epsilon, DESIGNS["HIO"])
            yield Case("HIO", "census", n, epsilon, way, runs, LEAST)
