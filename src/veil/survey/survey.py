"""Surveys: a tree of questions about one held value, the public columns beside its reports, and their tallies.

`People` are simulated people: the values that they hold, and their public columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Codes, Domain
from veil.domain.inputs import as_columns, as_int64, read_column
from veil.entropy import Batch, Source
from veil.errors import EmptyError, InputError, MismatchError, ParameterError, WireError
from veil.kernels.parallel import current_device
from veil.mechanisms import Mechanism
from veil.privacy import Guarantee
from veil.reports.columns import Reports
from veil.reports.layout import Columns, Field, Layout, Rows
from veil.reports.tally import check_weights
from veil.results.answers import Answers
from veil.results.estimate import Estimate
from veil.survey.family import ask_from_json
from veil.survey.tally import SurveyTally
from veil.survey.tree import Ask, Question, RowIndices, as_ask
from veil.tools.json_documents import Json, canonical, digest, parse_json, take
from veil.tools.numbers import convert_int_fields, is_int

_JOINT_CELLS = 1 << 22
_MOST_QUESTIONS = 1 << 20
MOST_WAVES = 1_000_000


@dataclass(frozen=True, init=False)
class Survey:
    """A tree of questions about one held value, and the public columns beside its reports.

    The same survey asked again is another `wave` of it: a task of its own, so that a device answers it anew and its
    ledger pays for it. The first wave's task does not mention it, and reads the tallies of all waves.

    >>> from veil import GRR, OLH, OneOf
    >>> survey = Survey(OneOf((1, Question(GRR(1.0, 4))), (3, Question(OLH(1.0, 4)))))
    >>> survey.guarantee.within(1.0), survey.layout.names
    (True, ('choice', 'value', 'seed', 'bucket'))
    """

    ask: Ask
    public: tuple[Public, ...] = ()
    wave: int = 1
    domain: Domain = field(init=False, repr=False, compare=False)
    """What a person holds."""

    def __init__(self, ask: Ask | Mechanism, public: Sequence[Public] = (), wave: int = 1) -> None:
        object.__setattr__(self, "ask", as_ask(ask))
        object.__setattr__(self, "public", tuple(public))
        if not is_int(wave) or not 1 <= wave <= MOST_WAVES:
            raise ParameterError(f"a wave is a number from 1 to {MOST_WAVES:,}")
        object.__setattr__(self, "wave", int(wave))
        held = self.ask.held
        if len(held) > 1:
            raise ParameterError("all questions of a survey look at the same held value")
        object.__setattr__(self, "domain", next(iter(held)))
        if len({column.name for column in self.public}) != len(self.public):
            raise ParameterError("public columns have different names")

    @property
    def first(self) -> Survey:
        """The same survey in its first wave: what reports of any wave are read by."""
        return self if self.wave == 1 else Survey(self.ask, self.public)

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def questions(self) -> Sequence[Question]:
        """All questions, counted from the left of the tree; each is built when it is looked at."""
        return self.ask.questions

    @property
    def guarantee(self) -> Guarantee:
        """The exact promise of one report."""
        return self.ask.guarantee

    @cached_property
    def layout(self) -> Layout:
        """The columns of a report, then the public ones."""
        return Layout((*self.ask.layout.fields, *(column.field for column in self.public)))

    def to_json(self) -> Json:
        """The task: everything that a device needs to know."""
        public = [[column.name, column.scale] for column in self.public]
        held, ask = self.domain.to_json(), self.ask.to_json()
        again = {"wave": self.wave} if self.wave > 1 else {}
        return {"kind": "veil-survey", "version": 1, "domain": held, "ask": ask, "public": public, **again}

    @classmethod
    def from_json(cls, document: Any) -> Survey:
        """Read a task: text, bytes or a parsed document. Strict: unknown keys and foreign thresholds are refused."""
        if isinstance(document, (str, bytes)):
            document = parse_json(document)
        try:
            survey = cls._read(document)
        except RecursionError:
            raise WireError("this task is nested too deeply") from None
        if canonical(document) != survey.to_bytes():
            raise WireError("this task is not written as veil writes it: its id would not be its own")
        return survey

    @classmethod
    def _read(cls, document: Any) -> Survey:
        wave = 1
        if isinstance(document, Mapping) and "wave" in document:
            document, wave = {key: part for key, part in document.items() if key != "wave"}, document["wave"]
            if not is_int(wave) or not 2 <= wave <= MOST_WAVES:
                raise WireError(f"a task mentions its wave from the second to number {MOST_WAVES:,}")
        version, held, ask, public = take(document, "veil-survey", "version", "domain", "ask", "public")
        if not is_int(version) or version != 1:
            raise WireError("this task was written by another version of veil (expected version 1)")
        if not isinstance(public, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in public):
            raise WireError("public columns are a list of pairs of a name and a scale")
        return cls(ask_from_json(ask, held), [Public(name, scale) for name, scale in public], wave)

    def to_bytes(self) -> bytes:
        """The task as canonical JSON (RFC 8785)."""
        return canonical(self.to_json())

    @cached_property
    def task(self) -> str:
        """The task id: SHA-256 of the canonical JSON, in hex."""
        return digest(self.to_json())

    # -- on the device ---------------------------------------------------------------------------------------------

    def randomize(self, values: Any, source: Source | None = None, public: Any = None) -> Reports:
        """Runs on the device: one report per value. Without a source, from fresh entropy of the operating system."""
        codes: Codes = self.domain.encode(values)
        if not len(codes):
            raise EmptyError("expected at least one value to randomize")
        beside = self.read_public(public, len(codes))

        def draw(rows: slice, stream: Source) -> Reports:
            return self.reports(codes[rows], stream, {name: column[rows] for name, column in beside.items()})

        return Reports.concatenate((source or Batch()).each_chunk(len(codes), draw))

    def reports(self, codes: Codes, source: Source, public: Columns | None = None) -> Reports:
        """Runs on the device: reports of encoded values, for at most one chunk of rows."""
        return Reports(self.task, self.layout, {**self.ask.draw(codes, source), **(public or {})})

    def read_public(self, public: Any, rows: int) -> dict[str, NDArray[np.int64]]:
        """Runs on the device: the public columns as they stand in a report."""
        if not self.public:
            if public is not None:
                raise InputError("this survey has no public columns")
            return {}
        given = as_columns(public if public is not None else {}, [column.name for column in self.public])
        read = {}
        for column, values in zip(self.public, given, strict=True):
            read[column.field.name] = as_int64(read_column(values), f"integers (public column {column.name!r})")
        if any(len(values) != rows for values in read.values()):
            raise InputError("a public column has one integer per person")
        return read

    # -- at the collector ------------------------------------------------------------------------------------------

    def check(self, reports: Reports) -> None:
        """Runs at the collector: refuse reports that this survey's devices cannot have made."""
        self.ask.check(self._columns(reports))

    def parts(
        self, reports: Reports, questions: Iterable[int] | None = None
    ) -> Iterator[tuple[Question, RowIndices, Columns]]:
        """Runs at the collector: each question with the rows that answered it and their columns, checked.

        With `questions`, those alone and in increasing order; reports to other questions are then passed over.
        """
        columns, wanted = self._columns(reports), self._wanted(questions)
        return self.ask.parts(columns, np.arange(len(reports)), range(len(self.ask)) if wanted is None else wanted)

    def _columns(self, reports: Reports) -> Columns:
        if not isinstance(reports, Reports) or reports.task != self.task:
            raise MismatchError("expected reports of this survey; these were made for another task")
        return {name: reports.columns[name] for name in self.ask.layout.names}

    def _wanted(self, questions: Iterable[int] | None) -> tuple[int, ...] | None:
        """Numbers of questions, increasing; None for all of them."""
        many = len(self.ask)
        if questions is None:
            if many > _MOST_QUESTIONS:
                raise InputError(f"this survey has {many:,} questions: say which of them, at most {_MOST_QUESTIONS:,}")
            return None
        wanted = list(questions)
        if not wanted or not all(is_int(i) and 0 <= i < many for i in wanted) or len(set(wanted)) != len(wanted):
            raise InputError(f"questions are given by their numbers, from 0 to {many - 1}, each once and at least one")
        return None if len(wanted) == many else tuple(sorted(map(int, wanted)))

    def tally(
        self,
        reports: Reports,
        candidates: Mapping[int, Any] | None = None,
        weights: Any = None,
        questions: Iterable[int] | None = None,
    ) -> SurveyTally:
        """Runs at the collector: one tally per question.

        `candidates` are given by question where a domain is too large to list. With `questions`, those alone are
        counted: what the others were answered costs next to nothing.
        """
        return self.tally_coded(reports, self.encode_candidates(candidates, questions), weights, questions)

    def tally_coded(
        self,
        reports: Reports,
        codes: Mapping[int, NDArray[Any] | None],
        weights: Any = None,
        questions: Iterable[int] | None = None,
    ) -> SurveyTally:
        """Runs at the collector: the same for candidates that were encoded before, by `encode_candidates`."""
        wanted = self._wanted(questions)
        parts, checked = self.parts(reports, wanted), check_weights(weights, len(reports))
        tallies = []
        for i, (question, rows, columns) in zip(self._numbers(wanted), parts, strict=True):
            kept = None if checked is None else checked[rows]
            chosen = codes[i] if i in codes else question.encode_candidates(None)
            tallies.append(question.mechanism.tally_columns(columns, chosen, kept))
        return SurveyTally(self.first.task, len(reports), tuple(tallies), wanted, self.wave)

    def encode_candidates(
        self, candidates: Mapping[int, Any] | None, questions: Iterable[int] | None = None
    ) -> dict[int, NDArray[Any] | None]:
        """Candidates by question as codes by question, of all questions or of the listed ones."""
        chosen = self._check_candidates(candidates or {}, self._wanted(questions))
        return {i: self.questions[i].encode_candidates(some) for i, some in chosen.items()}

    def estimate(self, tally: SurveyTally, population: int | None = None) -> Answers:
        """Runs at the collector: one result per counted question (an Estimate, a Distribution, ...), about all people.

        `population` is the number of people that the reports are a random sample of; default: those who reported.
        """
        if not isinstance(tally, SurveyTally) or tally.task != self.first.task or self.wave not in (1, tally.wave):
            raise MismatchError("this tally was made for another task")
        numbers = self._numbers(tally.questions)
        if len(tally.parts) != len(numbers):
            raise MismatchError("this tally was made for another task")
        found = tuple(self.estimate_question(tally, i, population) for i in numbers)
        return Answers(found, tuple(numbers), guarantee=self.guarantee, n=tally.people)

    def estimate_question(self, tally: SurveyTally, index: int, population: int | None = None) -> Any:
        """The result of one question alone."""
        question, part = self.questions[index], tally.part(index)
        if not part.people:
            raise EmptyError(f"nobody answered question {index}: expected at least one report")
        people = tally.people if population is None else population
        if not is_int(people) or people < tally.people:
            raise InputError(f"population: expected at least the number of reports, {tally.people}")
        found = question.mechanism.estimate(part, population=int(people), scale=question.view.scale)
        return found.of(question.view.values) if isinstance(found, Estimate) else found

    def _numbers(self, wanted: tuple[int, ...] | None) -> Sequence[int]:
        return range(len(self.ask)) if wanted is None else wanted

    def _check_candidates(self, by_question: Mapping[int, Any], wanted: tuple[int, ...] | None) -> Mapping[int, Any]:
        known = self._numbers(wanted)
        if not isinstance(by_question, Mapping) or not all(is_int(i) and i in known for i in by_question):
            which = f"a mapping from 0 .. {len(self.ask) - 1}" if wanted is None else "a mapping from counted questions"
            raise InputError(f"candidates are given by question: {which}")
        return by_question

    def joint(self, reports: Reports, candidates: Mapping[int, Any], weights: Any = None) -> NDArray[np.int64]:
        """Runs at the collector: joint support of questions that the same people answered (AllOf).

        `candidates` maps question indices to candidates. The result has one axis of candidates per question, in the
        order given, then one axis of length 2 per question: result[a, b, s, t] is how many rows (or how much weight)
        support a (s = 1) or not (s = 0) in the first question and b (t) in the second.
        """
        return self.joint_coded(reports, self.encode_joint(candidates), weights)

    def encode_joint(self, candidates: Mapping[int, Any]) -> dict[int, NDArray[Any]]:
        """Candidates by question as codes by question, for `joint_coded`; None stands for every value."""
        codes = {}
        for i, some in self._check_candidates(candidates, None).items():
            oracle = self.questions[i].pure
            chosen = oracle.encode_candidates(some)
            codes[i] = np.arange(oracle.domain.size, dtype=np.uint64) if chosen is None else chosen
        return codes

    def joint_coded(
        self, reports: Reports, candidates: Mapping[int, NDArray[Any]], weights: Any = None
    ) -> NDArray[np.int64]:
        """Runs at the collector: the same for candidates that were encoded before, by `encode_joint`."""
        parts = dict(zip(sorted(candidates), self.parts(reports, candidates), strict=True))
        checked = check_weights(weights, len(reports))
        lists, rows = list(candidates.values()), np.arange(len(reports))
        for i in candidates:
            rows = np.intersect1d(rows, parts[i][1], assume_unique=True)
        found = None if checked is not None else self._joint_on_device(parts, candidates, lists, rows)
        if found is not None:
            return found
        shape = tuple(len(codes) for codes in lists)
        total = np.zeros((int(np.prod(shape)), 1 << len(shape)), dtype=np.int64)
        step = max(1, _JOINT_CELLS // total.size)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            kept = np.ones(len(some), np.int64) if checked is None else checked[some]
            supports = []
            for i, codes in zip(candidates, lists, strict=True):
                question, answered, columns = parts[i]
                where = np.searchsorted(answered, some)
                mine = {name: column[where] for name, column in columns.items()}
                supports.append(question.pure.incidence(mine, codes))
            total += _joint_counts(supports, kept)
        return total.reshape(shape + (2,) * len(shape))

    @staticmethod
    def _joint_on_device(
        parts: Mapping[int, tuple[Question, RowIndices, Columns]],
        candidates: Iterable[int],
        lists: Sequence[NDArray[Any]],
        rows: NDArray[np.int64],
    ) -> NDArray[np.int64] | None:
        """The same of two hashed questions where a device counts; None elsewhere."""
        device = current_device()
        if device is None or len(lists) != 2:
            return None
        asked = []
        for i, codes in zip(candidates, lists, strict=True):
            question, answered, columns = parts[i]
            where = np.searchsorted(answered, rows)
            given = question.pure.hashed({name: column[where] for name, column in columns.items()}, codes)
            if given is None:
                return None
            asked.append(given)
        return device.joint_hashed(*asked)


@dataclass(frozen=True)
class Public:
    """A public number that comes beside a report, as an integer on a decimal scale: 12.34 with scale 2 is 1234."""

    name: str
    scale: int = 0
    kind: ClassVar[str] = "public"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not is_int(self.scale) or not 0 <= self.scale <= 9:
            raise ParameterError("a public column has a name and a decimal scale between 0 and 9")
        convert_int_fields(self, "scale")

    def to_json(self) -> Json:
        """The column as it stands in a study file."""
        return {"kind": self.kind, "name": self.name, "scale": self.scale}

    @classmethod
    def from_json(cls, document: Any) -> Public:
        """Read a column back."""
        return cls(*take(document, cls.kind, "name", "scale"))

    @property
    def field(self) -> Field:
        return Field(f"public.{self.name}", bound=2**63, width=8, signed=True)


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """What people hold, as codes of a domain, and their public columns as they stand in a report."""

    codes: Any
    public: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Rows) -> People:
        return People(self.codes[rows], {name: column[rows] for name, column in self.public.items()})


def _joint_counts(supports: list[NDArray[np.uint8]], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Weight of each combination of candidates (rows) and pattern of support (columns)."""
    pattern = np.zeros((len(weights), 1), dtype=np.int64)
    for support in supports:  # the pattern's bits, first question highest, over the product of the candidates
        pattern = (2 * pattern[:, :, None] + support[:, None, :]).reshape(len(weights), -1)
    return np.stack([((pattern == code) * weights[:, None]).sum(axis=0) for code in range(1 << len(supports))], axis=1)
