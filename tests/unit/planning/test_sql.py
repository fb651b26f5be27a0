"""Proposals for the columns of a table: dimensions and public columns."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import Categories, Integers, Interval
from veil.errors import InputError
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


def test_proposals_for_typed_columns(written):
    path = written(flag=[True, False], day=[dt.date(2026, 1, 1), dt.date(2026, 1, 9)], price=[0.25, 12.5])
    assert proposed_dimensions(path, ["flag", "day"]) == {
        "flag": Categories(["false", "true"]),
        "day": Interval(dt.date(2026, 1, 1), dt.date(2026, 1, 10), cells=9),
    }
    assert proposed_public(path, ["flag", "day", "price"]) == (
        Category("flag", ("false", "true")),
        Moment("day", "day"),
        Measure("price", 2),
    )


def test_proposed_dimensions_have_at_most_1024_buckets(written):
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


def test_proposals_refuse_gaps_and_too_many_labels(tmp_path):
    gaps = text(tmp_path, "a,b", "1,x", ",")
    with pytest.raises(InputError, match="column a has empty cells"):
        proposed_dimensions(gaps, ["a"])
    with pytest.raises(InputError, match="column b has empty cells"):
        proposed_public(gaps, ["b"])
    many = text(tmp_path, "a", *(f"name{i}" for i in range(5000)))
    with pytest.raises(InputError, match="column a has more than 4,096 different labels"):
        proposed_public(many, ["a"])
