"""The base class of studies: frozen parameters, and rounds of asking and reading.

A study yields rounds and receives the collection of each. It is a pure function of what it reads from them (no clock,
no randomness), so that a run can be recorded and replayed. `collection` has the reports, and `run` continues a study
after a restart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar, get_type_hints

from veil.errors import EmptyError, InputError, MismatchError, ParameterError, WireError
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.study.collection import Collection, TallyCollection
from veil.study.parameters import from_text, read, written
from veil.survey import People, Survey, SurveyTally
from veil.tools.json_documents import Json, canonical, kind_of, take
from veil.tools.messages import unknown_name
from veil.tools.numbers import is_int

VERSION = 1


@dataclass(frozen=True)
class Round:
    """One survey, and the share of all people that it asks. The shares of a study add up to at most 1."""

    survey: Survey
    people: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not 0 < self.people <= 1:
            raise ParameterError("a round asks a share of the people, above 0 and at most 1")


Rounds = Generator[Round, Collection, Result]
Found = TypeVar("Found", bound=Result)


class Study(ABC):
    """What somebody wants to learn. A frozen dataclass whose fields are its parameters; JSON both ways.

    Some parameters say how people are asked: the task and its id follow from them. Others say how the answers are read;
    `replace(study, method=...)` then reads the same reports again.
    """

    kind: ClassVar[str]
    """Its name in a study file, and in `veil.study.STUDIES`."""
    reads_fakes: ClassVar[bool] = False
    """Whether it reads reports with uniform fakes among them: all it takes are estimates, which remove them."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What each person is promised about everything that they send, delta included."""

    @abstractmethod
    def rounds(self) -> Rounds:
        """Yield rounds, receive what was collected in each, return the result."""

    @cached_property
    def survey(self) -> Survey:
        """What people are asked first."""
        return next(self.rounds()).survey

    @property
    def asks_again(self) -> bool:
        """Whether two of its rounds may ask the same survey, of different people."""
        return False

    @property
    def planned_fakes(self) -> int:
        """How many uniform reports shufflers add to those of its people."""
        return 0

    def check_fakes(self, collected: Collection) -> None:
        """Refuse fakes that this study would take for people."""
        if collected.fakes and not self.reads_fakes:
            kind, fakes = self.kind, collected.fakes
            raise InputError(
                f"a study of kind {kind} takes every report for a person's, and {fakes:,} of these are fakes"
            )

    def with_candidates(self, candidates: Any) -> Self:
        """The same study that counts only these values; refused by studies that find their values themselves."""
        raise InputError(f"a study of kind {self.kind} takes no candidates: it knows or finds the values itself")

    # -- on the device ---------------------------------------------------------------------------------------------

    @property
    def public_text(self) -> tuple[str, ...] | None:
        """The public columns that are text in a file of text, where others are numbers; None: as the file has them."""
        return None

    def encode_public(self, values: Any) -> Any:
        """Runs on the device: the public columns as `Survey.read_public` takes them; None where there are none."""
        return values if self.survey.public else None

    def encode(self, values: Any) -> People:
        """Runs on the device: what people hold and their public columns, of a table that has both."""
        codes = self.survey.domain.encode(values)
        return People(codes, self.survey.read_public(self.encode_public(values), len(codes)))

    # -- as a document ---------------------------------------------------------------------------------------------

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The names of the parameters, each with its type."""
        hints = get_type_hints(cls)
        return {field.name: hints[field.name] for field in fields(cls)}  # type: ignore[arg-type]  # a dataclass

    def to_json(self) -> Json:
        """Kind and parameters."""
        return {"kind": self.kind, **{name: written(getattr(self, name)) for name in self.parameters()}}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Return the study that a document describes; a missing or unknown parameter is refused."""
        hints = cls.parameters()
        if not isinstance(document, dict) or set(document) != {"kind", *hints}:
            raise WireError(f"a study of kind {cls.kind} has the parameters {', '.join(hints)}")
        made = cls(**{name: read(hint, document[name], f"{cls.kind}.{name}") for name, hint in hints.items()})
        if canonical(made.to_json()) != canonical(document):
            raise WireError(f"this study of kind {cls.kind} is not written as veil writes it")
        return made

    def to_bytes(self) -> bytes:
        """The study file: kind, parameters, and the task of the first round, as canonical JSON."""
        document = {"kind": "veil-study", "version": VERSION, "study": self.to_json(), "task": self.survey.to_json()}
        return canonical(document)

    def changed(self, /, **texts: str) -> Self:
        """The study with some of its parameters for reading set from text, as in `--set method=admm`.

        What is asked cannot be changed: reports that were made for one task tell nothing about another.
        """
        hints = self.parameters()
        unknown = [name for name in texts if name not in hints]
        if unknown:
            raise InputError(unknown_name(f"a parameter of {self.kind}", unknown[0], hints))
        values = {name: from_text(hints[name], text, name) for name, text in texts.items()}
        made = replace(self, **values)  # type: ignore[type-var]  # every study is a dataclass
        if made.survey.task != self.survey.task:
            asked = ", ".join(texts)
            raise MismatchError(f"{asked} would change what people are asked: expected a parameter of the reading")
        return made


def read_study_file(document: Any, kinds: Mapping[str, type[Study]]) -> Study:
    """The study in a parsed study file, if it is of one of these kinds."""
    version, described, task = take(document, "veil-study", "version", "study", "task")
    if not is_int(version) or version != VERSION:
        raise WireError(f"this study was written by another version of veil (expected version {VERSION})")
    study = kinds[kind_of(described, kinds, "a study")].from_json(described)
    if canonical(task) != study.survey.to_bytes():
        raise MismatchError("the task in this study file is not the one that its parameters give: one was changed")
    return study


def promised(found: Found, guarantee: Guarantee) -> Found:
    """A result that says what each person was promised."""
    return replace(found, guarantee=guarantee)  # type: ignore[type-var]  # every result is a dataclass


class OneRound(Study, Generic[Found]):
    """A study that asks everybody the same survey, once. Most are. Each has `survey`: what people are asked."""

    @property
    def guarantee(self) -> Guarantee:
        return self.survey.guarantee

    @abstractmethod
    def answer(self, collected: Collection) -> Found:
        """Runs at the collector: what the reports of this study's survey say. Called by `read`."""

    def read(self, collected: Collection | SurveyTally) -> Found:
        """Runs at the collector: what was learnt; from a kept tally, or from reports wherever they are."""
        found = TallyCollection(self.survey, collected) if isinstance(collected, SurveyTally) else collected
        if not isinstance(found, Collection):
            raise MismatchError("expected what was collected of this study: a tally, or reports in memory or in files")
        if found.survey.task != self.survey.task:
            raise MismatchError("expected what was collected of this study; this was made for another task")
        if not found.people:
            raise EmptyError("nobody answered: expected at least one report")
        self.check_fakes(found)
        return promised(self.answer(found), self.guarantee)

    def rounds(self) -> Rounds:
        collected = yield Round(self.survey)
        return self.read(collected)
