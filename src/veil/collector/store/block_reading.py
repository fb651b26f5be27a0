"""Stored blocks of reports and pages of report ids: their checksums (CRC-32), and reading without the damaged ones.

A checksum covers the place of a row as well as its bytes, so a row in another row's place counts as damaged. CRC-32
finds damage by disks and memory; it does not protect against somebody who can write to the database. If the database
itself reports damage, rows are read one by one, so that only damaged ones are lost. Reports are numbered without gaps:
the number of missing reports follows from the numbers of their neighbours.
"""

from __future__ import annotations

import struct
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from typing import Any
from zlib import crc32

from veil.collector.monitoring.logs import log
from veil.collector.store.base import Chunk
from veil.collector.store.seen import names_of
from veil.collector.store.sql import SqlConnection, SqlStore
from veil.errors import StoreDamagedError

_CHECKS = struct.Struct("<III")
_PLACE = struct.Struct("<qqq")
_BUCKET = struct.Struct("<qq")
_NO_END = 2**63 - 1
_STATE = "SELECT sequence, coalesce(purged, purging) FROM surveys JOIN counters ON survey = key WHERE key = ?"
KEYS = {"blocks": ("last",), "runs": ("run", "page")}
"""The columns that name a row of a table of reports or ids within its survey."""
Buckets = list[tuple[int, int]]
Block = tuple[int, int, bytes, bytes, bytes]
"""A block: its last number, and the count, coarse times, ids and payloads of its reports."""
RowKey = tuple[int, ...]


