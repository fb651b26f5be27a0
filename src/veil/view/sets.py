"""Views of a held set: one of its items, or how it relates to a public list of candidates.

Between the rounds of a study the collector narrows the list of candidates. The list is part of the task, so a device
itself finds which candidates its set contains. Runs on the device.

    SampleItem        one of its items, padded with dummies to `length`
    SampleContained   one of the candidates that the held set contains, padded with dummies to `length`
    CountContained    the number of candidates that it contains, at most `most`
    SetSize           the number of its items, at most `most`
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Domain, Items, SetCodes, domain_from_json
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.privacy import Guarantee
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.view.base import Codes1, Moment, View, held_domain

ItemSets = tuple[tuple[int, ...], ...]
"""Sets of items' codes, each increasing; the order of the sets is their numbering."""

_MOST = 1 << 20
MOST_LOAD = 1 << 10
"""The largest `load`: a device computes a delta of 32 bits for each unit of it."""


class _Padded(View):
    """One element, drawn uniformly after padding with dummies to `length`: any one with probability 1 / length at most.

    Guarantee: behind a mechanism whose reports support one value at most (GRR), a ratio r becomes 1 + (r - 1) / length
    (thesis 5.2.1). Behind others it stays r, unless a `load` is given: behind a mechanism that hashes values
    independently (OLH, BLH) the ratio is then 1 + (r - 1) load / length, but for the probability delta that more than
    `load` of the elements share a bucket (thesis 5.5.1).

    The theorem speaks of sets of at most `length` elements. It holds for larger ones too: sampling from one is sampling
    from a random part of it of `length` elements, and a mixture of (eps, delta) is (eps, delta).
    """

    length: int
    load: int | None
    random = True

    def __post_init__(self) -> None:
        if not is_int(self.length) or not 1 <= self.length <= 2**31:
            raise ParameterError("a padding length is at least 1")
        convert_int_fields(self, "length")
        if self.load is None:
            return
        if not is_int(self.load) or not 1 <= self.load < min(self.length, MOST_LOAD + 1):
            raise ParameterError(f"a load is at least 1, below the padding length, and at most {MOST_LOAD}")
        convert_int_fields(self, "load")

    @property
    @abstractmethod
    def dummies(self) -> int:
        """The first index that is a dummy."""

    @property
    def domain(self) -> Categories:
        return Categories.range(self.dummies + self.length)

    @property
    def scale(self) -> Fraction:
        return Fraction(self.length)

    def share(self, *, disjoint: bool) -> Fraction:
        together = 1 if disjoint else self.load
        return Fraction(1) if together is None else Fraction(together, self.length)

    def collisions(self, moment: Moment) -> Fraction:
        """A bound on the probability that more than `load` of `length` elements share a bucket; 0 without a load."""
        return Fraction(0) if self.load is None else math.comb(self.length, self.load + 1) * moment(self.load + 1)

    def outer(self, inner: Guarantee, *, disjoint: bool = False, moment: Moment | None = None) -> Guarantee:
        seen = super().outer(inner, disjoint=disjoint)
        if self.load is None:
            return seen
        if moment is None or inner.delta:
            raise ParameterError("a load is for a mechanism that hashes values independently: OLH or BLH")
        delta = self.collisions(moment)
        if delta >= 1:
            raise ParameterError("this load promises nothing: more elements may well share a bucket")
        return replace(seen, delta=delta)

    def _to_json(self, **parts: Any) -> Json:
        load = {} if self.load is None else {"load": self.load}
        return {"kind": self.kind, "held": self.held.to_json(), **parts, "length": self.length, **load}


def _take_padded(document: Json, kind: str, *keys: str) -> list[Any]:
    """The values of the keys, and of `load` where it is there."""
    if "load" in document and document["load"] is None:
        raise WireError("a load is an integer, or left out")
    return take(document, kind, *keys, *(["load"] if "load" in document else []))


