"""How much support candidates have among the answers to a question: what a search through a huge domain stands on.

`Counted` counts real reports. `veil.hitters.drawn` draws the same numbers without reports, for experiments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError
from veil.hitters.continuations import Continuations
from veil.mechanisms import LinearHashing, PureOracle
from veil.protocol import Stored
from veil.results.estimate import Estimate
from veil.survey import Survey
from veil.tally import Tally
from veil.wire.layout import Columns

__all__ = ["Best", "Counted", "Supported", "Supports"]

Codes = NDArray[Any]
Counts = NDArray[np.int64]
Questions = Sequence[int]


@dataclass(frozen=True, eq=False)
class Supported:
    """Candidates and how many reports support each, the largest first."""

    codes: Codes
    counts: Counts


class Best:
    """The `keep` candidates with the largest counts of all that were offered; ties go to those offered first."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._codes: list[Codes] = []
        self._counts: list[Counts] = []
        self._waiting = 0
        self._floor: int | None = None

    def offer(self, codes: Codes, counts: Counts) -> None:
        """Take what may be among the best."""
        self.offer_at(counts, lambda places: codes[places])

    def offer_at(self, counts: Counts, codes_at: Callable[[NDArray[np.int64]], Codes]) -> None:
        """The same where codes are made only for the places that may be among the best."""
        if self._floor is not None:
            places = np.flatnonzero(counts > self._floor)
        elif len(counts) > self._keep:
            least = np.partition(counts, len(counts) - self._keep)[len(counts) - self._keep]
            places = np.flatnonzero(counts >= least)
        else:
            places = np.arange(len(counts))
        if not len(places):
            return
        self._codes.append(codes_at(places))
        self._counts.append(counts[places])
        self._waiting += len(places)
        if self._waiting > 2 * self._keep:
            self._sort()

    def _sort(self) -> None:
        codes, counts = np.concatenate(self._codes), np.concatenate(self._counts)
        order = np.argsort(-counts, kind="stable")[: self._keep]
        self._codes, self._counts, self._waiting = [codes[order]], [counts[order]], len(order)
        if len(order) == self._keep:
            self._floor = int(counts[order[-1]])

    def taken(self) -> Supported:
        """The best so far, the largest first."""
        self._sort()
        return Supported(self._codes[0], self._counts[0])


class Supports(ABC):
    """Support of candidates among the answers to questions. Several questions of one kind are added up."""

    survey: Survey

    @property
    @abstractmethod
    def population(self) -> int:
        """How many people answered the survey."""

    @abstractmethod
    def people(self, questions: Questions) -> int:
        """How many answers there are to these questions."""

    @abstractmethod
    def support(self, questions: Questions, codes: Codes) -> Counts:
        """How many answers support each code."""

    @abstractmethod
    def best(self, questions: Questions, candidates: Continuations, keep: int) -> Supported:
        """The candidates with the largest support."""

    @abstractmethod
    def joint(self, first: int, second: int, codes: Codes, others: Codes) -> Counts:
        """How many of those who answered both support codes[a] (s = 1) and others[b] (t = 1) or not: [a, b, s, t]."""

    def oracle(self, questions: Questions) -> PureOracle:
        """The mechanism that these questions share."""
        return self.survey.question(questions[0]).pure

    def estimate(self, questions: Questions, found: Supported) -> Estimate:
        """Unbiased frequencies of candidates among all people, with their noise."""
        oracle, people = self.oracle(questions), self.people(questions)
        if not people:
            raise EmptyError(f"nobody answered question {questions[0]} of the search: too few people")
        tally = Tally(oracle.digest, found.counts, people, people, people, found.codes)
        return oracle.estimate(tally, population=self.population)


class Counted(Supports):
    """Runs at the collector: support among stored reports, counted in blocks of candidates and pieces of reports."""

    def __init__(self, stored: Stored) -> None:
        self.survey = stored.survey
        self._stored = stored

    @property
    def population(self) -> int:
        return self._stored.people

    @cached_property
    def _answered(self) -> list[int]:
        counts = [0] * len(self.survey.questions)
        for chunk in self._stored:
            for i, (_, rows, _) in enumerate(self.survey.parts(chunk)):
                counts[i] += len(rows)
        return counts

    def people(self, questions: Questions) -> int:
        return sum(self._answered[i] for i in questions)

    def support(self, questions: Questions, codes: Codes) -> Counts:
        oracle = self.oracle(questions)
        counts = np.zeros(len(codes), dtype=np.int64)
        for i in questions:
            for columns in self._stored.answers(i):
                counts += oracle.support(columns, codes, None)
        return counts

    def best(self, questions: Questions, candidates: Continuations, keep: int) -> Supported:
        best = Best(keep)
        oracle = self.oracle(questions)
        if isinstance(oracle, LinearHashing) and candidates.suffixes is None and oracle.suffix <= candidates.step:
            self._transformed(oracle, questions, candidates.narrowed(oracle.suffix), best)
        else:
            for block in candidates.blocks():
                best.offer(block, self.support(questions, block))
        return best.taken()

    def _transformed(self, oracle: LinearHashing, questions: Questions, candidates: Continuations, best: Best) -> None:
        """One transform a prefix: all its continuations at once."""
        if candidates.ended.any():
            best.offer(candidates.closed, self.support(questions, candidates.closed))

        def answers() -> Iterator[Columns]:
            for i in questions:
                yield from self._stored.answers(i)

        goes_on = candidates.open
        for row, counts in enumerate(oracle.cosets(answers, goes_on)):

            def codes_at(places: NDArray[np.int64], row: int = row) -> Codes:
                return candidates.join(goes_on[row : row + 1], places.astype(np.uint64))

            best.offer_at(counts, codes_at)

    def joint(self, first: int, second: int, codes: Codes, others: Codes) -> Counts:
        chosen = {first: codes, second: others}
        views = {i: self.survey.question(i).view.domain.decode(some) for i, some in chosen.items()}
        total = np.zeros((len(codes), len(others), 2, 2), dtype=np.int64)
        for chunk in self._stored:
            total += self.survey.joint(chunk, views)
        return total
