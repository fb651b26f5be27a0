"""What the commands of the guard do, and how it is recorded: `python -m tests.support.record_commands`.

Two kinds of snapshots lie in `tests/fixtures/house/`. `commands.jsonl` holds numbers, the structure of documents and
tables, exit codes and digests of files, `commands_options.json` the spelling of the command line: both are exact.
`commands_texts.json` and `commands_help.json` hold the words, which may be recorded again when they are improved. With
`--texts` only the words are written.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import math
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pyarrow.parquet as pq
import typer.main
from tests.service.harness import Collector
from tests.support.commands import CliRunner
from tests.support.house_commands import STEPS, Step, write_files

from veil import __version__
from veil.cli.main import app

_HOUSE = Path(__file__).resolve().parents[1] / "fixtures" / "house"
EXACT, TEXTS = _HOUSE / "commands.jsonl", _HOUSE / "commands_texts.json"
OPTIONS, HELP = _HOUSE / "commands_options.json", _HOUSE / "commands_help.json"

Record = dict[str, Any]
_RULE = re.compile(r"[\s─━╶╴]*[─━][\s─━╶╴]*")
_MAX_ROWS_SIZE = 10_000
_NO_TEXTS = ("lineage", "query")
_PICTURES = (".svg", ".png", ".pdf")
_PASSING = (".sqlite3", "-wal", "-shm", ".lock", "/log")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z?)?")
_SECRET = re.compile(r"[0-9A-Za-z+/_-]{40,}=*|\b[0-9a-f]{16,}\b")


def run_steps(folder: Path) -> Iterator[tuple[str, Record, Record]]:
    """Run all steps in an empty folder. Yields each step's name, its exact record, and its texts."""
    write_files(folder)
    with contextlib.chdir(folder), contextlib.ExitStack() as stack:
        world = _World(folder, stack)
        for step in STEPS:
            yield step.name, *world.run(step)


class _World:
    """The folder of the steps, and the collector that some of them need."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._collector = Collector(folder / "collector")
        self._known: dict[str, str] = {str(folder): "FOLDER", __version__: "VERSION"}
        self._tasks: set[str] = set()
        self._seen = self._files()

    def run(self, step: Step) -> tuple[Record, Record]:
        """Run a step; return its exact record and its texts."""
        words = shlex.split(self._filled(step.words))
        exact: Record = {"command": f"veil {step.words}"}
        texts: Record = {}
        if step.runs != "json":
            done = self._invoke(step, words)
            exact |= {"code": done.exit_code, "tables": _tables(self._masked(step, done.stdout))}
            output = self._masked(step, done.stdout)
            lines = [_words(output)] if "╭" in output else output.splitlines()  # typer's own boxes
            texts |= {"stdout": lines, "stderr": _words(self._masked(step, done.stderr))}
        if step.runs != "plain":
            done = self._invoke(step, [*words, "--json"])
            assert exact.setdefault("code", done.exit_code) == done.exit_code, (step.name, done.output)
            if done.stdout.strip():
                document = self._masked_document(step, json.loads(done.stdout))
                exact["json"], texts["json"] = _parted(document)
            texts.setdefault("stderr", _words(self._masked(step, done.stderr)))
        files, columns = self._written(step)
        return exact | {"files": files}, texts | ({"columns": columns} if columns else {})

    def _invoke(self, step: Step, words: list[str]) -> Any:
        environment = {"COLUMNS": "100", "NO_COLOR": "1", "VEIL_TRACEBACK": None, **dict(step.environment)}
        done = CliRunner().invoke(app, words, input=step.given, env=environment)
        assert done.exit_code != 1 or not done.exc_info, (step.name, done.output, done.exc_info)
        return done

    def _filled(self, words: str) -> str:
        """The words of a step with the collector's address and key, which are known once it runs."""
        if "{url}" in words and self._collector.process is None:
            self._collector.start()
            self._stack.callback(self._collector.kill)
            self._known[self._collector.url] = "URL"
        if "{key}" in words:
            words = words.replace("{key}", self._key)
        return words.replace("{url}", self._collector.url)

    @property
    def _key(self) -> str:
        done = CliRunner().invoke(app, ["key", "show", "--folder", "collector", "--json"])
        return str(json.loads(done.stdout)["key"])

    def _masked(self, step: Step, text: str) -> str:
        """A text without what differs from run to run."""
        text = re.sub(r"part-\d+-", "part-TIME-", text)
        for found, name in self._known.items():
            text = text.replace(found, name)
        if step.drawn:
            text = _TIME.sub("TIME", text)
            text = _SECRET.sub(lambda match: match[0] if match[0] in self._tasks else "SECRET", text)
        return text

    def _masked_document(self, step: Step, part: Any) -> Any:
        if isinstance(part, dict):
            if isinstance(part.get("task"), str):
                self._tasks.add(part["task"])  # no secret
            return {key: self._masked_document(step, value) for key, value in part.items()}
        if isinstance(part, list):
            return [self._masked_document(step, value) for value in part]
        return self._masked(step, part) if isinstance(part, str) else part

    def _files(self) -> dict[str, tuple[int, int]]:
        """The files of the folder with their times and sizes."""
        found = (path for path in self._folder.rglob("*") if path.is_file())
        names = {path.relative_to(self._folder).as_posix(): path.stat() for path in found}
        return {
            name: (state.st_mtime_ns, state.st_size)
            for name, state in sorted(names.items())
            if not name.endswith(_PASSING)
        }

    def _written(self, step: Step) -> tuple[Record, Record]:
        """What is known of every file that the step wrote, and the words in them."""
        now = self._files()
        changed = [name for name, state in now.items() if self._seen.get(name) != state]
        self._seen = now
        exact, texts = Record(), Record()
        for path in (self._folder / name for name in changed):
            name = self._masked(step, path.relative_to(self._folder).as_posix())
            if step.drawn or name.endswith(_PICTURES):
                exact[name] = "written"
            elif name.endswith(".parquet"):
                exact[name], texts[name] = _parquet(path)
            elif name.endswith(".result.json"):
                exact[name], texts[name] = _parted(json.loads(path.read_bytes()))
            elif name.endswith(".csv"):
                texts[name], exact[name] = _csv(path)
            else:
                exact[name] = _digest(path.read_bytes())
        return exact, texts


