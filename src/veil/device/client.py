"""One person's device: it checks the promise, pays for it, randomizes with the system's entropy, and remembers.

The same answer to the same survey is sent again as the very same bytes, at no cost, also where several threads or
processes give it at once: the collector counts it once, by its report id. A changed answer is a new report and is paid
for again. Once an answer is delivered, the device forgets what recognises it: nothing is then drawn or paid unless the
caller says that the answer is changed. Where the survey's mechanism is longitudinal, what is paid for is the permanent
step of a value, and the same answer is a fresh report on every new occasion: each day, unless the caller names
occasions (`veil.device.lasting`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.device.lasting import Lasting, read_kept, written
from veil.device.ledger import Ledger
from veil.domain import Codes, SetCodes
from veil.entropy import Source, System
from veil.errors import BudgetError, DomainError, ParameterError
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.wire.frames import ID_BYTES, encode_report

if TYPE_CHECKING:
    from veil.device.online import OnlineClient

__all__ = ["Client", "checked_ledger", "normative_report"]


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
        self.ledger = checked_ledger(ledger)
        self._lasting = Lasting.of(self.survey, ledger)
        if self.survey.guarantee.ratio is None:
            raise BudgetError("this survey promises nothing on its own: it needs a shuffler")

    @staticmethod
    def open(
        url: str,
        key: str | bytes | Sequence[str | bytes],
        name: str,
        ledger: Ledger,
        *,
        allow_fine_times: bool = False,
    ) -> OnlineClient:
        """Runs on the device: a client that fetches a survey from a collector, and sends its answers there.

        `key` is the collector's public key (base64url, as `veil survey show` prints it), or several while keys change;
        `name` is the survey's task id, or its name: then it is the latest wave of that name that takes reports, and the
        name must be signed, too. Refuses a survey that is not signed with the key, not open, not the one asked for, or
        that promises less than the ledger's budget grants, or whose collector keeps times finer than an hour, unless
        `allow_fine_times`. What could not be sent waits in a private file beside the ledger.

            client = veil.Client.open("https://collector.example", key, task, veil.Ledger("ledger", lifetime=2.0))
            receipt = client.answer("coffee")           # delivered, queued or refused
        """
        from veil.device.online import open_client

        return open_client(url, key, name, ledger, allow_fine_times=allow_fine_times)

    def answer(
        self,
        value: Any,
        public: Any = None,
        *,
        occasion: str | None = None,
        changed: bool = False,
        drawn: Callable[[bytes], None] = lambda report: None,
    ) -> bytes:
        """Runs on the device: the framed report to send. Paid for durably before it is returned.

        Where the mechanism is longitudinal, an answer on the same `occasion` is the same bytes, and on another one a
        fresh report; without a name, the occasion is the day (UTC). `drawn` is given a new report before it is paid.
        Once an answer was `delivered`, another one is refused (`AnsweredError`), unless `changed` is true: then it is
        one more report, and paid for.
        """
        codes, beside = self._encoded(value, public)
        if self._lasting is None:
            if occasion is not None:
                raise ParameterError("an occasion goes with surveys that are answered again and again")
            mark = self._mark(codes, *beside.values())
            self.ledger.check_answered(self.survey.task, mark, changed=changed)
            return self._once(mark, lambda: normative_report(self.survey, value, System(), public), drawn, changed)
        named = self.ledger.today.isoformat() if occasion is None else _checked(occasion)
        marks = self._mark(codes), self._mark(codes, *beside.values(), occasion=named)
        return self._lasting.report(codes, beside, marks, System(), drawn, changed)

    def delivered(self, report: bytes) -> None:
        """Forget what recognises and repeats the answer of this report: the collector has acknowledged it.

        Its charge stays. What a longitudinal mechanism must repeat stays, too.
        """
        self.ledger.forget(self.survey.task, written(report))

    @property
    def lasting(self) -> bool:
        """Whether the survey may be answered again and again: its mechanism is longitudinal."""
        return self._lasting is not None

    def mark(self, value: Any, public: Any = None) -> str:
        """Recognises an answer given before. It stays on the device, like the answer itself."""
        codes, beside = self._encoded(value, public)
        return self._mark(codes, *beside.values())

    def _encoded(self, value: Any, public: Any) -> tuple[Codes, dict[str, NDArray[np.int64]]]:
        """The answer as its codes, and what stands beside it. One person has no rows: errors speak of none."""
        try:
            return self.survey.domain.encode([value]), self.survey.read_public(public, 1)
        except DomainError as problem:
            raise DomainError(problem.expected) from None

    def _once(self, mark: str, draw: Callable[[], bytes], drawn: Callable[[bytes], None], changed: bool) -> bytes:
        """What is kept of this answer: drawn and paid for now, or before, or by another thread or process meanwhile."""
        task = self.survey.task
        kept = self.ledger.recall(task, mark)
        if kept is None:
            report = draw()
            drawn(report)
            kept = self.ledger.spend_once(task, self.survey.guarantee, mark, written(report), changed=changed)
        return read_kept(kept)

    def _mark(self, codes: Codes, *public: NDArray[np.int64], occasion: str | None = None) -> str:
        """An answer's mark, by its codes."""
        parts = [codes.offsets, codes.items] if isinstance(codes, SetCodes) else [codes]
        digest = hashlib.sha256(self.survey.task.encode())
        for part in (*parts, *public):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        if occasion is not None:
            digest.update(f"occasion {occasion}".encode())
        return digest.hexdigest()[:32]


def checked_ledger(ledger: Any) -> Ledger:
    """A ledger; refuses what stands in its place, as the path of one: only the person can say what they grant."""
    if isinstance(ledger, Ledger):
        return ledger
    raise ParameterError('expected a ledger with what the person grants, as veil.Ledger("ledger", lifetime=2.0)')


def _checked(occasion: str) -> str:
    if not isinstance(occasion, str) or not occasion:
        raise ParameterError("an occasion is named by text")
    return occasion
