"""The tree of a survey: each person answers one question, chosen at random, about a view of their value.

    Question                    a View and a Mechanism
    OneOf((share, ask), ...)    one of several, by integer shares: people are split, the weakest guarantee holds
    AllOf(ask, ...)             all of them: the budget is split, ratios multiply, the answers stay together in one row
    EachOf(rule, make)          one of many that follow a rule, drawn uniformly (`family`)

A report's columns follow the tree: AllOf puts its children's side by side ("0.", "1.", ...), OneOf and EachOf add the
column "choice" and overlay their branches' columns, so that every report of a survey has the same length. Questions are
numbered from the left and built when they are needed; nothing here builds all of them unless asked to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain
from veil.entropy import Source
from veil.errors import InputError, ParameterError, WireError
from veil.mechanisms import FrequencyOracle, Mechanism, PureOracle
from veil.privacy import Guarantee
from veil.reports.layout import Columns, Field, Layout
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int
from veil.view import Identity, View

RowIndices = NDArray[np.int64]
Wanted = Sequence[int]
"""Numbers of questions, increasing."""

_FEW = 16


class Ask(ABC):
    """A node of the tree. Its questions are numbered from the left."""

    chooses: ClassVar[bool] = False
    """Whether its reports have the column "choice"."""

    @abstractmethod
    def __len__(self) -> int:
        """How many questions there are."""

    @abstractmethod
    def question(self, index: int) -> Question:
        """The i-th question; an IndexError where there is none."""

    @property
    def questions(self) -> Sequence[Question]:
        """All questions in order, each built when it is looked at."""
        return QuestionList(self)

    @property
    @abstractmethod
    def held(self) -> frozenset[Domain]:
        """The domains that the questions look at; a survey's look at one."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The exact promise of one report."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The columns of a report."""

    @abstractmethod
    def draw(self, codes: Any, source: Source) -> dict[str, NDArray[Any]]:
        """Runs on the device: columns of reports, for at most one chunk of rows."""

    @abstractmethod
    def check(self, columns: Columns) -> None:
        """Runs at the collector: refuse columns that no report of this tree can have."""

    @abstractmethod
    def parts(
        self, columns: Columns, rows: RowIndices, wanted: Wanted
    ) -> Iterator[tuple[Question, RowIndices, Columns]]:
        """Runs at the collector: for each wanted question in order, the rows that answered it and their columns.

        Refuses columns of the wanted questions that no report can have.
        """

    @abstractmethod
    def to_json(self) -> Json:
        """The tree as it stands in a task."""


@dataclass(frozen=True, init=False)
class Question(Ask):
    """A View and a Mechanism; without a view, the value itself.

    >>> from veil import GRR
    >>> Question(GRR(epsilon=1.0, domain=3)).view.kind
    'identity'
    """

    mechanism: Mechanism
    view: View

    def __init__(self, mechanism: Mechanism, view: View | None = None) -> None:
        view = Identity(mechanism.domain) if view is None else view
        if view.domain != mechanism.domain:
            raise ParameterError(f"the view shows {view.domain}, but the mechanism was built for {mechanism.domain}")
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "view", view)
        if view.load is not None:
            mechanism.seen_through(view)  # refuses a load where it promises nothing

    def __len__(self) -> int:
        return 1

    def question(self, index: int) -> Question:
        return (self,)[index]

    @property
    def held(self) -> frozenset[Domain]:
        return frozenset({self.view.held})

    @cached_property
    def guarantee(self) -> Guarantee:
        return self.mechanism.seen_through(self.view)

    @property
    def layout(self) -> Layout:
        return self.mechanism.layout

    def draw(self, codes: Any, source: Source) -> dict[str, NDArray[Any]]:
        return self.mechanism.draw(self.view.apply(codes, source), source)

    def check(self, columns: Columns) -> None:
        self.mechanism.check(columns)

    def parts(
        self, columns: Columns, rows: RowIndices, wanted: Wanted
    ) -> Iterator[tuple[Question, RowIndices, Columns]]:
        if wanted:
            self.check(columns)
            yield self, rows, columns

    def to_json(self) -> Json:
        # The held domain stands once, in the survey; the mechanism's is what the view shows of it.
        view = {key: value for key, value in self.view.to_json().items() if key != "held"}
        mechanism = {key: value for key, value in self.mechanism.to_json().items() if key != "domain"}
        return {"kind": "question", "view": view, "mechanism": mechanism}

    def encode_candidates(self, candidates: Any) -> NDArray[Any] | None:
        """Candidates as codes of what the view shows; given as the values that an estimate will be labelled with."""
        if candidates is None:
            return self.mechanism.encode_candidates(None)
        if not isinstance(self.mechanism, FrequencyOracle):
            return self.mechanism.encode_candidates(candidates)
        return self.mechanism.check_candidates(self.view.values.encode(candidates))

    @property
    def pure(self) -> PureOracle:
        """The mechanism, where it is a pure oracle: its reports support sets of values."""
        if not isinstance(self.mechanism, PureOracle):
            raise InputError(f"{self.mechanism.name} is not a pure oracle: its reports support no values")
        return self.mechanism