def _digest(content: bytes) -> str:
    return f"{len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}"


def _csv(path: Path) -> tuple[list[str], Any]:
    """The header of a CSV file, and its rows: with numbers where there are few, else their digest."""
    head, _, rows = path.read_text(encoding="utf-8").partition("\n")
    if len(rows) > _MAX_ROWS_SIZE:
        return head.split(","), _digest(rows.encode())
    return head.split(","), [[_number(cell) for cell in row] for row in csv.reader(rows.splitlines())]


def _number(cell: str) -> float | str:
    return float(cell) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell) else cell


def _parquet(path: Path) -> tuple[Record, list[str]]:
    """The rows of a Parquet file, whose bytes depend on the version of the library; and its columns."""
    table = pq.read_table(path).combine_chunks()
    columns = [column.to_pylist() for column in table.columns]
    text = json.dumps(columns, default=lambda value: value.hex()).encode()
    content = _digest(text) if len(text) > _MAX_ROWS_SIZE else json.loads(text)
    marks = {
        key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items() if key[:5] == b"veil."
    }
    types = [str(field.type) for field in table.schema]
    return {"rows": table.num_rows, "types": types, "marks": marks, "content": content}, table.column_names


def _parted(document: Any, path: str = "$", *, exact: bool = False) -> tuple[Any, Record]:
    """A document without its texts (strings with spaces), and the texts by their paths."""
    if isinstance(document, dict):
        parts = {key: _parted(part, f"{path}.{key}", exact=key in _NO_TEXTS) for key, part in document.items()}
        return {key: part for key, (part, _) in parts.items()}, _all_texts(parts.values())
    if isinstance(document, list):
        if document and not exact and all(isinstance(part, str) and " " in part for part in document):
            return ["TEXTS"], {path: document}  # remarks: as many as there are
        listed = [_parted(part, f"{path}[{i}]", exact=exact) for i, part in enumerate(document)]
        return [part for part, _ in listed], _all_texts(listed)
    if isinstance(document, str) and " " in document and not exact:
        return "TEXT", {path: document}
    return document, {}


def _all_texts(parts: Iterable[tuple[Any, Record]]) -> Record:
    return {path: text for _, texts in parts for path, text in texts.items()}


