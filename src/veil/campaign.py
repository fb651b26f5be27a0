"""Surveys in sequence: what is asked next depends on the answers so far.

A Campaign is a generator of rounds. It must be a pure function of the answers (no clock, no randomness): then a restart
is a replay of the stored tallies, and `CampaignRun` keeps nothing else. A campaign that yields another survey on replay
is caught, because a tally knows its task.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from veil.errors import InputError, MismatchError, ParameterError
from veil.survey import Survey, SurveyTally
from veil.tools.durable import write_atomically
from veil.wire.tallies import decode_tally, encode_tally

__all__ = ["Campaign", "CampaignRun", "Round"]


@dataclass(frozen=True)
class Round:
    """One survey, the share of all people that answer it, and the candidates to count where domains are open."""

    survey: Survey
    people: Fraction
    candidates: Mapping[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.people <= 1:
            raise ParameterError("a round asks a share of the people, above 0 and at most 1")


Rounds = Generator[Round, SurveyTally, Any]


class Campaign(ABC):
    """A protocol of several rounds. Each person answers in one round only."""

    @abstractmethod
    def rounds(self) -> Rounds:
        """Yield rounds, receive each one's tally, return the result."""


class CampaignRun:
    """A campaign under way. With a folder, every answer is stored before it counts, and a restart goes on from there.

    `round` is what to ask now, None once there is a `result`.
    """

    def __init__(self, campaign: Campaign, folder: str | os.PathLike[str] | None = None) -> None:
        self._rounds = campaign.rounds()
        self._folder = None if folder is None else Path(folder)
        self._asked = Fraction(0)
        self.answered: list[Round] = []
        """The rounds that have been answered."""
        self.round: Round | None = None
        self.result: Any = None
        self._advance(None)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._replay()

    @property
    def finished(self) -> int:
        """How many rounds have been answered."""
        return len(self.answered)

    def answer(self, tally: SurveyTally) -> None:
        """Runs at the collector: the tally of the current round. It is durable before the campaign moves on."""
        if self.round is None:
            raise InputError("this campaign is finished")
        _check(tally, self.round)
        if self._folder is not None:
            write_atomically(self._file(self.finished), encode_tally(tally))
        self._take(tally)

    def _replay(self) -> None:
        while self.round is not None and self._file(self.finished).exists():
            stored = decode_tally(self.round.survey, self._file(self.finished).read_bytes())
            _check(stored, self.round)  # candidates need not stand in a task
            self._take(stored)

    def _take(self, tally: SurveyTally) -> None:
        if self.round is not None:
            self.answered.append(self.round)
        self._advance(tally)

    def _advance(self, tally: SurveyTally | None) -> None:
        try:
            self.round = next(self._rounds) if tally is None else self._rounds.send(tally)
        except StopIteration as end:
            self.round, self.result = None, end.value
            return
        self._asked += self.round.people
        if self._asked > 1:
            raise ParameterError("a campaign asks every person once: its shares add up to more than 1")

    def _file(self, index: int) -> Path:
        assert self._folder is not None
        return self._folder / f"round-{index:03d}.tally"


def _check(tally: SurveyTally, asked: Round) -> None:
    if tally.task != asked.survey.task or not _same_candidates(tally, asked):
        raise MismatchError("this tally was made for another round, or over other candidates")


def _same_candidates(tally: SurveyTally, asked: Round) -> bool:
    for i, (question, part) in enumerate(zip(asked.survey.questions, tally.parts, strict=True)):
        codes, counted = question.encode_candidates(asked.candidates.get(i)), part.candidates
        if codes is None or counted is None:
            if codes is not counted:
                return False
        elif not np.array_equal(codes, counted):
            return False
    return True
