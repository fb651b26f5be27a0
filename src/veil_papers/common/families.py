"""People who hold records and are asked one of a family of questions: what the collector counts, quickly.

Who answers which question is drawn person by person, and so is what the question shows of each. How many reports
support each cell is then drawn for all people of a question together, from the law that it has given how many of them
hold which cell:

- oracles that support cells independently of each other: two binomials per cell;
- GRR: those who keep their cell, and a multinomial of all others;
- SubsetSelection: cells are passed one after the other; of the people who still have j of their subset's cells to
  choose out of the r that are left to them, a binomial share of j / r chooses this one. Where people are few beside
  cells, their subsets are drawn one by one; of more than 1,024 cells, counts are normal with the exact covariance;
- PGR, which is counted by messages: its own reports, one by one.

Simulation only: numpy's generator protects nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veil import Tally
from veil.entropy import SeededForExperiments
from veil.mechanisms import PGR, PureOracle, SubsetSelection
from veil.post import redraw_counts
from veil.survey import AttributeSets, EachOf, ListedSets, Question, Survey, SurveyTally
from veil_papers.datasets import Records

Ints = NDArray[np.int64]
Generator = np.random.Generator

DRAWN = (
    "Who answers which view is drawn person by person; support counts are drawn from their law given the group's true "
    "counts, which equals simulating every report in distribution (OLH with an ideal hash; subsets of more than 1,024 "
    "cells up to normal draws with their covariance). Estimates come from the shipped studies."
)
_MANY_CELLS = 1_024
_WORTH_PASSING = 4  # passing over cells costs less than drawing subsets, up to so many binomials per person


def collect_records(survey: Survey, people: Records, rng: Generator) -> SurveyTally:
    """What the collector counts of a survey that is one question or one family, asked of these people."""
    n = people.people
    if isinstance(survey.ask, Question):
        oracle = survey.ask.pure
        shown = survey.ask.view.apply(people.codes.astype(np.uint64), SeededForExperiments(0)).astype(np.int64)
        counts = _supports(oracle, np.zeros(n, np.int64), shown, 1, rng)
        return SurveyTally(survey.task, n, (Tally(oracle.digest, counts[0], n, n, n),))
    assert isinstance(survey.ask, EachOf), "trees of questions are asked person by person"
    family = survey.ask
    choice = rng.integers(len(family), size=n)
    shown = _shown(family, choice, people)
    parts: dict[int, Tally] = {}
    for mechanism, questions in _by_mechanism(family):
        numbers = np.full(len(family), -1)
        numbers[questions] = np.arange(len(questions))
        mine = numbers[choice]
        asked = mine >= 0
        counts = _supports(mechanism, mine[asked], shown[asked], len(questions), rng)
        answered = np.bincount(mine[asked], minlength=len(questions))
        digests = _digests(family, tuple(questions.tolist()))
        for number, row, some, digest in zip(questions.tolist(), counts, answered.tolist(), digests, strict=True):
            parts[number] = Tally(digest, row, some, some, some)
    return SurveyTally(survey.task, n, tuple(parts[number] for number in range(len(family))))


def _shown(family: EachOf, choice: Ints, people: Records) -> Ints:
    """What each person's chosen question shows of their record: for sets of attributes without copying records."""
    if not isinstance(family.rule, (AttributeSets, ListedSets)):
        return family.rule.shown(choice, people.codes.astype(np.uint64)).astype(np.int64)
    starts, flat = np.arange(people.people) * people.codes.shape[1], people.codes.reshape(-1)
    sizes, shown = np.array([*people.sizes, 1]), np.zeros(people.people, np.int64)
    for column in family.rule.places(np.arange(len(family))).T:  # -1 where a set has fewer attributes
        own = column[choice]
        shown = shown * sizes[own] + np.where(own < 0, 0, flat[starts + np.maximum(own, 0)])
    return shown


def _by_mechanism(family: EachOf) -> Iterator[tuple[PureOracle, Ints]]:
    """The family's oracles, each with the numbers of the questions that it asks."""
    sizes = family.rule.sizes_of(np.arange(len(family))).astype(np.int64)
    for size, mechanism in zip(family.rule.sizes, family.mechanisms, strict=True):
        assert isinstance(mechanism, PureOracle)
        yield mechanism, np.flatnonzero(sizes == size)


@lru_cache(maxsize=64)
def _digests(family: EachOf, questions: tuple[int, ...]) -> list[str]:
    """The names of the tallies: questions of the same size share one, but for a set of one attribute, with labels."""
    named: dict[object, str] = {}
    if not isinstance(family.rule, ListedSets) and getattr(family.rule, "size", 2) > 1:
        return [family.question(questions[0]).pure.digest] * len(questions)
    found = []
    for number in questions:
        oracle = family.question(number).pure
        if oracle not in named:
            named[oracle] = oracle.digest
        found.append(named[oracle])
    return found


