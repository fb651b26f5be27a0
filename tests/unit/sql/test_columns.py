"""Public columns of a table: integers on the device, values in DuckDB, and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from veil.errors import DomainError, ParameterError, WireError
from veil.sql.columns import Category, Measure, Moment, PublicColumn
from veil.study.parameters import read, written
from veil.survey import Public

duckdb = pytest.importorskip("duckdb")

NASTY = ['the "os"', "it's", "größe; DROP TABLE people --", "a.b", "π\n", "select"]


def in_duckdb(column: PublicColumn, integers: Any) -> list[Any]:
    import pyarrow as pa

    with duckdb.connect() as connection:
        connection.register("stored", pa.table({f"public.{column.name}": np.asarray(integers, dtype=np.int64)}))
        return [row[0] for row in connection.execute(f"FROM stored SELECT {column.sql}").fetchall()]


@pytest.mark.parametrize("name", NASTY)
def test_every_column_reads_back_what_was_encoded(name: str) -> None:
    money, os, day = Measure(name, 2), Category(name, ("a", "it's", 'q"', "ü", "")), Moment(name)
    second = Moment(name, "second")
    prices = [Decimal("1.25"), Decimal("-3.00"), Decimal("9999999999999999.99")]
    labels = ["ü", "it's", "a", 'q"', ""]
    days = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]
    times = [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(9999, 12, 31, 23, 59, 59)]
    for column, values in ((money, prices), (os, labels), (day, days), (second, times)):
        integers = column.encode(values)
        assert integers.dtype == np.int64
        assert column.decode(integers) == values == in_duckdb(column, integers)
        assert column.public == Public(name, 2 if column is money else 0)
        (again,) = read(tuple[PublicColumn, ...], written((column,)), "public")
        assert again == column


def test_integers_that_no_device_sends_are_null() -> None:
    strange = [2**63 - 1, -(2**63), -1, -2, 3]
    assert in_duckdb(Category("os", ("a", "b")), strange) == [None] * 5
    assert Category("os", ("a", "b")).decode(strange) == [None] * 5
    assert in_duckdb(Measure("x"), strange[:3]) == [None, None, -1] == Measure("x").decode(strange[:3])
    assert in_duckdb(Measure("x", 9), [10**18, -(10**18), 10**18 - 1]) == [None, None, Decimal("999999999.999999999")]
    for unit in ("day", "second"):
        assert in_duckdb(Moment("t", unit), strange[:2]) == [None, None] == Moment("t", unit).decode(strange[:2])


def test_a_measure_rounds_halves_away_from_zero() -> None:
    tenths = Measure("x", 1)
    assert tenths.encode([0.25, -0.25, 0.05, 0.0499, 7]).tolist() == [3, -3, 1, 0, 70]
    assert tenths.encode([Decimal("0.25"), Decimal("-0.25"), 7]).tolist() == [3, -3, 70]
    assert Measure("x").encode([0.49999999999999994, 0.5, -0.5, 2.5]).tolist() == [0, 1, -1, 3]
    assert Measure("x").encode(np.array([3, 4], np.uint8)).tolist() == [3, 4]
    assert Measure("x").encode(np.array([0.1, 2.0], np.float32)).tolist() == [0, 2]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, float("nan")],
        [1.0, float("inf")],
        [None, 1],
        [1e30, 0.0],
        [10**18],
        [2**70],
        [Decimal("NaN")],
        [Decimal("1e30")],
        [Decimal("inf"), 1],
        ["12"],
        [True],
        [dt.date(2026, 1, 1)],
        np.array([2**64 - 1], np.uint64),
    ],
)
def test_a_measure_refuses_what_is_no_number(values: Any) -> None:
    with pytest.raises(DomainError, match="public column 'x'"):
        Measure("x").encode(values)


def test_a_category_refuses_labels_that_are_not_declared() -> None:
    os = Category("os", ("ios", "android"))
    for values in (["ios", "secret"], ["ios"] * 9 + ["secret"], ["ios", None], [1, 2], [0.5] * 9):
        with pytest.raises(DomainError) as caught:
            os.encode(values)
        assert "secret" not in str(caught.value)
    with pytest.raises(DomainError) as caught:
        os.encode(["ios"] * 9 + ["secret", "ios"])
    assert caught.value.row == 9
    many = os.encode(np.array(["android", "ios"] * 500))
    assert many.tolist() == [1, 0] * 500


def test_a_moment_takes_dates_times_and_text() -> None:
    day, second = Moment("t"), Moment("t", "second")
    values = ["1970-01-02T10:00:00+14:00", "1970-01-02T10:00:01"]
    assert day.encode(values).tolist() == [0, 1]
    assert second.encode(values).tolist() == [20 * 3600, 86400 + 36001]
    assert second.encode(np.array(["1969-12-31T23:59:59.5"], "datetime64[ms]")).tolist() == [-1]
    for wrong in (["soon"], [None], [3], ["1970-01-01", None]):
        with pytest.raises(DomainError):
            day.encode(wrong)


def test_constructors_refuse_bad_parameters() -> None:
    for make in (
        lambda: Measure(""),
        lambda: Measure("x\0"),
        lambda: Measure("x", 10),
        lambda: Category("x", ()),
        lambda: Category("x", ("a", "a")),
        lambda: Category("x", (1, 2)),  # type: ignore[arg-type]
        lambda: Category("x", "ab"),  # type: ignore[arg-type]
        lambda: Moment("x", "week"),  # type: ignore[arg-type]
        lambda: Measure("\ud800"),
    ):
        with pytest.raises(ParameterError):
            make()
    with pytest.raises(WireError):
        Measure.from_json({"kind": "measure", "name": "x"})
