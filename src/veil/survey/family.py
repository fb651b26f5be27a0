"""EachOf: one of many questions that follow a rule; and reading the tree of questions of a task.

A task holds the rule and not the questions, so it is small and fast to read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Record, domain_from_json
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.mechanisms import Mechanism, mechanism_from_json
from veil.privacy import Guarantee
from veil.reports.layout import Columns, Field, Layout
from veil.survey.rule import Rule
from veil.survey.rules import rule_from_json
from veil.survey.tree import AllOf, Ask, OneOf, Question, RowIndices, Wanted, narrowed, overlay, rows_of
from veil.tools.json_documents import Json, take
from veil.tools.numbers import is_int
from veil.view import view_from_json


@dataclass(frozen=True, init=False)
class EachOf(Ask):
    """One of many questions about a record, drawn uniformly, independently of the value.

    `rule` says which views the questions have. `make` makes the mechanism for a shown domain; it is called once for
    each different size of them, and what it gives stands in the task: no device chooses.

    Guarantee: the largest ratio among the mechanisms, because the choice tells nothing and the views draw nothing.

    >>> from veil import OLH
    >>> from veil.survey.rules import AttributeSets
    >>> people = Record(tuple((f"a{i}", Categories.range(2 + i % 3)) for i in range(142)))
    >>> family = EachOf(AttributeSets(people, size=2), lambda domain: OLH(1.0, domain))
    >>> len(family), family.question(10_010).view.attributes
    (10011, ('a140', 'a141'))
    """

    rule: Rule
    mechanisms: tuple[Mechanism, ...]
    """One for each size in `rule.sizes`, over the categories 0 .. size - 1."""
    chooses: ClassVar[bool] = True

    def __init__(self, rule: Rule, make: Callable[[Domain], Mechanism]) -> None:
        if not isinstance(rule, Rule):
            raise ParameterError(
                "EachOf takes a rule (AttributeSets, ListedSets, Levels, ...) and a maker of mechanisms"
            )
        made = tuple(make(Categories.range(size)) for size in rule.sizes)
        for size, mechanism in zip(rule.sizes, made, strict=True):
            if not isinstance(mechanism, Mechanism) or mechanism.domain != Categories.range(size):
                raise ParameterError("EachOf asks through mechanisms, each made for the domain that it is given")
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "mechanisms", made)

    def __len__(self) -> int:
        return len(self.rule)

    @property
    def held(self) -> frozenset[Domain]:
        return frozenset({self.rule.held})

    def question(self, index: int) -> Question:
        if not is_int(index) or not 0 <= index < len(self):
            raise IndexError(index)
        view = self.rule.view(int(index))
        return Question(self.mechanisms[bisect_left(self.rule.sizes, view.domain.size)].over(view.domain), view)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee.largest(mechanism.guarantee for mechanism in self.mechanisms)

    @cached_property
    def layout(self) -> Layout:
        overlaid = Layout.overlaid(mechanism.layout for mechanism in self.mechanisms)
        return Layout((Field("choice", len(self)), *overlaid.fields))

    def draw(self, codes: Any, source: Source) -> dict[str, NDArray[Any]]:
        choice = source.below(len(self), len(codes)).astype(np.int64)
        columns = self.layout.empty(len(codes))
        columns["choice"][:] = choice
        shown = self.rule.shown(choice, codes)
        for mechanism, rows in self._by_mechanism(choice):
            for name, column in mechanism.draw(shown[rows], source).items():
                overlay(columns[name], rows, column)
        return columns

    def check(self, columns: Columns) -> None:
        self.layout.check(columns)
        for mechanism, rows in self._by_mechanism(columns["choice"]):
            mechanism.check(narrowed(self.layout, mechanism.layout, columns, rows))

    def parts(
        self, columns: Columns, rows: RowIndices, wanted: Wanted
    ) -> Iterator[tuple[Question, RowIndices, Columns]]:
        if len(wanted) == len(self):  # else rows of other questions are nobody's concern
            self.layout.check(columns)
        for index, mine in zip(wanted, rows_of(columns["choice"], wanted), strict=True):
            question = self.question(index)
            own = narrowed(self.layout, question.layout, columns, mine)
            question.mechanism.check(own)
            yield question, rows if len(mine) == len(rows) else rows[mine], own

    def _by_mechanism(self, choice: NDArray[Any]) -> Iterator[tuple[Mechanism, RowIndices]]:
        """The rows whose questions are asked through each mechanism, where there are any."""
        sizes = self.rule.sizes_of(choice.astype(np.int64))
        if len(sizes) == 1:  # one person's device: no search through all sizes
            yield self.mechanisms[bisect_left(self.rule.sizes, int(sizes[0]))], np.zeros(1, np.int64)
            return
        place = np.searchsorted(np.array(self.rule.sizes, dtype=np.uint64), sizes)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(self.mechanisms) + 1))
        for mechanism, (start, stop) in zip(self.mechanisms, pairwise(ends), strict=True):
            if start < stop:
                yield mechanism, order[start:stop]

    def to_json(self) -> Json:
        # An entry holds from its size up to that of the next: where no threshold depends on the size there is but one.
        entries: list[list[Any]] = []
        for size, mechanism in zip(self.rule.sizes, self.mechanisms, strict=True):
            bare = {key: value for key, value in mechanism.to_json().items() if key != "domain"}
            if not entries or entries[-1][1] != bare:
                entries.append([size, bare])
        return {"kind": "each-of", "rule": self.rule.to_json(), "mechanisms": entries}

    @classmethod
    def from_json(cls, document: Json, held: Json) -> EachOf:
        """The family that a task describes; refuses thresholds other than those that its epsilon gives."""
        rule, entries = take(document, "each-of", "rule", "mechanisms")
        record = domain_from_json(held)
        if not isinstance(record, Record):
            raise WireError("a family asks about attributes of a Record")
        found = rule_from_json(rule, record)
        table = _table(entries, found.sizes)
        return cls(found, lambda domain: mechanism_from_json({**table(domain.size), "domain": domain.to_json()}))


def _table(entries: Any, sizes: Sequence[int]) -> Callable[[int], Json]:
    """What stands in a task for a size: the last entry that does not begin above it."""
    if not isinstance(entries, list) or not all(isinstance(one, list) and len(one) == 2 for one in entries):
        raise WireError("the mechanisms of a family are pairs of a size and a mechanism")
    starts = [start for start, _ in entries]
    if not all(map(is_int, starts)) or starts[:1] != [sizes[0]] or not set(starts) <= set(sizes) or _falls(starts):
        raise WireError("a family's mechanisms begin at sizes that its questions show, the least first, increasing")
    if not all(isinstance(bare, dict) and "domain" not in bare for _, bare in entries):
        raise WireError("a family's mechanisms have no domains of their own")
    return lambda size: entries[bisect_left(starts, size + 1) - 1][1]


def _falls(numbers: Iterable[int]) -> bool:
    return any(a >= b for a, b in pairwise(numbers))


_DEEPEST = 8


def ask_from_json(document: Any, held: Json, depth: int = 0) -> Ask:
    """The tree that a task describes, about a held domain."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if depth > _DEEPEST:
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
    if kind == "each-of":
        return EachOf.from_json(document, held)
    raise WireError("expected an ask: question, one-of, all-of or each-of")
