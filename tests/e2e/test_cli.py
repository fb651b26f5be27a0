"""The real commands: the whole pipeline over every kind of file, exit codes, and what a mistake leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.support.commands import CliRunner

from veil import GRR, OLH, AllOf, Integers, OneOf, Public, Question, Record, Survey, Text
from veil.cli.main import app
from veil.errors import BudgetError, LedgerError
from veil.study import Study, study_from_json
from veil.view import Project

PEOPLE = 150_000  # more than two chunks of people, so that cuts show
LABELS = ["tea", "coffee", "water", "[bold]milk[/]", "NA"]


def veil(*args: Any, code: int = 0) -> Any:
    """Run a command; anything but the expected exit code is shown whole."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def veil_json(*args: Any, code: int = 0) -> Any:
    return json.loads(veil(*args, "--json", code=code).stdout)


@pytest.fixture(scope="module")
def held() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 16, PEOPLE)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "study.json"
    veil("plan", "histogram", "--domain", 16, "--epsilon", 1, "--method", "OLH", "--out", path)
    return path


def save_values(path: Path, table: pa.Table, rows: int = 10_000) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        pacsv.write_csv(table, path, write_options=pacsv.WriteOptions(delimiter=delimiter))
    return path


def save_study(tmp_path: Path, study: Study, name: str = "study.json") -> Path:
    (tmp_path / name).write_bytes(study.to_bytes())
    return tmp_path / name


