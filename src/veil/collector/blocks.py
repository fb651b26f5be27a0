"""Reports in SQL: a commit is one row, not one per report; ids are written in sorted runs and never all over an index.

A block holds the reports of a commit: their ids and payloads, end to end, and their coarse times. Once 65,536 reports
have come, their ids become a run (`seen`) and their payloads larger blocks without ids, in one transaction: from then
on nothing says which id sent which payload. Whether an id is there is decided within the transaction that would store
it, while the survey's counter is locked, against what the database holds at that moment. What is known of runs is read
before that transaction, and after it runs are made and merged (`upkeep`): neither may break it.
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
from veil.collector.merging import Merging, Rows, rows_of_run
from veil.collector.seen import Memory, Seen, Segment, names_of, sorted_names
from veil.collector.sql import Connection, SqlStore
from veil.collector.store import Chunk, Group, Phase, StoredSurvey
from veil.collector.upkeep import Upkeep
from veil.errors import StoreError
from veil.wire.frames import ID_BYTES

__all__ = ["Block", "BlockStore", "Old", "fold_blocks", "pack_buckets"]

_BLOCK_BYTES = 256 << 10
_STANDING = (
    "SELECT state, opens, closes, precision, sequence, indexed, folds FROM surveys JOIN counters ON survey = key"
    " WHERE key = ?"
)
_BUCKET = struct.Struct("<qq")
_FOLDED_BYTES = 16 << 20  # of payloads in one transaction
_SEGMENTS_AT_ONCE = 16  # some three megabytes

Buckets = list[tuple[int, int]]
Block = tuple[int, int, bytes, bytes, bytes]
"""Its last number, how many reports, their coarse times, ids and payloads."""


Old = Literal["update", "refuse", "keep"]
"""What to do with a database of an earlier version when it is opened."""


class _OutdatedError(Exception):
    """Runs were made or merged since a survey's were read."""


class BlockStore(SqlStore):
    """Appending, reading and folding of reports, for both databases."""

    version: int
    """Of its schema."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._appending = threading.Lock()
        self.folding, self.merging = Upkeep(), Upkeep()

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

    @property
    def failed_upkeep(self) -> int:  # runs that could not be made or merged
        return self.folding.failures + self.merging.failures

    def table(self, name: str, survey: int) -> str:
        """The name of a table of reports or ids: each survey has its own, so that all of it can be erased."""
        return f"{name}_{int(survey)}"

    def append(self, groups: Sequence[Group], now: int) -> list[int | Phase]:
        with self._appending:
            outcomes = self._stored(groups, now)
            for i, group in enumerate(groups):
                if isinstance(outcomes[i], int):
                    self._tend(group.survey, group.count)
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
                self._memory.trim()
                return [outcomes[i] for i in range(len(groups))]
            except _OutdatedError:
                for survey in surveys:
                    self._memory.of(survey).doubt()
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
        seen, table = self._memory.of(survey), self.table("runs", survey)
        listing = (
            f"SELECT run, page FROM {table} WHERE survey = ? AND page <= 0"  # noqa: S608
            f" AND run IN (SELECT run FROM {table} WHERE survey = ? AND page = 0)"
        )
        with self.snapshot() as connection:
            (folds,) = connection.execute("SELECT folds FROM counters WHERE survey = ?", (survey,)).fetchone()
            if folds == seen.loaded:
                return
            found = connection.execute(listing, (survey, survey)).fetchall()
            listed = [(run, page) for run, page in found]
            known = {run.number for run in seen.runs}
            missing = [place for place in listed if place[0] not in known and place not in seen.parts]
            for start in range(0, len(missing), _SEGMENTS_AT_ONCE):
                some = missing[start : start + _SEGMENTS_AT_ONCE]
                for place, data in self.read_pages(connection, survey, some):
                    seen.parts[place] = Segment.from_bytes(data) if data else None
        seen.adopt(listed, folds)

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

    def _tend(self, survey: int, reports: int) -> None:
        """After a commit of so many reports: make a run where there are enough, and merge as much as keeps up."""
        seen = self._memory.of(survey)
        try:
            if seen.is_full:
                self.folding.do(lambda: self.fold(survey))
            # an id is read, written and erased on two levels, some twice, because pages overlap
            owed = max(1, 8 * reports // seen_ids.PAGE)
            while owed > 0 and not seen.settled:
                done = self.merging.do(lambda: self.merge(survey))
                if done is None:
                    return
                owed -= done
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

    def merge(self, survey: int) -> int:
        """Merge some pages of a survey's runs, if enough of them are alike; how many pages."""
        with self.writing() as connection:
            _, seen = self._locked(connection, survey)
            if seen is None:
                return 1
            merging = Merging(self, connection, survey, seen)
            done = merging.step(self.merging.portion(seen_ids.SEGMENT_PAGES))
        seen.parts.update(merging.made)
        seen.settled = done is None
        if merging.is_over:
            before = seen.folds
            self._load(survey)
            if seen.loaded == before + 1:  # nobody else has changed anything: the latest ids are those that they were
                seen.folds = seen.loaded
        return done or 1

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
        ids = sorted_names(b"".join(ids for _, ids, _ in rows))
        self.write_run(connection, survey, self.new_run(connection, survey), rows_of_run(ids, seen.key))
        connection.execute("UPDATE counters SET indexed = ? WHERE survey = ?", (last, survey))
        self.note_folded(connection, survey)
        return True

    def new_run(self, connection: Connection, survey: int) -> int:
        """A number that no run has had."""
        statement = f"SELECT coalesce(max(run), 0) FROM {self.table('runs', survey)} WHERE survey = ?"  # noqa: S608
        return 1 + int(connection.execute(statement, (survey,)).fetchone()[0])

    def write_run(self, connection: Connection, survey: int, run: int, rows: Rows) -> None:
        """Keep pages of a run."""
        statement = f"INSERT INTO {self.table('runs', survey)} (survey, run, page, data) VALUES (?, ?, ?, ?)"  # noqa: S608
        connection.executemany(statement, [(survey, run, page, data) for page, data in rows])

    def note_folded(self, connection: Connection, survey: int) -> None:
        """A survey's runs are others than before: whoever knows them reads them again."""
        connection.execute("UPDATE counters SET folds = folds + 1 WHERE survey = ?", (survey,))

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
        runs = self.table("runs", survey)
        whole = f"SELECT run FROM {runs} WHERE survey = ? AND page = 0"  # noqa: S608
        with self.snapshot() as connection:
            for statement in (
                f"SELECT ids FROM {self.table('blocks', survey)} WHERE survey = ? ORDER BY last",  # noqa: S608
                f"SELECT data FROM {runs} WHERE page > 0 AND run IN ({whole})",  # noqa: S608
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
