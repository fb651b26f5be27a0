"""Views of bits: segments of strings, segments with a channel, and bits and parities of records.

An attribute of d values has ceil(log2 d) bits, those of its code, and none if d is 1. A bit is named by its attribute
and its number there, 0 for the highest. All bits of a record are also numbered, attribute after attribute, and a task
lists these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from veil.domain import Bits, Categories, Record, Text
from veil.entropy import Source
from veil.errors import ParameterError, WireError
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.view.base import Codes1, View, held_domain


@dataclass(frozen=True)
class Segment(View):
    """Bits start .. stop - 1 of a string, counted from its first bit.

    >>> from veil.entropy import Words
    >>> Segment(Bits(8), 0, 3).apply(np.array([0b10110101], dtype=np.uint64), Words(b"")).tolist()
    [5]
    """

    held: Bits | Text
    start: int
    stop: int
    kind = "segment"

    def __post_init__(self) -> None:
        if not isinstance(self.held, (Bits, Text)):
            raise ParameterError("a segment is cut from Bits or Text")
        if not is_int(self.start) or not is_int(self.stop) or not 0 <= self.start < self.stop <= self.held.bits:
            raise ParameterError(f"a segment lies within the {self.held.bits} bits, from start to stop")
        convert_int_fields(self, "start", "stop")

    @property
    def domain(self) -> Bits:
        return Bits(self.stop - self.start)

    def apply(self, codes: Any, source: Source) -> Codes1:
        width, drop = self.stop - self.start, self.held.bits - self.stop
        if not self.held.code_bytes:
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
        return {"kind": "segment", "held": self.held.to_json(), "start": self.start, "stop": self.stop}

    @classmethod
    def from_json(cls, document: Json) -> Segment:
        held, start, stop = take(document, "segment", "held", "start", "stop")
        return cls(held_domain(held, Bits, Text), start, stop)


def prefix(held: Bits | Text, bits: int) -> Segment:
    """The first `bits` bits of a string (PEM)."""
    return Segment(held, 0, bits)


@dataclass(frozen=True)
class ChannelSegment(View):
    """The channel that a public hash puts the value in, and one segment of it behind: h(value) 2^width + segment.

    >>> from veil.entropy import Words
    >>> view = ChannelSegment(Bits(8), channels=4, start=0, stop=4)
    >>> view.domain.bits, view.apply(np.array([0xAB], dtype=np.uint64), Words(b"")).tolist()
    (6, [58])
    """

    held: Bits | Text
    channels: int
    start: int
    stop: int
    kind = "channel-segment"

    def __post_init__(self) -> None:
        if not is_int(self.channels) or not 2 <= self.channels <= 2**16:
            raise ParameterError("there are between 2 and 2^16 channels")
        Segment(self.held, self.start, self.stop)  # refuses what is no segment
        convert_int_fields(self, "channels", "start", "stop")
        if self.domain.bits > 64:
            raise ParameterError("a channel and a segment fit into 64 bits")

    @property
    def _segment(self) -> Segment:
        return Segment(self.held, self.start, self.stop)

    @property
    def domain(self) -> Bits:
        return Bits((self.channels - 1).bit_length() + self.stop - self.start)

    def apply(self, codes: Any, source: Source) -> NDArray[Any]:
        from veil.kernels.hashing import splitmix64_each

        mixed = np.zeros(len(codes), dtype=np.uint64)
        for first in range(0, self.held.bits, 64):  # eight bytes after the other
            piece = Segment(self.held, first, min(first + 64, self.held.bits)).apply(codes, source)
            mixed = splitmix64_each(mixed ^ piece)
        channel = (mixed >> np.uint64(32)) * np.uint64(self.channels) >> np.uint64(32)
        width = np.uint64(self.stop - self.start)
        return np.asarray(channel << width | self._segment.apply(codes, source))

    def to_json(self) -> Json:
        where = {"channels": self.channels, "start": self.start, "stop": self.stop}
        return {"kind": "channel-segment", "held": self.held.to_json(), **where}

    @classmethod
    def from_json(cls, document: Json) -> ChannelSegment:
        held, *where = take(document, "channel-segment", "held", "channels", "start", "stop")
        return cls(held_domain(held, Bits, Text), *where)


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


Bit = tuple[str, int]
"""An attribute's name and the number of one of its bits, 0 for the highest."""
MOST_BITS = 52


