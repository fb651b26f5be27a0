"""Integers and real numbers between two bounds. An Interval whose bounds are times holds times."""

from __future__ import annotations

import datetime as dt
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain.base import EXACT, Domain
from veil.domain.inputs import Column, as_int64, as_seconds, read_column, refuse_at, type_name
from veil.errors import DomainError, ParameterError, WireError
from veil.privacy import decimal_text
from veil.tools.json_documents import Json, number, take
from veil.tools.numbers import convert_int_fields, is_int

Floats = NDArray[np.float64]
Unit = Literal["number", "time"]

_EPOCH = dt.datetime(1970, 1, 1)  # times are kept without a zone, as UTC
_YEARS = (-62_135_596_800.0, 253_402_300_799.0)  # the first and the last second of the years 1 to 9999


class Numeric(Domain):
    """A domain whose codes are in the order of its values, which are numbers: cell i is [edges(i), edges(i + 1))."""

    @abstractmethod
    def numbers(self, values: Any) -> Floats:
        """Values as finite doubles, whether within the ends or not; times as seconds since 1970, UTC."""

    @abstractmethod
    def edges(self, cells: Any) -> Floats:
        """Where cells begin, as numbers; the cell after the last begins where the domain ends."""

    @abstractmethod
    def shown(self, number: float) -> Any:
        """A number as people write it: a time where the domain holds times."""

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value, as numbers."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What may be held, in the words of an error."""

    def clip(self, values: Any) -> tuple[NDArray[Any], int]:
        """Runs on the device: values moved to the nearer end where they lie outside, and how many were moved.

        Only ever done when asked for. The number is the device's to know: it is no part of any report.

        >>> values, moved = Interval(0.0, 10.0).clip([-3.0, 4.0, 12.0])
        >>> values.tolist(), moved
        ([0.0, 4.0, 10.0], 2)
        """
        lo, hi = self.ends
        numbers = self.numbers(values)
        return self.values_of(np.clip(numbers, lo, hi)), int(((numbers < lo) | (numbers > hi)).sum())

    def values_of(self, numbers: Floats) -> NDArray[Any]:
        """Numbers as `encode` takes them: times as times."""
        return numbers


@dataclass(frozen=True)
class Integers(Numeric):
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
        convert_int_fields(self, "lo", "hi")

    @property
    def size(self) -> int:
        return self.hi - self.lo + 1

    def encode(self, values: Any) -> NDArray[np.uint64]:
        integers = as_int64(read_column(values), self.expected)
        refuse_at((integers < self.lo) | (integers > self.hi), f"expected {self.expected}")
        return (integers - self.lo).astype(np.uint64)

    @property
    def expected(self) -> str:
        return f"integers from {self.lo} to {self.hi}"

    def decode(self, codes: Any) -> list[int]:
        return (np.asarray(codes, dtype=np.uint64).astype(np.int64) + self.lo).tolist()  # type: ignore[no-any-return]  # numpy's tolist is untyped

    def numbers(self, values: Any) -> Floats:
        return as_int64(read_column(values), "integers").astype(np.float64)

    def edges(self, cells: Any) -> Floats:
        # an integer stands for what rounds to it
        return np.asarray(self.lo - 0.5 + np.asarray(cells, dtype=np.float64))

    def shown(self, number: float) -> float:
        return float(number)

    def values_of(self, numbers: Floats) -> NDArray[Any]:
        return numbers.astype(np.int64)

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.lo), float(self.hi)

    def to_json(self) -> Json:
        return {"kind": "integers", "lo": self.lo, "hi": self.hi}

    @classmethod
    def from_json(cls, document: Json) -> Integers:
        return cls(*take(document, "integers", "lo", "hi"))


