"""The parser of queries: from SQL to a Query, clause by clause.

`statements` reads the grammar, `scalars` columns and public expressions, `conditions` WHERE, `expressions` aggregates.
Anything unsupported is refused with its position and with what is supported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from veil.errors import InputError
from veil.sql.language.conditions import Conditions
from veil.sql.language.expressions import Expressions, GroupKey, bucketed, canonical
from veil.sql.language.query import (
    TRUE,
    Compare,
    Condition,
    Expression,
    KeyValue,
    Output,
    PrivateGroup,
    PublicGroup,
    Query,
)
from veil.sql.language.regions import disjoint_boxes, intersect, patterns, simplified, union
from veil.sql.language.scalars import Scalars
from veil.sql.language.statements import GRAMMAR, Statement, plain, read, without_parentheses

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

    from veil.sql.table import Table


_CLAUSES = frozenset({"expressions", "from", "where", "group", "having", "order", "limit", "offset", "kind", "hint"})
_KEYWORDS = {
    "joins": "JOIN", "laterals": "LATERAL", "distinct": "DISTINCT", "windows": "WINDOW", "qualify": "QUALIFY",
    "with": "WITH", "sample": "SAMPLE", "into": "INTO", "pivots": "PIVOT", "locks": "FOR",
}  # fmt: skip


def parse(text: str, table: Table) -> Query:
    """What a query in SQL asks of a table. Raises SqlError, with the position, for anything that is not supported.

    >>> from veil.domain import Integers, Record
    >>> from veil.sql.columns import Measure
    >>> from veil.sql.table import Table
    >>> shop = Table(1.0, Record.of(age=Integers(18, 99)), (Measure("purchase", 2),))
    >>> query = parse("SELECT SUM(purchase) FROM people WHERE age BETWEEN 30 AND 40", shop)
    >>> query.sums, query.where
    (('"purchase"',), InRanges(place=0, runs=((12, 23),)))
    >>> parse("SELECT COUNT(*) FROM people WHERE ages > 30", shop)
    Traceback (most recent call last):
    veil.errors.SqlError: line 1, column 35: expected a column of people, got 'ages'; did you mean age?
    """
    source = read(text)
    try:
        return _QueryParser(source, table).query()
    except RecursionError:
        raise source.error("SELECT", "the query is nested too deeply") from None


class _QueryParser:
    """One query, clause by clause."""

    def __init__(self, source: Statement, table: Table) -> None:
        self.source, self.select = source, source.select
        self.clauses = {name.rstrip("_"): held for name, held in self.select.args.items() if held}
        self._check_clauses()
        self.scalars = Scalars(source, table, self._table(table))
        self.conditions = Conditions(self.scalars)
        self.items: list[Node] = self.select.expressions
        self.keys = self._keys()
        self.expressions = Expressions(self.scalars, self.keys)

    def query(self) -> Query:
        sizes = [dimension.size for dimension in self.scalars.dimensions]
        where = self.conditions.read(self.clauses["where"].this) if "where" in self.clauses else TRUE
        where = simplified(where, sizes)
        outputs = self._outputs()
        having = self._having()
        order = (
            tuple(self._order(item) for item in self.clauses["order"].expressions) if "order" in self.clauses else ()
        )
        limit = self._count("limit")
        return Query(
            text=self.source.text,
            sums=tuple(self.expressions.sums),
            outputs=outputs,
            where=where,
            keys=tuple(self._reachable(held.key, where) for held in self.keys),
            having=having,
            order=order,
            limit=limit,
            offset=self._count("offset") or 0,
            explain=self.source.explain,
            remarks=tuple(self.conditions.remarks),
            text_bytes=sum(lengths.copies for lengths in self.scalars.lengths.values()),
            key_bytes=sum(
                self.scalars.lengths[item.key.sql].result for item in self.keys if isinstance(item.key, PublicGroup)
            ),
        )

    def _check_clauses(self) -> None:
        for name in sorted(self.clauses.keys() - _CLAUSES):
            held, word = self.clauses[name], _KEYWORDS.get(name, name.replace("_", " ").upper())
            where = held[0] if isinstance(held, list) else word
            raise self.source.error(where, f"{word} is not supported; supported: {GRAMMAR}")
        if "from" not in self.clauses:
            raise self.source.error("SELECT", f"FROM is missing; supported: {GRAMMAR}")
        if not any(word.text == "SELECT" for word in self.source.words):  # DuckDB would take all columns
            raise self.source.error("FROM", f"SELECT is missing; supported: {GRAMMAR}")
        if not self.select.expressions:
            raise self.source.error("SELECT", f"nothing is selected; supported: {GRAMMAR}")

    def _table(self, table: Table) -> str:
        """The name that the table has in this query."""
        held = self.clauses["from"].this
        extra = {name for name, value in held.args.items() if value} - {"this", "alias"}
        if held.key != "table" or held.this.key != "identifier" or extra:
            raise self.source.error(held, f"found {plain(held)} after FROM; supported: the table {table.name}")
        if held.name.casefold() != table.name.casefold():
            raise self.source.error(held, f"there is no table {held.name!r}; the table is {table.name}")
        alias = held.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise self.source.error(alias, "columns keep their names: supported is FROM table AS name")
        return str(held.alias or table.name)

    def _count(self, clause: str) -> int | None:
        if clause not in self.clauses:
            return None
        node = self.clauses[clause].expression
        value = None if node is None or self.scalars.has_columns(node) else self.scalars.constant(node)
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or value < 0
            or self.clauses[clause].args.get("limit_options")
        ):
            raise self.source.error(node or clause.upper(), f"{clause.upper()} takes a whole number from 0 on")
        return value

    def _keys(self) -> list[GroupKey]:
        group = self.clauses.get("group")
        if group is None:
            return []
        other = {name for name, value in group.args.items() if value} - {"expressions", "all"}
        if other:
            word = min(other).replace("_", " ").rstrip("s").upper()
            raise self.source.error(word, f"{word} is not supported: GROUP BY takes columns and expressions")
        found: dict[str | None, GroupKey] = {}
        if group.args.get("all"):
            wanted = [_inner(item) for item in self.items if not self.scalars.has_aggregates(item)]
        else:
            wanted = [self._grouped(node) for node in group.expressions]
        for node in wanted:
            key = self._key(node)
            found.setdefault(key.canonical, key)
        return list(found.values())

    def _grouped(self, node: Node) -> Node:
        """What stands in GROUP BY: an expression, the number of an item of SELECT, or its alias."""
        node = without_parentheses(node)
        if node.key == "literal" and not node.is_string:
            return _inner(self._item(node))
        if node.key == "column" and node.args.get("table") is None and self.scalars.lookup(node.name) is None:
            for item in self.items:
                if item.key == "alias" and item.alias.casefold() == node.name.casefold():
                    return _inner(item)
        return node

    def _item(self, node: Node) -> Node:
        """The item of SELECT that a number stands for."""
        place = self.scalars.number(node) if node.this.isdigit() else 0
        assert isinstance(place, int)
        if not 1 <= place <= len(self.items):
            raise self.source.error(
                node, f"there is no item {node.this} in SELECT: there are {len(self.items)}, counted from 1"
            )
        return self.items[place - 1]

    def _key(self, node: Node) -> GroupKey:
        if self.scalars.has_aggregates(node):
            raise self.source.error(node, "an aggregate is nothing to group by: GROUP BY takes columns and expressions")
        if not self.scalars.has_columns(node):
            raise self.source.error(node, f"{plain(node)} is the same for everybody: GROUP BY takes columns")
        dimension, width = bucketed(self.scalars, node)
        form = canonical(self.scalars, node)
        if dimension is None:
            sql = self.scalars.sql(node)
            return GroupKey(PublicGroup(self._name(form, node), sql), form, self.scalars.type_of(sql, node))
        try:
            buckets, remark = dimension.buckets(None if width is None else self.scalars.width(width))
        except InputError as problem:
            raise problem if hasattr(problem, "line") else self.source.error(node, str(problem)) from None
        if remark is not None:
            self.conditions.remarks.setdefault(remark)
        return GroupKey(
            PrivateGroup(self._name(form, node), dimension.place, buckets), form, dimension.type_of(buckets)
        )

    def _name(self, form: str | None, node: Node) -> str:
        """A key's name: its alias in SELECT, its column's own, or how it is written."""
        for item in self.items:
            named = item.key == "alias" and not self.scalars.has_aggregates(item) and self.scalars.has_columns(item)
            if named and canonical(self.scalars, _inner(item)) == form:
                return str(item.alias)
        if node.key == "column":
            held = self.scalars.column(node)
            return held if isinstance(held, str) else held.name
        return plain(node)

    def _reachable(self, key: PublicGroup | PrivateGroup, where: Condition) -> PublicGroup | PrivateGroup:
        """The key without buckets that WHERE leaves nobody in, whatever the public columns hold."""
        if not isinstance(key, PrivateGroup):
            return key
        split = patterns(where)
        sizes = [dimension.size for dimension in self.scalars.dimensions]
        boxes = disjoint_boxes(split.where((1 << len(split.atoms)) - 1), sizes)
        sides = (((0, sizes[key.place]),) if box[key.place] is None else box[key.place] for box in boxes)
        reached = union(*(side for side in sides if side is not None))
        kept = (bucket for bucket in key.buckets if intersect(((bucket.start, bucket.stop),), reached))
        return replace(key, buckets=tuple(kept))

    def _outputs(self) -> tuple[Output, ...]:
        taken = [held.key.name for held in self.keys]
        shown: set[int] = set()
        found: list[Output] = []
        written = self.source.items
        for place, item in enumerate(self.items):
            inner = _inner(item)
            if inner.key == "star" or (inner.key == "column" and inner.this.key == "star"):
                raise self.source.error(item, "* would show people: SELECT takes keys of GROUP BY and aggregates")
            key = self.expressions.key(inner)
            if key is not None and key not in shown:
                shown.add(key)
                continue
            value = self.expressions.read(inner)
            unnamed = written[place] if len(written) == len(self.items) else plain(inner)
            name = _unlike(str(item.alias) if item.key == "alias" else unnamed, taken)
            taken.append(name)
            found.append(Output(name, value))
            self.expressions.named.setdefault(name.casefold(), value)
        if not found:
            raise self.source.error(
                self.items[0], "SELECT has no aggregate: add COUNT(*), SUM(...), AVG(...) or another"
            )
        return tuple(found)

    def _having(self) -> Compare | None:
        return self.expressions.having(self.clauses["having"].this) if "having" in self.clauses else None

    def _order(self, item: Node) -> tuple[Expression, bool]:
        if item.args.get("nulls_first") or item.args.get("with_fill"):
            raise self.source.error(item, "what is not known comes last: ORDER BY takes ASC and DESC alone")
        node, down = without_parentheses(item.this), bool(item.args.get("desc"))
        if node.key == "literal" and not node.is_string:
            node = _inner(self._item(node))
        if node.key == "var":
            raise self.source.error("ORDER BY", f"ORDER BY {plain(node)} is not supported: name what to order by")
        key = self.expressions.key(node)
        if key is not None and self.keys[key].mixed:
            raise self.source.error(node, self.keys[key].no_order)
        return (self.expressions.read(node) if key is None else KeyValue(key)), down


def _inner(item: Node) -> Node:
    """An item of SELECT without its alias."""
    return without_parentheses(item.this if item.key == "alias" else item)


def _unlike(name: str, taken: list[str]) -> str:
    """The name, with a number where another column has it."""
    number, found = 1, name
    while found.casefold() in (other.casefold() for other in taken):
        number, found = number + 1, f"{name}_{number + 1}"
    return found