def small(tmp_path: Path, text: str = "app\n1\n2\n3\n", name: str = "values.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_every_kind_of_file_gives_the_same_tally(tmp_path: Path, task: Path, held: Any) -> None:
    table = pa.table({"app": held, "age": held + 20})
    tallies = []
    for name, rows in [("a.csv", 0), ("b.tsv", 0), ("c.parquet", 7_001), ("d.parquet", 70_000), ("e.arrow", 999)]:
        values = save_values(tmp_path / name, table, rows)
        reports, out = tmp_path / f"{name}.reports.arrow", tmp_path / f"{name}.bin"
        veil("randomize", task, values, "-o", reports, "--column", "app", "--seed", 5)
        veil("tally", task, reports, "-o", out)
        tallies.append(out.read_bytes())
    assert len(set(tallies)) == 1
    other = tmp_path / "other.arrow"
    veil("randomize", task, tmp_path / "a.csv", "-o", other, "--column", "app", "--seed", 6)
    veil("tally", task, other, "-o", tmp_path / "other.bin")
    assert (tmp_path / "other.bin").read_bytes() != tallies[0]


def test_together_is_the_same_as_apart_and_merged(tmp_path: Path, task: Path, held: Any) -> None:
    halves = []
    for i, some in enumerate(np.array_split(held, 2)):
        values = save_values(tmp_path / f"values{i}.parquet", pa.table({"app": some}))
        veil("randomize", task, values, "-o", tmp_path / f"reports{i}.arrow")
        veil("tally", task, tmp_path / f"reports{i}.arrow", "-o", tmp_path / f"tally{i}.bin")
        halves.append(tmp_path / f"reports{i}.arrow")
    together, merged = tmp_path / "together.bin", tmp_path / "merged.bin"
    assert veil_json("tally", task, *halves, "-o", together)["people"] == PEOPLE
    veil("merge", task, tmp_path / "tally1.bin", tmp_path / "tally0.bin", "-o", merged)
    assert together.read_bytes() == merged.read_bytes()

    out, picture = tmp_path / "estimate.csv", tmp_path / "estimate.svg"
    found = veil_json("estimate", task, merged, "-o", out, "--plot", picture, "--top", 3)
    table = pacsv.read_csv(out)
    assert table.column_names == ["value", "frequency", "count", "stderr", "low", "high", "significant"]
    truth = np.bincount(held, minlength=16) / PEOPLE
    frequencies, errors = table["frequency"].to_numpy(), table["stderr"].to_numpy()
    assert (np.abs(frequencies - truth) < 6 * errors).all()  # 1e-9 a value, from fresh entropy
    assert len(found["rows"]) == 3
    assert picture.read_text().startswith("<?xml")


def test_differences_between_two_collections(tmp_path: Path, task: Path) -> None:
    """From tallies or from reports; with another study before; and what is refused."""
    for name, held in (("march", 3), ("april", 5)):
        values = save_values(tmp_path / f"{name}.parquet", pa.table({"app": [held] * 3_000}))
        veil("randomize", task, values, "-o", tmp_path / f"{name}.arrow")
        veil("tally", task, tmp_path / f"{name}.arrow", "-o", tmp_path / f"{name}.bin")
    out, picture = tmp_path / "changes.csv", tmp_path / "changes.svg"
    sides = tmp_path / "march.bin", tmp_path / "april.arrow"
    found = veil_json("difference", task, *sides, "-o", out, "--plot", picture, "--top", 2)
    assert found["kind"] == "frequency-change"
    assert {row["value"]: row["difference"] > 0 for row in found["rows"]} == {3: False, 5: True}
    assert all(row["changed"] for row in found["rows"])
    names = ["value", "before", "after", "difference", "low", "high", "p_value", "changed"]
    assert pacsv.read_csv(out).column_names == names
    assert picture.read_text().startswith("<?xml")
    assert "smallest adjusted p value" in veil("difference", task, *sides).stdout
    again = veil_json("difference", task, *sides, "--before-study", task, "--top", 2)
    assert again["rows"] == found["rows"]
    veil("difference", task, sides[0], tmp_path / "no-such-file", code=3)


@pytest.mark.parametrize("post", ["auto", "norm-sub", "post-pos", "norm", "calibrate"])
def test_estimates_are_post_processed_on_request(tmp_path: Path, task: Path, held: Any, post: str) -> None:
    values = save_values(tmp_path / "values.parquet", pa.table({"app": held}))
    veil("randomize", task, values, "-o", tmp_path / "r.arrow", "--seed", 4)
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    out, picture = tmp_path / "estimate.json", tmp_path / "estimate.svg"
    found = veil_json("estimate", task, tmp_path / "t.bin", "--set", f"post={post}", "-o", out, "--plot", picture)
    raw = veil_json("estimate", task, tmp_path / "t.bin")
    assert found["lineage"][1].startswith("norm-sub" if post == "auto" else post)  # too few values to learn from
    assert found["significant"] == raw["significant"]
    rows = json.loads(out.read_text())["rows"]
    assert all(row["low"] <= row["frequency"] <= row["high"] for row in rows if post != "post-pos")
    assert all(row["stderr"] is None for row in rows) == (post != "norm")
    if post in ("auto", "norm-sub", "norm"):
        assert sum(row["frequency"] for row in rows) == pytest.approx(1.0)
    assert "reports, " in veil("estimate", task, tmp_path / "t.bin", "--set", f"post={post}").stdout
    veil("estimate", task, tmp_path / "t.bin", "--set", "post=no-such-method", code=3)


def test_two_runs_without_a_seed_differ(tmp_path: Path, task: Path) -> None:
    values = small(tmp_path, "app\n" + "3\n" * 200)
    for name in ("a", "b"):
        veil("randomize", task, values, "-o", tmp_path / f"{name}.arrow")
    assert (tmp_path / "a.arrow").read_bytes() != (tmp_path / "b.arrow").read_bytes()


def test_a_seed_is_warned_about(tmp_path: Path, task: Path) -> None:
    result = veil("randomize", task, small(tmp_path), "-o", tmp_path / "r.arrow", "--seed", 1, "--json")
    assert "tests only" in result.stderr
    assert json.loads(result.stdout)["seeded"] is True


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "json"])
def test_estimates_of_several_questions(tmp_path: Path, ending: str) -> None:
    survey = Survey(OneOf((1, Question(GRR(2.0, LABELS))), (1, Question(OLH(2.0, LABELS)))))
    task, out = tmp_path / "task.json", tmp_path / f"out.{ending}"
    task.write_bytes(survey.to_bytes())
    veil("randomize", task, small(tmp_path, "drink\n" + "tea\nNA\n[bold]milk[/]\n" * 500), "-o", tmp_path / "r.arrow")
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    shown = veil("estimate", task, tmp_path / "t.bin", "-o", out, "--plot", tmp_path / "p.png").stdout
    assert "question 0" in shown
    assert "question 1" in shown
    assert "[bold]milk[/]" in shown  # a label never formats the terminal
    readers: dict[str, Callable[[], Any]] = {
        "csv": lambda: pacsv.read_csv(out).to_pylist(),
        "parquet": lambda: pq.read_table(out).to_pylist(),
        "arrow": lambda: pa.ipc.open_file(out.read_bytes()).read_all().to_pylist(),
        "json": lambda: [
            {"question": i, **row} for i in (0, 1) for row in json.loads(out.read_text())["answers"][i]["rows"]
        ],
    }
    rows = readers[ending]()
    columns = ["question", "value", "frequency", "count", "stderr", "low", "high", "significant"]
    assert [list(row) for row in rows] == [columns] * 10
    assert [row["question"] for row in rows] == [0] * 5 + [1] * 5
    assert [one["question"] for one in veil_json("estimate", task, tmp_path / "t.bin")["answers"]] == [0, 1]
    assert veil_json("estimate", task, tmp_path / "t.bin", "--set", "question=1")["kind"] == "frequencies"
    veil("estimate", task, tmp_path / "t.bin", "--set", "question=2", code=3)


