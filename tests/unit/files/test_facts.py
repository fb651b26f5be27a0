"""Facts of a file's columns, and the dimensions and public columns that are proposed for them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import Categories, Integers, Interval
from veil.errors import EmptyError, InputError
from veil.files.attributes import read_facts
from veil.planning.sql import proposed_dimensions, proposed_public, round_buckets
from veil.sql.columns import Category, Measure, Moment


@pytest.fixture
def written(tmp_path):
    def write(**columns):
        path = tmp_path / "people.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write


def text(tmp_path, *lines):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines))
    return path


def test_what_columns_of_text_hold(tmp_path):
    path = text(
        tmp_path, "a,b,c,d,e", "1,2.50,007,2026-01-31,x", "-3,1e3,012,2026-02-01T10:00:00,", "12,4,1,2026-01-01,y"
    )
    found = read_facts(path, "abcde")
    assert [found[name].kind for name in "abcde"] == ["numbers", "numbers", "labels", "times", "labels"]
    assert (found["a"].low, found["a"].high, found["a"].whole) == (-3.0, 12.0, True)
    assert (found["b"].high, found["b"].decimals) == (1000.0, 1)
    assert (found["d"].first.date(), found["d"].days) == (dt.date(2026, 1, 1), False)
    assert (found["e"].labels, found["e"].missing) == ({"x", "y"}, True)


def test_typed_columns(written):
    path = written(
        flag=[True, False], day=[dt.date(2026, 1, 1), dt.date(2026, 1, 9)], price=[0.25, 12.5], time=[dt.time(1), None]
    )
    found = read_facts(path, ["flag", "day", "price"])
    assert [found[name].kind for name in found] == ["labels", "times", "numbers"]
    assert (found["price"].decimals, found["day"].days) == (2, True)
    assert read_facts(path, ["time"])["time"].kind == "labels"
    assert proposed_dimensions(path, ["flag", "day"]) == {
        "flag": Categories(["false", "true"]),
        "day": Interval(dt.date(2026, 1, 1), dt.date(2026, 1, 10), cells=9),
    }
    assert proposed_public(path, ["flag", "day", "price"]) == (
        Category("flag", ("false", "true")),
        Moment("day", "day"),
        Measure("price", 2),
    )


def test_proposals_are_never_too_fine(written):
    days = [dt.date(1950, 1, 1), dt.date(2004, 12, 31)]
    path = written(born=days, code=[1, 5000], income=[3, 90_000], age=[18, 97], many=[*range(2)])
    income = pa.table({"income": list(range(3, 90_000, 7))})
    pq.write_table(income, path.with_name("more.parquet"))
    found = proposed_dimensions(path, ["born", "code", "age", "many"])
    assert (found["born"].size, found["born"].size * 20) == (1005, 20_100)  # 20 days each
    assert found["code"] == Categories([1, 5000])  # few numbers far apart
    assert found["age"] == Categories([18, 97])
    assert found["many"] == Integers(0, 1)
    incomes = proposed_dimensions(path.with_name("more.parquet"), ["income"])["income"]
    assert isinstance(incomes, Interval)
    assert (incomes.lo, incomes.hi, incomes.cells) == (0.0, 90_000.0, 900)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.7, 12.25), (1e-9, 2e-9), (5.0, 5.0), (0.0, 1e12)])
def test_round_buckets_hold_both_ends(low, high):
    found = round_buckets(low, high)
    assert found.lo <= low
    assert high <= found.hi
    assert 1 <= found.cells <= 1024


def test_what_cannot_be_proposed(tmp_path, written):
    gaps = text(tmp_path, "a,b", "1,x", ",")
    with pytest.raises(InputError, match="column a has empty cells"):
        proposed_dimensions(gaps, ["a"])
    with pytest.raises(InputError, match="column b has empty cells"):
        proposed_public(gaps, ["b"])
    many = text(tmp_path, "a", *(f"name{i}" for i in range(5000)))
    with pytest.raises(InputError, match="column a has more than 4,096 different labels"):
        proposed_public(many, ["a"])
    with pytest.raises(EmptyError, match="holds no people"):
        read_facts(written(a=pa.array([], pa.int64())), ["a"])
    with pytest.raises(EmptyError, match="column a is empty"):
        read_facts(text(tmp_path, "a,b", ",1"), ["a"])
