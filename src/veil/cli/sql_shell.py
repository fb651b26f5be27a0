"""The interactive shell of `veil sql`: history, completion, queries over several lines. Errors point at their place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veil.cli.output import explained, plain_table, plural
from veil.cli.results import OutputOptions
from veil.cli.sql import SessionNotes
from veil.errors import SqlError
from veil.sql.language.statements import pointed, split
from veil.tools.filesystem import open_private
from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completion
    from prompt_toolkit.document import Document as Typed

    from veil.cli.output import Screen
    from veil.sql.database import Database
    from veil.sql.table import Table


_HELP = """\
A query ends with a semicolon and may take several lines. EXPLAIN SELECT ...; shows its plan and predicted error.
\\d        the columns of the table
\\timing   show how long queries take, or no longer
\\?        this; also on a line of its own in the middle of a query, which then goes on
\\q        quit; so does Ctrl-D"""
_WORDS = {"help": "\\?", "quit": "\\q", "exit": "\\q"}
"""What people type where no query begins like that."""
_INSIDE = ("\\?", "\\d", "\\timing")
"""Commands that also answer in the middle of a query."""

_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "AS", "DESC", "ASC", "EXPLAIN"),
    *("AND", "OR", "NOT", "BETWEEN", "IN", "IS NULL", "IS NOT NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "DATE"),
    *("COUNT(*)", "SUM(", "AVG(", "VARIANCE(", "STDDEV("),
)
_MOST_SHOWN = 6


class Shell:
    """Reads what is typed, asks, and shows answers until it is told to quit."""

    def __init__(self, database: Database, screen: Screen, level: float = 0.95) -> None:
        self._database, self._screen = database, screen
        self._wanted = OutputOptions(None, None, level, 10, everything=True)
        self._timing = False
        self._said = SessionNotes(database)
        self._begun = ""  # of a query that a command interrupted

    def run(self, **terminal: Any) -> None:
        """Go on until \\q or the end of the input; `terminal` may name another `input` and `output`, for tests."""
        session = self._session(**terminal)
        table = self._database.table
        self._screen.print(f"{table.name}: {plural(self._database.people, 'report')}.")
        self._screen.print("A query ends with a semicolon; \\d shows the columns, \\? what else there is.")
        while True:
            try:
                typed = session.prompt("veil> ", default=self._begun)
            except KeyboardInterrupt:
                self._begun = ""
                continue  # what was typed is thrown away
            except EOFError:
                return
            if not self.take(typed):
                return

    def take(self, typed: str) -> bool:
        """Do what was typed; False where that is to quit."""
        self._begun, command = _command_of(typed)
        if command is not None:
            return self._command(command)
        whole, rest = split(typed)
        for text in (*whole, *([rest] if rest else [])):
            self._ask(text)
        return True

    def _command(self, command: str) -> bool:
        if command == "\\q":
            return False
        if command == "\\d":
            self._screen.print(plain_table(("column", "", "holds"), schema_rows(self._database.table)))
        elif command == "\\timing":
            self._timing = not self._timing
            self._screen.print(f"times are {'shown' if self._timing else 'not shown'}")
        elif command == "\\?":
            self._screen.print(_HELP)
        else:
            self._screen.print("there is no such command: \\? lists them")
        return True

    def _ask(self, text: str) -> None:
        begun = time.perf_counter()
        try:
            found = self._database.query(text)
            took = time.perf_counter() - begun
            self._wanted.present(self._said.once(found), self._screen)
        except KeyboardInterrupt:
            self._screen.print("stopped")
            return
        except Exception as problem:  # a shell goes on, whatever happens
            if isinstance(problem, SqlError):
                self._screen.print(pointed(text, problem), soft_wrap=True)
            self._screen.print(f"error: {explained(problem).message}", style="red")
            return
        if self._timing:
            self._screen.print(f"{1000 * took:,.1f} ms")
        self._screen.print()

    def _session(self, **terminal: Any) -> PromptSession[str]:
        try:
            from prompt_toolkit import PromptSession
        except ImportError:
            raise missing_extra("the shell needs prompt_toolkit", "sql") from None
        from prompt_toolkit.application import get_app
        from prompt_toolkit.filters import Condition

        # Enter ends what is typed where it is whole, and begins a new line where it is not
        unfinished = Condition(lambda: not is_whole(get_app().current_buffer.text))
        return PromptSession(
            history=_history(),
            completer=completer(self._database.table),
            complete_while_typing=False,
            multiline=unfinished,
            prompt_continuation="  ... ",
            **terminal,
        )


def is_whole(typed: str) -> bool:
    """Whether what was typed can be done: a command, nothing at all, or queries up to a semicolon."""
    if not typed.strip() or _command_of(typed)[1] is not None:
        return True
    whole, rest = split(typed)
    return bool(whole) and not rest


def _command_of(typed: str) -> tuple[str, str | None]:
    """The command that was typed, alone or on the last line of a query, and the query that goes on after it."""
    alone = typed.strip().rstrip(";").strip()
    if alone.startswith("\\"):
        return "", alone
    if alone.lower() in _WORDS:
        return "", _WORDS[alone.lower()]
    before, _, last = typed.rstrip().rpartition("\n")
    return (f"{before}\n", last.strip()) if last.strip() in _INSIDE else ("", None)


def schema_rows(table: Table) -> Iterator[tuple[str, str, str]]:
    """Each column of a table: its name, whether it is private, and what it holds."""
    from veil.planning.base import in_words
    from veil.sql.columns import Category, Measure, Moment

    for name, part in table.private.attributes:
        labels = getattr(part, "labels", None)
        yield name, "private", f"{in_words(part)}: {_listed(labels)}" if labels else in_words(part)
    for column in table.public:
        holds = "values"
        if isinstance(column, Measure):
            holds = f"numbers with {plural(column.scale, 'decimal')}" if column.scale else "whole numbers"
        elif isinstance(column, Category):
            holds = f"one of {plural(len(column.labels), 'label')}: {_listed(column.labels)}"
        elif isinstance(column, Moment):
            holds = "dates" if column.unit == "day" else "times, to the second"
        yield column.name, "public", holds


def _listed(labels: Iterable[object]) -> str:
    shown = [str(label) for label in labels]
    return ", ".join([*shown[:_MOST_SHOWN], *(["..."] if len(shown) > _MOST_SHOWN else [])])


def _history() -> Any:
    """What was typed before, in the user's folder for such things; in memory where nothing can be written there."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "veil"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(open_private(folder / "sql_history"))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / "sql_history"))


def completer(table: Table) -> Any:
    """Completes keywords, columns, the table's name and, behind a quote, labels."""
    from prompt_toolkit.completion import Completer, Completion

    words = [*table.private.names, *(column.name for column in table.public), table.name, *_KEYWORDS]
    labels = [str(label) for part in table.private.parts for label in getattr(part, "labels", None) or ()]
    labels += [str(label) for column in table.public for label in column.to_json().get("labels", ())]

    class WordCompleter(Completer):
        """What begins as the word before the cursor does."""

        def get_completions(self, document: Typed, complete_event: CompleteEvent) -> Iterator[Completion]:
            before = document.text_before_cursor
            quoted = before.count("'") % 2 == 1
            begun = before.rpartition("'")[2] if quoted else document.get_word_before_cursor()
            for word in dict.fromkeys(labels if quoted else words):
                if begun.strip() and word.casefold().startswith(begun.casefold()):
                    text = word.replace("'", "''") + "'" if quoted else word
                    yield Completion(text, start_position=-len(begun), display=word)

    return WordCompleter()
