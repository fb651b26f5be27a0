"""`veil sql`: queries over a table of reports, from the command line, from standard input, or in a shell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from veil.cli.options import Engine, Level, Picture, TableOut, counting, given_changes
from veil.cli.output import SEEDED, AsJson, Document, console, print_error, progress, reporting, warn
from veil.errors import InputError, SqlError, VeilError
from veil.tools.messages import escape_lines

if TYPE_CHECKING:
    from veil.cli.options import CountingPlace
    from veil.cli.results import OutputOptions
    from veil.results.base import Result
    from veil.sql.database import Database
    from veil.sql.execution.rows import Rows
    from veil.sql.folder import TableFolder
    from veil.sql.table import Reading


@reporting
def sql(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="A table: its study and files of reports; for EXPLAIN, or a study."),
    ],
    query: Annotated[
        str | None,
        typer.Argument(
            help="What to ask, as in 'SELECT COUNT(*) FROM people'. Without it: a shell, or standard input."
        ),
    ] = None,
    form: Annotated[
        Literal["table", "csv", "json"], typer.Option("--format", help="How answers are printed.")
    ] = "table",
    users: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="With EXPLAIN: as if so many people reported. 1,000,000 where nobody has yet."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Read the reports in another way: reading=consistent."),
    ] = None,
    level: Level = 0.95,
    engine: Engine = "local",
    out: TableOut = None,
    plot: Picture = None,
    as_json: AsJson = False,
) -> Document:
    """Query a table in SQL. Every number comes with its error; EXPLAIN SELECT ... shows plan and predicted errors."""
    from veil.cli.results import OutputOptions
    from veil.sql.database import Database

    form = "json" if as_json else form
    wanted = OutputOptions(out, plot, level, 10, everything=True)
    wanted.check([folder])
    with counting(engine) as place, Database(folder, reading=_reading(changes), through=_through(place)) as database:
        for ignored in database.ignored:
            warn(f"left out of the answers: {ignored}")
        if database.seeded:
            warn(SEEDED)
        if query is None and sys.stdin.isatty():
            if form != "table" or users is not None or out is not None or plot is not None:
                raise InputError("--format, --users, --out and --plot go with a query: a shell shows tables")
            from veil.cli.sql_shell import Shell

            Shell(database, console(False), level).run()
            return {}
        queries = _queries(sys.stdin.read() if query is None else query)
        if len(queries) > 1 and (out is not None or plot is not None):
            raise InputError("--out and --plot take one query")
        made, said = [], SessionNotes(database)
        for number, text in enumerate(queries):
            found = _asked(database, text, number, len(queries), form, users, plot)
            made.append(_shown(found, said.once(found), wanted, form, first=not number))
    return made[0] if len(made) == 1 else {"answers": made}


class SessionNotes:
    """What was said once in a session, and need not be said again: how the errors of a design are meant."""

    def __init__(self, database: Database) -> None:
        self._database, self._told = database, False

    def once(self, found: Result) -> Result:
        """An answer without the remark of its design, where that was shown before."""
        from veil.sql.answer import Answer

        remark = self._database.table.design.assumption
        if not isinstance(found, Answer) or remark not in found.said:
            return found
        told, self._told = self._told, True
        return replace(found, said=tuple(one for one in found.said if one != remark)) if told else found


def _through(place: CountingPlace) -> Callable[[TableFolder], Rows] | None:
    """Who goes through the rows of a table: this machine, or Spark."""
    if not place.on_spark:
        return None
    from veil.sql.execution.cluster import rows_of

    return lambda rows: rows_of(rows.table, place.files(rows.table.survey, rows.files, progress))


def _reading(changes: list[str] | None) -> Reading | None:
    """The reading of `--set reading=...`; nothing else can be set."""
    from typing import get_args

    from veil.sql.table import Reading

    made = given_changes(changes)
    unknown = [name for name in made if name != "reading"]
    if unknown or made.get("reading", "levels") not in get_args(Reading):
        raise InputError(f"--set takes reading={', reading='.join(get_args(Reading))}")
    return made.get("reading")  # type: ignore[return-value]  # one of them


def _queries(text: str) -> list[str]:
    """The queries of a text; the last one needs no semicolon."""
    from veil.sql.language.statements import split

    whole, rest = split(text)
    queries = [*whole, *([rest] if rest else [])]
    if not queries:
        raise InputError("there is no query: expected SELECT ...")
    return queries


def _asked(
    database: Database, text: str, number: int, many: int, form: str, users: int | None, plot: Path | None
) -> Result:
    """The answer to one query; a mistake in it is pointed at, and what is not asked after it is counted."""
    from veil.sql.language.statements import pointed

    try:
        planned = _is_plan(text)
        if planned and plot is not None:
            raise InputError("a plan has no picture: leave --plot or EXPLAIN out")
        if users is not None and not planned:
            raise InputError("--users goes with EXPLAIN SELECT ...: answers come from the people who reported")
        return database.explain(text, users) if planned else database.query(text)
    except VeilError as problem:
        if form != "json":
            if many > 1:
                print_error(f"query {number + 1} of {many}:")
            if isinstance(problem, SqlError):
                print_error(pointed(text, problem))
            if number + 1 < many:
                warn(f"what comes after it was not asked: {many - number - 1:,} more of the {many:,}")
        raise


def _is_plan(text: str) -> bool:
    """Whether a query is EXPLAIN SELECT ..."""
    from veil.sql.language.statements import read

    return read(text).explain


def _shown(found: Result, told: Result, wanted: OutputOptions, form: str, *, first: bool) -> Document:
    """Print one answer as it is told, and write its files; returns its document with all rows."""
    from veil.results.render.files import document, table_bytes

    screen = console(form != "table")
    if not first:
        screen.print()
    made = wanted.present(told, screen)
    if form == "csv":
        rows = table_bytes(found, "csv", wanted.level).decode()
        typer.echo(("" if first else "\n") + (escape_lines(rows) if sys.stdout.isatty() else rows), nl=False)
    return {**document(found, wanted.level), "out": made["out"], "plot": made["plot"]}
