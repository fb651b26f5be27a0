"""Units of columns and facts, and how numbers are written for people: shares, people, dollars, times, labels.

The fields of a table carry their unit as metadata (`veil.unit`, `veil.width`), so that a table can be rendered without
its result.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from veil.domain import Domain, Integers, Numeric
from veil.domain.text_values import is_time
from veil.errors import WireError
from veil.tools.messages import escape_text

if TYPE_CHECKING:
    import pyarrow


UnitName = Literal[
    "share",
    "people",
    "count",
    "factor",
    "number",
    "integer",
    "date",
    "time",
    "length",
    "duration",
    "label",
    "items",
    "flag",
    "probability",
]
Column = tuple[Sequence[Any] | np.ndarray[Any, Any], "Unit"]
"""The cells of a column, and what they stand for."""

UNKNOWN = "\N{EN DASH}"
_DAY = 86_400.0
_TEXT = ("label", "items")
_KEYS = b"veil.keys"


@dataclass(frozen=True)
class Unit:
    """What numbers or texts stand for. `width` is that of the domain that numbers come from: it decides their digits.

    >>> Unit("share").text(0.125), Unit("number", 250_000.0).text(61234.56), Unit("flag").text(True)
    ('12.50 %', '61,235', 'yes')
    """

    name: UnitName
    width: float = 0.0

    @property
    def is_text(self) -> bool:
        """Whether it is text, which may be long and may wrap, rather than a number, a time or a flag."""
        return self.name in _TEXT

    def text(self, value: Any) -> str:
        """One cell for people to read; it neither formats a terminal nor breaks its lines."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "(missing)" if self.name == "label" else UNKNOWN
        if value == "" and self.name == "label":
            return "(empty)"
        return escape_text(_TEXTS[self.name](value, self.width))

    def interval(self, low: Any, high: Any) -> str:
        """Two ends in one text; their unit stands once.

        >>> Unit("share").interval(0.12, 0.134)
        '12.00 to 13.40 %'
        """
        first, last = self.text(low), self.text(high)
        if UNKNOWN in (first, last):
            return UNKNOWN
        return f"{first.removesuffix(' %') if self.name == 'share' else first} to {last}"

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """As it stands in the metadata of a field."""
        return {b"veil.unit": self.name.encode(), b"veil.width": repr(self.width).encode()}

    @classmethod
    def of_field(cls, field: pyarrow.Field) -> Unit:
        """What the metadata of a field says; text where it says nothing."""
        found = field.metadata or {}
        name = found.get(b"veil.unit", b"label").decode()
        if name not in get_args(UnitName):
            raise WireError("a table names a unit that is not known here")
        return cls(name, float(found.get(b"veil.width", b"0")))


def number_unit(domain: Numeric) -> Unit:
    """Numbers of a domain: dollars to about four digits of its width, or times."""
    width = domain.ends[1] - domain.ends[0]
    return Unit("time" if is_time(domain) else "integer" if isinstance(domain, Integers) else "number", width)


def length_unit(domain: Numeric) -> Unit:
    """Differences of two numbers of a domain, to three digits: of times, in days, hours, minutes or seconds."""
    return Unit("duration" if is_time(domain) else "length")


def value_unit(domain: Domain) -> Unit:
    """Values of any domain."""
    return number_unit(domain) if isinstance(domain, Numeric) else Unit("label")


def number_written(domain: Numeric, number: float) -> float | str | None:
    """A number of a domain as it stands in a document; times in ISO 8601; None for a time that no calendar has.

    >>> from veil import Interval
    >>> number_written(Interval(dt.date(2026, 1, 1), dt.date(2027, 1, 1)), 1767268800.0)
    '2026-01-01T12:00:00'
    """
    shown = time_or_number(domain, number)
    return shown.isoformat() if isinstance(shown, dt.datetime) else shown


def time_or_number(domain: Numeric, number: float) -> Any:
    """A number of a domain as people write it; None for a time that no calendar has: a mean is never clipped."""
    try:
        return domain.shown(float(number))
    except OverflowError:
        return None


