"""Columns, constants and public expressions of a query: checked, and written again as SQL for DuckDB.

DuckDB gets SQL that is made from the syntax tree: columns are those of the table, quoted; functions are those of a list
that touches neither files nor the system. An empty table with the same columns gives the types, before any row is read.

`check_lengths` bounds the texts of a public expression before it is evaluated: a few nested calls of replace make a
text of any length from a short query. An expression is refused if its bound exceeds the limit. DuckDB keeps all texts
that the expressions of a query make for a vector of rows, and its memory limit does not count them:
`veil.sql.execution.costs` does.

`unknown_labels` are the remarks about compared labels that a public column does not have; most are misspelt. Such a
comparison is true for nobody, and the answer to it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from veil.sql.columns import Category, identifier
from veil.sql.language.dimensions import Dimension, Width
from veil.sql.language.statements import MOST_DIGITS, Statement, plain, read, without_parentheses
from veil.tools.messages import missing_extra, unknown_name

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

    from veil.errors import SqlError
    from veil.sql.table import Table

SUPPORTED = "public expressions are made of columns, values, arithmetic, comparisons, CASE, CAST and scalar functions"
AGGREGATES = (
    "count", "count_if", "countif", "sum", "avg", "mean", "var_pop", "var_samp", "variance", "stddev", "stddev_pop",
    "stddev_samp",
)  # fmt: skip


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_SYNTAX = _words(  # sqlglot's kinds of nodes that are no functions
    "add sub mul div intdiv mod neg paren and or not eq neq lt lte gt gte nullsafeeq nullsafeneq between in is like",
    "ilike escape dpipe case if cast trycast interval extract column identifier literal boolean null var datatype",
    "datatypeparam",
)
_FUNCTIONS = _words(  # DuckDB's names
    "abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log2 log10 pow power mod greatest least coalesce",
    "nullif ifnull sin cos tan asin acos atan atan2 radians degrees pi isnan isinf isfinite",
    "lower upper lcase ucase trim ltrim rtrim length len char_length strlen substring substr left right replace",
    "concat contains starts_with ends_with prefix suffix instr strpos position str_position reverse split_part",
    "regexp_matches regexp_like regexp_full_match regexp_replace regexp_extract",
    "year month day quarter week weekofyear isoyear dayofweek isodow weekday dayofyear hour minute second epoch",
    "date_trunc datetrunc date_part datepart date_diff datediff date_sub date_add last_day dayname monthname",
    "make_date strftime time_bucket to_days to_weeks to_months to_years to_hours to_minutes to_seconds bucket",
)
_OTHER_AGGREGATES = _words(  # refused by name
    "min max median mode quantile quantile_cont quantile_disc approx_count_distinct approx_quantile string_agg list",
    "array_agg group_concat listagg first last any_value arg_min arg_max product corr covar_pop covar_samp kurtosis",
    "skewness entropy histogram bool_and bool_or bit_and bit_or bit_xor percentile_cont percentile_disc",
)
_TYPES = _words(  # sqlglot's names of types to cast to: a type's name is written as it is, so that no other may pass
    "BOOLEAN TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT FLOAT DOUBLE DECIMAL VARCHAR TEXT DATE",
    "TIMESTAMP TIMESTAMPNTZ TIME INTERVAL",
)
_COMPARISONS = frozenset({"eq", "neq", "lt", "lte", "gt", "gte", "between", "in"})
_TRUTHS = _COMPARISONS | {"and", "or", "not", "is", "like", "ilike", "escape", "boolean", "null"}
_AMOUNT = re.compile(r"\d{1,18}(\.\d{1,9})?")
_MEMORY = "128MB"
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


class Scalars:
    """What stands in a query over one table: columns resolved, constants evaluated, public expressions as SQL."""

    def __init__(self, source: Statement, table: Table, alias: str) -> None:
        self.source, self.alias, self.name = source, alias, table.name
        parts = zip(table.private.names, table.private.parts, strict=True)
        self.dimensions = [Dimension(place, name, part) for place, (name, part) in enumerate(parts)]
        self.public = [column.name for column in table.public]
        self._stored = tuple((column.name, column.sql) for column in table.public)
        texts = (column for column in table.public if isinstance(column, Category))
        self._labels = {column.name: max(len(label.encode()) for label in column.labels) for column in texts}
        self.lengths: dict[str, Lengths] = {}
        """How long the texts of each public expression can be, by its SQL."""

    def column(self, node: Node) -> Dimension | str:
        """The private dimension or the name of the public column that a name stands for."""
        if any(node.args.get(part) for part in ("db", "catalog")) or node.this.key != "identifier":
            raise self.source.error(node, f"found {plain(node)}; supported: columns by name, or as {self.name}.column")
        qualifier = node.args.get("table")
        if qualifier is not None and qualifier.name.casefold() not in (self.alias.casefold(), self.name.casefold()):
            raise self.source.error(node, f"there is no table {qualifier.name} here; the query is over {self.name}")
        found = self.lookup(node.name)
        if found is None:
            every = [*(one.name for one in self.dimensions), *self.public]
            raise self.source.error(node.this, unknown_name(f"a column of {self.name}", node.name, every))
        return found

    def lookup(self, name: str) -> Dimension | str | None:
        """The column of a name, whatever the case of its letters; None where there is none."""
        folded = name.casefold()
        every: Sequence[Dimension | str] = [*self.dimensions, *self.public]
        return next((held for held in every if _name(held).casefold() == folded), None)

    def private(self, node: Node) -> Dimension | None:
        """The private dimension that a node is, and nothing around it but parentheses; None for anything else."""
        inner = without_parentheses(node)
        found = self.column(inner) if inner.key == "column" else None
        return found if isinstance(found, Dimension) else None

    def private_inside(self, node: Node) -> Node | None:
        """The first private column inside an expression; None where there is none."""
        found = [inner for inner in node.walk() if inner.key == "column" and isinstance(self.column(inner), Dimension)]
        return min(found, key=self.source.start, default=None)

    def has_columns(self, node: Node) -> bool:
        """Whether an expression depends on any column."""
        return any(inner.key == "column" for inner in node.walk())

    def is_aggregate(self, node: Node) -> bool:
        """Whether a node itself is one of the supported aggregates, or a FILTER of one."""
        named = node.key == "filter" or _is_function(node)
        return named and self.source.word(node.this if node.key == "filter" else node) in AGGREGATES

    def has_aggregates(self, node: Node) -> bool:
        """Whether an aggregate stands inside an expression."""
        return any(self.is_aggregate(inner) for inner in node.walk())

    def sql(self, node: Node) -> str:
        """A public expression as DuckDB is asked to evaluate it; refuses what is private, unknown or not safe."""
        lengths = self._check(node)
        self._check_truths(node)
        self._check_texts(node)
        sql = plain(self._rewritten(node))
        self.lengths[sql] = lengths
        return sql

    def type_of(self, sql: str, node: Node) -> str:
        """DuckDB's type of a public expression; refuses one that DuckDB cannot make sense of."""
        import duckdb

        try:
            return _type(self._stored, sql)
        except duckdb.Error as problem:
            raise self.source.error(node, _first_line(problem)) from None

    def constant(self, node: Node, kind: str | None = None) -> Any:
        """The value of an expression without columns: a number, a text, a truth value, a date, a time or None.

        With a `kind`, a type of DuckDB's, the value is taken for one of that type.
        """
        import duckdb

        inner = without_parentheses(node)
        if inner.key == "literal" and kind is None:
            return inner.this if inner.is_string else self.number(inner)
        self._check(node)
        sql = plain(node) if kind is None else f"CAST({plain(node)} AS {kind})"
        try:
            (value,) = _probe(self._stored).cursor().execute(f"SELECT {sql}").fetchone()
        except duckdb.Error as problem:
            raise self.source.error(node, _first_line(problem)) from None
        return value

    def number(self, literal: Node) -> int | float | Decimal:
        """The number that is written out in a query."""
        if len(literal.this) > MOST_DIGITS:
            raise self.source.error(literal, f"this number has more than {MOST_DIGITS} digits")
        return _plain_number(literal.this)

    def width(self, node: Node) -> Fraction | Width:
        """The width of buckets: a number, or an INTERVAL of time."""
        inner = without_parentheses(node)
        if inner.key == "interval":
            return self._interval(inner)
        value = None if self.has_columns(inner) else self.constant(inner)
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not 0 < value < float("inf"):
            raise self.source.error(node, "the width of buckets is a number above 0, or INTERVAL '7' DAY")
        return Fraction(value)

    def _interval(self, node: Node) -> Width:
        amount, unit = node.this, str(node.args.get("unit") or "").lower().rstrip("s")
        written = amount.name if amount is not None and amount.key == "literal" else ""
        count = Fraction(written) if _AMOUNT.fullmatch(written) else Fraction(0)
        if count > 0 and unit in _SECONDS:
            return Width(seconds=count * _SECONDS[unit])
        if count > 0 and count.denominator == 1 and unit in _MONTHS:
            return Width(months=int(count) * _MONTHS[unit])
        raise self.source.error(node, "supported: INTERVAL '7' DAY, and so for SECOND, MINUTE, HOUR, WEEK, MONTH, YEAR")

    def check_inside(self, node: Node) -> None:
        """Refuses what is private, unknown or not safe inside an expression, whatever aggregates stand in it."""
        for inner in node.walk(prune=self.is_aggregate):
            if not self.is_aggregate(inner):
                self._check_one(inner)

    def _check(self, node: Node) -> Lengths:
        """Refuse whatever is not on the lists, at its own place, and texts that are too long. Return their lengths."""
        for inner in node.walk():
            self._check_one(inner)
        return check_lengths(node, self._longest, self.source.error)

    def _longest(self, column: Node) -> int:
        return self._labels.get(str(self.lookup(column.name)), 40)

    def _check_one(self, node: Node) -> None:
        if node.key == "column":
            held = self.column(node)
            if isinstance(held, Dimension):
                raise self.source.error(node, private_message(held.name))
        elif node.key == "datatype" and node.this.name not in _TYPES:
            raise self.source.error(
                node, "this type is not supported; types are numbers, VARCHAR, BOOLEAN, DATE, TIMESTAMP"
            )
        elif node.key == "escape" and not (node.expression.is_string and len(node.expression.this) == 1):
            raise self.source.error(node.expression, "ESCAPE takes one character, as in LIKE '10!%' ESCAPE '!'")
        elif node.key not in _SYNTAX:
            self._check_function(node)
        if node.key not in ("literal", "identifier"):  # these are quoted; any other word is written as it is
            for word in node.args.values():
                if isinstance(word, str) and not word.replace("_", "").isalnum():
                    raise self.source.error(node, f"{word!r} is not supported here: expected one word")

    def _check_function(self, node: Node) -> None:
        if not _is_function(node):
            raise self.source.error(node, f"found {_what(node)}, which is not supported; {SUPPORTED}")
        word = self.source.word(node)
        if word in AGGREGATES:
            raise self.source.error(
                node,
                f"an aggregate ({word.upper()}) cannot stand here: aggregates stand in SELECT, HAVING and ORDER BY",
            )
        if word in _OTHER_AGGREGATES:
            names = ", ".join(name.upper() for name in AGGREGATES if name not in ("countif", "mean"))
            raise self.source.error(node, f"{word.upper()} is not supported; aggregates are {names}")
        if word not in _FUNCTIONS:
            raise self.source.error(
                node, unknown_name("a function of numbers, texts or dates", word, sorted(_FUNCTIONS))
            )
        if node.key == "anonymous" and word == "bucket" and len(node.expressions) != 2:
            raise self.source.error(node, "BUCKET takes a column and a width: BUCKET(age, 10)")

    def _rewritten(self, node: Node) -> Node:
        """A copy of a checked expression: columns by their own names, quoted, and BUCKET by what DuckDB has."""
        from sqlglot import exp

        def rewrite(inner: Node) -> Node:
            if inner.key == "column":
                return exp.column(str(self.lookup(inner.name)), quoted=True)
            if inner.key != "anonymous" or self.source.word(inner) != "bucket":
                return inner
            value, width = inner.expressions
            read = self.width(width)
            held = self._rewritten(value)
            if self.type_of(plain(held), value) not in ("DATE", "TIMESTAMP"):
                quotient = exp.Div(this=exp.Paren(this=held), expression=width.copy(), typed=False, safe=False)
                return exp.Paren(this=exp.Mul(this=exp.Floor(this=quotient), expression=width.copy()))
            step = width if isinstance(read, Width) else exp.Interval(this=width.copy(), unit=exp.var("DAY"))
            return exp.Anonymous(this="TIME_BUCKET", expressions=[step.copy(), held])

        return node.transform(rewrite)

    def _check_truths(self, node: Node) -> None:
        """Refuses a text where a condition has to stand."""
        for inner in node.walk():
            simple_case = inner.key == "if" and inner.parent is not None and inner.parent.this is not None
            if inner.key not in ("and", "or", "not", "if") or simple_case:
                continue
            sides = [inner.this] if inner.key in ("not", "if") else [inner.this, inner.expression]
            for side in map(without_parentheses, sides):
                if side.key not in _TRUTHS and self.type_of(plain(self._rewritten(side)), side) == "VARCHAR":
                    raise self.source.error(
                        side, f"expected a condition, that is true or false, and found {plain(side)}"
                    )

    def _check_texts(self, node: Node) -> None:
        """Refuses a text that is compared with something of another type, and cannot be read as one."""
        for inner in node.walk():
            if inner.key not in _COMPARISONS:
                continue
            sides = [side for side in inner.iter_expressions() if side.key not in ("subquery", "select")]
            texts = [side for side in sides if side.key == "literal" and side.is_string]
            other = next((side for side in sides if self.has_columns(side)), None)
            if texts and other is not None:
                self._check_readable(texts, self.type_of(plain(self._rewritten(other)), other))

    def _check_readable(self, texts: Sequence[Node], kind: str) -> None:
        if kind == "VARCHAR":
            return
        for text in texts:
            sql = f"SELECT TRY_CAST({plain(text)} AS {kind}) IS NOT NULL"
            (readable,) = _probe(self._stored).cursor().execute(sql).fetchone()
            if not readable:
                raise self.source.error(text, f"{plain(text)} is compared with a {kind}, and is none")