@dataclass(frozen=True)
class Interval(Numeric):
    """A real number between lo and hi, on a grid of `cells` equal cells; a cell decodes to its middle.

    The grid index of x is floor(((x - lo) / (hi - lo)) * cells), each operation in IEEE doubles, at most cells - 1.
    Dates and times are held as seconds since 1970 (UTC; times without a zone are taken as UTC) and come back as times.

    >>> Interval(0.0, 10.0, cells=5).encode([0.0, 3.9, 10.0]).tolist()
    [0, 1, 4]
    >>> year = Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1), cells=365)
    >>> year.encode([dt.datetime(2026, 2, 1, 12)]).tolist(), year.label(31)
    ([31], datetime.datetime(2026, 2, 1, 12, 0))
    """

    lo: float
    hi: float
    cells: int = 1 << 20
    unit: Unit = "number"
    kind = "interval"

    def __post_init__(self) -> None:
        given = [_end(end) for end in (self.lo, self.hi)]
        if given[0][1] != given[1][1] or self.unit not in ("number", "time"):
            raise ParameterError("an interval's ends are two numbers, or two dates or times")
        object.__setattr__(self, "lo", given[0][0])
        object.__setattr__(self, "hi", given[1][0])
        if given[0][1] == "time":
            object.__setattr__(self, "unit", "time")
        if not (math.isfinite(self.lo) and math.isfinite(self.hi - self.lo) and self.lo < self.hi):
            raise ParameterError("Interval(lo, hi) needs finite numbers with lo < hi, and a finite length")
        if self.unit == "time" and not _YEARS[0] <= self.lo < self.hi <= _YEARS[1]:
            raise ParameterError("an interval of times lies between the years 1 and 9999")
        if not is_int(self.cells) or not 1 <= self.cells <= 1 << 32:
            raise ParameterError("an interval has between 1 and 2^32 cells")
        convert_int_fields(self, "cells")

    @property
    def size(self) -> int:
        return self.cells

    @property
    def expected(self) -> str:
        if self.unit == "time":
            return f"times from {self.shown(self.lo)} to {self.shown(self.hi)}"
        return f"numbers from {self.lo:g} to {self.hi:g}"

    def encode(self, values: Any) -> NDArray[np.uint64]:
        numbers = self._read(read_column(values), self.expected)
        refuse_at(~((numbers >= self.lo) & (numbers <= self.hi)), f"expected {self.expected}")
        cells = np.floor((numbers - self.lo) / (self.hi - self.lo) * self.cells)
        return np.minimum(cells, self.cells - 1).astype(np.uint64)

    def numbers(self, values: Any) -> Floats:
        numbers = self._read(read_column(values), f"finite {'times' if self.unit == 'time' else 'numbers'}")
        refuse_at(~np.isfinite(numbers), "expected finite numbers")
        return numbers

    def _read(self, column: Column, expected: str) -> Floats:
        refuse_at(column.missing, f"expected {expected}; a value is missing")
        if self.unit == "time":
            return as_seconds(column, expected)
        if column.values.dtype.kind not in "iuf":
            raise DomainError(f"expected {expected}, got a column of {type_name(column.values)}")
        return column.values.astype(np.float64)

    def values_of(self, numbers: Floats) -> NDArray[Any]:
        return np.rint(numbers * 1e6).astype("datetime64[us]") if self.unit == "time" else numbers

    def decode(self, codes: Any) -> list[Any]:
        middles = self.edges(np.asarray(codes, dtype=np.float64) + 0.5)
        return [self.shown(float(middle)) for middle in middles]

    def edges(self, cells: Any) -> Floats:
        return np.asarray(self.lo + np.asarray(cells, dtype=np.float64) / self.cells * (self.hi - self.lo))

    def shown(self, number: float) -> Any:
        if self.unit == "number":
            return float(number)
        return _EPOCH + dt.timedelta(seconds=float(number))

    @property
    def ends(self) -> tuple[float, float]:
        return self.lo, self.hi

    def to_json(self) -> Json:
        unit = {} if self.unit == "number" else {"unit": self.unit}
        ends = {"lo": decimal_text(self.lo), "hi": decimal_text(self.hi)}
        return {"kind": "interval", **ends, "cells": self.cells, **unit}

    @classmethod
    def from_json(cls, document: Json) -> Interval:
        unit = ("unit",) if "unit" in document else ()
        lo, hi, cells, *units = take(document, "interval", "lo", "hi", "cells", *unit)
        if unit and units != ["time"]:
            raise WireError("an interval's unit is time, or is left out")
        return cls(number(lo), number(hi), cells, *units)


def _end(end: Any) -> tuple[float, Unit]:
    """An end as a number, and what it was given as."""
    if isinstance(end, (dt.date, np.datetime64)):
        return float(as_seconds(read_column([end]), "a date or a time")[0]), "time"
    try:
        if isinstance(end, bool):
            raise TypeError
        return float(end), "number"
    except (TypeError, ValueError):
        raise ParameterError("an interval's ends are numbers, dates or times") from None
    except OverflowError:
        raise ParameterError("an interval's ends are numbers that a double can hold") from None