class BlockReader(SqlStore):
    """A store that can read its blocks of reports and ids, for both databases."""

    def __init__(self) -> None:
        self.damage = Damage()

    @contextmanager
    def snapshot(self, surveys: Sequence[int] = ()) -> Iterator[SqlConnection]:
        """A connection that sees the database as it was when the block was entered; no purge empties these surveys."""
        with self.reading() as connection:
            self.begin_snapshot(connection, surveys)
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @abstractmethod
    def begin_snapshot(self, connection: SqlConnection, surveys: Sequence[int]) -> None:
        """Begin to see the database as it is now, with the reports of these surveys for as long as that is seen."""

    @abstractmethod
    def finding_damage(self, connection: SqlConnection) -> AbstractContextManager[None]:
        """Turn the database's own errors about damage, and no others, into a `StoreDamagedError`."""

    def attempt(self, connection: SqlConnection) -> AbstractContextManager[None]:
        """Do the same, and let the connection's transaction, if there is one, go on afterwards."""
        return self.finding_damage(connection)

    def table(self, name: str, survey: int) -> str:
        """The name of a table of reports or ids: each survey has its own, so that all of it can be erased."""
        return f"{name}_{int(survey)}"

    def read_rows(
        self,
        connection: SqlConnection,
        name: str,
        survey: int,
        columns: str,
        where: str,
        parameters: Sequence[Any],
        limit: int = _NO_END,
        *,
        strict: bool = False,
    ) -> list[tuple[RowKey, Any]]:
        """Return the rows of a table of reports or ids by their place; None in place of a row that cannot be read.

        `where` may only use the columns of the primary key: damage elsewhere does not prevent finding the rows. If
        `strict`, a row that cannot be read is an error, which may end the transaction of the connection.
        """
        keys = ", ".join(KEYS[name])
        rest = f"FROM {self.table(name, survey)} WHERE survey = ? AND {where} ORDER BY {keys} LIMIT {limit}"
        width = len(KEYS[name])
        try:
            with (self.finding_damage if strict else self.attempt)(connection):
                found = connection.execute(f"SELECT {keys}, {columns} {rest}", (survey, *parameters)).fetchall()
                return [(tuple(row[:width]), tuple(map(_plain, row[width:]))) for row in found]
        except StoreDamagedError:
            if strict:
                raise
        with self.finding_damage(connection):
            places = [
                tuple(row) for row in connection.execute(f"SELECT {keys} {rest}", (survey, *parameters)).fetchall()
            ]
        return [(place, self._read_row(connection, name, survey, columns, place)) for place in places]

    def _read_row(self, connection: SqlConnection, name: str, survey: int, columns: str, place: RowKey) -> Any:
        marks = " AND ".join(f"{key} = ?" for key in KEYS[name])
        statement = f"SELECT {columns} FROM {self.table(name, survey)} WHERE survey = ? AND {marks}"  # noqa: S608
        try:
            with self.attempt(connection):
                row = connection.execute(statement, (survey, *place)).fetchone()
        except StoreDamagedError:
            return None
        return None if row is None else tuple(map(_plain, row))

    def chunk(self, survey: int, after: int, rows: int, until: int | None = None) -> Chunk | None:
        with self.reading() as connection:
            # first: what was committed before this is in the blocks that are read next
            sequence, purged = self._state(connection, survey)
            end = min(after + rows, sequence, sequence if until is None else until)
            if purged or end <= after:
                return None
            found = self._blocks_within(connection, survey, "count, checks, buckets, payloads", after, end)
            chunk = self._joined(survey, found, after, end)
            if chunk.missing and self._state(connection, survey)[1]:  # purged meanwhile
                return None
            return chunk

    def _joined(self, survey: int, found: Sequence[tuple[RowKey, Any]], after: int, end: int) -> Chunk:
        payloads, buckets, walk = [], [], BlockWalk(self, survey, after)
        for (last,), row in found:
            if walk.add(last, row, end):
                count, _, packed, data = row
                first, size = last - count, len(data) // count
                begin, stop = max(after, first) - first, min(end, last) - first
                if begin < stop:
                    payloads.append(data[begin * size : stop * size])
                    buckets += cut_buckets(packed, begin, stop)
        walk.finish(end)
        return Chunk(b"".join(payloads), end, tuple(buckets), walk.missing)

    def _blocks_within(
        self, connection: SqlConnection, survey: int, columns: str, after: int, end: int
    ) -> list[tuple[RowKey, Any]]:
        """The blocks with reports beyond `after` and up to `end`."""
        table = self.table("blocks", survey)
        upper = f"(SELECT min(last) FROM {table} WHERE survey = ? AND last >= ?)"  # noqa: S608
        where = f"last > ? AND last <= coalesce({upper}, {_NO_END})"
        return self.read_rows(connection, "blocks", survey, columns, where, (after, survey, end))

    def _state(self, connection: SqlConnection, survey: int) -> tuple[int, bool]:
        """The number of reports of a survey, and whether they are purged, or being purged."""
        sequence, purged = connection.execute(_STATE, (survey,)).fetchone() or (0, None)
        return sequence, purged is not None

    def buckets(self, survey: int, until: int) -> list[tuple[int, int]]:
        with self.reading() as connection:
            found = self._blocks_within(connection, survey, "count, checks, buckets", 0, until)
        pairs: Buckets = []
        for (last,), row in found:
            if row is not None and has_times(survey, last, *row):
                count, _, packed = row
                pairs += cut_buckets(packed, 0, min(until, last) - last + count)
        return pairs

    def file_problems(self) -> list[str]:
        """Return what the database itself finds wrong with its files, if it can look."""
        return []

    def missing(self, survey: int | None = None) -> int:
        return self.damage.reports(survey)

    def report_ids(self, survey: int) -> Iterator[bytes]:
        with self.snapshot() as connection:
            for (last,), row in self.read_rows(connection, "blocks", survey, "count, checks, ids", "last > ?", (0,)):
                if row is not None and has_ids(survey, last, *row):
                    yield from names_of(row[2])
            for (run, page), row in self.read_rows(connection, "runs", survey, "checks, data", "page > ?", (0,)):
                if row is not None and is_page(survey, run, page, *row):
                    yield from names_of(row[1])

    def stored_rows(self, connection: SqlConnection, survey: int, mark: int) -> int:
        statement = (
            "SELECT coalesce(sum(CASE WHEN last > ? THEN ? - last + count ELSE count END), 0)"  # noqa: S608
            f" FROM {self.table('blocks', survey)} WHERE survey = ? AND last - count < ?"
        )
        return int(connection.execute(statement, (mark, mark, survey, mark)).fetchone()[0])


class BlockWalk:
    """A walk through the blocks of a survey in their order, which counts the missing reports after `reached`.

    `start` is the number before the latest missing ones.
    """

    def __init__(self, reader: BlockReader, survey: int, reached: int = 0) -> None:
        self._reader, self._survey = reader, survey
        self.reached = self.start = reached
        self.missing = 0

    def add(self, last: int, row: Any, end: int = _NO_END) -> bool:
        """Take the next block: count, checks, buckets and payloads, or None. Return True if it is intact."""
        if row is None or not has_reports(self._survey, last, *row):
            return False
        self.finish(min(last - row[0], end))
        self.reached = max(self.reached, last)
        return True

    def finish(self, end: int) -> None:
        """Count the missing reports up to a number."""
        if self.reached < end:
            self._reader.damage.note_reports(self._survey, self.reached, end)
            self.missing, self.start, self.reached = self.missing + end - self.reached, self.reached, end