def test_an_open_domain_needs_candidates(tmp_path: Path) -> None:
    task, reports, words = tmp_path / "task.json", tmp_path / "r.arrow", small(tmp_path, "tea\n\nmaté\n", "words.txt")
    task.write_bytes(Survey(OLH(4.0, Text(8))).to_bytes())
    veil("randomize", task, small(tmp_path, "drink\n" + "maté\n" * 3000), "-o", reports)
    assert "candidates" in veil("tally", task, reports, "-o", tmp_path / "t.bin", code=3).stderr
    veil("tally", task, reports, "-o", tmp_path / "t.bin", "--candidates", words)
    best = veil_json("estimate", task, tmp_path / "t.bin")["rows"][0]
    assert (best["value"], best["significant"]) == ("maté", True)


def test_candidates_of_a_closed_domain(tmp_path: Path, task: Path) -> None:
    veil("randomize", task, small(tmp_path), "-o", tmp_path / "r.arrow")
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin", "--candidates", small(tmp_path, "3\n5\n", "c"))
    assert veil_json("estimate", task, tmp_path / "t.bin")["values"] == 2
    again = veil_json("estimate", task, tmp_path / "r.arrow", "--candidates", tmp_path / "c")
    assert again["rows"] == veil_json("estimate", task, tmp_path / "t.bin")["rows"]
    other = small(tmp_path, "3\n6\n", "d")
    assert "other candidates" in veil("estimate", task, tmp_path / "t.bin", "--candidates", other, code=4).stderr
    wrong = small(tmp_path, "x\n", "c")
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "u.bin", "--candidates", wrong, code=3)


def test_a_record_reads_its_own_columns(tmp_path: Path) -> None:
    domain = Record.of(drink=LABELS, age=Integers(0, 9))
    views = [Project(domain, ("drink",)), Project(domain, ("age",))]
    survey = Survey(AllOf(*(Question(GRR(1.0, view.domain), view) for view in views)))
    task = tmp_path / "task.json"
    task.write_bytes(survey.to_bytes())
    values = small(tmp_path, "age,other,drink\n" + "3,x,tea\n" * 50)
    assert veil_json("randomize", task, values, "-o", tmp_path / "r.arrow")["people"] == 50
    assert veil_json("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")["people"] == 50
    assert len(veil_json("estimate", task, tmp_path / "t.bin")["answers"]) == 2


# -- plan, inspect, demo -----------------------------------------------------------------------------------------------


