"""Folders and files with odd names: every command reads and writes exactly these, as it does under plain names."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from tests.support.commands import CliRunner
from tests.support.everyday import everyday
from tests.support.odd_names import ODD_NAMES

from veil import GRR
from veil.cli.input import listed_paths
from veil.cli.main import app, run
from veil.cli.output import shell_command
from veil.device import Ledger

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

SEED = ("--seed", 7)
COUNTED = "SELECT os, COUNT(*) AS n, SUM(spent) AS spent FROM people WHERE age < 40 GROUP BY os"
NAMES = (
    """s*[as]?{a,b} it's "50%" %(a)s {0} $HOME""",
    "line\nbreak\r\u202e\x1b[31m \t",
    "\udcff",  # stands for a byte that is not UTF-8
    "`a` ~;&|<b>",
    "back\\slash [as]\\*",
    " [red]\u2066\xe9 e\u0301\u200b ",
    "s3:,@a=1#",
    "--help",
)
"""Each has many odd characters: a walk through all commands takes seconds."""


def table() -> pa.Table:
    rng = np.random.default_rng(5)
    labels = {"drink": ["tea", "coffee", "water"], "os": ["ios", "win"]}
    texts = {name: rng.choice(values, 200) for name, values in labels.items()}
    return pa.table({**texts, "age": rng.integers(18, 97, 200), "spent": rng.integers(0, 50, 200)})


