"""Aggregates and expressions of SELECT, HAVING and ORDER BY: every aggregate becomes sums over people.

AVG is a sum over a count; the variance consists of the sums of x^2, of x and of 1. SUM counts NULL as 0; COUNT, AVG and
the variance leave it out. A measure is NULL where the report is forged: no device of the table can have sent it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from veil.errors import SqlError
from veil.sql.language.conditions import SIGNS
from veil.sql.language.dimensions import Dimension, kind_of
from veil.sql.language.query import Compare, Expression, KeyValue, Number, Operation, PrivateGroup, PublicGroup, SumTerm
from veil.sql.language.scalars import Scalars, private_message
from veil.sql.language.statements import plain, without_parentheses

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_SUPPORTED = "aggregates, keys and numbers may be joined by + - * /, SQRT and ABS"
_NEVER_NULL = frozenset({"literal", "add", "sub", "mul", "neg", "paren"})


@dataclass(frozen=True)
class GroupKey:
    """What the query groups by: as it is answered, in its one form (`canonical`), and its type as DuckDB calls it."""

    key: PublicGroup | PrivateGroup
    canonical: str | None
    kind: str

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return is_number(self.kind)

    @property
    def mixed(self) -> bool:
        """Whether some of its values are texts and some are numbers: these have no order."""
        buckets = self.key.buckets if isinstance(self.key, PrivateGroup) else ()
        return len({kind_of(bucket.label) for bucket in buckets if bucket.label is not None}) > 1

    @property
    def no_order(self) -> str:
        """Why mixed values cannot be ordered."""
        return f"the values of {self.key.name} have no order: some are texts, and some are numbers"


class Expressions:
    """Reads what stands in SELECT, HAVING and ORDER BY; `sums` are those that it needs."""

    def __init__(self, scalars: Scalars, keys: Sequence[GroupKey]) -> None:
        self.scalars, self.source, self.keys = scalars, scalars.source, keys
        self.sums: dict[str, int] = {}
        self.named: dict[str, Expression] = {}
        """Outputs by their names, for HAVING and ORDER BY."""

    def read(self, node: Node) -> Expression:
        """An expression of aggregates, keys and numbers."""
        node = without_parentheses(node)
        key = self.key(node)
        if key is not None:
            return self._numeric(key, node)
        if self.scalars.is_aggregate(node):
            return self._aggregate(node)
        if node.key in _ARITHMETIC:
            return Operation(_ARITHMETIC[node.key], (self.read(node.this), self.read(node.expression)))  # type: ignore[arg-type]  # one of its names
        if node.key == "neg":
            return Operation("negate", (self.read(node.this),))
        if node.key in ("sqrt", "abs"):
            return Operation(node.key, (self.read(node.this),))  # type: ignore[arg-type]  # one of its names
        if node.key == "cast" and plain(node.args["to"]) in ("DOUBLE", "FLOAT", "REAL"):
            return self.read(node.this)
        if node.key == "column":
            return self._column(node)
        return self._constant(node)

    def key(self, node: Node) -> int | None:
        """Which key of the query an expression is, written in full or by its name; None where it is none."""
        node = without_parentheses(node)
        if not self.keys or not self.scalars.has_columns(node) or self.scalars.has_aggregates(node):
            return None
        if node.key == "column" and not node.args.get("table"):
            named = [place for place, held in enumerate(self.keys) if held.key.name.casefold() == node.name.casefold()]
            if named:
                return named[0]
        written = canonical(self.scalars, node)
        return next((place for place, held in enumerate(self.keys) if held.canonical == written), None)

    def _numeric(self, key: int, node: Node) -> Expression:
        if not self.keys[key].numeric:
            raise self.source.error(node, f"{plain(node)} is no number: it cannot stand among numbers")
        return KeyValue(key)

    def _column(self, node: Node) -> Expression:
        if node.args.get("table") is None and node.name.casefold() in self.named:
            return self.named[node.name.casefold()]
        held = self.scalars.column(node)
        if isinstance(held, Dimension):
            raise self.source.error(node, private_message(held.name))
        raise self.source.error(
            node, f"{held} stands outside of an aggregate: put it into GROUP BY, or into SUM or AVG"
        )

    def _constant(self, node: Node) -> Expression:
        """A number; refuses anything else, at the part that is to blame."""
        if self.scalars.has_aggregates(node) or self.scalars.has_columns(node):
            self.scalars.check_inside(node)
            raise self.source.error(node, f"found {plain(node)}; {_SUPPORTED}")
        value = self.scalars.constant(node)
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            raise self.source.error(node, f"found {plain(node)}, a {kind_of(value)}; {_SUPPORTED}")
        return Number(float(value))

    def total(self, sql: str) -> SumTerm:
        """The sum of an expression over public columns, each kept once."""
        return SumTerm(self.sums.setdefault(sql, len(self.sums)))

    def _aggregate(self, node: Node) -> Expression:
        condition = None
        if node.key == "filter":
            condition, node = self._filter(node), node.this
        word = self.source.word(node)
        argument = self._argument(node, word)
        if word == "count" and (argument is None or argument.key == "star"):
            return self.total("1" if condition is None else f"CASE WHEN {condition} THEN 1 ELSE 0 END")
        assert argument is not None
        if word in ("count_if", "countif"):
            return self.total(self._truth(argument, condition))
        value = self._value(argument, condition, word)
        if word == "count":
            return self.total(value.count)
        if word == "sum":
            return self.total(value.sql)
        count = self.total(value.count) if word not in ("avg", "mean") else None
        first = self.total(value.sql)
        if count is None:
            return Operation("/", (first, self.total(value.count)))
        spread = Operation("-", (self.total(value.square), Operation("/", (Operation("*", (first, first)), count))))
        people = count if word.endswith("_pop") else Operation("-", (count, Number(1.0)))
        variance = Operation("/", (spread, people))
        return Operation("sqrt", (variance,)) if word.startswith("stddev") else variance

    def _argument(self, node: Node, word: str) -> Node | None:
        given = [part for part in (node.this, *node.expressions) if part is not None and not isinstance(part, str)]
        if len(given) > 1 or (not given and word != "count"):
            raise self.source.error(node, f"{word.upper()} takes one expression over public columns")
        argument = given[0] if given else None
        if argument is not None and argument.key == "distinct":
            raise self.source.error(node, f"{word.upper()}(DISTINCT ...) is not supported: sums over people are")
        if argument is not None and argument.key == "star" and word != "count":
            raise self.source.error(argument, f"{word.upper()} takes an expression over public columns, not *")
        return argument

    def _filter(self, node: Node) -> str:
        condition = node.expression.this
        inside = self.scalars.private_inside(condition)
        if inside is not None:
            raise self.source.error(
                inside, "FILTER takes public columns alone: put conditions on private ones into WHERE"
            )
        sql = self.scalars.sql(condition)
        if self.scalars.type_of(sql, condition) != "BOOLEAN":
            raise self.source.error(condition, "FILTER takes a condition")
        return f"({sql})"

    def _truth(self, argument: Node, condition: str | None) -> str:
        sql = self.scalars.sql(argument)
        if self.scalars.type_of(sql, argument) != "BOOLEAN":
            raise self.source.error(argument, "COUNT_IF takes a condition")
        return f"CASE WHEN ({sql}){'' if condition is None else f' AND {condition}'} THEN 1 ELSE 0 END"

    def _value(self, argument: Node, condition: str | None, word: str) -> _Value:
        sql = self.scalars.sql(argument)
        kind = self.scalars.type_of(sql, argument)
        if word != "count" and kind == "BOOLEAN":
            sql, kind = f"CAST({sql} AS INTEGER)", "INTEGER"
        if word != "count" and not is_number(kind):
            raise self.source.error(argument, f"{word.upper()} takes numbers, and {plain(argument)} is a {kind}")
        sure = condition is None and is_number(kind) and all(inner.key in _NEVER_NULL for inner in argument.walk())
        if condition is not None:
            sql = f"CASE WHEN {condition} THEN {sql} END"
        return _Value(sql, kind, sure)

    def having(self, node: Node) -> Compare:
        """A condition on the estimates and keys of a group."""
        node = without_parentheses(node)
        if node.key in ("and", "or"):
            return Compare(node.key, (self.having(node.this), self.having(node.expression)))  # type: ignore[arg-type]  # one of its names
        if node.key == "not":
            return Compare("not", (self.having(node.this),))
        if node.key in SIGNS:
            return self._compare(SIGNS[node.key], node.this, node.expression)
        if node.key == "between" and not node.args.get("symmetric"):
            low = self._compare(">=", node.this, node.args["low"])
            return Compare("and", (low, self._compare("<=", node.this, node.args["high"])))
        if node.key == "in" and node.expressions:
            parts = [self._compare("=", node.this, value) for value in node.expressions]
            return parts[0] if len(parts) == 1 else Compare("or", tuple(parts))
        raise self.source.error(
            node, f"found {plain(node)}; HAVING takes comparisons of aggregates, keys and numbers, with AND, OR and NOT"
        )

    def _compare(self, sign: Any, left: Node, right: Node) -> Compare:
        for side, other in ((left, right), (right, left)):
            key = self.key(side)
            if key is not None and self.keys[key].mixed and sign not in ("=", "<>"):
                raise self.source.error(side, self.keys[key].no_order)
            if key is not None and not self.keys[key].numeric:
                value = self._value_of_key(other, self.keys[key])
                return Compare(sign, (KeyValue(key), value) if side is left else (value, KeyValue(key)))
        return Compare(sign, (self.read(left), self.read(right)))

    def _value_of_key(self, node: Node, key: GroupKey) -> str | dt.date:
        """A text, a date or a time that a key is compared with."""
        value = None if self.scalars.has_columns(node) else self.scalars.constant(node)
        timed = key.kind in ("DATE", "TIMESTAMP")
        if kind_of(value) != "text" and not (timed and kind_of(value) == "date or time"):
            raise self.source.error(node, f"{key.key.name} is a {key.kind}, and is compared with {plain(node)}")
        found = self.scalars.constant(node, kind=key.kind)
        assert isinstance(found, (str, dt.date))
        return found


@dataclass(frozen=True)
class _Value:
    """The argument of an aggregate as SQL, its type, and whether it can be NULL. What is NULL is added up as 0."""

    sql: str
    kind: str
    never_null: bool

    @property
    def square(self) -> str:
        """The square, in a type that has room for it."""
        decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", self.kind)
        wide = "DOUBLE" if decimal or self.kind in ("DOUBLE", "FLOAT") or "HUGEINT" in self.kind else "HUGEINT"
        if decimal and int(decimal[1]) <= 18:
            wide = f"DECIMAL(38, {decimal[2]})"
        return f"CAST({self.sql} AS {wide}) * CAST({self.sql} AS {wide})"

    @property
    def count(self) -> str:
        return "1" if self.never_null else f"CASE WHEN ({self.sql}) IS NULL THEN 0 ELSE 1 END"


def canonical(scalars: Scalars, node: Node) -> str | None:
    """One form of an expression to group by, whatever the case of its names; None where it is nothing to group by."""
    try:
        dimension, width = bucketed(scalars, node)
        return scalars.sql(node) if dimension is None else f"{dimension.place} {'' if width is None else plain(width)}"
    except SqlError:
        return None


def bucketed(scalars: Scalars, node: Node) -> tuple[Dimension | None, Node | None]:
    """The private dimension that is grouped by, and the width of its buckets where there is one."""
    if node.key == "anonymous" and scalars.source.word(node) == "bucket" and len(node.expressions) == 2:
        return scalars.private(node.expressions[0]), node.expressions[1]
    return scalars.private(node), None


def is_number(kind: str) -> bool:
    """Whether a type of DuckDB's is one of numbers."""
    return kind.startswith("DECIMAL") or kind.endswith("INT") or kind in ("INTEGER", "UINTEGER", "DOUBLE", "FLOAT")
