"""`veil sql`: queries over a table of reports, from the command line, from standard input, or in a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veil.cli.options import Level, Picture, TableOut
from veil.cli.outcome import AsJson, Document, console, reporting, warn

if TYPE_CHECKING:
    from veil.cli.showing import Wanted
    from veil.results.base import Result
    from veil.sql.database import Database

__all__ = ["sql"]


@reporting
def sql(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A table: its study and files of reports.")],
    query: Annotated[
        str | None,
        typer.Argument(
            help="What to ask, as in 'SELECT COUNT(*) FROM people'. Without it: a shell, or standard input."
        ),
    ] = None,
    form: Annotated[
        Literal["table", "csv", "json"], typer.Option("--format", help="How answers are printed.")
    ] = "table",
    level: Level = 0.95,
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Ask a table in SQL, and get answers with their errors; EXPLAIN SELECT ... shows the plan and predicted error."""
    from veil.cli.showing import Wanted
    from veil.errors import InputError
    from veil.sql.database import Database

    form = "json" if as_json else form
    wanted = Wanted(out, plot, level, 10, everything=True)
    wanted.check([folder])
    with Database(folder) as database:
        for ignored in database.ignored:
            warn(f"left out of the answers: {ignored}")
        if query is None and sys.stdin.isatty():
            if form != "table" or out is not None or plot is not None:
                raise InputError("--format, --out and --plot go with a query: a shell shows tables")
            from veil.cli.sql_shell import Shell

            Shell(database, console(False), level).run()
            return {}
        queries = _queries(sys.stdin.read() if query is None else query)
        if len(queries) > 1 and (out is not None or plot is not None):
            raise InputError("--out and --plot take one query")
        made = []
        for number, text in enumerate(queries):
            found = _asked(database, text, number, len(queries), form)
            made.append(_shown(found, wanted, form, first=not number))
    return made[0] if len(made) == 1 else {"answers": made}


def _queries(text: str) -> list[str]:
    """The queries of a text; the last one needs no semicolon."""
    from veil.errors import InputError
    from veil.sql.statements import split

    whole, rest = split(text)
    queries = [*whole, *([rest] if rest else [])]
    if not queries:
        raise InputError("there is no query: expected SELECT ...")
    return queries


def _asked(database: Database, text: str, number: int, many: int, form: str) -> Result:
    """The answer to one query; a mistake in it is pointed at."""
    from veil.errors import SqlError
    from veil.sql.statements import pointed

    try:
        return database.result(text)
    except SqlError as problem:
        if form != "json":
            if many > 1:
                typer.echo(f"query {number + 1} of {many}:", err=True)
            typer.echo(pointed(text, problem), err=True)
        raise


def _shown(found: Result, wanted: Wanted, form: str, *, first: bool) -> Document:
    """Print one answer, and write its files; returns its document with all rows."""
    from veil.results.documents import document
    from veil.results.files import table_bytes

    screen = console(form != "table")
    if not first:
        screen.print()
    made = wanted.present(found, screen)
    if form == "csv":
        typer.echo(("" if first else "\n") + table_bytes(found, "csv", wanted.level).decode(), nl=False)
    return {**document(found, wanted.level), "out": made["out"], "plot": made["plot"]}
