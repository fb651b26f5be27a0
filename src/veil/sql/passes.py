"""What stands in SQL for the two passes of a query over a table: one that counts, one that goes through the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from veil.errors import InputError
from veil.sql.columns import Measure, identifier
from veil.sql.locked import LockedDuckDB, select
from veil.sql.query import Both, Condition, Either, Holds

if TYPE_CHECKING:
    import duckdb

__all__ = ["Passes", "Weight", "public_part"]

_MOST_ATOMS = 48
_MOST_SCALE = 9
_DOUBLE_SCALE = 6
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_INTEGERS = {*_WHOLE, *(f"U{kind}" for kind in _WHOLE), "BOOLEAN"}
_KEYS = re.compile(r"(VARCHAR|DATE|TIME|TIMESTAMP|FLOAT|DOUBLE|DECIMAL|INTERVAL|UUID|ENUM|\"?NULL\"?)(?!.*\])")


@dataclass(frozen=True)
class Weight:
    """What a sum adds up, in SQL, as integers on a decimal scale."""

    text: str
    """As it stands in the query."""
    scale: int = 0
    sql: str | None = None
    """None: the weight is 1."""
    wrong: str | None = None
    """Marks rows whose number is none, or too large; None where all of them are fine."""
    stored: bool = False
    """Whether it is a public column as it is stored, which cannot fail."""

    def only_where(self, condition: str) -> Weight:
        """The same weight where the condition holds, and 0 elsewhere: there it is not evaluated."""
        if self.sql is None or self.stored:
            return self
        wrong = None if self.wrong is None else f"CASE WHEN {condition} THEN {self.wrong} ELSE false END"
        return replace(self, sql=f"CASE WHEN {condition} THEN {self.sql} ELSE 0 END", wrong=wrong)


class Passes:
    """The two passes of one query, on a connection of its own.

    `sums`, `atoms`, `keys` and `where` are expressions over public columns. What DuckDB does not take is refused here,
    before a row is read.
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
        self.connection = database.cursor()
        self.weights = tuple(_weight(database, self.connection, text) for text in sums)
        self.types = tuple(_key_type(database, self.connection, text) for text in keys)
        self.keys = tuple(database.name(f"k{i}") for i in range(len(keys)))
        self._key_texts = tuple(keys)
        self.pattern = _pattern(database, self.connection, atoms)
        self.found = database.name("classes")
        if where is not None:
            possible = _condition(database, self.connection, where)
            self.weights = tuple(weight.only_where(possible) for weight in self.weights)

    def name(self, of: str) -> str:
        """A name for a column of ours."""
        return self.database.name(of)

    @property
    def weighted(self) -> list[tuple[int, str]]:
        """The sums whose weight is not simply 1, each with its SQL."""
        return [(a, weight.sql) for a, weight in enumerate(self.weights) if weight.sql is not None]

    @cached_property
    def sums(self) -> dict[str, str]:
        """What the first pass adds up: how it is named, and its SQL over the columns of `_seen`."""
        sums = {self.name("n"): "count(*)"}
        for a, weight in enumerate(self.weights):
            if weight.wrong is not None:
                sums[self.name(f"wrong{a}")] = f"count(*) FILTER (WHERE {self.name(f'e{a}')})"
        for a, _ in self.weighted:
            sums[self.name(f"t{a}")] = f"sum({self.name(f'w{a}')})"
            for b, _ in self.weighted:
                if b <= a:
                    product = f"CAST({self.name(f'w{a}')} AS HUGEINT) * {self.name(f'w{b}')}"
                    sums[self.name(f"s{a}_{b}")] = f"sum({product})"
        return sums

    def _keyed(self) -> list[str]:
        return [f"(\n{text}\n) AS {key}" for key, text in zip(self.keys, self._key_texts, strict=True)]

    def _patterned(self) -> str:
        return f"{self.pattern or 'CAST(0 AS BIGINT)'} AS {self.name('p')}"

    def count(self) -> str:
        """Makes the table of classes: number, keys, pattern, choices with how many made each, and all sums."""
        groups, choice = [*self.keys, self.name("p")], self.name("c")
        seen = [*self._keyed(), self._patterned(), f"{self.database.choice or '0'} AS {choice}"]
        seen += [f"{sql} AS {self.name(f'w{a}')}" for a, sql in self.weighted]
        seen += [f"{w.wrong} AS {self.name(f'e{a}')}" for a, w in enumerate(self.weights) if w.wrong is not None]
        parts = [f"{sql} AS {alias}" for alias, sql in self.sums.items()]
        rows = select(seen, self.database.people)
        by_choice = select([*groups, choice, *parts], f"({rows})", "GROUP BY ALL")
        classes = [
            f"row_number() OVER (ORDER BY {', '.join(groups)}) - 1 AS {self.name('i')}",
            *groups,
            f"list({choice} ORDER BY {choice}) AS {self.name('choices')}",
            f"list({self.name('n')} ORDER BY {choice}) AS {self.name('answered')}",
            *(f"sum({alias}) AS {alias}" for alias in self.sums),
        ]
        whole = select(classes, f"({by_choice})", f"GROUP BY {', '.join(groups)}")
        return f"CREATE TEMP TABLE {self.found} AS {whole}"

    def scan(self, classes: Sequence[int] | None, patterns: Sequence[int], choices: Iterable[int] | None) -> str:
        """The rows of some classes (None: of all) and choices: columns of reports, weights, then what tells classes.

        Without keys that is the pattern, where there are several `patterns`; with keys the number of the class.
        """
        columns = [self.database.report(i) for i in range(len(self.database.table.survey.ask.layout.fields))]
        weights = [f"{sql} AS {self.name(f'w{a}')}" for a, sql in self.weighted]
        where = []
        if choices is not None:
            where.append(f"{self.database.choice} IN {_listed(choices)}")
        if self.pattern is not None and classes is not None:
            where.append(f"{self.pattern} IN {_listed(patterns)}")
        if not self.keys:
            told = [self._patterned()] if len(patterns) > 1 else []
            return select([*columns, *weights, *told], self.database.people, *_filtered(where))
        told = [*self._keyed(), self._patterned()]
        rows = select([*columns, *weights, *told], self.database.people, *_filtered(where))
        index = self.name("i")
        some = [] if classes is None else [f"WHERE {index} IN {_listed(classes)}"]
        listed = select([index, *self.keys, self.name("p")], self.found, *some)
        same = [f"a.{key} IS NOT DISTINCT FROM b.{key}" for key in self.keys]
        joined = " AND ".join([*same, f"a.{self.name('p')} = b.{self.name('p')}"])
        shown = [*columns, *(self.name(f"w{a}") for a, _ in self.weighted)]
        shown = [*(f"a.{column}" for column in shown), f"CAST(b.{index} AS INTEGER)"]
        return select(shown, f"({rows}) AS a JOIN ({listed}) AS b ON {joined}")


