"""The commands of `veil`, put together: each is a function in a module beside this one.

Everything heavy is imported inside a command, so that `veil --help` answers at once.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from veil import __version__
from veil.cli.admin import audit_app, check_installed, key_app, register, token_app
from veil.cli.device import answer, ledger_app
from veil.cli.inspect import inspect
from veil.cli.options import experiments, methods
from veil.cli.output import EXIT_CODES, AsJson, Document, console, flag, plain_table, progress, reporting
from veil.cli.parties import shuffler
from veil.cli.peos import peos_app
from veil.cli.plan import plan
from veil.cli.reports import difference, estimate, merge, next_round, randomize, synthesize, tally
from veil.cli.simulate import StudyBeforeValues, compare, simulate
from veil.cli.sql import sql
from veil.cli.surveys import serve, survey_app, warm
from veil.tools.messages import escape_text
from veil_papers import EXPERIMENTS

_EPILOG = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + "."


class _Root(TyperGroup):
    """The root command. Usage errors quote arguments, which may be file names that somebody else chose."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _escaped_usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, *args: Any) -> Any:
        with _escaped_usage():
            return super().invoke(*args)


@contextlib.contextmanager
def _escaped_usage() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        if hasattr(problem, "format_message"):  # an error of usage, of click or of the copy in typer
            problem.message = escape_text(problem.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="veil",
    cls=_Root,
    help="Collect statistics under local differential privacy: each device randomizes its answer before sending it.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a traceback with local variables would show people's values
)


def run() -> None:
    """The entry point of the `veil` command."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `veil ... | head` ends quietly, as other tools do
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a label that the terminal cannot write is no reason to fail
    app(prog_name="veil", windows_expand_args=False)  # a name with * or % is this name, and a query is no pattern


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, flag("--version", "Print the version and exit.")] = False) -> None:
    """Collect statistics under local differential privacy: each device randomizes its answer before sending it."""
    if version:
        typer.echo(f"veil {__version__}")
        raise typer.Exit


@reporting
def post(
    name: Annotated[str | None, typer.Argument(help="One method to read about.", autocompletion=methods)] = None,
    as_json: AsJson = False,
) -> Document:
    """List the post-processing methods: what each enforces, when to use it, and its bias."""
    from veil.post import METHODS, method

    chosen = [method(name)] if name is not None else list(METHODS.values())
    facts = ("name", "enforces", "good_for", "bias")
    rows = [{fact: getattr(entry, fact) for fact in facts} for entry in chosen]
    console(as_json).print(
        plain_table(("method", "enforces", "good for", "bias"), [list(row.values()) for row in rows])
    )
    return {"methods": rows}


@reporting
def demo(
    offline: Annotated[
        bool, flag("--offline", "Use files instead of HTTP: randomize, tally, merge, estimate, and draw a picture.")
    ] = False,
    people: Annotated[
        int | None, typer.Option(min=100, help="Number of simulated people; default: 20000, or 200000 with --offline.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="With --offline: the folder for the files; default: demo.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="With --offline: a seed for the reports (the simulated people are always the same)."),
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Run a demonstration: a collector, simulated devices that report over HTTP, and the estimates."""
    if offline:
        from veil.cli.demo import walk

        return walk(folder or Path("demo"), people or 200_000, seed, console(as_json), progress)
    if folder is not None or seed is not None:
        raise typer.BadParameter("--folder and --seed go with --offline")
    check_installed()
    from veil.cli.demo import walk_online

    return walk_online(people or 20_000, console(as_json), progress)


@reporting
def reproduce(
    experiment: Annotated[
        str | None,
        typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}. Without a name: list them.", autocompletion=experiments),
    ] = None,
    quick: Annotated[
        bool, flag("--quick", "Fewer runs and points: at most a minute; verdicts are indicative.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write. Default: docs/reproduction/NAME, or reproduction/NAME."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder with the real data; default: VEIL_DATA, or else synthetic data."),
    ] = None,
    as_json: AsJson = False,
) -> Document:
    """Reproduce a paper's experiment: its tables and figures, and a verdict on each claim."""
    from veil.cli.reproduce import list_experiments, reproduce_experiment

    if experiment is None:
        return list_experiments(console(as_json))
    return reproduce_experiment(experiment, quick, out, data, console(as_json), progress)


app.command()(plan)
app.command()(randomize)
app.command()(tally)
app.command()(merge)
app.command()(estimate)
app.command()(difference)
app.command()(sql)
app.command()(synthesize)
app.command("next")(next_round)
app.command(cls=StudyBeforeValues)(simulate)
app.command()(compare)
app.command()(inspect)
app.command()(post)
app.command()(demo)
app.command()(reproduce)
app.command()(answer)
app.add_typer(ledger_app, name="ledger")
app.command()(serve)
app.command()(warm)
app.command()(shuffler)
app.add_typer(survey_app, name="survey")
app.add_typer(token_app, name="token")
app.add_typer(key_app, name="key")
register(app)
app.add_typer(audit_app, name="audit")
app.add_typer(peos_app, name="peos")
