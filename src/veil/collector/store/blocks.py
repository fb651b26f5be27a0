"""Reports in SQL: a commit is one row, and ids are written in sorted runs instead of an index.

A block holds the reports of a commit: their ids and payloads, end to end, and their coarse times. Once 65,536 reports
have come, one transaction moves their ids to a run (`seen`) and their payloads to larger blocks without ids: from then
on nothing links an id with its payload. With fewer reports that is done every hour, and when a survey closes.
Whether an id is known is decided within the transaction that would store it, while the survey's counter is locked,
against what the database holds at that moment. Runs are read before that transaction and made after it
(`timing.Upkeep`): neither may break it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from veil.collector.store import seen as seen_ids
from veil.collector.store.base import Group, StoredSurvey, SurveyPhase
from veil.collector.store.block_reading import (
    Block,
    BlockReader,
    Buckets,
    cut_buckets,
    has_ids,
    has_reports,
    is_page,
    pack_buckets,
    page_checksum,
    replace_ids,
    sum_block,
    unpack_buckets,
)
from veil.collector.store.seen import RunHead, SeenIds, SeenIdsCache, cut_into_runs, names_of, pages_of, sorted_names
from veil.collector.store.sql import SqlConnection
from veil.collector.store.timing import Upkeep
from veil.errors import StoreDamagedError, StoreError
from veil.wire.frames import ID_BYTES

_BLOCK_BYTES = 256 << 10
_STANDING = (
    "SELECT task, state, opens, closes, ended, precision, sequence, indexed, edition FROM surveys"
    " JOIN counters ON survey = key WHERE key = ?"
)
_UNFOLDED = (
    "SELECT indexed FROM surveys JOIN counters ON survey = key"
    " WHERE sequence > indexed AND purged IS NULL AND purging IS NULL"
)
_FOLDED_BYTES = 16 << 20  # of payloads in one transaction
_HEAD = 0  # the page of a run that says what is known of it
_HEADS_AT_ONCE = 16  # some four megabytes

Outcome = int | SurveyPhase | StoreDamagedError
OldSchema = Literal["update", "refuse", "keep"]
"""What to do with a database of an earlier schema when it is opened."""


class _OutdatedError(Exception):
    """Runs were made since a survey's were read."""


class _DamagedGroupError(Exception):
    """A group cannot be stored because of damage in its survey."""

    def __init__(self, index: int, problem: StoreDamagedError) -> None:
        self.index, self.problem = index, problem


