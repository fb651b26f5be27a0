"""The tree of a survey: each person answers one question, chosen at random, about a view of their value.

    Question                    a View and a Mechanism
    OneOf((share, ask), ...)    one of several, drawn with integer shares: people are split, the weakest promise counts
    AllOf(ask, ...)             all of them: the budget is split, ratios multiply, the answers stay together in one row

A report's columns follow the tree: AllOf puts its children's side by side ("0.", "1.", ...), OneOf adds the column
"choice" and lays its branches' columns over each other, so that every report of a survey has the same length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Source
from veil.errors import InputError, ParameterError, WireError
from veil.mechanisms import FrequencyOracle, Mechanism, PureOracle, mechanism_from_json
from veil.privacy import Guarantee
from veil.tools.arguments import is_int
from veil.tools.canonical import Json, take
from veil.view import Identity, View, view_from_json
from veil.wire.layout import Columns, Field, Layout

__all__ = ["AllOf", "Ask", "OneOf", "Question", "Rows", "as_ask", "ask_from_json"]

Rows = NDArray[np.int64]


class Ask(ABC):
    """A node of the tree. Its questions are numbered from the left."""

    @property
    @abstractmethod
    def questions(self) -> tuple[Question, ...]:
        """The leaves below, in order."""

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
    def parts(self, columns: Columns, rows: Rows) -> Iterator[tuple[Question, Rows, Columns]]:
        """Runs at the collector: for each question in order, the rows that answered it and their columns.

        Refuses columns that no report of this tree can have.
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

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self,)

    @cached_property
    def guarantee(self) -> Guarantee:
        return self.mechanism.seen_through(self.view)

    @property
    def layout(self) -> Layout:
        return self.mechanism.layout

    def draw(self, codes: Any, source: Source) -> dict[str, NDArray[Any]]:
        return self.mechanism.draw(self.view.apply(codes, source), source)

    def parts(self, columns: Columns, rows: Rows) -> Iterator[tuple[Question, Rows, Columns]]:
        self.mechanism.check(columns)
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

    def __init__(self, *branches: tuple[int, Ask | Mechanism]) -> None:
        if not branches or not all(isinstance(b, tuple) and len(b) == 2 and is_int(b[0]) for b in branches):
            raise ParameterError("OneOf takes pairs of an integer share and an ask: OneOf((1, ask), (2, ask))")
        if not all(1 <= share <= 2**32 for share, _ in branches):
            raise ParameterError("OneOf takes pairs of an integer share, of at least 1, and an ask")
        if any(isinstance(ask, OneOf) for _, ask in branches):
            raise ParameterError("a OneOf directly within a OneOf is one OneOf: multiply the shares out")
        object.__setattr__(self, "branches", tuple((int(share), as_ask(ask)) for share, ask in branches))

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for _, ask in self.branches for question in ask.questions)

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
        for (_, ask), rows in zip(self.branches, _groups(choice, len(self.branches)), strict=True):
            drawn = ask.draw(codes[rows], source) if len(rows) else {}
            for name, column in drawn.items():
                _overlay(columns[name], rows, column)
        return columns

    def parts(self, columns: Columns, rows: Rows) -> Iterator[tuple[Question, Rows, Columns]]:
        self.layout.check(columns)
        for (_, ask), mine in zip(self.branches, _groups(columns["choice"], len(self.branches)), strict=True):
            own = {field.name: field for field in ask.layout.fields}
            for name in self.layout.names[1:]:
                if name not in own and columns[name][mine].any():
                    raise WireError(f"column {name!r} has bytes where its question has none")
            narrowed = {name: field.narrow(columns[name][mine]) for name, field in own.items()}
            yield from ask.parts(narrowed, rows[mine])

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
    def questions(self) -> tuple[Question, ...]:
        return tuple(question for ask in self.asks for question in ask.questions)

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

    def parts(self, columns: Columns, rows: Rows) -> Iterator[tuple[Question, Rows, Columns]]:
        for i, ask in enumerate(self.asks):
            yield from ask.parts({name: columns[f"{i}.{name}"] for name in ask.layout.names}, rows)

    def to_json(self) -> Json:
        return {"kind": "all-of", "asks": [ask.to_json() for ask in self.asks]}


def as_ask(ask: Ask | Mechanism) -> Ask:
    """A tree as it is; a mechanism as the question about the value itself."""
    if isinstance(ask, Mechanism):
        return Question(ask)
    if not isinstance(ask, Ask):
        raise ParameterError("expected a mechanism, a Question, a OneOf or an AllOf")
    return ask


def _groups(choice: NDArray[Any], branches: int) -> list[Rows]:
    """The rows that chose each branch, in increasing order."""
    order = np.argsort(choice, kind="stable")
    return np.split(order, np.searchsorted(choice[order], np.arange(1, branches)))


def _overlay(column: NDArray[Any], rows: Rows, part: NDArray[Any]) -> None:
    if column.ndim == 1:
        column[rows] = part
    else:
        column[rows, : 1 if part.ndim == 1 else part.shape[1]] = part[:, None] if part.ndim == 1 else part


def ask_from_json(document: Any, held: Json, depth: int = 0) -> Ask:
    """The tree that a task describes, about a held domain."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if depth > 8:
        raise WireError("a survey is at most eight levels deep")
    if kind == "question":
        view, mechanism = take(document, "question", "view", "mechanism")
        if not isinstance(view, dict) or not isinstance(mechanism, dict) or "held" in view or "domain" in mechanism:
            raise WireError("a question has a view and a mechanism, and no domain but its survey's")
        shown = view_from_json({**view, "held": held})
        return Question(mechanism_from_json({**mechanism, "domain": shown.domain.to_json()}), shown)
    if kind == "one-of":
        (branches,) = take(document, "one-of", "branches")
        if not isinstance(branches, list) or not all(isinstance(b, list) and len(b) == 2 for b in branches):
            raise WireError("the branches of one-of are pairs of a share and an ask")
        return OneOf(*((share, ask_from_json(ask, held, depth + 1)) for share, ask in branches))
    if kind == "all-of":
        (asks,) = take(document, "all-of", "asks")
        if not isinstance(asks, list):
            raise WireError("the asks of all-of are a list")
        return AllOf(*(ask_from_json(ask, held, depth + 1) for ask in asks))
    raise WireError("expected an ask: question, one-of or all-of")
