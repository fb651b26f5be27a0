"""WHERE: conditions with private and public parts, with NOT pushed down to the comparisons.

DuckDB evaluates a part on public columns alone, in SQL's three-valued logic. A comparison of a private dimension with
values becomes ranges of codes. A missing private value is NULL: neither a comparison with it nor its negation is true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from veil.errors import InputError
from veil.sql.language.dimensions import NEGATED, Comparison, Dimension
from veil.sql.language.query import FALSE, TRUE, Condition, InRanges, PublicCondition, Runs
from veil.sql.language.regions import both, complement, either, intersect, union
from veil.sql.language.scalars import Scalars, private_message
from veil.sql.language.statements import plain, without_parentheses

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node


SIGNS: dict[str, Comparison] = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_TURNED: dict[Comparison, Comparison] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Conditions:
    """Reads conditions over one table; `remarks` tell what was read at the nearest edge of a bucket."""

    def __init__(self, scalars: Scalars) -> None:
        self.scalars, self.source = scalars, scalars.source
        self.remarks: dict[str, None] = {}

    def read(self, node: Node, *, negated: bool = False) -> Condition:
        """The condition, or its negation."""
        node = without_parentheses(node)
        self._check_queries(node)
        if self.scalars.private_inside(node) is None:
            return self._public(node, negated=negated)
        if node.key == "not":
            return self.read(node.this, negated=not negated)
        if node.key in ("and", "or"):
            return self._joined(node, negated=negated)
        return self._compared(node, negated=negated)

    def _check_queries(self, node: Node) -> None:
        """Refuses sub-queries before anything else: their columns are not the table's."""
        for inner in node.find_all(*_queries()):
            raise self.source.error(inner, "a sub-query is not supported: a condition compares columns with values")

    def _joined(self, node: Node, *, negated: bool) -> Condition:
        """AND or OR: the public parts together are one condition of DuckDB's."""
        parts = list(_operands(node, node.key))
        public = [part for part in parts if self.scalars.private_inside(part) is None]
        held = [self.read(part, negated=negated) for part in parts if self.scalars.private_inside(part) is not None]
        if public:
            together = public[0] if len(public) == 1 else _join(node.key, public)
            held.append(self._public(together, negated=negated, at=public[0]))
        return (both if (node.key == "and") != negated else either)(held)

    def _public(self, node: Node, *, negated: bool, at: Node | None = None) -> Condition:
        sql = self.scalars.sql(node)
        if self.scalars.type_of(sql, at or node) not in ("BOOLEAN", '"NULL"'):
            raise self.source.error(at or node, f"expected a condition, that is true or false, and found {plain(node)}")
        if not self.scalars.has_columns(node):
            value = self.scalars.constant(node)
            return TRUE if value is not None and bool(value) != negated else FALSE
        return PublicCondition(f"NOT ({sql})" if negated else sql)

    def _compared(self, node: Node, *, negated: bool) -> Condition:
        """A comparison of one private dimension with values."""
        if node.key == "column":
            return self._sides(node, "=", None, negated=negated)
        if node.key in SIGNS:
            left, right = node.this, node.expression
            if self.scalars.private(left) is not None:
                return self._sides(left, SIGNS[node.key], right, negated=negated)
            if self.scalars.private(right) is not None:
                return self._sides(right, _TURNED[SIGNS[node.key]], left, negated=negated)
        dimension = None if node.key not in ("between", "in", "is") else self.scalars.private(node.this)
        if dimension is None:
            raise self._refused(node)
        if node.key == "is" and node.expression.key == "null":
            missing = complement(dimension.known, dimension.size)
            return _within(dimension, complement(missing, dimension.size) if negated else missing)
        if node.key == "between" and not node.args.get("symmetric"):
            low = self._sides(node.this, ">=", node.args["low"], negated=negated)
            high = self._sides(node.this, "<=", node.args["high"], negated=negated)
            return (either if negated else both)((low, high))
        if (
            node.key == "in"
            and node.expressions
            and not any(node.args.get(part) for part in ("query", "unnest", "field"))
        ):
            return self._listed(dimension, node.expressions, negated=negated)
        raise self._refused(node)

    def _listed(self, dimension: Dimension, values: list[Node], *, negated: bool) -> Condition:
        read = [self._runs(dimension, "=", value) for value in values]
        inside = union(*(runs for runs in read if runs is not None))
        if not negated:
            return _within(dimension, inside)
        if None in read:  # NOT IN a list with a NULL is never true
            return FALSE
        return _within(dimension, intersect(complement(inside, dimension.size), dimension.known))

    def _sides(self, column: Node, sign: Comparison, value: Node | None, *, negated: bool) -> Condition:
        dimension = cast("Dimension", self.scalars.private(column))
        wanted = NEGATED[sign] if negated else sign
        if value is not None:
            runs = self._runs(dimension, wanted, value)
            return FALSE if runs is None else _within(dimension, runs)
        try:
            runs, _ = dimension.compared(wanted, True, "TRUE")  # a dimension that stands alone is to be true
        except InputError:
            raise self.source.error(column, f"{dimension.name} is no condition: compare it with a value") from None
        return _within(dimension, runs)

    def _runs(self, dimension: Dimension, sign: Comparison, value: Node) -> Runs | None:
        """The codes for which a comparison is true; None where it is with NULL."""
        if self.scalars.has_columns(value):
            raise self.source.error(
                value, f"{dimension.name} is private, and can be compared with values alone, not with another column"
            )
        constant = self.scalars.constant(value)
        if constant is None:
            return None
        try:
            runs, remark = dimension.compared(sign, constant, plain(value) if value.key == "literal" else str(constant))
        except InputError as problem:
            raise self.source.error(value, str(problem)) from None
        if remark is not None:
            self.remarks.setdefault(remark)
        return runs

    def _refused(self, node: Node) -> InputError:
        inside = self.scalars.private_inside(node)
        assert inside is not None
        dimension = cast("Dimension", self.scalars.column(inside))
        return self.source.error(inside, private_message(dimension.name))


def _queries() -> tuple[type[Node], ...]:
    from sqlglot import exp

    return exp.Select, exp.SetOperation


def _within(dimension: Dimension, runs: Runs) -> Condition:
    if runs == ((0, dimension.size),):
        return TRUE
    return InRanges(dimension.place, runs) if runs else FALSE


def _operands(node: Node, key: str) -> Iterator[Node]:
    """The parts of a chain of ANDs or of ORs, from left to right."""
    open_parts = [node]
    while open_parts:
        part = without_parentheses(open_parts.pop())
        if part.key == key:
            open_parts += [part.expression, part.this]
        else:
            yield part


def _join(key: str, parts: list[Node]) -> Node:
    from sqlglot import exp

    return (exp.and_ if key == "and" else exp.or_)(*(part.copy() for part in parts))
