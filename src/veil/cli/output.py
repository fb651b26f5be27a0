"""Output of commands: the console, progress bars, tables, exit codes and the document of `--json`.

Text from outside is escaped, so that no label, file name or answer can control the terminal. No message shows a private
value. Progress bars go to standard error, and are silent without a terminal. Nothing here imports numpy: `veil --help`
must start quickly.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, ParamSpec

import typer
from rich import box
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from veil.errors import (
    BudgetError,
    CollectorError,
    EngineError,
    InputError,
    LedgerError,
    MismatchError,
    PartyError,
    ServiceError,
    StoreError,
    VeilError,
    WireError,
)
from veil.tools.messages import escape_lines, escape_text

EXIT_CODES = {
    0: "done",
    1: "internal error: a bug in veil",
    2: "usage: an unknown, missing or invalid option or argument",
    3: "invalid input: for example a value outside the domain, a missing file or a read-only folder",
    4: "mismatch: reports, a tally or a run from another study",
    5: "damaged data: an incomplete or foreign study, report file or tally, or damage that veil check found",
    6: "budget: the ledger refuses to pay for an answer",
    7: "service: the collector refuses, it or its database cannot be reached, or a party of a shuffle failed",
    8: "engine: missing or failed, for example no GPU, no Java or a lost cluster; nothing was counted",
}
_CODE_OF: tuple[tuple[type[VeilError], int], ...] = (
    (InputError, 3),
    (MismatchError, 4),
    (WireError, 5),
    (BudgetError, 6),
    (LedgerError, 6),
    (CollectorError, 7),
    (PartyError, 7),
    (ServiceError, 7),
    (StoreError, 7),
    (EngineError, 8),
)
_TRACEBACK = "VEIL_TRACEBACK"
SEEDED = (
    "The noise of these reports was drawn from a seed, for an experiment: whoever knows the seed can undo the privacy"
    " of every report."
)
"""The remark on reports, tallies and results that come from a seed."""
_MOST_NESTED = 12


def flag(name: str, text: str) -> Any:
    """An option that is there or not, and takes no value."""
    return typer.Option(name, help=text, metavar="")  # else the help shows a type beside it


AsJson = Annotated[bool, flag("--json", "Print one JSON document on standard output, and nothing else.")]
Document = dict[str, Any]
Parameters = ParamSpec("Parameters")


class Screen(Console):
    """A rich console that escapes whatever could format a terminal, except its own styles."""

    def __init__(self, *, quiet: bool = False, stderr: bool = False) -> None:
        super().__init__(quiet=quiet, stderr=stderr, markup=False, highlight=False, emoji=False)
        self.push_render_hook(_EscapeHook())

    def print_line(self, text: str) -> None:
        """Print `text` as one line, however long: line breaks in it are escaped, too."""
        self.print(Text(escape_text(text)), soft_wrap=True)


class _EscapeHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(renderable) for renderable in renderables]


class _Escaped:
    """A renderable whose text is escaped after its layout; segments that move the cursor stay as they are."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments: Iterable[Segment] = console.render(self._renderable, options)
        for segment in segments:
            yield segment if segment.control else Segment(escape_lines(segment.text), segment.style)


@contextlib.contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar that counts people; without a total, one that only shows that something moves."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Screen(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    # transient: the numbers stand in the command's own output once it is done
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda people: bar.advance(task, people)


class Verdict(dict[str, Any]):
    """The document of a command that did its work and found something wrong: `code` is its exit code."""

    def __init__(self, facts: Document, code: int) -> None:
        super().__init__(facts)
        self.code = code


def reporting(command: Callable[Parameters, Document]) -> Callable[Parameters, None]:
    """A command that returns a document, as one that prints it with --json and turns mistakes into exit codes."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        as_json = bool(kwargs.get("as_json")) or kwargs.get("form") == "json"
        try:
            document = command(*args, **kwargs)
        except BrokenPipeError:
            raise  # whoever read our output has gone: typer ends quietly
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as problem:
            _fail(explained(problem), as_json)
        else:
            if as_json:
                sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
            if isinstance(document, Verdict):
                raise typer.Exit(document.code)

    # typer reads the parameters off the wrapped function; only what comes back differs
    return run


def console(as_json: bool) -> Screen:
    """Return the console on standard output, which is silent with --json."""
    return Screen(quiet=as_json)


def print_error(text: str) -> None:
    """Print lines on standard error, escaped."""
    typer.echo(escape_lines(text), err=True)


def warn(message: str) -> None:
    """A remark on standard error that nobody should overlook."""
    typer.secho(f"WARNING: {escape_text(message)}", err=True, fg=typer.colors.YELLOW, bold=True)


def warn_of_seed(seed: int | None) -> None:
    """Say what a seed costs, where one is given."""
    if seed is not None:
        warn("--seed is for tests only. Whoever knows the seed can undo the privacy of every report.")


def wrote(screen: Screen, path: Path, what: str) -> None:
    """Say which file holds what."""
    screen.print_line(f"wrote {what} to {path}")


def plural(count: int, word: str, several: str | None = None) -> str:
    """So many of something; `several` is the word's plural where that is not its s."""
    return f"{count:,} {word if count == 1 else several or f'{word}s'}"


