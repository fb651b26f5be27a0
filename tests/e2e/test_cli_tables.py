"""Tables from the command line: people in a file become a folder to ask, as their devices would make it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.commands import CliRunner, Result

import veil
from veil.cli.main import app
from veil.domain import Integers, Record
from veil.sql import Category, Measure, Moment, Table
from veil.sql.folder import open_folder

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

TABLE = Table(
    3.0,
    Record.of(age=Integers(18, 81), state=["NY", "WA"]),
    (Measure("spent", 2), Measure("visits"), Category("store", ("1", "2", "ü")), Moment("bought")),
)
QUERY = "SELECT COUNT(*) AS n, SUM(spent) AS total FROM people WHERE age < 50 AND store <> '1'"
PEOPLE = 900


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {
        "bought": [f"2026-01-{d:02d}" for d in rng.integers(1, 32, PEOPLE)],
        "age": rng.integers(18, 82, PEOPLE).tolist(),
        "store": [("1", "2", "ü")[i] for i in rng.integers(0, 3, PEOPLE)],
        "spent": [i // 100 if i < 300 else i / 100 for i in range(PEOPLE)],  # looks like integers at first
        "state": [("NY", "WA")[i] for i in rng.integers(0, 2, PEOPLE)],
        "visits": rng.integers(0, 9, PEOPLE).tolist(),
    }


@pytest.fixture
def files(tmp_path: Path) -> Path:
    given = columns()
    rows = zip(*given.values(), strict=True)
    text = "\n".join([",".join(given), *(",".join(map(str, row)) for row in rows), ""])
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    (tmp_path / "table.json").write_bytes(TABLE.to_bytes())
    return tmp_path


def veil_(files: Path, *arguments: str) -> Result:
    named = {"TABLE": "table.json", "PEOPLE": "people.csv", "FOLDER": "folder"}
    return CliRunner().invoke(app, [str(files / named[one]) if one in named else one for one in arguments])


def ok(files: Path, *arguments: str) -> Any:
    done = veil_(files, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_people_are_randomized_into_a_folder(files: Path) -> None:
    done = ok(files, "randomize", "TABLE", "PEOPLE", "-o", "FOLDER", "--seed", "5")
    assert done["people"] == PEOPLE
    ok(files, "randomize", "TABLE", "PEOPLE", "-o", "FOLDER")
    folder = open_folder(files / "folder")
    assert folder.people == 2 * PEOPLE
    assert len(folder.files) == 2
    given = columns()
    (one,) = folder.count(['"spent"', '"visits"', 'day("bought")', 'length("store")']).classes
    spent = [round(100 * value) for value in given["spent"]]
    assert one.totals == (2 * sum(spent), 2 * sum(given["visits"]), 2 * sum(int(d[-2:]) for d in given["bought"]), 1800)
    assert one.products[0][1] == 2 * sum(a * b for a, b in zip(spent, given["visits"], strict=True))
    answer = ok(files, "sql", "FOLDER", QUERY)
    assert len(json.dumps(answer)) > 50
    ok(files, "randomize", "TABLE", "PEOPLE", "-o", str(files / "reports.arrow"))  # a file, as of every study


def test_a_name_that_ends_in_parquet_is_one_file(files: Path) -> None:
    ok(files, "randomize", "TABLE", "PEOPLE", "-o", "FOLDER")
    march, april = files / "march.parquet", files / "folder" / "april.parquet"
    for out in (march, april):
        ok(files, "randomize", "TABLE", "PEOPLE", "-o", str(out))
        assert out.is_file()
    assert open_folder(files / "folder").people == 2 * PEOPLE
    for after in (april, files / "folder"):
        change = ok(files, "difference", "TABLE", str(march), str(after), "--set", f"query={QUERY}")
        assert change["rows"]
    asked = ok(files, "sql", "FOLDER", QUERY)
    assert ok(files, "estimate", "TABLE", "FOLDER", "--set", f"query={QUERY}")["rows"] == asked["rows"]


def test_the_same_reports_count_once(files: Path) -> None:
    first = ("randomize", "TABLE", "PEOPLE", "-o", "FOLDER", "--seed", "5")
    assert f"now has {PEOPLE:,} reports in 1 file" in veil_(files, *first).output
    again = veil_(files, *first)
    assert again.exit_code == 3
    assert "already" in again.output
    assert "now has 1,800 reports in 2 files" in veil_(files, *first[:-1], "6").output
    (part,) = list((files / "folder").glob("part-*.parquet"))[:1]
    (files / "folder" / "copy.parquet").write_bytes(part.read_bytes())
    (files / "folder" / "old").mkdir()
    found = ok(files, "inspect", "FOLDER")
    assert found["people"] == 2 * PEOPLE
    assert len(found["ignored"]) == 2
    said = " ".join(veil_(files, "sql", "FOLDER", QUERY).output.split())
    assert "the same reports as copy.parquet" in said
    assert "old: a folder inside the table" in said


def test_simulations_of_tables(files: Path) -> None:
    here = veil.simulate(replace(TABLE, query=QUERY), columns(), seed=7)
    done = ok(files, "simulate", "TABLE", "PEOPLE", "--set", f"query={QUERY}", "--seed", "7")
    kept = ok(files, "simulate", "TABLE", "PEOPLE", "--set", f"query={QUERY}", "--seed", "7", "--folder", "FOLDER")
    assert done["rows"] == kept["rows"]
    assert [row["n"] for row in done["rows"]] == pytest.approx(here.outputs[0].values.tolist())
    assert open_folder(files / "folder").people == kept["people"] == PEOPLE
    more = ok(files, "simulate", "TABLE", "PEOPLE", "--folder", "FOLDER", "--people", "2000")
    assert more["people"] == open_folder(files / "folder").people == PEOPLE + 2000
    assert "rows" not in more
    refused = veil_(files, "simulate", "TABLE", "PEOPLE")
    assert refused.exit_code
    assert "a table is read by a query" in refused.output


def test_true_answers_stand_beside_a_trial(files: Path) -> None:
    given = {name: np.array(column) for name, column in columns().items()}
    asked = ("simulate", "TABLE", "PEOPLE", "--seed", "7", "--truth", "--set")
    meant = (given["age"] < 50) & (given["store"] != "1")
    (true,) = ok(files, *asked, f"query={QUERY}")["truth"]
    assert true == {"n": meant.sum(), "total": pytest.approx(given["spent"][meant].sum(), abs=0.01)}
    keys, rest = "state, BUCKET(age, 30) AS b", "FROM people GROUP BY state, b ORDER BY n DESC LIMIT 3"
    grouped = f"SELECT {keys}, COUNT(*) AS n, AVG(visits) AS v {rest}"
    done = ok(files, *asked, f"query={grouped}")
    for row, true in zip(done["rows"], done["truth"], strict=True):
        mine = (given["state"] == row["state"]) & (given["age"] // 30 * 30 == row["b"])
        assert (true["state"], true["b"], true["n"]) == (row["state"], row["b"], mine.sum())
        assert true["v"] == pytest.approx(given["visits"][mine].mean())
    assert "in truth" in veil_(files, *asked, f"query={QUERY}").output
    refused = veil_(files, *asked, f"query={QUERY}", "--folder", "FOLDER")
    assert refused.exit_code == 3


@pytest.mark.parametrize("command", ["randomize", "simulate"])
def test_what_does_not_belong_leaves_no_folder(files: Path, command: str) -> None:
    out = "-o" if command == "randomize" else "--folder"
    people = (files / "people.csv").read_text(encoding="utf-8")
    for bad, says in (
        (people.replace(",ü,", ",secret,", 1), "expected 1, 2 or ü (public column 'store')"),
        (people.replace("2026-01-", "2026-secret-", 1), "ISO 8601"),
        (people.replace("visits", "visit", 1), "has no column visits"),
    ):
        (files / "people.csv").write_text(bad, encoding="utf-8")
        done = veil_(files, command, "TABLE", "PEOPLE", out, "FOLDER")
        assert done.exit_code != 0
        assert says in " ".join(done.output.split())
        assert "secret" not in done.output
        assert not (files / "folder").exists()


@pytest.mark.parametrize("command", ["randomize", "simulate"])
def test_a_bad_value_is_found_by_its_line(files: Path, command: str) -> None:
    out = "-o" if command == "randomize" else "--folder"
    lines = (files / "people.csv").read_text(encoding="utf-8").splitlines()
    cells = lines[11].split(",")
    for place, cell, says in ((1, "200", "integers from 18 to 81"), (3, "1e99", "(public column 'spent')")):
        bad = [*cells[:place], cell, *cells[place + 1 :]]
        (files / "people.csv").write_text("\n".join([*lines[:11], ",".join(bad), *lines[12:]]), encoding="utf-8")
        done = veil_(files, command, "TABLE", "PEOPLE", out, "FOLDER")
        said = " ".join(done.output.split())
        assert done.exit_code == 3
        assert says in said
        assert "(line 12 of " in said
        assert ("--clip" in said) == (place == 1)
    (files / "people.csv").write_text("\n".join([*lines[:11], ",".join([cells[0], "200", *cells[2:]])]), "utf-8")
    assert ok(files, command, "TABLE", "PEOPLE", out, "FOLDER", "--clip")["clipped"] == 1


def test_folders_of_something_else_are_refused(files: Path) -> None:
    other = Table(1.0, TABLE.private, TABLE.public)
    (files / "other.json").write_bytes(other.to_bytes())
    ok(files, "randomize", str(files / "other.json"), "PEOPLE", "-o", "FOLDER")
    for command, out in (("randomize", "-o"), ("simulate", "--folder")):
        done = veil_(files, command, "TABLE", "PEOPLE", out, "FOLDER")
        assert done.exit_code != 0
        assert "holds another table" in " ".join(done.output.split())
        done = veil_(files, command, "TABLE", "PEOPLE", out, str(files))
        assert "holds something else" in " ".join(done.output.split())
    assert open_folder(files / "folder").people == PEOPLE
