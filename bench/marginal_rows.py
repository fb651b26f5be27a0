"""Rows about joint distributions of 32 binary attributes: against limits, and against the same in plain numpy.

The rivals are what one writes first: proportional fitting with `sum` and a product for each pair (one table at a time,
and for all tables of one shape together), a tally of one view after another, and consistency by passes over attributes.
Where no table has the given pairs, they end somewhere, after 200 sweeps; ours finds the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.ours import threads
from bench.timing import Contestant, Row, Setting, local
from veil import Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.marginals import CALM
from veil.marginals.maxent import reconstruct, reconstruct_many
from veil.marginals.synthesis import synthesize
from veil_papers.datasets import Transactions, pos_baskets

Floats = NDArray[np.float64]
Pairs = dict[tuple[int, ...], Floats]

ATTRIBUTES, PEOPLE, EPSILON = 32, 1 << 18, 1.0
TRIPLES_SECONDS, EIGHT_SECONDS, COLLECT_SECONDS, DRAW_SECONDS = 10.0, 0.3, 1.0, 1.0
FEW = 100
"""Triples that the rival does in a turn: it is slow, and the same for each."""
DRAWN = 100_000
MOST_TURNS = 10
LIMIT, SWEEPS = 1e-10, 200
"""When the rivals' fitting ends; where no table has the given pairs, after all sweeps."""


def marginal_rows(setting: Setting) -> Iterator[Row]:
    """Every row, one thread on both sides."""
    turns = min(setting.repeats, MOST_TURNS)
    study, stored = _stored(pos_baskets().resample(PEOPLE, seed=0))
    with threads(1):
        yield from _collected(study, stored, turns)
        found = study.read(stored)
        pairs = dict(zip(found.views.sets, found.views.split(found.repaired.tables), strict=True))
        yield from _triples(pairs, turns)
        yield from _eight(pairs, turns)
        yield _drawn(pairs, min(turns, 3))


def _stored(baskets: Transactions) -> tuple[CALM, MemoryCollection]:
    """Reports about all pairs of the items that most people hold."""
    items = list(baskets.top_items(ATTRIBUTES))
    rows = np.repeat(np.arange(baskets.people), baskets.sizes)
    columns = {}
    for item in items:
        held = np.zeros(baskets.people, dtype=np.int64)
        held[rows[baskets.sets.items == item]] = 1
        columns[f"item{item}"] = held
    study = CALM(EPSILON, Record.of(**dict.fromkeys(columns, 2)), k=3, users=PEOPLE, sets=2)
    return study, MemoryCollection(study.survey, study.survey.randomize(columns, SeededForExperiments(0)))


def _against(what: str, ours: Contestant, limit: float, turns: int, required: float | None = 1.0) -> Row:
    named, against = f"{what} (best of {turns})", f"a limit of {limit:g} s"
    return Row(named, against, required, ours, limit / ours.people, turns)


# -- collected and made consistent ---------------------------------------------------------------------------------


def _collected(study: CALM, stored: MemoryCollection, turns: int) -> Iterator[Row]:
    what = f"tables of {len(study.family)} views collected and made consistent, n = 2^18"
    ours = local(lambda: study.read(stored).repaired, 1)
    (reports,) = stored.chunks()
    choices, values = reports.columns["choice"], reports.columns["value"]
    first = study.read(stored)
    q = float(first.noises[0].q)
    gain = float(first.noises[0].p) - q
    sets = first.views.sets

    def direct() -> list[Floats]:
        tables = []
        for number in range(len(sets)):
            counts = np.bincount(values[choices == number], minlength=4)
            tables.append(((counts / counts.sum() - q) / gain).reshape(2, 2))
        for _ in range(first.repaired.rounds):
            _agree(sets, first.people, tables)
            tables = [_nearest(table) for table in tables]
        _agree(sets, first.people, tables)
        return tables

    if np.abs(np.concatenate([table.reshape(-1) for table in direct()]) - first.repaired.tables).max() > 1e-6:
        raise AssertionError("the loop finds something else")
    yield _against(what, ours, COLLECT_SECONDS, turns)
    few = min(turns, 3)
    yield Row(f"{what} (best of {few})", "a loop over views and attributes, numpy", None, ours, local(direct, 1), few)