def _supports(oracle: PureOracle, choice: Ints, shown: Ints, questions: int, rng: Generator) -> Ints:
    """Support counts, a row for each question: who answered which, and what it showed of them."""
    size = oracle.domain.size
    if isinstance(oracle, PGR):
        return _messages(oracle, choice, shown, questions, rng)
    held = np.bincount(choice * size + shown, minlength=questions * size).reshape(questions, size)
    noise, p, q = oracle.noise, float(oracle.p), float(oracle.q)
    if noise.hit == 0 and noise.miss == 0:
        kept = rng.binomial(held, p - q)
        chances = np.append(np.full(size, q), max(1 - p - (size - 1) * q, 0.0))
        others = rng.multinomial(held.sum(axis=1) - kept.sum(axis=1), chances / chances.sum())
        return np.asarray(kept + others[:, :-1])
    if noise.alone:
        return np.asarray(rng.binomial(held, p) + rng.binomial(held.sum(axis=1, keepdims=True) - held, q))
    if size > _MANY_CELLS:
        drawn = np.stack([redraw_counts(noise, row, rng) for row in held])
        return np.maximum(np.rint(drawn), 0).astype(np.int64)
    assert isinstance(oracle, SubsetSelection), "there is no other oracle whose supports depend on each other"
    if questions * size**2 * (oracle.subset_size + 1) <= _WORTH_PASSING * len(choice):
        return passed_subsets(held, oracle.subset_size, p, rng)
    return _drawn_subsets(oracle, choice, shown, questions, rng)


def passed_subsets(held: Ints, chosen: int, p: float, rng: Generator) -> Ints:
    """How many subsets of `chosen` cells have each cell, passing over cells: exact. A row of `held` is a question.

    >>> passed_subsets(np.array([[5, 0, 3]]), 2, 0.7, np.random.default_rng(0)).sum()
    np.int64(16)
    """
    questions, size = held.shape
    inside = rng.binomial(held, p)
    counts = inside.copy()
    left = np.zeros((questions, size, chosen + 1), np.int64)  # by held cell and by how many cells are still to choose
    left[:, :, chosen - 1], left[:, :, chosen] = inside, held - inside
    own, wanted = np.arange(size), np.arange(chosen + 1)
    for cell in range(size):
        others = size - cell - (own >= cell)  # cells from here on, without the held one, which is decided
        chances = np.minimum(wanted / np.maximum(others, 1)[:, None], 1.0)
        chances[cell] = 0.0
        picked = rng.binomial(left, chances)
        counts[:, cell] += picked.sum(axis=(1, 2))
        left -= picked
        left[:, :, :-1] += picked[:, :, 1:]
    return counts


def _drawn_subsets(oracle: SubsetSelection, choice: Ints, shown: Ints, questions: int, rng: Generator) -> Ints:
    """The same, subset by subset."""
    order = np.argsort(choice, kind="stable")
    counts = np.zeros((questions, oracle.domain.size), np.int64)
    starts = np.searchsorted(choice[order], np.arange(questions + 1))
    source, every = SeededForExperiments(int(rng.integers(1 << 62))), np.arange(oracle.domain.size, dtype=np.uint64)
    step = max(1, (1 << 24) // oracle.domain.size)
    first = 0
    while first < questions:  # some questions at a time, so that memory stays small
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + step, side="right")) - 1)
        rows = order[starts[first] : starts[last]]
        asked = first + np.flatnonzero(np.diff(starts[first : last + 1]))
        if len(rows):
            columns = oracle.draw(shown[rows].astype(np.uint64), source)
            if oracle.as_bits:
                supports = oracle.incidence(columns, every)
                counts[asked] = np.add.reduceat(supports, starts[asked] - starts[first], axis=0, dtype=np.int64)
            else:
                cells = choice[rows, None] * len(every) + columns["subset"].reshape(len(rows), -1)
                counts += np.bincount(cells.reshape(-1), minlength=counts.size).reshape(counts.shape)
        first = last
    return counts


def _messages(oracle: PGR, choice: Ints, shown: Ints, questions: int, rng: Generator) -> Ints:
    """How often each message was sent, a row for each question."""
    source = SeededForExperiments(int(rng.integers(1 << 62)))
    parts = [shown[choice == number].astype(np.uint64) for number in range(questions)]
    return np.stack([oracle.tally_columns(oracle.draw(part, source), None).counts for part in parts])
