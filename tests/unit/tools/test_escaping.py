"""Text from outside is escaped wherever it is printed: in terminals, in logs, in HTML, and in CSV for spreadsheets."""

from __future__ import annotations

import ast
import io
import json
import logging
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from rich.text import Text
from tests.support.commands import CliRunner

from veil import GRR, simulate
from veil.cli import output as outcome
from veil.cli.main import app
from veil.cli.output import Screen, plain_table, progress, show_facts
from veil.cli.parties import _log_lines
from veil.collector.monitoring.logs import log, set_up
from veil.errors import ServiceError
from veil.results.render.files import arrow_bytes, table_bytes
from veil.results.render.layout import to_html
from veil.results.render.terminal import render
from veil.tools.messages import escape_lines, escape_text

SOURCES = Path(__file__).resolve().parents[3] / "src" / "veil"
HOSTILE = "a\x1b[2Jb\x07\r\nERROR forged\x9b31m\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe\N{LINE SEPARATOR}\x7f[bold]x[/bold][/]"
RED = "\x1b[31m"
PARSE = pacsv.ParseOptions(newlines_in_values=True)


def dangerous(text: str, *, lines: bool = True) -> set[str]:
    """The characters of `text` that could steer a terminal or forge a line."""
    allowed = {"\n"} if lines else set()
    bad = {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}}
    return bad - allowed


def test_every_character_that_could_steer_a_terminal_is_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        escaped = escape_text(chr(code))
        if code not in (0x200C, 0x200D):  # joiners: parts of words and of emoji
            assert not dangerous(escaped, lines=False), hex(code)
        if chr(code).isprintable():
            assert escaped == chr(code)
    assert escape_text("a\x1bb") != escape_text("a\N{MIDDLE DOT}b"), "two labels must not look the same"


def test_lines_stay_and_each_is_escaped() -> None:
    assert escape_lines("a\x1b\nb\r") == "a\\x1b\nb\\r"


def printed(show: Any) -> str:
    screen, sink = Screen(), io.StringIO()
    screen.file = sink
    show(screen)
    return sink.getvalue()


@pytest.mark.parametrize(
    "show",
    [
        lambda screen: screen.print(HOSTILE),
        lambda screen: screen.print_line(HOSTILE),
        lambda screen: screen.print(plain_table((HOSTILE, "b"), [(HOSTILE, HOSTILE)])),
        lambda screen: show_facts(screen, {HOSTILE: HOSTILE, "many": [{HOSTILE: [HOSTILE]}]}),
    ],
    ids=["print", "line", "table", "facts"],
)
def test_the_screen_escapes_text(show: Any) -> None:
    text = printed(show)
    assert "gpj" in text
    assert not dangerous(text)


def test_a_line_is_one_line() -> None:
    assert len(printed(lambda screen: screen.print_line(HOSTILE)).splitlines()) == 1


def test_the_screen_keeps_its_own_styles_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = printed(lambda screen: screen.print(Text(f"x{RED}", style="bold")))
    assert "\x1b[1m" in text
    assert RED not in text
    assert "\\x1b[31m" in text


def hostile_result() -> Any:
    oracle = GRR(epsilon=3.0, domain=[HOSTILE, "=1+1", "plain"])
    return simulate(oracle, [HOSTILE] * 500 + ["=1+1"] * 300 + ["plain"] * 200, seed=1)


def test_results_show_hostile_labels_escaped_in_terminal_and_notebook() -> None:
    result = hostile_result()
    assert not dangerous(printed(lambda screen: screen.print(render(result, title=HOSTILE))))
    page = to_html(result)
    assert not dangerous(page)
    assert "<b>" not in page
    assert "gpj" in page


def test_files_for_programs_keep_labels_exactly() -> None:
    table = pa.ipc.open_file(table_bytes(hostile_result(), "arrow")).read_all()
    assert HOSTILE in table["value"].to_pylist()
    assert b'"=1+1"' in table_bytes(hostile_result(), "csv")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_for_spreadsheets_has_no_formulas_and_numbers_stay(start: str) -> None:
    formula = f'{start}HYPERLINK("http://x")'
    dictionary = pa.array([formula, "tea"]).dictionary_encode()
    table = pa.table({formula: [formula, "tea"], "coded": dictionary, "estimate": [-1.5, 2.0], "n": [-3, 4]})
    guarded = pacsv.read_csv(io.BytesIO(arrow_bytes(table, "csv", guard_formulas=True)), parse_options=PARSE)
    assert guarded.column_names == [f"'{formula}", "coded", "estimate", "n"]
    assert guarded.column(0).to_pylist() == guarded["coded"].to_pylist() == [f"'{formula}", "tea"]
    assert guarded["estimate"].to_pylist() == [-1.5, 2.0]
    assert guarded["n"].to_pylist() == [-3, 4]
    exact = pacsv.read_csv(io.BytesIO(arrow_bytes(table, "csv")), parse_options=PARSE)
    assert exact.column(0).to_pylist() == [formula, "tea"]


