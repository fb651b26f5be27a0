"""Studies of single questions: one histogram, or every question of a survey separately."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from veil.accounting import ShuffleGuarantee, Shuffler
from veil.domain import Domain
from veil.domain.text_values import is_time, parse_time
from veil.errors import EmptyError, InputError, ParameterError
from veil.mechanisms import FrequencyOracle
from veil.results.answers import Answers
from veil.results.base import Result
from veil.results.estimate import Estimate
from veil.study import Collection, OneRound
from veil.survey import Survey
from veil.tools.numbers import is_int

__all__ = ["Histogram", "Questions"]

Label = str | int | float | None


@dataclass(frozen=True)
class Histogram(OneRound[Estimate]):
    """How many people hold each value, through one oracle.

    `post` names a post-processing method ("auto" chooses one); `candidates` are the values to count, where there are
    too many to list. Guarantee: the oracle's. With a `shuffler` there is a central promise beside it, `central`; the
    oracle's stays what is left if the shuffler tells who sent what.

    >>> from veil import GRR, simulate
    >>> found = simulate(Histogram(GRR(4.0, ["tea", "coffee"]), post="norm-sub"), ["tea"] * 900 + ["coffee"] * 100)
    >>> round(found["tea"].frequency, 1), found.lineage
    (0.9, ('GRR(epsilon=4)', 'norm-sub'))
    """

    oracle: FrequencyOracle
    post: str | None = None
    candidates: tuple[Label, ...] | None = None
    shuffler: Shuffler | None = None
    kind: ClassVar[str] = "histogram"
    reads_fakes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.oracle, FrequencyOracle):
            raise ParameterError("a histogram is asked for through a frequency oracle")
        if self.oracle.guarantee.ratio is None:
            name = self.oracle.name
            raise ParameterError(f"{name} promises nothing on its own: it needs a shuffler of its own kind")
        if self.shuffler is not None:
            if not isinstance(self.shuffler, Shuffler):
                raise ParameterError("a shuffler is said as Shuffler(users, delta)")
            self.shuffler.check(self.oracle)  # refuses one whose central promise is not known, before anybody is asked
        _check_post(self.post)
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _labels(self.candidates))
            self.oracle.encode_candidates(_values(self.oracle.domain, self.candidates))  # refuses them before the work

    def with_candidates(self, candidates: Any) -> Histogram:
        return replace(self, candidates=tuple(candidates))

    @cached_property
    def survey(self) -> Survey:
        return Survey(self.oracle)

    @property
    def planned_fakes(self) -> int:
        return 0 if self.shuffler is None else self.shuffler.fakes

    @cached_property
    def central(self) -> ShuffleGuarantee | None:
        """What people are promised towards whoever sees only shuffled reports, where there is a shuffler."""
        return None if self.shuffler is None else self.shuffler.central(self.oracle)

    @cached_property
    def among_fakes(self) -> ShuffleGuarantee | None:
        """What people are promised even if all others tell the reader what they sent, where there are fakes."""
        if self.shuffler is None or not self.shuffler.fakes:
            return None
        return self.shuffler.among_fakes(self.oracle)

    def answer(self, collected: Collection) -> Estimate:
        chosen = None if self.candidates is None else {0: _values(self.oracle.domain, self.candidates)}
        tally = collected.tally(candidates=chosen)
        found: Estimate = self.survey.estimate_question(tally, 0, population=collected.population)
        if self.shuffler is not None:
            found = replace(found, lineage=(*found.lineage, self._shuffled(collected)))
        return found if self.post is None else found.post(self.post)

    def _shuffled(self, collected: Collection) -> str:
        """The shuffle as a step of the lineage, with the promise that so many reports and fakes are worth."""
        assert self.shuffler is not None
        # no more than were planned: the fakes of several collections add up, but each hides its own people alone
        planned, people, fakes = self.shuffler, collected.people, min(collected.fakes, self.shuffler.fakes)
        shuffler = replace(planned, fakes=fakes)
        promised = self.guarantee if people < 2 and not fakes else shuffler.central(self.oracle, people).central
        fewer = [f"{people:,} people instead of {planned.users:,}"] if people < planned.users else []
        fewer += [f"{fakes:,} fakes instead of {planned.fakes:,}"] if fakes < planned.fakes else []
        step = f"shuffled, with {' and '.join(fewer)}" if fewer else "shuffled"
        if not fakes:
            return f"{step}: {promised}"
        among = shuffler.among_fakes(self.oracle).central
        return f"{step}, among {fakes:,} fakes: {promised}; if all others tell: {among}"


@dataclass(frozen=True)
class Questions(OneRound[Result]):
    """Every question of a survey for itself: what a bare task is the study of.

    `question` reads one question alone, by its number; `post` post-processes frequencies. Guarantee: the survey's.

    >>> from veil import GRR, OUE, AllOf, simulate
    >>> survey = Survey(AllOf(GRR(2.0, 3), OUE(2.0, 3)))
    >>> [len(found) for found in simulate(Questions(survey), [0] * 100)]
    [3, 3]
    """

    survey: Survey
    question: int | None = None
    post: str | None = None
    candidates: tuple[Label, ...] | None = None
    kind: ClassVar[str] = "questions"
    reads_fakes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.survey, Survey):
            raise ParameterError("questions are those of a Survey")
        many = len(self.survey.questions)
        if self.question is not None and (not is_int(self.question) or not 0 <= self.question < many):
            raise InputError(f"this survey's questions are numbered from 0 to {many - 1}")
        if self.candidates is not None:
            if self.question is None and many > 1:
                raise InputError("candidates are of one question: say which one")
            object.__setattr__(self, "candidates", _labels(self.candidates))
            asked = self.survey.questions[self.question or 0]
            asked.encode_candidates(_values(asked.view.values, self.candidates))
        _check_post(self.post)

    def with_candidates(self, candidates: Any) -> Questions:
        return replace(self, candidates=tuple(candidates))

    def answer(self, collected: Collection) -> Result:
        asked = None if self.question is None else (self.question,)
        domain = self.survey.questions[self.question or 0].view.values
        chosen = None if self.candidates is None else {self.question or 0: _values(domain, self.candidates)}
        tally = collected.tally(asked, chosen)
        numbers = range(len(self.survey.questions)) if asked is None else asked
        answered = [i for i in numbers if tally.part(i).people]
        if not answered:
            raise EmptyError("nobody answered this question: expected at least one report")
        found = [self.survey.estimate_question(tally, i, population=collected.population) for i in answered]
        posted = [_posted(one, self.post) for one in found]
        if len(self.survey.questions) == 1 or self.question is not None:
            return posted[0]
        return Answers(tuple(posted), tuple(answered), n=collected.people)


def _labels(candidates: Any) -> tuple[Label, ...]:
    """Candidates as they stand in a study file: times as text in ISO 8601."""
    return tuple(one.isoformat() if isinstance(one, dt.date) else one for one in candidates)


def _values(domain: Domain, labels: Sequence[Label]) -> list[Any]:
    """The same as values of a domain."""
    return [parse_time(one) for one in labels] if is_time(domain) else list(labels)


def _check_post(post: str | None) -> None:
    from veil.post import method

    if post is not None:
        method(post)  # refuses a name that there is not


def _posted(found: Result, post: str | None) -> Result:
    """Frequencies, post-processed."""
    if post is None:
        return found
    if not isinstance(found, Estimate):
        raise InputError("frequencies are post-processed, not distributions, means or differences: leave post out")
    return found.post(post)
