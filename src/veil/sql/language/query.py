"""A query as frozen data: conditions, sums, expressions of sums, and groups.

`parsing` makes a Query from SQL; `veil.sql.execution.engine` answers it. Nothing here knows SQL's grammar, reports or
files. Conditions have no NOT: the parser pushes it down to the comparisons that it negates.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Runs = tuple[tuple[int, int], ...]
"""Codes of a dimension: runs [start, stop), disjoint, increasing, with a gap between any two."""

Box = tuple[Runs | None, ...]
"""For each dimension the codes on one side of a box; None for all of them."""


@dataclass(frozen=True)
class InRanges:
    """A private dimension's code lies in one of these runs."""

    place: int
    runs: Runs


@dataclass(frozen=True)
class PublicCondition:
    """A condition on public columns alone, as DuckDB evaluates it; what is NULL does not hold."""

    sql: str


@dataclass(frozen=True)
class And:
    """All parts hold; nothing but true where there are none."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """At least one part holds; false where there are none."""

    parts: tuple[Condition, ...]


Condition = InRanges | PublicCondition | And | Or
TRUE, FALSE = And(()), Or(())


@dataclass(frozen=True)
class Number:
    """A number that stands in the query."""

    value: float


@dataclass(frozen=True)
class SumTerm:
    """The i-th of the query's sums, over the people of a group for whom the condition holds."""

    index: int


@dataclass(frozen=True)
class KeyValue:
    """The value of the i-th key of a group."""

    index: int


@dataclass(frozen=True)
class Operation:
    """Arithmetic: `+ - * /` of two numbers, `negate`, `sqrt` and `abs` of one."""

    name: Literal["+", "-", "*", "/", "negate", "sqrt", "abs"]
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Compare:
    """A comparison (two parts), or `and`, `or`, `not` of comparisons: for HAVING alone."""

    name: Literal["=", "<>", "<", "<=", ">", ">=", "and", "or", "not"]
    parts: tuple[Expression | Compare | str | dt.date, ...]
    """Texts, dates and times are compared with a key."""


Expression = Number | SumTerm | KeyValue | Operation


@dataclass(frozen=True)
class PublicGroup:
    """A group per value of an expression over public columns, as DuckDB evaluates it."""

    name: str
    sql: str


@dataclass(frozen=True)
class Bucket:
    """The codes [start, stop) of a dimension as one group, labelled by its value or lower end; None: missing values."""

    start: int
    stop: int
    label: str | int | float | dt.date | None


@dataclass(frozen=True)
class PrivateGroup:
    """A group per bucket of a private dimension."""

    name: str
    place: int
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True)
class Output:
    """A column of the answer."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Query:
    """A query over one table.

    `sums` are expressions over public columns, as DuckDB evaluates them: "1" counts people, and what is NULL is added
    up as 0. `order` pairs what to order by with whether it goes down. `remarks` tell where the query was read a little
    differently from what it says.
    """

    text: str
    sums: tuple[str, ...]
    outputs: tuple[Output, ...]
    where: Condition = TRUE
    keys: tuple[PublicGroup | PrivateGroup, ...] = ()
    having: Compare | None = None
    order: tuple[tuple[Expression, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    explain: bool = False
    remarks: tuple[str, ...] = ()
    text_bytes: int = 0
    """Bytes of all texts that expressions over public columns make for one row, at most."""
    key_bytes: int = 0
    """Bytes of the public keys of one group, at most."""

    @property
    def private_keys(self) -> Iterator[PrivateGroup]:
        """The keys that are private dimensions."""
        return (key for key in self.keys if isinstance(key, PrivateGroup))
