"""One person's device: it checks the promise, pays for it, randomizes with the system's entropy, and remembers.

The same answer to the same survey is sent again as the very same bytes, at no cost: the collector counts it once, by
its report id. A changed answer is a new report and is paid for again. Where the survey's mechanism is longitudinal,
what is kept and paid for is the permanent step: the same answer is then a fresh report, with an id of its own.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.device.ledger import Ledger
from veil.domain import Codes, Sets
from veil.entropy import Source, System
from veil.errors import BudgetError
from veil.mechanisms.longitudinal import Longitudinal, Memo
from veil.survey import Question, Survey
from veil.wire.frames import ID_BYTES, encode_report
from veil.wire.reports import Reports

__all__ = ["Client", "normative_report"]


def normative_report(survey: Survey, value: Any, source: Source, public: Any = None) -> bytes:
    """Runs on the device: one framed report. Draw order: path through the tree, view, mechanism, report id.

    This is what every other language reproduces byte for byte from the same entropy.
    """
    report: Reports = survey.randomize([value], source, public)
    return encode_report(survey, report, source.token(ID_BYTES))


class Client:
    """Answers surveys for one person.

    >>> from veil import GRR, Ledger, Survey
    >>> client = Client(Survey(GRR(epsilon=1.0, domain=["no", "yes"])), Ledger(lifetime=1.0))
    >>> client.answer("yes") == client.answer("yes")
    True
    >>> client.answer("no")
    Traceback (most recent call last):
    ...
    veil.errors.BudgetError: this answer would exceed the lifetime budget of 1
    """

    def __init__(self, task: Survey | str | bytes, ledger: Ledger) -> None:
        self.survey = task if isinstance(task, Survey) else Survey.from_json(task)
        self.ledger = ledger
        if self.survey.guarantee.ratio is None:
            raise BudgetError("this survey promises nothing on its own: it needs a shuffler")

    def answer(self, value: Any, public: Any = None) -> bytes:
        """Runs on the device: the framed report to send. Paid for durably before it is returned."""
        ask = self.survey.ask
        if isinstance(ask, Question) and isinstance(ask.mechanism, Longitudinal):
            codes = self.survey.domain.encode([value])
            return self._answer_afresh(ask, ask.mechanism, codes, self._mark(codes), public)
        mark = self.mark(value, public)
        kept = self._recall(mark)
        if kept is None:
            kept = normative_report(self.survey, value, System(), public)
            self._pay(mark, kept)
        return kept

    def mark(self, value: Any, public: Any = None) -> str:
        """Recognises an answer given before. It stays on the device, like the answer itself."""
        return self._mark(self.survey.domain.encode([value]), *self.survey.read_public(public, 1).values())

    def _answer_afresh(
        self, question: Question, mechanism: Longitudinal, codes: Codes, mark: str, public: Any
    ) -> bytes:
        """A new report of the memo that belongs to the value, in the draw order of `normative_report`."""
        source, layout = System(), mechanism.memo_layout
        kept = self._recall(mark)
        if kept is None:
            columns = mechanism.draw_permanent(question.view.apply(codes, source), source)
            memo = Memo(mechanism.digest, layout, columns)
        else:
            memo = Memo.from_bytes(mechanism.digest, layout, kept)
        instant = mechanism.draw_instant(memo.columns, source) | self.survey.read_public(public, 1)
        report = Reports(self.survey.task, self.survey.layout, instant)
        framed = encode_report(self.survey, report, source.token(ID_BYTES))
        if kept is None:
            self._pay(mark, memo.to_bytes())
        return framed

    def _recall(self, mark: str) -> bytes | None:
        """What was kept when this answer was paid for."""
        for charge in self.ledger.charges:
            if charge.task == self.survey.task and charge.note.startswith(mark + ":"):
                return base64.urlsafe_b64decode(charge.note.split(":", 1)[1])
        return None

    def _pay(self, mark: str, kept: bytes) -> None:
        note = mark + ":" + base64.urlsafe_b64encode(kept).decode()
        self.ledger.spend(self.survey.task, self.survey.guarantee, note)

    def _mark(self, codes: Codes, *public: NDArray[np.int64]) -> str:
        """An answer's mark, by its codes."""
        parts = [codes.offsets, codes.items] if isinstance(codes, Sets) else [codes]
        digest = hashlib.sha256(self.survey.task.encode())
        for part in (*parts, *public):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        return digest.hexdigest()[:32]
