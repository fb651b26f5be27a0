"""Reports in SQL: a commit is one row, not one per report; ids are written in sorted runs and never all over an index.

A block holds the reports of a commit: their ids and payloads, end to end, and their coarse times. Once 65,536 reports
have come, their ids become a run (`seen`) and their payloads larger blocks without ids, in one transaction: from then
on nothing says which id sent which payload. Whether an id is there is decided within the transaction that would store
it, while the survey's counter is locked, against what the database holds at that moment.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import groupby
from typing import Any

from veil.collector import seen as seen_ids
from veil.collector.seen import Memory, Run, Seen, names_of, pages_of, sorted_names
from veil.collector.sql import Connection, SqlStore
from veil.collector.store import Chunk, Group, Phase, StoredSurvey
from veil.errors import StoreError
from veil.wire.frames import ID_BYTES

__all__ = ["BlockStore", "fold_blocks", "pack_buckets"]

_BLOCK_BYTES = 256 << 10
_STANDING = (
    "SELECT state, opens, closes, precision, sequence, indexed, folds FROM surveys JOIN counters ON survey = key"
    " WHERE key = ?"
)
_BUCKET = struct.Struct("<qq")

Buckets = list[tuple[int, int]]


class BlockStore(SqlStore):
    """Appending, reading and folding of reports, for both databases."""

    def __init__(self) -> None:
        self._memory = Memory()

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Connection]:
        """A connection that sees the database as it was when the block was entered."""

    @abstractmethod
    def guard_audit(self, connection: Connection) -> None:
        """See to it that the audit log is only added to."""

    @abstractmethod
    def columns(self, connection: Connection, table: str) -> list[str]:
        """The names of a table's columns."""

    def insert_rows(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
        """Put rows of another database into a table, with their keys."""
        names, marks = ", ".join(columns), ", ".join("?" for _ in columns)
        for row in rows:
            connection.execute(f"INSERT INTO {table} ({names}){self.own_keys} VALUES ({marks})", tuple(row))  # noqa: S608

    own_keys = ""
    """What lets a row bring its own key."""

    def settle_copy(self, connection: Connection) -> None:
        """After rows were copied: new ones get keys beyond theirs."""

    def table(self, name: str, survey: int) -> str:
        """The name of a table of reports or ids: each survey has its own, so that all of it can be erased."""
        return f"{name}_{int(survey)}"

    def append(self, groups: Sequence[Group], now: int) -> list[int | Phase]:
        outcomes: dict[int, int | Phase] = {}
        try:
            with self.writing() as connection:
                # Sequence numbers must grow in the order of commits, or a tally that has counted up to k would miss a
                # number below k that is committed later: the lock is held from taking them until the commit. Taken in
                # one order, locks cannot block each other.
                for i in sorted(range(len(groups)), key=lambda i: groups[i].survey):
                    outcomes[i] = self._append(connection, groups[i], now)
                full = [key for key in {group.survey for group in groups} if self._memory.of(key).is_full]
                self._memory.trim()
        except BaseException:  # nobody knows what was committed: look again
            for group in groups:
                self._memory.forget(group.survey)
            raise
        for survey in full:
            with suppress(StoreError):  # what was stored is stored; the next commit tries again
                self.fold(survey)
        return [outcomes[i] for i in range(len(groups))]

    def _append(self, connection: Connection, group: Group, now: int) -> int | Phase:
        self.lock(connection, group.survey)
        state, opens, closes, precision, *counters = connection.execute(_STANDING, (group.survey,)).fetchone()
        survey = StoredSurvey(group.survey, "", b"", state, opens, closes, precision, 1)
        if (phase := survey.phase(now)) != "open":
            return phase
        seen = self._current(connection, group.survey, *counters)
        names = names_of(group.ids)
        old = self._known(connection, group.survey, seen, names, group.ids)
        ids, payloads = _fresh(group, names, old)
        new = len(ids) // ID_BYTES
        if new:
            seen.mark += new
            seen.latest.update(names_of(ids))
            block = (group.survey, seen.mark, new, pack_buckets([(survey.bucket(now), new)]), ids, payloads)
            self.insert_block(connection, *block)
            connection.execute("UPDATE counters SET sequence = ? WHERE survey = ?", (seen.mark, group.survey))
        return new

    def _current(self, connection: Connection, survey: int, sequence: int, indexed: int, folds: int) -> Seen:
        """What is known of a survey's ids, brought up to what the database holds now."""
        seen = self._memory.of(survey)
        if seen.folds != folds:
            self._read_runs(connection, survey, seen)
            seen.latest, seen.mark, seen.folds = set(), indexed, folds
        if seen.mark != sequence:
            statement = f"SELECT ids FROM {self.table('blocks', survey)} WHERE survey = ? AND last > ?"  # noqa: S608
            for (ids,) in connection.execute(statement, (survey, seen.mark)).fetchall():
                seen.latest.update(names_of(bytes(ids)))
            seen.mark = sequence
        return seen

    def _read_runs(self, connection: Connection, survey: int, seen: Seen) -> None:
        table, known = self.table("runs", survey), {run.number: run for run in seen.runs}
        listed = connection.execute(f"SELECT run FROM {table} WHERE survey = ? AND page = 0 ORDER BY run", (survey,))  # noqa: S608
        seen.runs = []
        for (number,) in listed.fetchall():
            if number not in known:
                statement = f"SELECT data FROM {table} WHERE survey = ? AND run = ? AND page = 0"  # noqa: S608
                data = connection.execute(statement, (survey, number)).fetchone()[0]
                known[number] = Run.from_bytes(number, bytes(data))
            seen.runs.append(known[number])

    def _known(self, connection: Connection, survey: int, seen: Seen, names: Sequence[bytes], ids: bytes) -> set[bytes]:
        """Those of the ids that the survey has."""
        found = seen.latest.intersection(names)
        suspects = seen.suspects(names, ids)
        for place, page in self.read_pages(connection, survey, list(suspects)):
            found.update(name for name in suspects[place] if _stands_in(page, name))
        return found

    def read_pages(
        self, connection: Connection, survey: int, places: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], bytes]]:
        """The pages at these places of a survey's runs: run and number."""
        statement = f"SELECT data FROM {self.table('runs', survey)} WHERE survey = ? AND run = ? AND page = ?"  # noqa: S608
        for place in places:
            yield place, bytes(connection.execute(statement, (survey, *place)).fetchone()[0])

    def insert_block(self, connection: Connection, survey: int, *block: Any) -> None:
        """Keep a block: its last number, how many reports, their coarse times, ids and payloads."""
        statement = (
            f"INSERT INTO {self.table('blocks', survey)} (survey, last, count, buckets, ids, payloads)"  # noqa: S608
            " VALUES (?, ?, ?, ?, ?, ?)"
        )
        connection.execute(statement, (survey, *block))

    # -- from blocks to runs ---------------------------------------------------------------------------------------

    def fold(self, survey: int) -> None:
        """Make a run of the latest ids, and larger blocks of their payloads; and one large run of many small ones."""
        with self.writing() as connection:
            self.lock(connection, survey)
            *_, sequence, indexed, folds = connection.execute(_STANDING, (survey,)).fetchone()
            if sequence - indexed >= seen_ids.FOLDED:
                seen = self._current(connection, survey, sequence, indexed, folds)
                self._fold(connection, survey, seen, indexed, sequence)

    def _fold(self, connection: Connection, survey: int, seen: Seen, indexed: int, sequence: int) -> None:
        table = self.table("blocks", survey)
        statement = f"SELECT buckets, ids, payloads FROM {table} WHERE survey = ? AND last > ? ORDER BY last"  # noqa: S608
        rows = [tuple(map(bytes, row)) for row in connection.execute(statement, (survey, indexed)).fetchall()]
        connection.execute(f"DELETE FROM {table} WHERE survey = ? AND last > ?", (survey, indexed))  # noqa: S608
        for block in fold_blocks(rows, indexed):
            self.insert_block(connection, survey, *block)
        ids = sorted_names(b"".join(ids for _, ids, _ in rows))
        number = 1 + max((run.number for run in seen.runs), default=0)
        small = [run for run in seen.runs if not run.is_whole]
        if len(small) + 1 >= seen_ids.MERGED:
            ids = sorted_names(ids + b"".join(self._pages(connection, survey, run.number) for run in small))
            for run in small:
                statement = f"DELETE FROM {self.table('runs', survey)} WHERE survey = ? AND run = ?"  # noqa: S608
                connection.execute(statement, (survey, run.number))
        self.write_run(connection, survey, Run.of(number, ids, seen.key), ids)
        statement = "UPDATE counters SET indexed = ?, folds = folds + 1 WHERE survey = ?"
        connection.execute(statement, (sequence, survey))

    def write_run(self, connection: Connection, survey: int, run: Run, ids: bytes) -> None:
        """Keep a run: its head as page 0, then its ids."""
        statement = f"INSERT INTO {self.table('runs', survey)} (survey, run, page, data) VALUES (?, ?, ?, ?)"  # noqa: S608
        for i, data in enumerate((run.to_bytes(), *pages_of(ids))):
            connection.execute(statement, (survey, run.number, i, data))

    def _pages(self, connection: Connection, survey: int, run: int) -> bytes:
        statement = f"SELECT data FROM {self.table('runs', survey)} WHERE survey = ? AND run = ? AND page > 0"  # noqa: S608
        return b"".join(bytes(data) for (data,) in connection.execute(statement, (survey, run)).fetchall())

    # -- reading ---------------------------------------------------------------------------------------------------

    def chunk(self, survey: int, after: int, rows: int, until: int | None = None) -> Chunk | None:
        end = after + rows if until is None else min(after + rows, until)
        if end <= after:
            return None
        statement = (
            f"SELECT last, count, buckets, payloads FROM {self.table('blocks', survey)}"  # noqa: S608
            " WHERE survey = ? AND last > ? AND last - count < ? ORDER BY last"
        )
        with self.reading() as connection:
            found = connection.execute(statement, (survey, after, end)).fetchall()
        payloads, buckets, reached = [], [], after
        for last, count, packed, data in found:
            first, size = last - count, len(data) // count
            begin, stop = max(after, first) - first, min(end, last) - first
            payloads.append(bytes(data[begin * size : stop * size]))
            buckets += _cut(packed, begin, stop)
            reached = first + stop
        return Chunk(b"".join(payloads), reached, tuple(buckets)) if payloads else None

    def buckets(self, survey: int, until: int) -> list[tuple[int, int]]:
        statement = (
            f"SELECT last, count, buckets FROM {self.table('blocks', survey)}"  # noqa: S608
            " WHERE survey = ? AND last - count < ? ORDER BY last"
        )
        with self.reading() as connection:
            found = connection.execute(statement, (survey, until)).fetchall()
        return [pair for last, count, packed in found for pair in _cut(packed, 0, min(until, last) - last + count)]

    def report_ids(self, survey: int) -> Iterator[bytes]:
        with self.snapshot() as connection:
            for statement in (
                f"SELECT ids FROM {self.table('blocks', survey)} WHERE survey = ? ORDER BY last",  # noqa: S608
                f"SELECT data FROM {self.table('runs', survey)} WHERE survey = ? AND page > 0",  # noqa: S608
            ):
                for (ids,) in connection.execute(statement, (survey,)).fetchall():
                    yield from names_of(bytes(ids))

    def stored_rows(self, connection: Connection, survey: int, mark: int) -> int:
        statement = (
            "SELECT coalesce(sum(CASE WHEN last > ? THEN ? - last + count ELSE count END), 0)"  # noqa: S608
            f" FROM {self.table('blocks', survey)} WHERE survey = ? AND last - count < ?"
        )
        return int(connection.execute(statement, (mark, mark, survey, mark)).fetchone()[0])


