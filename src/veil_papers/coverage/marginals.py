"""Joint distributions: marginals that were asked for and that were not, conditionals, correlations.

Who is asked for which view is drawn, and what the collector counts of each view from its law.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from veil import Categories, Integers, Record, SubsetSelection, Tally
from veil.entropy import SeededForExperiments
from veil.marginals import CALM, Marginals
from veil.mechanisms import PureOracle
from veil.survey import SurveyTally
from veil_papers.common.asking import drawn_tally
from veil_papers.coverage.cells import LEVELS, Case, Generator, Seen, never
from veil_papers.datasets import proportional

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = tuple[int, ...]

_MOST_SUBSETS = 1_000
_ASKED = 6  # pairs and triples of which intervals are made, in each collection


@dataclass(frozen=True, eq=False)
class Records:
    """How many people hold each combination of values, one axis for each attribute; `labels` have no order."""

    label: str
    held: Ints
    labels: Places = ()

    @property
    def people(self) -> int:
        """All of them."""
        return int(self.held.sum())

    @cached_property
    def record(self) -> Record:
        """The attributes: numbers from 0 on, or labels."""
        return Record(
            tuple(
                (f"a{place}", Categories.range(size) if place in self.labels else Integers(0, size - 1))
                for place, size in enumerate(self.held.shape)
            )
        )

    def names(self, places: Places) -> list[str]:
        """The names of attributes."""
        return [self.record.names[place] for place in places]

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """Every combination of values as devices encode it, one column per attribute."""
        return np.stack(np.unravel_index(np.arange(self.held.size), self.held.shape), axis=1).astype(np.uint64)

    def truth(self, places: Places) -> Floats:
        """The true table of some attributes, flat."""
        gone = tuple(place for place in range(self.held.ndim) if place not in places)
        return np.asarray(self.held.sum(axis=gone).reshape(-1) / self.people)

    def sets(self, size: int) -> list[Places]:
        """Some of the sets of so many attributes, spread over all."""
        every = list(combinations(range(self.held.ndim), size))
        return every[:: max(len(every) // _ASKED, 1)][:_ASKED]


def clicks(people: int) -> Records:
    """Eight pages that people did or did not open, from 45 % down to 1 %: a few people open most of what is opened."""
    opened = np.array([0.45, 0.3, 0.2, 0.12, 0.08, 0.05, 0.03, 0.01])
    keen = (0.5, 0.35), (0.35, 1.0), (0.15, 2.0)
    law = sum(share * _product([np.array([1 - p * by, p * by]) for p in opened]) for share, by in keen)
    return Records("clicks", proportional(np.asarray(law).reshape(-1), people).reshape((2,) * 8))


def census(people: int) -> Records:
    """Six attributes of two or three values, with rare ones: three groups of people that differ in all of them."""
    shapes = (3, 3, 2, 3, 2, 3)
    groups = (
        (0.55, ([0.7, 0.28, 0.02], [0.5, 0.3, 0.2], [0.9, 0.1], [0.6, 0.39, 0.01], [0.97, 0.03], [0.4, 0.4, 0.2])),
        (0.3, ([0.3, 0.6, 0.1], [0.2, 0.5, 0.3], [0.6, 0.4], [0.2, 0.7, 0.1], [0.8, 0.2], [0.4, 0.4, 0.2])),
        (0.15, ([0.1, 0.2, 0.7], [0.1, 0.1, 0.8], [0.2, 0.8], [0.1, 0.3, 0.6], [0.5, 0.5], [0.4, 0.4, 0.2])),
    )
    law = sum(share * _product([np.array(one) for one in shares]) for share, shares in groups)
    return Records("census", proportional(np.asarray(law).reshape(-1), people).reshape(shapes), labels=(3, 5))


def apart(people: int) -> Records:
    """Four attributes of two or three values that are independent of each other, to a person in each cell."""
    shares = [np.array(one) for one in ([0.75, 0.2, 0.05], [0.5, 0.3, 0.2], [0.9, 0.1], [0.6, 0.4])]
    return Records("independent", proportional(_product(shares).reshape(-1), people).reshape(3, 3, 2, 2), (0, 1))


def cases(epsilons: Iterable[float], people: Iterable[int], runs: int) -> Iterator[Case]:
    """All pairs of attributes are asked; triples are not."""
    for n in people:
        for epsilon in epsilons:
            for records in (clicks(n), census(n)):
                way = partial(asked, CALM(epsilon, records.record, k=2, sets=2), records)
                yield Case("CALM, pairs", records.label, n, epsilon, way, runs)
            records = apart(n)
            way = partial(unrelated, CALM(epsilon, records.record, k=2, sets=2), records)
            yield Case("CALM, pairs", records.label, n, epsilon, way, 4 * runs)


def collected(study: CALM, records: Records, rng: Generator) -> Marginals:
    """What the study finds in one collection."""
    views = len(study.family)
    left, parts = records.held.reshape(-1), []
    for number, people in enumerate(rng.multinomial(records.people, np.full(views, 1 / views))):
        asked_here = rng.multivariate_hypergeometric(left, people, method="marginals")
        left = left - asked_here
        question = study.family.question(number)
        cells = question.view.apply(records.codes, SeededForExperiments(0)).astype(np.int64)
        held = np.bincount(cells, weights=asked_here, minlength=question.pure.domain.size)
        parts.append(_tally(question.pure, held.astype(np.int64), rng))
    return study.read(SurveyTally(study.survey.task, records.people, tuple(parts)))


def asked(study: CALM, records: Records, rng: Generator) -> Iterator[Seen]:
    """Cells, conditionals and correlations, beside what each view alone would say."""
    found = collected(study, records, rng)
    for level in LEVELS:
        for size, kind in ((2, "marginals, asked"), (3, "marginals, reconstructed")):
            yield _cells(kind, found, records, records.sets(size), level)
        yield _conditionals("conditionals", found, records, level)
        yield from _correlations(found, records, level)
    yield _each_alone(found, records)


def unrelated(study: CALM, records: Records, rng: Generator) -> Iterator[Seen]:
    """What is called associated where nothing is, over all pairs: one interval for each collection."""
    called = collected(study, records, rng).correlations().facts(0.95)["significant"]
    yield never("correlations: nothing is called associated", called > 0)


def _cells(kind: str, found: Marginals, records: Records, sets: Iterable[Places], level: float) -> Seen:
    each = [(records.truth(places), found.marginal(records.names(places)).interval(level)) for places in sets]
    return _joined(kind, level, [(truth, *ends.T) for truth, ends in each])


def _conditionals(kind: str, found: Marginals, records: Records, level: float) -> Seen:
    rows = []
    for places in records.sets(2):
        table = records.truth(places).reshape(records.held.shape[places[0]], -1)
        anybody = np.repeat(table.sum(axis=1) > 0, table.shape[1])
        truth = np.divide(table, table.sum(axis=1, keepdims=True), out=np.zeros_like(table), where=table > 0)
        first, second = records.names(places)
        low, high = found.conditional(second, given=first).interval(level).T
        rows.append((truth.reshape(-1)[anybody], low[anybody], high[anybody]))
    return _joined(kind, level, rows)


def _correlations(found: Marginals, records: Records, level: float) -> Iterator[Seen]:
    rows: dict[str, list[tuple[Floats, Floats, Floats]]] = {}
    for pair in records.sets(2):
        table = records.truth(pair).reshape([records.held.shape[place] for place in pair])
        first, second = records.names(pair)
        made = found.correlation(first, second, level)
        ends = correlation(table, made.measure == "pearson"), made.low, made.high
        truth, low, high = (np.array([end]) for end in ends)
        rows.setdefault(made.measure, []).append((truth, low, high))
    for measure, of in rows.items():
        yield _joined(f"correlations, {'Pearson' if measure == 'pearson' else 'Cramer'}", level, of)


def _each_alone(found: Marginals, records: Records) -> Seen:
    """The rival: repaired tables with the standard errors of the noise of one view."""
    rows = []
    for places in records.sets(2):
        number = found.views.sets.index(places)
        table = found.views.table(found.repaired.tables, number).reshape(-1)
        error = 1.96 * np.sqrt(found.scatter.noises[number].variance(table) / found.people[number])
        rows.append((records.truth(places), table - error, table + error))
    return _joined("rival: marginals, repaired, noise of a view", 0.95, rows)


def _joined(kind: str, level: float, rows: Iterable[tuple[Floats, Floats, Floats]]) -> Seen:
    truth, low, high = (np.concatenate(part) for part in zip(*rows, strict=True))
    return Seen(kind, level, truth, low, high)


def correlation(table: Floats, ordered: bool) -> float:
    """Pearson's correlation of the values 0, 1, 2, ... in a table, or Cramer's V; 0 where everybody holds the same.

    >>> round(correlation(np.array([[0.4, 0.1], [0.1, 0.4]]), True), 3)
    0.6
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    away = table - np.outer(rows, columns)
    if ordered:
        x, y = (np.arange(size) for size in table.shape)
        spread = (x**2 @ rows - (x @ rows) ** 2) * (y**2 @ columns - (y @ columns) ** 2)
        return float(x @ away @ y / np.sqrt(spread)) if spread > 0 else 0.0
    expected = np.outer(rows, columns)
    squares = np.divide(away**2, expected, out=np.zeros_like(away), where=expected > 0).sum()
    return float(np.sqrt(squares / (min(table.shape) - 1)))


def _tally(oracle: PureOracle, held: Ints, rng: Generator) -> Tally:
    """What the collector counts; of subsets, where there are few, by how many people report each of them."""
    people, size = int(held.sum()), len(held)
    if not isinstance(oracle, SubsetSelection) or comb(size, oracle.subset_size) > _MOST_SUBSETS:
        return drawn_tally(oracle, held, rng)
    subsets = np.array(list(combinations(range(size), oracle.subset_size)))
    inside = np.zeros((len(subsets), size))
    np.put_along_axis(inside, subsets, 1.0, axis=1)
    p = float(oracle.p)
    chances = np.where(inside > 0, p / inside.sum(axis=0), (1 - p) / (len(subsets) - inside.sum(axis=0)))
    reported = sum(rng.multinomial(count, chances[:, cell]) for cell, count in enumerate(held))
    counts = np.rint(np.asarray(reported) @ inside).astype(np.int64)
    return Tally(oracle.digest, counts, people, people, people)


def _product(shares: list[Floats]) -> Floats:
    """The table of independent attributes."""
    found = np.ones(1)
    for one in shares:
        found = np.multiply.outer(found, one)
    return np.asarray(found[0])
