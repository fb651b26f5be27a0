"""The answer to a query: rows in the query's order, each number with its standard error and interval.

Values are unbiased estimates and are never clipped: a count of few people may be below 0. Intervals are normal: the
value plus and minus a multiple of its standard error.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veil.errors import DomainError, InputError, ParameterError, WireError
from veil.privacy import Guarantee
from veil.results.base import Result, Truth, VisibleRows
from veil.results.units import Column, Unit, make_table
from veil.tools.json_documents import Json
from veil.tools.messages import unknown_name
from veil.tools.numbers import two_sided

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

    from veil.sql.change import AnswerChange


Floats = NDArray[np.float64]
KeyType = Literal["text", "integer", "number", "flag", "date", "time"]
Label = str | int | float | None

_MANY = 200
"""So many rows are shown at least, whoever asks for fewer: a query says itself how many it wants (LIMIT)."""
_LISTED = 6
"""So many of the groups that were read are named."""
_UNITS: dict[KeyType, Unit] = {
    "text": Unit("label"),
    "integer": Unit("label"),  # years, codes, ends of buckets: written as they are
    "number": Unit("label"),
    "flag": Unit("flag"),
    "date": Unit("date"),
    "time": Unit("time"),
}


@dataclass(frozen=True)
class KeyColumn:
    """The values of one key, a label for each row. Dates and times are text in ISO 8601; None is SQL's NULL."""

    name: str
    labels: tuple[Label, ...]
    type: KeyType = "text"

    def __post_init__(self) -> None:
        if self.type not in get_args(KeyType):
            raise ParameterError(f"a key is one of {', '.join(get_args(KeyType))}")
        object.__setattr__(self, "labels", tuple(self.labels))

    @classmethod
    def of(cls, name: str, values: Sequence[Any]) -> KeyColumn:
        """The key with these values, as Python or DuckDB has them; its type is read off them.

        >>> KeyColumn.of("day", [dt.date(2026, 5, 1), None])
        KeyColumn(name='day', labels=('2026-05-01', None), type='date')
        """
        known = [value for value in values if value is not None]
        fits = (kind for kind, held in _HELD.items() if all(isinstance(one, held) for one in known))
        kind: KeyType = next(fits, "text")
        if kind == "date" and any(isinstance(one, dt.datetime) for one in known):
            kind = "time"
        if kind == "integer" and any(isinstance(one, (bool, np.bool_)) for one in known):
            kind = "flag" if all(isinstance(one, (bool, np.bool_)) for one in known) else "text"
        return cls(name, tuple(None if value is None else _label(value, kind) for value in values), kind)

    @property
    def values(self) -> list[Any]:
        """The labels as Python values: dates and times, where they are."""
        if self.type == "date":
            return [None if label is None else dt.date.fromisoformat(str(label)) for label in self.labels]
        if self.type == "time":
            return [None if label is None else dt.datetime.fromisoformat(str(label)) for label in self.labels]
        return list(self.labels)

    def to_json(self) -> Json:
        """As JSON."""
        return {"name": self.name, "type": self.type, "labels": list(self.labels)}

    @classmethod
    def from_json(cls, document: Any) -> KeyColumn:
        """The key that a document holds."""
        if not isinstance(document, dict) or set(document) != {"name", "type", "labels"}:
            raise WireError("a key has a name, a type and labels")
        name, labels = document["name"], document["labels"]
        scalars = isinstance(labels, list) and all(one is None or isinstance(one, (str, int, float)) for one in labels)
        if not isinstance(name, str) or not scalars:
            raise WireError("a key has a name, and labels that are text or numbers")
        made = cls(name, tuple(labels), document["type"])
        try:
            _ = made.values
        except ValueError:
            raise WireError("dates and times of a key are written in ISO 8601") from None
        return made


