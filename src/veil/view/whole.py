"""Views of a value as one index: the value itself, its ancestor in a tree, some attributes of a record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.domain import Categories, Codes, Domain, Items, Record, Sets, Tuples, domain_from_json
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.view.base import Codes1, View, held_domain

__all__ = ["Ancestor", "Identity", "Project"]


@dataclass(frozen=True)
class Identity(View):
    """The value itself."""

    held: Domain
    kind = "identity"

    @property
    def domain(self) -> Domain:
        return self.held

    def apply(self, codes: Codes, source: Source) -> Codes1:
        if isinstance(codes, Sets):
            raise ParameterError("sets are asked about through a view: SampleItem")
        return codes

    def to_json(self) -> Json:
        return {"kind": "identity", "held": self.held.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> Identity:
        (held,) = take(document, "identity", "held")
        return cls(domain_from_json(held))


@dataclass(frozen=True)
class Ancestor(View):
    """The ancestor at `level` in a tree of the given branching over 0 .. size-1; the leaves are at level `height`.

    >>> from veil.entropy import Words
    >>> Ancestor(Categories.range(10), branching=4, level=1).apply(np.array([3, 4, 9]), Words(b"")).tolist()
    [0, 1, 2]
    """

    held: Domain
    branching: int
    level: int
    kind = "ancestor"

    def __post_init__(self) -> None:
        if not is_int(self.branching) or self.branching < 2:
            raise ParameterError("a tree branches at least in two")
        if self.held.code_bytes or isinstance(self.held, (Items, Record)):
            raise ParameterError("a tree stands over a domain with one index per value")
        if not is_int(self.level) or not 1 <= self.level <= self.height:
            raise ParameterError(f"a level lies between 1 and the height of the tree, {self.height}")
        convert_int_fields(self, "branching", "level")

    @property
    def height(self) -> int:
        """Levels below the root."""
        levels, reach, size = 0, 1, int(self.held.size)
        while reach < size:
            levels, reach = levels + 1, reach * self.branching
        return levels

    @property
    def domain(self) -> Domain:
        if self.level == self.height:
            return self.held
        return Categories.range(-(-self.held.size // self._leaves))

    @property
    def _leaves(self) -> int:
        return int(self.branching ** (self.height - self.level))

    def apply(self, codes: Any, source: Source) -> Codes1:
        return codes // codes.dtype.type(self._leaves)  # type: ignore[no-any-return]  # codes are Any by design

    def to_json(self) -> Json:
        return {
            "kind": "ancestor",
            "held": self.held.to_json(),
            "branching": self.branching,
            "level": self.level,
        }

    @classmethod
    def from_json(cls, document: Json) -> Ancestor:
        held, branching, level = take(document, "ancestor", "held", "branching", "level")
        return cls(domain_from_json(held), branching, level)


@dataclass(frozen=True)
class Project(View):
    """Some attributes of a record, as one index: the last attribute varies fastest.

    One attribute alone shows that attribute's own domain, labels and all; several are labelled with tuples.

    >>> Project(Record.of(sex=["f", "m"], age=2), ("sex", "age")).values.decode([2])
    [('m', 0)]
    """

    held: Record
    attributes: tuple[str, ...]
    kind = "project"

    def __post_init__(self) -> None:
        known = self.held.names if isinstance(self.held, Record) else ()
        chosen = self.attributes
        if not chosen or len(set(chosen)) != len(chosen) or any(name not in known for name in chosen):
            raise ParameterError(f"a projection names some attributes of its record: {', '.join(known)}")
        if math.prod(part.size for part in self.parts) >= 2**53:
            raise ParameterError("these attributes have 2^53 combinations or more")

    @property
    def parts(self) -> tuple[Domain, ...]:
        by_name = dict(self.held.attributes)
        return tuple(by_name[name] for name in self.attributes)

    @property
    def domain(self) -> Domain:
        if len(self.parts) == 1:
            return self.parts[0]
        return Categories.range(math.prod(part.size for part in self.parts))

    @property
    def values(self) -> Domain:
        return self.domain if len(self.parts) == 1 else Tuples(self.parts)

    def apply(self, codes: Any, source: Source) -> Codes1:
        index = np.zeros(len(codes), dtype=np.uint64)
        for name, part in zip(self.attributes, self.parts, strict=True):
            index = index * np.uint64(part.size) + codes[:, self.held.names.index(name)]
        return index

    def to_json(self) -> Json:
        return {"kind": "project", "held": self.held.to_json(), "attributes": list(self.attributes)}

    @classmethod
    def from_json(cls, document: Json) -> Project:
        held, attributes = take(document, "project", "held", "attributes")
        if not isinstance(attributes, list) or not all(isinstance(name, str) for name in attributes):
            raise WireError("a projection lists names of attributes")
        return cls(held_domain(held, Record), tuple(attributes))
