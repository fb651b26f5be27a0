"""Public columns of a table: values that are known of a person, stored beside the report as an integer.

Each kind of column encodes a value as an integer on the device, and gives the DuckDB expression that decodes it. An
integer that no device of the table sends is read as NULL, so a forged report cannot make a query fail.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import Categories
from veil.domain.inputs import Column, as_seconds, read_column, refuse_at, type_name
from veil.domain.text_values import as_times
from veil.errors import DomainError, ParameterError
from veil.survey import Public
from veil.tools.json_documents import Json, take

Integers64 = NDArray[np.int64]

_MOST = 10**18  # DECIMAL(18, s) holds integers below it
_EXACT = 2.0**53
_DAY = 86_400
_YEARS = (-719_162, 2_932_896)  # days since 1970 of 0001-01-01 and 9999-12-31


def identifier(name: str) -> str:
    """A name as it stands in SQL, whatever characters it has.

    >>> identifier('the "os"')
    '"the ""os\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Text as it stands in SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


class PublicColumn(ABC):
    """A public column: its name, how its values become integers, and how DuckDB reads them back."""

    name: str
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        _check_text(self.name, "a public column's name")

    @property
    def public(self) -> Public:
        """How the column stands in the survey."""
        return Public(self.name)

    @property
    def stored(self) -> str:
        """The column of integers as it stands in SQL."""
        return identifier(self.public.field.name)

    @property
    def is_text(self) -> bool:
        """Whether values are read as text from a text file."""
        return True

    @property
    @abstractmethod
    def sql(self) -> str:
        """The DuckDB expression of the value, over the stored column of integers."""

    @abstractmethod
    def encode(self, values: Any) -> Integers64:
        """Runs on the device: values as integers; refuses what does not belong, and never shows it."""

    @abstractmethod
    def decode(self, integers: Any) -> list[Any]:
        """The values behind integers; None for one that no device sends."""

    @abstractmethod
    def to_json(self) -> Json:
        """The column as it stands in a study file."""

    def _between(self, first: int, last: int, value: str) -> str:
        return f"CASE WHEN {self.stored} BETWEEN {first} AND {last} THEN {value} END"


@dataclass(frozen=True)
class Measure(PublicColumn):
    """A number on a decimal scale, as DECIMAL(18, scale): what SUM and AVG are taken of.

    Values are rounded to the scale, halves away from zero.

    >>> Measure("price", 2).encode([1.5, 2.675, -3]).tolist(), Measure("price", 2).decode([150])
    ([150, 268, -300], [Decimal('1.50')])
    """

    name: str
    scale: int = 0
    kind: ClassVar[str] = "measure"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", self.public.scale)

    @property
    def public(self) -> Public:
        return Public(self.name, self.scale)

    @property
    def is_text(self) -> bool:
        return False

    @property
    def sql(self) -> str:
        whole = f"TRY_CAST({self.stored} AS DECIMAL(18, 0))"
        if not self.scale:
            return whole
        unit = f"CAST(0.{'1':>0{self.scale}} AS DECIMAL({self.scale}, {self.scale}))"
        return f"CAST({whole} * {unit} AS DECIMAL(18, {self.scale}))"

    def encode(self, values: Any) -> Integers64:
        column, unit = read_column(values), 10**self.scale
        refuse_at(column.missing, f"expected {self._expected}; a value is missing")
        numbers = column.values
        if numbers.dtype == object:
            return self._encode_objects(column)
        if numbers.dtype.kind == "f":
            scaled = np.abs(numbers.astype(np.float64) * unit)
            # beyond 2^53 a double is no longer known to its last unit: whole numbers and Decimals are
            refuse_at(~(scaled <= _EXACT), f"expected {self._expected}, of doubles at most 2^53 units of the scale")
            whole = np.trunc(scaled)
            rounded = (whole + (scaled - whole >= 0.5)).astype(np.int64)
            return np.asarray(np.where(numbers < 0, -rounded, rounded))
        if numbers.dtype.kind not in "iu":
            raise DomainError(f"expected {self._expected}, got a column of {type_name(numbers)}")
        most = (_MOST - 1) // unit
        refuse_at((numbers > most) | (numbers < -most) if numbers.dtype.kind == "i" else numbers > most, self._large)
        return np.asarray(numbers.astype(np.int64) * unit)

    def _encode_objects(self, column: Column) -> Integers64:
        """Whole numbers and Decimals of any size among others, one by one and exactly."""
        found, odd, large = np.zeros(len(column), np.int64), np.zeros(len(column), bool), np.zeros(len(column), bool)
        step = Decimal(1).scaleb(-self.scale)
        for row, value in enumerate(column.values):
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number, Decimal)):
                odd[row] = True
                continue
            exact = value if isinstance(value, Decimal) else Decimal(value.item() if hasattr(value, "item") else value)
            try:
                units = int(exact.quantize(step, ROUND_HALF_UP).scaleb(self.scale))
            except (InvalidOperation, ValueError, OverflowError):
                large[row] = True
                continue
            large[row] = abs(units) >= _MOST
            found[row] = 0 if large[row] else units
        refuse_at(odd, f"expected {self._expected}")
        refuse_at(large, self._large)
        return found

    def decode(self, integers: Any) -> list[Decimal | None]:
        return [Decimal(i).scaleb(-self.scale) if abs(i) < _MOST else None for i in np.asarray(integers).tolist()]

    @property
    def _expected(self) -> str:
        return f"finite numbers (public column {self.name!r})"

    @property
    def _large(self) -> str:
        return f"expected {self._expected} of at most {18 - self.scale} digits before the point"

    def to_json(self) -> Json:
        return {"kind": self.kind, "name": self.name, "scale": self.scale}

    @classmethod
    def from_json(cls, document: Any) -> Measure:
        """Read a column back."""
        return cls(*take(document, cls.kind, "name", "scale"))


