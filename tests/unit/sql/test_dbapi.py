"""The DB-API of PEP 249 and pandas, and the database in a folder."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veil.sql
from veil import Integers, Record
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, MismatchError, VeilError
from veil.sql import HIO, Answer, Category, Measure, Moment, Table, dbapi
from veil.sql.folder import create
from veil.tools.messages import install_command

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

PEOPLE = 4_000
TABLE = Table(
    4.0,
    Record.of(age=Integers(18, 81), state=["NY", "WA", "O'Hara"]),
    (Measure("spent", 2), Category("os", ("ios", "web")), Moment("day")),
    HIO(),
)
GROUPED = "SELECT os, COUNT(*) AS n, AVG(spent) AS mean FROM people WHERE age < 50 GROUP BY os ORDER BY os"


def people(seed: int = 1) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        "age": draw.integers(18, 82, PEOPLE),
        "state": draw.choice(["NY", "WA", "O'Hara"], PEOPLE),
        "spent": draw.normal(50, 10, PEOPLE).round(2),
        "os": draw.choice(["ios", "web"], PEOPLE),
        "day": [dt.date(2026, 5, 1 + day) for day in draw.integers(0, 2, PEOPLE)],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "shop"
    create(path, TABLE)
    with veil.sql.open(path) as database:
        database.append(people())
    return path


@pytest.fixture
def connection(folder: Path) -> Any:
    with veil.sql.connect(folder) as one:
        yield one


# -- what the standard lists -------------------------------------------------------------------------------------------


def test_module_constants_of_pep_249() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    assert veil.sql.connect is dbapi.connect
    for name in ("Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks", "Binary"):
        assert callable(getattr(dbapi, name))
    assert dbapi.DateFromTicks(86_400 * 365) == dt.datetime.fromtimestamp(86_400 * 365).date()


def test_exception_hierarchy_of_pep_249() -> None:
    assert issubclass(dbapi.Warning, Exception)
    assert issubclass(dbapi.Error, VeilError)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    names = (
        *("DataError", "OperationalError", "IntegrityError", "InternalError"),
        *("ProgrammingError", "NotSupportedError"),
    )
    for name in names:
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)


def test_a_cursor_describes_its_columns(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount, cursor.arraysize, cursor.rownumber) == (None, -1, 1, None)
    cursor.execute("SELECT day, os, COUNT(*) AS n FROM people GROUP BY day, os ORDER BY day, os")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == [
        *("day", "os", "n", "n_stderr", "n_low", "n_high", "reports")
    ]
    assert [column[1] for column in cursor.description] == [dbapi.DATETIME, dbapi.STRING, *[dbapi.NUMBER] * 5]
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.rowcount == 4


def test_rows_are_fetched_one_by_one_and_together(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    every = cursor.execute(GROUPED).fetchall()
    assert [row[0] for row in every] == ["ios", "web"]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == cursor.fetchmany(5) == []
    assert list(cursor.execute(GROUPED)) == every
    cursor.execute(GROUPED)
    assert (cursor.fetchone(), cursor.rownumber, cursor.fetchmany()) == (every[0], 1, every[1:])
    cursor.execute(GROUPED)
    assert cursor.fetchmany(0) == []
    cursor.arraysize = 7
    assert cursor.fetchmany() == every
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchmany(-1)


def test_the_errors_of_every_number_are_in_its_row(connection: dbapi.Connection, folder: Path) -> None:
    cursor = connection.cursor().execute("SELECT COUNT(*) AS n FROM people WHERE age < 50")
    row = cursor.fetchone()
    assert row is not None
    value, error, low, high, reports = row
    held = int((people()["age"] < 50).sum())
    assert abs(value - held) < 5 * error
    assert (low, high) == pytest.approx((value - 1.959964 * error, value + 1.959964 * error))
    assert reports == PEOPLE
    with veil.sql.connect(folder, level=0.5) as other:
        narrow = other.cursor().execute("SELECT COUNT(*) AS n FROM people WHERE age < 50").fetchone()
    assert narrow is not None
    assert narrow[3] - narrow[2] < high - low
    with pytest.raises(dbapi.ProgrammingError):
        veil.sql.connect(folder, level=2)


def test_group_without_people_is_no_row(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    rows = cursor.execute("SELECT os, COUNT(*) AS n FROM people WHERE os = 'ios' GROUP BY os").fetchall()
    assert [row[0] for row in rows] == ["ios"]
    rows = cursor.execute("SELECT BUCKET(age, 10) AS b, COUNT(*) FROM people WHERE age < 40 GROUP BY b").fetchall()
    assert sorted(row[0] for row in rows) == [10, 20, 30]
    assert cursor.execute("SELECT os, COUNT(*) FROM people WHERE spent < -9 GROUP BY os").fetchall() == []


def test_reports_column_counts_people_who_match_public_conditions(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    row = cursor.execute("SELECT COUNT(*) AS n FROM people WHERE os = 'ios' AND age < 40").fetchone()
    nobody = cursor.execute("SELECT COUNT(*) AS n FROM people WHERE os = 'none'").fetchone()
    assert row is not None
    assert row[-1] == int((people()["os"] == "ios").sum())
    assert nobody == (0.0, 0.0, 0.0, 0.0, 0)


def test_closed_connections_and_cursors_raise(folder: Path) -> None:
    connection = veil.sql.connect(folder)
    cursor = connection.cursor()
    with pytest.raises(dbapi.InterfaceError, match="executed first"):
        cursor.fetchone()
    cursor.execute(GROUPED)
    cursor.close()
    for refused in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute(GROUPED)):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            refused()
    other = connection.cursor().execute(GROUPED)
    connection.close()
    connection.close()
    for refused in (connection.cursor, connection.commit, other.fetchone, lambda: other.execute(GROUPED)):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            refused()


def test_connection_is_read_only(connection: dbapi.Connection) -> None:
    connection.commit()
    with pytest.raises(dbapi.NotSupportedError):
        connection.rollback()
    cursor = connection.cursor()
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany(GROUPED, [()])
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("DELETE FROM people")


# -- parameters --------------------------------------------------------------------------------------------------------


def test_parameters_bind_values(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    bound = cursor.execute("SELECT COUNT(*) FROM people WHERE state = ? AND age < ?", ("O'Hara", 40)).fetchall()
    assert bound == cursor.execute("SELECT COUNT(*) FROM people WHERE state = 'O''Hara' AND age < 40").fetchall()
    day = cursor.execute("SELECT COUNT(*) FROM people WHERE day = ?", [dt.date(2026, 5, 1)]).fetchone()
    assert day is not None
    assert day[0] == sum(one == dt.date(2026, 5, 1) for one in people()["day"])


def test_parameters_cannot_inject_sql(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute(
        "SELECT COUNT(*) FROM people WHERE os = ?", ["ios' OR os = 'web"]
    )  # nobody has that
    row = cursor.fetchone()
    assert row is not None
    assert row[0] == 0


@pytest.mark.parametrize(
    ("query", "parameters", "kind"),
    [
        ("SELECT COUNT(*) FROM people WHERE age < ?", (), dbapi.DataError),
        ("SELECT COUNT(*) FROM people", (1,), dbapi.DataError),
        ("SELECT COUNT(*) FROM people WHERE age < ?", (b"x",), dbapi.DataError),
        ("SELECT COUNT(*) FROM people WHERE age < ?", (10**5000,), dbapi.DataError),
        ("SELECT COUNT(*) FROM people WHERE os = ?", ("\ud800",), dbapi.ProgrammingError),
        ("SELECT COUNT(*) FROM people WHERE age < ?", "1", dbapi.ProgrammingError),
        ("SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people", (), dbapi.ProgrammingError),
        ("", (), dbapi.ProgrammingError),
        ("SELECT COUNT(*) FROM nobody", (), dbapi.ProgrammingError),
        ("SELECT COUNT(*) FROM people WHERE agee < 3", (), dbapi.ProgrammingError),
    ],
)
def test_mistakes_raise_errors_of_pep_249(
    connection: dbapi.Connection, query: str, parameters: Any, kind: type[Exception]
) -> None:
    cursor = connection.cursor()
    with pytest.raises(kind):
        cursor.execute(query, parameters)
    assert cursor.rowcount == -1


def test_programming_error_has_line_and_column(connection: dbapi.Connection) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="agee") as caught:
        connection.cursor().execute("SELECT COUNT(*)\nFROM people WHERE agee < 3")
    assert (caught.value.line, caught.value.column) == (2, 19)


def test_connect_to_a_path_without_a_table_raises(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n30\n")
    for path in (tmp_path, tmp_path / "none", tmp_path / "people.csv"):
        with pytest.raises(dbapi.ProgrammingError, match="folder"):
            veil.sql.connect(path)
    with pytest.raises(InputError, match="zero byte"):
        veil.sql.open("a\0b")


def test_table_without_reports_raises_operational_error(tmp_path: Path) -> None:
    create(tmp_path / "shop", TABLE)
    with veil.sql.connect(tmp_path / "shop") as connection:
        with pytest.raises(dbapi.OperationalError, match="nobody has reported"):
            connection.cursor().execute("SELECT COUNT(*) FROM people")
        assert connection.database.explain("SELECT COUNT(*) FROM people").n == 1_000_000  # but they can be planned
        plans = [connection.database.explain("SELECT COUNT(*) FROM people WHERE age < 40", n) for n in (1_000, 4_000)]
        errors = [plan.outputs[0].stderr[0] for plan in plans]
        assert errors[1] == pytest.approx(2 * errors[0], rel=0.1)
        with pytest.raises(dbapi.ProgrammingError, match="agee"):  # mistakes are told anyway
            connection.cursor().execute("SELECT COUNT(*) FROM people WHERE agee < 3")


# -- pandas and the rest -----------------------------------------------------------------------------------------------


def test_pandas_reads_answers(connection: dbapi.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pandas only supports SQLAlchemy", UserWarning)
        frame = pandas.read_sql(
            "SELECT os, COUNT(*) AS n FROM people WHERE age < ? GROUP BY os", connection, params=(50,)
        )
        with pytest.raises((pandas.errors.DatabaseError, dbapi.ProgrammingError), match="agee"):
            pandas.read_sql("SELECT COUNT(*) FROM people WHERE agee < 3", connection)
    assert list(frame.columns) == ["os", "n", "n_stderr", "n_low", "n_high", "reports"]
    assert sorted(frame["os"]) == ["ios", "web"]
    assert frame["n"].dtype == np.float64


def test_a_database_sees_what_is_appended(tmp_path: Path) -> None:
    create(tmp_path / "shop", TABLE)
    with veil.sql.open(tmp_path / "shop") as database:
        assert (database.people, list(database.files), list(database.ignored)) == (0, [], [])
        first = database.append(people())
        assert (database.people, list(database.files)) == (PEOPLE, [first])
        before = database.query("SELECT COUNT(*) AS n FROM people")
        database.append(people(seed=2))
        (tmp_path / "shop" / "part-1-0123456789abcdef.parquet").write_bytes(b"PAR1 half of")
        after = database.query("SELECT COUNT(*) AS n FROM people")
        assert (before.value(), after.value(), database.people) == (PEOPLE, 2 * PEOPLE, 2 * PEOPLE)
        assert [one.partition(":")[0] for one in database.ignored] == ["part-1-0123456789abcdef.parquet"]
        assert database.table == TABLE
        assert database.explain("SELECT COUNT(*) FROM people").kind == "sql-plan"
        assert database.query("EXPLAIN SELECT COUNT(*) FROM people").kind == "sql-plan"
    with pytest.raises(InputError, match="closed"):
        database.query("SELECT COUNT(*) AS n FROM people")


def test_two_months_are_compared() -> None:
    query = "SELECT COUNT(*) AS n, AVG(spent) AS m FROM people WHERE age < 40"
    march, april = (answered(query, month, oldest) for month, oldest in ((3, 60), (4, 40)))
    change = april.difference(march)
    assert change.changed().tolist() == [True, False]
    assert abs(change.differences[0] - PEOPLE * 20 / 42) < 5 * np.hypot(change.stderr[0], 45)
    with pytest.raises(MismatchError):
        april.difference(answered("SELECT COUNT(*) AS n FROM people", 3, 60))


def test_samples_of_one_population_rarely_differ_significantly() -> None:
    """Of 40 pairs of months with the same people behind them few are told apart; by the noise alone, far too many."""
    table = Table(6.0, Record.of(age=Integers(0, 3)))
    query, found = "SELECT COUNT(*) AS n FROM people WHERE age < 2", []
    for month in range(80):
        held = {"age": np.random.default_rng(month).integers(0, 4, 1_000)}
        collected = MemoryCollection(table.survey, table.survey.randomize(held, SeededForExperiments(month)))
        found.append(replace(table, query=query).read(collected))
    changes = [after.difference(before) for before, after in pairwise(found)][::2]
    assert sum(float(change.p_values[0]) < 0.05 for change in changes) <= 7  # 2 are expected, 8 are one in 1,000
    assert sum(abs(change.differences[0]) > 1.96 * change.stderr[0] for change in changes) > 12


def answered(query: str, month: int, oldest: int) -> Answer:
    held = people(month) | {"age": np.random.default_rng(month).integers(18, oldest, PEOPLE)}
    reports = TABLE.survey.randomize(held, SeededForExperiments(month), TABLE.encode_public(held))
    found = replace(TABLE, query=query).read(MemoryCollection(TABLE.survey, reports))
    assert isinstance(found, Answer)
    return found


def test_missing_libraries_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veil.sql.database.find_spec", lambda name: None if name == "duckdb" else object())
    with pytest.raises(InputError, match=re.escape(f"SQL needs duckdb: {install_command('sql')}")):
        veil.sql.open(folder)
