"""Collections: the reports of one survey, wherever they are stored, and everything that a study may read from them.

A `TallyCollection` has a tally only. `veil.engines` has collections of reports in memory, in files and on a cluster,
and the collector has those in a store; a study gets the same integers from all of them.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import EmptyError, InputError, MismatchError
from veil.mechanisms import PureOracle
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.reports.tally import Tally
from veil.results.estimate import Estimate
from veil.study.continuations import Continuations
from veil.survey import Survey, SurveyTally
from veil.wire.tallies import encode_tally

Codes = NDArray[Any]
Questions = Sequence[int]


class Collection(ABC):
    """Runs at the collector: what came back from one survey."""

    survey: Survey

    @property
    @abstractmethod
    def people(self) -> int:
        """How many people answered the survey."""

    @property
    def fakes(self) -> int:
        """How many reports beside those of `people` are nobody's: uniform ones that shufflers added."""
        return 0

    @property
    def wave(self) -> int:
        """Which asking of the survey the reports are of, where it was asked several times."""
        return self.survey.wave

    @property
    def seeded(self) -> bool:
        """True if any of the reports were drawn from a seed, for an experiment, as far as is known."""
        return False

    @property
    def population(self) -> int:
        """How many people the answers stand for: everybody, where a round asked only a share of them."""
        return self.people

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names what was collected: a reading that was broken off goes on with the same, and with nothing else."""

    @abstractmethod
    def answered(self, question: int) -> int:
        """How many of them answered one question."""

    @abstractmethod
    def tally(self, questions: Questions | None = None, candidates: Mapping[int, Any] | None = None) -> SurveyTally:
        """The integers to keep: of all questions or the listed ones, with candidates where a domain is not listed."""

    @abstractmethod
    def support(self, questions: Questions, codes: Codes) -> Tally:
        """How many answers support each code. Several questions with the same mechanism are added up."""

    @abstractmethod
    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        """The `keep` continuations with the most support, the largest first; of equals, the first in their order."""

    @abstractmethod
    def joint(self, candidates: Mapping[int, Any]) -> NDArray[np.int64]:
        """Joint support of questions that the same people answered: see `Survey.joint`."""

    @abstractmethod
    def columns(self, question: int) -> Iterator[Columns]:
        """The answers to one question themselves, a piece at a time: for what no sum of integers tells."""

    @abstractmethod
    def reports(self) -> Iterator[Reports]:
        """All reports with their public columns, a chunk at a time: for queries over public and private columns."""

    # -- what follows ----------------------------------------------------------------------------------------------

    def oracle(self, questions: Questions) -> PureOracle:
        """The mechanism that these questions share."""
        return self.survey.questions[questions[0]].pure

    def estimate(self, questions: Questions, tally: Tally) -> Estimate:
        """Unbiased frequencies of a tally's candidates among all people, with their noise."""
        if not tally.people:
            raise EmptyError(f"nobody answered question {questions[0]}: there are too few people for this study")
        return self.oracle(questions).estimate(tally, population=self.population)


def _same(codes: Codes | None, others: Codes | None) -> bool:
    return codes is others if codes is None or others is None else np.array_equal(codes, others)


class TallyCollection(Collection):
    """A tally, and nothing else: enough for every study whose candidates are known before it reads.

    >>> from veil import GRR
    >>> survey = Survey(GRR(epsilon=1.0, domain=3))
    >>> TallyCollection(survey, survey.tally(survey.randomize([0, 1, 1]))).people
    3
    """

    def __init__(self, survey: Survey, tally: SurveyTally) -> None:
        if not isinstance(tally, SurveyTally) or tally.task != survey.task:
            raise MismatchError("this tally was made for another task")
        self.survey = survey
        self._tally = tally

    @property
    def people(self) -> int:
        return self._tally.people

    @property
    def fakes(self) -> int:
        return self._tally.fakes

    @property
    def wave(self) -> int:
        return self._tally.wave

    @property
    def seeded(self) -> bool:
        return self._tally.seeded

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(encode_tally(self._tally)).hexdigest()

    def answered(self, question: int) -> int:
        return self._tally.part(question).people

    def tally(self, questions: Questions | None = None, candidates: Mapping[int, Any] | None = None) -> SurveyTally:
        for i, chosen in (candidates or {}).items():
            codes, counted = self.survey.questions[i].encode_candidates(chosen), self._tally.part(i).candidates
            if not _same(codes, counted):
                raise MismatchError("this tally was made over other candidates: the reports themselves are needed")
        for i in questions or ():
            self._tally.part(i)  # refuses a question that was not counted
        return self._tally

    def support(self, questions: Questions, codes: Codes) -> Tally:
        raise self._only_integers()

    def best(self, questions: Questions, continuations: Continuations, keep: int) -> Tally:
        raise self._only_integers()

    def joint(self, candidates: Mapping[int, Any]) -> NDArray[np.int64]:
        raise self._only_integers()

    def columns(self, question: int) -> Iterator[Columns]:
        raise self._only_integers()

    def reports(self) -> Iterator[Reports]:
        raise self._only_integers()

    @staticmethod
    def _only_integers() -> InputError:
        return InputError("this study goes through the reports themselves: expected files of reports, not a tally")
