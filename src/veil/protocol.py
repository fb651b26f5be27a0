"""Surveys whose questions are read together: a hierarchy's levels become one distribution, a hybrid's halves one mean.

A Protocol is a survey and that reading. The survey alone goes into a task; the reading is the collector's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from veil.errors import MismatchError
from veil.survey import Survey, SurveyTally

__all__ = ["Protocol"]


class Protocol(ABC):
    """A survey, and what the answers to its questions say together."""

    @property
    @abstractmethod
    def survey(self) -> Survey:
        """What people are asked."""

    @abstractmethod
    def estimate(self, tally: SurveyTally) -> Any:
        """Runs at the collector: one result from the tallies of all questions."""

    def own(self, tally: SurveyTally) -> SurveyTally:
        """The tally, if it is of this protocol's survey."""
        if not isinstance(tally, SurveyTally) or tally.task != self.survey.task:
            raise MismatchError("expected a tally of this protocol's survey; this was made for another task")
        return tally
