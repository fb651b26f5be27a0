"""DuckDB over the rows of one table: set up, locked, and with its errors translated to those of veil.

A database holds one view of the table. In it the public columns have their own names, and are values; the columns of
the reports have names with a random part, which no query can contain. Once the view exists nothing outside can be
reached: no file but those of the table, no extension, no variable of the program, no setting.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.errors import InputError, LimitError
from veil.reports.columns import Reports
from veil.sql.columns import identifier, literal
from veil.tools.limits import check, current, interruptible
from veil.wire.arrow import arrow_schema, to_arrow

if TYPE_CHECKING:
    import duckdb

    from veil.sql.table import Table


IN_MEMORY = 128 << 20
"""Reports of so many bytes in all are copied into DuckDB's memory, where a query takes half the time."""

_AGGREGATES = 128  # in one pass: each takes about a megabyte
DUCKDB_BYTES = 640 * 10**6
"""DuckDB's own memory, at most."""
_LITERAL = re.compile(r"[\w/.:=+@, -]*")


def is_literal(path: Path) -> bool:
    """True if DuckDB reads a path as the name of this one file.

    `read_parquet` takes every path as a pattern, and escaping is not exact: `[*]` fails beside a backslash. So only
    letters, digits and signs without a meaning are let through, in this and in later versions of DuckDB.

    >>> is_literal(Path("/tables/shop 1/part-1.parquet")), is_literal(Path("/tables/s*/part-1.parquet"))
    (True, False)
    """
    return _LITERAL.fullmatch(path.as_posix()) is not None