@dataclass(frozen=True, eq=False)
class MeasuredColumn:
    """One output of a query: a number for each row with its standard error; NaN where it is not known.

    `stderr` is about the people who reported. `sampling` is how far the number varies beside that with who was asked,
    where they are a random sample of many more people: for tests of differences.
    """

    name: str
    values: Floats
    stderr: Floats
    sampling: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not len(self.sampling):
            object.__setattr__(self, "sampling", np.full(len(self.values), np.nan))
        for name in ("values", "stderr", "sampling"):
            numbers = np.asarray(getattr(self, name), dtype=np.float64).copy()
            numbers[~np.isfinite(numbers)] = np.nan
            object.__setattr__(self, name, numbers)
        shapes = {self.values.shape, self.stderr.shape, self.sampling.shape}
        if self.values.ndim != 1 or len(shapes) > 1:
            raise ParameterError("an output has one value and one standard error for each row")

    def interval(self, level: float = 0.95) -> Floats:
        """A normal confidence interval for each row: an array of (low, high)."""
        reach = two_sided(level) * self.stderr
        return np.stack([self.values - reach, self.values + reach], axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Result):
    """The rows that a query asked for, in its order; one row where it has no keys.

    `people` says how many reports each row rests on, `used` which groups of people were read, in words, and `said` what
    whoever reads the numbers should know.

    >>> found = Answer(query="SELECT COUNT(*) FROM people WHERE age < 30", people=[1000], n=1000, population=1000,
    ...                outputs=(MeasuredColumn("count", [412.5], [20.0]),))
    >>> found.value("count"), found.stderr("count"), found.interval("count").round(1).tolist()
    (412.5, 20.0, [[373.3, 451.7]])
    """

    kind: ClassVar[str] = "sql"
    query: str
    outputs: tuple[MeasuredColumn, ...]
    people: NDArray[np.int64]
    n: int
    population: int
    keys: tuple[KeyColumn, ...] = ()
    used: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    lineage: tuple[str, ...] = ()
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "people", np.asarray(self.people, dtype=np.int64))
        rows = self.people.shape
        columns = [(len(key.labels),) for key in self.keys] + [one.values.shape for one in self.outputs]
        if len(rows) != 1 or any(column != rows for column in columns):
            raise ParameterError("the columns of an answer have one cell for each row")

    def __len__(self) -> int:
        return len(self.people)

    def __repr__(self) -> str:
        return f"Answer({len(self)} rows from {self.n} reports: {self.query!r})"

    def output(self, name: str) -> MeasuredColumn:
        """An output by its name."""
        found = next((one for one in self.outputs if one.name == name), None)
        if found is None:
            raise InputError(unknown_name("an output", name, (one.name for one in self.outputs)))
        return found

    def value(self, name: str | None = None) -> float:
        """The number of an answer that has one row; of several outputs, that of this name."""
        return float(self._single(name).values[0])

    def stderr(self, name: str | None = None) -> float:
        """The standard error of an answer that has one row."""
        return float(self._single(name).stderr[0])

    def interval(self, name: str | None = None, level: float = 0.95) -> Floats:
        """Low and high of an output for each row, in two columns."""
        return self._named(name).interval(level)

    def _single(self, name: str | None) -> MeasuredColumn:
        if len(self) != 1:
            raise InputError(f"expected an answer of one row; this one has {len(self):,}: see table()")
        return self._named(name)

    def _named(self, name: str | None) -> MeasuredColumn:
        if name is None and len(self.outputs) != 1:
            raise InputError(f"expected one of the outputs {', '.join(one.name for one in self.outputs)}")
        return self.outputs[0] if name is None else self.output(name)

    def withheld(self, least: int) -> Answer:
        """The same without the numbers of rows that rest on fewer than `least` reports: for who publishes answers.

        A row rests on the reports that WHERE and GROUP BY leave. This protects no public column: an aggregate may leave
        out more of them (CASE, FILTER), HAVING may test it, and two answers may differ by one person.
        """
        few = self.people < least
        if not few.any():
            return self
        outputs = [
            MeasuredColumn(one.name, *(np.where(few, np.nan, part) for part in (one.values, one.stderr, one.sampling)))
            for one in self.outputs
        ]
        rows = "1 row" if few.sum() == 1 else f"{few.sum():,} rows"
        remark = f"The numbers of {rows} are withheld: fewer than {least:,} reports are behind them."
        return replace(self, outputs=tuple(outputs), said=(*self.said, remark))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """The keys; then NAME, NAME_stderr, NAME_low and NAME_high for each output; then `reports`.

        A name that would stand twice gets an underscore.
        """
        columns: dict[str, Column] = {}
        for name, key in zip(self.key_names, self.keys, strict=True):
            columns[name] = (key.values, key_unit(key))
        for name, one in zip(self.output_names, self.outputs, strict=True):
            unit, (low, high) = measured_unit(one), one.interval(level).T
            columns[name] = (one.values, unit)
            columns |= {f"{name}_stderr": (one.stderr, unit), f"{name}_low": (low, unit), f"{name}_high": (high, unit)}
        columns[_free("reports", columns)] = (self.people, Unit("count"))
        return make_table(columns, keys=len(self.keys))

    @property
    def key_names(self) -> list[str]:
        """What the keys are called in the table."""
        taken: list[str] = []
        for key in self.keys:
            taken.append(_free(key.name, taken))
        return taken

    @property
    def output_names(self) -> list[str]:
        """What the outputs are called in the table."""
        taken, names = set(self.key_names), []
        for one in self.outputs:
            name = one.name
            while not taken.isdisjoint(columns := [name, f"{name}_stderr", f"{name}_low", f"{name}_high"]):
                name += "_"
            taken |= {*columns}
            names.append(name)
        return names

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The query, and which groups of people were read for it; `used` has all of these."""
        more = len(self.used) - _LISTED
        listed = [*self.used[:_LISTED], *([f"and {more:,} more"] if more > 0 else [])]
        return {"query": " ".join(self.query.split()), "groups_read": "; ".join(listed) or None}

    def fact_units(self) -> Mapping[str, Unit]:
        return {"query": Unit("label"), "groups_read": Unit("label")}

    def remarks(self) -> list[str]:
        return list(self.said)

    def told(
        self, level: float = 0.95, rows: int | None = None, truth: Truth | None = None, *, hide: bool = False
    ) -> VisibleRows:
        """All rows in the query's order, whatever is significant; of very many, the first ones."""
        if truth is not None:
            raise InputError("an answer of SQL does not stand beside true shares: compare it with a query of raw rows")
        table = self.table(level)
        shown = table if rows is None else table.slice(0, max(rows, _MANY))
        return VisibleRows(shown, 0, table.num_rows - shown.num_rows)

    def difference(self, before: Result) -> AnswerChange:
        """What changed from another answer to the same query to this one: two months. See `veil.sql.change`."""
        from veil.sql.change import AnswerChange

        if not isinstance(before, Answer):
            raise InputError("a difference is taken between two answers to the same query: expected another Answer")
        return AnswerChange.of(self, before)

    def _place(self, value: Any) -> int:
        rows = list(zip(*(key.values for key in self.keys), strict=True))
        wanted = value if isinstance(value, tuple) else (value,)
        if wanted not in rows:
            raise DomainError("expected the keys of a row of this answer")
        return rows.index(wanted)

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """The first k rows as points with 95 % intervals, one panel for each output. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_measured

        if not self.outputs:
            raise InputError("a picture needs an output beside the keys, such as COUNT(*)")
        named = zip(self.output_names, self.outputs, strict=True)
        return plot_measured(self, {name: (one.values, one.interval()) for name, one in named}, k, ax=ax)

    def plot_height(self, k: int = 20) -> float:
        return 1.2 + 0.28 * max(min(k, len(self)), 1)


def measured_unit(one: MeasuredColumn) -> Unit:
    """How numbers are written: to two digits of the smallest standard error there is."""
    errors = one.stderr[one.stderr > 0]
    if len(errors):
        return Unit("number", 100 * float(errors.min()))
    known = one.values[~np.isnan(one.values)]
    if (known == np.rint(known)).all():
        return Unit("integer")
    return Unit("number", float(np.abs(known).max()))


def key_unit(key: KeyColumn) -> Unit:
    """How the labels of a key are written."""
    return _UNITS[key.type]


_HELD: dict[KeyType, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int, np.integer, np.bool_),
    "number": (int, float, Decimal, np.integer, np.floating),
    "date": (dt.date,),
}
"""What the values of each type are; dates hold times, and integers flags, which are told apart afterwards."""


def _label(value: Any, kind: KeyType) -> Label:
    """A value as it stands in a document."""
    if kind == "integer":
        return int(value)
    if kind == "flag":
        return bool(value)
    if kind == "number":
        return float(value) if math.isfinite(value) else None
    if kind == "date":
        return str(value.isoformat())
    if kind == "time":
        moment = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
        return moment.isoformat()
    return str(value)


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name
