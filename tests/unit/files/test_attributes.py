"""Attributes of records: from a text on the command line, and from the columns of a file."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veil import Categories, Integers, Interval
from veil.domain import Domain
from veil.errors import EmptyError, InputError, ParameterError
from veil.files import read_attributes
from veil.planning.domains import attribute

YEAR_1990: Any = dt.date(1990, 1, 1)
YEAR_2000: Any = dt.date(2000, 1, 1)


@pytest.mark.parametrize(
    ("text", "name", "domain"),
    [
        ("sex=f,m", "sex", Categories(["f", "m"])),
        (" drink = tea, green tea ", "drink", Categories(["tea", "green tea"])),
        ("stars=1,2,5", "stars", Categories([1, 2, 5])),
        ("zip=007,010", "zip", Categories(["007", "010"])),
        ("smokes=2", "smokes", Categories.range(2)),
        ("age=18..99", "age", Integers(18, 99)),
        ("degrees=-40..-1", "degrees", Integers(-40, -1)),
        ("age=0..100/10", "age", Interval(0, 100, cells=10)),
        ("height=1.5..2.1/6", "height", Interval(1.5, 2.1, cells=6)),
        ("born=1990-01-01..2000-01-01/10", "born", Interval(YEAR_1990, YEAR_2000, cells=10)),
        ("a=b=c,d", "a", Categories(["b=c", "d"])),
    ],
)
def test_an_attribute_in_words(text: str, name: str, domain: Domain) -> None:
    assert attribute(text) == (name, domain)


@pytest.mark.parametrize(
    "text", ["sex", "=f,m", "sex=", "sex=f", "sex=f,,m", "age=..", "age=1..x", "age=a..b/3", "age=0..9/x"]
)
def test_an_attribute_that_says_nothing(text: str) -> None:
    with pytest.raises(InputError, match="an attribute is NAME=VALUES: labels as in sex=f,m"):
        attribute(text)


@pytest.mark.parametrize("text", ["age=99..18", "age=5..5/10", "age=0..9/0", "smokes=0", "sex=f,f"])
def test_an_attribute_that_cannot_be(text: str) -> None:
    with pytest.raises(ParameterError):
        attribute(text)


def table(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_columns_of_a_text_file(tmp_path: Path) -> None:
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


def test_columns_of_a_parquet_file(tmp_path: Path) -> None:
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
def test_files_that_give_no_attributes(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_attributes(table(tmp_path / "people.csv", text), ["a"])