@dataclass(frozen=True)
class SampleItem(_Padded):
    """One item of a set, drawn uniformly after padding it with dummies to `length` (thesis 5.2.3).

    Indices from the universe's size on are dummies. A set larger than `length` is sampled as it is, so its items are
    under-counted; a frequency is `length` times the estimated share.

    Guarantee: behind GRR, a ratio r becomes 1 + (r - 1) / length, because any one item is the sampled one with
    probability 1 / length at most. Otherwise it stays r, or with a `load`, which hashing alone takes, becomes
    1 + (r - 1) load / length but for a delta: that more than `load` items share a bucket (thesis 5.5.1).
    """

    held: Items
    length: int
    load: int | None = None
    kind = "sample-item"

    def __post_init__(self) -> None:
        if not isinstance(self.held, Items):
            raise ParameterError("an item is sampled from Items")
        super().__post_init__()

    @property
    def dummies(self) -> int:
        return self.held.universe.size

    @property
    def values(self) -> Domain:
        return self.held.universe

    def apply(self, codes: Any, source: Source) -> Codes1:
        return sample_padded(codes, self.length, self.dummies, source)

    def to_json(self) -> Json:
        return self._to_json()

    @classmethod
    def from_json(cls, document: Json) -> SampleItem:
        held, *numbers = _take_padded(document, cls.kind, "held", "length")
        return cls(held_domain(held, Items), *numbers)


@dataclass(frozen=True)
class SampleContained(_Padded):
    """One candidate that the held set contains, drawn uniformly after padding with dummies to `length` (thesis 5.3).

    ItemSets are numbered as listed; indices from their number on are dummies. Who contains more than `length` of them
    is sampled as they are, so that they are under-counted.

    Guarantee: that of SampleItem, because any one candidate is drawn with probability 1 / length at most.

    >>> from veil.entropy import SeededForExperiments
    >>> view = SampleContained(Items(9), ((2,), (1, 2), (4, 5)), length=1)
    >>> view.apply(Items(9).encode([[4, 5, 7], [2], []]), SeededForExperiments(1)).tolist()
    [2, 0, 3]
    """

    held: Items
    candidates: ItemSets
    length: int
    load: int | None = None
    kind = "sample-contained"

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", _checked(self.held, self.candidates))
        super().__post_init__()

    @property
    def dummies(self) -> int:
        return len(self.candidates)

    @property
    def values(self) -> Categories:
        return Categories.range(len(self.candidates))

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.candidates)

    def apply(self, codes: Any, source: Source) -> NDArray[Any]:
        return sample_padded(self._index.contained(codes), self.length, self.dummies, source)

    def to_json(self) -> Json:
        return self._to_json(candidates=[list(candidate) for candidate in self.candidates])

    @classmethod
    def from_json(cls, document: Json) -> SampleContained:
        held, candidates, *numbers = _take_padded(document, cls.kind, "held", "candidates", "length")
        return cls(_items(held), _listed(candidates), *numbers)


@dataclass(frozen=True)
class CountContained(View):
    """How many of the candidates the held set contains; `most` stands for that many and more.

    >>> from veil.entropy import Words
    >>> view = CountContained(Items(9), ((2,), (1, 2), (4, 5)), most=2)
    >>> view.apply(Items(9).encode([[1, 2, 4, 5], [2], []]), Words(b"")).tolist()
    [2, 1, 0]
    """

    held: Items
    candidates: ItemSets
    most: int
    kind = "count-contained"

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", _checked(self.held, self.candidates))
        if not is_int(self.most) or not 1 <= self.most <= len(self.candidates):
            raise ParameterError("the largest count shown lies between 1 and the number of candidates")
        convert_int_fields(self, "most")

    @property
    def domain(self) -> Categories:
        return Categories.range(self.most + 1)

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.candidates)

    def apply(self, codes: Any, source: Source) -> NDArray[Any]:
        return _sizes(self._index.contained(codes), self.most)

    def to_json(self) -> Json:
        listed = [list(candidate) for candidate in self.candidates]
        return {"kind": self.kind, "held": self.held.to_json(), "candidates": listed, "most": self.most}

    @classmethod
    def from_json(cls, document: Json) -> CountContained:
        held, candidates, most = take(document, cls.kind, "held", "candidates", "most")
        return cls(_items(held), _listed(candidates), most)


