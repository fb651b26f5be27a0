"""Rules about bits of a record's attributes.

    ListedBits(record, sets)    the listed sets of bits, each shown as one index: binary-encoded marginals
    Parities(record, size)      the parity of every set of bits that touches at most `size` attributes: Fourier

An attribute of d values has ceil(log2 d) bits, those of its code (`veil.view.bits`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Record
from veil.errors import ParameterError, WireError
from veil.survey.rule import U64, Rule, as_record, check_count
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.view import Bit, BitsOf, Parity, View, bits_of, numbers_of, width_of


@dataclass(frozen=True)
class ListedBits(Rule):
    """The listed sets of bits, each a tuple of pairs of an attribute's name and a bit; kept in the order of the record.

    >>> rule = ListedBits(Record.of(sex=2, age=5), ((("age", 2), ("sex", 0)), (("age", 0),)))
    >>> [rule.view(i).bits for i in range(len(rule))], rule.sizes
    ([(('sex', 0), ('age', 2)), (('age', 0),)], (2, 4))
    """

    held: Record
    sets: tuple[tuple[Bit, ...], ...]
    kind = "listed-bits"

    def __post_init__(self) -> None:
        every = bits_of(as_record(self.held))
        if not isinstance(self.sets, tuple) or not self.sets:
            raise ParameterError("at least one set of bits is listed")
        check_count(len(self.sets))
        given = [numbers_of(self.held, bits) for bits in self.sets]
        if len(set(given)) != len(given):
            raise ParameterError("listed sets of bits differ from each other")
        object.__setattr__(self, "sets", tuple(tuple(every[number] for number in numbers) for numbers in given))
        for bits in {len(bits): bits for bits in self.sets}.values():
            BitsOf(self.held, bits)  # refuses too many bits

    def __len__(self) -> int:
        return len(self.sets)

    @cached_property
    def _listed(self) -> NDArray[np.int64]:
        """A row for each set: its bits' numbers, increasing; -1 where it has fewer."""
        numbers = [numbers_of(self.held, bits) for bits in self.sets]
        listed = np.full((len(numbers), max(map(len, numbers))), -1, dtype=np.int64)
        for row, own in zip(listed, numbers, strict=True):
            row[: len(own)] = own
        return listed

    @cached_property
    def _columns(self) -> tuple[NDArray[np.int64], U64]:
        """For each bit of the record, the place of its attribute and how far the code is shifted."""
        found = [
            (place, shift)
            for place, part in enumerate(self.held.parts)
            for shift in reversed(range(width_of(part.size)))
        ]
        places, shifts = zip(*found, strict=True)
        return np.array(places), np.array(shifts, dtype=np.uint64)

    def view(self, index: int) -> View:
        return BitsOf(self.held, self.sets[index])

    def sizes_of(self, choice: NDArray[np.int64]) -> U64:
        sizes: U64 = np.uint64(1) << (self._listed[choice] >= 0).sum(axis=1, dtype=np.uint64)
        return sizes

    def shown(self, choice: NDArray[np.int64], codes: U64) -> U64:
        places, shifts = self._columns
        index, rows = np.zeros(len(codes), dtype=np.uint64), np.arange(len(codes))
        for numbers in self._listed[choice].T:
            own = codes[rows, places[numbers]] >> shifts[numbers] & np.uint64(1)
            index = np.where(numbers >= 0, index << np.uint64(1) | own, index)
        return index

    def to_json(self) -> Json:
        return {"kind": self.kind, "sets": [list(numbers_of(self.held, bits)) for bits in self.sets]}

    @classmethod
    def from_json(cls, document: Json, held: Record) -> ListedBits:
        (sets,) = take(document, cls.kind, "sets")
        every = bits_of(held)
        if not isinstance(sets, list) or not all(isinstance(one, list) for one in sets):
            raise WireError("listed sets of bits are lists of numbers of bits")
        if not all(is_int(number) and 0 <= number < len(every) for one in sets for number in one):
            raise WireError("listed sets of bits are lists of numbers of bits")
        return cls(held, tuple(tuple(every[number] for number in one) for one in sets))