def test_inspect_says_what_a_file_is(tmp_path: Path, task: Path) -> None:
    reports, tally = tmp_path / "r.arrow", tmp_path / "t.bin"
    veil("randomize", task, small(tmp_path), "-o", reports)
    veil("tally", task, reports, "-o", tally)
    facts = veil_json("inspect", task)
    assert (facts["kind"], facts["study"], facts["columns"]) == ("study", "histogram", ["seed", "bucket"])
    assert "study of kind histogram" in veil("inspect", task).stdout
    bare = tmp_path / "task.json"
    bare.write_bytes(study_from_json(task.read_bytes()).survey.to_bytes())
    assert (veil_json("inspect", bare)["kind"], veil_json("inspect", bare)["task"]) == ("task", facts["task"])
    assert 0.999 < facts["epsilon"] <= 1.0
    for path, kind in ((reports, "reports"), (tally, "tally")):
        for extra in ([], ["--study", task]):
            found = veil_json("inspect", path, *extra)
            assert (found["kind"], found["task"], found["reports"]) == (kind, facts["task"], 3)
            assert found["checked"] is bool(extra)
    assert "3 reports" in veil("inspect", reports).stdout
    veil("inspect", small(tmp_path, "hello"), code=5)
    veil("inspect", small(tmp_path, ""), code=3)


def test_demo_walks_the_whole_way(tmp_path: Path) -> None:
    found = veil_json("demo", "--offline", "--folder", tmp_path / "demo", "--people", 20_000, "--seed", 3)
    assert found["people"] == 20_000
    assert found["covered"] >= 52  # of 64 at 95 %: fewer has a chance below 1e-4, and the seed is fixed
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    halves = {
        f"{stem}-{i}.{end}" for i in "12" for stem, end in [("people", "csv"), ("reports", "arrow"), ("tally", "bin")]
    }
    assert names == {"study.json", "tally.bin", "estimate.svg", *halves}
    again = veil_json("demo", "--offline", "--folder", tmp_path / "again", "--people", 20_000, "--seed", 3)
    assert again["estimate"]["rows"] == found["estimate"]["rows"]
    text = veil("demo", "--offline", "--folder", tmp_path / "demo", "--people", 5_000).stdout
    assert "contain the true share" in text  # so few people may leave no row that stands out
    assert "veil estimate" in text


def test_demo_over_http() -> None:
    found = veil_json("demo", "--people", 2_000)
    assert found["people"] == 2_000
    assert found["covered"] >= 48  # of 64 at 95 %: fewer has a chance below 1e-7
    veil("demo", "--seed", 3, code=2)


# -- mistakes ----------------------------------------------------------------------------------------------------------

PRIVATE = "77777"
BAD_VALUES = {
    "outside the domain": f"app\n1\n{PRIVATE}\n",
    "not a number": "app\n1\nsecret-77777\n",
    "not whole": f"app\n1\n2.{PRIVATE}\n",
    "nan": "app\n1\nNaN\n",
    "missing": "app,other\n1,2\n,2\n",
    "nothing": "",
    "only a header": "app\n",
    "a row too long": f"app\n1\n1,{PRIVATE}\n",
    "no header": f"{PRIVATE},{PRIVATE}\n1,2\n",
    "no header, one column": "7\n7\n",
    "not text": "app\n\udcff\udcfe\n",
}


@pytest.mark.parametrize("kind", BAD_VALUES)
def test_bad_values_are_refused_without_showing_them(tmp_path: Path, task: Path, kind: str) -> None:
    values = tmp_path / "values.csv"
    values.write_bytes(BAD_VALUES[kind].encode(errors="surrogateescape"))
    before = sorted(tmp_path.iterdir())
    column = ["--column", "app"] if kind == "missing" else []
    plain = veil("randomize", task, values, "-o", tmp_path / "r.arrow", *column, code=3)
    document = veil_json("randomize", task, values, "-o", tmp_path / "r.arrow", *column, code=3)
    assert set(document["error"]) == {"kind", "message"}
    assert plain.stdout == ""
    assert len(plain.stderr.splitlines()) == 1
    assert PRIVATE not in plain.output + document["error"]["message"]
    assert sorted(tmp_path.iterdir()) == before


def test_a_bad_value_late_in_a_file_leaves_nothing(tmp_path: Path, task: Path, held: Any) -> None:
    late = held.copy()
    late[-1] = 99
    values = save_values(tmp_path / "late.parquet", pa.table({"app": late}))
    before = sorted(tmp_path.iterdir())
    message = veil("randomize", task, values, "-o", tmp_path / "r.arrow", code=3).stderr
    assert f"row {PEOPLE:,} of {values}" in message
    assert sorted(tmp_path.iterdir()) == before


