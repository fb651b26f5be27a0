"""Databases of earlier versions, brought up to date within one transaction when a collector opens them.

Version 2 kept a row per report, with numbers that had gaps where reports came again. Version 3 keeps blocks, and
numbers without gaps: marks of tallies and of what readings took are moved to the same places. Version 3 also merged
runs of ids. Version 4 does not: it makes runs of the usual size of them, with filters of its own. Version 5 adds
checksums to blocks and pages: what was damaged before counts as intact from then on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from veil.collector import seen as seen_ids
from veil.collector.block_reading import pack_buckets
from veil.collector.blocks import BlockStore, Old, fold_blocks
from veil.collector.checksums import page_checksum, sum_block
from veil.collector.schema import BLOCKS, CHECKED, LATEST, PER_SURVEY, statements
from veil.collector.seen import Seen
from veil.collector.sql import Connection
from veil.errors import InputError, StoreError
from veil.wire.frames import ID_BYTES

__all__ = ["bring_up_to_date"]

_NO_END = 2**63 - 1
_ROWS = 64  # at once, of a quarter of a megabyte at most


def bring_up_to_date(
    store: BlockStore, connection: Connection, version: int, old: Old, *, make: bool = True, **words: str
) -> int:
    """Bring a database from `version` to the latest one, and return the version that it has then.

    Version 0 is an empty database, which is refused unless one may be made. What a later veil wrote is refused.
    """
    if version == 0 and not make:
        raise InputError("database: expected the collector's, got an empty one: check the settings, or make it (--new)")
    if not 0 <= version <= LATEST:
        raise StoreError(
            f"this database was written by another version of veil: its schema is {version}, and this one knows"
            f" {LATEST} at most"
        )
    if version not in (0, LATEST):
        if old == "keep":
            return version
        if old == "refuse":
            raise StoreError(
                f"this database is of an earlier version of veil (its schema is {version}, and this one's {LATEST}):"
                " veil serve brings it up to date, and veil backup copies it as it is before that"
            )
    for number in range(version + 1, LATEST + 1):
        for statement in statements(number, **words):
            connection.execute(statement)
        if number == BLOCKS:
            _move_reports(store, connection)
            store.guard_audit(connection)
        if number == CHECKED:
            _add_checksums(store, connection, words["bytes"])
    if version == BLOCKS:
        listed = "SELECT key, state, indexed FROM surveys JOIN counters ON survey = key ORDER BY key"
        for key, state, indexed in connection.execute(listed).fetchall():
            if _remake_runs(store, connection, key) != indexed and state == "open":  # others may be half purged
                raise StoreError("the database lacks pages of report ids: nothing was changed in it")
    return LATEST


def _move_reports(store: BlockStore, connection: Connection) -> None:
    found = connection.execute("SELECT key, task, reports FROM surveys ORDER BY key").fetchall()
    for key, task, reports in found:
        store.make_tables(connection, key)
        _move_marks(connection, key, task, reports)
        total, indexed, folds = _moved(store, connection, key)
        counters = (key, total or reports, indexed, folds)
        connection.execute("INSERT INTO counters (survey, sequence, indexed, folds) VALUES (?, ?, ?, ?)", counters)
        if reports and not total:
            connection.execute("UPDATE surveys SET purged = ? WHERE key = ?", (int(time.time()), key))
    connection.execute("DROP TABLE reports")
    for column in ("reports", "sequence"):
        connection.execute(f"ALTER TABLE surveys DROP COLUMN {column}")


def _move_marks(connection: Connection, key: int, task: str, reports: int) -> None:
    """Marks become numbers of reports; those of a purged survey counted all of them, or are of no use any more."""
    counted = "SELECT count(*) FROM reports WHERE survey = ? AND sequence <= ?"
    purged = reports and not connection.execute(counted, (key, _NO_END)).fetchone()[0]

    def place(mark: int, last: int) -> int:
        if purged:
            return reports if mark == last else 0
        return int(connection.execute(counted, (key, mark)).fetchone()[0])

    for (mark,) in connection.execute("SELECT sequence FROM tallies WHERE survey = ?", (key,)).fetchall():
        connection.execute("UPDATE tallies SET sequence = ? WHERE survey = ?", (place(mark, mark), key))
    taken = connection.execute("SELECT DISTINCT mark FROM takes WHERE run = ? ORDER BY mark", (task,)).fetchall()
    for (mark,) in taken:  # upwards, and never to a higher number: none meets another on its way
        moved = place(mark, taken[-1][0])
        if moved:
            connection.execute("UPDATE takes SET mark = ? WHERE run = ? AND mark = ?", (moved, task, mark))
        else:
            connection.execute("DELETE FROM takes WHERE run = ? AND mark = ?", (task, mark))


def _moved(store: BlockStore, connection: Connection, key: int) -> tuple[int, int, int]:
    """Write a survey's blocks and runs; how many reports there are, how many in runs, and after how many folds."""
    total = indexed = folds = 0
    filters = Seen().key
    for rows in _old_rows(connection, key):
        packed = pack_buckets([(bucket, 1) for *_, bucket in rows])
        block = packed, b"".join(bytes(name) for _, name, *_ in rows), b"".join(bytes(data) for _, _, data, _ in rows)
        if len(rows) < seen_ids.FOLDED:
            store.insert_blocks(connection, key, [(total + len(rows), len(rows), *block)])
        else:
            store.insert_blocks(connection, key, fold_blocks([block], total))
            store.write_runs(connection, key, block[1], filters)
            indexed += len(rows)
            folds += 1
        total += len(rows)
    return total, indexed, folds


