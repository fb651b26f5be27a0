"""Rules that many questions about a record follow: the view of the i-th question, without building the others.

    AttributeSets(record, 2)       all sets of 2 attributes, in the order of itertools.combinations
    ListedSets(record, sets)       the listed sets of attributes
    Levels(record, trees)          all combinations of levels of trees over attributes: HIO
    ListedBits, Parities           about bits of attributes (`bit_rules`)

A task holds a rule in place of its questions. Everything about them is computed from it: their number, the sizes of
their shown domains, and what a person's chosen question shows of their value.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import ParameterError, WireError
from veil.survey.bit_rules import ListedBits, Parities
from veil.survey.rule import MOST_QUESTIONS, U64, Rule, as_record, check_cells, check_count
from veil.tools.json_documents import Json, by_kind, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.tree import Tree
from veil.view import Ancestor, Composed, Product, Project, View

MOST_ATTRIBUTES = 52
"""Of one question: with two values each they have 2^52 cells."""


class _Sets(Rule):
    """Questions about sets of attributes, which may have different numbers of attributes."""

    @abstractmethod
    def places(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        """A row for each chosen set: its attributes' places in the record, increasing; -1 where it has fewer."""

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """All sets by the names of their attributes."""
        names = self.held.names
        rows = self.places(np.arange(len(self))).tolist()
        return tuple(tuple(names[place] for place in row if place >= 0) for row in rows)

    @cached_property
    def _domain_sizes(self) -> U64:
        """The sizes of the attributes; at the place -1 stands an attribute of one value, which changes nothing."""
        return np.array([*(min(part.size, 2**63) for part in self.held.parts), 1], dtype=np.uint64)

    def view(self, index: int) -> View:
        chosen = self.places(np.array([index]))[0]
        return Project(self.held, tuple(self.held.names[place] for place in chosen[chosen >= 0]))

    def sizes_of(self, choice: NDArray[np.int64]) -> U64:
        sizes: U64 = self._domain_sizes[self.places(choice)].prod(axis=1, dtype=np.uint64)
        return sizes

    def shown(self, choice: NDArray[np.int64], codes: U64) -> U64:
        index = np.zeros(len(codes), dtype=np.uint64)
        padded = np.concatenate([codes, np.zeros((len(codes), 1), np.uint64)], axis=1)
        rows = np.arange(len(codes))
        for column in self.places(choice).T:
            index = index * self._domain_sizes[column] + padded[rows, column]
        return index


