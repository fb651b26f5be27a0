"""The SQL of a query's passes over a table: one counts classes of people, one adds up weights, one reads reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from veil.errors import InputError
from veil.sql.execution.duckdb import LockedDuckDB, select
from veil.sql.language.query import And, Condition, Or, PublicCondition
from veil.sql.language.weights import each_once, is_whole, make_weights

if TYPE_CHECKING:
    import duckdb


_MOST_ATOMS = 48
_KEYS = re.compile(r"(VARCHAR|DATE|TIME|TIMESTAMP|FLOAT|DOUBLE|DECIMAL|INTERVAL|UUID|ENUM|\"?NULL\"?)(?!.*\])")


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


def _filtered(conditions: Sequence[str]) -> list[str]:
    return [f"WHERE {' AND '.join(conditions)}"] if conditions else []


def _listed(numbers: Iterable[int]) -> str:
    return f"({', '.join(map(str, sorted(set(numbers))))})"
