"""The base of all goals: options with their predicted errors, and the choice of one of them with its reason.

A `Goal` says which options there are and which is best. Building, limits, names and the choice are here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from veil.domain import Bits, Domain, Integers, Items, Numeric, Record, Text
from veil.domain.text_values import is_time
from veil.errors import InputError, ParameterError
from veil.planning.rebuilding import rebuilt, settings_from_text
from veil.study import Study
from veil.tools.json_documents import Json
from veil.tools.messages import unknown_name
from veil.tools.numbers import is_int

if TYPE_CHECKING:
    from veil.files.arrow_files import PathLike


Unit = Literal["share", "count", "length", "duration", "effort", "square", "eps", "text"]

_MOST_NAMED = 12
"""How many attributes of a record are named in a sentence."""


@dataclass(frozen=True)
class Quantity:
    """A number about an option, with its unit; None where it is not known.

    A share is a fraction of the people, a length a difference of two values that people hold, a duration in seconds, an
    effort in seconds of one core, a square a sum of squared shares, an eps a promise.
    """

    value: float | int | str | None
    unit: Unit


Row = Mapping[str, Quantity]


@dataclass(frozen=True)
class Option:
    """One way to ask: its study, the length of a report, and its errors by name."""

    name: str
    study: Study
    errors: Row = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    allowed: bool = True
    """Whether it may be taken without being named: its report fits, and its error is known."""

    @property
    def report_bytes(self) -> int:
        """The length of a report, of the first round where there are several."""
        return self.study.survey.layout.size

    def error(self, name: str) -> float:
        """One of the errors; NaN where it is not known."""
        found = self.errors[name].value
        return found if isinstance(found, (int, float)) else math.nan


@dataclass(frozen=True)
class Choice:
    """The option to take, why in one sentence, what else there was, and the facts behind it."""

    goal: str
    taken: Option
    why: str
    options: tuple[Option, ...]
    facts: Json = field(default_factory=dict)
    rounds: tuple[Row, ...] = ()
    """What each round does, where that is known before anybody is asked."""
    about: str = ""
    """What the errors mean, in a sentence or two."""
    attributes: tuple[Row, ...] = ()
    """What is asked about each attribute, where people hold records."""

    @property
    def study(self) -> Study:
        """The study to run."""
        return self.taken.study

    def to_json(self) -> Json:
        """Everything as a plain document: numbers as they are, null where one is not known."""
        options = [
            {
                "name": option.name,
                "report_bytes": option.report_bytes,
                **_plain(option.errors),
                "notes": list(option.notes),
                "allowed": option.allowed,
                "taken": option is self.taken,
            }
            for option in self.options
        ]
        head = {"goal": self.goal, "chosen": self.taken.name, "why": self.why, **self.facts}
        parts = {"attributes": [_plain(row) for row in self.attributes]} if self.attributes else {}
        return {**head, "options": options, "rounds": [_plain(row) for row in self.rounds], **parts}


def _plain(row: Row) -> Json:
    return {name.replace(" ", "_"): measure.value for name, measure in row.items()}


@dataclass(frozen=True)
class Central:
    """A promise towards whoever sees only the reports that a shuffler has mixed."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Wishes:
    """What somebody wants to learn, as far as they said."""

    epsilon: float
    held: Domain | None = None
    """What people hold."""
    users: int = 1_000_000
    method: str | None = None
    """The name of the option to take, instead of the best."""
    max_report_bytes: int | None = None
    k: int | None = None
    buckets: int | None = None
    sets: bool = False
    rough: bool = False
    """Whether numbers may be heaped: a way whose errors hold on any data is taken."""
    public: Sequence[Any] = ()
    """Of a table: its public columns."""
    queries: Sequence[str] = ()
    """Of a table: queries in SQL whose errors are compared."""
    table: Study | None = None
    """The table of a schema file, which is taken unless another way is named."""
    central: Central | None = None
    """Of a histogram: the promise after a shuffler; `epsilon` is then the most that the local one may be."""
    auto: bool = False
    """Of a schema file: whether it leaves the way to ask open, so that the best one is taken."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Other parameters of the study, as text: what `--set` gives."""

    def __post_init__(self) -> None:
        if not is_int(self.users) or self.users < 1:
            raise ParameterError("a number of people is at least 1")
        if self.max_report_bytes is not None and (not is_int(self.max_report_bytes) or self.max_report_bytes < 1):
            raise ParameterError("a report takes an integer number of bytes, at least one")


Ways = Mapping[str, Callable[[], Study]]
"""The study of each option, by its name; one that is beyond the domain refuses to be made."""


