"""Strings of bits and of text: domains that are too large to list, and whose prefixes are meaningful.

A search for frequent text goes through prefixes whose lengths are numbers of bits of the zero-padded UTF-8. Most
strings of bits begin no text: no character begins with their first byte, they hold an overlong character or half of a
surrogate pair, or other bytes follow a zero. The state of a prefix is one number: what the current character still
needs (Table 3-7 of the Unicode Standard), and the bits of an incomplete byte. `advance_utf8` steps from state to state,
and `utf8_endings` lists the strings of bits that can follow one. The normal form NFC is not considered.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain.base import Domain
from veil.domain.inputs import read_column, refuse_at
from veil.errors import DomainError, ParameterError
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int


@dataclass(frozen=True)
class Bits(Domain):
    """A string of m bits, given as an integer below 2^m (or, above 64 bits, also as big-endian bytes).

    Codes are uint64 up to 64 bits, rows of big-endian bytes above.

    >>> Bits(4).encode([0b1010]).tolist(), Bits(72).encode([1]).shape
    ([10], (1, 9))
    """

    bits: int
    kind = "bits"

    def __post_init__(self) -> None:
        if not is_int(self.bits) or not 1 <= self.bits <= 4096:
            raise ParameterError("Bits(m) needs between 1 and 4096 bits")
        convert_int_fields(self, "bits")

    @property
    def size(self) -> int:
        return 1 << self.bits

    @property
    def code_bytes(self) -> int:
        return 0 if self.bits <= 64 else -(-self.bits // 8)

    @property
    def expected(self) -> str:
        """What may be held, in the words of an error."""
        return f"strings of {self.bits} bits"

    def encode(self, values: Any) -> NDArray[Any]:
        expected = self.expected
        column = read_column(values)
        refuse_at(column.missing, f"expected {expected}; a value is missing")
        if column.values.dtype.kind in "iu" and not self.code_bytes:
            wrong = column.values < 0
            if self.bits < 64:
                wrong = wrong | (column.values >> self.bits).astype(np.bool_)
            refuse_at(wrong, f"expected {expected}")
            return column.values.astype(np.uint64)
        numbers = [self._number(value) for value in column.values.tolist()]
        refuse_at(np.array([n is None for n in numbers], dtype=np.bool_), f"expected {expected}")
        if not self.code_bytes:
            return np.array(numbers, dtype=np.uint64)
        joined = b"".join((n or 0).to_bytes(self.code_bytes, "big") for n in numbers)
        return np.frombuffer(joined, dtype=np.uint8).reshape(len(numbers), self.code_bytes)

    def _number(self, value: Any) -> int | None:
        if isinstance(value, (bytes, bytearray)) and len(value) == -(-self.bits // 8):
            value = int.from_bytes(value, "big")
        return value if is_int(value) and 0 <= value < self.size else None

    def decode(self, codes: Any) -> list[int]:
        if not self.code_bytes:
            return [int(code) for code in np.asarray(codes, dtype=np.uint64)]
        return [int.from_bytes(row.tobytes(), "big") for row in np.asarray(codes, dtype=np.uint8)]

    def to_json(self) -> Json:
        return {"kind": "bits", "bits": self.bits}

    @classmethod
    def from_json(cls, document: Json) -> Bits:
        return cls(*take(document, "bits", "bits"))


@dataclass(frozen=True)
class Text(Domain):
    """A string, as Unicode NFC in at most `max_bytes` bytes of UTF-8, padded with zeros; longer ones are cut there.

    >>> Text(4).decode(Text(4).encode(["tea", "coffee"]))
    ['tea', 'coff']
    """

    max_bytes: int
    kind = "text"

    def __post_init__(self) -> None:
        if not is_int(self.max_bytes) or not 1 <= self.max_bytes <= 512:
            raise ParameterError("Text(max_bytes) needs between 1 and 512 bytes")
        convert_int_fields(self, "max_bytes")

    @property
    def bits(self) -> int:
        return 8 * self.max_bytes

    @property
    def size(self) -> int:
        return 1 << self.bits

    @property
    def listable(self) -> bool:
        return False

    @property
    def code_bytes(self) -> int:
        return self.max_bytes

    def encode(self, values: Any) -> NDArray[np.uint8]:
        column = read_column(values)
        refuse_at(column.missing, "expected strings; a value is missing")
        wrong = np.array([not isinstance(v, str) or "\0" in v for v in column.values], dtype=np.bool_)
        refuse_at(wrong, "expected strings without zero characters")
        rows = [self._bytes(value) for value in column.values]
        return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), self.max_bytes)

    def _bytes(self, value: str) -> bytes:
        try:
            encoded = unicodedata.normalize("NFC", value).encode("utf-8")
        except UnicodeEncodeError:
            raise DomainError("expected strings that can be written as UTF-8") from None
        return encoded[: self.max_bytes].ljust(self.max_bytes, b"\0")

    def decode(self, codes: Any) -> list[str]:
        rows = np.asarray(codes, dtype=np.uint8)
        return [row.tobytes().rstrip(b"\0").decode("utf-8", errors="backslashreplace") for row in rows]

    def to_json(self) -> Json:
        return {"kind": "text", "max_bytes": self.max_bytes}

    @classmethod
    def from_json(cls, document: Json) -> Text:
        return cls(*take(document, "text", "max_bytes"))


Utf8States = NDArray[np.int64]

# What may follow: a character; one, two or three more bytes of one; the second byte after E0, ED, F0 and F4; padding.
_CHARACTER, _ONE, _TWO, _THREE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4, _PADDING = range(9)
_NOTHING = 9
_RULES = (
    (_CHARACTER, 0x00, 0x00, _PADDING),
    (_CHARACTER, 0x01, 0x7F, _CHARACTER),
    (_CHARACTER, 0xC2, 0xDF, _ONE),
    (_CHARACTER, 0xE0, 0xE0, _AFTER_E0),
    (_CHARACTER, 0xE1, 0xEC, _TWO),
    (_CHARACTER, 0xED, 0xED, _AFTER_ED),
    (_CHARACTER, 0xEE, 0xEF, _TWO),
    (_CHARACTER, 0xF0, 0xF0, _AFTER_F0),
    (_CHARACTER, 0xF1, 0xF3, _THREE),
    (_CHARACTER, 0xF4, 0xF4, _AFTER_F4),
    (_ONE, 0x80, 0xBF, _CHARACTER),
    (_TWO, 0x80, 0xBF, _ONE),
    (_THREE, 0x80, 0xBF, _TWO),
    (_AFTER_E0, 0xA0, 0xBF, _ONE),
    (_AFTER_ED, 0x80, 0x9F, _ONE),
    (_AFTER_F0, 0x90, 0xBF, _TWO),
    (_AFTER_F4, 0x80, 0x8F, _TWO),
    (_PADDING, 0x00, 0x00, _PADDING),
)

# A state is 256 times what may follow, plus the bits of the byte that has begun behind a leading 1.
UTF8_START = 256 * _CHARACTER + 1
"""The state of the prefix of no bits."""
UTF8_IMPOSSIBLE = 256 * _NOTHING + 1
"""The state of everything that begins no text."""


@cache
def _utf8_after_byte() -> NDArray[np.int64]:
    """What may follow, by what might have followed before and by the byte that did."""
    table = np.full((_NOTHING + 1, 256), _NOTHING, dtype=np.int64)
    for before, first, last, after in _RULES:
        table[before, first : last + 1] = after
    return table


@lru_cache(maxsize=16)
def _utf8_after_bits(begun: int, bits: int) -> NDArray[np.int64]:
    """States by state and by `bits` more bits, where `begun` bits of a byte are there and no more than one is filled.

    Its rows are the states with `begun` bits, in increasing order.
    """
    whole = _utf8_after_byte()
    if begun + bits == 8:
        return np.asarray((256 * whole + 1).reshape(-1, 1 << bits))
    possible = (whole != _NOTHING).reshape(_NOTHING + 1, 1 << (begun + bits), -1).any(axis=2)
    kinds, last = np.indices(possible.shape)
    states = 256 * kinds + (1 << (begun + bits)) + last
    return np.asarray(np.where(possible, states, UTF8_IMPOSSIBLE).reshape(-1, 1 << bits))


def advance_utf8(states: Utf8States, begun: int, more: NDArray[np.uint64], bits: int) -> Utf8States:
    """The states after `bits` more bits each, given as numbers; `begun` bits of a byte are there already.

    >>> after = advance_utf8(np.array([UTF8_START, UTF8_START]), 0, np.array([0b0110, 0b1000], dtype=np.uint64), 4)
    >>> (after == UTF8_IMPOSSIBLE).tolist()  # no character begins with the bits 1000
    [False, True]
    """
    while bits:
        taken = min(8 - begun, bits)
        bits -= taken
        now = (more >> np.uint64(bits)) & np.uint64((1 << taken) - 1)
        kinds, last = states >> 8, (states & 255) - (1 << begun)
        dead = states == UTF8_IMPOSSIBLE
        rows = np.where(dead, 0, kinds * (1 << begun) + last)
        states = np.where(dead, UTF8_IMPOSSIBLE, _utf8_after_bits(begun, taken)[rows, now.astype(np.int64)])
        begun = (begun + taken) % 8
    return states


def _utf8_choices(state: int, bits: int) -> tuple[NDArray[np.uint64], Utf8States, int]:
    """What may come next, up to the end of the byte: bits as numbers, the states after them, and how many bits."""
    begun = (state & 255).bit_length() - 1
    taken = min(8 - begun, bits)
    every = np.arange(1 << taken, dtype=np.uint64)
    after = advance_utf8(np.full(1 << taken, state), begun, every, taken)
    possible = after != UTF8_IMPOSSIBLE
    return every[possible], after[possible], taken


@lru_cache(maxsize=4096)
def count_utf8_endings(state: int, bits: int) -> int:
    """How many strings of `bits` bits can follow.

    >>> count_utf8_endings(UTF8_START, 8)  # 128 bytes of one character each, and 51 that begin a longer one
    179
    """
    if state == UTF8_IMPOSSIBLE or not bits:
        return int(state != UTF8_IMPOSSIBLE)
    _, after, taken = _utf8_choices(state, bits)
    kinds, counts = np.unique(after, return_counts=True)
    return sum(
        int(count) * count_utf8_endings(int(kind), bits - taken) for kind, count in zip(kinds, counts, strict=True)
    )


@lru_cache(maxsize=64)
def utf8_endings(state: int, bits: int) -> NDArray[np.uint64]:
    """The strings of `bits` bits that can follow, as numbers in increasing order.

    >>> utf8_endings(UTF8_START, 3).tolist()  # 100 and 101 begin no character
    [0, 1, 2, 3, 6, 7]
    """
    if state == UTF8_IMPOSSIBLE or not bits:
        return np.zeros(int(state != UTF8_IMPOSSIBLE), dtype=np.uint64)
    first, after, taken = _utf8_choices(state, bits)
    rest = bits - taken
    made = np.concatenate(
        [(now << np.uint64(rest)) | utf8_endings(int(kind), rest) for now, kind in zip(first, after, strict=True)]
    )
    made.setflags(write=False)
    return made