@dataclass(frozen=True)
class SetSize(View):
    """How many items the held set has; `most` stands for that many and more.

    >>> from veil.entropy import Words
    >>> SetSize(Items(9), most=3).apply(Items(9).encode([[1, 2, 4, 5], [2], []]), Words(b"")).tolist()
    [3, 1, 0]
    """

    held: Items
    most: int
    kind = "set-size"

    def __post_init__(self) -> None:
        if not isinstance(self.held, Items):
            raise ParameterError("a size is one of Items")
        if not is_int(self.most) or not 1 <= self.most <= self.held.universe.size:
            raise ParameterError("the largest size shown lies between 1 and the number of items in the universe")
        convert_int_fields(self, "most")

    @property
    def domain(self) -> Categories:
        return Categories.range(self.most + 1)

    def apply(self, codes: Any, source: Source) -> NDArray[Any]:
        return _sizes(codes, self.most)

    def to_json(self) -> Json:
        return {"kind": self.kind, "held": self.held.to_json(), "most": self.most}

    @classmethod
    def from_json(cls, document: Json) -> SetSize:
        held, most = take(document, cls.kind, "held", "most")
        return cls(_items(held), most)


class _Index:
    """Candidates by their first item, for the kernel."""

    def __init__(self, candidates: ItemSets) -> None:
        sizes = np.array([len(candidate) for candidate in candidates], dtype=np.int64)
        flat = np.array([item for candidate in candidates for item in candidate], dtype=np.uint64)
        self.items, ids = np.unique(flat, return_inverse=True)
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        self.ids = ids.astype(np.int64)
        firsts = self.ids[self.offsets[:-1]]
        self.order = np.argsort(firsts, kind="stable").astype(np.int64)
        self.starts = np.searchsorted(firsts[self.order], np.arange(len(self.items) + 1)).astype(np.int64)

    def contained(self, codes: SetCodes) -> SetCodes:
        from veil.kernels.counting import contained

        place = np.searchsorted(self.items, codes.items)
        place[place == len(self.items)] = 0
        ids = np.where(self.items[place] == codes.items, place, -1).astype(np.int64)
        found = contained(codes.offsets, ids, len(self.items), self.starts, self.order, self.offsets, self.ids)
        return SetCodes(found[0], found[1].astype(np.uint64))


def _sizes(sets: SetCodes, most: int) -> NDArray[np.uint64]:
    sizes: NDArray[np.uint64] = np.minimum(sets.offsets[1:] - sets.offsets[:-1], most).astype(np.uint64)
    return sizes


def _checked(held: Any, candidates: Iterable[Iterable[int]]) -> ItemSets:
    """Candidates as tuples of Python's integers: at least one, different, each a set of items of the universe."""
    if not isinstance(held, Items):
        raise ParameterError("candidates are sets of items of Items")
    try:
        listed = tuple(tuple(candidate) for candidate in candidates)
    except TypeError:
        raise ParameterError("candidates are a list of sets of items' codes") from None
    if not 1 <= len(listed) <= _MOST or len(set(listed)) != len(listed):
        raise ParameterError("candidates are at least one and at most 2^20, each once")
    size = held.universe.size
    for candidate in listed:
        if not candidate or not all(is_int(item) and 0 <= item < size for item in candidate):
            raise ParameterError("a candidate has at least one item, each a code of the universe")
        if any(a >= b for a, b in pairwise(candidate)):
            raise ParameterError("a candidate lists its items' codes increasing, each once")
    return tuple(tuple(int(item) for item in candidate) for candidate in listed)


def _items(document: Any) -> Items:
    domain = domain_from_json(document)
    if not isinstance(domain, Items):
        raise WireError("this view looks at Items")
    return domain


def _listed(candidates: Any) -> ItemSets:
    if not isinstance(candidates, list) or not all(isinstance(candidate, list) for candidate in candidates):
        raise WireError("candidates are a list of lists of items' codes")
    if not all(is_int(item) for candidate in candidates for item in candidate):
        raise WireError("candidates are a list of lists of items' codes")
    return tuple(tuple(candidate) for candidate in candidates)


def sample_padded(sets: SetCodes, length: int, dummies: int, source: Source) -> Codes1:
    """Runs on the device: an element of each set, drawn after padding to `length` with codes from `dummies` on."""
    sizes = sets.offsets[1:] - sets.offsets[:-1]
    drawn = source.below(np.maximum(sizes, length).astype(np.uint64), len(sizes)).astype(np.int64)
    real = drawn < sizes
    shown: Codes1 = (dummies + drawn - sizes).astype(np.uint64)
    shown[real] = sets.items[sets.offsets[:-1][real] + drawn[real]]
    return shown