def width_of(size: int) -> int:
    """How many bits the codes of so many values have.

    >>> [width_of(size) for size in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (size - 1).bit_length()


def bits_of(record: Record) -> tuple[Bit, ...]:
    """All bits of a record in the order of their numbers.

    >>> bits_of(Record.of(sex=2, age=5))
    (('sex', 0), ('age', 0), ('age', 1), ('age', 2))
    """
    return tuple((name, bit) for name, part in record.attributes for bit in range(width_of(part.size)))


def numbers_of(record: Record, bits: Any) -> tuple[int, ...]:
    """The numbers of some bits, increasing; refuses what is no set of bits of the record."""
    return _numbers(bits_of(record), bits)


def _numbers(every: tuple[Bit, ...], bits: Any) -> tuple[int, ...]:
    known = {bit: number for number, bit in enumerate(every)}
    try:
        found = sorted(known[name, bit] for name, bit in bits)
    except (KeyError, TypeError, ValueError):
        raise ParameterError(
            "bits are pairs of an attribute's name and the number of one of its bits, 0 for the highest"
        ) from None
    if not found or len(set(found)) != len(found):
        raise ParameterError("at least one bit is chosen, and each once")
    return tuple(found)


class _Bits(View):
    """Some bits of a record. Subclasses say what they show of them."""

    held: Record
    bits: tuple[Bit, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.held, Record):
            raise ParameterError("bits are those of the attributes of a Record")
        every = bits_of(self.held)
        object.__setattr__(self, "bits", tuple(every[number] for number in _numbers(every, self.bits)))

    @cached_property
    def _columns(self) -> tuple[tuple[int, int], ...]:
        """For each bit, the place of its attribute and how far its code is shifted."""
        place = {name: i for i, name in enumerate(self.held.names)}
        widths = [width_of(part.size) for part in self.held.parts]
        return tuple((place[name], widths[place[name]] - 1 - bit) for name, bit in self.bits)

    def _each(self, codes: Any) -> list[NDArray[np.uint64]]:
        return [codes[:, place] >> np.uint64(shift) & np.uint64(1) for place, shift in self._columns]

    def to_json(self) -> Json:
        return {"kind": self.kind, "held": self.held.to_json(), "bits": list(numbers_of(self.held, self.bits))}

    @classmethod
    def from_json(cls, document: Json) -> Self:
        held, numbers = take(document, cls.kind, "held", "bits")
        record = held_domain(held, Record)
        every = bits_of(record)
        if not isinstance(numbers, list) or not all(is_int(number) and 0 <= number < len(every) for number in numbers):
            raise WireError("bits are listed by their numbers in the record")
        return cls(record, tuple(every[number] for number in numbers))  # type: ignore[call-arg]  # both have two fields


@dataclass(frozen=True)
class BitsOf(_Bits):
    """Some bits of a record's attributes as one index: the last bit varies fastest.

    >>> from veil.entropy import Words
    >>> view = BitsOf(Record.of(sex=2, age=5), (("sex", 0), ("age", 0), ("age", 2)))
    >>> view.apply(np.array([[1, 4], [0, 3]], dtype=np.uint64), Words(b"")).tolist()
    [6, 1]
    """

    held: Record
    bits: tuple[Bit, ...]
    kind = "bits-of"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bits) > MOST_BITS:
            raise ParameterError(f"at most {MOST_BITS} bits are shown as one index")

    @property
    def domain(self) -> Categories:
        return Categories.range(1 << len(self.bits))

    def apply(self, codes: Any, source: Source) -> Codes1:
        index = np.zeros(len(codes), dtype=np.uint64)
        for own in self._each(codes):
            index = index << np.uint64(1) | own
        return index


@dataclass(frozen=True)
class Parity(_Bits):
    """Whether an odd number of these bits is set: 1 if so, else 0. One Fourier coefficient of a record (Walsh).

    The mean of (-1)^parity over all people is the coefficient of these bits; all coefficients of the bits of some
    attributes are the table of these attributes, transformed.

    >>> from veil.entropy import Words
    >>> view = Parity(Record.of(sex=2, age=5), (("sex", 0), ("age", 0), ("age", 2)))
    >>> view.apply(np.array([[1, 4], [0, 3]], dtype=np.uint64), Words(b"")).tolist()
    [0, 1]
    """

    held: Record
    bits: tuple[Bit, ...]
    kind = "parity"

    @property
    def domain(self) -> Categories:
        return Categories.range(2)

    def apply(self, codes: Any, source: Source) -> Codes1:
        parity = np.zeros(len(codes), dtype=np.uint64)
        for own in self._each(codes):
            parity ^= own
        return parity