def _agree(sets: tuple[tuple[int, ...], ...], people: NDArray[np.int64], tables: list[Floats]) -> None:
    """Every attribute's own marginal becomes the mean over all tables that have it, weighted by people."""
    for place in range(ATTRIBUTES):
        having = [number for number, one in enumerate(sets) if place in one]
        singles = [tables[number].sum(axis=1 - sets[number].index(place)) for number in having]
        mean = np.average(singles, axis=0, weights=people[having])
        for number, single in zip(having, singles, strict=True):
            tables[number] += np.expand_dims((mean - single) / 2, 1 - sets[number].index(place))


def _nearest(table: Floats) -> Floats:
    """The nearest table without negative cells that adds up to 1."""
    falling = np.sort(table.reshape(-1))[::-1]
    excess = np.cumsum(falling) - 1
    last = np.flatnonzero(falling * np.arange(1, 5) > excess)[-1]
    return np.maximum(table - excess[last] / (last + 1), 0)


# -- reconstructed ---------------------------------------------------------------------------------------------------


def _triples(pairs: Pairs, turns: int) -> Iterator[Row]:
    sets = list(combinations(range(3), 2))
    asked = list(combinations(range(ATTRIBUTES), 3))
    given = np.array([np.concatenate([pairs[one[i], one[j]].reshape(-1) for i, j in sets]) for one in asked])
    what = f"all {len(asked):,} 3-way marginals of {ATTRIBUTES} attributes from pairs"
    ours = local(lambda: reconstruct_many((2, 2, 2), sets, given), len(asked))
    yield _against(what, ours, TRIPLES_SECONDS, turns)
    alone = local(lambda: [_fitted((2, 2, 2), sets, row[None]) for row in given[:FEW]], FEW)
    together = local(lambda: _fitted((2, 2, 2), sets, given), len(asked))
    few = min(turns, 3)
    yield Row(f"{what} (best of {few})", "one after another, numpy", 20, ours, alone, few)
    yield Row(f"{what} (best of {few})", "all in one array, numpy", None, ours, together, few)


def _eight(pairs: Pairs, turns: int) -> Iterator[Row]:
    sets = list(combinations(range(8), 2))
    asked = [tuple(range(start, ATTRIBUTES, 4)) for start in range(4)]
    tables = [[((i, j), pairs[one[i], one[j]]) for i, j in sets] for one in asked]
    given = [np.concatenate([table.reshape(-1) for _, table in each])[None] for each in tables]
    ours = local(lambda: [reconstruct((2,) * 8, each) for each in tables], len(asked))
    what = "one 8-way marginal from its 28 pairs"
    yield Row(f"{what} (best of {turns})", f"a limit of {EIGHT_SECONDS:g} s", 1.0, ours, EIGHT_SECONDS, turns)
    rival = local(lambda: [_fitted((2,) * 8, sets, each) for each in given], len(asked))
    yield Row(f"{what} (best of {turns})", "proportional fitting alone, numpy", None, ours, rival, turns)


def _fitted(sizes: tuple[int, ...], sets: list[tuple[int, int]], given: Floats) -> Floats:
    """Tables by proportional fitting, all in one array."""
    tables = np.full((len(given), *sizes), 1 / np.prod(sizes))
    for _ in range(SWEEPS):
        worst = 0.0
        for number, one in enumerate(sets):
            wanted = given[:, 4 * number : 4 * number + 4].reshape(-1, 2, 2)
            others = tuple(axis + 1 for axis in range(len(sizes)) if axis not in one)
            found = tables.sum(axis=others)
            worst = max(worst, float(np.abs(found - wanted).max()))
            ratios = np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)
            tables *= np.expand_dims(ratios, others)
        if worst <= LIMIT:
            break
    return tables


def _drawn(pairs: Pairs, turns: int) -> Row:
    sizes = (2,) * ATTRIBUTES
    sets = list(pairs)

    def draw() -> NDArray[np.int64]:
        return synthesize(sizes, pairs.__getitem__, sets, DRAWN, np.random.default_rng(0))

    what = f"{DRAWN:,} synthetic people of {ATTRIBUTES} attributes"
    return _against(what, local(draw, 1), DRAW_SECONDS, turns, required=None)
