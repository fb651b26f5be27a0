"""The SQL of a query's passes over a table: one counts classes of people, one adds up weights, one reads reports.

A weight is what a sum adds up: an expression over public columns, as an integer for each row on a decimal scale.
Numbers of few digits are exact. For others, doubles and products of decimals, the largest one is looked up first, and
the scale is the finest on which it stays below 10^18: at most 10^-17 of it is rounded off, besides the digits that
doubles do not have. So the scale depends on the rows, and not on the files that hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from veil.errors import InputError
from veil.sql.columns import Measure, identifier
from veil.sql.execution.duckdb import LockedDuckDB, select
from veil.sql.language.query import And, Condition, Or, PublicCondition

if TYPE_CHECKING:
    import duckdb

_MOST_ATOMS = 48
_KEYS = re.compile(r"(VARCHAR|DATE|TIME|TIMESTAMP|FLOAT|DOUBLE|DECIMAL|INTERVAL|UUID|ENUM|\"?NULL\"?)(?!.*\])")
_DIGITS, _SHORT = 18, 9  # of a weight; behind the point of a decimal that never overflows
_MOST_UNITS = 9 * 10**18  # below 2^63
_MAX_NUMBER, _MIN_NUMBER = 1e140, 1e-140  # numbers whose squares are doubles too
_SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN"}
_LARGE = {"HUGEINT", "UBIGINT", "UHUGEINT"}
_NOT_NULL = re.compile(r"CASE WHEN \((.*)\) IS NULL THEN 0 ELSE 1 END", re.DOTALL)
_COLUMN = re.compile(r'"(?:[^"]|"")*"')


class Passes:
    """The passes of one query, on a connection of its own.

    `sums`, `atoms`, `keys` and `where` are expressions over public columns. What DuckDB does not take is refused here,
    before a row is counted. `weights` are what is added up, each once; `places` says which of them each sum has.
    """

    def __init__(
        self,
        database: LockedDuckDB,
        sums: Sequence[str],
        atoms: Sequence[str],
        keys: Sequence[str],
        where: str | None = None,
    ) -> None:
        self.database = database
        self.asked = (tuple(sums), tuple(atoms), tuple(keys), where)
        self.connection = database.cursor()
        possible = None if where is None else _condition(database, self.connection, where)
        self.weights, self.places = each_once(make_weights(database, self.connection, sums, possible))
        self.types = tuple(_key_type(database, self.connection, text) for text in keys)
        self.keys = tuple(database.name(f"k{i}") for i in range(len(keys)))
        self._key_texts = tuple(keys)
        self.pattern = _pattern(database, self.connection, atoms)
        self.found = database.name("classes")

    def name(self, of: str) -> str:
        """A name for a column of ours."""
        return self.database.name(of)

    @property
    def weighted(self) -> list[tuple[int, str]]:
        """The weights that are not simply 1, each with its SQL."""
        return [(a, weight.sql) for a, weight in enumerate(self.weights) if weight.sql is not None]

    def _keyed(self) -> list[str]:
        return [f"(\n{text}\n) AS {key}" for key, text in zip(self.keys, self._key_texts, strict=True)]

    def _patterned(self) -> str:
        return f"{self.pattern or 'CAST(0 AS BIGINT)'} AS {self.name('p')}"

    @property
    def groups(self) -> list[str]:
        """What tells classes apart: the keys, and the pattern of conditions."""
        return [*self.keys, self.name("p")]

    @property
    def by_choice(self) -> str:
        """Numbers of people by class and choice. Those of parts of the rows add up."""
        choice = self.name("c")
        seen = [*self._keyed(), self._patterned(), f"{self.database.choice or '0'} AS {choice}"]
        rows = select(seen, self.database.people)
        return select([*self.groups, choice, f"count(*) AS {self.name('n')}"], f"({rows})", "GROUP BY ALL")

    def count(self, by_choice: str | None = None) -> str:
        """Make the table of classes: number, keys, pattern, and choices with how many people made each."""
        choice = self.name("c")
        classes = [
            f"row_number() OVER (ORDER BY {', '.join(self.groups)}) - 1 AS {self.name('i')}",
            *self.groups,
            f"list({choice} ORDER BY {choice}) AS {self.name('choices')}",
            f"list({self.name('n')} ORDER BY {choice}) AS {self.name('answered')}",
        ]
        whole = select(classes, f"({by_choice or self.by_choice})", f"GROUP BY {', '.join(self.groups)}")
        return f"CREATE TEMP TABLE {self.found} AS {whole}"

    def of_classes(self, columns: Iterable[str]) -> str:
        """Select what tells classes apart and these columns of the table of classes, in the order of classes."""
        return select([*self.groups, *columns], self.found, f"ORDER BY {self.name('i')}")

    def weigh(self, patterns: Sequence[int]) -> str:
        """Select the weights of all rows that are not simply 1, then what tells classes apart, as `scan` does."""
        return self._select([], None, patterns, [])

    def scan(self, classes: Sequence[int] | None, patterns: Sequence[int], choices: Iterable[int] | None) -> str:
        """The rows of some classes (None: of all) and choices: columns of reports, weights, then what tells classes.

        Without keys that is the pattern, where there are several `patterns`; with keys the number of the class.
        """
        columns = [self.database.report(i) for i in range(len(self.database.table.survey.ask.layout.fields))]
        where = [] if choices is None else [f"{self.database.choice} IN {_listed(choices)}"]
        if self.pattern is not None and classes is not None:
            where.append(f"{self.pattern} IN {_listed(patterns)}")
        return self._select(columns, classes, patterns, where)

    def _select(
        self, columns: Sequence[str], classes: Sequence[int] | None, patterns: Sequence[int], where: Sequence[str]
    ) -> str:
        weights = [f"{sql} AS {self.name(f'w{a}')}" for a, sql in self.weighted]
        if not self.keys:
            told = [self._patterned()] if len(patterns) > 1 else []
            return select([*columns, *weights, *told], self.database.people, *_filtered(where))
        told = [*self._keyed(), self._patterned()]
        rows = select([*columns, *weights, *told], self.database.people, *_filtered(where))
        index = self.name("i")
        some = [] if classes is None else [f"WHERE {index} IN {_listed(classes)}"]
        listed = select([index, *self.keys, self.name("p")], self.found, *some)
        shown = [*columns, *(self.name(f"w{a}") for a, _ in self.weighted)]
        shown = [*(f"a.{column}" for column in shown), f"CAST(b.{index} AS INTEGER)"]
        return select(shown, f"({rows}) AS a JOIN ({listed}) AS b ON {self.same('a', 'b')}")

    def same(self, one: str, other: str) -> str:
        """The condition that rows of two tables are of the same class."""
        keys = [f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in self.keys]
        return " AND ".join([*keys, f"{one}.{self.name('p')} = {other}.{self.name('p')}"])


def _filtered(conditions: Sequence[str]) -> list[str]:
    return [f"WHERE {' AND '.join(conditions)}"] if conditions else []


def _listed(numbers: Iterable[int]) -> str:
    return f"({', '.join(map(str, sorted(set(numbers))))})"


def public_part(condition: Condition) -> str | None:
    """What a condition demands of public columns alone, in SQL: wherever that is not true, it does not hold.

    None where nothing is demanded.

    >>> public_part(And((PublicCondition('"qty" > 0'), Or((PublicCondition('"os" = 1'), PublicCondition('"os" = 2'))))))
    '(("qty" > 0) AND (("os" = 1) OR ("os" = 2)))'
    """
    if isinstance(condition, PublicCondition):
        return f"({condition.sql})"
    if not isinstance(condition, (And, Or)):
        return None
    parts = [public_part(part) for part in condition.parts]
    demanded = [part for part in parts if part is not None]
    if isinstance(condition, And):
        return f"({' AND '.join(demanded)})" if demanded else None
    return None if len(demanded) < len(parts) else f"({' OR '.join(demanded)})" if demanded else "false"


def _key_type(database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, text: str) -> str:
    kind = database.type_of(connection, text)
    if not is_whole(kind) and not _KEYS.match(kind):
        raise InputError(f"groups are by text, numbers, dates or times: {text} is of type {kind}")
    return kind


def _pattern(database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, atoms: Sequence[str]) -> str | None:
    """The conditions that hold, as the bits of an integer; what is NULL does not hold."""
    if len(atoms) > _MOST_ATOMS:
        raise InputError(f"at most {_MOST_ATOMS} different conditions on public columns in one query")
    conditions = [_condition(database, connection, text) for text in atoms]
    bits = [f"CASE WHEN {condition} THEN {1 << i} ELSE 0 END" for i, condition in enumerate(conditions)]
    return f"CAST({' + '.join(bits)} AS BIGINT)" if bits else None


def _condition(database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, text: str) -> str:
    kind = database.type_of(connection, text)
    if kind != "BOOLEAN" and kind.strip('"') != "NULL":
        raise InputError(f"expected a condition: {text} is of type {kind}")
    return f"(\n{text}\n)"


@dataclass(frozen=True)
class Weight:
    """What a sum adds up, in SQL, as integers on a decimal scale: 1234 with scale 2 stands for 12.34."""

    sql: str | None = None
    """None: the weight is 1."""
    scale: int = 0


ONE = Weight()


def make_weights(
    database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, texts: Sequence[str], where: str | None
) -> list[Weight]:
    """The weights of sums. Rows for which `where` is not true count as 0, and nothing is evaluated there."""
    forms = [_form(database, connection, text, where) for text in texts]
    found = iter(database.know(connection, [sql for form in forms for sql in form.asked]))
    return [form.weight(*(next(found) for _ in form.asked)) for form in forms]


def each_once(weights: Sequence[Weight]) -> tuple[tuple[Weight, ...], tuple[int, ...]]:
    """The weights that differ, and for each of those given its place among them.

    >>> each_once([ONE, Weight("x"), ONE])
    ((Weight(sql=None, scale=0), Weight(sql='x', scale=0)), (0, 1, 0))
    """
    distinct = tuple(dict.fromkeys(weights))
    return distinct, tuple(distinct.index(one) for one in weights)


def combined(aggregate: str, parts: Sequence[Any]) -> Any:
    """An aggregate that a form asks for, from the same aggregate over parts of the rows.

    >>> combined("min(x)", [3, None, 1]), combined("count(*)", [2, 5]), combined("count(*) = count(*)", [True, False])
    (1, 7, False)
    """
    known = [part for part in parts if part is not None]
    if aggregate.startswith(("min(", "max(")):
        return (min if aggregate.startswith("min(") else max)(known) if known else None
    return all(known) if aggregate.endswith("= count(*)") else sum(known)


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
        if endless or largest > _MAX_NUMBER:
            raise InputError(
                f"{self._text} is not finite or too large for some rows: expected numbers of at most {_MAX_NUMBER:g}; "
                "leave rows out in WHERE, or divide"
            )
        if 0 < largest < _MIN_NUMBER:
            raise InputError(
                f"{self._text} is nearly 0 for all rows: expected numbers from {_MIN_NUMBER:g} on; multiply it"
            )
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