def private_message(name: str) -> str:
    """Why a private column may not stand where it does."""
    return (
        f"{name} is private: nobody's value is known. It may be compared with values in WHERE "
        f"(=, <>, <, <=, >, >=, BETWEEN, IN, IS NULL), and stand in GROUP BY as {name} or BUCKET({name}, width)"
    )


def _name(held: Dimension | str) -> str:
    return held if isinstance(held, str) else held.name


def _is_function(node: Node) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Func)


def _what(node: Node) -> str:
    """What a node is, in words for messages."""
    words = {
        "subquery": "a sub-query",
        "select": "a sub-query",
        "window": "a window (OVER)",
        "distinct": "DISTINCT",
        "star": "*",
        "placeholder": "a placeholder",
        "tuple": "a list of several values",
        "filter": "FILTER",
        "order": "ORDER BY inside a function",
    }
    return words.get(node.key, plain(node) if len(plain(node)) <= 40 else node.key)


def _plain_number(text: str) -> int | float | Decimal:
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _first_line(problem: Exception) -> str:
    """What DuckDB says, without the place in the text that it was asked: that text is not the analyst's."""
    if "expression depth" in str(problem):
        return "this is nested too deeply"
    return str(problem).split("\n", 1)[0].removeprefix("Binder Error: ").removeprefix("Conversion Error: ")


