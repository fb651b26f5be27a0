"""`veil sql`: one query, several from standard input, the shell, every format; mistakes point at their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.support.commands import CliRunner

import veil.sql
from veil import Integers, Record
from veil.cli.main import app
from veil.entropy import SeededForExperiments
from veil.results.render.files import load
from veil.sql import Category, Grids, Measure, Moment, Table
from veil.sql.folder import create

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

PEOPLE = 4_000
TABLE = Table(
    4.0, Record.of(age=Integers(18, 81), state=["NY", "WA"]), (Measure("spent", 2), Category("os", ("ios", "web")))
)
COUNTED = "SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 30 AND 49"
GROUPED = "SELECT os, COUNT(*) AS n, AVG(spent) AS mean FROM people WHERE age < 50 GROUP BY os ORDER BY os"


def people(seed: int = 1) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        "age": draw.integers(18, 82, PEOPLE),
        "state": draw.choice(["NY", "WA"], PEOPLE),
        "spent": draw.normal(50, 10, PEOPLE).round(2),
        "os": draw.choice(["ios", "web"], PEOPLE),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "shop"
    create(path, TABLE)
    with veil.sql.open(path) as database:
        database.append(people())
    return path


def run(*args: Any, code: int = 0, typed: str | None = None) -> Any:
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=typed)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def test_one_query_as_a_table(folder: Path) -> None:
    text = run("sql", folder, COUNTED).stdout
    assert "n, standard error" in text
    assert "n, 95 % interval" in text
    rows = run("sql", folder, GROUPED).stdout.splitlines()
    assert [line.split()[0] for line in rows if line.startswith(("ios", "web"))] == ["ios", "web"]


def test_one_query_as_json_and_csv(folder: Path) -> None:
    found = json.loads(run("sql", folder, GROUPED, "--format", "json", "--level", 0.9).stdout)
    assert (found["kind"], found["people"], found["level"], found["query"]) == ("sql", PEOPLE, 0.9, GROUPED)
    assert list(found["rows"][0]) == [
        *("os", "n", "n_stderr", "n_low", "n_high", "mean", "mean_stderr", "mean_low", "mean_high", "reports")
    ]
    assert found == json.loads(run("sql", folder, GROUPED, "--json", "--level", 0.9).stdout)
    head, first, second = run("sql", folder, GROUPED, "--format", "csv", "--level", 0.9).stdout.splitlines()
    assert head.replace('"', "").split(",") == list(found["rows"][0])
    assert float(first.split(",")[1]) == found["rows"][0]["n"]
    assert second.startswith('"web",')


def test_answers_are_written_and_drawn(folder: Path, tmp_path: Path) -> None:
    table, whole, picture = (tmp_path / name for name in ("a.csv", "a.result.json", "a.svg"))
    run("sql", folder, GROUPED, "-o", table, "--plot", picture)
    assert table.read_text().startswith('"os","n",')
    assert "<svg" in picture.read_text()
    run("sql", folder, GROUPED, "-o", whole)
    assert load(whole).kind == "sql"
    assert "kind sql" in run("inspect", whole).stdout


def test_queries_from_standard_input(folder: Path) -> None:
    typed = f"-- two queries\n{COUNTED};\n\n{GROUPED}\n;\n"
    assert run("sql", folder, typed=typed).stdout.count("4,000 reports") >= 2
    found = json.loads(run("sql", folder, "--format", "json", typed=typed).stdout)
    assert [len(answer["rows"]) for answer in found["answers"]] == [1, 2]
    assert run("sql", folder, "--format", "csv", typed=typed).stdout.count("\n\n") == 1
    assert json.loads(run("sql", folder, "--format", "json", typed=COUNTED).stdout)["kind"] == "sql"
    run("sql", folder, typed="  -- nothing\n", code=3)
    run("sql", folder, "-o", folder.parent / "x.csv", typed=typed, code=3)


def test_a_mistake_points_at_its_place(folder: Path) -> None:
    result = run("sql", folder, "SELECT COUNT(*) FROM people\nWHERE agee < 30", code=3)
    line, caret, said = result.stderr.splitlines()[:3]
    assert (line, caret) == ("WHERE agee < 30", "      ^")
    assert said.startswith("error: line 2, column 7: ")
    assert result.stdout == ""
    error = json.loads(run("sql", folder, "SELECT agee", "--format", "json", code=3).stdout)["error"]
    assert error["kind"] == "SqlError"
    assert "query 2 of 2" in run("sql", folder, typed=f"{COUNTED}; SELECT agee;", code=3).stderr


def test_the_predicted_error_is_shown_before_asking(folder: Path) -> None:
    found = json.loads(run("sql", folder, f"EXPLAIN {COUNTED}", "--format", "json").stdout)
    assert found["kind"] == "sql-plan"


def test_a_plan_needs_no_people(folder: Path, tmp_path: Path) -> None:
    create(tmp_path / "t", TABLE)
    study = tmp_path / "t" / "study.json"
    for table in (tmp_path / "t", study):
        found = json.loads(run("sql", table, f"EXPLAIN {COUNTED}", "--json").stdout)
        assert found["people"] == 1_000_000
        assert "if 1,000,000 people reported" in run("sql", table, f"EXPLAIN {COUNTED}").stdout
        found = json.loads(run("sql", table, f"EXPLAIN {COUNTED}", "--users", 500, "--json").stdout)
        assert found["people"] == 500
        run("sql", table, COUNTED, code=3)
    assert "a study without reports" in run("sql", study, COUNTED, code=3).stderr
    assert "goes with EXPLAIN" in run("sql", folder, COUNTED, "--users", 500, code=3).stderr
    drawn, table = tmp_path / "a.svg", tmp_path / "a.csv"
    assert "has no picture" in run("sql", folder, f"EXPLAIN {COUNTED}", "--plot", drawn, "-o", table, code=3).stderr
    assert not table.exists()


def test_reports_are_read_in_another_way(folder: Path) -> None:
    text = "SELECT state, COUNT(*) AS n FROM people WHERE age < 22 GROUP BY state"
    consistent = run("sql", folder, text, "--set", "reading=consistent").stdout
    assert "made to fit together" in consistent
    with veil.sql.open(folder, reading="consistent") as database:
        assert "made to fit together" in " ".join(database.query(text).remarks())
    run("sql", folder, text, "--set", "reading=wild", code=3)
    run("sql", folder, text, "--set", "epsilon=9", code=3)


def test_what_was_said_once_is_not_said_again(tmp_path: Path) -> None:
    table = Table(4.0, TABLE.private, TABLE.public, Grids(8, 4))
    create(tmp_path / "t", table)
    with veil.sql.open(tmp_path / "t") as database:
        database.append(people())
    asked = ";".join(["SELECT COUNT(*) AS n FROM people", COUNTED, COUNTED])
    assert run("sql", tmp_path / "t", typed=asked).stdout.count("inside coarse cells") == 1
    assert "inside coarse cells" not in run("sql", tmp_path / "t", "SELECT COUNT(*) AS n FROM people").stdout
    answers = json.loads(run("sql", tmp_path / "t", "--json", typed=asked).stdout)["answers"]
    assert [len(answer["remarks"]) for answer in answers] == [0, 1, 1]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("os = 'iOS'", "expected a label of os, got 'iOS'; did you mean ios?"),
        ("os IN ('web', 'linux') AND age < 40", "expected a label of os (ios, web), got 'linux'"),
        ("'WEB' <> os", "did you mean web?"),
        ("os = 'ios' OR lower(os) = 'x'", None),
    ],
)
def test_labels_that_nobody_has_are_said(folder: Path, where: str, said: str | None) -> None:
    text = f"SELECT COUNT(*) AS n FROM people WHERE {where}"  # noqa: S608  # a query of ours
    for asked in (text, f"EXPLAIN {text}"):
        shown = " ".join(run("sql", folder, asked).stdout.split())
        assert said in shown if said is not None else "nobody has" not in shown


def test_a_pipe_says_what_it_did_not_ask(folder: Path) -> None:
    said = run("sql", folder, typed=";".join([COUNTED, "SELECT agee", COUNTED, COUNTED]), code=3).stderr
    assert "query 2 of 4" in said
    assert "was not asked: 2 more of the 4" in said


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("none", COUNTED), 3),
        (("FOLDER", COUNTED, "--level", 2), 3),
        (("FOLDER", COUNTED, "-o", "x.txt"), 3),
        (("FOLDER", COUNTED, "--format", "xml"), 2),
        (("FOLDER", "DROP TABLE people"), 3),
        (("FOLDER", ""), 3),
    ],
)
def test_exit_codes(folder: Path, args: tuple[Any, ...], code: int) -> None:
    run("sql", *(folder if arg == "FOLDER" else arg for arg in args), code=code)


def test_half_a_file_is_left_out_and_said(folder: Path, tmp_path: Path) -> None:
    create(tmp_path / "t", TABLE)
    with veil.sql.open(tmp_path / "t") as database:
        database.append(people())
    (tmp_path / "t" / "part-1-0123456789abcdef.parquet").write_bytes(b"PAR1 half of it")
    result = run("sql", tmp_path / "t", "SELECT COUNT(*) AS n FROM people", "--format", "csv")
    assert "part-1-0123456789abcdef.parquet" in result.stderr
    assert result.stdout.splitlines()[1].startswith("4000,0,")


def test_a_folder_is_inspected(folder: Path, tmp_path: Path) -> None:
    found = json.loads(run("inspect", folder, "--json").stdout)
    assert (found["kind"], found["people"], found["files"], found["ignored"]) == ("table", PEOPLE, 1, [])
    assert [column["name"] for column in found["columns"]] == ["age", "state", "spent", "os"]
    assert "veil sql" in run("inspect", folder).stdout
    run("inspect", folder, "--study", folder / "study.json")
    other = tmp_path / "other.json"
    other.write_bytes(Table(1.0, Record.of(age=Integers(18, 81))).to_bytes())
    run("inspect", folder, "--study", other, code=4)
    (tmp_path / "empty").mkdir()
    assert "is an empty folder" in run("inspect", tmp_path / "empty", code=3).stderr


def test_times_are_written_without_thousandths(tmp_path: Path) -> None:
    table = Table(4.0, TABLE.private, (Moment("bought", "second"),))
    create(tmp_path / "t", table)
    with veil.sql.open(tmp_path / "t") as database:
        held = people()
        days = np.datetime64("2026-01-01T10:00:00") + np.arange(PEOPLE) % 60 * np.timedelta64(1, "D")
        database.append({"age": held["age"], "state": held["state"], "bought": days})
    text = run("sql", tmp_path / "t", "SELECT date_trunc('hour', bought) AS t, COUNT(*) AS n FROM people GROUP BY t")
    assert "2026-01-01 10:00:00  " in text.stdout
    assert ".000" not in text.stdout


def test_a_table_is_a_study_that_is_read_by_a_query(folder: Path) -> None:
    (part,) = folder.glob("part-*.parquet")
    study = folder / "study.json"
    found = json.loads(run("estimate", study, part, "--set", f"query={GROUPED}", "--json").stdout)
    direct = json.loads(run("sql", folder, GROUPED, "--json").stdout)
    assert found["rows"] == direct["rows"]
    run("estimate", study, part, code=3)
    run("estimate", study, part, "--set", "query=SELECT agee FROM people", code=3)


# -- the shell ---------------------------------------------------------------------------------------------------------


def shell(folder: Path, typed: str, monkeypatch: pytest.MonkeyPatch, state: Path) -> str:
    """What the shell shows where somebody types this."""
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from veil.cli.sql_shell import Shell

    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    screen = Console(width=100, highlight=False)
    with screen.capture() as captured, create_pipe_input() as keys, veil.sql.open(folder) as database:
        keys.send_text(typed)
        Shell(database, screen).run(input=keys, output=DummyOutput())
    return captured.get()


def test_a_query_over_several_lines(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = shell(folder, "SELECT COUNT(*) AS n\rFROM people\rWHERE age < 50;\r\\q\r", monkeypatch, tmp_path)
    assert "people: 4,000 reports." in text
    assert "n, 95 % interval" in text
    assert "WHERE age < 50;" in (tmp_path / "veil" / "sql_history").read_text()


def test_the_commands_of_the_shell(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = shell(folder, f"\\d\r\\timing\r{COUNTED};\r\\x\r\\?\r\\q\r", monkeypatch, tmp_path)
    assert "integers from 18 to 81" in text
    assert "numbers with 2 decimals" in text
    assert "ms\n" in text
    assert "there is no such command" in text
    assert "\\timing" in text


def test_help_answers_also_inside_a_query(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "\\timing" in shell(folder, "help\r\\q\r", monkeypatch, tmp_path)
    text = shell(folder, "SELECT COUNT(*) AS n\rFROM people\r\\?\rWHERE age < 50;\r\\q\r", monkeypatch, tmp_path)
    assert "\\timing" in text
    assert "n, 95 % interval" in text


def test_the_shell_goes_on_after_a_mistake(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong = "SELECT COUNT(*) FROM people WHERE agee < 3;\r"
    text = shell(folder, wrong + COUNTED + ";\r\\q\r", monkeypatch, tmp_path)
    assert f"{' ' * 34}^\nerror: line 1, column 35: " in text
    assert "Traceback" not in text
    assert "n, standard error" in text


def test_the_shell_survives_a_bug(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("somebody's private value")

    monkeypatch.setattr("veil.sql.execution.engine.run", broken)
    text = shell(folder, f"{COUNTED};\r\\q\r", monkeypatch, tmp_path)
    assert "unexpected RuntimeError" in text
    assert "somebody" not in text.replace("\n", " ")


def test_the_shell_ends_with_its_input(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "n, standard error" in shell(folder, f"{COUNTED};\r\x04", monkeypatch, tmp_path)
    assert "error" not in shell(folder, "SELECT\x03\x04", monkeypatch, tmp_path)  # Ctrl-C throws away what was typed


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("SELECT st", ["state", "STDDEV("]), ("WHERE state = 'n", ["NY"]), ("SEL", ["SELECT"]), ("SELECT ", [])],
)
def test_words_are_completed(typed: str, offered: list[str]) -> None:
    pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from veil.cli.sql_shell import completer

    found = completer(TABLE).get_completions(Document(typed), CompleteEvent())
    assert [one.display_text for one in found] == offered


def test_history_that_cannot_be_written_is_kept_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    assert "n, standard error" in shell(folder, f"{COUNTED};\r\\q\r", monkeypatch, tmp_path / "file")


def test_two_months_are_compared_by_a_query(tmp_path: Path) -> None:
    parts = []
    for month in (3, 4):
        held = people(month)
        reports = TABLE.survey.randomize(held, SeededForExperiments(month), TABLE.encode_public(held))
        parts.append(create(tmp_path / str(month), TABLE).append(reports))
    study = tmp_path / "3" / "study.json"
    found = json.loads(run("difference", study, *parts, "--set", f"query={GROUPED}", "--json").stdout)
    assert found["kind"] == "sql-change"
    assert sorted((row["os"], row["output"]) for row in found["rows"]) == [
        *(("ios", "mean"), ("ios", "n"), ("web", "mean"), ("web", "n"))
    ]
    assert found["changed"] == 0
