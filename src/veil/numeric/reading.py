"""What a survey's tally says: a result a question, or one for all questions where they are read together.

A task does not say that it is a hierarchy's: its survey is recognised, to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from veil.errors import EmptyError, InputError, ParameterError
from veil.mechanisms import MeanMechanism, SquareWave
from veil.mechanisms.reconstruction import Smoothing
from veil.numeric.haar import HaarHierarchy
from veil.numeric.hierarchy import Hierarchy, Method
from veil.numeric.means import HybridMean
from veil.protocol import Protocol
from veil.survey import Question, Survey, SurveyTally

__all__ = ["Reading", "protocol_of"]


def protocol_of(survey: Survey) -> Protocol | None:
    """The protocol that reads all questions of a survey together; None where each question stands for itself.

    >>> from veil import Interval
    >>> protocol_of(HybridMean(2.0, Interval(0, 1)).survey) == HybridMean(2.0, Interval(0, 1))
    True
    >>> protocol_of(Survey(SquareWave(2.0, Interval(0, 1)))) is None
    True
    """
    return Hierarchy.of(survey) or HaarHierarchy.of(survey) or _hybrid_of(survey)


def _hybrid_of(survey: Survey) -> HybridMean | None:
    first = survey.question(0)
    if not isinstance(first.mechanism, MeanMechanism) or len(survey.questions) < 2:
        return None
    made = HybridMean(first.mechanism.epsilon, first.mechanism.domain, first.view)
    return made if made.survey.to_json() == survey.to_json() else None


@dataclass(frozen=True)
class Reading:
    """How a tally is read. What is left out is read as its mechanism or protocol does by itself.

    `smoothing` is SquareWave's; `method` and `weighted` are a Hierarchy's.

    >>> from veil import Interval
    >>> from veil.entropy import Seeded
    >>> survey = Survey(SquareWave(2.0, Interval(0, 1), buckets=16))
    >>> tally = survey.tally(survey.randomize([0.5] * 1000, Seeded(1)))
    >>> Reading(smoothing=False).question(survey, tally, 0).lineage
    ('SquareWave(epsilon=2)', 'EM')
    """

    smoothing: Smoothing | None = None
    method: Method | None = None
    weighted: bool = False

    def everything(self, survey: Survey, tally: SurveyTally) -> list[tuple[int | None, Any]]:
        """Runs at the collector: the results by question, of those that anybody answered; or one, by None, for all."""
        protocol = protocol_of(survey)
        if protocol is not None:
            return [(None, self.together(protocol, tally))]
        answered = [i for i, part in enumerate(tally.parts) if part.people]
        if not answered:
            raise EmptyError("nobody answered: there is nothing to estimate from")
        self._check(None, [survey.question(i) for i in answered])
        return [(i, self._one(survey, tally, i)) for i in answered]

    def question(self, survey: Survey, tally: SurveyTally, index: int) -> Any:
        """Runs at the collector: the result of one question alone."""
        count = len(survey.questions)
        if not 0 <= index < count:
            raise InputError(f"this survey's questions are numbered from 0 to {count - 1}")
        self._check(None, [survey.question(index)])
        return self._one(survey, tally, index)

    def together(self, protocol: Protocol, tally: SurveyTally) -> Any:
        """Runs at the collector: what all questions of a protocol say together."""
        self._check(protocol, [])
        if isinstance(protocol, Hierarchy):
            return protocol.estimate(tally, self.method or "exact", weighted=self.weighted)
        return protocol.estimate(tally)

    def _one(self, survey: Survey, tally: SurveyTally, index: int) -> Any:
        asked, part = survey.question(index), tally.part(index)
        if self.smoothing is None or not isinstance(asked.mechanism, SquareWave) or not part.people:
            return survey.estimate_question(tally, index)
        return asked.mechanism.estimate(part, population=tally.people, scale=asked.view.scale, smoothing=self.smoothing)

    def _check(self, protocol: Protocol | None, questions: list[Question]) -> None:
        """Refuse what would have no effect."""
        if self.smoothing is not None and not any(isinstance(asked.mechanism, SquareWave) for asked in questions):
            raise ParameterError("a smoothing is chosen for SquareWave only, which is not asked here")
        if (self.method is not None or self.weighted) and not isinstance(protocol, Hierarchy):
            raise ParameterError("a method and weights are chosen for the levels of a Hierarchy, read together")
