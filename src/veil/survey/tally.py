"""The tally of a survey: one tally per question, and the number of people who took part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from veil.errors import InputError, MismatchError
from veil.reports.tally import Tally


@dataclass(frozen=True, eq=False)
class SurveyTally:
    """One tally per question, and how many people took part in all. Adds up like its parts.

    `questions` are the numbers of the questions that were counted, increasing; None stands for all of them. `task` is
    that of the survey's first wave, which reads all of them, and `wave` says which one was counted: tallies of
    different waves do not add up, because the same people may be in each. `seeded` says that a seed drew the noise of
    some of the reports; it says nothing about the counts, and equal counts are equal tallies.
    """

    task: str
    people: int
    parts: tuple[Tally, ...]
    questions: tuple[int, ...] | None = None
    wave: int = 1
    seeded: bool = False

    def part(self, question: int) -> Tally:
        """The tally of one question, by its number in the survey."""
        counted = range(len(self.parts)) if self.questions is None else self.questions
        if question not in counted:
            raise InputError(f"question {question} is not among those that this tally counted")
        return self.parts[counted.index(question)]

    @property
    def fakes(self) -> int:
        """How many of the counted reports are nobody's; they are not among `people`."""
        return sum(part.fakes for part in self.parts)

    def with_fakes(self, fakes: int) -> SurveyTally:
        """The same reports, so many more of which are nobody's; of a survey of one question."""
        if fakes and len(self.parts) > 1:
            raise InputError("fakes are among the reports of a survey of one question: this one has several")
        parts = tuple(part.with_fakes(fakes) for part in self.parts)
        return replace(self, people=self.people - int(fakes), parts=parts)

    def __add__(self, other: SurveyTally) -> SurveyTally:
        if not isinstance(other, SurveyTally):
            return NotImplemented
        if self.task != other.task or len(self.parts) != len(other.parts):
            raise MismatchError("tallies of different tasks cannot be added")
        if self.questions != other.questions:
            raise MismatchError("tallies of different questions cannot be added")
        check_waves((self.wave, other.wave))
        added = tuple(a + b for a, b in zip(self.parts, other.parts, strict=True))
        return replace(self, people=self.people + other.people, parts=added, seeded=self.seeded or other.seeded)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SurveyTally):
            return NotImplemented
        mine = (self.task, self.people, self.questions, self.wave)
        theirs = (other.task, other.people, other.questions, other.wave)
        return mine == theirs and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]  # a tally holds arrays


def check_waves(waves: Iterable[int]) -> None:
    """Refuse several waves of a survey at once: the same people may have answered in each.

    >>> check_waves([2, 2])
    """
    found = sorted(set(waves))
    if len(found) > 1:
        raise MismatchError(f"these are of several waves ({', '.join(map(str, found))}): read each by itself")
