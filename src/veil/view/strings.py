"""Views of strings of bits and text: segments, prefixes, and segments behind a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Bits, Text
from veil.entropy import Source
from veil.errors import ParameterError
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int
from veil.view.base import Codes1, View, held_domain

__all__ = ["ChannelSegment", "Segment", "prefix"]


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
