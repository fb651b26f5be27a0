"""SQLite as a store: one file in WAL mode. Every commit is synced to the disk before it counts."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from veil.collector.store.base import AuditEntry, Group
from veil.collector.store.blocks import BlockStore, OldSchema, Outcome
from veil.collector.store.schema import PER_SURVEY, bring_up_to_date
from veil.collector.store.sql import SqlConnection
from veil.errors import StoreDamagedError, StoreError, StoreFullError, StoreTimeoutError

_BUSY_SECONDS = 10.0
# Moving pages from the log to their place takes time: a thread beside the writer does it while commits go on. The
# writer itself does what is left only when the log has grown to so many pages.
_PAGES_BEFORE_CHECKPOINT = 50_000
_CHECKPOINT_SECONDS = 0.5
_ROOM_BYTES = 4 << 20  # with less a disk is full: a page may still find its place, but no request of many reports
_WORDS = {"key": "INTEGER PRIMARY KEY", "int": "INTEGER", "bytes": "BLOB"}
_ERASED_BYTES = 1 << 20  # in one transaction, so that nobody waits for long
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNREADABLE = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)
_TRUNCATE_TRIES = 30
_TRUNCATE_SECONDS = 0.1  # for each, while nobody can write; and between them


class SqliteStore(BlockStore):
    """Reports in one file. Several processes may use it at once; one of them writes at a time."""

    def __init__(self, path: str | Path, *, old: OldSchema = "update", make: bool = True) -> None:
        super().__init__()
        # in full: SQLite may take a relative path for a URI ("file:...") or for ":memory:"
        self._path = Path(path).absolute()
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closing = threading.Event()
        self._checkpointer: threading.Thread | None = None
        self._commits = 0
        with contextlib.suppress(OSError):  # SQLite says it better; its other files get the rights of this one
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        for ending in ("", "-wal", "-shm"):  # one that was copied here may be open to others
            with contextlib.suppress(OSError):
                Path(f"{self._path}{ending}").chmod(0o600)
        with _translated():
            self._writer = self._connect()
            self._prepare(old, make)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with _translated():
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            yield connection
            self._idle.append(connection)  # one that failed is dropped

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _translated():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
                self._commits += 1
            except BaseException:
                if self._writer.in_transaction:  # a full disk may have ended it already
                    self._writer.execute("ROLLBACK")
                raise

    def begin_snapshot(self, connection: SqlConnection, surveys: Sequence[int]) -> None:
        connection.execute("BEGIN")

    def copy_old(self, path: Path) -> int:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with self.reading() as connection, contextlib.closing(sqlite3.connect(path.absolute())) as copy:
            connection.backup(copy)
            return int(copy.execute("SELECT coalesce(sum(sequence), 0) FROM counters").fetchone()[0])

    @contextlib.contextmanager
    def finding_damage(self, connection: SqlConnection) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            if _is_damage(problem):
                raise _damaged(problem) from None
            raise

    def file_problems(self) -> list[str]:
        try:
            with self.reading() as connection:
                lines = [str(line) for (line,) in connection.execute("PRAGMA quick_check(100)").fetchall()]
        except StoreDamagedError as problem:
            return [str(problem)]
        return [] if lines == ["ok"] else lines

    def make_tables(self, connection: SqlConnection, survey: int) -> None:
        for name, columns in PER_SURVEY.items():
            # With rowids: a table without them is one tree of whole rows, and looking for a key would read them.
            connection.execute(f"CREATE TABLE {self.table(name, survey)} ({columns.format(**_WORDS)})")

    def guard_audit(self, connection: SqlConnection) -> None:
        for event in ("UPDATE", "DELETE"):
            _guard(connection, event)

    @contextlib.contextmanager
    def unguarded_audit(self, connection: SqlConnection) -> Iterator[None]:
        connection.execute("DROP TRIGGER IF EXISTS audit_delete")
        yield
        _guard(connection, "DELETE")

    def prune_audit(self, before: str, entry: Callable[[int], AuditEntry]) -> int:
        count = super().prune_audit(before, entry)
        self._empty_log()
        return count

    def columns(self, connection: SqlConnection, table: str) -> list[str]:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]

    def lock(self, connection: SqlConnection, survey: int) -> None:
        pass  # there is one writer at a time

    def append(self, groups: Sequence[Group], now: int) -> list[Outcome]:
        if self._checkpointer is None:
            self._checkpointer = threading.Thread(target=self._keep_log_short, name="veil-checkpoint", daemon=True)
            self._checkpointer.start()
        return super().append(groups, now)

    def purge(self, survey: int) -> int:
        forgotten = 0
        with (
            self.writing() as connection
        ):  # nobody reads its reports from here on, and a kill cannot leave it half done
            self.note_purging(connection, survey)
        for erased in self._giving_way(lambda: self._erase_blocks(survey)):
            forgotten += erased
        for _ in self._giving_way(lambda: self._erase_pages(survey)):
            pass
        # What a page held before its rows were moved to another stays there, between the rows that it has now. A table
        # that is dropped gives its pages back, and those are overwritten as a whole.
        with self.writing() as connection:
            for name in PER_SURVEY:
                connection.execute(f"DROP TABLE {self.table(name, survey)}")
            self.make_tables(connection, survey)
            self.note_folded(connection, survey)
        self._empty_log()
        with self.writing() as connection:  # not before: what is noted is not looked for again
            self.note_purged(connection, survey)
        return forgotten

    def erase_ids(self, connection: SqlConnection, survey: int, start: int, last: int) -> None:
        # In place, while each row is still where it was written: rows that are deleted are moved to other pages first,
        # and leave copies of themselves behind.
        table = self.table("blocks", survey)
        statement = f"UPDATE {table} SET ids = zeroblob(length(ids)) WHERE survey = ? AND last > ? AND last <= ?"  # noqa: S608
        connection.execute(statement, (survey, start, last))

    def settle_folds(self) -> None:
        self._empty_log()

    @staticmethod
    def _giving_way(erase: Callable[[], int]) -> Iterator[int]:
        """Erase piece by piece, until there is nothing; after each piece wait for as long as it took.

        Whoever waits for SQLite's lock looks for it now and then: without a pause the next piece would have it already.
        """
        while True:
            start = time.perf_counter()
            if not (erased := erase()):
                return
            yield erased
            time.sleep(time.perf_counter() - start)

    def _erase_blocks(self, survey: int) -> int:
        """Erase about a megabyte of reports, the oldest first; how many."""
        table = self.table("blocks", survey)
        listed = (
            f"SELECT last, count, length(ids) + length(payloads) FROM {table} WHERE survey = ? ORDER BY last LIMIT 4096"  # noqa: S608
        )
        with self.writing() as connection:
            size = count = end = 0
            for last, reports, each in connection.execute(listed, (survey,)):
                end, size, count = last, size + each, count + reports
                if size >= _ERASED_BYTES:
                    break
            connection.execute(f"DELETE FROM {table} WHERE survey = ? AND last <= ?", (survey, end))  # noqa: S608
        return count

    def _erase_pages(self, survey: int) -> int:
        table = self.table("runs", survey)
        pages = f"SELECT run, page FROM {table} WHERE survey = ? ORDER BY run, page LIMIT 64"  # noqa: S608
        erase = f"DELETE FROM {table} WHERE survey = ? AND run = ? AND page = ?"  # noqa: S608
        with self.writing() as connection:
            found = connection.execute(pages, (survey,)).fetchall()
            for run, page in found:
                connection.execute(erase, (survey, run, page))
        return len(found)

    def _empty_log(self) -> None:
        """Move everything out of the log and cut it to nothing: pages that were erased are still in it."""
        with _translated(), contextlib.closing(self._connect(_TRUNCATE_SECONDS)) as connection:
            # nobody waits for this one, which moves what it can: little is left to be moved while all wait
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            for _ in range(_TRUNCATE_TRIES):
                with self._lock:
                    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return
                time.sleep(_TRUNCATE_SECONDS)
        raise StoreError("the rows are erased, but somebody reads the database's log: prune or purge again to empty it")

    def _keep_log_short(self) -> None:
        """Move committed pages to their place now and then, without holding up the writer.

        Only where there are new ones: a checkpoint with nothing to do must not meet a writer that begins the log anew.
        SQLite before 3.51.3 may then take that log's first pages for moved (its "WAL-reset bug").
        """
        moved = -1
        while not self._closing.wait(_CHECKPOINT_SECONDS):
            with self._lock:
                if moved == self._commits:
                    continue
                moved = self._commits
            with contextlib.suppress(StoreError), self.reading() as connection:  # a full disk: the writer will say so
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        self._closing.set()
        if self._checkpointer is not None:
            self._checkpointer.join()
        with self._lock:
            while self._idle:
                self._idle.pop().close()
            self._writer.close()

    def size(self) -> int:
        total = 0
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                total += Path(f"{self._path}{end}").stat().st_size
        return total

    def probe(self, size: int = 0) -> None:
        super().probe(size)
        if self._free_bytes() < _ROOM_BYTES:
            raise StoreFullError

    def _free_bytes(self) -> float:
        with contextlib.suppress(OSError):
            space = os.statvfs(self._path.parent)
            return space.f_bavail * space.f_frsize
        return math.inf

    def _connect(self, seconds: float | None = None) -> sqlite3.Connection:
        wait = _BUSY_SECONDS if seconds is None else seconds
        connection = sqlite3.connect(self._path, timeout=wait, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # the first statement reads the schema
        except UnicodeDecodeError:  # Python cannot decode SQLite's message, which quotes the schema
            connection.close()
            raise StoreDamagedError("the database is damaged: its schema is not UTF-8") from None
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")  # what is purged is overwritten, not just forgotten
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
        return connection

    def _prepare(self, old: OldSchema, make: bool) -> None:
        with self.writing() as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            self.version = bring_up_to_date(self, connection, found, old, make=make, **_WORDS)
            connection.execute(f"PRAGMA user_version = {self.version}")


def _guard(connection: SqlConnection, event: str) -> None:
    refuse = "SELECT RAISE(ABORT, 'the audit log is only added to')"
    connection.execute(f"CREATE TRIGGER audit_{event.lower()} BEFORE {event} ON audit BEGIN {refuse}; END")


def _is_damage(problem: sqlite3.Error) -> bool:
    """True for errors about what the file holds, and for sectors that the disk cannot read."""
    code = getattr(problem, "sqlite_errorcode", 0)
    # text where bytes belong: Python's own error, which has no code
    return code & 0xFF in _DAMAGED or code in _UNREADABLE or str(problem).startswith("Could not decode")


def _damaged(problem: sqlite3.Error) -> StoreDamagedError:
    return StoreDamagedError(f"the database is damaged: {problem}")


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """SQLite's errors as ours. Their words are its own and quote no parameter."""
    try:
        yield
    except sqlite3.Error as problem:
        if _is_damage(problem):
            raise _damaged(problem) from None
        if getattr(problem, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            raise StoreFullError from None
        locked = getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        raise (StoreTimeoutError if locked else StoreError)(f"the database cannot be used: {problem}") from None