@dataclass(frozen=True, init=False)
class OneOf(Ask):
    """One of several asks, drawn independently of the value with probability share / sum of the shares.

    Guarantee: the largest ratio among the branches, because the choice tells nothing.
    """

    branches: tuple[tuple[int, Ask], ...]
    chooses: ClassVar[bool] = True

    def __init__(self, *branches: tuple[int, Ask | Mechanism]) -> None:
        if not branches or not all(isinstance(b, tuple) and len(b) == 2 and is_int(b[0]) for b in branches):
            raise ParameterError("OneOf takes pairs of an integer share and an ask: OneOf((1, ask), (2, ask))")
        if not all(1 <= share <= 2**32 for share, _ in branches):
            raise ParameterError("OneOf takes pairs of an integer share, of at least 1, and an ask")
        if any(isinstance(ask, OneOf) for _, ask in branches):
            raise ParameterError("a OneOf directly within a OneOf is one OneOf: multiply the shares out")
        if any(isinstance(ask, Ask) and ask.chooses for _, ask in branches):
            raise ParameterError("an EachOf is no branch of a OneOf: put it into an AllOf of its own")
        object.__setattr__(self, "branches", tuple((int(share), as_ask(ask)) for share, ask in branches))

    @cached_property
    def _numbers(self) -> _QuestionNumbers:
        return _QuestionNumbers([ask for _, ask in self.branches])

    def __len__(self) -> int:
        return len(self._numbers)

    def question(self, index: int) -> Question:
        return self._numbers.question(index)

    @property
    def held(self) -> frozenset[Domain]:
        return self._numbers.held

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee.largest(ask.guarantee for _, ask in self.branches)

    @cached_property
    def layout(self) -> Layout:
        overlaid = Layout.overlaid(ask.layout for _, ask in self.branches)
        return Layout((Field("choice", len(self.branches)), *overlaid.fields))

    def draw(self, codes: Any, source: Source) -> dict[str, NDArray[Any]]:
        ends = np.cumsum([share for share, _ in self.branches])
        choice = np.searchsorted(ends, source.below(int(ends[-1]), len(codes)).astype(np.int64), side="right")
        columns = self.layout.empty(len(codes))
        columns["choice"][:] = choice
        for (_, ask), rows in zip(self.branches, rows_of(choice, range(len(self.branches))), strict=True):
            drawn = ask.draw(codes[rows], source) if len(rows) else {}
            for name, column in drawn.items():
                overlay(columns[name], rows, column)
        return columns

    def check(self, columns: Columns) -> None:
        self.layout.check(columns)
        for (_, ask), mine in zip(self.branches, rows_of(columns["choice"], range(len(self.branches))), strict=True):
            ask.check(narrowed(self.layout, ask.layout, columns, mine))

    def parts(
        self, columns: Columns, rows: RowIndices, wanted: Wanted
    ) -> Iterator[tuple[Question, RowIndices, Columns]]:
        self.layout.check(columns)
        taken = list(self._numbers.split(wanted))
        for (_, ask, below), mine in zip(taken, rows_of(columns["choice"], [i for i, _, _ in taken]), strict=True):
            yield from ask.parts(narrowed(self.layout, ask.layout, columns, mine), rows[mine], below)

    def to_json(self) -> Json:
        return {"kind": "one-of", "branches": [[share, ask.to_json()] for share, ask in self.branches]}


