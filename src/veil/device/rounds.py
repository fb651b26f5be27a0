"""One person, one round: a device's place in a study of several rounds, and the one round that it answers.

Each device draws a number once per study and keeps it in the ledger; the collector signs which numbers a round asks. So
every round asks people at random, and nobody twice. Nothing here knows the collector, which writes what is read here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from veil.device.client import Client
from veil.device.lasting import written
from veil.device.ledger import ANSWERED, Ledger
from veil.device.verification import read_signed, verified
from veil.entropy import System
from veil.errors import AnsweredError, MismatchError, WireError
from veil.privacy import fraction_text, read_fraction
from veil.survey import Survey
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int

__all__ = ["ROUND_PURPOSE", "RoundClient", "RoundPart", "verified_round"]

ROUND_PURPOSE = b"veil-study-round-v1\x00"
"""What is signed begins with this, so that the signature of a survey cannot pass for one of a round."""

_KIND, _VERSION = "veil-study-round", 1
_MEMBERS = {"kind", "version", "study", "round", "task", "from", "to"}
_NUMBER_BYTES = 8


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
