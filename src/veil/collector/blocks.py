"""Reports in SQL: a commit is one row, not one per report; ids are written in sorted runs and never all over an index.

A block holds the reports of a commit: their ids and payloads, end to end, and their coarse times. Once 65,536 reports
have come, their ids become a run (`seen`) and their payloads larger blocks without ids, in one transaction: from then
on nothing says which id sent which payload. Whether an id is there is decided within the transaction that would store
it, while the survey's counter is locked, against what the database holds at that moment. What is known of runs is read
before that transaction, and after it runs are made (`upkeep`): neither may break it.
"""

from __future__ import annotations

import struct
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from veil.collector import seen as seen_ids
from veil.collector.seen import Head, Memory, Seen, cut_into_runs, names_of, pages_of, sorted_names
from veil.collector.sql import Connection, SqlStore
from veil.collector.store import Chunk, Group, Phase, StoredSurvey
from veil.collector.upkeep import Upkeep
from veil.errors import StoreError
from veil.wire.frames import ID_BYTES

__all__ = ["Block", "BlockStore", "Old", "fold_blocks", "pack_buckets"]

_BLOCK_BYTES = 256 << 10
_STANDING = (
    "SELECT state, opens, closes, precision, sequence, indexed, changes FROM surveys JOIN counters ON survey = key"
    " WHERE key = ?"
)
_BUCKET = struct.Struct("<qq")
_FOLDED_BYTES = 16 << 20  # of payloads in one transaction
_HEAD = 0  # the page of a run that says what is known of it
_HEADS_AT_ONCE = 16  # some four megabytes

Buckets = list[tuple[int, int]]
Block = tuple[int, int, bytes, bytes, bytes]
"""Its last number, how many reports, their coarse times, ids and payloads."""


Old = Literal["update", "refuse", "keep"]
"""What to do with a database of an earlier version when it is opened."""


class _OutdatedError(Exception):
    """Runs were made since a survey's were read."""