def test_wrong_columns(tmp_path: Path, task: Path) -> None:
    values = small(tmp_path, "a,b\n1,2\n")
    veil("randomize", task, values, "-o", tmp_path / "r.arrow", code=3)
    assert "no column c" in veil("randomize", task, values, "-o", tmp_path / "r.arrow", "--column", "c", code=3).stderr
    table = save_values(tmp_path / "t.parquet", pa.table({"a": [1], "b": [2]}))
    assert "a, b" in veil("randomize", task, table, "-o", tmp_path / "r.arrow", code=3).stderr


def test_files_that_are_not_there_or_cannot_be_written(tmp_path: Path, task: Path) -> None:
    (tmp_path / "empty").mkdir()
    values, before = small(tmp_path), sorted(tmp_path.iterdir())
    missing, out = tmp_path / "missing", tmp_path / "out.arrow"
    veil("randomize", missing, values, "-o", out, code=3)
    veil("randomize", task, missing, "-o", out, code=3)
    veil("randomize", task, tmp_path, "-o", out, code=3)
    veil("randomize", tmp_path / "empty", values, "-o", out, code=3)
    veil("randomize", task, values, "-o", missing / "r.arrow", code=3)
    veil("randomize", task, values, "-o", tmp_path, code=3)
    veil("randomize", task, values, "-o", values, code=3)
    veil("tally", task, missing, "-o", out, code=3)
    veil("tally", task, tmp_path, "-o", out, code=3)
    veil("merge", task, missing, "-o", out, code=3)
    veil("estimate", task, missing, code=3)
    veil("inspect", missing, code=3)
    veil("plan", "histogram", "--domain", 4, "--epsilon", 1, "--out", missing / "t.json", code=3)
    veil("next", missing, code=3)
    veil("simulate", task, missing, code=3)
    veil("compare", values, "--studies", f"{task},{missing}", code=3)
    veil("demo", "--offline", "--folder", values / "x", "--people", 100, code=3)
    assert sorted(tmp_path.iterdir()) == before


def test_damaged_and_foreign_files(tmp_path: Path, task: Path, held: Any) -> None:
    reports, tally, out = tmp_path / "r.arrow", tmp_path / "t.bin", tmp_path / "out.bin"
    values = save_values(tmp_path / "v.parquet", pa.table({"app": held}))
    veil("randomize", task, values, "-o", reports)
    veil("tally", task, reports, "-o", tally)
    other = tmp_path / "other.json"
    veil("plan", "histogram", "--domain", 17, "--epsilon", 1, "--method", "OLH", "--out", other)
    before = sorted(tmp_path.iterdir())
    for command in (
        ["tally", other, reports, "-o", out],
        ["merge", other, tally, "-o", out],
        ["estimate", other, tally],
    ):
        assert veil_json(*command, code=4)["error"]["kind"] == "MismatchError"
    veil("inspect", reports, "--study", other, code=4)
    for data in (reports.read_bytes()[:-100], reports.read_bytes()[:50], b"nothing of ours"):
        (tmp_path / "bad.arrow").write_bytes(data)
        veil("tally", task, reports, tmp_path / "bad.arrow", "-o", out, code=5)
    for data in (tally.read_bytes()[:-1], b"VEILT\x01", b"nothing of ours", b""):
        (tmp_path / "bad.bin").write_bytes(data)
        veil("merge", task, tally, tmp_path / "bad.bin", "-o", out, code=5)
        veil("estimate", task, tmp_path / "bad.bin", code=5)
    (tmp_path / "bad.json").write_bytes(task.read_bytes()[:-1])
    veil("tally", tmp_path / "bad.json", reports, "-o", out, code=5)
    left = {path for path in tmp_path.iterdir() if not path.name.startswith("bad.")}
    assert left == set(before)


def test_the_same_file_twice_is_refused(tmp_path: Path, task: Path) -> None:
    veil("randomize", task, small(tmp_path), "-o", tmp_path / "r.arrow")
    veil("tally", task, tmp_path / "r.arrow", tmp_path / "r.arrow", "-o", tmp_path / "t.bin", code=3)


