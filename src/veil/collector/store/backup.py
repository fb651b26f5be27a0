"""Backups of a collector's database: one SQLite file with the same tables, whatever it was copied from, and restores.

Both databases keep the same rows. A backup of PostgreSQL is therefore a file that veil reads on any machine without the
server's tools, and a restore may go from one kind of database to the other. The signing key is not part of it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from veil.collector.monitoring.logs import log
from veil.collector.monitoring.metrics import note_backup
from veil.collector.store.block_reading import KEYS, BlockWalk
from veil.collector.store.blocks import BlockStore
from veil.collector.store.schema import PER_SURVEY, SHARED, latest
from veil.collector.store.sql import SqlConnection
from veil.collector.store.sqlite import SqliteStore
from veil.errors import InputError, StoreError, WireError
from veil.tools.filesystem import make_private_folder, remove_scratch_folders, scratch_folder, sync_folder

_BACKUP, _RESTORE = ".veil-backup-", ".veil-restore-"
_OF_REPORTS = ("count", "checks", "buckets", "payloads")
_ROWS = 64  # of reports or ids at once: a quarter of a megabyte each, and more of what is not folded yet


def back_up(store: BlockStore, out: Path) -> int:
    """Copy everything to a new file, as it is at one moment, and return the number of reports.

    Reports may come in meanwhile. The file is its owner's alone, and appears once it is complete and on the disk. Then
    its time is noted in the database, for metrics. A database of an earlier schema is copied as it is.
    """
    if out.exists():
        raise InputError(f"{out} is there already: expected a new file")
    with scratch_folder(_BACKUP, out.parent) as private:
        made = private / "copy.sqlite3"
        reports = _copied(store, made) if store.version == latest() else store.copy_old(made)
        with made.open("rb") as whole:
            os.fsync(whole.fileno())
        made.replace(out)
    sync_folder(out.parent)
    if store.version == latest():
        note_backup(store)
    return reports


def remove_copies(folder: Path) -> None:
    """Remove the copies that killed restores left in a collector's folder."""
    for copy in remove_scratch_folders(_RESTORE, folder):
        log("warning", "removed-leftover", file=str(copy))


def restore(backup: Path, store: BlockStore, place: str = "this one", folder: Path | None = None) -> int:
    """Copy a backup into a database that is empty; one of an earlier schema is brought up to date on the way.

    The surveys are signed for with the key that the backup knows, whichever key a collector had here before. `place`
    is what the database is called where it is refused. The backup is copied into `folder` first, which is the
    collector's: if the restore is killed, the next start finds that copy there and removes it.
    """
    if not backup.is_file():
        raise InputError(f"there is no file {backup}")
    if store.surveys() or store.tokens() or store.audit(1):
        raise InputError(f"expected an empty database to restore into: {place} has surveys, tokens or an audit log")
    parent = Path(tempfile.gettempdir()) if folder is None else folder
    make_private_folder(parent)
    with scratch_folder(_RESTORE, parent) as private:  # the backup stays as it is
        path = private / "copy.sqlite3"
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
            columns = _columns(source, target, read, write, table)
            statement = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
            target.insert_rows(write, table, columns, read.execute(statement).fetchall())
        listed = (
            "SELECT key, sequence, coalesce(purged, purging) FROM surveys JOIN counters ON survey = key ORDER BY key"
        )
        for key, count, purged in read.execute(listed).fetchall():
            reports += count
            target.make_tables(write, key)
            for name in PER_SURVEY:
                walk = BlockWalk(source, key) if name == "blocks" and purged is None else None
                _copy_reports(source, target, read, write, name, key, walk)
                if walk is not None:
                    walk.finish(count)
        target.settle_copy(write)
    return reports


def _copy_reports(
    source: BlockStore,
    target: BlockStore,
    read: SqlConnection,
    write: SqlConnection,
    name: str,
    survey: int,
    walk: BlockWalk | None,
) -> None:
    """Copy a table of reports or ids with its checksums. Rows that cannot be read are left out; `walk` counts them.

    Damaged rows that can be read are copied as they are, and so are their checksums.
    """
    keys = KEYS[name]
    table = source.table(name, survey)
    columns = [one for one in _columns(source, target, read, write, table) if one not in ("survey", *keys)]
    names, marks = ", ".join(keys), ", ".join("?" for _ in keys)
    after: tuple[Any, ...] = tuple(-1 for _ in keys)
    while rows := source.read_rows(read, name, survey, ", ".join(columns), f"({names}) > ({marks})", after, _ROWS):
        whole = [(survey, *place, *row) for place, row in rows if row is not None and _has_types(columns, row)]
        target.insert_rows(write, target.table(name, survey), ["survey", *keys, *columns], whole)
        if walk is not None:
            for (last, *_), row in rows:
                walk.add(last, None if row is None else [row[columns.index(part)] for part in _OF_REPORTS])
        if len(whole) < len(rows):
            log("error", "damaged-rows-left-out", survey=survey, table=name, rows=len(rows) - len(whole))
        after = rows[-1][0]


def _columns(
    source: BlockStore, target: BlockStore, read: SqlConnection, write: SqlConnection, table: str
) -> list[str]:
    """Return the columns of a table: those that we make. Another name in a backup would become part of a statement."""
    columns, found = target.columns(write, table), source.columns(read, table)
    if set(columns) != set(found):
        raise WireError(f"the table {table} of this backup: expected the columns {', '.join(columns)}")
    return columns


def _has_types(columns: list[str], row: tuple[Any, ...]) -> bool:
    """True if each value has the type of its column: in a damaged row of SQLite it may have another."""
    return all(isinstance(value, int if name == "count" else bytes) for name, value in zip(columns, row, strict=True))