NAMES = [HOSTILE.replace("/", "|"), f"{RED}reports.arrow", "line\nbreak.json", "\N{RIGHT-TO-LEFT OVERRIDE}nosj.json"]
COMMANDS = [
    ("tally", "{}", "x.arrow", "-o", "t.bin"),
    ("tally", "study.json", "{}", "-o", "t.bin"),
    ("inspect", "{}"),
    ("estimate", "{}", "x"),
    ("merge", "{}", "x", "-o", "t"),
    ("randomize", "{}", "x.csv", "-o", "r.arrow"),
    ("sql", "{}", "SELECT COUNT(*) FROM people"),
    ("simulate", "{}", "--epsilon", "1"),
    ("shuffler", "--config", "{}"),
    ("{}",),
    ("tally", "--{}"),
    ("plan", "histogram", "--domain", "{}", "--epsilon", "1"),
    ("plan", "{}", "--epsilon", "1"),
    ("post", "{}"),
    ("reproduce", "{}"),
]


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "damaged"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c))
def test_no_command_prints_a_hostile_argument_raw(
    command: tuple[str, ...], exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        if exists:
            Path(name).write_bytes(b"{}")
        result = CliRunner().invoke(app, [part.format(name) for part in command])
        assert result.exit_code not in (0, 1), (result.output, result.exception)
        assert not dangerous(result.output), result.output
        if result.exit_code != 2:  # errors of usage stand in a box
            lines = [line for line in result.stderr.splitlines() if not line.startswith("WARNING: ")]
            assert len(lines) == 1, result.stderr


def test_a_refusal_of_a_collector_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    @outcome.reporting
    def answer(as_json: bool = False) -> outcome.Document:
        raise ServiceError(422, "malformed", f"no{HOSTILE}")

    import typer

    with pytest.raises(typer.Exit):
        answer()
    shown = capsys.readouterr().err
    assert "forged" in shown
    assert not dangerous(shown)
    assert len(shown.splitlines()) == 1
    outcome.warn(HOSTILE)
    assert not dangerous(capsys.readouterr().err)


def test_progress_reads_no_markup() -> None:
    with progress(HOSTILE, 10) as advance:  # raised MarkupError
        advance(1)


def test_lines_of_a_party_cannot_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("veil.parties")
    before, logger.handlers = logger.handlers, []
    try:
        _log_lines()
        logger.info("%s: refused", HOSTILE)
        shown = capsys.readouterr().err
    finally:
        logger.handlers = before
    assert len(shown.splitlines()) == 1
    assert not dangerous(shown)


def test_lines_of_the_collector_are_ascii(capfd: pytest.CaptureFixture[str]) -> None:
    loggers = [logging.getLogger(name) for name in ("veil.collector", "uvicorn", "uvicorn.error")]
    before = [(logger, list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    try:
        set_up("info")
        log("warning", "name", name=HOSTILE)
        shown = capfd.readouterr().err
    finally:
        for logger, handlers, level, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
    assert shown.isascii()
    assert json.loads(shown)["name"] == HOSTILE


# Modules that write to a terminal or a log by themselves; everything else goes through `veil.cli.output`.
WRITERS = {
    "cli/output.py": {"Console", "echo", "secho", "write"},  # what was escaped, and JSON
    "cli/main.py": {"echo"},  # the version
    "cli/sql.py": {"echo"},  # CSV, escaped for a terminal
    "cli/crowd.py": {"print"},  # numbers
    "cli/parties.py": {"StreamHandler"},  # with a formatter that escapes
}


def test_nothing_else_prints() -> None:
    """A new place that prints must escape, and then be named in WRITERS."""
    printing = {"print", "echo", "secho", "Console", "StreamHandler", "print_exc"}
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            on = called.value if isinstance(called, ast.Attribute) else None
            if name == "print" and on is not None:
                continue  # a method of `Screen`
            if name == "write" and not (isinstance(on, ast.Attribute) and on.attr in ("stdout", "stderr")):
                continue
            if name in printing | {"write"} and (place, name) != ("cli/output.py", "print_exc"):
                assert name in WRITERS.get(place, ()), f"{place}:{node.lineno} prints by {name}"
