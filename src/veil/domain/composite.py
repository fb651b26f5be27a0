"""Domains made of other domains: sets of items, records of attributes, and tuples; and reading any domain from JSON.

`DOMAINS` is the table of all kinds that a task may name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain.base import EXACT, Domain, SetCodes, as_list
from veil.domain.categories import Categories, Label
from veil.domain.inputs import as_columns, read_column, read_lists, refuse_at
from veil.domain.numbers import Integers, Interval
from veil.domain.strings import Bits, Text
from veil.errors import DomainError, InputError, ParameterError, WireError
from veil.tools.json_documents import Json, by_kind, take
from veil.tools.numbers import is_int

DomainLike = Domain | int | Sequence[Label]
"""What may be given where a domain is expected."""


@dataclass(frozen=True, init=False)
class Items(Domain):
    """A set of items of a universe, possibly empty.

    >>> Items(5).encode([[3, 1, 3], []]).items.tolist()
    [1, 3]
    """

    universe: Domain
    kind = "items"

    def __init__(self, universe: DomainLike) -> None:
        object.__setattr__(self, "universe", as_domain(universe))
        if self.universe.code_bytes or isinstance(self.universe, (Items, Record)) or self.universe.size > EXACT:
            raise ParameterError("a universe of items has one index per item: Categories, Integers or Bits")

    @property
    def size(self) -> int:
        return 1 << self.universe.size if self.universe.size <= 4096 else 1 << 4096

    @property
    def listable(self) -> bool:
        return False

    def encode(self, values: Any) -> SetCodes:
        sizes, flat = read_lists(values, "sets of items")
        people = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        try:
            items = self.universe.encode(flat) if len(flat) else np.zeros(0, np.uint64)
        except DomainError as problem:
            person = None if problem.row is None else int(people[problem.row])
            raise DomainError(f"a set holds what is no item: {problem.expected}", person, problem.count) from None
        if not ((people[1:] != people[:-1]) | (items[1:] > items[:-1])).all():
            order = np.lexsort((items, people))
            people, items = people[order], items[order]
            first = np.ones(len(items), dtype=np.bool_)  # a set holds an item once, however often it is listed
            first[1:] = (people[1:] != people[:-1]) | (items[1:] != items[:-1])
            sizes, items = np.bincount(people[first], minlength=len(sizes)), items[first]
        return SetCodes(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), items)

    def decode(self, codes: Any) -> list[set[Any]]:
        labels = self.universe.decode(codes.items)
        bounds = codes.offsets.tolist()
        return [set(labels[a:b]) for a, b in pairwise(bounds)]

    def to_json(self) -> Json:
        return {"kind": "items", "universe": self.universe.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> Items:
        (universe,) = take(document, "items", "universe")
        return cls(domain_from_json(universe))


@dataclass(frozen=True)
class Record(Domain):
    """One value for each named attribute; codes are rows of one index per attribute.

    >>> Record.of(sex=["f", "m"], age=Integers(0, 99)).encode({"sex": ["m"], "age": [30]}).tolist()
    [[1, 30]]
    """

    attributes: tuple[tuple[str, Domain], ...] = field(default=())
    kind = "record"

    def __post_init__(self) -> None:
        pairs = self.attributes
        if not isinstance(pairs, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise ParameterError("a record is built by Record.of(name=domain, ...)")
        names = [name for name, _ in self.attributes]
        if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
            raise ParameterError("a record needs attributes with names that differ")
        if any(part.code_bytes or isinstance(part, (Items, Record)) for _, part in self.attributes):
            raise ParameterError("an attribute of a record has one index per value, of at most 64 bits")

    @classmethod
    def of(cls, **attributes: DomainLike) -> Record:
        """A record by keyword; an int d means 0 .. d-1, a list means its labels."""
        return cls(tuple((name, as_domain(part)) for name, part in attributes.items()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.attributes)

    @cached_property
    def parts(self) -> tuple[Domain, ...]:
        return tuple(part for _, part in self.attributes)

    @property
    def size(self) -> int:
        return math.prod(part.size for part in self.parts)

    @property
    def listable(self) -> bool:
        return False

    def encode(self, values: Any) -> NDArray[np.uint64]:
        columns = as_columns(values, self.names)
        encoded: list[NDArray[np.uint64]] = []
        for name, part, column in zip(self.names, self.parts, columns, strict=True):
            try:
                encoded.append(part.encode(column))
            except DomainError as problem:
                raise DomainError(f"attribute {name!r}: {problem.expected}", problem.row, problem.count) from None
        if len({len(column) for column in encoded}) > 1:
            raise InputError("the attributes' columns have different lengths")
        return np.stack(encoded, axis=1)

    def decode(self, codes: Any) -> list[dict[str, Any]]:
        columns = [part.decode(codes[:, i]) for i, part in enumerate(self.parts)]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_json(self) -> Json:
        return {"kind": "record", "attributes": [[name, part.to_json()] for name, part in self.attributes]}

    @classmethod
    def from_json(cls, document: Json) -> Record:
        (attributes,) = take(document, "record", "attributes")
        pairs = [as_list(pair) for pair in as_list(attributes)]
        if any(len(pair) != 2 for pair in pairs):
            raise WireError("an attribute is a pair of a name and a domain")
        return cls(tuple((name, domain_from_json(part)) for name, part in pairs))


@dataclass(frozen=True)
class Tuples(Domain):
    """One value of each part as one index, the last part varying fastest: the cells of several attributes.

    It labels results and is no domain of a task: people hold a Record.

    >>> from veil.domain import Categories, Integers
    >>> cells = Tuples((Categories(["f", "m"]), Integers(30, 39)))
    >>> cells.encode([("m", 31)]).tolist(), cells.decode([11])
    ([11], [('m', 31)])
    """

    parts: tuple[Domain, ...]
    kind = "tuples"

    @property
    def size(self) -> int:
        return math.prod(part.size for part in self.parts)

    def encode(self, values: Any) -> NDArray[np.uint64]:
        rows = read_column(values.tolist() if isinstance(values, np.ndarray) and values.ndim == 2 else values).values
        expected = f"expected one value for each of {len(self.parts)} parts"
        wrong = [not isinstance(row, (tuple, list)) or len(row) != len(self.parts) for row in rows]
        refuse_at(np.array(wrong, dtype=np.bool_), expected)
        index = np.zeros(len(rows), dtype=np.uint64)
        for place, part in enumerate(self.parts):
            try:
                index = index * np.uint64(part.size) + part.encode([row[place] for row in rows])
            except DomainError as problem:
                raise DomainError(f"part {place}: {problem.expected}", problem.row, problem.count) from None
        return index

    def decode(self, codes: Any) -> list[tuple[Any, ...]]:
        rest = np.asarray(codes, dtype=np.uint64)
        columns = []
        for part in reversed(self.parts):
            rest, own = np.divmod(rest, np.uint64(part.size))
            columns.append(part.decode(own))
        return list(zip(*reversed(columns), strict=True))

    def to_json(self) -> Json:
        return {"kind": "tuples", "parts": [part.to_json() for part in self.parts]}

    @classmethod
    def from_json(cls, document: Json) -> Tuples:
        (parts,) = take(document, "tuples", "parts")
        return cls(tuple(labels_from_json(part) for part in as_list(parts)))


DOMAINS: dict[str, Callable[[Json], Domain]] = {
    "categories": Categories.from_json,
    "integers": Integers.from_json,
    "interval": Interval.from_json,
    "bits": Bits.from_json,
    "text": Text.from_json,
    "items": Items.from_json,
    "record": Record.from_json,
}


def domain_from_json(document: Any) -> Domain:
    """The domain that a task describes."""
    return by_kind(document, DOMAINS, "a domain")


def as_domain(domain: DomainLike) -> Domain:
    """A domain as it is; an integer d as 0 .. d-1; a list as its labels.

    >>> as_domain(3), as_domain(["tea", "coffee"]).size
    (Categories.range(3), 2)
    """
    if isinstance(domain, Domain):
        return domain
    if is_int(domain):
        return Categories.range(domain)
    if isinstance(domain, (list, tuple)):
        return Categories(domain)
    if isinstance(domain, np.ndarray) and domain.ndim == 1:
        return Categories(domain.tolist())
    raise ParameterError("expected a domain, an integer d for the values 0 .. d-1, or a list of labels")


def labels_from_json(document: Any) -> Domain:
    """The domain that labels a result: one of a task, or Tuples."""
    return by_kind(document, {**dict.fromkeys(DOMAINS, domain_from_json), "tuples": Tuples.from_json}, "a domain")
