"""A folder as a database of one table: `db = veil.sql.open(folder); db.query("SELECT ...")`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from veil.errors import EmptyError, InputError
from veil.sql.answer import Answer

if TYPE_CHECKING:
    from veil.sql.explaining import Explanation
    from veil.sql.folder import Folder
    from veil.sql.table import Table

__all__ = ["Database", "open"]


class Database:
    """Runs at the collector: the table in a folder, to be asked in SQL.

    Reports that are appended count from the next query on; a study that is put in place of another is read anew.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        missing = [name for name in ("duckdb", "sqlglot") if find_spec(name) is None]
        if missing:
            raise InputError(f"SQL needs {' and '.join(missing)}: pip install 'veil[sql]'")
        self.path = Path(path)
        if "\0" in str(self.path):
            raise InputError("the path of a folder holds no zero byte")
        if self.path.is_file():
            raise InputError(f"{self.path} is a file, expected the folder of a table")
        self._folder: Folder | None = None
        self._read: tuple[int, int] | None = None
        self._closed = False
        _ = self._rows  # refuses a folder that is no table, now

    @property
    def _rows(self) -> Folder:
        """The folder, with its study as it is now."""
        from veil.sql.folder import STUDY_NAME, open_folder

        if self._closed:
            raise InputError("this database is closed")
        try:
            found = (self.path / STUDY_NAME).stat()
        except OSError:
            self._folder = None
        else:
            now = found.st_mtime_ns, found.st_size
            self._folder, self._read = (self._folder if now == self._read else None), now
        if self._folder is None:
            self._folder = open_folder(self.path)
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

    def query(self, text: str) -> Answer:
        """The answer to a query."""
        found = self.result(text)
        if not isinstance(found, Answer):
            raise InputError("a plan is no answer: expected SELECT ... alone, or `explain`")
        return found

    def explain(self, text: str, people: int | None = None) -> Explanation:
        """How a query would be answered, and with which error; of the reports, only their number is read.

        With `people`, as if there were so many, spread evenly: also where nobody has reported yet.
        """
        from veil.sql.explaining import explain
        from veil.sql.parsing import parse

        rows = self._rows
        asked = parse(text, rows.table)
        return explain(asked, self._answered(rows)) if people is None else explain(asked, rows.table, people)

    def result(self, text: str) -> Answer | Explanation:
        """The answer to SELECT ..., or the plan of EXPLAIN SELECT ...: whatever a text asks for."""
        from veil.sql.engine import run
        from veil.sql.explaining import explain
        from veil.sql.parsing import parse

        rows = self._rows
        asked = parse(text, rows.table)
        return explain(asked, self._answered(rows)) if asked.explain else run(asked, self._answered(rows))

    @staticmethod
    def _answered(rows: Folder) -> Folder:
        """The rows, of which there are some."""
        if not rows.people:
            raise EmptyError("nobody has reported to this table yet: there is nothing to ask")
        return rows

    def append(self, values: Any) -> Path:
        """Randomize what people hold, as their devices would, and add their reports as a new file. Returns its path.

        `values` has one column for each private dimension and each public column: a mapping, or a frame.
        """
        rows = self._rows
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


def open(folder: str | os.PathLike[str]) -> Database:  # noqa: A001  # as in veil.sql.open
    """The table in a folder, to be asked in SQL."""
    return Database(folder)
