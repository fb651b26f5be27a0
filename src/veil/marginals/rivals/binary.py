"""CALM on the bits of attributes (method BE of Figure 6.5), and tables of attributes as tables of their bits.

An attribute of d values has ceil(log2 d) bits, those of its code. If d is no power of 2, some combinations of bits are
no value; nobody holds them, but noise puts people there. `fourier` uses the tables of bits, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories, Record
from veil.marginals.intervals import Bounds
from veil.marginals.joint import Joint, places_of
from veil.marginals.marginal import Marginal
from veil.marginals.result import Inference, Marginals
from veil.marginals.study import CALM, Names, ViewStudy
from veil.marginals.tables import Places, spread
from veil.results.laws import SupportNoise
from veil.study import Collection
from veil.survey import EachOf, ListedBits
from veil.tools.numbers import is_int
from veil.view import Bit, bits_of, width_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class BinaryMarginals(Joint):
    """A joint distribution read from tables of bits of attributes.

    The fields are those of `Marginals`, about the record of bits (`bits`). A marginal of attributes is that of all
    their bits, cut to combinations that are values. What stands elsewhere goes to the values: in proportion where
    tables have no negative cells, so that none gets one; evenly where they have no bias, so that none comes in.
    """

    variant: ClassVar[str] = "binary"
    sets: tuple[tuple[str, ...], ...]
    raw: Floats
    people: NDArray[np.int64]
    noises: tuple[SupportNoise, ...]
    inference: Inference = "consistent"

    @cached_property
    def bits(self) -> Marginals:
        """The joint distribution of all bits."""
        return Marginals(
            record=bit_record(self.record),
            n=self.n,
            population=self.population,
            lineage=self.lineage,
            guarantee=self.guarantee,
            sets=self.sets,
            raw=self.raw,
            people=self.people,
            noises=self.noises,
            inference=self.inference,
        )

    def _found(self, places: Places) -> Marginal:
        bits, sizes = self._bits_of([self.record.names[place] for place in places])
        found = self.bits.marginal(bits)
        table = held_cells(found.frequencies, sizes)
        held = table.sum()
        unbiased = self.inference in ("unbiased", "separate")
        return self._table(
            places, spread(table) if unbiased or held <= 0 else table / held, found.gap, measured=found.measured
        )

    def _bits_of(self, names: Any) -> tuple[list[str], list[int]]:
        """The bits of some attributes in their order, and how many values each attribute has."""
        parts = dict(self.record.attributes)
        chosen = [self.record.names[place] for place in places_of(self.record, names)]
        bits = [bit_name((name, bit)) for name in chosen for bit in range(width_of(parts[name].size))]
        return bits, [parts[name].size for name in chosen]

    def bounds(self, names: Any, level: float = 0.95) -> Bounds | None:
        """As many people hold a value as hold the combination of bits that it is: that interval is the value's."""
        bits, sizes = self._bits_of(names)
        found = self.bits.bounds(bits, level)
        if found is None:
            return None
        low, high = (held_cells(end, sizes).reshape(-1) for end in (found.low, found.high))
        return replace(found, low=low, high=high)

    def stderr(self, names: Any) -> Floats | None:
        """That of a combination of bits, before what is no value is given to the others."""
        bits, sizes = self._bits_of(names)
        found = self.bits.stderr(bits)
        return None if found is None else held_cells(found, sizes).reshape(-1)

    def __repr__(self) -> str:
        views = "1 view" if len(self.sets) == 1 else f"{len(self.sets)} views"
        return f"BinaryMarginals({len(self.record.names)} attributes, {views} of bits, n={self.n})"


@dataclass(frozen=True)
class BinaryCALM(ViewStudy[BinaryMarginals]):
    """CALM where every attribute is first made binary: its views are sets of bits (BE, thesis 6.3.3).

    An attribute of d values becomes ceil(log2 d) attributes, the bits of its code; k becomes the largest number of bits
    that k attributes have. Views are chosen, made to agree and put together for these bits as CALM does for attributes.
    `sets` names views of bits instead (`("age.0", "sex.0")`), or as one number s takes all sets of s bits.

    Guarantee: each person answers one view, through an oracle that keeps e^eps; which one does not depend on the value.

    >>> from veil import simulate
    >>> people = {"sex": ["f", "m"] * 10_000, "region": ["n", "s"] * 10_000}
    >>> study = BinaryCALM(4.0, Record.of(sex=["f", "m"], region=["n", "e", "s"]), k=2, sets=3)
    >>> simulate(study, people, seed=1).marginal(["sex", "region"]).shares.round(1).tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.0, 0.5]]
    """

    epsilon: float
    domain: Record
    k: int = 3
    users: int = 1_000_000
    threshold: float = 0.001
    sets: int | tuple[Names, ...] | None = None
    inference: Inference = "consistent"
    marginal: Names | None = None
    given: Names | None = None
    kind: ClassVar[str] = "binary-calm"

    def __post_init__(self) -> None:
        self._check()
        self._check_reading(self.inference)
        widest = sum(sorted(widths_of(self.domain), reverse=True)[: self.k])
        bits = CALM(self.epsilon, bit_record(self.domain), widest, self.users, self.threshold, self.sets)
        object.__setattr__(self, "sets", bits.sets)

    @cached_property
    def _views(self) -> tuple[Names, ...]:
        """The views by the names of their bits."""
        if is_int(self.sets):
            return tuple(combinations(bit_record(self.domain).names, self.sets))
        return self.sets  # type: ignore[return-value]  # chosen when it was made

    @cached_property
    def family(self) -> EachOf:
        named = {bit_name(bit): bit for bit in bits_of(self.domain)}
        sets = tuple(tuple(named[name] for name in names) for names in self._views)
        return EachOf(ListedBits(self.domain, sets), self.oracle)

    def answer(self, collected: Collection) -> BinaryMarginals:
        """Runs at the collector: the tables of all views of bits, unbiased; everything else follows from them."""
        return BinaryMarginals(**self._read(collected, self._views))


def bit_name(bit: Bit) -> str:
    """A bit of an attribute as an attribute of its own.

    >>> bit_name(("age", 2))
    'age.2'
    """
    name, number = bit
    return f"{name}.{number}"


def bit_record(record: Record) -> Record:
    """The record whose attributes are the bits of another's: `age.0`, the highest bit of the age, and so on.

    >>> bit_record(Record.of(sex=2, age=5)).names
    ('sex.0', 'age.0', 'age.1', 'age.2')
    """
    return Record(tuple((bit_name(bit), Categories.range(2)) for bit in bits_of(record)))


def widths_of(record: Record) -> tuple[int, ...]:
    """How many bits each attribute has."""
    return tuple(width_of(part.size) for part in record.parts)


def held_cells(table: NDArray[Any], sizes: Sequence[int]) -> NDArray[Any]:
    """A table of all combinations of the bits of some attributes, cut to those that are values of the attributes.

    >>> held_cells(np.arange(8.0), [3, 2]).tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """
    cut: NDArray[Any] = table.reshape([1 << width_of(size) for size in sizes])[tuple(slice(size) for size in sizes)]
    return cut


def walsh(values: Floats) -> Floats:
    """The Walsh-Hadamard transform of 2^b numbers: entry i is the sum over j of (-1)^(bits that i and j share) v_j.

    >>> walsh(np.array([0.4, 0.3, 0.2, 0.1])).round(6).tolist()
    [1.0, 0.2, 0.4, 0.0]
    """
    found = np.array(values, dtype=np.float64)
    half = 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return found
