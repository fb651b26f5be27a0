"""What the collector keeps of a survey: one tally per question, and how many people took part."""

from __future__ import annotations

from dataclasses import dataclass

from veil.errors import MismatchError
from veil.tally import Tally

__all__ = ["SurveyTally"]


@dataclass(frozen=True, eq=False)
class SurveyTally:
    """One tally a question, and how many people took part in all. Adds up like its parts."""

    task: str
    people: int
    parts: tuple[Tally, ...]

    def part(self, question: int) -> Tally:
        """The tally of one question."""
        return self.parts[question]

    def __add__(self, other: SurveyTally) -> SurveyTally:
        if not isinstance(other, SurveyTally):
            return NotImplemented
        if self.task != other.task or len(self.parts) != len(other.parts):
            raise MismatchError("tallies of different tasks cannot be added")
        added = tuple(a + b for a, b in zip(self.parts, other.parts, strict=True))
        return SurveyTally(self.task, self.people + other.people, added)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SurveyTally):
            return NotImplemented
        return (self.task, self.people, self.parts) == (other.task, other.people, other.parts)

    __hash__ = None  # type: ignore[assignment]  # a tally holds arrays
