"""One person's device: it checks the promise, pays for it, randomizes with the system's entropy, and remembers.

The same answer to the same survey is sent again as the very same bytes, at no cost: the collector counts it once, by
its report id. A changed answer is a new report and is paid for again.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from veil.domain import Sets
from veil.entropy import Source, System
from veil.errors import BudgetError
from veil.ledger import Ledger
from veil.report import Reports
from veil.survey import Survey
from veil.wire import ID_BYTES, encode_report

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
        mark = self._mark(value, public)
        for charge in self.ledger.charges:
            if charge.task == self.survey.task and charge.note.startswith(mark + ":"):
                return base64.urlsafe_b64decode(charge.note.split(":", 1)[1])
        report = normative_report(self.survey, value, System(), public)
        note = mark + ":" + base64.urlsafe_b64encode(report).decode()
        self.ledger.spend(self.survey.task, self.survey.guarantee, note)
        return report

    def _mark(self, value: Any, public: Any) -> str:
        """Recognises an answer given before, by its codes. It stays on the device, like the answer itself."""
        codes = self.survey.domain.encode([value])
        parts = [codes.offsets, codes.items] if isinstance(codes, Sets) else [codes]
        parts += self.survey.read_public(public, 1).values()
        digest = hashlib.sha256(self.survey.task.encode())
        for part in parts:
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        return digest.hexdigest()[:32]
