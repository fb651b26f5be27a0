"""A folder as a database of one table: `db = veil.sql.open(folder); db.query("SELECT ...")`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from veil.errors import EmptyError, InputError
from veil.tools.messages import missing_extra

if TYPE_CHECKING:
    from veil.sql.answer import Answer
    from veil.sql.execution.explaining import Explanation
    from veil.sql.execution.rows import Rows
    from veil.sql.folder import TableFolder
    from veil.sql.table import Reading, Table


_USUAL_PEOPLE = 1_000_000
"""So many are taken to report, where nobody has yet and no number is given."""


class Database:
    """Runs at the collector: the table in a folder, to be asked in SQL; of a study file alone, its plans.

    Reports that are appended count from the next query on; a study that is put in place of another is read anew.
    `reading` reads the reports in another way than the study says: "levels", "plain" or "consistent". `through` says
    who goes through the rows of a folder, where that is not this machine: see `veil.sql.execution.cluster`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        reading: Reading | None = None,
        through: Callable[[TableFolder], Rows] | None = None,
    ) -> None:
        lacking = [name for name in ("duckdb", "sqlglot") if find_spec(name) is None]
        if lacking:
            raise missing_extra(f"SQL needs {' and '.join(lacking)}", "sql")
        self.path = Path(path)
        if "\0" in str(self.path):
            raise InputError("the path of a folder holds no zero byte")
        self._reading, self._through = reading, through
        self._folder: TableFolder | None = None
        self._read: tuple[int, int] | None = None
        self._closed = False
        _ = self._rows  # refuses a folder that is no table, now

    @property
    def _rows(self) -> TableFolder:
        """The folder, with its study as it is now."""
        from veil.sql.folder import STUDY_NAME, open_folder, open_study

        if self._closed:
            raise InputError("this database is closed")
        study = self.path if self.path.is_file() else self.path / STUDY_NAME
        try:
            found = study.stat()
        except OSError:
            self._folder = None
        else:
            now = found.st_mtime_ns, found.st_size
            self._folder, self._read = (self._folder if now == self._read else None), now
        if self._folder is None:
            self._folder = open_study(self.path) if self.path.is_file() else open_folder(self.path)
            if self._reading is not None:
                self._folder.table = replace(self._folder.table, reading=self._reading)
        return self._folder

    @property
    def table(self) -> Table:
        """What people were asked, and which columns are public."""
        return self._rows.table

    @property
    def people(self) -> int:
        """How many people reported."""
        return self._rows.people

    @property
    def files(self) -> Sequence[Path]:
        """The files that hold reports."""
        return self._rows.files

    @property
    def ignored(self) -> Sequence[str]:
        """Files that queries leave out, each with the reason: half-written ones, after a crash."""
        return self._rows.ignored

    @property
    def seeded(self) -> bool:
        """True if any of the reports were drawn from a seed, for an experiment."""
        return self._rows.seeded

    def query(self, text: str) -> Answer | Explanation:
        """Return the answer to SELECT ..., or the plan of EXPLAIN SELECT ..."""
        from veil.sql.execution.engine import run
        from veil.sql.language.parsing import parse
        from veil.sql.language.scalars import unknown_labels

        rows = self._rows
        asked = parse(text, rows.table)
        if asked.explain:
            return self.explain(text)
        found = run(asked, self._answered(rows))
        return replace(found, said=(*unknown_labels(text, rows.table), *found.said))

    def explain(self, text: str, people: int | None = None) -> Explanation:
        """How a query would be answered, and with which error; of the reports, only their number is read.

        With `people`, as if there were so many, spread evenly. Where nobody has reported yet, as if there were a
        million.
        """
        from veil.sql.execution.explaining import explain
        from veil.sql.language.parsing import parse
        from veil.sql.language.scalars import unknown_labels

        rows = self._rows
        asked = parse(text, rows.table)
        if people is None and rows.people:
            found = explain(asked, rows)
        else:
            found = explain(asked, rows.table, _USUAL_PEOPLE if people is None else people)
        return replace(found, said=(*unknown_labels(text, rows.table), *found.said))

    def _answered(self, rows: TableFolder) -> Rows:
        """The rows, of which there are some."""
        if self.path.is_file():
            raise InputError(f"{self.path} is a study without reports: EXPLAIN SELECT ..., or take the table's folder")
        if not rows.people:
            raise EmptyError("nobody has reported to this table yet: there is nothing to ask but EXPLAIN SELECT ...")
        return rows if self._through is None else self._through(rows)

    def append(self, values: Any) -> Path:
        """Randomize what people hold, as their devices would, and add their reports as a new file. Returns its path.

        `values` has one column for each private dimension and each public column: a mapping, or a frame.
        """
        rows = self._rows
        if self.path.is_file():
            raise InputError(f"{self.path} is a study file: reports are added to a folder, see veil.sql.create")
        survey, public = rows.table.survey, rows.table.encode_public(values)
        return rows.append(survey.randomize(values, public=public))

    def close(self) -> None:
        """Let go of the folder."""
        self._folder, self._closed = None, True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({str(self.path)!r})"


def open(  # noqa: A001  # as in veil.sql.open
    folder: str | os.PathLike[str], *, reading: Reading | None = None
) -> Database:
    """The table in a folder, to be asked in SQL; of a study file alone, its plans.

    `reading` reads the reports in another way than the study says, as in `open("shop", reading="consistent")`.
    """
    return Database(folder, reading=reading)
