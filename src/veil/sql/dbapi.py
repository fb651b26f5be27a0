"""The DB-API 2.0 (PEP 249) of a table in a folder, for pandas.read_sql, notebooks and other tools.

Every output has its errors beside it: a query for `COUNT(*) AS n` has the columns n, n_stderr, n_low, n_high and, at
the end, the number of reports behind the row. The connection is read-only: commit does nothing.

>>> import veil.sql
>>> connection = veil.sql.connect("shop")  # doctest: +SKIP
>>> pandas.read_sql("SELECT os, COUNT(*) AS n FROM people GROUP BY os", connection)  # doctest: +SKIP
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from veil.errors import EmptyError, InputError, MismatchError, SqlError, VeilError, WireError
from veil.sql.database import Database
from veil.sql.language.statements import bind, split

if TYPE_CHECKING:
    import pyarrow

    from veil.results.base import Result


apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not connections."""
paramstyle = "qmark"


class Warning(Exception):  # noqa: A001, N818  # the name is the standard's
    """Something that whoever asked should know; answers say it in `Cursor.remarks` instead."""


class Error(VeilError):
    """The root of all errors of a connection."""


class InterfaceError(Error):
    """The connection or the cursor is closed, or there is nothing to fetch."""


class DatabaseError(Error):
    """The table cannot answer."""


class DataError(DatabaseError):
    """A parameter that no column can hold."""


class OperationalError(DatabaseError):
    """The folder cannot be read, or nobody reported yet."""


class IntegrityError(DatabaseError):
    """A file of another table in the folder, or a damaged one."""


class InternalError(DatabaseError):
    """A bug in veil."""


class ProgrammingError(DatabaseError):
    """A query that is not supported; `line` and `column` say where, if that is known."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.line, self.column = line, column
        super().__init__(message)


class NotSupportedError(DatabaseError):
    """Something that nobody can do here: to change or take back what people reported."""


@contextmanager
def _translated() -> Iterator[None]:
    """veil's errors as those of PEP 249."""
    try:
        yield
    except Error:
        raise
    except SqlError as problem:
        raise ProgrammingError(str(problem), problem.line, problem.column) from problem
    except (MismatchError, WireError) as problem:
        raise IntegrityError(str(problem)) from problem
    except EmptyError as problem:
        raise OperationalError(str(problem)) from problem
    except VeilError as problem:
        raise ProgrammingError(str(problem)) from problem
    except OSError as problem:
        raise OperationalError(problem.strerror or "the folder cannot be read") from problem


class _Type:
    """A type object: equal to itself, and to the names of Arrow's types that it stands for."""

    def __init__(self, name: str, *starts: str) -> None:
        self.name, self._starts = name, starts

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other.startswith(self._starts))

    def __hash__(self) -> int:
        return hash(self.name)


STRING = _Type("STRING", "string", "large_string", "bool", "list")
BINARY = _Type("BINARY", "binary")
NUMBER = _Type("NUMBER", "int", "uint", "float", "double", "decimal")
DATETIME = _Type("DATETIME", "date", "time")
ROWID = _Type("ROWID", "rowid")

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802  # the names are the standard's
    """A date from seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks).date()


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """A time of day from seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """A time from seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks)


def connect(folder: str | os.PathLike[str], *, level: float = 0.95) -> Connection:
    """A connection to the table in a folder; `level` is that of the intervals beside each number."""
    return Connection(folder, level=level)


class Connection:
    """The table in a folder, by PEP 249."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError, InternalError = (
        DataError,
        OperationalError,
        IntegrityError,
        InternalError,
    )
    ProgrammingError, NotSupportedError = ProgrammingError, NotSupportedError

    def __init__(self, folder: str | os.PathLike[str], *, level: float = 0.95) -> None:
        if not isinstance(level, (int, float)) or not 0 < level < 1:
            raise ProgrammingError("the level of an interval lies between 0 and 1")
        with _translated():
            self._database: Database | None = Database(folder)
        self.level = float(level)

    @property
    def database(self) -> Database:
        """The table behind it."""
        if self._database is None:
            raise InterfaceError("the connection is closed")
        return self._database

    def cursor(self) -> Cursor:
        """A cursor, to ask one query after the other."""
        _ = self.database
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: a query changes nothing."""
        _ = self.database

    def rollback(self) -> None:
        """Refused: there are no transactions to take back."""
        raise NotSupportedError("there are no transactions: a query changes nothing")

    def close(self) -> None:
        """Let go of the folder; a closed connection answers nothing."""
        if self._database is not None:
            self._database.close()
        self._database = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Cursor:
    """One query at a time, and its rows.

    `answer` is the whole answer as veil has it, `remarks` what whoever reads the numbers should know.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.answer: Result | None = None
        self._table: pyarrow.Table | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._next = 0
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        """Ask a query; each `?` in it stands for a parameter, which can be nothing but a value."""
        database = self._open().database
        if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence):
            raise ProgrammingError("parameters are a list, one for each ? in the query")
        self.answer, self._table, self._rows, self._next = None, None, [], 0
        with _translated():
            whole, rest = split(operation)
            asked = [*whole, *([rest] if rest else [])]
            if len(asked) != 1:
                raise ProgrammingError(f"expected one query, found {len(asked)}")
            try:
                bound = bind(asked[0], parameters) if parameters or "?" in asked[0] else asked[0]
            except InputError as problem:
                raise DataError(str(problem)) from None
            answer = database.query(bound)
            table = answer.table(self.connection.level)
        self._rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        self.answer, self._table = answer, table
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> None:
        """Refused: it is for statements that change something."""
        raise NotSupportedError("executemany is for statements that change something: expected execute")

    @property
    def description(self) -> list[tuple[str, _Type, None, None, None, None, bool]] | None:
        """Name and type of each column of the last answer; None before the first."""
        if self._table is None:
            return None
        kinds = (STRING, NUMBER, DATETIME, BINARY)
        return [
            (field.name, next(kind for kind in kinds if kind == str(field.type)), None, None, None, None, True)
            for field in self._table.schema
        ]

    @property
    def rowcount(self) -> int:
        """How many rows the last answer has; -1 before the first."""
        return -1 if self._table is None else len(self._rows)

    @property
    def rownumber(self) -> int | None:
        """The place of the row that is fetched next, from 0."""
        return None if self._table is None else self._next

    @property
    def remarks(self) -> list[str]:
        """Plain sentences that whoever reads the numbers should read too."""
        return [] if self.answer is None else self.answer.remarks()

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None behind the last."""
        return next(iter(self._take(1)), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows: `size` of them, or `arraysize`."""
        many = self.arraysize if size is None else size
        if many < 0:
            raise ProgrammingError("expected to fetch 0 rows or more")
        return self._take(many)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._take(len(self._rows))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as the standard allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as the standard allows."""

    def close(self) -> None:
        """Forget the rows; a closed cursor answers nothing."""
        self.answer, self._table, self._rows, self._closed = None, None, [], True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Connection:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        _ = self.connection.database
        return self.connection

    def _take(self, many: int) -> list[tuple[Any, ...]]:
        self._open()
        if self._table is None:
            raise InterfaceError("there is nothing to fetch: expected a query to be executed first")
        rows = self._rows[self._next : self._next + many]
        self._next += len(rows)
        return rows
