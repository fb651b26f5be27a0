"""Strings of bits and of text: domains that are too large to list, and whose prefixes mean something."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain.base import Domain
from veil.domain.inputs import read_column, refuse_at
from veil.errors import DomainError, ParameterError
from veil.tools.json_documents import Json, take
from veil.tools.numbers import convert_int_fields, is_int

__all__ = ["Bits", "Text"]


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