@dataclass(frozen=True)
class Parities(Rule):
    """The parity of every set of bits, but for the empty one, that touches at most `size` attributes.

    These are the Fourier (Walsh) coefficients of all tables of `size` attributes. A set is written as one mask of bits
    for each attribute, 0 where it touches none of them. Sets are numbered in the order of these rows of masks, the last
    attribute's mask varying fastest; the row of zeros, which asks nothing, would be number -1.

    >>> rule = Parities(Record.of(a=2, b=3, c=2), size=2)
    >>> len(rule), rule.masks(np.array([0, 1, 2, 7, 8])).tolist()
    (12, [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]])
    >>> rule.view(2).bits, rule.sizes
    ((('b', 1), ('c', 0)), (2,))
    """

    held: Record
    size: int
    kind = "parities"

    def __post_init__(self) -> None:
        most = len(as_record(self.held).names)
        if not is_int(self.size) or not 1 <= self.size <= most:
            raise ParameterError(f"a parity touches at least 1 and at most {most} of the record's attributes")
        convert_int_fields(self, "size")
        if not bits_of(self.held):
            raise ParameterError("attributes of one value have no bits")
        check_count(self._counted[0][self.size] - 1)

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        return tuple(width_of(part.size) for part in self.held.parts)

    @cached_property
    def _counted(self) -> list[list[int]]:
        """Row i, column r: how many sets, the empty one too, touch at most r attributes, and none before the i-th."""
        rows = [[1] * (self.size + 1)]
        for width in reversed(self._widths):
            after = rows[-1]
            rows.append([many + ((1 << width) - 1) * (after[r - 1] if r else 0) for r, many in enumerate(after)])
        return rows[::-1]

    @cached_property
    def _ways(self) -> NDArray[np.int64]:
        return np.array(self._counted)

    def __len__(self) -> int:
        return self._counted[0][self.size] - 1

    def masks(self, choice: NDArray[np.int64]) -> U64:
        """A row for each chosen set: a mask of bits for each attribute of the record."""
        rest = np.asarray(choice, dtype=np.int64) + 1
        room = np.full(len(rest), self.size)
        found = np.zeros((len(rest), len(self._widths)), dtype=np.uint64)
        for place, ways in enumerate(self._ways[1:]):
            # The sets that leave this attribute alone come first; then, for each mask, as many as have room for it.
            untouched = ways[room]
            touches = rest >= untouched
            mask, inner = np.divmod(rest - untouched, ways[np.maximum(room - 1, 0)])
            found[:, place] = np.where(touches, mask + 1, 0)
            rest = np.where(touches, inner, rest)
            room = room - touches
        return found

    def numbers(self, masks: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of the sets with these rows of masks, each of at least one bit and at most `size` attributes."""
        given = np.asarray(masks).astype(np.int64)
        found = np.full(len(given), -1)
        room = np.full(len(given), self.size)
        for place, ways in enumerate(self._ways[1:]):
            mask = given[:, place]
            touches = mask > 0
            found += np.where(touches, ways[room] + (mask - 1) * ways[np.maximum(room - 1, 0)], 0)
            room = room - touches
        return found

    def view(self, index: int) -> View:
        rest, room, chosen = index + 1, self.size, []
        for name, width, ways in zip(self.held.names, self._widths, self._counted[1:], strict=True):
            if rest >= ways[room]:  # as in `masks`, without an array for one row
                mask, rest = divmod(rest - ways[room], ways[room - 1])
                chosen += [(name, bit) for bit in range(width) if mask + 1 >> (width - 1 - bit) & 1]
                room -= 1
        return Parity(self.held, tuple(chosen))

    def sizes_of(self, choice: NDArray[np.int64]) -> U64:
        return np.full(len(choice), 2, dtype=np.uint64)

    def shown(self, choice: NDArray[np.int64], codes: U64) -> U64:
        odd: U64 = np.bitwise_count(codes & self.masks(choice)).sum(axis=1, dtype=np.uint64) & np.uint64(1)
        return odd

    def to_json(self) -> Json:
        return {"kind": self.kind, "size": self.size}

    @classmethod
    def from_json(cls, document: Json, held: Record) -> Parities:
        (size,) = take(document, cls.kind, "size")
        return cls(held, size)
