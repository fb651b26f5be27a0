"""Writes what the commands of docs/sql.md print into that page: `python docs/generate_sql.py`. It takes ten seconds.

The part "Five minutes" is followed as a reader would: `people.py` is run, then every command, and the block behind a
command that prints something is what it printed. A test keeps the two in step.
"""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import shlex
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from typer.testing import CliRunner

from veil.cli.main import app

PAGE = Path(__file__).parent / "sql.md"
_FIRST, _LAST = "## Five minutes", "In Python:"
_WIDTH = "122"
_LEFT_OUT = re.compile(r"^\d[\d,]* reports, each guarantees|^query$|^query  |^groups read  |^  \S")


def page(text: str, then: Callable[[], None] = lambda: None) -> str:
    """The page with what its commands print now; `then` is called in the folder that they leave behind."""
    start, stop = text.index(_FIRST), text.index(_LAST)
    with _somewhere_else():
        made = text[:start] + "\n\n".join(_followed(text[start:stop].split("\n\n"))) + text[stop:]
        then()
        return made


def _followed(blocks: list[str]) -> Iterator[str]:
    """The same blocks, with what commands print in place of what is printed there."""
    printed = ""
    for block in _joined(blocks):
        body = textwrap.dedent(block)
        if block.startswith("    # people.py"):
            Path("people.py").write_text(body, encoding="utf-8")
            runpy.run_path("people.py")
        elif block.startswith("    veil "):
            printed = _run(body)
        elif block.startswith("    ") and printed:
            yield textwrap.indent(printed, "    ")
            continue
        else:
            printed = ""
        yield block


def _joined(blocks: list[str]) -> Iterator[str]:
    """Indented blocks behind each other as one, but for commands: programs and tables have empty lines."""
    waiting = ""
    for block in blocks:
        goes_on = waiting.startswith("    ") and not waiting.startswith("    veil ")
        if goes_on and block.startswith("    ") and not block.startswith("    veil "):
            waiting = f"{waiting}\n\n{block}"
            continue
        if waiting:
            yield waiting
        waiting = block
    yield waiting


def _run(command: str) -> str:
    """What a command prints, without what the page says already."""
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    if done.exit_code:
        raise RuntimeError(f"{command}\n{done.output}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    if command.startswith("veil plan"):
        lines = lines[: next(i for i, line in enumerate(lines) if line.strip().startswith("column "))]
    kept = "\n".join(line for line in lines if not _LEFT_OUT.match(line))
    return re.sub(r"\n{3,}", "\n\n", kept).strip("\n")


@contextlib.contextmanager
def _somewhere_else() -> Iterator[None]:
    """A folder for the files that are made, in a terminal of a known width."""
    here, width = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["COLUMNS"] = _WIDTH
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.pop("COLUMNS")
            if width is not None:
                os.environ["COLUMNS"] = width


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
