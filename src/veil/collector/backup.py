"""A collector's database as one file, and back: an SQLite database with the same tables, whatever it was copied from.

Both databases keep the same rows, so a backup of PostgreSQL is a file that veil itself reads, on any machine, without
the server's tools; and a restore may go from one kind of database to the other. The signing key is not in it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from veil.collector.blocks import BlockStore
from veil.collector.schema import LATEST, PER_SURVEY, SHARED
from veil.collector.sql import Connection
from veil.collector.sqlite_store import SqliteStore
from veil.errors import InputError, StoreError
from veil.tools.durable import sync_folder

__all__ = ["back_up", "restore"]

_ORDERED = {"blocks": ("last",), "runs": ("run", "page")}
_ROWS = 64  # of reports or ids at once: a quarter of a megabyte each, and more of what is not folded yet

Advance = Callable[[int], object]


def back_up(store: BlockStore, out: Path) -> int:
    """Copy everything to a new file, as it is at one moment; reports may come in meanwhile. How many reports it has.

    The file is its owner's alone, and appears once it is whole and on the disk. A database of an earlier version is
    copied as it is.
    """
    if out.exists():
        raise InputError(f"{out} is there already: expected a new file")
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as private:
        made = Path(private) / "copy.sqlite3"
        reports = _copied(store, made) if store.version == LATEST else store.copy_old(made)
        with made.open("rb") as whole:
            os.fsync(whole.fileno())
        made.replace(out)
    sync_folder(out.parent)
    return reports


def restore(backup: Path, store: BlockStore, place: str = "this one") -> int:
    """Copy a backup into a database that is empty; one of an earlier version is brought up to date on the way.

    The surveys are signed for with the key that the backup knows, whichever key a collector had here before. `place`
    is what the database is called where it is refused.
    """
    if not backup.is_file():
        raise InputError(f"there is no file {backup}")
    if store.surveys() or store.tokens() or store.audit(1):
        raise InputError(f"expected an empty database to restore into: {place} has surveys, tokens or an audit log")
    beside = backup.parent if os.access(backup.parent, os.W_OK) else None  # where there is room for one like it
    with tempfile.TemporaryDirectory(prefix=".veil-restore-", dir=beside) as private:  # the backup stays as it is
        path = Path(private) / "copy.sqlite3"
        shutil.copyfile(backup, path)
        try:
            source = SqliteStore(path)
        except StoreError as problem:
            raise StoreError(f"{backup} cannot be restored: {problem}") from None
        try:
            return _copy(source, store)
        finally:
            source.close()


def _copied(store: BlockStore, path: Path) -> int:
    copy = SqliteStore(path)
    try:
        return _copy(store, copy)
    finally:
        copy.close()  # empties its log into the file


def _copy(source: BlockStore, target: BlockStore) -> int:
    reports = 0
    surveys = [survey.key for survey in source.surveys()]
    with source.snapshot(surveys) as read, target.writing() as write:
        write.execute("DELETE FROM facts")  # a collector that was started here has said whose key is its own
        for table in SHARED:
            columns = source.columns(read, table)
            statement = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
            target.insert_rows(write, table, columns, read.execute(statement).fetchall())
        for key, count in read.execute("SELECT survey, sequence FROM counters").fetchall():
            reports += count
            target.make_tables(write, key)
            for name in PER_SURVEY:
                _copy_reports(source, target, read, write, name, key)
        target.settle_copy(write)
    return reports


def _copy_reports(
    source: BlockStore, target: BlockStore, read: Connection, write: Connection, name: str, survey: int
) -> None:
    table = source.table(name, survey)
    columns = source.columns(read, table)
    for rows in _in_order(read, table, columns, _ORDERED[name]):
        target.insert_rows(write, target.table(name, survey), columns, rows)


def _in_order(read: Connection, table: str, columns: list[str], ordered: tuple[str, ...]) -> Iterator[list[Any]]:
    """All rows of a table, some at a time, in the order of these columns."""
    places = [columns.index(name) for name in ordered]
    names, marks = ", ".join(ordered), ", ".join("?" for _ in ordered)
    statement = (
        f"SELECT {', '.join(columns)} FROM {table} WHERE ({names}) > ({marks})"  # noqa: S608
        f" ORDER BY {names} LIMIT {_ROWS}"
    )
    after: tuple[Any, ...] = tuple(-1 for _ in ordered)
    while rows := read.execute(statement, after).fetchall():
        yield rows
        after = tuple(rows[-1][i] for i in places)