@lru_cache(maxsize=1024)
def _type(stored: tuple[tuple[str, str], ...], sql: str) -> str:
    found = _probe(stored).cursor().execute(f"SELECT ({sql}) FROM probe").description  # noqa: S608  # of a checked tree
    return str(found[0][1])


@lru_cache(maxsize=8)
def _probe(stored: tuple[tuple[str, str], ...]) -> Any:
    """An empty table with the public columns in memory, to ask DuckDB for types and constants; nothing can leave it."""
    try:
        import duckdb
    except ImportError:
        raise missing_extra("queries need sqlglot and duckdb", "sql") from None

    limits = {"threads": "1", "memory_limit": _MEMORY, "temp_directory": ""}
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false", **limits})
    columns = ", ".join(f"{identifier('public.' + name)} BIGINT" for name, _ in stored)
    connection.execute(f"CREATE TABLE stored ({columns or 'nothing BIGINT'})")
    values = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in stored)
    connection.execute(f"CREATE VIEW probe AS SELECT {values or 'nothing'} FROM stored")  # noqa: S608
    connection.execute("SET lock_configuration = true")
    return connection


MOST_BYTES = 1 << 16
_NUMBER = 40  # bytes of a number, a date or a truth value, at most
_NO_TEXT = frozenset(  # sqlglot's kinds of nodes that are numbers, dates or truth values
    re.findall(
        r"\w+",
        "add sub mul div intdiv mod neg and or not eq neq lt lte gt gte nullsafeeq nullsafeneq between in is like "
        "ilike escape interval extract length contains startswith endswith regexplike regexpilike regexpfullmatch",
    )
)
_NO_COPY = frozenset({"paren", "case", "if", "coalesce", "nullif"})  # these return one of their arguments as it is


