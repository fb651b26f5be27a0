"""`veil plan sql`: dimensions and public columns from a file, a schema file, and which design is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.commands import CliRunner

from veil import Categories, Integers
from veil.cli.plan import plan
from veil.domain import Interval
from veil.sql.columns import Category, Measure, Moment
from veil.sql.designs.grids import Grids
from veil.sql.designs.hio import HIO
from veil.sql.table import Table
from veil.study import study_from_json

app = typer.Typer(add_completion=False)
app.command()(plan)
app.command("other")(lambda: None)  # with two commands, the first has to be named


def veil(*words: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["plan", "sql", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def veil_json(*words: Any) -> Any:
    return json.loads(veil(*words, "--json"))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = [
        f"{18 + i % 60},{1200.5 + 700 * i},{'nesw'[i % 4]},19{50 + i % 40}-03-01,{'ios' if i % 3 else 'win'},"
        f"{i / 100:.2f},2026-01-{1 + i % 28:02}T10:00:00,00{i % 7},secret{i}"
        for i in range(300)
    ]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["age,salary,region,born,os,purchase,bought,code,name", *rows]))
    return file


ASKED = ("--private", "age,region", "--epsilon", 2)
PRIVATE, PUBLIC = ("--private", "age,salary,region,born,code"), ("--public", "os,purchase,bought")


def test_columns_are_proposed_from_a_file(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    found = veil_json(people, *PRIVATE, *PUBLIC, "--epsilon", 2, "--method", "HIO-2", "-o", out)
    table = study_from_json(out.read_bytes())
    assert isinstance(table, Table)
    assert table.private.parts[0] == Integers(18, 77)
    salary, born = table.private.parts[1], table.private.parts[3]
    assert isinstance(salary, Interval)
    assert (salary.lo, salary.hi, salary.cells) == (1000.0, 211000.0, 420)
    assert isinstance(born, Interval)
    assert born.unit == "time"
    assert born.cells <= 1024
    assert table.private.parts[2] == Categories(["e", "n", "s", "w"])
    assert table.private.parts[4] == Categories([f"00{i}" for i in range(7)])
    assert table.public == (Category("os", ("ios", "win")), Measure("purchase", 2), Moment("bought", "second"))
    assert table.design == HIO(most=2).fitted(table.private, 2.0)
    assert b"secret" not in out.read_bytes()
    assert (found["kind"], found["task"]) == ("table", table.survey.task)
    assert [row["column"] for row in found["attributes"]] == [*table.private.names, "os", "purchase", "bought"]
    assert {"one,_narrow", "one,_wide", "two", "all_queries"} <= set(found["options"][0])


def test_the_best_way_is_taken_and_explained(people: Path) -> None:
    found = veil_json(people, *ASKED)
    known = [one for one in found["options"] if one["allowed"] and one["all_queries"] is not None]
    assert found["chosen"] == min(known, key=lambda option: option["all_queries"])["name"]
    shown = veil(people, *ASKED)
    assert "has the smallest error over these queries" in shown
    assert "SUM errs as much" in " ".join(shown.split())


def test_grids_are_taken_only_where_they_are_named(people: Path, tmp_path: Path) -> None:
    remark = "Grids assume that people are spread evenly inside coarse cells"
    found = veil_json(people, *ASKED)
    (grids,) = (option for option in found["options"] if option["name"] == "Grids")
    best = next(option for option in found["options"] if option["taken"])
    assert grids["all_queries"] < best["all_queries"]  # by its own model
    assert not grids["allowed"]
    assert remark in grids["notes"][0]
    schema, out = tmp_path / "schema.toml", tmp_path / "table.json"
    schema.write_text(SCHEMA.replace('mechanism = "HIO"\nfan_out = 5', 'mechanism = "Grids"'))
    for words in ((people, *ASKED, "--method", "Grids"), ("--schema", schema)):
        assert veil_json(*words, "-o", out)["chosen"] == "Grids"
        assert remark in " ".join(veil(*words).split())
        table = study_from_json(out.read_bytes())
        assert isinstance(table, Table)
        assert isinstance(table.design, Grids)


def test_queries_are_compared(people: Path) -> None:
    query = "SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 40"
    found = veil_json(people, *ASKED, "--query", query)
    assert found["queries"] == 1
    assert found["options"][0]["query_1"] > 0
    assert f"Query 1: {query}." in " ".join(veil(people, *ASKED, "--query", query).split())
    wrong = veil(people, *ASKED, "--query", query, "--query", "SELECT COUNT(*) FROM people WHERE agee < 3", code=3)
    assert "query 2 of 2:" in wrong
    assert f"\n{' ' * 34}^\n" in wrong


def test_the_rows_of_the_file_are_the_people(people: Path) -> None:
    assert veil_json(people, *ASKED)["users"] == 300
    told = "".join(veil(people, *ASKED).split())  # long paths are broken over lines
    assert f"300people,therowsof{people}" in told
    assert veil_json(people, *ASKED, "--users", 9)["users"] == 9


def test_attributes_in_words_and_how_many_dimensions(people: Path) -> None:
    words = ("--attribute", "age=0..100/20", "--private", "age,region", "--epsilon", 1, "--users", 5000)
    found = veil_json(people, *words, "-k", 1)
    assert found["attributes"][0]["values"] == 20
    assert "two" not in found["options"][0]
    assert "1 to 2" in veil(people, *words, "-k", 3, code=3)


SCHEMA = """
[table]
name = "shop"
epsilon = 2
mechanism = "HIO"
fan_out = 5
[private.age]
integers = [18, 99]
[private.state]
labels = ["NY", "WA"]
[public.purchase]
measure = true
scale = 2
"""


def test_a_schema_file_is_a_table(tmp_path: Path) -> None:
    schema, out = tmp_path / "schema.toml", tmp_path / "table.json"
    schema.write_text(SCHEMA)
    found = veil_json("--schema", schema, "-o", out)
    table = study_from_json(out.read_bytes())
    assert isinstance(table, Table)
    assert (table.name, table.design, table.public) == ("shop", HIO((5, 2)), (Measure("purchase", 2),))
    assert found["chosen"] == "HIO"  # what would be fitted is 5 as well
    assert "as the schema says" in found["why"]
    schema.write_text(SCHEMA.replace("fan_out = 5", "fan_out = 3"))
    assert veil_json("--schema", schema)["chosen"] == "HIO of the schema"
    other = veil_json("--schema", schema, "--epsilon", 1, "--method", "MG", "-o", out)
    assert (other["epsilon"], other["chosen"]) == (1.0, "MG")
    again = study_from_json(out.read_bytes())
    assert isinstance(again, Table)
    assert again.name == "shop"
    schema.write_text(SCHEMA.replace("fan_out = 5", "users = 5000"))
    known = veil_json("--schema", schema)
    assert (known["chosen"], known["users"]) == ("HIO", 5000)
    assert len({option["name"] for option in known["options"]}) == len(known["options"])
    assert [option["name"] for option in known["options"]].count("HIO") == 1
    assert "5,000 people, as the schema says" in veil("--schema", schema)


def test_a_schema_that_leaves_the_design_open_takes_the_best_one(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA.replace('mechanism = "HIO"\nfan_out = 5', ""))
    for epsilon in (0.5, 6):
        found = veil_json("--schema", schema, "--epsilon", epsilon)
        assert found["chosen"] == found["options"][0]["name"]
        assert "smallest error" in found["why"]
        assert "asked for" not in found["why"]


def test_what_is_refused(people: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA.replace("integers", "integer"))
    assert "private.age" in veil("--schema", schema, code=3)
    assert "FILE or --schema" in veil("--schema", schema, people, code=2)
    assert "age is both private and public" in veil(people, *ASKED, "--public", "os,age", code=2)
    assert "leave FILE out" in veil("--schema", schema, "--private", "age", people, code=2)
    assert "--public goes with FILE" in veil("--attribute", "a=0..9", "--public", "os", "--epsilon", 1, code=2)
    assert "got 'ages'" in veil(people, "--private", "ages", "--epsilon", 1, code=3)
    assert "got 'oss'" in veil(people, "--private", "age", "--public", "oss", "--epsilon", 1, code=3)
    assert "private dimensions" in veil("--epsilon", 1, code=3)
    assert "--epsilon" in veil(people, "--private", "age", code=2)
