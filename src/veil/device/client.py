"""Clients for one person: surveys, and single rounds of studies.

A client checks the guarantee, pays for it, randomizes with the system's entropy, and remembers. The same answer to the
same survey is sent again as the very same bytes, at no cost, also where several threads or processes give it at once:
the collector counts it once, by its report id. A changed answer is a new report and is paid for again. Once an answer
is delivered, the device forgets what recognises it: nothing is then drawn or paid unless the caller says that the
answer is changed. Longitudinal mechanisms pay for the permanent step of a value, and make a fresh report on every new
occasion: each day, unless the caller names occasions (`veil.device.repeated_answers`).

In a study of several rounds, each device draws a number once and keeps it in the ledger. The collector signs which
numbers a round asks, so that every round asks people at random, and nobody twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.device.ledger import ANSWERED, Ledger
from veil.device.repeated_answers import RepeatedAnswers, read_kept, written
from veil.device.verification import read_signed, verified
from veil.domain import Codes, SetCodes
from veil.entropy import Source, System
from veil.errors import AnsweredError, BudgetError, DomainError, MismatchError, ParameterError, WireError
from veil.privacy import fraction_text, read_fraction
from veil.reports.columns import Reports
from veil.survey import Survey
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int
from veil.wire.frames import ID_BYTES, encode_report

if TYPE_CHECKING:
    from veil.device.online import OnlineClient

ROUND_PURPOSE = b"veil-study-round-v1\x00"
"""What is signed begins with this, so that the signature of a survey cannot pass for one of a round."""
_KIND, _VERSION = "veil-study-round", 1
_MEMBERS = {"kind", "version", "study", "round", "task", "from", "to"}
_NUMBER_BYTES = 8


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
        self._lasting = RepeatedAnswers.of(self.survey, ledger)
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


class RoundClient:
    """Answers one round of a study of several rounds for one person, and no second one.

    `study` is the study's id and `key` the collector's public key, both known from elsewhere. Rounds whose times are
    finer than an hour are refused unless `allow_fine_times`.
    """

    def __init__(self, study: str, ledger: Ledger, key: bytes, *, allow_fine_times: bool = False) -> None:
        self.study, self.ledger, self.key, self.allow_fine_times = study, ledger, key, allow_fine_times

    @property
    def number(self) -> Fraction:
        """The person's number in this study, from 0 up to 1: drawn once, and kept in the ledger."""
        kept = self.ledger.remember(f"number:{self.study}", System().token(_NUMBER_BYTES).hex())
        return Fraction(int.from_bytes(bytes.fromhex(kept), "little"), 2 ** (8 * _NUMBER_BYTES))

    def answer(self, published: Json, value: Any, public: Any = None, now: float | None = None) -> bytes | None:
        """Runs on the device: the framed report to send, or None where this round asks other people.

        `published` is what the collector says of the round that is open now. The same answer again is the same bytes,
        until it was `delivered`; a changed one is refused. So is every other round from then on, also where the ledger
        could not pay for the first.
        """
        survey, part = verified_round(published, self.key, self.study, now, allow_fine_times=self.allow_fine_times)
        if not part.begin <= self.number < part.end:
            return None
        client = Client(survey, self.ledger)
        given = f"{part.number}:{part.task}:{client.mark(value, public)}"
        if self.ledger.remember(f"{ANSWERED}{self.study}", given) != given:
            raise AnsweredError("this study was answered before: a person answers one of its rounds, once")
        occasion = f"round {part.number}" if client.lasting else None
        return client.answer(value, public, occasion=occasion, changed=True)  # another study may have the same task

    def delivered(self, report: bytes) -> None:
        """Forget what recognises and repeats the answer of this report: the collector has acknowledged it."""
        self.ledger.forget(report[1:33].hex(), written(report))  # the task id follows the version


@dataclass(frozen=True)
class RoundPart:
    """Whom a round of a study asks: the people with begin <= number < end, of numbers from 0 to 1.

    >>> part = RoundPart("a-study", 1, "a-task", Fraction(1, 2), Fraction(1))
    >>> RoundPart.from_json(part.to_json()) == part
    True
    """

    study: str
    number: int
    task: str
    begin: Fraction
    end: Fraction

    def to_json(self) -> Json:
        """What is signed."""
        return {
            "kind": _KIND,
            "version": _VERSION,
            "study": self.study,
            "round": self.number,
            "task": self.task,
            "from": fraction_text(self.begin),
            "to": fraction_text(self.end),
        }

    @classmethod
    def from_json(cls, document: Json) -> RoundPart:
        """The same backwards."""
        if document["kind"] != _KIND or document["version"] != _VERSION or not is_int(document["version"]):
            raise WireError(f"expected a round of a study, of version {_VERSION}")
        study, number, task = (document[name] for name in ("study", "round", "task"))
        begin, end = read_fraction(document["from"]), read_fraction(document["to"])
        if not (isinstance(study, str) and isinstance(task, str) and is_int(number) and number >= 0):
            raise WireError("a round has a study, a number of at least 0 and a task")
        if not 0 <= begin < end <= 1:
            raise WireError("a round asks a part of all people: expected 0 <= from < to <= 1")
        return cls(study, number, task, begin, end)


def verified_round(
    answer: Json, key: bytes, study: str, now: float | None = None, *, allow_fine_times: bool = False
) -> tuple[Survey, RoundPart]:
    """Runs on the device: the survey of a study's current round and whom it asks, both signed with the key.

    Refuses all that section 7 of the wire format does not allow, and the round of another study or with another task.
    """
    part = RoundPart.from_json(read_signed(answer.get("part"), key, ROUND_PURPOSE, _MEMBERS))
    if part.study != study:
        raise MismatchError("this is a round of another study than the one that was asked for")
    return verified(answer, key, part.task, now, allow_fine_times=allow_fine_times), part


def normative_report(survey: Survey, value: Any, source: Source, public: Any = None) -> bytes:
    """Runs on the device: one framed report. Draw order: path through the tree, view, mechanism, report id.

    This is what every other language reproduces byte for byte from the same entropy.
    """
    report: Reports = survey.randomize([value], source, public)
    return encode_report(survey, report, source.token(ID_BYTES))


def checked_ledger(ledger: Any) -> Ledger:
    """A ledger; refuses what stands in its place, as the path of one: only the person can say what they grant."""
    if isinstance(ledger, Ledger):
        return ledger
    raise ParameterError('expected a ledger with what the person grants, as veil.Ledger("ledger", lifetime=2.0)')


def _checked(occasion: str) -> str:
    if not isinstance(occasion, str) or not occasion:
        raise ParameterError("an occasion is named by text")
    return occasion
