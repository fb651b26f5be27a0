"""A table in a folder: its study, and Parquet files of reports that are each added as a whole.

    study.json                      the questions and the public columns
    part-<time>-<digest>.parquet    reports of many people, as `TableFolder.append` writes them
    *.parquet                       other reports of the same task: exports of a collector can be put here unchanged

To append is to add a file: written under a temporary name, synced to disk, renamed. After a crash there is the whole
file, or none of it. The digest in the name is of the file's bytes and reveals damage.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from veil.errors import EmptyError, InputError, MismatchError, WireError
from veil.files.arrow_files import ARROW, PARQUET, PathLike
from veil.files.reports import ReportsFile, read_reports, write_parquet
from veil.reports.columns import Reports
from veil.sql.execution.duckdb import LockedDuckDB, is_literal
from veil.sql.execution.rows import Rows
from veil.sql.table import Table
from veil.study.study import read_study_file
from veil.survey import check_waves
from veil.tools.filesystem import commit_file, temporary_beside, write_atomically
from veil.tools.json_documents import parse_json

STUDY_NAME = "study.json"

_DIGEST = 16
_PART = re.compile(rf"part-\d+-([0-9a-f]{{{_DIGEST}}})\.parquet")
_END = b"PAR1"


def create(folder: PathLike, table: Table) -> TableFolder:
    """Make a folder for a table that nobody has reported to; refused where there is a study already."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, expected a folder")
    if (path / STUDY_NAME).exists():
        raise InputError(f"{path} is a table already")
    path.mkdir(parents=True, exist_ok=True)
    write_atomically(path / STUDY_NAME, table.to_bytes())
    return TableFolder(path, table)


def is_table(folder: PathLike) -> bool:
    """Whether a folder holds a table."""
    try:
        open_folder(folder)
    except (InputError, MismatchError, WireError):
        return False
    return True


def open_folder(folder: PathLike) -> TableFolder:
    """The table in a folder."""
    path = Path(folder)
    try:
        return TableFolder(path, _table(path / STUDY_NAME))
    except FileNotFoundError:
        raise InputError(f"there is no table in {path}: expected a folder with a {STUDY_NAME}") from None


def open_study(path: PathLike) -> TableFolder:
    """The table of a study file, which nobody has reported to."""
    try:
        return EmptyTable(path, _table(Path(path)))
    except WireError:
        raise InputError(f"{path} is no study of a table: expected its study file, or its folder") from None