def fold_blocks(rows: Sequence[tuple[bytes, ...]], start: int) -> Iterator[tuple[int, int, bytes, bytes, bytes]]:
    """Larger blocks of the same reports in the same order, without their ids; `start` is the number before them."""
    payloads = b"".join(data for _, _, data in rows)
    buckets: Buckets = [bucket for packed, _, _ in rows for bucket in _BUCKET.iter_unpack(packed)]
    total = sum(count for _, count in buckets)
    size = len(payloads) // total
    whole = pack_buckets(buckets)
    each = max(1, _BLOCK_BYTES // size)
    for begin in range(0, total, each):
        stop = min(begin + each, total)
        packed = pack_buckets(_cut(whole, begin, stop))
        yield start + stop, stop - begin, packed, b"", payloads[begin * size : stop * size]


def pack_buckets(buckets: Sequence[tuple[int, int]]) -> bytes:
    """Coarse times of reports in a row, each with how many have it: as a block keeps them."""
    merged = [(bucket, sum(count for _, count in same)) for bucket, same in groupby(buckets, key=lambda pair: pair[0])]
    return b"".join(_BUCKET.pack(*pair) for pair in merged)


def _cut(packed: bytes, begin: int, stop: int) -> Buckets:
    """The coarse times of the reports from one place to another."""
    found: Buckets = []
    place = 0
    for bucket, count in _BUCKET.iter_unpack(packed):
        have = min(place + count, stop) - max(place, begin)
        if have > 0:
            found.append((bucket, have))
        place += count
    return found


def _stands_in(page: bytes, name: bytes) -> bool:
    """Whether an id is one of those in a page: it stands at a multiple of its length."""
    place = page.find(name)
    while place >= 0 and place % ID_BYTES:
        place = page.find(name, place + 1)
    return place >= 0


def _fresh(group: Group, names: Sequence[bytes], old: set[bytes]) -> tuple[bytes, bytes]:
    """The ids and payloads of a group without those that are there; of the same id twice, the first."""
    if not old and len(set(names)) == len(names):
        return group.ids, group.payloads
    size, known, places = len(group.payloads) // group.count, set(old), []
    for i, name in enumerate(names):
        if name not in known:
            known.add(name)
            places.append(i)
    payloads = b"".join(group.payloads[size * i : size * (i + 1)] for i in places)
    return b"".join(names[i] for i in places), payloads
