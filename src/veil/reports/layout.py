"""The layout of a report: columns of unsigned integers and packed bits, of fixed length.

A `Layout` lists the columns of a report and the allowed values of each. `veil.wire` frames reports for transport; the
mechanisms give the columns their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.errors import WireError

Array = NDArray[Any]
Columns = Mapping[str, Array]
Rows = slice | NDArray[Any]


def byte_width(bound: int) -> int:
    """Bytes of the smallest unsigned integer that holds every number below `bound`.

    >>> byte_width(256), byte_width(257)
    (1, 2)
    """
    return next(width for width in (1, 2, 4, 8) if bound <= 1 << 8 * width)


@dataclass(frozen=True)
class Field:
    """One column: `count` unsigned little-endian integers of `width` bytes, each below `bound`.

    `bits` is for packed bits: their number, lowest first, the rest of the last byte zero.
    """

    name: str
    bound: int
    count: int = 1
    bits: int | None = None
    width: int = 0
    signed: bool = False

    def __post_init__(self) -> None:
        if not self.width:
            object.__setattr__(self, "width", byte_width(self.bound))

    @staticmethod
    def packed(name: str, bits: int) -> Field:
        """A column of packed bits."""
        return Field(name, bound=256, count=-(-bits // 8), bits=bits)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"<{'i' if self.signed else 'u'}{self.width}")

    @property
    def size(self) -> int:
        """Bytes that the column takes in a report."""
        return self.width * self.count

    @property
    def is_vector(self) -> bool:
        return self.count > 1 or self.bits is not None

    def shape(self, rows: int) -> tuple[int, ...]:
        return (rows, self.count) if self.is_vector else (rows,)

    def merged(self, other: Field) -> Field:
        """A column wide enough for either: the branches of a OneOf share their columns by name."""
        packed = self.bits is not None and other.bits is not None
        return Field(
            self.name,
            bound=max(self.bound, other.bound),
            count=max(self.count, other.count),
            bits=max(self.bits or 0, other.bits or 0) if packed else None,
            width=max(self.width, other.width),
        )

    def narrow(self, column: Array) -> Array:
        """The part of a wider column that is this field; refuses one with anything in the rest."""
        if column.ndim == 2 and not self.is_vector:
            if column[:, 1:].any():
                raise WireError(f"column {self.name!r} has bytes where its question has none")
            column = column[:, 0]
        elif column.ndim == 2 and column.shape[1] > self.count:
            if column[:, self.count :].any():
                raise WireError(f"column {self.name!r} has bytes where its question has none")
            column = column[:, : self.count]
        return column

    def check(self, column: Array) -> None:
        """Refuse a column of another type or shape, or with a number out of range."""
        if column.shape != self.shape(len(column)) or column.dtype.kind != self.dtype.kind:
            raise WireError(f"column {self.name!r} does not have the type and shape of its task")
        if not self.signed and len(column) and int(column.max(initial=0)) >= self.bound:
            raise WireError(f"column {self.name!r} holds a number that its task cannot produce")
        if self.bits is not None and self.bits % 8 and (column[:, -1] >> (self.bits % 8)).any():
            raise WireError(f"column {self.name!r} has bits set beyond its {self.bits}")


@dataclass(frozen=True)
class Layout:
    """The columns of a report, in the order in which their bytes stand in it.

    >>> Layout((Field("seed", 2**64), Field("bucket", 4))).size
    9
    """

    fields: tuple[Field, ...]

    @cached_property
    def size(self) -> int:
        """Bytes of one report's payload."""
        return sum(field.size for field in self.fields)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def prefixed(self, prefix: str) -> Layout:
        return Layout(tuple(replace(field, name=prefix + field.name) for field in self.fields))

    @staticmethod
    def joined(layouts: Iterable[Layout]) -> Layout:
        return Layout(tuple(field for layout in layouts for field in layout.fields))

    @staticmethod
    def overlaid(layouts: Iterable[Layout]) -> Layout:
        """One layout that holds a report of any of the given ones; columns of the same name share their place."""
        merged: dict[str, Field] = {}
        for layout in layouts:
            for field in layout.fields:
                merged[field.name] = merged[field.name].merged(field) if field.name in merged else field
        return Layout(tuple(merged.values()))

    def empty(self, rows: int) -> dict[str, Array]:
        """Columns of zeros."""
        return {field.name: np.zeros(field.shape(rows), field.dtype) for field in self.fields}

    def check(self, columns: Columns) -> None:
        """Refuse columns that are not exactly these, or that hold what no report can."""
        if tuple(columns) != self.names:
            raise WireError(f"expected the columns {', '.join(self.names)}")
        if len({len(column) for column in columns.values()}) > 1:
            raise WireError("columns of different lengths")
        for field in self.fields:
            field.check(columns[field.name])

    def pack(self, columns: Columns) -> bytes:
        """Rows of bytes, one report after another."""
        rows = len(next(iter(columns.values())))
        packed = np.zeros(rows, dtype=self._record)
        for field in self.fields:
            packed[field.name] = columns[field.name]
        return packed.tobytes()

    def unpack(self, data: bytes) -> dict[str, Array]:
        """The columns behind rows of bytes; the length must be a whole number of reports."""
        if len(data) % self.size:
            raise WireError(f"expected a multiple of {self.size} bytes, got {len(data)}")
        packed = np.frombuffer(data, dtype=self._record)
        columns = {field.name: np.ascontiguousarray(packed[field.name]) for field in self.fields}
        self.check(columns)
        return columns

    @cached_property
    def _record(self) -> np.dtype[Any]:
        return np.dtype([(f.name, f.dtype, (f.count,)) if f.is_vector else (f.name, f.dtype) for f in self.fields])
