"""From what a person holds to what one question asks about: an index of a smaller domain.

A View maps codes of its `source` domain to codes of its `domain`; it may itself be random. `scale` is what an estimate
must be multiplied by to speak of the held values, and `outer_ratio` tells how much weaker a report's ratio becomes seen
from the held value (privacy amplification). Runs on the device.

    Identity    the value itself                   Segment     bits [start, stop) of a string; a prefix starts at 0
    Ancestor    its ancestor in a b-ary tree       Project     some attributes of a record, as one index
    SampleItem  one item of a set, padded with dummies to `length` (padding-and-sampling)
    SquaredDistance   how far a number lies from a public one, squared

Views of sets through a list of candidates stand in `veil.set_view`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.canonical import Json, by_kind, number, take
from veil.domain import (
    Bits,
    Categories,
    Codes,
    Domain,
    Integers,
    Interval,
    Items,
    Numeric,
    Record,
    Sets,
    Text,
    domain_from_json,
    is_int,
    own_ints,
)
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.privacy import decimal_text, exp_below, largest_epsilon, log_above

__all__ = [
    "VIEWS",
    "Ancestor",
    "Identity",
    "Project",
    "SampleItem",
    "Segment",
    "SquaredDistance",
    "View",
    "prefix",
    "sample_padded",
    "view_from_json",
]

Codes1 = NDArray[Any]


class View(ABC):
    """One way to look at a value. Every view stores the domain it looks at as its first field, `source`."""

    kind: str
    source: Domain

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """What the view shows."""

    @abstractmethod
    def apply(self, codes: Any, source: Source) -> Codes1:
        """Runs on the device: from codes of the held domain to codes of the shown one."""

    @property
    def scale(self) -> Fraction:
        """What an estimated frequency is multiplied by to speak of held values."""
        return Fraction(1)

    def outer_ratio(self, ratio: Fraction, *, disjoint: bool) -> Fraction:
        """The ratio seen from the held value, when the mechanism behind the view has `ratio`.

        `disjoint` says that a report supports one value at most, as in GRR.
        """
        return ratio

    def inner_ratio(self, ratio: Fraction, *, disjoint: bool) -> Fraction:
        """The ratio that the mechanism behind the view may have, so that the held value is promised `ratio`."""
        return ratio

    def inner_epsilon(self, epsilon: float, *, disjoint: bool) -> float:
        """The largest epsilon that the mechanism behind the view may have; exactly, unlike the formula in doubles."""
        start = log_above(self.inner_ratio(exp_below(epsilon), disjoint=disjoint))
        return largest_epsilon(start, lambda ratio: self.outer_ratio(ratio, disjoint=disjoint) <= exp_below(epsilon))

    @property
    def values(self) -> Domain:
        """The domain that labels what is estimated: the shown one, less what only pads it."""
        return self.domain

    @abstractmethod
    def to_json(self) -> Json:
        """The view as it stands in a task."""


@dataclass(frozen=True)
class Identity(View):
    """The value itself."""

    source: Domain
    kind = "identity"

    @property
    def domain(self) -> Domain:
        return self.source

    def apply(self, codes: Codes, source: Source) -> Codes1:
        if isinstance(codes, Sets):
            raise ParameterError("sets are asked about through a view: SampleItem")
        return codes

    def to_json(self) -> Json:
        return {"kind": "identity", "source": self.source.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> Identity:
        (source,) = take(document, "identity", "source")
        return cls(domain_from_json(source))


@dataclass(frozen=True)
class Segment(View):
    """Bits start .. stop - 1 of a string, counted from its first bit.

    >>> from veil.entropy import Words
    >>> Segment(Bits(8), 0, 3).apply(np.array([0b10110101], dtype=np.uint64), Words(b"")).tolist()
    [5]
    """

    source: Bits | Text
    start: int
    stop: int
    kind = "segment"

    def __post_init__(self) -> None:
        if not isinstance(self.source, (Bits, Text)):
            raise ParameterError("a segment is cut from Bits or Text")
        if not is_int(self.start) or not is_int(self.stop) or not 0 <= self.start < self.stop <= self.source.bits:
            raise ParameterError(f"a segment lies within the {self.source.bits} bits, from start to stop")
        own_ints(self, "start", "stop")

    @property
    def domain(self) -> Bits:
        return Bits(self.stop - self.start)

    def apply(self, codes: Any, source: Source) -> Codes1:
        width, drop = self.stop - self.start, self.source.bits - self.stop
        if not self.source.code_bytes:
            shifted = codes >> np.uint64(drop)
            return shifted & np.uint64((1 << width) - 1)  # type: ignore[no-any-return]  # codes are Any by design
        # Bytes: drop what follows the segment, then keep its last `width` bits.
        whole, part = drop // 8, drop % 8
        rows = codes[:, : codes.shape[1] - whole] if whole else codes
        if part:
            before = np.zeros_like(rows)
            before[:, 1:] = rows[:, :-1]
            rows = (rows >> part) | (before << (8 - part))
        return _last_bits(rows, width)

    def to_json(self) -> Json:
        return {"kind": "segment", "source": self.source.to_json(), "start": self.start, "stop": self.stop}

    @classmethod
    def from_json(cls, document: Json) -> Segment:
        source, start, stop = take(document, "segment", "source", "start", "stop")
        return cls(_held(source, Bits, Text), start, stop)


def prefix(source: Bits | Text, bits: int) -> Segment:
    """The first `bits` bits of a string (PEM)."""
    return Segment(source, 0, bits)


@dataclass(frozen=True)
class Ancestor(View):
    """The ancestor at `level` in a tree of the given branching over 0 .. size-1; the leaves are at level `height`.

    >>> from veil.entropy import Words
    >>> Ancestor(Categories.range(10), branching=4, level=1).apply(np.array([3, 4, 9]), Words(b"")).tolist()
    [0, 1, 2]
    """

    source: Domain
    branching: int
    level: int
    kind = "ancestor"

    def __post_init__(self) -> None:
        if not is_int(self.branching) or self.branching < 2:
            raise ParameterError("a tree branches at least in two")
        if self.source.code_bytes or isinstance(self.source, (Items, Record)):
            raise ParameterError("a tree stands over a domain with one index a value")
        if not is_int(self.level) or not 1 <= self.level <= self.height:
            raise ParameterError(f"a level lies between 1 and the height of the tree, {self.height}")
        own_ints(self, "branching", "level")

    @property
    def height(self) -> int:
        """Levels below the root."""
        levels, reach, size = 0, 1, int(self.source.size)
        while reach < size:
            levels, reach = levels + 1, reach * self.branching
        return levels

    @property
    def domain(self) -> Domain:
        if self.level == self.height:
            return self.source
        return Categories.range(-(-self.source.size // self._leaves))

    @property
    def _leaves(self) -> int:
        return int(self.branching ** (self.height - self.level))

    def apply(self, codes: Any, source: Source) -> Codes1:
        return codes // codes.dtype.type(self._leaves)  # type: ignore[no-any-return]  # codes are Any by design

    def to_json(self) -> Json:
        return {
            "kind": "ancestor",
            "source": self.source.to_json(),
            "branching": self.branching,
            "level": self.level,
        }

    @classmethod
    def from_json(cls, document: Json) -> Ancestor:
        source, branching, level = take(document, "ancestor", "source", "branching", "level")
        return cls(domain_from_json(source), branching, level)


@dataclass(frozen=True)
class Project(View):
    """Some attributes of a record, as one index: the last attribute varies fastest.

    One attribute alone shows that attribute's own domain, labels and all.
    """

    source: Record
    attributes: tuple[str, ...]
    kind = "project"

    def __post_init__(self) -> None:
        known = self.source.names if isinstance(self.source, Record) else ()
        chosen = self.attributes
        if not chosen or len(set(chosen)) != len(chosen) or any(name not in known for name in chosen):
            raise ParameterError(f"a projection names some attributes of its record: {', '.join(known)}")
        if math.prod(part.size for part in self.parts) >= 2**53:
            raise ParameterError("these attributes have 2^53 combinations or more")

    @property
    def parts(self) -> tuple[Domain, ...]:
        by_name = dict(self.source.attributes)
        return tuple(by_name[name] for name in self.attributes)

    @property
    def domain(self) -> Domain:
        if len(self.parts) == 1:
            return self.parts[0]
        return Categories.range(math.prod(part.size for part in self.parts))

    def apply(self, codes: Any, source: Source) -> Codes1:
        index = np.zeros(len(codes), dtype=np.uint64)
        for name, part in zip(self.attributes, self.parts, strict=True):
            index = index * np.uint64(part.size) + codes[:, self.source.names.index(name)]
        return index

    def to_json(self) -> Json:
        return {"kind": "project", "source": self.source.to_json(), "attributes": list(self.attributes)}

    @classmethod
    def from_json(cls, document: Json) -> Project:
        source, attributes = take(document, "project", "source", "attributes")
        if not isinstance(attributes, list) or not all(isinstance(name, str) for name in attributes):
            raise WireError("a projection lists names of attributes")
        return cls(_held(source, Record), tuple(attributes))


@dataclass(frozen=True)
class SampleItem(View):
    """One item of a set, drawn uniformly after padding it with dummies to `length` (thesis 5.2.3).

    Indices from the universe's size on are dummies. A set larger than `length` is sampled as it is, so its items are
    under-counted; a frequency is `length` times the estimated share.

    Guarantee: behind a mechanism whose reports support one value at most (GRR), a ratio r becomes 1 + (r - 1) / length,
    because any one item is the sampled one with probability 1 / length at most. Otherwise it stays r.
    """

    source: Items
    length: int
    kind = "sample-item"

    def __post_init__(self) -> None:
        if not isinstance(self.source, Items):
            raise ParameterError("an item is sampled from Items")
        if not is_int(self.length) or not 1 <= self.length <= 2**31:
            raise ParameterError("a padding length is at least 1")
        own_ints(self, "length")

    @property
    def domain(self) -> Categories:
        return Categories.range(self.source.universe.size + self.length)

    @property
    def values(self) -> Domain:
        return self.source.universe

    @property
    def scale(self) -> Fraction:
        return Fraction(self.length)

    def outer_ratio(self, ratio: Fraction, *, disjoint: bool) -> Fraction:
        return 1 + (ratio - 1) / self.length if disjoint else ratio

    def inner_ratio(self, ratio: Fraction, *, disjoint: bool) -> Fraction:
        return 1 + (ratio - 1) * self.length if disjoint else ratio

    def apply(self, codes: Any, source: Source) -> Codes1:
        return sample_padded(codes, self.length, self.source.universe.size, source)

    def to_json(self) -> Json:
        return {"kind": "sample-item", "source": self.source.to_json(), "length": self.length}

    @classmethod
    def from_json(cls, document: Json) -> SampleItem:
        source, length = take(document, "sample-item", "source", "length")
        return cls(_held(source, Items), length)


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

    source: Numeric
    centre: float
    cells: int = 1 << 20
    kind = "squared-distance"

    def __post_init__(self) -> None:
        if not isinstance(self.source, Numeric) or self.source.size > 1 << 32:
            raise ParameterError("a squared distance is one of an Interval or of Integers, of at most 2^32 cells")
        if isinstance(self.centre, bool) or not isinstance(self.centre, (int, float, np.integer, np.floating)):
            raise ParameterError("the centre is a number (of times: seconds since 1970)")
        object.__setattr__(self, "centre", float(self.centre) + 0.0)  # 0 and -0 are one centre, and one task
        if not math.isfinite(self.centre) or not 0 < self._reach < math.inf:
            raise ParameterError("the centre is finite, and so is the largest squared distance to it, which is not 0")
        _ = self.domain  # refuses a grid that an Interval cannot have
        own_ints(self, "cells")

    @property
    def _reach(self) -> float:
        with np.errstate(over="ignore"):  # refused above, and not warned of
            return float(self._squares(np.array([0, self.source.size - 1])).max())

    @property
    def domain(self) -> Interval:
        return Interval(0.0, self._reach, self.cells)

    def _squares(self, codes: Any) -> NDArray[np.float64]:
        distances = self.source.edges(codes + 0.5) - self.centre
        return distances * distances

    def apply(self, codes: Any, source: Source) -> Codes1:
        return self.domain.encode(self._squares(codes))

    def to_json(self) -> Json:
        where = {"centre": decimal_text(self.centre), "cells": self.cells}
        return {"kind": "squared-distance", "source": self.source.to_json(), **where}

    @classmethod
    def from_json(cls, document: Json) -> SquaredDistance:
        source, centre, cells = take(document, "squared-distance", "source", "centre", "cells")
        return cls(_held(source, Integers, Interval), number(centre), cells)


VIEWS: dict[str, Callable[[Json], View]] = {
    "identity": Identity.from_json,
    "segment": Segment.from_json,
    "ancestor": Ancestor.from_json,
    "project": Project.from_json,
    "sample-item": SampleItem.from_json,
    "squared-distance": SquaredDistance.from_json,
}


def view_from_json(document: Any) -> View:
    """The view that a task describes."""
    from veil.set_view import SET_VIEWS  # views of sets stand beside this module, and on it

    return by_kind(document, {**VIEWS, **SET_VIEWS}, "a view")


def sample_padded(sets: Sets, length: int, dummies: int, source: Source) -> Codes1:
    """Runs on the device: an element of each set, drawn after padding to `length` with codes from `dummies` on."""
    sizes = sets.offsets[1:] - sets.offsets[:-1]
    drawn = source.below(np.maximum(sizes, length).astype(np.uint64), len(sizes)).astype(np.int64)
    real = drawn < sizes
    shown: Codes1 = (dummies + drawn - sizes).astype(np.uint64)
    shown[real] = sets.items[sets.offsets[:-1][real] + drawn[real]]
    return shown


def _held(document: Any, *kinds: type[Any]) -> Any:
    domain = domain_from_json(document)
    if not isinstance(domain, kinds):
        raise WireError(f"this view looks at {' or '.join(kind.__name__ for kind in kinds)}")
    return domain


def _last_bits(rows: NDArray[np.uint8], width: int) -> Codes1:
    """The last `width` bits of each row: uint64 up to 64 of them, else rows of bytes."""
    size = -(-width // 8)
    kept = (
        rows[:, rows.shape[1] - size :].copy()
        if rows.shape[1] >= size
        else np.pad(rows, ((0, 0), (size - rows.shape[1], 0)))
    )
    if width % 8:
        kept[:, 0] &= np.uint8((1 << width % 8) - 1)
    if width > 64:
        return kept
    padded = np.zeros((len(kept), 8), dtype=np.uint8)
    padded[:, 8 - size :] = kept
    return padded.view(">u8")[:, 0].astype(np.uint64)