class Walk:
    """Every command with paths, on files of one name in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.calls: list[tuple[str, ...]] = []
        folder.mkdir(parents=True)

    def __call__(self, ending: str) -> Path:
        return self.folder / f"{self.name}{ending}"

    def run(self, *words: Any) -> str:
        given = [f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words]
        done = CliRunner().invoke(app, given)
        assert done.exit_code == 0, (self.name, given, done.output, done.exception)
        self.calls.append(tuple(given))
        return done.stdout

    def files_of_values(self) -> list[Path]:
        people, files = table(), [self(f".{kind}") for kind in ("csv", "jsonl", "parquet", "arrow")]
        with files[0].open("wb") as sink:
            pacsv.write_csv(people, sink)
        files[1].write_text("".join(json.dumps(row) + "\n" for row in people.to_pylist()))
        with files[2].open("wb") as sink:
            pq.write_table(people, sink)
        with files[3].open("wb") as sink:
            feather.write_feather(people, sink)
        return files

    def histogram(self, files: list[Path]) -> None:
        self(".txt").write_text("tea\ncoffee\nwater\n")
        study = self(".json")
        self.run("plan", "histogram", "--labels-file", self(".txt"), "--epsilon", 4, "-o", study)
        reports = []
        for file, kind in zip(files, ("arrow", "parquet", "arrow", "parquet"), strict=True):
            reports.append(self(f"{file.suffix}.reports.{kind}"))
            self.run("randomize", study, file, "--column", "drink", *SEED, "-o", reports[-1])
        self.run("tally", study, *reports[:2], "-o", self(".1.tally"))
        self.run("tally", study, *reports[:2], "--candidates", self(".txt"), "-o", self(".c.tally"))
        self.run("tally", study, *reports[2:], "-o", self(".2.tally"))
        self.run("merge", study, self(".1.tally"), self(".2.tally"), "-o", self(".tally"))
        for kind in ("csv", "json", "parquet", "arrow"):
            self.run("estimate", study, self(".tally"), "-o", self(f".out.{kind}"))
        self.run("estimate", study, *reports, "--candidates", self(".txt"), "--plot", self(".svg"))
        self.run("difference", study, *reports[:2], "--candidates", self(".txt"), "-o", self(".d.csv"))
        self.run(
            "simulate", study, files[0], "--column", "drink", *SEED, "--folder", self(" run"), "-o", self(".s.csv")
        )
        self.run("simulate", files[2], "--column", "drink", "--epsilon", 1, "--labels-file", self(".txt"), *SEED)
        self.run("compare", files[0], "--column", "drink", "--studies", study, "--runs", 1, *SEED, "-o", self(".c.csv"))
        for file in (study, reports[0], reports[1], self(".tally")):
            self.run("inspect", file)
        self.run("inspect", reports[1], "--study", study)
        self.run("next", self(" next"), study)
        self.run("next", self(" next"), reports[0], "-o", self(".n.csv"))

    def tables(self, files: list[Path]) -> None:
        study, folder = self(".table.json"), self(" table")
        self.run("plan", "sql", files[0], "--private", "age", "--public", "os,spent", "--epsilon", 2, "-o", study)
        self.run("randomize", study, files[0], *SEED, "-o", folder)
        self.run("randomize", study, files[2], "--seed", 8, "-o", folder / self("*.parquet").name)
        self.run("sql", folder, COUNTED, "-o", self(".sql.csv"))
        self.run("estimate", study, folder, "--set", f"query={COUNTED}", "-o", self(".sql2.csv"))
        self.run("inspect", folder)
        schema = self(".toml")
        schema.write_text("[table]\nepsilon = 2\n[private.age]\nintegers = [18, 96]\n")
        self.run("plan", "sql", "--schema", schema, "-o", self(".schema.json"))
        self.run("plan", "marginals", files[2], "--private", "drink,os", "--epsilon", 2, "-o", self(".m.json"))
        self.run("randomize", self(".m.json"), files[3], *SEED, "-o", self(".m.arrow"))
        self.run("synthesize", self(".m.json"), self(".m.arrow"), "-n", 20, *SEED, "-o", self(".m.parquet"))

    def collector(self) -> None:
        on = ("--folder", self(" collector"))
        created = json.loads(self.run("survey", "create", self(".json"), "--open", "--new", *on, "--json"))
        self.run("survey", "list", *on)
        self.run("survey", "export", created["task"], "-o", self(".export.parquet"), *on)
        self.run("survey", "export", created["task"], "--folders", "-o", self(" exported"), *on)
        self.run("backup", self(".backup"), *on)
        self.run("restore", self(".backup"), "--new", "--folder", self(" restored"))
        assert (self(" restored") / "collector.sqlite3").stat().st_size > 0
        self.run("audit", *on)
        self.run("key", "make", self(".key"))

    def ledger(self) -> None:
        path = self(" ledger")
        Ledger(path, lifetime=2.0, today=lambda: date(2300, 1, 1)).spend("a-task", GRR(0.5, 4).guarantee)
        assert json.loads(self.run("ledger", "show", path, "--json"))
        self.run("ledger", "move-clock-back", path)
        assert json.loads(self.run("ledger", "raise", path, "--lifetime", "100", "--json"))
        path.unlink()  # it holds today's date

    def parties(self) -> None:
        self.run("peos", "secret", self(" secret"), "--bits", 512)
        public = self(" secret") / "public.json"
        self.run("peos", "keys", self(" parties"), "--study", self(".json"), "--public", public, "--bits", 512)

    def found(self) -> dict[str, bytes]:
        """What was written, by the ending; without keys, databases and what names the file."""
        found = {
            path.name.removeprefix(self.name): path.read_bytes() for path in self.folder.iterdir() if path.is_file()
        }
        return {name: data for name, data in found.items() if name not in (".key", ".backup", ".svg", ".c.csv")}


def walked(folder: Path, name: str) -> Walk:
    walk = Walk(folder, name)
    files = walk.files_of_values()
    walk.histogram(files)
    walk.tables(files)
    walk.collector()
    walk.ledger()
    walk.parties()
    return walk


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    return walked(tmp_path_factory.mktemp("plain") / "folder", "plain")


@pytest.mark.parametrize("name", everyday(NAMES, 0, 1, 2))
def test_every_command_takes_files_and_folders_of_this_name(name: str, plain: Walk, tmp_path: Path) -> None:
    assert walked(tmp_path / name, name).found() == plain.found()


@pytest.mark.parametrize("name", everyday(("file:", "-a", "s3:", "http:", "~", "a=1"), 0))
def test_every_command_takes_relative_paths_of_this_name(
    name: str, plain: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SQLite and pyarrow take "file:/x" for an address: /x would be written to
    monkeypatch.chdir(tmp_path)
    assert walked(Path(name), name).found() == plain.found()
    assert [path.name for path in tmp_path.iterdir()] == [name]


ELSEWHERE = {
    ("answer", "--ledger"): "test_a_ledger_has_any_name",
    ("plan", "--universe"): "read by the function that reads --labels-file",
    ("peos plan", "--labels-file"): "read by the function that reads --labels-file",
    ("peos plan", "--out"): "written by the function that writes those of `veil plan`",
    ("reproduce", "--out"): "the papers' figures",
    ("reproduce", "--data"): "the papers' figures",
}
RUNNING = ("shuffler", "peos submit", "peos server", "peos status", "peos spot-checks")
"""Commands of processes that run for long: their files are those of their settings."""


def leaves(words: tuple[str, ...] = ()) -> Iterator[tuple[str, list[str]]]:
    """Each command, and its parameters that are paths, as its help says."""
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).output
    _, marked, commands = shown.partition("─ Commands ─")
    if marked:
        for name in re.findall(r"(?m)^│ ([a-z-]+) ", commands):
            yield from leaves((*words, name))
        return
    yield " ".join(words), re.findall(r"(?mi)^│ \*?\s+(\S+)(?:\s+-\w)?\s+<(?:path|list\[path\])>", shown)


def test_every_parameter_that_is_a_path_is_tried(plain: Walk) -> None:
    missing, count = [], 0
    for command, parameters in leaves():
        calls = [call for call in plain.calls if " ".join(call).startswith(f"{command} ")]
        for parameter in parameters:
            count += 1
            short = {"--out": "-o"}.get(parameter, parameter)
            tried = any(short in call or parameter in call or not parameter.startswith("-") for call in calls)
            general = parameter in ("--settings", "--plot", "--folder")  # the same options of many commands
            if not (tried or general or (command, parameter) in ELSEWHERE or command in RUNNING):
                missing.append((command, parameter))
    assert not missing
    assert count > 45


@pytest.mark.parametrize("name", [*NAMES, *ODD_NAMES])
def test_a_ledger_has_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (Path(name), tmp_path / "b" / name / name):
        Ledger(path, lifetime=2.0).spend("a-task", GRR(0.5, 4).guarantee)
        assert str(Ledger(path, lifetime=2.0).left) == "1.5"
        assert path.is_file()


def test_arguments_are_not_expanded_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict[str, object]()
    monkeypatch.setattr("veil.cli.main.app", lambda **options: given.update(options))
    monkeypatch.setattr("signal.signal", lambda *of: None)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.StringIO())
    run()
    assert given == {"prog_name": "veil", "windows_expand_args": False}


def test_a_list_of_files_may_hold_names_with_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b,c.json", " d.json", "a.json,b"):
        Path(name).write_text("")
    assert listed_paths("a.json,b,c.json") == [Path("a.json"), Path("b,c.json")]
    assert listed_paths(" a.json , d.json") == [Path("a.json"), Path(" d.json")]
    assert listed_paths("a.json,x.json,b,c.json") == [Path("a.json"), Path("x.json"), Path("b,c.json")]
    assert listed_paths(f"{'x' * 300},a.json") == [Path("x" * 300), Path("a.json")]


@pytest.mark.parametrize("name", [*NAMES, *ODD_NAMES])
def test_commands_to_copy_mean_these_files_in_a_shell(name: str) -> None:
    code = "import sys; print(ascii(sys.argv[1:]))"
    line = shell_command(sys.executable, "-c", code, Path(name), Path("/folder") / name)
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    own = f"./{name}" if name.startswith("-") else name
    assert done.stdout.strip() == ascii([own, f"/folder/{name}"])