def _old_rows(connection: Connection, key: int) -> Iterator[Any]:
    statement = (
        "SELECT sequence, report_id, payload, bucket FROM reports WHERE survey = ? AND sequence > ?"
        " ORDER BY sequence LIMIT ?"
    )
    after = 0
    while rows := connection.execute(statement, (key, after, seen_ids.FOLDED)).fetchall():
        yield rows
        after = rows[-1][0]


def _remake_runs(store: BlockStore, connection: Connection, key: int) -> int:
    """Runs of a survey from those of version 3; what that had half merged, or half erased, goes. How many ids."""
    table, filters, gathered, total = store.table("runs", key), Seen().key, b"", 0
    mine = f"FROM {table} WHERE survey = ? AND run = ?"
    runs = connection.execute(f"SELECT DISTINCT run FROM {table} WHERE survey = ? ORDER BY run", (key,)).fetchall()  # noqa: S608
    (last,) = runs[-1] if runs else (0,)
    for (run,) in runs:
        if connection.execute(f"SELECT 1 {mine} AND page = 0", (key, run)).fetchone() is None:
            continue  # a plan, a run that was being made, or one that another has replaced
        pages = connection.execute(f"SELECT page {mine} AND page > 0 ORDER BY page", (key, run)).fetchall()
        for _, ids in store.read_pages(connection, key, [(run, page) for (page,) in pages]):
            gathered += ids
            total += len(ids) // ID_BYTES
            if len(gathered) >= seen_ids.FOLDED * ID_BYTES:
                store.write_runs(connection, key, gathered, filters)
                gathered = b""
    if gathered:
        store.write_runs(connection, key, gathered, filters)
    connection.execute(f"DELETE FROM {table} WHERE survey = ? AND run <= ?", (key, last))  # noqa: S608
    store.note_folded(connection, key)
    return total


def _add_checksums(store: BlockStore, connection: Connection, type_: str) -> None:
    """Give the blocks and pages of every survey their checksums."""
    for (key,) in connection.execute("SELECT key FROM surveys ORDER BY key").fetchall():
        for name in PER_SURVEY:
            table = store.table(name, key)
            if "checks" not in store.columns(connection, table):  # else this code made the table on the way here
                connection.execute(f"ALTER TABLE {table} ADD COLUMN checks {type_} NOT NULL DEFAULT ''")
                (_sum_blocks if name == "blocks" else _sum_pages)(connection, table, key)


def _sum_blocks(connection: Connection, table: str, key: int) -> None:
    columns = "last, count, buckets, ids, payloads"
    statement = f"SELECT {columns} FROM {table} WHERE survey = ? AND last > ? ORDER BY last LIMIT {_ROWS}"  # noqa: S608
    update = f"UPDATE {table} SET checks = ? WHERE survey = ? AND last = ?"  # noqa: S608
    after = 0
    while rows := connection.execute(statement, (key, after)).fetchall():
        made = [(sum_block(key, last, count, *map(bytes, data)), key, last) for last, count, *data in rows]
        connection.executemany(update, made)
        after = rows[-1][0]


def _sum_pages(connection: Connection, table: str, key: int) -> None:
    statement = (
        f"SELECT run, page, data FROM {table} WHERE survey = ? AND (run, page) > (?, ?)"  # noqa: S608
        f" ORDER BY run, page LIMIT {_ROWS}"
    )
    update = f"UPDATE {table} SET checks = ? WHERE survey = ? AND run = ? AND page = ?"  # noqa: S608
    after = (-1, -1)
    while rows := connection.execute(statement, (key, *after)).fetchall():
        made = [(page_checksum(key, run, page, bytes(data)), key, run, page) for run, page, data in rows]
        connection.executemany(update, made)
        after = rows[-1][:2]