def public_part(condition: Condition) -> str | None:
    """What a condition demands of public columns alone, in SQL: wherever that is not true, it does not hold.

    None where nothing is demanded.

    >>> public_part(Both((Holds('"qty" > 0'), Either((Holds('"os" = 1'), Holds('"os" = 2'))))))
    '(("qty" > 0) AND (("os" = 1) OR ("os" = 2)))'
    """
    if isinstance(condition, Holds):
        return f"({condition.sql})"
    if not isinstance(condition, (Both, Either)):
        return None
    parts = [public_part(part) for part in condition.parts]
    demanded = [part for part in parts if part is not None]
    if isinstance(condition, Both):
        return f"({' AND '.join(demanded)})" if demanded else None
    return None if len(demanded) < len(parts) else f"({' OR '.join(demanded)})" if demanded else "false"


def _weight(database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, text: str) -> Weight:
    """A sum's expression as an integer on its decimal scale."""
    if text.strip() == "1":
        return Weight(text)
    for place, column in enumerate(database.table.public):
        if isinstance(column, Measure) and text.strip() == identifier(column.name):  # as it is stored
            raw = database.raw(place)
            inside = f"{raw} BETWEEN {1 - 10**18} AND {10**18 - 1}"
            return Weight(text, column.scale, f"(CASE WHEN {inside} THEN {raw} ELSE 0 END)", stored=True)
    kind = database.type_of(connection, text)
    number = f"(\n{text}\n)"
    decimal = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", kind)
    if decimal and int(decimal[1]) <= 18 and int(decimal[2]) <= _MOST_SCALE:
        scale = int(decimal[2])  # below 10^18 units, so that nothing is out of range
        rest = f"CAST(({number} % 1) * {10**scale} AS BIGINT)"
        return Weight(text, scale, f"coalesce(CAST(trunc({number}) AS BIGINT) * {10**scale} + {rest}, 0)")
    if kind in _INTEGERS:
        scale, whole = 0, f"TRY_CAST({number} AS BIGINT)"
    elif decimal:
        scale = min(int(decimal[2]), _MOST_SCALE)
        exact = f"TRY_CAST({number} AS DECIMAL(28, {scale}))"
        whole = f"TRY_CAST({exact} * CAST({10**scale} AS DECIMAL(10, 0)) AS BIGINT)"
    elif kind in ("DOUBLE", "FLOAT"):
        scale, whole = _DOUBLE_SCALE, f"TRY_CAST(CAST({number} AS DOUBLE) * 1e{_DOUBLE_SCALE} AS BIGINT)"
    elif kind.strip('"') == "NULL":
        return Weight(text, 0, "CAST(0 AS BIGINT)")
    else:
        raise InputError(f"only numbers can be added up: {text} is of type {kind}")
    return Weight(text, scale, f"coalesce({whole}, 0)", f"({whole}) IS NULL AND {number} IS NOT NULL")


def _key_type(database: LockedDuckDB, connection: duckdb.DuckDBPyConnection, text: str) -> str:
    kind = database.type_of(connection, text)
    if kind not in _INTEGERS and not _KEYS.match(kind):
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


def _filtered(conditions: Sequence[str]) -> list[str]:
    return [f"WHERE {' AND '.join(conditions)}"] if conditions else []


def _listed(numbers: Iterable[int]) -> str:
    return f"({', '.join(map(str, sorted(set(numbers))))})"
