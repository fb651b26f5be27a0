"""One person's device: it checks the promise, pays for it, randomizes with the system's entropy, and remembers.

The same answer to the same survey is sent again as the very same bytes, at no cost, also where several threads or
processes give it at once: the collector counts it once, by its report id. A changed answer is a new report and is paid
for again. Where the survey's mechanism is longitudinal, what is kept and paid for is the permanent step: the same
answer is then a fresh report, with an id of its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
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
        return self._once(self.mark(value, public), lambda: normative_report(self.survey, value, System(), public))

    def mark(self, value: Any, public: Any = None) -> str:
        """Recognises an answer given before. It stays on the device, like the answer itself."""
        return self._mark(self.survey.domain.encode([value]), *self.survey.read_public(public, 1).values())

    def _answer_afresh(
        self, question: Question, mechanism: Longitudinal, codes: Codes, mark: str, public: Any
    ) -> bytes:
        """A new report of the memo that belongs to the value, in the draw order of `normative_report`."""
        source, layout, beside = System(), mechanism.memo_layout, self.survey.read_public(public, 1)

        def permanent() -> bytes:
            columns = mechanism.draw_permanent(question.view.apply(codes, source), source)
            return Memo(mechanism.digest, layout, columns).to_bytes()

        memo = Memo.from_bytes(mechanism.digest, layout, self._once(mark, permanent))
        instant = mechanism.draw_instant(memo.columns, source) | beside
        report = Reports(self.survey.task, self.survey.layout, instant)
        return encode_report(self.survey, report, source.token(ID_BYTES))

    def _once(self, mark: str, draw: Callable[[], bytes]) -> bytes:
        """What is kept of this answer: drawn and paid for now, or before, or by another thread or process meanwhile."""
        task = self.survey.task
        kept = self.ledger.recall(task, mark)
        if kept is None:
            drawn = base64.urlsafe_b64encode(draw()).decode()
            kept = self.ledger.spend_once(task, self.survey.guarantee, mark, drawn)
        return base64.urlsafe_b64decode(kept)

    def _mark(self, codes: Codes, *public: NDArray[np.int64]) -> str:
        """An answer's mark, by its codes."""
        parts = [codes.offsets, codes.items] if isinstance(codes, Sets) else [codes]
        digest = hashlib.sha256(self.survey.task.encode())
        for part in (*parts, *public):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        return digest.hexdigest()[:32]
