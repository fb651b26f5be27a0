"""Surveys whose questions are read together: a hierarchy's levels become one distribution, a hybrid's halves one mean.

A Protocol is a survey and that reading. The survey alone goes into a task; the reading is the collector's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from veil.entropy import Source
from veil.errors import MismatchError
from veil.report import Reports
from veil.survey import Survey, SurveyTally

__all__ = ["Protocol"]


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