def _tables(text: str) -> list[list[str]]:
    """The tables of an output: below each rule, the rows with their cells; a cell without a digit is only counted."""
    tables: list[list[str]] = []
    rows: list[str] | None = None
    for line in text.splitlines():
        if _RULE.fullmatch(line):
            tables.append(rows := [])
        elif not line.strip():
            rows = None
        elif rows is not None:
            cells = re.split(r"\s{2,}", line.strip())
            rows.append(" | ".join(cell if re.search(r"\d", cell) else "_" for cell in cells))
    return tables


def _words(text: str) -> str:
    """A text as one line, without the boxes that typer draws around messages."""
    return " ".join(re.sub(r"[╭╮╰╯│─]", " ", text).split())


def differences(now: Any, recorded: Any, path: str = "$") -> Iterator[str]:
    """The paths where a record differs from what was recorded. Floats agree to 1e-9: machines add up differently."""
    if isinstance(now, dict) and isinstance(recorded, dict) and list(now) == list(recorded):
        for key, part in now.items():
            yield from differences(part, recorded[key], f"{path}.{key}")
    elif isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        for i, (part, other) in enumerate(zip(now, recorded, strict=True)):
            yield from differences(part, other, f"{path}[{i}]")
    elif type(now) is not type(recorded) or not _agree(now, recorded):
        yield f"{path}: expected {recorded!r}, got {now!r}"


def _agree(now: Any, recorded: Any) -> bool:
    close = isinstance(now, float) and math.isclose(now, recorded, rel_tol=1e-9, abs_tol=1e-12)
    return close or bool(now == recorded)


# -- the spelling and the help of all commands -------------------------------------------------------------------------


def command_options() -> Record:
    """Return every command with its arguments and options: names, short forms, choices, defaults."""
    return {name: [_spelling(parameter) for parameter in command.params] for name, command in _commands()}


def command_help() -> Record:
    """Return the help of every command and option."""
    return {
        name: {"help": command.help or "", "parameters": dict(map(_help_of, command.params))}
        for name, command in _commands()
    }


def _commands() -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [("veil", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop(0)
        yield name, command
        inner = getattr(command, "commands", {})
        waiting = [(f"{name} {sub}", one) for sub, one in inner.items()] + waiting


def _spelling(parameter: Any) -> Record:
    spelled: Record = {parameter.param_type_name: ""}  # the name of an argument stands only in the help
    if parameter.param_type_name == "option":
        spelled = {"option": " ".join([*parameter.opts, *parameter.secondary_opts])}
    facts = {
        "required": parameter.required,
        "default": None if callable(parameter.default) else parameter.default,
        "type": _type_of(parameter.type_descriptor.annotation),
        "min": getattr(parameter, "min", None),
        "max": getattr(parameter, "max", None),
        "nargs": None if parameter.nargs == 1 else parameter.nargs,
        "several": getattr(parameter, "multiple", False),
        "flag": getattr(parameter, "is_flag", False),
        "hidden": getattr(parameter, "hidden", False),
        "envvar": parameter.envvar,
    }
    return spelled | {name: fact for name, fact in facts.items() if fact is not None and fact is not False}


def _type_of(kind: Any) -> str:
    """The type of a value as a user sees it; paths are text."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return ", ".join(map(_type_of, get_args(kind)))
    return kind.__name__ if kind in (int, float, bool) else "text"


def _help_of(parameter: Any) -> tuple[str, str]:
    name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name.upper()
    return name, parameter.help or ""


# -- recording ---------------------------------------------------------------------------------------------------------


def main() -> None:
    """Write the snapshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", action="store_true", help="write only the texts and the help")
    only_texts = parser.parse_args().texts
    _HOUSE.mkdir(parents=True, exist_ok=True)
    os.environ.update({"OPENBLAS_NUM_THREADS": "1"})
    with tempfile.TemporaryDirectory(prefix="veil-commands-") as folder:
        records = list(run_steps(Path(folder).resolve()))
    if not only_texts:
        lines = [json.dumps({"name": name, **exact}) + "\n" for name, exact, _ in records]
        EXACT.write_text("".join(lines), encoding="utf-8")
        _write(OPTIONS, command_options())
    _write(TEXTS, {name: texts for name, _, texts in records})
    _write(HELP, command_help())


def _write(path: Path, document: Record) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