@dataclass(frozen=True)
class Category(PublicColumn):
    """One of a list of labels, as VARCHAR.

    >>> os = Category("os", ("ios", "android"))
    >>> os.encode(["android", "ios"]).tolist(), os.decode([1])
    ([1, 0], ['android'])
    """

    name: str
    labels: tuple[str, ...]
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.labels, str) or not isinstance(self.labels, Sequence):
            raise ParameterError("labels of a public column are a list of text")
        for label in self.labels:
            _check_text(label, "a label of a public column", empty=True)
        object.__setattr__(self, "labels", Categories(self.labels).labels)

    @cached_property
    def _domain(self) -> Categories:
        return Categories(self.labels)

    @property
    def sql(self) -> str:
        listed = ", ".join(map(literal, self.labels))
        return self._between(0, len(self.labels) - 1, f"[{listed}][{self.stored} + 1]")

    def encode(self, values: Any) -> Integers64:
        try:
            return self._domain.encode(values).astype(np.int64)
        except DomainError as problem:
            expected = f"{problem.expected} (public column {self.name!r})"
            raise DomainError(expected, problem.row, problem.count) from None

    def decode(self, integers: Any) -> list[str | None]:
        return [self.labels[i] if 0 <= i < len(self.labels) else None for i in np.asarray(integers).tolist()]

    def to_json(self) -> Json:
        return {"kind": self.kind, "name": self.name, "labels": list(self.labels)}

    @classmethod
    def from_json(cls, document: Any) -> Category:
        """Read a column back."""
        name, labels = take(document, cls.kind, "name", "labels")
        return cls(name, tuple(labels) if isinstance(labels, list) else labels)


@dataclass(frozen=True)
class Moment(PublicColumn):
    """A day (as DATE) or a second (as TIMESTAMP), in UTC; what is finer is cut off.

    >>> Moment("bought").encode(["1970-01-02", "1970-01-03T23:00"]).tolist(), Moment("bought").decode([1])
    ([1, 2], [datetime.date(1970, 1, 2)])
    """

    name: str
    unit: Literal["day", "second"] = "day"
    kind: ClassVar[str] = "moment"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unit not in ("day", "second"):
            raise ParameterError('the unit of a moment is "day" or "second"')

    @property
    def sql(self) -> str:
        if self.unit == "day":
            return self._between(*_YEARS, f"DATE '1970-01-01' + CAST({self.stored} AS INTEGER)")
        return self._between(*self._ends, f"make_timestamp({self.stored} * 1000000)")

    @property
    def _ends(self) -> tuple[int, int]:
        first, last = _YEARS
        return (first, last) if self.unit == "day" else (first * _DAY, last * _DAY + _DAY - 1)

    def encode(self, values: Any) -> Integers64:
        column, expected = read_column(values), f"dates or times in ISO 8601 (public column {self.name!r})"
        held = column.values[~column.missing]
        if held.dtype.kind == "U" or (held.dtype == object and len(held) and all(isinstance(v, str) for v in held)):
            import pyarrow as pa

            column = read_column(as_times(pa.array(column.values, pa.string(), mask=column.missing)))
        seconds = as_seconds(column, expected)
        units = np.floor(seconds / _DAY if self.unit == "day" else seconds)
        first, last = self._ends
        refuse_at((units < first) | (units > last), f"expected {expected}, of the years 1 to 9999")
        return units.astype(np.int64)

    def decode(self, integers: Any) -> list[Any]:
        (first, last), epoch = self._ends, dt.datetime(1970, 1, 1)
        days = self.unit == "day"
        return [
            None if not first <= i <= last else (epoch.date() if days else epoch) + dt.timedelta(**{f"{self.unit}s": i})
            for i in np.asarray(integers).tolist()
        ]

    def to_json(self) -> Json:
        return {"kind": self.kind, "name": self.name, "unit": self.unit}

    @classmethod
    def from_json(cls, document: Any) -> Moment:
        """Read a column back."""
        return cls(*take(document, cls.kind, "name", "unit"))


def _check_text(text: Any, what: str, empty: bool = False) -> None:
    if not isinstance(text, str) or not (text or empty) or "\0" in text:
        raise ParameterError(f"{what} is text without a zero byte")
    try:
        text.encode()
    except UnicodeEncodeError:  # half a pair of surrogates: no task can hold it
        raise ParameterError(f"{what} is Unicode text") from None