def test_no_reports_at_all_are_refused(tmp_path: Path, task: Path) -> None:
    from veil.files import ReportWriter

    with ReportWriter(tmp_path / "empty.arrow", study_from_json(task.read_bytes()).survey):
        pass
    assert "no reports" in veil("tally", task, tmp_path / "empty.arrow", "-o", tmp_path / "t.bin", code=3).stderr
    assert not (tmp_path / "t.bin").exists()


def test_usage_and_the_remaining_exit_codes(tmp_path: Path, task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    veil("plan", "histogram", "--domain", 4, code=2)
    veil("nothing", code=2)
    veil("estimate", task, code=2)
    veil("estimate", task, task, "--set", "post", code=2)
    veil("estimate", task, task, "--set", "post=norm", "--set", "post=norm-sub", code=2)
    veil("simulate", task, task, "--epsilon", 1, code=2)
    veil("simulate", task, code=2)
    from veil.cli import input as files

    for problem, code in ((BudgetError("no"), 6), (LedgerError("no"), 6), (KeyError(PRIVATE), 1)):

        def fail(*_: Any, problem: Exception = problem) -> None:
            raise problem

        monkeypatch.setattr(files, "load", fail)
        assert PRIVATE not in veil("inspect", task, "--study", task, code=code).output
        assert veil_json("inspect", task, "--study", task, code=code)["error"]["kind"] == type(problem).__name__


def test_labels_that_trouble_terminals_and_pictures(tmp_path: Path) -> None:
    lines = small(tmp_path, "$5 {x} and $6\n\x1b[31mred\n\N{GRINNING FACE}\na,b\n", "labels.txt")
    task, picture = tmp_path / "task.json", tmp_path / "p.svg"
    veil("plan", "histogram", "--labels-file", lines, "--epsilon", 3, "--out", task)
    veil("randomize", task, small(tmp_path, 'label\n"a,b"\n\N{GRINNING FACE}\n'), "-o", tmp_path / "r.arrow")
    veil("tally", task, tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    assert "\x1b[31m" not in veil("estimate", task, tmp_path / "t.bin", "--plot", picture).stdout
    assert picture.exists()


@pytest.mark.parametrize("name", ["people.dat", "people", "people.xlsx", "people.csv.gz"])
def test_files_of_unknown_kinds_are_not_read_aloud(tmp_path: Path, task: Path, name: str) -> None:
    values = tmp_path / name
    values.write_text("Alice PRIVATE,tea\nBob,coffee\n")
    for column in ([], ["--column", "drink"]):
        message = veil("randomize", task, values, "-o", tmp_path / "r.arrow", *column, code=3).stderr
        assert "PRIVATE" not in message
        assert ".csv" in message


def test_namibia_is_a_label_beside_numbers_too(tmp_path: Path) -> None:
    survey = Survey(GRR(8.0, ["NA", "DE"]), public=[Public("weight")])
    (tmp_path / "task.json").write_bytes(survey.to_bytes())
    (tmp_path / "values.csv").write_text("weight,country\n" + "1,NA\n" * 500 + "2,DE\n" * 500)
    veil(
        "randomize", tmp_path / "task.json", tmp_path / "values.csv", "-o", tmp_path / "r.arrow", "--column", "country"
    )
    veil("tally", tmp_path / "task.json", tmp_path / "r.arrow", "-o", tmp_path / "t.bin")
    rows = veil_json("estimate", tmp_path / "task.json", tmp_path / "t.bin")["rows"]
    assert {row["value"]: round(row["frequency"], 1) for row in rows} == {"NA": 0.5, "DE": 0.5}


def test_contradictions_are_refused(tmp_path: Path) -> None:
    twice = tmp_path / "twice.csv"
    twice.write_text("a,a\n1,2\n")
    veil("plan", "histogram", "--domain", 16, "--epsilon", 1, "--out", tmp_path / "task.json")
    veil("randomize", tmp_path / "task.json", twice, "-o", tmp_path / "r.arrow", "--column", "a", code=3)
    veil("randomize", tmp_path / "task.json", twice, "-o", tmp_path / "r.csv", code=3)


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m veil.cli plan histogram --domain 1024 --epsilon 1 | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
