"""Schema files in TOML and JSON, and errors that name the key."""

from __future__ import annotations

import json

import pytest

from veil import Categories, Integers, Interval, Record
from veil.errors import InputError
from veil.sql.columns import Category, Measure, Moment
from veil.sql.designs.hio import HIO
from veil.sql.designs.marginal import MG
from veil.sql.schema import read_schema
from veil.sql.table import Table

TEXT = """
[table]
name = "shop"
epsilon = 2
mechanism = "HIO"
fan_out = 5

[private.age]
integers = [18, 99]
[private.salary]
range = [0, 250000]
buckets = 250
[private.born]
dates = [1990-01-01, 1990-12-31]
[private.state]
labels = ["NY", "WA"]

[public.purchase]
measure = true
scale = 2
[public.os]
labels = ["ios", "android"]
[public.bought]
moment = "second"
"""


def test_a_schema_in_toml(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(TEXT)
    table = read_schema(path)
    private = Record.of(
        age=Integers(18, 99),
        salary=Interval(0, 250000, cells=250),
        born=Interval(631152000, 662688000, 365, "time"),
        state=Categories(["NY", "WA"]),
    )
    public = (Measure("purchase", 2), Category("os", ("ios", "android")), Moment("bought", "second"))
    assert table == Table(2.0, private, public, HIO(5), "shop")


def written_schema(folder, document):
    """Write the document to a file and read it as a schema."""
    path = folder / "schema.json"
    path.write_text(json.dumps(document))
    return read_schema(path)


def test_a_schema_in_json(tmp_path):
    document = {
        "table": {"epsilon": 1.5, "mechanism": "mg"},
        "private": {"born": {"dates": ["2026-01-01", "2026-12-31"], "buckets": 73}, "x": {"labels": [1, 2, 7]}},
    }
    table = written_schema(tmp_path, document)
    assert isinstance(table.design, MG)
    assert [part.size for part in table.private.parts] == [73, 3]
    assert table.name == "people"


def test_auto_is_the_default(tmp_path):
    found = written_schema(tmp_path, {"table": {"epsilon": 2}, "private": {"a": {"integers": [0, 1023]}}})
    assert isinstance(found.design, HIO)


def test_most_limits_the_dimensions_at_once(tmp_path):
    dimensions = {name: {"integers": [0, 63]} for name in "abc"}
    found = written_schema(tmp_path, {"table": {"epsilon": 2, "mechanism": "HIO", "most": 2}, "private": dimensions})
    assert found.design == HIO(most=2).fitted(found.private, 2.0)


def changed(**parts):
    base = {"table": {"epsilon": 1, "mechanism": "HIO"}, "private": {"a": {"integers": [0, 9]}}}
    return {**base, **parts}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "expected a table of keys"),
        ({"private": {}}, "table: this table of keys is missing"),
        (changed(tables={}), "expected a key, got 'tables'; did you mean table?"),
        (changed(table={"mechanism": "HIO"}), "table.epsilon: this number is missing"),
        (changed(table={"epsilon": "2"}), "table.epsilon: expected a number"),
        (changed(table={"epsilon": -1, "mechanism": "HIO"}), "table: "),
        (
            changed(table={"epsilon": 1, "mechanism": "best"}),
            "table.mechanism: expected HIO, HI, SC, MG, Grids or auto",
        ),
        (
            changed(table={"epsilon": 1, "mechanism": "MG", "fan_out": 5}),
            "table.fan_out: this goes with the mechanism HIO or HI or SC",
        ),
        (changed(table={"epsilon": 1, "mechanism": "HIO", "fan_out": 1}), "table.fan_out: expected a whole number"),
        (changed(table={"epsilon": 1, "mechanism": "HIO", "fan_out": [5, 5]}), "table.fan_out: "),
        (changed(table={"epsilon": 1, "most": 2}), "table.most: this goes with the mechanism HIO: name it"),
        (changed(table={"epsilon": 1, "users": 0}), "table.users: expected a whole number of at least 1"),
        (changed(table={"epsilon": 10**400}), "table.epsilon: this number is too large"),
        (changed(table={"epsilon": 1, "users": 10**20}), "table: how many people there are is a whole number"),
        (changed(private={"a": {"range": [0, 10**400], "buckets": 2}}), "private.a.range: an interval's ends are"),
        (changed(private={"a": {"dates": ["2000-01-01", "9999-12-31"]}}), "private.a.dates: expected days that end"),
        (changed(private={}), "private: expected at least one dimension"),
        (changed(private={"a": 3}), "private.a: expected a table of keys"),
        (changed(private={"a": {}}), "private.a: expected exactly one of the keys integers, range, dates, labels"),
        (changed(private={"a": {"integers": [9, 0]}}), "private.a.integers: "),
        (changed(private={"a": {"integers": [0, "9"]}}), "private.a.integers: expected two whole numbers"),
        (changed(private={"a": {"integers": [0, 9], "buckets": 3}}), "private.a: expected a key"),
        (changed(private={"a": {"range": [0, 9]}}), "private.a.buckets: this whole number is missing"),
        (changed(private={"a": {"range": [0, 9], "buckets": 1}}), "private.a.buckets: expected a whole number of at"),
        (changed(private={"a": {"dates": ["soon", "2026-01-01"]}}), "private.a.dates: expected two dates"),
        (changed(private={"a": {"dates": ["2026-01-01", "2026-01-10"], "buckets": 3}}), "private.a.buckets: expected"),
        (changed(private={"a": {"labels": "NY"}}), "private.a.labels: expected a list of labels"),
        (changed(private={"a": {"labels": ["NY", "NY"]}}), "private.a.labels: "),
        (changed(public={"p": {"measure": False}}), "public.p.measure: expected true"),
        (changed(public={"p": {"measure": True, "scale": 12}}), "public.p.scale: "),
        (changed(public={"p": {"moment": "year"}}), "public.p.moment: "),
        (changed(public={"A": {"measure": True}}), "table: the columns of a table have names that differ"),
    ],
)
def test_errors_name_the_key(tmp_path, document, said):
    with pytest.raises(InputError) as problem:
        written_schema(tmp_path, document)
    assert str(problem.value).startswith(f"{tmp_path / 'schema.json'}: {said}")


def test_files_without_a_schema_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_schema(tmp_path / "none.toml")
    for name, text, said in [
        ("a.yaml", "", "ends in .toml or .json"),
        ("a.toml", "[table", "is no TOML"),
        ("a.toml", "a = " + "9" * 5_000, "is no TOML"),
        ("a.toml", "a = " + "[" * 5_000, "is no TOML"),
        ("a.json", "{", "is no JSON"),
    ]:
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=said):
            read_schema(tmp_path / name)