class BlockStore(BlockReader):
    """A store that can append and fold reports, for both databases."""

    version: int
    """The number of its schema."""

    def __init__(self) -> None:
        super().__init__()
        self._memory = SeenIdsCache()
        self._appending = threading.Lock()
        self._unfoldable: set[int] = set()
        self.folding = Upkeep()

    @abstractmethod
    def copy_old(self, path: Path) -> int:
        """Copy a database of an earlier schema to a new file, as it is, and return the number of reports."""

    @abstractmethod
    def guard_audit(self, connection: SqlConnection) -> None:
        """Let the database refuse to change or delete audit entries."""

    @abstractmethod
    def columns(self, connection: SqlConnection, table: str) -> list[str]:
        """The names of a table's columns."""

    def insert_rows(self, connection: SqlConnection, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
        """Put rows of another database into a table, with their keys."""
        names, marks = ", ".join(columns), ", ".join("?" for _ in columns)
        statement = f"INSERT INTO {table} ({names}){self.own_keys} VALUES ({marks})"  # noqa: S608
        connection.executemany(statement, [tuple(row) for row in rows])

    own_keys = ""
    """What lets a row bring its own key."""

    def settle_copy(self, connection: SqlConnection) -> None:
        """After rows were copied: new ones get keys beyond theirs."""

    def remember(self, megabytes: int) -> None:
        """Keep so much in memory of the ids of the surveys that were used last."""
        self._memory.most_bytes = megabytes << 20

    @property
    def failed_upkeep(self) -> int:  # runs that could not be made
        return self.folding.failures

    def append(self, groups: Sequence[Group], now: int) -> list[Outcome]:
        with self._appending:
            outcomes = self._stored(groups, now)
            for i, group in enumerate(groups):
                if isinstance(outcomes[i], int):
                    self._tend(group.survey)
            self._memory.trim()  # not before: whoever is forgotten has no ids that could become a run
            return outcomes

    def _stored(self, groups: Sequence[Group], now: int) -> list[Outcome]:
        surveys = sorted({group.survey for group in groups})
        failed = self._load_all([survey for survey in surveys if self._memory.of(survey).loaded < 0])
        outcomes: dict[int, Outcome] = {
            i: failed[group.survey] for i, group in enumerate(groups) if group.survey in failed
        }
        while len(outcomes) < len(groups):
            stored: dict[int, Outcome] = {}
            i = -1
            # Taken in one order, the locks of surveys cannot block each other.
            pending = sorted((i for i in range(len(groups)) if i not in outcomes), key=lambda i: groups[i].survey)
            try:
                with self.writing() as connection:
                    # Sequence numbers must grow in the order of commits, or a tally that has counted up to k would miss
                    # a number below k that is committed later: the lock is held from taking them until the commit.
                    try:
                        with self.finding_damage(connection):
                            for i in pending:
                                stored[i] = self._append(connection, groups[i], now)
                    except StoreDamagedError as problem:
                        raise _DamagedGroupError(i, problem) from None
                outcomes |= stored
            except _DamagedGroupError as damaged:  # all is undone: the other groups are stored without it
                outcomes[damaged.index] = damaged.problem
                self._doubt(surveys)
            except _OutdatedError:
                self._doubt(surveys)  # all of them before any is read: that may fail
                failed = self._load_all(surveys)
                outcomes |= {i: failed[group.survey] for i, group in enumerate(groups) if group.survey in failed}
            except BaseException:  # nobody knows what was committed: look again
                self._doubt(surveys)
                raise
        return [outcomes[i] for i in range(len(groups))]

    def _doubt(self, surveys: Sequence[int]) -> None:
        for survey in surveys:
            self._memory.of(survey).doubt()

    def _load_all(self, surveys: Sequence[int]) -> dict[int, StoreDamagedError]:
        """Read what is known of the runs of several surveys; return the errors of those whose runs are damaged."""
        failed: dict[int, StoreDamagedError] = {}
        for survey in surveys:
            try:
                self._load(survey)
            except StoreDamagedError as problem:
                failed[survey] = problem
        return failed

    def _append(self, connection: SqlConnection, group: Group, now: int) -> int | SurveyPhase:
        self.lock(connection, group.survey)
        found = connection.execute(_STANDING, (group.survey,)).fetchone()
        if found is None or (
            group.task and found[0] != group.task
        ):  # another server took over, which lacks this survey
            return "draft"
        _, state, opens, closes, ended, precision, *counters = found
        survey = StoredSurvey(group.survey, "", b"", state, opens, closes, precision, 1, ended=ended)
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

    def _current(self, connection: SqlConnection, survey: int, sequence: int, indexed: int, folds: int) -> SeenIds:
        """What is known of a survey's ids, brought up to what the database holds now; its runs must have been read."""
        seen = self._memory.of(survey)
        if seen.loaded != folds or seen.epoch != self.epoch:
            raise _OutdatedError
        if seen.folds != folds:
            seen.latest, seen.mark, seen.folds = set(), indexed, folds
        if seen.mark != sequence:
            latest: set[bytes] = set()
            found = self.read_rows(
                connection, "blocks", survey, "count, checks, ids", "last > ?", (seen.mark,), strict=True
            )
            reached = seen.mark
            for (last,), row in found:
                if row is None or last - row[0] != reached or not has_ids(survey, last, *row):
                    raise self._damaged(survey, f"block {last}")
                latest.update(names_of(row[2]))
                reached = last
            if reached != sequence:
                raise self._damaged(survey, f"block {sequence}")
            seen.latest |= latest
            seen.mark = sequence
        return seen

    def _damaged(self, survey: int, place: str) -> StoreDamagedError:
        """Record damage in a survey's ids, and return the error that names it."""
        self.damage.note_ids(survey, place)
        return StoreDamagedError(f"survey {survey}: the ids in {place} are damaged or missing (see veil check)")

    def _load(self, survey: int) -> None:
        """Read what is known of a survey's runs, outside of any transaction that somebody waits for.

        A large survey has hundreds of megabytes of filters: what was read before a connection broke is not read again.
        """
        seen = self._memory.of(survey)
        listing = f"SELECT run FROM {self.table('runs', survey)} WHERE survey = ? AND page = ?"  # noqa: S608
        standing = "SELECT edition, indexed, state FROM surveys JOIN counters ON survey = key WHERE key = ?"
        with self.steady() as epoch, self.snapshot() as connection, self.finding_damage(connection):
            if seen.epoch != epoch:  # what is known may be ahead of what this server has
                seen.doubt()
                seen.forget()
                seen.epoch = epoch
            folds, indexed, state = connection.execute(standing, (survey,)).fetchone() or (0, 0, "draft")
            if folds == seen.loaded:
                return
            listed = {run for (run,) in connection.execute(listing, (survey, _HEAD)).fetchall()}
            if seen.loaded < 0 and state == "open":  # of others the ids may be half purged
                listed |= self._runs_with_ids(connection, survey, indexed)
            if seen.runs.isdisjoint(listed):
                seen.forget()
            seen.drop(seen.runs - listed)
            missing = sorted(listed - seen.runs)
            for start in range(0, len(missing), _HEADS_AT_ONCE):
                self._load_heads(connection, survey, seen, missing[start : start + _HEADS_AT_ONCE])
        seen.loaded = folds

    def _load_heads(self, connection: SqlConnection, survey: int, seen: SeenIds, runs: Sequence[int]) -> None:
        """Read the heads of runs; a damaged one is made again from the ids."""
        try:
            with self.attempt(connection):
                for (run, _), data in self.read_pages(connection, survey, [(run, _HEAD) for run in runs]):
                    seen.add(run, RunHead.from_bytes(data))
        except StoreDamagedError:
            left = [run for run in runs if run not in seen.runs]
            if len(runs) > 1:
                for run in left:
                    self._load_heads(connection, survey, seen, [run])
            else:
                seen.add(runs[0], self._remade_head(connection, survey, runs[0], seen.key))

    def _remade_head(self, connection: SqlConnection, survey: int, run: int, key: bytes) -> RunHead:
        statement = (
            f"SELECT page FROM {self.table('runs', survey)} WHERE survey = ? AND run = ? AND page > 0 ORDER BY page"  # noqa: S608
        )
        pages = [page for (page,) in connection.execute(statement, (survey, run)).fetchall()]
        if pages != list(range(1, len(pages) + 1)) or not pages:
            raise self._damaged(survey, f"run {run}")
        found = dict(self.read_pages(connection, survey, [(run, page) for page in pages]))
        return RunHead.of(b"".join(found[run, page] for page in pages), key)

    def _runs_with_ids(self, connection: SqlConnection, survey: int, indexed: int) -> set[int]:
        """Return the runs that have ids; refuse a survey whose runs have fewer ids than were put in them.

        A single page that is missing is not refused here: whether it matters shows when an id is looked for in it.
        """
        statement = (
            f"SELECT run, count(*), max(page), sum(length(data)) FROM {self.table('runs', survey)}"  # noqa: S608
            " WHERE survey = ? AND page > 0 GROUP BY run"
        )
        rows = connection.execute(statement, (survey,)).fetchall()
        lacking = sum(last - pages for _, pages, last, _ in rows)
        if sum(int(size) for *_, size in rows) // ID_BYTES + lacking * seen_ids.PAGE < indexed:
            raise self._damaged(survey, "its runs")
        return {run for run, *_ in rows}

    def _known(
        self, connection: SqlConnection, survey: int, seen: SeenIds, names: Sequence[bytes], ids: bytes
    ) -> set[bytes]:
        """Those of the ids that the survey has."""
        found = seen.latest.intersection(names)
        suspects = seen.suspects(names, ids)
        for place, page in self.read_pages(connection, survey, list(suspects)):
            found.update(name for name in suspects[place] if _stands_in(page, name))
        return found

    def read_pages(
        self, connection: SqlConnection, survey: int, places: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], bytes]]:
        """The pages at these places of a survey's runs: run and number. Refuses a damaged or missing one."""
        statement = f"SELECT checks, data FROM {self.table('runs', survey)} WHERE survey = ? AND run = ? AND page = ?"  # noqa: S608
        for place in places:
            with self.finding_damage(connection):
                row = connection.execute(statement, (survey, *place)).fetchone()
            yield place, self.checked_page(survey, place, row)

    def checked_page(self, survey: int, place: tuple[int, int], row: Any) -> bytes:
        """Return the ids of a page from its checksum and data; refuse a damaged or missing one."""
        run, page = place
        if row is None or not is_page(survey, run, page, bytes(row[0]), bytes(row[1])):
            raise self._damaged(survey, f"run {run}, page {page}")
        return bytes(row[1])

    def insert_blocks(self, connection: SqlConnection, survey: int, blocks: Iterable[Block]) -> None:
        """Keep blocks."""
        statement = (
            f"INSERT INTO {self.table('blocks', survey)} (survey, last, count, checks, buckets, ids, payloads)"  # noqa: S608
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        rows = [(survey, last, count, sum_block(survey, last, count, *data), *data) for last, count, *data in blocks]
        connection.executemany(statement, rows)

    def _tend(self, survey: int) -> None:
        """After a commit: make a run where there are enough reports."""
        seen = self._memory.of(survey)
        if seen.is_full and survey not in self._unfoldable:
            try:
                self.folding.do(lambda: self._fold_if_intact(survey))
            except _OutdatedError:  # another collector was quicker: the next commit reads what it made
                seen.doubt()

    def _fold_if_intact(self, survey: int) -> None:
        """Fold a survey. One with damaged ids stays as it is: this must not put off the folds of others."""
        try:
            self.fold(survey)
        except StoreDamagedError:
            self._unfoldable.add(survey)

    def fold(self, survey: int) -> None:
        """Make a run of the latest ids, and larger blocks of their payloads, if there are enough of them."""
        with self.writing() as connection:
            indexed, seen = self._locked(connection, survey)
            full = seen is not None and seen.mark - indexed >= seen_ids.FOLDED
            folded = full and seen is not None and self._fold(connection, survey, seen.key, indexed)
        if folded and seen is not None:
            seen.latest = set()
            seen.doubt()
            self._load(survey)

    def _locked(self, connection: SqlConnection, survey: int) -> tuple[int, SeenIds | None]:
        """Up to which number ids are in runs, and what is known of them; None where its reports may be being erased."""
        self.lock(connection, survey)
        _, state, _, _, _, _, *counters = connection.execute(_STANDING, (survey,)).fetchone()
        return counters[1], self._current(connection, survey, *counters) if state == "open" else None

    def unfolded(self, *, final: bool) -> list[int]:
        return [survey for survey in super().unfolded(final=final) if survey not in self._unfoldable]

    def fold_all(self, surveys: Sequence[int]) -> None:
        for survey in surveys:
            try:
                while self._fold_latest(survey):
                    pass
            except StoreDamagedError:
                self._unfoldable.add(survey)
        self.settle_folds()

    def settle_folds(self) -> None:
        """Remove what folded blocks left behind in the database's files, as far as it can."""

    def _fold_latest(self, survey: int) -> bool:
        """Fold ids of a survey, however few they are; False if none are left, or its reports are being erased.

        This does not need what is known of its runs, which may be large: another process may take its reports.
        """
        with self.writing() as connection:
            self.lock(connection, survey)
            found = connection.execute(f"{_UNFOLDED} AND key = ?", (survey,)).fetchone()
            return found is not None and self._fold(connection, survey, self._filter_key(connection, survey), found[0])

    def _filter_key(self, connection: SqlConnection, survey: int) -> bytes:
        """The key of the filters of a survey's runs; a new one where there is no run, or the latest is damaged."""
        listed = f"SELECT coalesce(max(run), 0) FROM {self.table('runs', survey)} WHERE survey = ?"  # noqa: S608
        (run,) = connection.execute(listed, (survey,)).fetchone()
        if not run:
            return SeenIds().key
        try:
            with self.attempt(connection):
                ((_, head),) = self.read_pages(connection, survey, [(run, _HEAD)])
                return RunHead.from_bytes(head).key
        except StoreError:
            return SeenIds().key

    def _fold(self, connection: SqlConnection, survey: int, key: bytes, indexed: int) -> bool:
        """Fold as many of the ids beyond `indexed` as one transaction takes; False if there are none."""
        table, last, size = self.table("blocks", survey), indexed, 0
        listed = f"SELECT last, length(payloads) FROM {table} WHERE survey = ? AND last > ? ORDER BY last"  # noqa: S608
        for number, each in connection.execute(listed, (survey, indexed)).fetchall():
            last, size = number, size + each
            enough = last - indexed >= self.folding.portion(seen_ids.FOLDED)
            if enough or size >= self.folding.portion(_FOLDED_BYTES):
                break
        wanted = "count, checks, buckets, ids, payloads"
        rows = self.read_rows(
            connection, "blocks", survey, wanted, "last > ? AND last <= ?", (indexed, last), strict=True
        )
        if not rows:
            return False
        self.erase_ids(connection, survey, indexed, last)
        gathered, run = self._take_small_run(connection, survey)
        intact: list[tuple[bytes, ...]] = []
        start = reached = indexed
        for (number,), row in rows:
            if row is None or number - row[0] != reached or not has_ids(survey, number, row[0], row[1], row[3]):
                raise self._damaged(survey, f"block {number}")
            count, checks, buckets, ids, payloads = row
            gathered.append(ids)
            if has_reports(survey, number, count, checks, buckets, payloads):
                intact.append((buckets, ids, payloads))
            else:  # its ids become part of the run like the others, and the rest stays where it is
                self._replace_blocks(connection, survey, intact, start, reached)
                self.damage.note_reports(survey, number - count, number)
                statement = f"UPDATE {table} SET ids = ?, checks = ? WHERE survey = ? AND last = ?"  # noqa: S608
                connection.execute(statement, (b"", replace_ids(survey, number, count, checks, b""), survey, number))
                intact, start = [], number
            reached = number
        self._replace_blocks(connection, survey, intact, start, reached)
        self.write_runs(connection, survey, b"".join(gathered), key, run)
        connection.execute("UPDATE counters SET indexed = ? WHERE survey = ?", (last, survey))
        self.note_folded(connection, survey)
        return True

    def _replace_blocks(
        self, connection: SqlConnection, survey: int, rows: Sequence[tuple[bytes, ...]], start: int, last: int
    ) -> None:
        """Put larger blocks, without ids, in the place of the blocks from `start` to `last`."""
        if rows:
            table = self.table("blocks", survey)
            erase = f"DELETE FROM {table} WHERE survey = ? AND last > ? AND last <= ?"  # noqa: S608
            connection.execute(erase, (survey, start, last))
            self.insert_blocks(connection, survey, _fold_blocks(rows, start))

    def erase_ids(self, connection: SqlConnection, survey: int, start: int, last: int) -> None:
        """Overwrite the ids of blocks that are replaced next, where a database would leave copies of them."""

    def _take_small_run(self, connection: SqlConnection, survey: int) -> tuple[list[bytes], int]:
        """Remove the latest run if it is small, and return its ids; and the latest run's number.

        Without this a survey would have a run for every hour, and an id would be looked for in all of them.
        """
        table = self.table("runs", survey)
        (run,) = connection.execute(
            f"SELECT coalesce(max(run), 0) FROM {table} WHERE survey = ?",  # noqa: S608
            (survey,),
        ).fetchone()
        listed = f"SELECT page, length(data) FROM {table} WHERE survey = ? AND run = ? AND page > 0 ORDER BY page"  # noqa: S608
        pages = connection.execute(listed, (survey, run)).fetchall()
        small = 3 * sum(size for _, size in pages) < 2 * seen_ids.FOLDED * ID_BYTES
        is_whole = [page for page, _ in pages] == list(range(1, len(pages) + 1))
        if not (pages and small and is_whole) or self.folding.portion(seen_ids.FOLDED) < seen_ids.FOLDED:
            return [], run
        try:
            with self.attempt(connection):
                ids = [data for _, data in self.read_pages(connection, survey, [(run, page) for page, _ in pages])]
        except StoreDamagedError:  # it stays as it is
            return [], run
        connection.execute(f"DELETE FROM {table} WHERE survey = ? AND run = ?", (survey, run))  # noqa: S608
        return ids, run

    def write_runs(self, connection: SqlConnection, survey: int, ids: bytes, key: bytes, last: int) -> None:
        """Store ids as a run, or as several where they are many, with numbers beyond `last`.

        The key is that of the survey's filters.
        """
        table = self.table("runs", survey)
        statement = f"INSERT INTO {table} (survey, run, page, checks, data) VALUES (?, ?, ?, ?, ?)"  # noqa: S608
        for run, some in enumerate(cut_into_runs(ids), last + 1):
            names = sorted_names(some)
            rows = [(_HEAD, RunHead.of(names, key).to_bytes()), *enumerate(pages_of(names), 1)]
            connection.executemany(
                statement, [(survey, run, page, page_checksum(survey, run, page, data), data) for page, data in rows]
            )

    def note_folded(self, connection: SqlConnection, survey: int) -> None:
        """A survey has other runs than before: whoever knows them reads the new ones."""
        connection.execute("UPDATE counters SET edition = edition + 1 WHERE survey = ?", (survey,))


def _fold_blocks(rows: Sequence[tuple[bytes, ...]], start: int) -> Iterator[Block]:
    """Larger blocks of the same reports in the same order, without their ids; `start` is the number before them."""
    payloads = b"".join(data for _, _, data in rows)
    buckets: Buckets = [bucket for packed, _, _ in rows for bucket in unpack_buckets(packed)]
    total = sum(count for _, count in buckets)
    size = len(payloads) // total
    whole = pack_buckets(buckets)
    each = max(1, _BLOCK_BYTES // size)
    for begin in range(0, total, each):
        stop = min(begin + each, total)
        packed = pack_buckets(cut_buckets(whole, begin, stop))
        yield start + stop, stop - begin, packed, b"", payloads[begin * size : stop * size]


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
