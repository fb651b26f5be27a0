"""A study under way: which round to ask now, and what came out. Everything that it took is recorded and replayed."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

from veil.errors import EmptyError, InputError, MismatchError, ParameterError, VeilError
from veil.results.base import Result
from veil.study.collected import Collected, Kept
from veil.study.records import Folder, Journal, Memory, MissingError, Recorded
from veil.study.study import Round, Rounds, Study, promised
from veil.survey import SurveyTally

__all__ = ["StudyRun"]


class StudyRun:
    """A study under way. With a folder, what it took is on the disk before it counts, and a restart goes on from there.

    `round` is what to ask now, None once there is a `result`; `answered` are the rounds before. A restart in the middle
    of a reading goes on with what was taken before; it needs the same reports once more for the rest.

    >>> from veil import GRR
    >>> from veil.histogram import Histogram
    >>> run = StudyRun(Histogram(GRR(epsilon=2.0, domain=3)))
    >>> asked = run.round.survey
    >>> run.answer(asked.tally(asked.randomize([0, 1, 1])))
    >>> run.round is None, run.result.n
    (True, 3)
    """

    def __init__(self, study: Study, folder: str | os.PathLike[str] | Journal | None = None) -> None:
        self.study = study
        self._journal: Journal
        if folder is None:
            self._journal = Memory()
        else:
            self._journal = folder if isinstance(folder, Journal) else Folder(Path(folder))
        self._begin()
        while self.round is not None and self._send(None):
            pass

    def _begin(self) -> None:
        self._rounds: Rounds | None = self.study.rounds()
        self._asked = Fraction(0)
        self.answered: list[Round] = []
        self.round: Round | None = None
        self.result: Result | None = None
        self._enter(next(self._rounds))

    @property
    def finished(self) -> int:
        """How many rounds have been answered."""
        return len(self.answered)

    def answer(self, collected: Collected | SurveyTally) -> None:
        """Runs at the collector: read what the current round collected; it moves on to the next, or to the result."""
        if self.round is None:
            raise InputError("this study is finished: there is no round to answer")
        survey = self.round.survey
        live = Kept(survey, collected) if isinstance(collected, SurveyTally) else collected
        if not isinstance(live, Collected) or live.survey.task != survey.task:
            raise MismatchError("expected what was collected of the current round; this was made for another task")
        if not live.people:
            raise EmptyError("nobody answered this round: expected at least one report")
        self.study.check_fakes(live)
        current = self.finished
        if self._rounds is None:  # a reading that was broken off: replay up to here
            self._begin()
            while self.finished < current:
                self._send(None)
        fresh = self._journal.read(current, 0) is None
        try:
            self._send(live)
        except VeilError:
            if fresh:  # refused, not interrupted: the round may be answered with something else
                self._journal.forget(current)
            raise

    def _send(self, live: Collected | None) -> bool:
        """Let the study read the current round; False where that needs reports which are not at hand."""
        asked, rounds = self.round, self._rounds
        assert asked is not None
        assert rounds is not None
        try:
            collected = Recorded(asked, self._journal, self.finished, live)
            self._rounds = None  # until it has come through: a study that was broken off is replayed
            following = rounds.send(collected)
        except MissingError:
            return False
        except StopIteration as end:
            self.answered.append(asked)
            self.round, self.result = None, promised(end.value, self.study.guarantee)
            return True
        self._rounds = rounds
        self.answered.append(asked)
        self._enter(following)
        return True

    def _enter(self, asked: Round) -> None:
        self._asked += asked.people
        if self._asked > 1:
            raise ParameterError("a study asks every person once: the shares of its rounds add up to more than 1")
        if not self.study.guarantee.covers(asked.survey.guarantee):
            raise ParameterError("a round of this study promises less than the study does")
        self.round = asked
