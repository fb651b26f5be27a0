"""Whole and real numbers between two ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.canonical import Json, number, take
from veil.domain.base import EXACT, Domain, is_int, own_ints
from veil.errors import DomainError, ParameterError
from veil.inputs import as_int64, read_column, refuse_at, type_name
from veil.privacy import decimal_text

__all__ = ["Integers", "Interval"]


@dataclass(frozen=True)
class Integers(Domain):
    """One of the integers lo .. hi, both included.

    >>> Integers(18, 99).encode([18, 20]).tolist()
    [0, 2]
    """

    lo: int
    hi: int
    kind = "integers"

    def __post_init__(self) -> None:
        if not is_int(self.lo) or not is_int(self.hi) or not -EXACT <= self.lo <= self.hi <= EXACT:
            raise ParameterError("Integers(lo, hi) needs integers with lo <= hi, below 2^53")
        own_ints(self, "lo", "hi")

    @property
    def size(self) -> int:
        return self.hi - self.lo + 1

    def encode(self, values: Any) -> NDArray[np.uint64]:
        expected = f"integers from {self.lo} to {self.hi}"
        integers = as_int64(read_column(values), expected)
        refuse_at((integers < self.lo) | (integers > self.hi), f"expected {expected}")
        return (integers - self.lo).astype(np.uint64)

    def decode(self, codes: Any) -> list[int]:
        return (np.asarray(codes, dtype=np.uint64).astype(np.int64) + self.lo).tolist()  # type: ignore[no-any-return]  # numpy's tolist is untyped

    def to_json(self) -> Json:
        return {"kind": "integers", "lo": self.lo, "hi": self.hi}

    @classmethod
    def from_json(cls, document: Json) -> Integers:
        return cls(*take(document, "integers", "lo", "hi"))


@dataclass(frozen=True)
class Interval(Domain):
    """A real number between lo and hi, on a grid of `cells` equal cells; a cell decodes to its middle.

    The grid index of x is floor(((x - lo) / (hi - lo)) * cells), each operation in IEEE doubles, at most cells - 1.

    >>> Interval(0.0, 10.0, cells=5).encode([0.0, 3.9, 10.0]).tolist()
    [0, 1, 4]
    """

    lo: float
    hi: float
    cells: int = 1 << 20
    kind = "interval"

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "lo", float(self.lo))
            object.__setattr__(self, "hi", float(self.hi))
        except (TypeError, ValueError):
            raise ParameterError("an interval's ends are numbers") from None
        if not (math.isfinite(self.lo) and math.isfinite(self.hi - self.lo) and self.lo < self.hi):
            raise ParameterError("Interval(lo, hi) needs finite numbers with lo < hi, and a finite length")
        if not is_int(self.cells) or not 1 <= self.cells <= 1 << 32:
            raise ParameterError("an interval has between 1 and 2^32 cells")
        own_ints(self, "cells")

    @property
    def size(self) -> int:
        return self.cells

    def encode(self, values: Any) -> NDArray[np.uint64]:
        expected = f"numbers from {self.lo:g} to {self.hi:g}"
        column = read_column(values)
        refuse_at(column.missing, f"expected {expected}; a value is missing")
        if column.values.dtype.kind not in "iuf":
            raise DomainError(f"expected {expected}, got a column of {type_name(column.values)}")
        numbers = column.values.astype(np.float64)
        refuse_at(~((numbers >= self.lo) & (numbers <= self.hi)), f"expected {expected}")
        cells = np.floor((numbers - self.lo) / (self.hi - self.lo) * self.cells)
        return np.minimum(cells, self.cells - 1).astype(np.uint64)

    def decode(self, codes: Any) -> list[float]:
        middles = self.lo + (np.asarray(codes, dtype=np.float64) + 0.5) / self.cells * (self.hi - self.lo)
        return [float(middle) for middle in middles]

    def to_json(self) -> Json:
        return {"kind": "interval", "lo": decimal_text(self.lo), "hi": decimal_text(self.hi), "cells": self.cells}

    @classmethod
    def from_json(cls, document: Json) -> Interval:
        lo, hi, cells = take(document, "interval", "lo", "hi", "cells")
        return cls(number(lo), number(hi), cells)
