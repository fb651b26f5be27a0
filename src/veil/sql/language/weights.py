"""What sums add up: expressions over public columns, as an integer for each row on a decimal scale.

Numbers of few digits are taken exactly. Of others, doubles and products of decimals, the largest one is looked up
first, and the scale is the finest on which it stays below 10^18: what is rounded off is at most 10^-17 of it, beside
the digits that doubles do not have. So the scale depends on the rows, and not on the files that they are in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from veil.errors import InputError
from veil.sql.columns import Measure, identifier
from veil.sql.execution.duckdb import LockedDuckDB

if TYPE_CHECKING:
    import duckdb


_DIGITS, _SHORT = 18, 9
_MOST_UNITS = 9 * 10**18  # below 2^63
_MOST, _LEAST = 1e140, 1e-140  # of numbers whose squares are doubles too
_SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN"}
_LARGE = {"HUGEINT", "UBIGINT", "UHUGEINT"}
_NOT_NULL = re.compile(r"CASE WHEN \((.*)\) IS NULL THEN 0 ELSE 1 END", re.DOTALL)
_COLUMN = re.compile(r'"(?:[^"]|"")*"')


@dataclass(frozen=True)
class Weight:
    """What a sum adds up, in SQL, as integers on a decimal scale: 1234 with scale 2 stands for 12.34."""

    sql: str | None = None
    """None: the weight is 1."""
    scale: int = 0


ONE = Weight()


def is_whole(kind: str) -> bool:
    """Whether a type of DuckDB's is one of whole numbers, or of truth values."""
    return kind in _SMALL or kind in _LARGE


def counts_people(text: str) -> bool:
    """Whether a sum counts people, unless a stranger's report is among them.

    >>> counts_people("1"), counts_people('CASE WHEN ("os") IS NULL THEN 0 ELSE 1 END'), counts_people('"os"')
    (True, True, False)
    """
    argument = _NOT_NULL.fullmatch(text.strip())
    return text.strip() == "1" or (argument is not None and _COLUMN.fullmatch(argument[1]) is not None)


def make_weights(
    database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, texts: Sequence[str], where: str | None
) -> list[Weight]:
    """The weights of sums. Rows for which `where` is not true count as 0, and nothing is evaluated there."""
    forms = [_form(database, connection, text, where) for text in texts]
    found = iter(database.know(connection, [sql for form in forms for sql in form.asked]))
    return [form.weight(*(next(found) for _ in form.asked)) for form in forms]


def combined(aggregate: str, parts: Sequence[Any]) -> Any:
    """An aggregate that a form asks for, from the same aggregate over parts of the rows.

    >>> combined("min(x)", [3, None, 1]), combined("count(*)", [2, 5]), combined("count(*) = count(*)", [True, False])
    (1, 7, False)
    """
    known = [part for part in parts if part is not None]
    if aggregate.startswith(("min(", "max(")):
        return (min if aggregate.startswith("min(") else max)(known) if known else None
    return all(known) if aggregate.endswith("= count(*)") else sum(known)


def each_once(weights: Sequence[Weight]) -> tuple[tuple[Weight, ...], tuple[int, ...]]:
    """The weights that differ, and for each of those given its place among them.

    >>> each_once([ONE, Weight("x"), ONE])
    ((Weight(sql=None, scale=0), Weight(sql='x', scale=0)), (0, 1, 0))
    """
    distinct = tuple(dict.fromkeys(weights))
    return distinct, tuple(distinct.index(one) for one in weights)


# -- forms: what is to be known of the rows before a weight is made ----------------------------------------------------


class _Form:
    """A weight that needs nothing to be known of the rows."""

    asked: tuple[str, ...] = ()
    """Aggregates over all rows, in SQL."""

    def __init__(self, weight: Weight) -> None:
        self._weight = weight

    def weight(self, *found: Any) -> Weight:
        """The weight, once it is known what was asked."""
        return self._weight


class _Stored(_Form):
    """A measure as it is stored, which is within its range unless a stranger's report is among the rows."""

    def __init__(self, raw: str, scale: int) -> None:
        self._raw, self._scale = raw, scale
        self._inside = f"{raw} BETWEEN {1 - 10**18} AND {10**18 - 1}"
        self.asked = (f"count(*) FILTER (WHERE {self._inside}) = count(*)",)

    def weight(self, *found: Any) -> Weight:
        sql = self._raw if found[0] else f"(CASE WHEN {self._inside} THEN {self._raw} ELSE 0 END)"
        return Weight(sql, self._scale)


