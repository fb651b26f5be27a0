"""The embedded store: one SQLite file in WAL mode, synced to the disk before any commit counts."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from veil.collector.sql import SqlStore
from veil.collector.store import Chunk, Group, Phase
from veil.errors import StoreError, StoreTimeoutError

__all__ = ["SqliteStore"]

_NO_END = 2**63 - 1
_BUSY_SECONDS = 10.0
# Random ids touch many pages, and moving them from the log to their place takes time: a thread beside the writer does
# it while commits go on. The writer itself does what is left only when the log has grown to so many pages.
_PAGES_BEFORE_CHECKPOINT = 50_000
_CHECKPOINT_SECONDS = 0.5
_ROOM_BYTES = 4 << 20  # with less a disk is full: a page may still find its place, but no request of many reports
_FIRST = """
CREATE TABLE surveys (
  key INTEGER PRIMARY KEY, task TEXT NOT NULL UNIQUE, document BLOB NOT NULL, state TEXT NOT NULL,
  opens INTEGER, closes INTEGER, precision INTEGER NOT NULL, minimum INTEGER NOT NULL,
  reports INTEGER NOT NULL DEFAULT 0, sequence INTEGER NOT NULL DEFAULT 0);
CREATE TABLE reports (
  survey INTEGER NOT NULL, sequence INTEGER NOT NULL, report_id BLOB NOT NULL, payload BLOB NOT NULL,
  bucket INTEGER NOT NULL, PRIMARY KEY (survey, sequence)) WITHOUT ROWID;
CREATE UNIQUE INDEX reports_by_id ON reports (survey, report_id);
CREATE TABLE tallies (survey INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, encoded BLOB NOT NULL);
CREATE TABLE tokens (
  key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL, task TEXT,
  note TEXT NOT NULL, created TEXT NOT NULL, revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE audit (
  key INTEGER PRIMARY KEY, at TEXT NOT NULL, token TEXT NOT NULL, action TEXT NOT NULL, task TEXT,
  parameters TEXT NOT NULL);
"""
# A survey of version 1 has no study beside it: its bare task is its own.
_STUDIES = """
ALTER TABLE surveys ADD COLUMN study BLOB;
CREATE TABLE studies (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, document BLOB NOT NULL, people INTEGER, seconds INTEGER,
  wanted INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0);
CREATE TABLE rounds (
  study TEXT NOT NULL, number INTEGER NOT NULL, task TEXT NOT NULL UNIQUE, share TEXT NOT NULL, opened INTEGER,
  PRIMARY KEY (study, number));
CREATE TABLE takes (
  run TEXT NOT NULL, mark INTEGER NOT NULL, round INTEGER NOT NULL, place INTEGER NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (run, mark, round, place));
"""
_VERSIONS = (_FIRST, _STUDIES)
"""What each version added to the one before: a database of an older version is brought up to date when it is opened."""
# One statement for a whole group, so that the interpreter's lock is given up once and not once a report: a thread that
# has to win it back from a busy event loop waits for milliseconds each time.
_APPEND = """
INSERT INTO reports (survey, sequence, report_id, payload, bucket)
WITH RECURSIVE rows (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM rows WHERE i + 1 < :count)
SELECT :survey, :sequence + i + 1, substr(:ids, 16 * i + 1, 16), substr(:payloads, :size * i + 1, :size), :bucket
FROM rows WHERE true ON CONFLICT (survey, report_id) DO NOTHING
"""
_CHUNK = """
SELECT group_concat(hex(payload), ''), max(sequence) FROM
(SELECT payload, sequence FROM reports WHERE survey = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?)
"""


class SqliteStore(SqlStore):
    """Reports in one file. Several processes may use it at once; one of them writes at a time."""

    def __init__(self, path: str | Path, *, keep_log_short: bool = True) -> None:
        self._path, self._keeps_log_short = Path(path), keep_log_short
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closing = threading.Event()
        self._checkpointer: threading.Thread | None = None
        self._commits = 0
        with contextlib.suppress(OSError):  # SQLite says it better; its other files get the rights of this one
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        with _translated():
            self._writer = self._connect()
            self._prepare()

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

    def append(self, groups: Sequence[Group], now: int) -> list[int | Phase]:
        outcomes: list[int | Phase] = []
        if self._checkpointer is None and self._keeps_log_short:
            self._checkpointer = threading.Thread(target=self._keep_log_short, name="veil-checkpoint", daemon=True)
            self._checkpointer.start()
        with self.writing() as connection:
            for group in groups:
                phase, survey = self.phase_of(connection, group.survey, now)
                if phase != "open":
                    outcomes.append(phase)
                    continue
                values = {
                    "survey": group.survey,
                    "sequence": survey.sequence,
                    "count": group.count,
                    "ids": group.ids,
                    "payloads": group.payloads,
                    "size": len(group.payloads) // group.count,
                    "bucket": survey.bucket(now),
                }
                new = connection.execute(_APPEND, values).rowcount
                self.count(connection, group.survey, group.count, new)
                outcomes.append(new)
        return outcomes

    def chunk(self, survey: int, after: int, rows: int, until: int | None = None) -> Chunk | None:
        end = _NO_END if until is None else until
        with self.reading() as connection:
            payloads, last = connection.execute(_CHUNK, (survey, after, end, rows)).fetchone()
        return None if last is None else Chunk(bytes.fromhex(payloads), last)

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

    def probe(self) -> None:
        with self.writing() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {version}")  # the same, but its page is written
        with contextlib.suppress(OSError):
            space = os.statvfs(self._path.parent)
            if space.f_bavail * space.f_frsize < _ROOM_BYTES:
                raise StoreError("the database cannot be used: the disk is full")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")  # what is purged is overwritten, not just forgotten
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
        return connection

    def _prepare(self) -> None:
        with self.writing() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if not 0 <= version <= len(_VERSIONS):
                raise StoreError(
                    f"this database was written by another version of veil (expected {len(_VERSIONS)} at most)"
                )
            for schema in _VERSIONS[version:]:
                for statement in schema.split(";\n"):
                    if statement.strip():
                        connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(_VERSIONS)}")


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """SQLite's errors as ours. Their words are its own and quote no parameter."""
    try:
        yield
    except sqlite3.Error as problem:
        locked = getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        raise (StoreTimeoutError if locked else StoreError)(f"the database cannot be used: {problem}") from None
