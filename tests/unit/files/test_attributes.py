"""Attributes of records and facts about columns, read off files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import Categories, Integers
from veil.errors import EmptyError, InputError
from veil.files import read_attributes
from veil.files.attributes import read_facts


def table(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_attributes_of_a_text_file(tmp_path: Path) -> None:
    rows = [f"{17 + i % 40},{'fm'[i % 2]},0{i % 3},{i % 3 * 2},{['yes', ''][i % 2]},NA" for i in range(200)]
    file = table(tmp_path / "people.csv", "\n".join(["age,sex,zip,stars,agreed,country", *rows]))
    assert read_attributes(file, ["sex", "age", "zip", "stars", "agreed", "country"]) == {
        "sex": Categories(["f", "m"]),
        "age": Integers(17, 56),
        "zip": Categories(["00", "01", "02"]),
        "stars": Categories([0, 2, 4]),
        "agreed": Categories(["yes"], missing="category"),
        "country": Categories(["NA"]),
    }
    assert list(read_attributes(file, ["age"])) == ["age"]


def test_attributes_of_a_parquet_file(tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    columns = {
        "age": pa.array(range(30), pa.int8()),
        "sex": pa.array(["m", "f"] * 15).dictionary_encode(),
        "income": pa.array([0.5] * 30),
        "owns": pa.array([True, False] * 15),
        "born": pa.array([dt.date(2000, 1, 1)] * 30),
    }
    pq.write_table(pa.table(columns), file)
    assert read_attributes(file, ["age", "sex"]) == {"age": Integers(0, 29), "sex": Categories(["f", "m"])}
    owns = read_attributes(file, ["owns"])["owns"]
    assert owns == Categories(["false", "true"])
    assert owns.encode(columns["owns"]).tolist() == [1, 0] * 15
    for name in ("income", "born"):
        with pytest.raises(
            InputError, match=f"column {name} holds neither labels nor whole numbers: .* --attribute {name}="
        ):
            read_attributes(file, [name])


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", EmptyError, "is empty: expected a first line"),
        ("a,b\n", EmptyError, "holds no people"),
        ("a,b\n,1\n,2\n", EmptyError, "column a is empty"),
        ("b,c\n1,2\n", InputError, "has no column a"),
        ("a\n" + "\n".join(f"w{i}" for i in range(5000)), InputError, "more than 4,096 different values: put them"),
        (
            "a\n" + "\n".join(str(i * 1000) for i in range(20)),
            InputError,
            "range of more than 4,096: .* a=0..100000/10",
        ),
        ("a\n" + "\n".join(f"{i / 7:.3f}" for i in range(20)), InputError, "holds neither labels nor whole numbers"),
        ("a\n" + "\n".join(f"20{i}-01-31" for i in range(10, 30)), InputError, "--attribute a=2026-01-01..2027"),
        ("a\n0.0\n0.5\n", InputError, "or list its labels, as in --attribute a=0.5,1.0"),
        ("a\n2026-01-31\n2026-02-01\n", InputError, "--attribute a=2026-01-01..2027"),
        (
            "a\n" + "\n".join(f"{1000 + i // 28}-01-{1 + i % 28:02}" for i in range(5000)),
            InputError,
            "--attribute a=2026-01-01..2027",
        ),
        ("a,b\n,1\n" + "\n".join(f"{i},1" for i in range(20)), InputError, "column a has empty cells"),
    ],
)
def test_attributes_refuse_unsuitable_files(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_attributes(table(tmp_path / "people.csv", text), ["a"])


def test_facts_of_a_text_file(tmp_path: Path) -> None:
    rows = ["a,b,c,d,e", "1,2.50,007,2026-01-31,x", "-3,1e3,012,2026-02-01T10:00:00,", "12,4,1,2026-01-01,y"]
    path = table(tmp_path / "people.csv", "\n".join(rows))
    found = read_facts(path, "abcde")
    assert [found[name].kind for name in "abcde"] == ["numbers", "numbers", "labels", "times", "labels"]
    assert (found["a"].low, found["a"].high, found["a"].whole) == (-3.0, 12.0, True)
    assert (found["b"].high, found["b"].decimals) == (1000.0, 1)
    assert found["d"].first is not None
    assert (found["d"].first.date(), found["d"].days) == (dt.date(2026, 1, 1), False)
    assert (found["e"].labels, found["e"].missing) == ({"x", "y"}, True)


def test_facts_of_a_parquet_file(tmp_path: Path) -> None:
    columns = {
        "flag": [True, False],
        "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 9)],
        "price": [0.25, 12.5],
        "time": [dt.time(1), None],
    }
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path)
    found = read_facts(path, ["flag", "day", "price"])
    assert [found[name].kind for name in found] == ["labels", "times", "numbers"]
    assert (found["price"].decimals, found["day"].days) == (2, True)
    assert read_facts(path, ["time"])["time"].kind == "labels"


def test_facts_refuse_files_without_people_or_values(tmp_path: Path) -> None:
    empty = tmp_path / "people.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), empty)
    with pytest.raises(EmptyError, match="holds no people"):
        read_facts(empty, ["a"])
    with pytest.raises(EmptyError, match="column a is empty"):
        read_facts(table(tmp_path / "people.csv", "a,b\n,1"), ["a"])
