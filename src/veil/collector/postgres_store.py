"""PostgreSQL, for several collectors at once: reports go in by COPY, and each survey's commits are in one order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg

from veil.collector.deadlines import Deadlines
from veil.collector.sql import SqlStore
from veil.collector.store import Chunk, Group, Phase
from veil.errors import StoreError, StoreTimeoutError, StoreUnreachableError
from veil.wire.frames import ID_BYTES

__all__ = ["PostgresStore"]

_VERSION = 2
_NO_END = 2**63 - 1
_SCHEMA_LOCK = 0x7665696C  # "veil": collectors that start at the same moment make the tables one after another
_CONNECT_SECONDS = 5
# A machine that is gone is found out by the kernel; what the URL says about it counts.
_SIGNS_OF_LIFE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_LATE = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable, psycopg.errors.ConnectionTimeout)
# Whatever is there already stays: a database of version 1 gets the column and the tables that it lacks. A survey of
# version 1 has no study beside it: its bare task is its own.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS surveys (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task text NOT NULL UNIQUE, document bytea NOT NULL,
  state text NOT NULL, opens bigint, closes bigint, precision bigint NOT NULL, minimum bigint NOT NULL,
  reports bigint NOT NULL DEFAULT 0, sequence bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS reports (
  survey bigint NOT NULL, sequence bigint NOT NULL, report_id bytea NOT NULL, payload bytea NOT NULL,
  bucket bigint NOT NULL, PRIMARY KEY (survey, sequence), UNIQUE (survey, report_id));
CREATE TABLE IF NOT EXISTS tallies (survey bigint PRIMARY KEY, sequence bigint NOT NULL, encoded bytea NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, digest bytea NOT NULL UNIQUE,
  scopes text NOT NULL, task text, note text NOT NULL, created text NOT NULL, revoked integer NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS audit (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at text NOT NULL, token text NOT NULL, action text NOT NULL,
  task text, parameters text NOT NULL);
ALTER TABLE surveys ADD COLUMN IF NOT EXISTS study bytea;
CREATE TABLE IF NOT EXISTS studies (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, document bytea NOT NULL, people bigint,
  seconds bigint, wanted bigint NOT NULL DEFAULT 0, finished integer NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS rounds (
  study text NOT NULL, number bigint NOT NULL, task text NOT NULL UNIQUE, share text NOT NULL, opened bigint,
  PRIMARY KEY (study, number));
CREATE TABLE IF NOT EXISTS takes (
  run text NOT NULL, mark bigint NOT NULL, round bigint NOT NULL, place bigint NOT NULL, data bytea NOT NULL,
  PRIMARY KEY (run, mark, round, place));
"""
_INCOMING = """
CREATE TEMPORARY TABLE IF NOT EXISTS incoming (place integer, report_id bytea, payload bytea) ON COMMIT DELETE ROWS
"""
_APPEND = """
INSERT INTO reports (survey, sequence, report_id, payload, bucket)
SELECT ?, ? + place, report_id, payload, ? FROM incoming ORDER BY place
ON CONFLICT (survey, report_id) DO NOTHING
"""
_CHUNK = """
SELECT string_agg(payload, ''::bytea), max(sequence) FROM
(SELECT payload, sequence FROM reports WHERE survey = ? AND sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?)
AS next
"""
_COPY_HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)  # signature, flags, length of the header's extension
_COPY_END = b"\xff\xff"


class _Marked:
    """A connection whose statements mark their parameters as SQLite's do."""

    def __init__(self, connection: psycopg.Connection[Any], deadlines: Deadlines | None = None) -> None:
        self.raw, self._deadlines = connection, deadlines

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        # our own constants only: none holds a question mark or a percent sign of its own
        marked = statement.replace("?", "%s").encode()
        if self._deadlines is None:
            return self.raw.execute(marked, parameters)
        with self._deadlines.watch(self.raw):
            return self.raw.execute(marked, parameters)