class _Counted(_Form):
    """Whether something is not NULL: 1 for everybody, unless it is NULL in a row."""

    def __init__(self, text: str, number: str, where: str | None) -> None:
        super().__init__(Weight(f"CAST(coalesce({number}, 0) AS BIGINT)"))
        other = f"coalesce((\n{text}\n), 0) <> 1"
        if where is not None and not counts_people(text):  # a column alone can be looked at anywhere
            other = f"CASE WHEN {where} THEN {other} ELSE false END"
        self.asked = (f"count(*) FILTER (WHERE {other})",)

    def weight(self, *found: Any) -> Weight:
        return self._weight if found[0] else ONE


class _Scaled(_Form):
    """Numbers that may be large or small: taken exactly where they fit, and as far as the largest one lets them."""

    def __init__(self, text: str, number: str, scale: int | None) -> None:
        self._text, self._number, self._scale = text, number, scale
        real = f"CAST({number} AS DOUBLE)"
        self.asked = (
            f"max(abs({real})) FILTER (WHERE isfinite({real}))",
            f"count(*) FILTER (WHERE NOT isfinite({real}))",
        )

    def weight(self, *found: Any) -> Weight:
        largest, endless = found[0] or 0.0, found[1]
        if endless or largest > _MOST:
            raise InputError(
                f"{self._text} is not finite or too large for some rows: expected numbers of at most {_MOST:g}; leave "
                "rows out in WHERE, or divide"
            )
        if 0 < largest < _LEAST:
            raise InputError(f"{self._text} is nearly 0 for all rows: expected numbers from {_LEAST:g} on; multiply it")
        declared = self._scale
        if declared is not None and declared <= _DIGITS and Fraction(largest) * 10**declared <= _MOST_UNITS:
            small = declared <= _SHORT and Fraction(largest) * 10**declared < 10**_DIGITS - 10**6
            number = f"CAST({self._number} AS DECIMAL({_DIGITS}, {declared}))" if small else self._number
            return Weight((_short if small else _exact)(number, declared), declared)
        scale = _DIGITS - 1 - Decimal(largest).adjusted() if largest else 0
        units = f"* 1e{scale}" if scale >= 0 else f"/ 1e{-scale}"  # 10 is a double, and 0.1 is none
        return Weight(f"coalesce(CAST(CAST({self._number} AS DOUBLE) {units} AS BIGINT), 0)", scale)


def _form(database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, text: str, where: str | None) -> _Form:
    """How a sum's expression becomes an integer."""
    if text.strip() == "1":
        return _Form(ONE)
    for place, column in enumerate(database.table.public):
        if isinstance(column, Measure) and text.strip() == identifier(column.name):  # as it is stored: it cannot fail
            return _Stored(database.raw(place), column.scale)
    kind = database.type_of(connection, text)
    number = f"(\n{text}\n)" if where is None else f"(CASE WHEN {where} THEN (\n{text}\n) END)"
    decimal = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", kind)
    if kind in _SMALL and _NOT_NULL.fullmatch(text.strip()):
        return _Counted(text, number, where)
    if decimal and int(decimal[1]) <= _DIGITS and int(decimal[2]) <= _SHORT:
        return _Form(Weight(_short(number, int(decimal[2])), int(decimal[2])))
    if kind in _SMALL:
        return _Form(Weight(f"coalesce(CAST({number} AS BIGINT), 0)"))
    if decimal or kind in _LARGE:
        return _Scaled(text, number, int(decimal[2]) if decimal else 0)
    if kind in ("DOUBLE", "FLOAT"):
        return _Scaled(text, number, None)
    if kind.strip('"') == "NULL":
        return _Form(Weight("CAST(0 AS BIGINT)"))
    raise InputError(f"only numbers can be added up: {text} is of type {kind}")


def _short(number: str, scale: int) -> str:
    """Decimals of at most 18 digits, 9 of them behind the point, as units of their scale: nothing is out of range."""
    rest = f"CAST(({number} % 1) * {10**scale} AS BIGINT)"
    return f"coalesce(CAST(trunc({number}) AS BIGINT) * {10**scale} + {rest}, 0)"


def _exact(number: str, scale: int) -> str:
    """Decimals or whole numbers as units of their scale, of which there are fewer than 2^63; this takes longer."""
    if not scale:
        return f"coalesce(CAST({number} AS BIGINT), 0)"
    units = f"CAST({number} AS DECIMAL(38, {scale})) * CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
    return f"coalesce(CAST({units} AS BIGINT), 0)"
