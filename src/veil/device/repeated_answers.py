"""Answers that are given repeatedly: what a device keeps for the person, for each value, and for each occasion.

    for the person     what the mechanism draws once per person, whatever the value (Rappor's cohort)
    for each value     the permanent step: paid for once, and the same whenever the value is held again
    for each occasion  the report: asked again on the same occasion, the same bytes are sent again, and count once

All three are in the ledger before anything leaves the device, and stay there until the survey is closed: without the
permanent step a value would be drawn again, and each draw reveals more. Anyone who reads the ledger can therefore tell
the values. The client names the occasion.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from veil.device.ledger import Ledger
from veil.domain import Codes
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms.longitudinal.base import Longitudinal
from veil.reports.columns import Reports
from veil.reports.layout import Columns
from veil.survey import Question, Survey
from veil.wire.frames import ID_BYTES, encode_report


def written(data: bytes) -> str:
    """Bytes as a note in the ledger."""
    return base64.urlsafe_b64encode(data).decode()


def read_kept(note: str) -> bytes:
    """The same backwards."""
    return base64.urlsafe_b64decode(note)


@dataclass(frozen=True)
class RepeatedAnswers:
    """One person's answers to a survey whose mechanism is longitudinal."""

    survey: Survey
    question: Question
    mechanism: Longitudinal
    ledger: Ledger

    @classmethod
    def of(cls, survey: Survey, ledger: Ledger) -> RepeatedAnswers | None:
        """None where the survey is not longitudinal: then an answer is one report, for good.

        Within a tree nothing of the person would stay: each new value would draw the cohort, and the path, anew.
        """
        ask = survey.ask
        if isinstance(ask, Question) and isinstance(ask.mechanism, Longitudinal):
            return cls(survey, ask, ask.mechanism, ledger)
        if survey.guarantee.scope == "lifetime":
            raise ParameterError(
                "a device answers a longitudinal mechanism (Rappor) where it is the survey's one question: within a"
                " tree its promise would not hold over time"
            )
        return None

    def report(
        self,
        codes: Codes,
        public: dict[str, NDArray[Any]],
        marks: tuple[str, str],
        source: Source,
        drawn: Callable[[bytes], None],
        changed: bool = False,
    ) -> bytes:
        """Runs on the device: the framed report of a value on an occasion, in the draw order of `normative_report`.

        `marks` recognise the value, and the value with its public columns on this occasion. `drawn` is given a new
        report before it is written down.
        """
        of_value, of_occasion = marks
        name = f"report:{self.survey.task}:{of_occasion}"
        kept = self.ledger.noted(name)
        if kept is None:
            instant = self.mechanism.draw_instant(self._memo(codes, of_value, source, changed), source)
            report = Reports(self.survey.task, self.survey.layout, instant | public)
            framed = encode_report(self.survey, report, source.token(ID_BYTES))
            drawn(framed)
            kept = self.ledger.remember(name, written(framed))
        return read_kept(kept)

    def _memo(self, codes: Codes, mark: str, source: Source, changed: bool) -> Columns:
        """The permanent step of a value: drawn and paid for now, or before."""
        task, layout = self.survey.task, self.mechanism.memo_layout
        kept = self.ledger.recall(task, mark)
        if kept is None:
            self.ledger.check_answered(task, mark, changed=changed)
            shown = self.question.view.apply(codes, source)
            columns = self.mechanism.draw_permanent(shown, source, self._person(source))
            memo = written(layout.pack(columns))
            kept = self.ledger.spend_once(task, self.survey.guarantee, mark, memo, changed=changed)
        return layout.unpack(read_kept(kept))

    def _person(self, source: Source) -> Columns:
        """What belongs to the person: drawn with the first value, and kept."""
        name, layout = f"person:{self.survey.task}", self.mechanism.person_layout
        kept = self.ledger.noted(name)
        if kept is None:
            columns = self.mechanism.draw_person(1, source)
            kept = self.ledger.remember(name, written(layout.pack(columns)))
        return layout.unpack(read_kept(kept))
