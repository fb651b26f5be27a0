"""A folder is a table: its study, and files of reports in Parquet that were each added whole.

    study.json                      what people are asked, and the public columns
    part-<time>-<digest>.parquet    reports of many people, as `Folder.append` writes them
    *.parquet                       others of the same task: what a collector exported can be put here as it is

Adding is a new file: written under a temporary name, made durable, renamed. After a crash there is the whole file, or
none of it. The digest in the name is of the file's bytes, so that damage is noticed.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from veil.errors import EmptyError, InputError, MismatchError, WireError
from veil.files.opening import ARROW, PARQUET, PathLike
from veil.files.reports import EXPORTED_TIME, read_reports
from veil.sql.locked import LockedDuckDB
from veil.sql.rows import Rows
from veil.sql.table import Table
from veil.study.study import read_study_file
from veil.tools.canonical import parse
from veil.tools.durable import beside, settle, write_atomically
from veil.wire.arrow import arrow_schema, check_schema, to_arrow
from veil.wire.reports import Reports

__all__ = ["STUDY_NAME", "Folder", "create", "is_table", "open_folder"]

STUDY_NAME = "study.json"

_GROUP_ROWS = 1 << 17
_DIGEST = 16
_PART = re.compile(rf"part-\d+-([0-9a-f]{{{_DIGEST}}})\.parquet")
_END = b"PAR1"


def create(folder: PathLike, table: Table) -> Folder:
    """Make a folder for a table that nobody has reported to; refused where there is a study already."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, expected a folder")
    if (path / STUDY_NAME).exists():
        raise InputError(f"{path} is a table already")
    path.mkdir(parents=True, exist_ok=True)
    write_atomically(path / STUDY_NAME, table.to_bytes())
    return Folder(path, table)


def is_table(folder: PathLike) -> bool:
    """Whether a folder holds a table."""
    try:
        open_folder(folder)
    except (InputError, MismatchError, WireError):
        return False
    return True


def open_folder(folder: PathLike) -> Folder:
    """The table in a folder."""
    path = Path(folder)
    try:
        document = parse((path / STUDY_NAME).read_bytes())
    except FileNotFoundError:
        raise InputError(f"there is no table in {path}: expected a folder with a {STUDY_NAME}") from None
    except OSError:
        raise InputError(f"{path / STUDY_NAME} cannot be read") from None
    table = read_study_file(document, {Table.kind: Table})
    assert isinstance(table, Table)
    return Folder(path, table)


class _Seen(NamedTuple):
    """A file as it was when it was checked: one that changes is checked again."""

    name: str
    size: int
    changed: int


class Folder(Rows):
    """Runs at the collector: the rows of a table in a folder. Files that come later are seen by the next query."""

    def __init__(self, path: PathLike, table: Table) -> None:
        self.path = Path(path)
        self.table = table
        self._checked: dict[_Seen, int | str] = {}
        self._lock = threading.Lock()
        self._open: tuple[list[_Seen], LockedDuckDB] | None = None

    @property
    def people(self) -> int:
        return sum(self._parts()[1].values())

    @property
    def ignored(self) -> tuple[str, ...]:
        """Files that are no part of the table, each with the reason: half-written ones, after a crash."""
        return self._parts()[0]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the table is made of."""
        return tuple(self.path / seen.name for seen in self._parts()[1])

    def append(self, reports: Reports | Iterable[Reports]) -> Path:
        """Add reports as one new file, whole or not at all. Returns its path."""
        import pyarrow.parquet as pq

        survey = self.table.survey
        given = [reports] if isinstance(reports, Reports) else reports
        rows = 0
        with beside(self.path / "part.parquet") as temporary:
            seeds = [field.name for field in survey.ask.layout.fields if field.bound > 1 << 32 or field.is_vector]
            small = [name for name in survey.layout.names if name not in seeds]  # seeds never repeat
            with pq.ParquetWriter(
                temporary, arrow_schema(survey), use_dictionary=small, write_statistics=False
            ) as writer:
                for some in _joined(given):
                    survey.check(some)
                    writer.write_batch(to_arrow(some, survey), row_group_size=_GROUP_ROWS)
                    rows += len(some)
            if not rows:
                raise EmptyError("expected at least one report to add")
            target = self.path / f"part-{time.time_ns():020d}-{_digest(temporary)}.parquet"
            settle(temporary, target)
        with self._lock:
            self._checked[_seen(target)] = rows
        return target

    def database(self) -> LockedDuckDB:
        _, parts = self._parts()
        with self._lock:
            if self._open is None or self._open[0] != list(parts):
                files = [(self.path / seen.name).resolve() for seen, rows in parts.items() if rows]
                reports = None if files else tuple
                self._open = list(parts), LockedDuckDB(self.table, sum(parts.values()), files, reports)
            return self._open[1]

    def _parts(self) -> tuple[tuple[str, ...], dict[_Seen, int]]:
        """What is ignored, and the files of the table with how many people are in each; all of them checked."""
        ignored, parts = [], {}
        with self._lock:
            for path in self._listed():
                if path.suffix.lower() in ARROW:
                    ignored.append(f"{path.name}: expected Parquet")
                if path.suffix.lower() not in PARQUET or path.is_dir():
                    continue
                if path.name.startswith("."):
                    ignored.append(f"{path.name}: not written to its end")
                    continue
                try:
                    seen = _seen(path)
                    if seen not in self._checked:
                        self._checked[seen] = self._check(path)
                except FileNotFoundError:  # taken out just now
                    continue
                except OSError:
                    raise InputError(f"{path.name} cannot be read: expected a file that this user may read") from None
                found = self._checked[seen]
                if isinstance(found, str):
                    ignored.append(f"{path.name}: {found}")
                else:
                    parts[seen] = found
        return tuple(ignored), parts

    def _listed(self) -> list[Path]:
        try:
            return sorted(self.path.iterdir())
        except OSError:
            raise InputError(f"there is no table in {self.path} any more") from None

    def _check(self, path: Path) -> int | str:
        """How many people are in a file, or why it is ignored; refuses one that belongs to another table."""
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - len(_END), 0))
            if size < 12 or file.read() != _END:
                return "not written to its end"
        named = _PART.fullmatch(path.name)
        if named and named[1] != _digest(path):
            raise WireError(f"{path.name} was damaged after it was written: take it out of {path.parent}")
        try:
            _check_columns(path, self.table)
            return sum(len(some) for some in read_reports(path, self.table.survey))
        except (WireError, MismatchError) as problem:
            raise type(problem)(f"{path.name} is no part of this table: {problem}") from None


def _check_columns(path: Path, table: Table) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise WireError("it is not a complete Parquet file") from None
    if EXPORTED_TIME in schema.names:
        schema = schema.remove(schema.names.index(EXPORTED_TIME))
    check_schema(schema, table.survey)


def _seen(path: Path) -> _Seen:
    found = path.stat()
    return _Seen(path.name, found.st_size, found.st_mtime_ns)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGEST]


def _joined(reports: Iterable[Reports]) -> Iterator[Reports]:
    """The same reports in pieces of about a row group each, however they came."""
    waiting: list[Any] = []
    for some in reports:
        if len(some):
            waiting.append(some)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            yield Reports.concatenate(waiting)
            waiting = []
    if waiting:
        yield Reports.concatenate(waiting)