class Lengths(NamedTuple):
    """Upper bounds on the texts of an expression, in bytes of UTF-8."""

    result: int
    """The text that the expression returns."""
    copies: int = 0
    """The sum of all texts that its functions return for one row."""


def check_lengths(node: Node, column: Callable[[Node], int], refused: Callable[[Node, str], SqlError]) -> Lengths:
    """Return upper bounds on the texts of an expression; raise the error of `refused` if a text can be too long.

    `column` returns the maximum length of the text of a column.
    """
    if node.key in ("identifier", "datatype", "datatypeparam", "var"):
        return Lengths(0)
    copies = 0
    if node.key == "literal":
        length = len(node.this.encode())
    elif node.key == "column":
        length = column(node)
    else:
        arguments = {name: [check_lengths(x, column, refused) for x in parts] for name, parts in _arguments(node)}
        length = _result_length(node, {name: sum(x.result for x in parts) for name, parts in arguments.items()})
        copies = sum(x.copies for parts in arguments.values() for x in parts)
        copies += 0 if node.key in _NO_TEXT | _NO_COPY else length
    if length > MOST_BYTES:
        raise refused(node, f"this could become a text of more than {MOST_BYTES:,} bytes")
    return Lengths(length, copies)


def _arguments(node: Node) -> Iterator[tuple[str, list[Node]]]:
    for name, value in node.args.items():
        parts = value if isinstance(value, list) else [value]
        if all(hasattr(part, "key") for part in parts):
            yield name, parts