class PostgresStore(SqlStore):
    """Reports in PostgreSQL. A lost connection is a StoreError once; the next call makes a new one.

    `seconds` is how long a call may take, whether the server is busy, waits for a lock, or has stopped answering.
    """

    def __init__(self, url: str, seconds: float | None = None) -> None:
        given = psycopg.conninfo.conninfo_to_dict(url)
        self._url = psycopg.conninfo.make_conninfo(url, **{k: v for k, v in _SIGNS_OF_LIFE.items() if k not in given})
        self._deadlines = Deadlines(seconds)
        self._lock = threading.Lock()
        self._writer: psycopg.Connection[Any] | None = None
        self._idle: list[psycopg.Connection[Any]] = []
        try:
            with self.writing(patient=True) as connection:
                self._prepare(connection)
        except StoreError:
            self.close()
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[_Marked]:
        with _translated():
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                yield _Marked(connection, self._deadlines)  # of each statement: a block may go through all reports
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)

    @contextlib.contextmanager
    def writing(self, *, patient: bool = False) -> Iterator[_Marked]:
        with self._lock, _translated():
            if self._writer is None or self._writer.closed:
                self._writer = self._connect()
            try:
                with self._deadlines.watch(self._writer, patient=patient), self._writer.transaction():
                    if patient:  # a migration of many reports takes its time
                        self._writer.execute("SET LOCAL statement_timeout = 0")
                        self._writer.execute("SET LOCAL lock_timeout = 0")
                    yield _Marked(self._writer)
            except (StoreTimeoutError, psycopg.OperationalError):
                self._writer.close()  # also where it broke during the commit: nobody knows, so nobody is told
                raise

    def append(self, groups: Sequence[Group], now: int) -> list[int | Phase]:
        outcomes: dict[int, int | Phase] = {}
        with self.writing() as connection:
            connection.execute(_INCOMING)
            # Sequence numbers must grow in the order of commits, or a tally that has counted up to k would miss a
            # number below k that is committed later. A serial does not promise that; the lock on the survey's row does:
            # it is held from taking the numbers until the commit. Taken in one order, locks cannot block each other.
            for i in sorted(range(len(groups)), key=lambda i: groups[i].survey):
                phase, survey = self.phase_of(connection, groups[i].survey, now, lock=" FOR UPDATE")
                if phase != "open":
                    outcomes[i] = phase
                    continue
                with connection.raw.cursor().copy("COPY incoming FROM STDIN (FORMAT binary)") as copy:
                    copy.write(_copy_rows(groups[i]))
                values = (groups[i].survey, survey.sequence, survey.bucket(now))
                outcomes[i] = new = connection.execute(_APPEND, values).rowcount
                connection.execute("DELETE FROM incoming")
                self.count(connection, groups[i].survey, groups[i].count, new)
        return [outcomes[i] for i in range(len(groups))]

    def chunk(self, survey: int, after: int, rows: int, until: int | None = None) -> Chunk | None:
        end = _NO_END if until is None else until
        with self.reading() as connection:
            row = connection.execute(_CHUNK, (survey, after, end, rows)).fetchone()
        return None if row is None or row[1] is None else Chunk(bytes(row[0]), row[1])

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()
            if self._writer is not None:
                self._writer.close()

    def probe(self) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE veil_version SET version = version")

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
        except psycopg.errors.ConnectionTimeout:
            raise
        except psycopg.OperationalError as problem:
            raise StoreUnreachableError(f"the database cannot be reached: {type(problem).__name__}") from None
        settings = "SET synchronous_commit = on"  # whatever the server's default is
        if self._deadlines.seconds is not None:
            limit = int(1000 * self._deadlines.seconds)
            settings += f"; SET statement_timeout = {limit}; SET lock_timeout = {limit}"
        with self._deadlines.watch(connection):
            connection.execute(settings.encode())
        return connection

    def _prepare(self, connection: _Marked) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_SCHEMA_LOCK,))
        connection.execute("CREATE TABLE IF NOT EXISTS veil_version (version integer NOT NULL)")
        found = connection.execute("SELECT version FROM veil_version").fetchone()
        if found is not None and not 1 <= found[0] <= _VERSION:
            raise StoreError(f"this database was written by another version of veil (expected {_VERSION} at most)")
        if found is None or found[0] != _VERSION:
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute("DELETE FROM veil_version")
            connection.execute("INSERT INTO veil_version (version) VALUES (?)", (_VERSION,))


def _copy_rows(group: Group) -> bytes:
    """A group in PostgreSQL's binary form of COPY: rows of the same length, so one array makes them all."""
    size = len(group.payloads) // group.count
    kind = [("fields", ">i2"), ("place_size", ">i4"), ("place", ">i4"), ("id_size", ">i4"), ("id", "u1", (ID_BYTES,))]
    rows = np.zeros(group.count, dtype=[*kind, ("payload_size", ">i4"), ("payload", "u1", (size,))])
    rows["fields"], rows["place_size"], rows["id_size"], rows["payload_size"] = 3, 4, ID_BYTES, size
    rows["place"] = np.arange(1, group.count + 1)
    rows["id"] = np.frombuffer(group.ids, np.uint8).reshape(-1, ID_BYTES)
    rows["payload"] = np.frombuffer(group.payloads, np.uint8).reshape(-1, size)
    return _COPY_HEAD + rows.tobytes() + _COPY_END


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """PostgreSQL's errors as ours. Only their kind: a message may quote a row or the address of the database."""
    try:
        yield
    except psycopg.Error as problem:
        kind = StoreTimeoutError if isinstance(problem, _LATE) else StoreError
        raise kind(f"the database cannot be used: {type(problem).__name__}") from None