class BlockStore(SqlStore):
    """Appending, reading and folding of reports, for both databases."""

    version: int
    """Of its schema."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._appending = threading.Lock()
        self.folding = Upkeep()

    @contextmanager
    def snapshot(self, surveys: Sequence[int] = ()) -> Iterator[Connection]:
        """A connection that sees the database as it was when the block was entered; no purge empties these surveys."""
        with self.reading() as connection:
            self.begin_snapshot(connection, surveys)
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @abstractmethod
    def begin_snapshot(self, connection: Connection, surveys: Sequence[int]) -> None:
        """Begin to see the database as it is now, with the reports of these surveys for as long as that is seen."""

    @abstractmethod
    def copy_old(self, path: Path) -> int:
        """Copy a database of an earlier version to a new file, as it is; how many reports it has."""

    @abstractmethod
    def guard_audit(self, connection: Connection) -> None:
        """See to it that the audit log is only added to."""

    @abstractmethod
    def columns(self, connection: Connection, table: str) -> list[str]:
        """The names of a table's columns."""

    def insert_rows(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
        """Put rows of another database into a table, with their keys."""
        names, marks = ", ".join(columns), ", ".join("?" for _ in columns)
        statement = f"INSERT INTO {table} ({names}){self.own_keys} VALUES ({marks})"  # noqa: S608
        connection.executemany(statement, [tuple(row) for row in rows])

    own_keys = ""
    """What lets a row bring its own key."""

    def settle_copy(self, connection: Connection) -> None:
        """After rows were copied: new ones get keys beyond theirs."""

    def remember(self, megabytes: int) -> None:
        """Keep so much in memory of the ids of the surveys that were used last."""
        self._memory.most_bytes = megabytes << 20

    @property
    def failed_upkeep(self) -> int:  # runs that could not be made
        return self.folding.failures

    def table(self, name: str, survey: int) -> str:
        """The name of a table of reports or ids: each survey has its own, so that all of it can be erased."""
        return f"{name}_{int(survey)}"

    def append(self, groups: Sequence[Group], now: int) -> list[int | Phase]:
        with self._appending:
            outcomes = self._stored(groups, now)
            for i, group in enumerate(groups):
                if isinstance(outcomes[i], int):
                    self._tend(group.survey)
            self._memory.trim()  # not before: whoever is forgotten has no ids that could become a run
            return outcomes

    def _stored(self, groups: Sequence[Group], now: int) -> list[int | Phase]:
        surveys = sorted({group.survey for group in groups})
        for survey in surveys:
            if self._memory.of(survey).loaded < 0:
                self._load(survey)
        while True:
            outcomes: dict[int, int | Phase] = {}
            try:
                with self.writing() as connection:
                    # Sequence numbers must grow in the order of commits, or a tally that has counted up to k would miss
                    # a number below k that is committed later: the lock is held from taking them until the commit.
                    # Taken in one order, locks cannot block each other.
                    for i in sorted(range(len(groups)), key=lambda i: groups[i].survey):
                        outcomes[i] = self._append(connection, groups[i], now)
                return [outcomes[i] for i in range(len(groups))]
            except _OutdatedError:
                for survey in surveys:  # all of them before any is read: that may fail
                    self._memory.of(survey).doubt()
                for survey in surveys:
                    self._load(survey)
            except BaseException:  # nobody knows what was committed: look again
                for survey in surveys:
                    self._memory.of(survey).doubt()
                raise

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
            block = (seen.mark, new, pack_buckets([(survey.bucket(now), new)]), ids, payloads)
            self.insert_blocks(connection, group.survey, [block])
            connection.execute("UPDATE counters SET sequence = ? WHERE survey = ?", (seen.mark, group.survey))
        return new

    def _current(self, connection: Connection, survey: int, sequence: int, indexed: int, folds: int) -> Seen:
        """What is known of a survey's ids, brought up to what the database holds now; its runs must have been read."""
        seen = self._memory.of(survey)
        if seen.loaded != folds:
            raise _OutdatedError
        if seen.folds != folds:
            seen.latest, seen.mark, seen.folds = set(), indexed, folds
        if seen.mark != sequence:
            statement = f"SELECT ids FROM {self.table('blocks', survey)} WHERE survey = ? AND last > ?"  # noqa: S608
            for (ids,) in connection.execute(statement, (survey, seen.mark)).fetchall():
                seen.latest.update(names_of(bytes(ids)))
            seen.mark = sequence
        return seen

    def _load(self, survey: int) -> None:
        """Read what is known of a survey's runs, outside of any transaction that somebody waits for.

        A large survey has hundreds of megabytes of filters: what was read before a connection broke is not read again.
        """
        seen = self._memory.of(survey)
        listing = f"SELECT run FROM {self.table('runs', survey)} WHERE survey = ? AND page = ?"  # noqa: S608
        with self.snapshot() as connection:
            (folds,) = connection.execute("SELECT changes FROM counters WHERE survey = ?", (survey,)).fetchone()
            if folds == seen.loaded:
                return
            listed = {run for (run,) in connection.execute(listing, (survey, _HEAD)).fetchall()}
            if seen.runs - listed:
                seen.forget()
            missing = [(run, _HEAD) for run in sorted(listed - seen.runs)]
            for start in range(0, len(missing), _HEADS_AT_ONCE):
                for (run, _), data in self.read_pages(connection, survey, missing[start : start + _HEADS_AT_ONCE]):
                    seen.add(run, Head.from_bytes(data))
        seen.loaded = folds

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
            row = connection.execute(statement, (survey, *place)).fetchone()
            if row is None:
                raise StoreError("the database lacks a page of report ids")
            yield place, bytes(row[0])

    def insert_blocks(self, connection: Connection, survey: int, blocks: Iterable[Block]) -> None:
        """Keep blocks."""
        statement = (
            f"INSERT INTO {self.table('blocks', survey)} (survey, last, count, buckets, ids, payloads)"  # noqa: S608
            " VALUES (?, ?, ?, ?, ?, ?)"
        )
        connection.executemany(statement, [(survey, *block) for block in blocks])

    # -- from blocks to runs ---------------------------------------------------------------------------------------

    def _tend(self, survey: int) -> None:
        """After a commit: make a run where there are enough reports."""
        seen = self._memory.of(survey)
        if seen.is_full:
            try:
                self.folding.do(lambda: self.fold(survey))
            except _OutdatedError:  # another collector was quicker: the next commit reads what it made
                seen.doubt()

    def fold(self, survey: int) -> None:
        """Make a run of the latest ids, and larger blocks of their payloads, if there are enough of them."""
        with self.writing() as connection:
            indexed, seen = self._locked(connection, survey)
            folded = seen is not None and self._fold(connection, survey, seen, indexed)
        if folded and seen is not None:
            seen.latest = set()
            seen.doubt()
            self._load(survey)

    def _locked(self, connection: Connection, survey: int) -> tuple[int, Seen | None]:
        """Up to which number ids are in runs, and what is known of them; None where its reports may be being erased."""
        self.lock(connection, survey)
        state, _, _, _, *counters = connection.execute(_STANDING, (survey,)).fetchone()
        return counters[1], self._current(connection, survey, *counters) if state == "open" else None

    def _fold(self, connection: Connection, survey: int, seen: Seen, indexed: int) -> bool:
        if seen.mark - indexed < seen_ids.FOLDED:
            return False
        table, last, size = self.table("blocks", survey), indexed, 0
        listed = f"SELECT last, length(payloads) FROM {table} WHERE survey = ? AND last > ? ORDER BY last"  # noqa: S608
        for number, each in connection.execute(listed, (survey, indexed)).fetchall():
            last, size = number, size + each
            enough = last - indexed >= self.folding.portion(seen_ids.FOLDED)
            if enough or size >= self.folding.portion(_FOLDED_BYTES):
                break
        some = "WHERE survey = ? AND last > ? AND last <= ?"
        statement = f"SELECT buckets, ids, payloads FROM {table} {some} ORDER BY last"  # noqa: S608
        rows = [tuple(map(bytes, row)) for row in connection.execute(statement, (survey, indexed, last)).fetchall()]
        connection.execute(f"DELETE FROM {table} {some}", (survey, indexed, last))  # noqa: S608
        self.insert_blocks(connection, survey, fold_blocks(rows, indexed))
        self.write_runs(connection, survey, b"".join(ids for _, ids, _ in rows), seen.key)
        connection.execute("UPDATE counters SET indexed = ? WHERE survey = ?", (last, survey))
        self.note_folded(connection, survey)
        return True

    def write_runs(self, connection: Connection, survey: int, ids: bytes, key: bytes) -> None:
        """Keep ids as a run, or as several where they are many; the key is that of the survey's filters."""
        table = self.table("runs", survey)
        latest = f"SELECT coalesce(max(run), 0) FROM {table} WHERE survey = ?"  # noqa: S608
        (last,) = connection.execute(latest, (survey,)).fetchone()
        statement = f"INSERT INTO {table} (survey, run, page, data) VALUES (?, ?, ?, ?)"  # noqa: S608
        for run, some in enumerate(cut_into_runs(ids), last + 1):
            names = sorted_names(some)
            rows = [(_HEAD, Head.of(names, key).to_bytes()), *enumerate(pages_of(names), 1)]
            connection.executemany(statement, [(survey, run, page, data) for page, data in rows])

    def note_folded(self, connection: Connection, survey: int) -> None:
        """A survey has other runs than before: whoever knows them reads the new ones."""
        connection.execute("UPDATE counters SET changes = changes + 1 WHERE survey = ?", (survey,))

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


def fold_blocks(rows: Sequence[tuple[bytes, ...]], start: int) -> Iterator[Block]:
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