class LockedDuckDB:
    """The rows of a table in DuckDB: from Parquet files with literal paths, or from reports that can be read again."""

    def __init__(
        self,
        table: Table,
        people: int,
        files: Sequence[Path] = (),
        reports: Callable[[], Iterable[Reports]] | None = None,
        token: str | None = None,
    ) -> None:
        import duckdb

        from veil.kernels.parallel import thread_count

        self.table = table
        self.token = token or secrets.token_hex(8)
        """The random part of our names; databases over parts of one table share it."""
        self._reports = reports
        self._own = self.name("stored")
        self.view = self.name("people")
        self.known: dict[str, Any] = {}
        """Aggregates over all rows, as far as they were asked for."""
        limits = current()
        memory = DUCKDB_BYTES if limits is None else min(DUCKDB_BYTES, limits.megabytes * 10**6)
        self._connection = duckdb.connect(
            ":memory:", config={"memory_limit": f"{memory}B", "temp_directory": "", "threads": thread_count()}
        )
        small = people * table.survey.layout.size <= IN_MEMORY
        with told("the rows of the table"):
            if reports is None:
                listed = _listed(file.as_posix() for file in files)
                # a folder named "a=1" holds no column
                self._source = f"read_parquet({listed}, hive_partitioning = false)"
                self._connection.execute(f"SET allowed_paths = {listed}")
            else:
                self._source = self.name("arriving")
            if small:
                self._load()
            self._lock()

    def _load(self) -> None:
        stored = ", ".join(identifier(name) for name in self.table.survey.layout.names)
        with self._reading(self._connection):
            # rows of one question side by side: a query that reads few questions skips the others' blocks
            order = ["ORDER BY choice"] if "choice" in self.table.survey.ask.layout.names else []
            self._connection.execute(f"CREATE TABLE {self._own} AS {select([stored], self._source, *order)}")
        self._source, self._reports = self._own, None

    def _lock(self) -> None:
        for setting in ("enable_external_access", "autoinstall_known_extensions", "autoload_known_extensions"):
            self._connection.execute(f"SET {setting} = false")
        self._connection.execute("SET python_enable_replacements = false")
        self._connection.execute("SET lock_configuration = true")

    def name(self, of: str | int) -> str:
        """A name for something of ours: no query can mean it."""
        return f"veil_{self.token}_{of}"

    @property
    def people(self) -> str:
        """The view of the table, as it stands after FROM."""
        columns = [f"{column.sql} AS {identifier(column.name)}" for column in self.table.public]
        columns += [f"{column.stored} AS {self.raw(i)}" for i, column in enumerate(self.table.public)]
        asked = self.table.survey.ask.layout.names
        columns += [f"{identifier(name)} AS {self.report(i)}" for i, name in enumerate(asked)]
        return f"({select(columns, self._source)}) AS {self.view}"

    def report(self, place: int) -> str:
        """The name of a column of the reports."""
        return self.name(f"report_{place}")

    def raw(self, place: int) -> str:
        """The name of a public column's integers."""
        return self.name(f"public_{place}")

    @property
    def choice(self) -> str | None:
        """The name of the column that says which question was answered; None where everybody answers the same."""
        names = self.table.survey.ask.layout.names
        return self.report(names.index("choice")) if "choice" in names else None

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own: several queries may run at once."""
        return self._connection.cursor()

    @contextlib.contextmanager
    def _reading(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Reports that come one by one are there for one pass; those in files or in memory are always there."""
        with interruptible(connection.interrupt), self._arriving(connection):
            yield

    @contextlib.contextmanager
    def _arriving(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        reports = self._reports
        if reports is None:
            yield
            return
        import pyarrow as pa

        survey, broken = self.table.survey, list[Exception]()

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from (to_arrow(some, survey) for some in reports())
            except Exception as problem:
                broken.append(problem)
                raise

        connection.register(self._source, pa.RecordBatchReader.from_batches(arrow_schema(survey), batches()))
        try:
            yield
        except Exception:
            if broken:  # not the query's fault: DuckDB would tell it as its own
                raise broken[0] from None
            raise
        finally:
            connection.unregister(self._source)

    def execute(self, connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a small result."""
        with told("this query"), self._reading(connection):
            return connection.execute(sql).fetchall()

    def know(self, connection: duckdb.DuckDBPyConnection, aggregates: Sequence[str]) -> list[Any]:
        """Aggregates over all rows, which never change here: each is asked for once, many new ones in one pass."""
        asked = [sql for sql in dict.fromkeys(aggregates) if sql not in self.known]
        for start in range(0, len(asked), _AGGREGATES):
            some = asked[start : start + _AGGREGATES]
            self.known |= dict(zip(some, self._aggregated(connection, some), strict=True))
        return [self.known[sql] for sql in aggregates]

    def _aggregated(self, connection: duckdb.DuckDBPyConnection, aggregates: Sequence[str]) -> Sequence[Any]:
        return self.execute(connection, select(aggregates, self.people))[0]

    def batches(self, connection: duckdb.DuckDBPyConnection, sql: str, rows: int) -> Iterator[Any]:
        """The record batches of a large result, of about so many rows each."""
        with told("this query"), self._reading(connection), connection.sql(sql).to_arrow_reader(rows) as reader:
            yield from reader

    def type_of(self, connection: duckdb.DuckDBPyConnection, expression: str) -> str:
        """The type that DuckDB gives to an expression over public columns; refuses what is no such expression."""
        # the second column refuses aggregates, and that there are two of them refuses "a), (b"
        sql = "DESCRIBE " + select([f"(\n{expression}\n)", self.report(0)], self.people)
        with told(expression, self.token), self._reading(connection):
            described = connection.execute(sql).fetchall()
        if len(described) != 2:
            raise InputError(f"expected one expression over public columns: {expression}")
        return str(described[0][1])


def select(columns: Iterable[str], source: str, *rest: str) -> str:
    """A SELECT, of pieces that are SQL already.

    >>> select(["a", "b + 1"], "t", "WHERE a > 0")
    'SELECT a, b + 1 FROM t WHERE a > 0'
    """
    return " ".join(["SELECT", ", ".join(columns), "FROM", source, *rest])


@contextlib.contextmanager
def told(what: str, token: str = "") -> Iterator[None]:
    """Tell DuckDB's errors in veil's words: without the paths of files, and without anybody's values."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as problem:
        check()  # it may have been interrupted
        raise _in_words(problem, what, token) from None


def _in_words(problem: Exception, what: str, token: str) -> InputError:
    import duckdb

    if isinstance(problem, (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)):
        return InputError(f"DuckDB cannot evaluate {what}{_reason(str(problem), token)}")
    if isinstance(problem, duckdb.OutOfMemoryException):
        return LimitError("this query needs too much memory in DuckDB", "fewer groups, sums or long texts at once")
    if isinstance(problem, (duckdb.IOException, duckdb.PermissionException, duckdb.HTTPException)):
        return InputError("a file of this table cannot be read any more: open the table again")
    if isinstance(problem, duckdb.OutOfRangeException):
        return InputError(
            f"DuckDB cannot evaluate {what}: a number is out of range, as where whole numbers or decimals overflow; "
            "CAST(column AS DOUBLE) has room for larger ones"
        )
    return InputError(
        f"DuckDB cannot evaluate {what}: a value of a public column does not fit (a cast, or a number out of range)"
    )


def _reason(message: str, token: str) -> str:
    """What an error says that arose before any row was read; nothing where it would tell names of ours."""
    first = message.split("\n")[0].partition("Error: ")[2]
    return f": {first}" if token and first and token not in first else ""


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, texts))}]"