def _table(path: Path) -> Table:
    """The table of a study file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError:
        raise InputError(f"{path} cannot be read") from None
    table = read_study_file(parse_json(content), {Table.kind: Table})
    assert isinstance(table, Table)
    return table


class _FileState(NamedTuple):
    """A file as it was when it was checked: one that changes is checked again."""

    name: str
    size: int
    changed: int


class _CheckedFile(NamedTuple):
    """How many people are in a file, the digest of its bytes, and the wave that its reports are of."""

    rows: int
    digest: str
    wave: int = 1
    seeded: bool = False


class TableFolder(Rows):
    """Runs at the collector: the rows of a table in a folder. Files that come later are seen by the next query."""

    def __init__(self, path: PathLike, table: Table) -> None:
        self.path = Path(path)
        self.table = table
        self._checked: dict[_FileState, _CheckedFile | str] = {}
        self._lock = threading.Lock()
        self._open: tuple[list[_FileState], LockedDuckDB] | None = None

    @property
    def people(self) -> int:
        return sum(self._parts()[1].values())

    @property
    def ignored(self) -> tuple[str, ...]:
        """What is no part of the table, each with the reason: half-written files, copies, folders."""
        return self._parts()[0]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the table is made of."""
        return tuple(self.path / seen.name for seen in self._parts()[1])

    @property
    def seeded(self) -> bool:
        """True if any of the reports were drawn from a seed, for an experiment."""
        parts = self._parts()[1]
        found = [self._checked.get(seen) for seen in parts]
        return any(isinstance(one, _CheckedFile) and one.seeded for one in found)

    def append(self, reports: Reports | Iterable[Reports], *, seeded: bool = False) -> Path:
        """Add reports as one new file, whole or not at all. Returns its path; refused where the same file is there.

        `seeded` says in the file that a seed drew their noise.
        """
        with temporary_beside(self.path / "part.parquet") as temporary:
            given = [reports] if isinstance(reports, Reports) else reports
            rows = write_parquet(temporary, self.table.survey, given, seeded=seeded)
            if not rows:
                raise EmptyError("expected at least one report to add")
            digest = _digest(temporary)
            same = self._same(temporary.stat().st_size, digest)
            if same is not None:
                raise InputError(
                    f"these very reports are in {self.path} already, as {same.name}: added again, they would count"
                    " twice"
                )
            target = self.path / f"part-{time.time_ns():020d}-{digest}.parquet"
            commit_file(temporary, target)
        with self._lock:
            self._checked[_seen(target)] = _CheckedFile(rows, digest, seeded=seeded)
        return target

    def _same(self, size: int, digest: str) -> Path | None:
        """The file of the table with this content, if there is one."""
        with contextlib.suppress(FileNotFoundError):  # taken out just now
            for path in self._listed():
                fits = path.suffix.lower() in PARQUET and not path.name.startswith(".") and path.is_file()
                if fits and path.stat().st_size == size and _digest(path) == digest:
                    return path
        return None

    def database(self) -> LockedDuckDB:
        _, parts = self._parts()
        with self._lock:
            if self._open is None or self._open[0] != list(parts):
                files = [(self.path / seen.name).resolve() for seen, rows in parts.items() if rows]
                reports = None if files and all(map(is_literal, files)) else partial(self._reports, files)
                self._open = list(parts), LockedDuckDB(self.table, sum(parts.values()), files, reports)
            return self._open[1]

    def _reports(self, files: Iterable[Path]) -> Iterator[Reports]:
        """Yield the reports in files, read by Arrow, which opens a path as it is."""
        for path in files:
            yield from read_reports(path, self.table.survey)

    def _parts(self) -> tuple[tuple[str, ...], dict[_FileState, int]]:
        """What is ignored, and the files of the table with how many people are in each; all of them checked."""
        ignored, parts = [], {}
        counted, waves = dict[str, str](), set[int]()
        with self._lock:
            for path in self._listed():
                found = self._looked_at(path)
                if isinstance(found, str):
                    ignored.append(f"{path.name}: {found}")
                elif found is not None and found[1].digest in counted:
                    ignored.append(f"{path.name}: the same reports as {counted[found[1].digest]}, which count once")
                elif found is not None:
                    counted[found[1].digest] = path.name
                    parts[found[0]] = found[1].rows
                    waves.add(found[1].wave)
            check_waves(waves)
        return tuple(ignored), parts

    def _looked_at(self, path: Path) -> tuple[_FileState, _CheckedFile] | str | None:
        """A file of reports, or why what is there is ignored; None for what has nothing to do with the table."""
        kind = path.suffix.lower()
        if path.is_dir():
            return None if path.name.startswith(".") else "a folder inside the table: expected files of reports"
        if kind in ARROW:
            return "expected Parquet"
        if kind not in PARQUET:
            return None
        if path.name.startswith("."):
            return "not written to its end"
        try:
            seen = _seen(path)
            if seen not in self._checked:
                self._checked[seen] = self._check(path)
        except FileNotFoundError:  # taken out just now
            return None
        except OSError:
            raise InputError(f"{path.name} cannot be read: expected a file that this user may read") from None
        found = self._checked[seen]
        return found if isinstance(found, str) else (seen, found)

    def _listed(self) -> list[Path]:
        try:
            return sorted(self.path.iterdir())
        except OSError:
            raise InputError(f"there is no table in {self.path} any more") from None

    def _check(self, path: Path) -> _CheckedFile | str:
        """How many people are in a file, or why it is ignored; refuses one that belongs to another table."""
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - len(_END), 0))
            if size < 12 or file.read() != _END:
                return "not written to its end"
        named, digest = _PART.fullmatch(path.name), _digest(path)
        if named and named[1] != digest:
            raise WireError(f"{path.name} was damaged after it was written: take it out of {path.parent}")
        try:
            with ReportsFile(path, self.table.survey) as file:
                if file.by_payload:
                    raise WireError("expected the columns of reports, as `veil randomize` and a collector write them")
                return _CheckedFile(sum(map(len, file.read())), digest, file.wave, file.seeded)
        except (WireError, MismatchError) as problem:
            raise type(problem)(f"{path.name} is no part of this table: {problem}") from None


class EmptyTable(TableFolder):
    """The rows of a table that has no folder yet: none."""

    def _listed(self) -> list[Path]:
        return []


def _seen(path: Path) -> _FileState:
    found = path.stat()
    return _FileState(path.name, found.st_size, found.st_mtime_ns)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGEST]