@dataclass(frozen=True, init=False)
class AllOf(Ask):
    """Several asks, all answered in one row. Guarantee: the product of the ratios."""

    asks: tuple[Ask, ...]

    def __init__(self, *asks: Ask | Mechanism) -> None:
        if not asks:
            raise ParameterError("AllOf takes at least one ask")
        object.__setattr__(self, "asks", tuple(as_ask(ask) for ask in asks))

    @cached_property
    def _numbers(self) -> _QuestionNumbers:
        return _QuestionNumbers(self.asks)

    def __len__(self) -> int:
        return len(self._numbers)

    def question(self, index: int) -> Question:
        return self._numbers.question(index)

    @property
    def held(self) -> frozenset[Domain]:
        return self._numbers.held

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee.together(ask.guarantee for ask in self.asks)

    @cached_property
    def layout(self) -> Layout:
        return Layout.joined(ask.layout.prefixed(f"{i}.") for i, ask in enumerate(self.asks))

    def draw(self, codes: Any, source: Source) -> dict[str, NDArray[Any]]:
        return {
            f"{i}.{name}": column for i, ask in enumerate(self.asks) for name, column in ask.draw(codes, source).items()
        }

    def check(self, columns: Columns) -> None:
        for i, ask in enumerate(self.asks):
            ask.check(self._own(columns, i))

    def parts(
        self, columns: Columns, rows: RowIndices, wanted: Wanted
    ) -> Iterator[tuple[Question, RowIndices, Columns]]:
        for i, ask, below in self._numbers.split(wanted):
            yield from ask.parts(self._own(columns, i), rows, below)

    def _own(self, columns: Columns, i: int) -> Columns:
        return {name: columns[f"{i}.{name}"] for name in self.asks[i].layout.names}

    def to_json(self) -> Json:
        return {"kind": "all-of", "asks": [ask.to_json() for ask in self.asks]}


class QuestionList(Sequence[Question]):
    """The questions of a tree, each built when it is looked at."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __len__(self) -> int:
        return len(self._ask)

    @overload
    def __getitem__(self, index: int) -> Question: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Question, ...]: ...
    def __getitem__(self, index: int | slice) -> Question | tuple[Question, ...]:
        known = range(len(self))[index]
        return self._ask.question(known) if isinstance(known, int) else tuple(map(self._ask.question, known))


class _QuestionNumbers:
    """How the questions below several asks are numbered: through one ask after another."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._asks = asks
        self._ends = [*accumulate(map(len, asks))]

    def __len__(self) -> int:
        return self._ends[-1]

    def question(self, index: int) -> Question:
        ask = bisect_right(self._ends, index)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._asks[ask].question(index - (self._ends[ask] - len(self._asks[ask])))

    @property
    def held(self) -> frozenset[Domain]:
        return frozenset().union(*(ask.held for ask in self._asks))

    def split(self, wanted: Wanted) -> Iterator[tuple[int, Ask, Wanted]]:
        """The asks with a wanted question below: each with its place, and the questions by its own numbers."""
        for i, (ask, end) in enumerate(zip(self._asks, self._ends, strict=True)):
            start = end - len(ask)
            below = wanted[bisect_left(wanted, start) : bisect_left(wanted, end)]
            if below:
                whole = len(below) == len(ask)
                yield i, ask, range(len(ask)) if whole else [index - start for index in below]


def as_ask(ask: Ask | Mechanism) -> Ask:
    """A tree as it is; a mechanism as the question about the value itself."""
    if isinstance(ask, Mechanism):
        return Question(ask)
    if not isinstance(ask, Ask):
        raise ParameterError("expected a mechanism, a Question, a OneOf, an AllOf or an EachOf")
    return ask


def rows_of(choice: NDArray[Any], wanted: Wanted) -> Iterator[RowIndices]:
    """The rows that made each wanted choice, in increasing order."""
    if len(wanted) <= _FEW:  # a pass for each is cheaper than putting all rows in order
        yield from (np.flatnonzero(choice == index) for index in wanted)
        return
    order = np.argsort(choice, kind="stable")
    ends = np.searchsorted(choice[order], [[index, index + 1] for index in wanted])
    yield from (order[start:stop] for start, stop in ends)


def narrowed(whole: Layout, part: Layout, columns: Columns, rows: RowIndices) -> dict[str, NDArray[Any]]:
    """The columns of one branch, for the rows that chose it; refuses anything but zeros in those of other branches."""
    own = {field.name: field for field in part.fields}
    mine = columns if len(rows) == len(columns["choice"]) else {name: columns[name][rows] for name in whole.names[1:]}
    for name in whole.names[1:]:
        if name not in own and mine[name].any():
            raise WireError(f"column {name!r} has bytes where its question has none")
    return {name: field.narrow(mine[name]) for name, field in own.items()}


def overlay(column: NDArray[Any], rows: RowIndices, part: NDArray[Any]) -> None:
    """Put a branch's column into the one that it shares with others, which may be wider."""
    if column.ndim == 1:
        column[rows] = part
    else:
        column[rows, : 1 if part.ndim == 1 else part.shape[1]] = part[:, None] if part.ndim == 1 else part