class Goal(ABC):
    """Something that people want to learn, and the ways to ask for it."""

    name: str
    summary: str
    """One line for a list."""
    takes: tuple[str, ...]
    """Which options of `veil plan` it takes, beside those that all goals take."""
    about: str = ""
    usual: str | None = None
    """The way that must be possible unless another is named."""

    def dimensions(self, path: PathLike, names: Sequence[str]) -> dict[str, Domain]:
        """What people hold in the named columns of a file."""
        from veil.files import read_attributes

        return read_attributes(path, names)

    @abstractmethod
    def ways(self, wishes: Wishes) -> Ways:
        """Every way to ask, in the order of the table."""

    def errors(self, study: Study, wishes: Wishes) -> Row:
        """What a way reaches."""
        return {}

    def doubts(self, study: Study) -> tuple[str, ...]:
        """Why a way is never taken unless it is named; nothing for most."""
        return ()

    def notes(self, study: Study) -> tuple[str, ...]:
        """What else to know about a way."""
        return ()

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        """The option to take of those that may be taken, and why; the first, where the order says it all."""
        return allowed[0], f"{allowed[0].name} is the usual way, in reports of {byte_text(allowed[0].report_bytes)}."

    def order(self, options: list[Option]) -> list[Option]:
        """The options as the table shows them."""
        return options

    def facts(self, study: Study, wishes: Wishes) -> Json:
        """What stands beside the table."""
        return {}

    def rounds(self, study: Study, wishes: Wishes) -> tuple[Row, ...]:
        """What each round of the study does."""
        return ()

    def attributes(self, study: Study, wishes: Wishes) -> tuple[Row, ...]:
        """What is asked about each attribute of a record."""
        return ()

    # -- the choice ------------------------------------------------------------------------------------------------

    def choose(self, wishes: Wishes) -> Choice:
        """The best option, or the one that was named; its other parameters as they were set."""
        return self.pick(self.ways(wishes), wishes)

    def pick(self, ways: Ways, wishes: Wishes) -> Choice:
        """The same of given ways."""
        named = self._named(wishes.method, ways)
        options = self.order(self._options(ways, named or self.usual, wishes))
        allowed = [option for option in options if option.allowed]
        found = self.best(allowed, wishes) if allowed else None
        if named is not None:
            taken = next(option for option in options if option.name == named)
            self._check_fits([taken], wishes)
            others = f"; {found[0].name} would be taken otherwise" if found and found[0] is not taken else ""
            found = taken, f"{named}, as asked for, in reports of {byte_text(taken.report_bytes)}{others}."
        if found is None:
            self._check_fits(options, wishes)
            raise InputError("none of the ways to ask has a known error: name one of them")
        taken, why = found
        if wishes.settings:
            taken, options = self._set(taken, options, wishes)
        first = next(taken.study.rounds())
        facts = {"people_hold": in_words(first.survey.domain), "epsilon": wishes.epsilon, "users": wishes.users}
        if first.people < 1:
            facts["asked_first"] = int(wishes.users * first.people)
        facts |= self.facts(taken.study, wishes)
        return Choice(
            self.name,
            taken,
            why,
            tuple(options),
            facts,
            self.rounds(taken.study, wishes),
            self.about,
            self.attributes(taken.study, wishes),
        )

    def _named(self, name: str | None, ways: Ways) -> str | None:
        if name is None:
            return None
        found = {known.lower(): known for known in ways}.get(name.lower())
        if found is None:
            raise InputError(unknown_name(f"a method for {self.name}", name, ways))
        return found

    def _options(self, ways: Ways, must: str | None, wishes: Wishes) -> list[Option]:
        made, refused = [], None
        for name, build in ways.items():
            try:
                study = build()
            except ParameterError as problem:  # the domain is beyond this way
                if name == must:
                    raise
                refused = refused or problem
            else:
                made.append(self._option(name, study, wishes))
        if not made and refused is not None:
            raise refused
        return made

    def _option(self, name: str, study: Study, wishes: Wishes) -> Option:
        doubts = self.doubts(study)
        limit = wishes.max_report_bytes
        fits = limit is None or study.survey.layout.size <= limit
        return Option(name, study, self.errors(study, wishes), (*doubts, *self.notes(study)), fits and not doubts)

    def _set(self, taken: Option, options: list[Option], wishes: Wishes) -> tuple[Option, list[Option]]:
        """The taken option with the parameters that were set, in its place among the others."""
        study = taken.study
        values = {name: getattr(study, name) for name in study.parameters()}
        changed = rebuilt(study, values, **settings_from_text(type(study), dict(wishes.settings)))
        made = self._option(taken.name, changed, wishes)
        self._check_fits([made], wishes)
        return made, [made if option is taken else option for option in options]

    def _check_fits(self, options: Sequence[Option], wishes: Wishes) -> None:
        limit = wishes.max_report_bytes
        if limit is not None and all(option.report_bytes > limit for option in options):
            sizes = ", ".join(f"{option.name} {option.report_bytes}" for option in options)
            raise InputError(f"no report fits into {byte_text(limit)}; reports take: {sizes}")


def byte_text(count: int) -> str:
    """A number of bytes in words."""
    return f"{count:,} byte{'s' if count != 1 else ''}"


def in_words(domain: Domain) -> str:
    """What people hold, in words.

    >>> from veil import Categories
    >>> in_words(Categories.range(3)), in_words(Text(16)), in_words(Integers(18, 99))
    ('one of 3 values', 'text of at most 16 bytes', 'integers from 18 to 99')
    >>> in_words(Record.of(sex=["f", "m"], age=Integers(18, 99)))
    'records of 2 attributes: sex (2 values), age (82 values)'
    """
    if isinstance(domain, Record):
        named = [f"{name} ({part.size:,} values)" for name, part in domain.attributes[:_MOST_NAMED]]
        more = len(domain.names) - len(named)
        listed = ", ".join(named) + (f" and {more} more" if more else "")
        return f"records of {len(domain.names)} attribute{'s' if len(domain.names) > 1 else ''}: {listed}"
    if isinstance(domain, Items):
        return f"sets of {domain.universe.size:,} items"
    if isinstance(domain, Text):
        return f"text of at most {domain.max_bytes} bytes"
    if isinstance(domain, Bits):
        return f"strings of {domain.bits} bits"
    if not isinstance(domain, Numeric):
        return f"one of {domain.size:,} values"
    low, high = domain.ends
    if is_time(domain):
        return f"times from {domain.shown(low).isoformat(' ')} to {domain.shown(high).isoformat(' ')}"
    return f"{'integers' if isinstance(domain, Integers) else 'numbers'} from {low:,.15g} to {high:,.15g}"