def make_table(columns: Mapping[str, Column], *, keys: int | None = None) -> pyarrow.Table:
    """Columns as an Arrow table whose fields say what they stand for; null where a number is not known.

    `keys` is for tables whose columns somebody else named: so many of them say what a row is about. The others are
    numbers, some of them followed by their standard error and ends: NAME, NAME_stderr, NAME_low, NAME_high.
    """
    import pyarrow as pa

    arrays = {name: _array(cells, unit) for name, (cells, unit) in columns.items()}
    units = {name: unit.metadata for name, (_, unit) in columns.items()}
    fields = [pa.field(name, array.type, metadata=units[name]) for name, array in arrays.items()]
    told = None if keys is None else {_KEYS: str(keys).encode()}
    return pa.table(list(arrays.values()), schema=pa.schema(fields, told))


def named_keys(table: pyarrow.Table) -> list[str] | None:
    """The keys of a table whose columns somebody else named: `keys` of `make_table`; None of any other table."""
    told = (table.schema.metadata or {}).get(_KEYS)
    return None if told is None else list(table.column_names[: int(told)])


def key_columns(table: pyarrow.Table) -> list[str]:
    """The columns that say what a row is about: one as a rule, and one per attribute of a joint distribution."""
    named = named_keys(table)
    if named is not None:
        return named
    names = list(table.column_names)
    several = "frequency" in names and names[0] != "from"
    return names[: names.index("frequency")] if several else names[:1]


def key_texts(table: pyarrow.Table) -> list[str]:
    """What each row is about, for people to read."""
    names = key_columns(table)
    texts = [map(Unit.of_field(table.schema.field(name)).text, table[name].to_pylist()) for name in names]
    return [", ".join(row) for row in zip(*texts, strict=True)] if names else [""] * table.num_rows


def _array(cells: Sequence[Any] | np.ndarray[Any, Any], unit: Unit) -> pyarrow.Array:
    import pyarrow as pa

    if unit.name == "items":
        return pa.array([[str(item) for item in items] for items in cells], pa.list_(pa.string()))
    if unit.name == "flag":
        return pa.array(cells, pa.bool_())
    if unit.name == "date":
        return pa.array(cells, pa.date32())
    if unit.name == "time":
        return pa.array(cells, pa.timestamp("us"))
    if unit.name not in ("label", "integer", "count"):
        return pa.array(np.asarray(cells, dtype=np.float64), from_pandas=True)
    cells = [", ".join(map(str, cell)) if isinstance(cell, tuple) else cell for cell in cells]  # cells of a pair
    try:
        made = pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # labels of several types, or above 64 bits
        return pa.array([None if cell is None else str(cell) for cell in cells])
    return made.cast(pa.string()) if pa.types.is_null(made.type) else made


def _number(number: float, width: float) -> str:
    digits = min(max(0, 4 - math.ceil(math.log10(width))), 12) if width > 0 else 0
    return f"{number:,.{digits}f}" if abs(number) < 1e15 else f"{number:.6g}"


def _integer(number: float, width: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else _number(number, width)


def _time(time: Any, width: float) -> str:
    moment = dt.datetime.fromisoformat(time) if isinstance(time, str) else time
    exact = "milliseconds" if moment.microsecond else "seconds"
    return str(moment.isoformat(" ", "minutes" if width >= _DAY else exact))


def _length(length: float, width: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(abs(length)))) if length else 0
    return f"{length:,.{min(digits, 20)}f}"


def _duration(seconds: float, width: float) -> str:
    for unit, size in (("days", _DAY), ("hours", 3_600.0), ("minutes", 60.0)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.3g} seconds"


_TEXTS: dict[str, Any] = {
    "share": lambda share, width: f"{100 * share:.2f} %",
    "people": lambda people, width: f"{people:,.0f}",
    "count": lambda count, width: f"{count:,}",
    "factor": lambda factor, width: f"{factor:,.3f}",
    "number": _number,
    "integer": _integer,
    "date": lambda day, width: str(day),
    "time": _time,
    "length": _length,
    "duration": _duration,
    "label": lambda label, width: str(label),
    "items": lambda items, width: " + ".join(map(str, items)),
    "flag": lambda flag, width: "yes" if flag else "no",
    "probability": lambda chance, width: f"{chance:.3f}" if chance >= 0.001 else f"{chance:.1e}",
}