def shell_command(*words: str | Path) -> str:
    """Return a command line to copy into a shell. Paths are quoted, and none of them reads as an option.

    >>> shell_command("veil", "inspect", Path("a b.json")), shell_command("veil", "inspect", Path("-a"))
    ("veil inspect 'a b.json'", 'veil inspect ./-a')
    """
    import shlex

    texts = (f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words)
    return shlex.join(texts)


def _code(problem: VeilError) -> int:
    return next((code for kind, code in _CODE_OF if isinstance(problem, kind)), 1)


class Mistake(NamedTuple):
    """What went wrong, for people and for programs; no private value is in it."""

    kind: str
    message: str
    code: int


def explained(problem: Exception) -> Mistake:
    """What to say about an error, and the exit code that goes with it."""
    if isinstance(problem, VeilError):
        return Mistake(type(problem).__name__, str(problem), _code(problem))
    if isinstance(problem, OSError):
        return Mistake("FileError", _about_file(problem), 3)
    if isinstance(problem, MemoryError):
        return Mistake("MemoryError", "there is not enough memory for this", 1)
    return Mistake(type(problem).__name__, _about_bug(problem), 1)


def _fail(mistake: Mistake, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"error": {"kind": mistake.kind, "message": mistake.message}}) + "\n")
    else:
        typer.secho("error: ", err=True, fg=typer.colors.RED, bold=True, nl=False)
        print_error(escape_text(mistake.message))
    raise typer.Exit(mistake.code)


def _about_file(problem: OSError) -> str:
    """What went wrong with which file. Only the system's own words: a library's message may quote a file's content."""
    name = problem.filename if isinstance(problem.filename, (str, os.PathLike)) else None
    reason = os.strerror(problem.errno).lower() if problem.errno else "it cannot be read or written"
    return f"{escape_text(os.fsdecode(name))}: {reason}" if name else f"a file failed: {reason}"


def _about_bug(problem: Exception) -> str:
    """Where it happened, not what it said: an unforeseen message may hold a private value."""
    if os.environ.get(_TRACEBACK):
        traceback.print_exc()
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"unexpected {type(problem).__name__}{where}: please report it. Its message may hold private values and is"
        f" withheld; {_TRACEBACK}=1 shows it"
    )


def show_facts(screen: Screen, facts: Mapping[str, Any]) -> None:
    """Facts in two columns; where no terminal is wrapping them, one line for each, however long."""
    if screen.is_terminal:
        screen.print(facts_table(facts))
        return
    width = max(map(len, facts), default=0)
    for name, line in _lines(facts):
        screen.print_line(f"{name:{width}} {' '.join(line.split())}".rstrip())


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Two columns: what, and the answer."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, line in _lines(facts):
        table.add_row(escape_text(name), Text(escape_text(line)))
    return table


def _lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, fact in facts.items():
        lines = fact if isinstance(fact, list) and fact and isinstance(fact[0], dict) else [fact]
        for line in lines:
            yield name, _plain(line)


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of text, its first column in bold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(Text(escape_text(heading)), no_wrap=not i, style="" if i else "bold")
    for row in rows:
        table.add_row(*(Text(escape_text(cell)) for cell in row))
    return table


def _plain(fact: Any) -> str:
    if fact is None:
        return "-"
    if isinstance(fact, dict):  # of what is described inside, its kind: a domain may have thousands of labels
        inner = {name: value.get("kind", "...") if isinstance(value, dict) else value for name, value in fact.items()}
        return ", ".join(f"{name} {_nested(value)}" for name, value in inner.items())
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)


def _nested(value: Any) -> str:
    """What stands inside a list of facts: the first of many."""
    if not isinstance(value, list):
        return str(value)
    more = [f"and {len(value) - _MOST_NESTED:,} more"] if len(value) > _MOST_NESTED else []
    return f"({', '.join([*map(_nested, value[:_MOST_NESTED]), *more])})"
