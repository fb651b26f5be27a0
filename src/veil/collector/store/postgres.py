"""PostgreSQL as a store, for several collectors. Each survey has its own tables, and its commits are ordered."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import psycopg

from veil.collector.monitoring.logs import log
from veil.collector.store.blocks import BlockStore, OldSchema
from veil.collector.store.schema import PER_SURVEY, bring_up_to_date
from veil.collector.store.sql import SqlConnection
from veil.collector.store.timing import Deadlines
from veil.errors import (
    InputError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreTimeoutError,
    StoreUnreachableError,
    VeilError,
)

_SCHEMA_LOCK = 0x7665696C  # "veil": collectors that start at the same moment make the tables one after another
_CONNECT_SECONDS = 5
_PURGE_SECONDS = 0.3  # for the lock, and between two tries
# A machine that is gone is found out by the kernel, and of several servers one that takes writes is the right one.
_DEFAULTS: dict[str, str | int] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "target_session_attrs": "read-write",
}
# Which history of the database a server has: each promotion of a standby begins a new timeline.
_HISTORY = (
    b"SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,"
    b" (SELECT system_identifier FROM pg_control_system())"
)
_READ_ONLY = "the database takes no writes: its server is a standby, or was demoted to one"
_LATE = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable, psycopg.errors.ConnectionTimeout)
_DAMAGED = (  # internal errors are what is said of lost pieces of long values
    *(psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted, psycopg.errors.InternalError_),
    *(psycopg.errors.IoError, psycopg.errors.UndefinedFile),
)
# Waiting does not help where the server says so. It gives no code before somebody is let in, only words.
_REFUSED = {
    "authentication failed": "the account or its password is wrong",
    "no password supplied": "the account needs a password",
    'role "[^"]*" does not exist': "there is no such account",
    "not permitted to log in": "the account may not log in",
    'database "[^"]*" does not exist': "there is no database of that name",
    "no pg_hba.conf entry": "it does not let us in from here (pg_hba.conf)",
}
_UNREACHED = {
    "session is read-only|hot standby": _READ_ONLY,
    "Connection refused": "nothing listens",
    "could not translate host name|Name or service not known|failed to resolve host": "there is no such host",
    "No such file or directory": "there is no such socket",
    "too many (clients|connections)|remaining connection slots": "it has no connection left for us",
    "SSL|certificate": "TLS is not as the URL asks for it",
    "starting up|shutting down": "it starts or stops",
}
_WORDS = {"key": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "int": "bigint", "bytes": "bytea"}
_LONG = {"blocks": ("ids", "payloads"), "runs": ("data",)}  # random bytes: trying to compress them is lost time


_PAGES_AT_ONCE = 256
_ONLY_ADDED = """
CREATE FUNCTION veil_only_added() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit log is only added to'; END $$
"""
_COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?"
    " ORDER BY ordinal_position"
)


class _Marked:
    """A connection whose statements mark their parameters as SQLite's do."""

    def __init__(self, connection: psycopg.Connection[Any], deadlines: Deadlines | None = None) -> None:
        self.raw, self._deadlines = connection, deadlines

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        # our own constants only: none holds a question mark or a percent sign of its own
        marked = statement.replace("?", "%s").encode()
        with self._watched():  # in binary: as text, bytes would be twice as long
            return self.raw.execute(marked, parameters, binary=True)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """All rows on one way to the server and back."""
        with self._watched(), self.raw.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s").encode(), rows)

    def _watched(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._deadlines is None else self._deadlines.watch(self.raw)


class PostgresStore(BlockStore):
    """Reports in PostgreSQL. A lost connection is a StoreError once; the next call makes a new one.

    `seconds` is how long a call may take, whether the server is busy, waits for a lock, or has stopped answering.
    """

    def __init__(self, url: str, seconds: float | None = None, *, old: OldSchema = "update", make: bool = True) -> None:
        super().__init__()
        given = psycopg.conninfo.conninfo_to_dict(url)
        self._url = psycopg.conninfo.make_conninfo(url, **{k: v for k, v in _DEFAULTS.items() if k not in given})
        self._place = f", at {given['host']}:{given.get('port', 5432)}" if "host" in given else ""
        self._deadlines = Deadlines(seconds)
        self._lock = threading.Lock()
        self._writer: psycopg.Connection[Any] | None = None
        self._idle: list[psycopg.Connection[Any]] = []
        self._epoch, self._history = 0, (0, 0)
        self._epochs: WeakKeyDictionary[psycopg.Connection[Any], int] = WeakKeyDictionary()
        self._admitting = threading.Lock()
        self._steady = threading.local()
        self._warned = False
        try:
            with self.writing(patient=True) as connection:
                self._prepare(connection, old, make)
        except VeilError:
            self.close()
            raise

    @property
    def epoch(self) -> int:
        return self._epoch

    @contextlib.contextmanager
    def steady(self, epoch: int | None = None) -> Iterator[int]:
        outer: int | None = getattr(self._steady, "epoch", None)
        wanted = outer if outer is not None else self._epoch if epoch is None else epoch
        self._steady.epoch = wanted
        try:
            yield wanted
        finally:
            self._steady.epoch = outer

    def _check_steady(self, connection: psycopg.Connection[Any]) -> None:
        wanted: int | None = getattr(self._steady, "epoch", None)
        if wanted is not None and self._epochs.get(connection) != wanted:
            raise StoreError("another database server took over: nothing of this was stored, try it again")

    @contextlib.contextmanager
    def reading(self) -> Iterator[_Marked]:
        with _translated():
            try:
                connection = self._idle.pop()
                if self._epochs.get(connection) != self._epoch:
                    connection.close()
                    connection = self._connect()
            except IndexError:
                connection = self._connect()
            try:
                self._check_steady(connection)
                yield _Marked(connection, self._deadlines)  # of each statement: a block may go through all reports
            except BaseException:
                if connection.broken:  # the server is gone, and what else was open to it is of no use either
                    self._drop_idle()
                connection.close()
                raise
            if self._epochs.get(connection) == self._epoch:
                self._idle.append(connection)
            else:
                connection.close()

    @contextlib.contextmanager
    def writing(self, *, patient: bool = False) -> Iterator[_Marked]:
        with self._lock, _translated():
            if self._writer is None or self._writer.closed or self._epochs.get(self._writer) != self._epoch:
                if self._writer is not None:
                    self._writer.close()
                self._writer = self._connect()
                self._writer.add_notice_handler(self._note_warning)
            self._check_steady(self._writer)
            self._warned = False
            try:
                with self._deadlines.watch(self._writer, patient=patient), self._writer.transaction():
                    if patient:  # a migration of many reports takes its time
                        self._writer.execute("SET LOCAL statement_timeout = 0")
                        self._writer.execute("SET LOCAL lock_timeout = 0")
                    yield _Marked(self._writer)
            except (StoreTimeoutError, psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction):
                self._writer.close()  # also where it broke during the commit: nobody knows, so nobody is told
                raise
            if self._warned:
                # An administrator cancelled the wait for a synchronous standby: the commit succeeds with a warning.
                # What is on this server alone is lost if it fails, so that it must not be acknowledged.
                raise StoreError("the database could not confirm that the commit is on its standby")

    def _note_warning(self, notice: psycopg.errors.Diagnostic) -> None:
        self._warned = self._warned or notice.severity_nonlocalized == "WARNING"

    def begin_snapshot(self, connection: SqlConnection, surveys: Sequence[int]) -> None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        # A purge empties tables for every snapshot, also for those that are older: it has to wait. The snapshot is that
        # of the first statement that reads, so that no purge comes between.
        tables = [self.table(name, survey) for survey in surveys for name in PER_SURVEY]
        if tables:
            connection.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE")

    def copy_old(self, path: Path) -> int:
        raise InputError(
            "a PostgreSQL database of an earlier schema is copied with pg_dump; veil serve brings it up to date then"
        )

    @contextlib.contextmanager
    def finding_damage(self, connection: SqlConnection) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as problem:
            raise _damaged(problem) from None

    @contextlib.contextmanager
    def attempt(self, connection: SqlConnection) -> Iterator[None]:
        raw: psycopg.Connection[Any] = cast("Any", connection).raw
        within = raw.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with self.finding_damage(connection), raw.transaction() if within else contextlib.nullcontext():
            yield

    def make_tables(self, connection: SqlConnection, survey: int) -> None:
        for name, columns in PER_SURVEY.items():
            table = self.table(name, survey)
            connection.execute(f"CREATE TABLE {table} ({columns.format(**_WORDS)})")
            for column in _LONG[name]:
                connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")

    own_keys = " OVERRIDING SYSTEM VALUE"

    def guard_audit(self, connection: SqlConnection) -> None:
        connection.execute(_ONLY_ADDED)
        connection.execute(
            "CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit"
            " FOR EACH STATEMENT EXECUTE FUNCTION veil_only_added()"
        )

    @contextlib.contextmanager
    def unguarded_audit(self, connection: SqlConnection) -> Iterator[None]:
        connection.execute("ALTER TABLE audit DISABLE TRIGGER audit_stays")
        yield
        connection.execute("ALTER TABLE audit ENABLE TRIGGER audit_stays")

    def columns(self, connection: SqlConnection, table: str) -> list[str]:
        found = connection.execute(_COLUMNS, (table,)).fetchall()
        return [name for (name,) in found]

    def settle_copy(self, connection: SqlConnection) -> None:
        for table in ("surveys", "studies", "tokens", "audit"):
            last = f"(SELECT coalesce(max(key), 0) FROM {table})"  # noqa: S608
            connection.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'key'), 1 + {last}, false)")

    def lock(self, connection: SqlConnection, survey: int) -> None:
        connection.execute("SELECT 1 FROM counters WHERE survey = ? FOR UPDATE", (survey,))

    def read_pages(
        self, connection: SqlConnection, survey: int, places: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], bytes]]:
        statement = (
            f"SELECT kept.run, kept.page, checks, data FROM {self.table('runs', survey)} AS kept"  # noqa: S608
            " JOIN unnest(?::bigint[], ?::bigint[]) AS wanted (run, page)"
            " ON kept.survey = ? AND kept.run = wanted.run AND kept.page = wanted.page"
        )
        for start in range(0, len(places), _PAGES_AT_ONCE):  # one way to the server and back for many of them
            some = places[start : start + _PAGES_AT_ONCE]
            runs, pages = [run for run, _ in some], [page for _, page in some]
            with self.finding_damage(connection):
                found = connection.execute(statement, (runs, pages, survey)).fetchall()
            rows = {(run, page): row for run, page, *row in found}
            for place in some:
                yield place, self.checked_page(survey, place, rows.get(place))

    def purge(self, survey: int) -> int:
        """Waits for a backup, but never long at a time: whoever reads these tables waits behind us."""
        start = time.monotonic()
        while (forgotten := self._emptied(survey)) is None:
            if self._deadlines.seconds is not None and time.monotonic() - start >= self._deadlines.seconds:
                raise StoreTimeoutError("the reports cannot be erased now: somebody else reads them, as a backup does")
            time.sleep(_PURGE_SECONDS)
        return forgotten

    def _emptied(self, survey: int) -> int | None:
        """How many reports were erased; None where somebody else reads them."""
        with self.reading() as connection:  # not the one that writes: a purge waits for a backup, and posts must not
            connection.execute("BEGIN")
            try:
                connection.execute(f"SET LOCAL lock_timeout = {int(1000 * _PURGE_SECONDS)}")
                statement = f"SELECT coalesce(sum(count), 0) FROM {self.table('blocks', survey)} WHERE survey = ?"  # noqa: S608
                (forgotten,) = connection.execute(statement, (survey,)).fetchone() or (0,)
                # new, empty files take their place, and the old ones are removed: nobody waits for rows to be deleted
                connection.execute(f"TRUNCATE {', '.join(self.table(name, survey) for name in PER_SURVEY)}")
                self.note_folded(connection, survey)
                self.note_purged(connection, survey)
            except psycopg.errors.LockNotAvailable:
                connection.execute("ROLLBACK")
                return None
            connection.execute("COMMIT")
        return int(forgotten)

    def ping(self) -> None:
        """A connection that was left from before may be gone: then a new one tells."""
        try:
            self._ping_writable()
        except StoreTimeoutError:
            raise
        except StoreError:
            self._ping_writable()

    def _ping_writable(self) -> None:
        super().ping()
        with self.reading() as connection:
            (read_only,) = connection.execute("SHOW transaction_read_only").fetchone() or ("on",)
            if read_only != "off":
                connection.raw.close()  # the next one may reach another server
                raise StoreReadOnlyError(_READ_ONLY)

    def close(self) -> None:
        with self._lock:
            self._drop_idle()
            if self._writer is not None:
                self._writer.close()

    def _drop_idle(self) -> None:
        with contextlib.suppress(IndexError):  # others take them at the same time
            while True:
                self._idle.pop().close()

    def size(self) -> int:
        with self.reading() as connection:
            (size,) = connection.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
        return int(size)

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
        except psycopg.errors.ConnectionTimeout:
            raise
        except psycopg.OperationalError as problem:
            if (why := _known(_REFUSED, problem)) is not None:
                raise StoreError(f"the database refuses us: {why}{self._place}") from None
            why = _known(_UNREACHED, problem) or "it does not answer as a database does"
            if why == _READ_ONLY:
                raise StoreReadOnlyError(f"{why}{self._place}") from None
            raise StoreUnreachableError(f"the database cannot be reached: {why}{self._place}") from None
        settings = "SET synchronous_commit = on"  # whatever the server's default is
        if self._deadlines.seconds is not None:
            limit = int(1000 * self._deadlines.seconds)
            settings += f"; SET statement_timeout = {limit}; SET lock_timeout = {limit}"
        try:
            with self._deadlines.watch(connection):
                connection.execute(settings.encode())
                self._admit(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _admit(self, connection: psycopg.Connection[Any]) -> None:
        """Note which server this is. When another one takes over, connections to the one before are closed.

        After a failover that could not wait for the standby, the new server lacks the latest commits, and everything
        that is remembered may be ahead of it. A server with an older history than one that was seen is the one before,
        which somebody forgot to stop: what it stores would be lost.
        """
        timeline, system = connection.execute(_HISTORY).fetchone() or (None, 0)
        if timeline is None:
            raise StoreReadOnlyError(f"{_READ_ONLY}{self._place}")
        history = int(system), int(timeline, 16)
        with self._admitting:
            if self._history == (0, 0):
                self._history = history
            elif history != self._history:
                if history[0] == self._history[0] and history < self._history:
                    raise StoreUnreachableError(
                        "the database cannot be used: this server was replaced by another one, and its history is"
                        " older; stop it, or start the collector again if it is the right one"
                    )
                self._history = history
                self._epoch += 1
                self._drop_idle()
                log("warning", "database-server-changed", timeline=history[1])
            self._epochs[connection] = self._epoch

    def _prepare(self, connection: _Marked, old: OldSchema, make: bool) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_SCHEMA_LOCK,))
        connection.execute("CREATE TABLE IF NOT EXISTS veil_version (version integer NOT NULL)")
        found = connection.execute("SELECT version FROM veil_version").fetchone()
        version = 0 if found is None else found[0]
        self.version = bring_up_to_date(self, connection, version, old, make=make, **_WORDS)
        if version != self.version:
            connection.execute("DELETE FROM veil_version")
            connection.execute("INSERT INTO veil_version (version) VALUES (?)", (self.version,))


def _damaged(problem: psycopg.Error) -> StoreDamagedError:
    return StoreDamagedError(f"the database is damaged: {type(problem).__name__} (see the server's log)")


def _known(signs: Mapping[str, str], problem: BaseException) -> str | None:
    """What the server's or the library's words say; they may quote the account, and are not passed on."""
    return next((why for sign, why in signs.items() if re.search(sign, str(problem))), None)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """PostgreSQL's errors as ours. Only their kind: a message may quote a row or the address of the database."""
    try:
        yield
    except psycopg.errors.OutOfMemory:  # nearly always of locks: a restore makes the tables of all surveys at once
        raise StoreError(
            "the database cannot be used: PostgreSQL is out of memory or of locks; with thousands of surveys raise its"
            " max_locks_per_transaction"
        ) from None
    except _DAMAGED as problem:
        raise _damaged(problem) from None
    except psycopg.errors.ReadOnlySqlTransaction:
        raise StoreReadOnlyError(_READ_ONLY) from None
    except psycopg.errors.DiskFull:
        raise StoreFullError from None
    except psycopg.Error as problem:
        kind = StoreTimeoutError if isinstance(problem, _LATE) else StoreError
        raise kind(f"the database cannot be used: {type(problem).__name__}") from None