@dataclass(frozen=True)
class AttributeSets(_Sets):
    """All sets of `size` attributes, in the order of `itertools.combinations`.

    >>> rule = AttributeSets(Record.of(a=2, b=3, c=4), size=2)
    >>> [rule.view(i).attributes for i in range(len(rule))], rule.sizes
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], (6, 8, 12))
    """

    held: Record
    size: int
    kind = "attribute-sets"

    def __post_init__(self) -> None:
        most = min(len(as_record(self.held).names), MOST_ATTRIBUTES)
        if not is_int(self.size) or not 1 <= self.size <= most:
            raise ParameterError(f"sets have between 1 and {most} of the record's attributes")
        convert_int_fields(self, "size")
        check_count(max(math.comb(len(self.held.names), k) for k in range(1, self.size + 1)))
        check_cells(sorted((part.size for part in self.held.parts), reverse=True)[: self.size])

    def __len__(self) -> int:
        return math.comb(len(self.held.names), self.size)

    @cached_property
    def _binomials(self) -> NDArray[np.int64]:
        """Row k: how many sets of k attributes the last m of them have, for m = 0 .. all; cut where no rank reaches."""
        return np.array(
            [
                [min(math.comb(m, k), MOST_QUESTIONS) for m in range(len(self.held.names) + 1)]
                for k in range(self.size + 1)
            ]
        )

    def places(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        # Counted from the end: the set has `left` sets of k attributes from itself on, so its first attribute is the
        # one with m attributes from itself on, the least m that have as many sets.
        left = len(self) - choice.astype(np.int64)
        found = np.empty((len(choice), self.size), dtype=np.int64)
        for column, k in enumerate(range(self.size, 0, -1)):
            m = np.searchsorted(self._binomials[k], left)
            found[:, column] = len(self.held.names) - m
            left = left - self._binomials[k][m - 1]
        return found

    def to_json(self) -> Json:
        return {"kind": self.kind, "size": self.size}

    @classmethod
    def from_json(cls, document: Json, held: Record) -> AttributeSets:
        (size,) = take(document, cls.kind, "size")
        return cls(held, size)


@dataclass(frozen=True)
class ListedSets(_Sets):
    """The listed sets of attributes, given by names; each is kept in the order of its record.

    >>> rule = ListedSets(Record.of(a=2, b=3, c=4), (("b", "a"), ("c",)))
    >>> [rule.view(i).attributes for i in range(len(rule))]
    [('a', 'b'), ('c',)]
    """

    held: Record
    sets: tuple[tuple[str, ...], ...]
    kind = "listed-sets"

    def __post_init__(self) -> None:
        place = {name: i for i, name in enumerate(as_record(self.held).names)}
        if isinstance(self.sets, str) or any(isinstance(names, str) for names in self.sets):
            raise ParameterError("listed sets are tuples of names of attributes of the record")
        try:
            given = [sorted(place[name] for name in names) for names in self.sets]
        except (KeyError, TypeError):
            raise ParameterError("listed sets are tuples of names of attributes of the record") from None
        check_count(len(given))
        if not given or not all(given) or any(len(set(one)) != len(one) for one in given):
            raise ParameterError("at least one set is listed, of at least one attribute, each attribute once")
        if len({tuple(one) for one in given}) != len(given):
            raise ParameterError("listed sets differ from each other")
        object.__setattr__(self, "sets", tuple(tuple(self.held.names[i] for i in one) for one in given))
        for one in given:
            check_cells(self.held.parts[i].size for i in one)

    def __len__(self) -> int:
        return len(self.sets)

    @cached_property
    def _listed(self) -> NDArray[np.int64]:
        place = {name: i for i, name in enumerate(self.held.names)}
        listed = np.full((len(self.sets), max(map(len, self.sets))), -1, dtype=np.int64)
        for row, names in zip(listed, self.sets, strict=True):
            row[: len(names)] = [place[name] for name in names]
        return listed

    def places(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._listed[choice]

    def to_json(self) -> Json:
        place = {name: i for i, name in enumerate(self.held.names)}
        return {"kind": self.kind, "sets": [[place[name] for name in names] for names in self.sets]}

    @classmethod
    def from_json(cls, document: Json, held: Record) -> ListedSets:
        (sets,) = take(document, cls.kind, "sets")
        known = range(len(held.names))
        if not isinstance(sets, list) or not all(isinstance(one, list) for one in sets):
            raise WireError("listed sets are lists of places of attributes")
        if not all(is_int(place) and place in known for one in sets for place in one):
            raise WireError("listed sets are lists of places of attributes")
        return cls(held, tuple(tuple(held.names[place] for place in one) for one in sets))


@dataclass(frozen=True)
class Levels(Rule):
    """All combinations of levels of trees over attributes, but for the one of all roots, which asks nothing (HIO).

    `trees` names attributes with the branching of their tree; a branching of the attribute's size or more makes a tree
    of one level, for attributes without an order. At level 0, the root, an attribute is not asked for. Combinations are
    numbered like the digits of a number, the last attribute's level varying fastest; the one of all roots would be
    number -1. A question shows the asked attributes' ancestors as one index.

    >>> rule = Levels(Record.of(sex=2, age=9), (("sex", 2), ("age", 3)))
    >>> len(rule), rule.levels(np.arange(5)).tolist(), rule.sizes
    (5, [[0, 1], [0, 2], [1, 0], [1, 1], [1, 2]], (2, 3, 6, 9, 18))
    """

    held: Record
    trees: tuple[tuple[str, int], ...]
    kind = "levels"

    def __post_init__(self) -> None:
        known = as_record(self.held).names
        if not isinstance(self.trees, tuple) or not all(isinstance(one, tuple) and len(one) == 2 for one in self.trees):
            raise ParameterError("trees are pairs of an attribute's name and a branching")
        names = [name for name, _ in self.trees]
        if not names or not all(name in known for name in names) or len(set(names)) != len(names):
            raise ParameterError("trees stand over different attributes of the record, at least one")
        if any(tree.height < 1 for tree in self._shapes):
            raise ParameterError("an attribute of one value has no levels")
        object.__setattr__(self, "trees", tuple(zip(names, (tree.branching for tree in self._shapes), strict=True)))
        check_count(math.prod(tree.height + 1 for tree in self._shapes))
        check_cells(tree.leaves for tree in self._shapes)

    @cached_property
    def _shapes(self) -> tuple[Tree, ...]:
        sizes = {name: part.size for name, part in self.held.attributes}
        return tuple(Tree(sizes[name], branching) for name, branching in self.trees)

    def __len__(self) -> int:
        return math.prod(tree.height + 1 for tree in self._shapes) - 1

    def levels(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        """A row for each chosen combination: the level of every tree's attribute, 0 where it is not asked for."""
        rest = choice.astype(np.int64) + 1
        found = np.empty((len(choice), len(self._shapes)), dtype=np.int64)
        for column in range(len(self._shapes) - 1, -1, -1):
            rest, found[:, column] = np.divmod(rest, self._shapes[column].height + 1)
        return found

    def view(self, index: int) -> View:
        views = []
        for (name, branching), level in zip(self.trees, self.levels(np.array([index]))[0].tolist(), strict=True):
            if level:
                first = Project(self.held, (name,))
                views.append(Composed(first, Ancestor(first.domain, branching, level)))
        return views[0] if len(views) == 1 else Product(*views)

    def sizes_of(self, choice: NDArray[np.int64]) -> U64:
        sizes = np.ones(len(choice), dtype=np.uint64)
        for tree, level in zip(self._shapes, self.levels(choice).T, strict=True):
            sizes *= np.array(tree.sizes, dtype=np.uint64)[level]
        return sizes

    def shown(self, choice: NDArray[np.int64], codes: U64) -> U64:
        index = np.zeros(len(codes), dtype=np.uint64)
        for (name, _), tree, level in zip(self.trees, self._shapes, self.levels(choice).T, strict=True):
            widths = np.array([min(tree.width(each), 2**63) for each in range(tree.height + 1)], dtype=np.uint64)
            own = codes[:, self.held.names.index(name)]
            index = index * np.array(tree.sizes, dtype=np.uint64)[level] + own // widths[level]
        return index

    def to_json(self) -> Json:
        return {"kind": self.kind, "trees": [list(tree) for tree in self.trees]}

    @classmethod
    def from_json(cls, document: Json, held: Record) -> Levels:
        (trees,) = take(document, cls.kind, "trees")
        if not isinstance(trees, list) or not all(isinstance(tree, list) for tree in trees):
            raise WireError("trees are pairs of an attribute's name and a branching")
        return cls(held, tuple(map(tuple, trees)))


RULES: dict[str, Callable[..., Rule]] = {
    "attribute-sets": AttributeSets.from_json,
    "listed-sets": ListedSets.from_json,
    "levels": Levels.from_json,
    "listed-bits": ListedBits.from_json,
    "parities": Parities.from_json,
}


def rule_from_json(document: Any, held: Record) -> Rule:
    """The rule that a task describes, about its record."""
    readers: dict[str, Callable[[Json], Rule]] = {kind: partial(read, held=held) for kind, read in RULES.items()}
    return by_kind(document, readers, "a rule")
