"""Checks of all stored reports and ids of a collector's database, which may be in use meanwhile.

Rows are read in short transactions. Reports that are folded meanwhile are met once, before or after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from veil.collector.store.base import StoredSurvey
from veil.collector.store.block_reading import BlockWalk, has_ids, is_page
from veil.collector.store.blocks import BlockStore
from veil.collector.store.seen import RunHead
from veil.collector.surveys.catalogue import parsed, read_by
from veil.errors import StoreDamagedError, StoreError, VeilError
from veil.wire.frames import ID_BYTES
from veil.wire.tallies import decode_tally

_ROWS = 64  # at once, of a quarter of a megabyte at most

Advance = Callable[[int], object]


@dataclass(frozen=True)
class DamagedPart:
    """A damaged part of the database. `reports` is the number of reports that cannot be read because of it."""

    task: str | None
    part: str
    place: str
    reports: int
    message: str


def find_damage(store: BlockStore, advance: Advance) -> Iterator[DamagedPart]:
    """Yield the damaged parts of a database; `advance` is called with numbers of reports that were checked."""
    for line in store.file_problems():
        yield DamagedPart(None, "file", "", 0, line)
    for stored in store.surveys():
        found = [*_of_document(stored), *_of_reports(store, stored, advance), *_of_ids(store, stored)]
        found += _of_tally(store, stored)
        if found and store.survey(stored.key).is_purged:  # what was erased meanwhile is not missing
            found = [one for one in found if one.part == "document"]
        yield from found


def _of_document(stored: StoredSurvey) -> Iterator[DamagedPart]:
    try:
        matches = parsed(stored.document).task == stored.task
    except VeilError:
        matches = False
    if not matches:
        yield DamagedPart(stored.task, "document", "", 0, "the survey's document does not match its task id")


def _of_reports(store: BlockStore, stored: StoredSurvey, advance: Advance) -> Iterator[DamagedPart]:
    if stored.is_purged:
        return
    walk, after, key = BlockWalk(store, stored.key), 0, stored.key
    try:
        while True:
            with store.reading() as connection:
                columns = "count, checks, buckets, ids, payloads"
                rows = store.read_rows(connection, "blocks", key, columns, "last > ?", (after,), _ROWS)
            for (last,), row in rows:
                before = walk.missing
                if row is None:
                    walk.add(last, None)
                else:
                    count, checks, buckets, ids, payloads = row
                    if walk.add(last, (count, checks, buckets, payloads)):
                        advance(last - after)
                    if not has_ids(key, last, count, checks, ids):
                        yield DamagedPart(stored.task, "ids", f"block {last}", 0, "the ids of the block are damaged")
                yield from _missing(stored, walk, before)
                after = last
            if len(rows) < _ROWS:
                break
    except StoreDamagedError as problem:
        yield DamagedPart(stored.task, "table", store.table("blocks", key), 0, str(problem))
        return
    before = walk.missing
    walk.finish(stored.sequence)
    yield from _missing(stored, walk, before)


def _missing(stored: StoredSurvey, walk: BlockWalk, before: int) -> Iterator[DamagedPart]:
    if walk.missing > before:
        reports = walk.missing - before
        place = f"reports {walk.start + 1} to {walk.start + reports}"
        yield DamagedPart(
            stored.task, "reports", place, reports, "the blocks with these reports are damaged or missing"
        )


def _of_ids(store: BlockStore, stored: StoredSurvey) -> Iterator[DamagedPart]:
    if stored.is_purged:
        return
    key, total, after, lost = stored.key, 0, (-1, -1), False
    with store.reading() as connection:
        statement = "SELECT indexed FROM counters WHERE survey = ?"
        (indexed,) = connection.execute(statement, (key,)).fetchone()
    try:
        while True:
            with store.reading() as connection:
                rows = store.read_rows(connection, "runs", key, "checks, data", "(run, page) > (?, ?)", after, _ROWS)
            for (run, page), row in rows:
                if row is None or not is_page(key, run, page, *row) or (page == 0 and not _is_head(row[1])):
                    what = "the filter" if page == 0 else "the ids"
                    yield DamagedPart(
                        stored.task, "ids", f"run {run}, page {page}", 0, f"{what} of the page are damaged"
                    )
                    lost = lost or page > 0
                elif page > 0:
                    total += len(row[1]) // ID_BYTES
                after = run, page
            if len(rows) < _ROWS:
                break
    except StoreDamagedError as problem:
        yield DamagedPart(stored.task, "table", store.table("runs", key), 0, str(problem))
        return
    if total < indexed and not lost:
        message = f"the runs have {indexed - total:,} ids fewer than were put in them"
        yield DamagedPart(stored.task, "ids", "runs", 0, message)


def _is_head(data: Any) -> bool:
    try:
        RunHead.from_bytes(data)
    except StoreError:
        return False
    return True


def _of_tally(store: BlockStore, stored: StoredSurvey) -> Iterator[DamagedPart]:
    message = None
    try:
        tally = store.tally(stored.key)
        if tally is not None:
            decode_tally(read_by(stored), tally.encoded)
            if tally.sequence > store.survey(stored.key).sequence:
                message = "the tally counts more reports than there are: veil survey rebuild counts them again"
    except StoreDamagedError as problem:
        message = str(problem)
    except VeilError:
        message = "the tally is damaged: veil survey rebuild counts the reports again"
    if message is not None:
        yield DamagedPart(stored.task, "tally", "", 0, message)
