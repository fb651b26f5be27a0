"""Surveys whose questions are read together: a hierarchy's levels become one distribution, a hybrid's halves one mean.

A Protocol is a survey and that reading. The survey alone goes into a task; the reading is the collector's affair.
An OpenProtocol is one whose candidates come after the reports: people answer once, and the collector goes through what
it stored again and again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from veil.entropy import Source
from veil.errors import EmptyError, InputError, MismatchError
from veil.survey import Survey, SurveyTally
from veil.wire.layout import Columns
from veil.wire.reports import Reports

__all__ = ["OpenProtocol", "Protocol", "Stored"]


class Protocol(ABC):
    """A survey, and what the answers to its questions say together."""

    @property
    @abstractmethod
    def survey(self) -> Survey:
        """What people are asked."""

    def randomize(self, values: Any, source: Source | None = None) -> Reports:
        """Runs on the device: one report a value. Without a source, from fresh entropy of the operating system."""
        return self.survey.randomize(values, source)

    def tally(self, reports: Reports, weights: Any = None) -> SurveyTally:
        """Runs at the collector: the integers to keep of these reports."""
        return self.survey.tally(reports, weights=weights)

    @abstractmethod
    def estimate(self, tally: SurveyTally) -> Any:
        """Runs at the collector: one result from the tallies of all questions."""

    def own(self, tally: SurveyTally) -> SurveyTally:
        """The tally, if it is of this protocol's survey."""
        if isinstance(tally, Reports):
            raise MismatchError("expected a tally: estimate(tally(reports))")
        if not isinstance(tally, SurveyTally) or tally.task != self.survey.task:
            raise MismatchError("expected a tally of this protocol's survey; this was made for another task")
        return tally


class Stored:
    """Runs at the collector: reports of one survey, gone through a chunk at a time, as often as one likes.

    In memory: Reports, or a list of them. From a file: a function that opens it again, `lambda: read_reports(path,
    survey)`; then no more than a piece of one question's answers is in memory at once.

    >>> from veil import OLH
    >>> survey = Survey(OLH(epsilon=1.0, domain=8))
    >>> Stored(survey, survey.randomize([1, 2, 3])).people
    3
    """

    def __init__(self, survey: Survey, reports: Reports | Sequence[Reports] | Callable[[], Iterable[Reports]]) -> None:
        if isinstance(reports, Iterator):
            raise InputError("stored reports are gone through again and again: give a function that begins anew")
        self.survey = survey
        self._reports = reports

    def __iter__(self) -> Iterator[Reports]:
        if isinstance(self._reports, Reports):
            return iter((self._reports,))
        return iter(self._reports() if callable(self._reports) else self._reports)

    @cached_property
    def people(self) -> int:
        """How many people answered the survey."""
        return sum(len(chunk) for chunk in self)

    def answers(self, question: int, rows: int = 1 << 20) -> Iterator[Columns]:
        """The columns of those who answered one question, in pieces of about so many rows."""
        waiting: list[Columns] = []
        have = 0
        for chunk in self:
            ((_, _, columns),) = self.survey.parts(chunk, [question])
            size = len(next(iter(columns.values())))
            if size:
                waiting.append(columns)
                have += size
            if have >= rows:
                yield _joined(waiting)
                waiting, have = [], 0
        if waiting:
            yield _joined(waiting)


class OpenProtocol(ABC):
    """A survey, and a search through its stored reports for values that nobody named before."""

    @property
    @abstractmethod
    def survey(self) -> Survey:
        """What people are asked."""

    @abstractmethod
    def find(self, stored: Stored) -> Any:
        """Runs at the collector: what the reports tell, decoded after the fact."""

    def own(self, stored: Stored) -> Stored:
        """What was stored, if it is of this protocol's survey and not empty."""
        if not isinstance(stored, Stored) or stored.survey.task != self.survey.task:
            raise MismatchError("expected the stored reports of this protocol's survey: Stored(survey, reports)")
        if not stored.people:
            raise EmptyError("expected at least one report")
        return stored


def _joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