class Damage:
    """The damage that this process has met: ranges of missing reports and places of damaged ids, each logged once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[int, list[tuple[int, int]]] = {}  # by survey: ranges, from after the first to the second
        self._ids: set[tuple[int, str]] = set()

    def note_reports(self, survey: int, start: int, end: int) -> None:
        """Record that the reports after number `start` and up to `end` are damaged or missing."""
        with self._lock:
            known = self._reports.get(survey, [])
            joined = _joined([*known, (start, end)])
            self._reports[survey] = joined
        if joined != known:
            log("error", "damaged-reports", survey=survey, first=start + 1, last=end)

    def note_ids(self, survey: int, place: str) -> None:
        """Record that ids are damaged or missing."""
        with self._lock:
            known = (survey, place) in self._ids
            self._ids.add((survey, place))
        if not known:
            log("error", "damaged-ids", survey=survey, where=place)

    def reports(self, survey: int | None = None) -> int:
        """Return the number of stored reports that could not be read, of one survey or of all."""
        with self._lock:
            ranges = [pair for key, found in self._reports.items() if survey in (None, key) for pair in found]
        return sum(end - start for start, end in ranges)


def sum_block(survey: int, last: int, count: int, buckets: bytes, ids: bytes, payloads: bytes) -> bytes:
    """Return the three checksums of a block: of its coarse times, its ids and its payloads.

    They are separate because reading payloads must not require reading ids, and the other way round.

    >>> len(sum_block(1, 2, 2, bytes(16), bytes(32), bytes(8)))
    12
    """
    start = crc32(_PLACE.pack(survey, last, count))
    return _CHECKS.pack(crc32(buckets, start), crc32(ids, start), crc32(payloads, start))


def replace_ids(survey: int, last: int, count: int, checks: bytes, ids: bytes) -> bytes:
    """Return the checksums of a block after its ids were replaced; the others stay, right or wrong."""
    times, _, payloads = _CHECKS.unpack(checks)
    return _CHECKS.pack(times, crc32(ids, crc32(_PLACE.pack(survey, last, count))), payloads)


def has_times(survey: int, last: Any, count: Any, checks: Any, buckets: Any) -> bool:
    """Return True if the number, size and coarse times of a block are intact."""
    return _matches(0, survey, last, count, checks, buckets)


def has_ids(survey: int, last: Any, count: Any, checks: Any, ids: Any) -> bool:
    """Return True if the ids of a block are intact."""
    return _matches(1, survey, last, count, checks, ids)


def has_reports(survey: int, last: Any, count: Any, checks: Any, buckets: Any, payloads: Any) -> bool:
    """Return True if the coarse times and payloads of a block are intact."""
    return has_times(survey, last, count, checks, buckets) and _matches(2, survey, last, count, checks, payloads)


def page_checksum(survey: int, run: int, page: int, data: bytes) -> bytes:
    """Return the checksum of a page of a run of ids."""
    return crc32(data, crc32(_PLACE.pack(survey, run, page))).to_bytes(4, "little")


def is_page(survey: int, run: int, page: int, checks: Any, data: Any) -> bool:
    """Return True if a page of a run of ids is intact."""
    return isinstance(data, bytes) and checks == page_checksum(survey, run, page, data)


def pack_buckets(buckets: Sequence[tuple[int, int]]) -> bytes:
    """Coarse times of reports in a row, each with how many have it: as a block keeps them."""
    merged = [(bucket, sum(count for _, count in same)) for bucket, same in groupby(buckets, key=lambda pair: pair[0])]
    return b"".join(_BUCKET.pack(*pair) for pair in merged)


def unpack_buckets(packed: bytes) -> Buckets:
    """Return the coarse times of a block, each with its number of reports."""
    return list(_BUCKET.iter_unpack(packed))


def cut_buckets(packed: bytes, begin: int, stop: int) -> Buckets:
    """The coarse times of the reports from one place to another."""
    found: Buckets = []
    place = 0
    for bucket, count in _BUCKET.iter_unpack(packed):
        have = min(place + count, stop) - max(place, begin)
        if have > 0:
            found.append((bucket, have))
        place += count
    return found


def _matches(part: int, survey: int, last: Any, count: Any, checks: Any, data: Any) -> bool:
    # a damaged row may hold values of any type
    whole = isinstance(last, int) and isinstance(count, int) and isinstance(data, bytes) and isinstance(checks, bytes)
    if not whole or len(checks) != _CHECKS.size or not 0 < count <= last < 2**63:
        return False
    return bool(_CHECKS.unpack(checks)[part] == crc32(data, crc32(_PLACE.pack(survey, last, count))))


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview | bytearray) else value
