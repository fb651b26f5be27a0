"""A folder as a database of one table: `db = veil.sql.open(folder); db.query("SELECT ...")`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from veil.errors import InputError

if TYPE_CHECKING:
    from veil.sql.answer import Answer
    from veil.sql.explaining import Explanation
    from veil.sql.folder import Folder
    from veil.sql.table import Table

__all__ = ["Database", "open"]


class Database:
    """Runs at the collector: the table in a folder, to be asked in SQL.

    The study and the files are read anew when the folder changed, so that reports that were appended since count.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: tuple[tuple[str, int, int], ...] | None = None
        self._folder: Folder | None = None
        self._closed = False
        _ = self._rows  # refuses a folder that is no table, now

    @property
    def _rows(self) -> Folder:
        """The folder as it is now."""
        from veil.sql.folder import Folder

        if self._closed:
            raise InputError("this database is closed")
        seen = _listed(self.path)
        if self._folder is None or seen != self._seen:
            self._folder, self._seen = Folder(self.path), seen
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
    def ignored(self) -> Sequence[Any]:
        """Files in the folder that are not whole, which queries leave out."""
        return self._rows.ignored

    def query(self, text: str) -> Answer | Explanation:
        """The answer to a query; of EXPLAIN SELECT ..., how it would be answered, and with which error."""
        from veil.sql.engine import run
        from veil.sql.parsing import parse

        rows = self._rows
        asked = parse(text, rows.table)
        if asked.explain:
            from veil.sql.explaining import explain

            return explain(asked, rows)
        return run(asked, rows)

    def explain(self, text: str) -> Explanation:
        """How a query would be answered, and with which error; nothing is read but how many people there are."""
        from veil.sql.explaining import explain
        from veil.sql.parsing import parse

        rows = self._rows
        return explain(parse(text, rows.table), rows)

    def append(self, values: Any) -> Path:
        """Runs on people's devices, for tests and simulations: randomize rows of values into a new file.

        `values` has one column for each private dimension and each public column: a mapping, or a frame.
        """
        return self._rows.append(values)

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


def _listed(path: Path) -> tuple[tuple[str, int, int], ...]:
    """What tells whether a folder changed: its files with their times and sizes."""
    try:
        with os.scandir(path) as entries:
            found = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    except NotADirectoryError:
        raise InputError(f"{path} is a file, expected the folder of a table") from None
    except FileNotFoundError:
        raise InputError(f"there is no folder {path}") from None
    return tuple(sorted((name, one.st_mtime_ns, one.st_size) for name, one in found))