def _result_length(node: Node, parts: dict[str, int]) -> int:
    """Return an upper bound on the text that a function returns for arguments of these lengths."""
    if node.key in _NO_TEXT:
        return _NUMBER
    if node.key in ("replace", "regexpreplace"):
        return 2 * (parts.get("this", 0) + 1) * (parts.get("replacement", 0) + 1)
    if node.key == "timetostr":  # %A and the like stand for whole words
        return _NUMBER * (1 + parts.get("format", 0))
    return sum(parts.values()) + (0 if node.key in ("paren", "dpipe", "concat") else _NUMBER)


def unknown_labels(text: str, table: Table) -> tuple[str, ...]:
    """A remark for each label in a query that the public column beside it does not have, with those near it."""
    known = {column.name.casefold(): column for column in table.public if isinstance(column, Category)}
    said = (
        _remark(column, label) for column, label in _compared(read(text).select, known) if label not in column.labels
    )
    return tuple(dict.fromkeys(said))


def _compared(select: Node, known: dict[str, Category]) -> Iterator[tuple[Category, str]]:
    """The columns that are compared with labels, as they stand: not what functions make of them."""
    for node in select.walk():
        if node.key not in ("eq", "neq", "in"):
            continue
        sides = [without_parentheses(one) for one in (node.this, node.args.get("expression"), *node.expressions) if one]
        columns = [known[one.name.casefold()] for one in sides if one.key == "column" and one.name.casefold() in known]
        for column in columns:
            yield from ((column, one.name) for one in sides if one.key == "literal" and one.is_string)


def _remark(column: Category, label: str) -> str:
    return f"no row has this label: {unknown_name(f'a label of {column.name}', label, column.labels)}"
