"""Views of a value as one index: the value, its ancestor, attributes of a record, and a squared distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import (
    Categories,
    Codes,
    Domain,
    Integers,
    Interval,
    Items,
    Numeric,
    Record,
    SetCodes,
    Tuples,
    domain_from_json,
)
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.privacy import decimal_text
from veil.tools.json_documents import Json, number, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.view.base import Codes1, View, held_domain


@dataclass(frozen=True)
class Identity(View):
    """The value itself."""

    held: Domain
    kind = "identity"

    @property
    def domain(self) -> Domain:
        return self.held

    def apply(self, codes: Codes, source: Source) -> Codes1:
        if isinstance(codes, SetCodes):
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


@dataclass(frozen=True)
class SquaredDistance(View):
    """(value - centre)^2 of a number, on a grid of `cells` from 0 to the largest that a value can have.

    What every language repeats, in IEEE doubles and this order, for the held cell u:

        value    = lo + ((u + 0.5) / cells of the held domain) * (hi - lo)   of an Interval
                   (lo - 0.5) + (u + 0.5)                                    of Integers
        distance = value - centre
        square   = distance * distance
        reach    = the larger square of the first and the last cell
        shown    = min(floor((square / reach) * cells), cells - 1)

    Each operation is monotone, so no square exceeds the reach. The grid moves one by reach / (2 cells) at most.

    >>> from veil.entropy import Words
    >>> view = SquaredDistance(Integers(0, 10), centre=4.0, cells=36)
    >>> view.domain.hi, view.apply(np.array([0, 4, 10], dtype=np.uint64), Words(b"")).tolist()
    (36.0, [16, 0, 35])
    """

    held: Numeric
    centre: float
    cells: int = 1 << 20
    kind = "squared-distance"

    def __post_init__(self) -> None:
        if not isinstance(self.held, Numeric) or self.held.size > 1 << 32:
            raise ParameterError("a squared distance is one of an Interval or of Integers, of at most 2^32 cells")
        if isinstance(self.centre, bool) or not isinstance(self.centre, (int, float, np.integer, np.floating)):
            raise ParameterError("the centre is a number (of times: seconds since 1970)")
        object.__setattr__(self, "centre", float(self.centre) + 0.0)  # 0 and -0 are one centre, and one task
        if not math.isfinite(self.centre) or not 0 < self._reach < math.inf:
            raise ParameterError("the centre is finite, and so is the largest squared distance to it, which is not 0")
        _ = self.domain  # refuses a grid that an Interval cannot have
        convert_int_fields(self, "cells")

    @property
    def _reach(self) -> float:
        with np.errstate(over="ignore"):  # refused above, and not warned of
            return float(self._squares(np.array([0, self.held.size - 1])).max())

    @property
    def domain(self) -> Interval:
        return Interval(0.0, self._reach, self.cells)

    def _squares(self, codes: Any) -> NDArray[np.float64]:
        distances = self.held.edges(codes + 0.5) - self.centre
        return distances * distances

    def apply(self, codes: Any, source: Source) -> Codes1:
        return self.domain.encode(self._squares(codes))

    def to_json(self) -> Json:
        where = {"centre": decimal_text(self.centre), "cells": self.cells}
        return {"kind": "squared-distance", "held": self.held.to_json(), **where}

    @classmethod
    def from_json(cls, document: Json) -> SquaredDistance:
        held, centre, cells = take(document, "squared-distance", "held", "centre", "cells")
        return cls(held_domain(held, Integers, Interval), number(centre), cells)
