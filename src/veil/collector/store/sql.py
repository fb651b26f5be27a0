"""Statements that SQLite and PostgreSQL share, apart from those about reports, which are in `blocks`.

Statements are constants; every value from outside is a parameter.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from veil.collector.store.base import (
    PRUNED,
    AuditEntry,
    Store,
    StoredRound,
    StoredStudy,
    StoredSurvey,
    StoredTally,
    TokenRecord,
)
from veil.errors import StoreDamagedError

_KINDS = (AuditEntry, StoredRound, StoredStudy, StoredSurvey, StoredTally, TokenRecord)
RecordType = TypeVar("RecordType", AuditEntry, StoredRound, StoredStudy, StoredSurvey, StoredTally, TokenRecord)

_SURVEY = (
    "SELECT key, task, document, state, opens, closes, precision, minimum, sequence, study, closed, keep_days, name,"
    " wave, texts, purged, purging, step, ended FROM surveys JOIN counters ON survey = key"
)
_CREATE = (
    "INSERT INTO surveys (task, document, state, opens, closes, precision, minimum, study, keep_days, name, wave,"
    " texts, step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
# what StoredSurvey.mark computes
_MARK = (
    "CASE WHEN surveys.state = 'closed' OR surveys.ended IS NOT NULL THEN counters.sequence"
    " ELSE counters.sequence / surveys.step * surveys.step END"
)
_BEHIND = (
    "SELECT counters.survey FROM counters JOIN surveys ON surveys.key = counters.survey"  # noqa: S608  # our own constant
    f" LEFT JOIN tallies ON tallies.survey = counters.survey WHERE {_MARK} > coalesce(tallies.sequence, 0)"
)
_MARKS = f"SELECT task, {_MARK}, step FROM surveys JOIN counters ON survey = key WHERE state <> 'draft' ORDER BY key"  # noqa: S608
_UNFOLDED = (
    "SELECT key FROM surveys JOIN counters ON survey = key WHERE sequence > indexed AND purged IS NULL"
    " AND purging IS NULL"
)
_FINAL = " AND (state = 'closed' OR ended IS NOT NULL)"
_TO_END = "SELECT key FROM surveys WHERE state = 'open' AND ended IS NULL AND closes <= ? ORDER BY key"
# the current round of each study with something to do, or with a rule that may say so
_UNDER_WAY = (
    "SELECT studies.id, rounds.task FROM studies JOIN rounds ON rounds.study = studies.id"
    " JOIN surveys ON surveys.task = rounds.task WHERE studies.finished = 0"
    " AND rounds.number = (SELECT max(number) FROM rounds WHERE study = studies.id) AND (studies.wanted > rounds.number"
    " OR (surveys.state = 'open' AND (studies.people IS NOT NULL OR studies.seconds IS NOT NULL))) ORDER BY studies.key"
)
_STUDY = "SELECT id, document, people, seconds, wanted, finished FROM studies"
_STUDY_OF = f"{_STUDY} WHERE id = (SELECT study FROM rounds WHERE task = ?)"  # noqa: S608  # our own constant
_TOKEN = "SELECT name, digest, scopes, task, note, created, revoked, expires FROM tokens"  # noqa: S105  # columns, no secret
_FIRST_TALLY = (
    "INSERT INTO tallies (survey, sequence, encoded) VALUES (?, ?, ?) ON CONFLICT (survey) DO"
    " UPDATE SET sequence = excluded.sequence, encoded = excluded.encoded"
)
_DUE = (
    "SELECT key FROM surveys WHERE purged IS NULL AND (purging IS NOT NULL"
    " OR (state = 'closed' AND closed + 86400 * keep_days <= ?)"
    " OR (state = 'open' AND closes + 86400 * keep_days <= ?)) ORDER BY key"
)
_COUNTED = (
    "INSERT INTO counted (survey, asked, mark, encoded, used) VALUES (?, ?, ?, ?, ?) ON CONFLICT (survey, asked) DO"
    " UPDATE SET mark = excluded.mark, encoded = excluded.encoded, used = excluded.used"
    " WHERE counted.mark <= excluded.mark"
)
# beside what a run took from its reports: how many it had to leave out, as eight bytes that compare as numbers do
_MISSING = (
    "INSERT INTO takes (run, mark, round, place, data) VALUES (?, ?, ?, -1, ?) ON CONFLICT (run, mark, round, place) DO"
    " UPDATE SET data = excluded.data WHERE takes.data < excluded.data"
)
_PROBE_RUN = "probe"  # the id of no run
_PROBE = (
    "INSERT INTO takes (run, mark, round, place, data) VALUES (?, 0, 0, 0, ?) ON CONFLICT (run, mark, round, place) DO"
    " UPDATE SET data = excluded.data"
)
_FORGET_COUNTED = (
    "DELETE FROM counted WHERE survey = ? AND asked NOT IN"
    " (SELECT asked FROM counted WHERE survey = ? ORDER BY used DESC, asked LIMIT ?)"
)


class SqlCursor(Protocol):
    """The part of a database's cursor that is used here."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...


class SqlConnection(Protocol):
    """The part of a connection that is used here; parameters are marked with `?`."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> SqlCursor: ...
    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object: ...


class SqlStore(Store):
    """Surveys, studies and what they took, tokens, tallies and the audit log in SQL."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[SqlConnection]:
        """A connection to read with; database errors become StoreErrors."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[SqlConnection]:
        """A connection within a transaction that is durable once the block is left."""

    @abstractmethod
    def make_tables(self, connection: SqlConnection, survey: int) -> None:
        """Make room for the reports of a new survey."""

    @abstractmethod
    def unguarded_audit(self, connection: SqlConnection) -> AbstractContextManager[None]:
        """Allow audit entries to be deleted within the block. Other transactions never see the log unguarded."""

    @abstractmethod
    def lock(self, connection: SqlConnection, survey: int) -> None:
        """Let nobody else append to a survey, or change its state, before this transaction ends."""

    @abstractmethod
    def stored_rows(self, connection: SqlConnection, survey: int, mark: int) -> int:
        """How many reports up to a mark are there."""

    def create(self, survey: StoredSurvey) -> bool:
        with self.writing() as connection:
            return self._create(connection, survey)

    def _create(self, connection: SqlConnection, survey: StoredSurvey) -> bool:
        while connection.execute(_CREATE, _row(_numbered(connection, survey))).rowcount != 1:
            there = connection.execute("SELECT 1 FROM surveys WHERE task = ?", (survey.task,)).fetchone()
            if there is not None or survey.name is None or survey.wave is not None:
                return False  # else another collector took the number meanwhile: the next one
        key = connection.execute("SELECT key FROM surveys WHERE task = ?", (survey.task,)).fetchone()[0]
        connection.execute("INSERT INTO counters (survey) VALUES (?)", (key,))
        self.make_tables(connection, key)
        return True

    def find(self, task: str) -> StoredSurvey | None:
        with self.reading() as connection:
            row = connection.execute(f"{_SURVEY} WHERE task = ?", (task,)).fetchone()
        return None if row is None else _survey(row)

    def surveys(self) -> list[StoredSurvey]:
        with self.reading() as connection:
            return [_survey(row) for row in connection.execute(f"{_SURVEY} ORDER BY key").fetchall()]

    def named(self, name: str) -> list[StoredSurvey]:
        with self.reading() as connection:
            rows = connection.execute(f"{_SURVEY} WHERE name = ? ORDER BY wave DESC", (name,)).fetchall()
        return [_survey(row) for row in rows]

    def behind(self) -> list[int]:
        with self.reading() as connection:
            return [key for (key,) in connection.execute(_BEHIND).fetchall()]

    def survey(self, key: int) -> StoredSurvey:
        with self.reading() as connection:
            return _survey(connection.execute(f"{_SURVEY} WHERE key = ?", (key,)).fetchone())

    def move(self, survey: int, before: str, after: str, now: int | None = None) -> bool:
        with self.writing() as connection:
            self.lock(connection, survey)
            statement = "UPDATE surveys SET state = ?, closed = ? WHERE key = ? AND state = ?"
            closed = now if after == "closed" else None
            return connection.execute(statement, (after, closed, survey, before)).rowcount == 1

    def end(self, survey: int, now: int) -> None:
        statement = "UPDATE surveys SET ended = ? WHERE key = ? AND state = 'open' AND ended IS NULL AND closes <= ?"
        with self.writing() as connection:
            self.lock(connection, survey)
            connection.execute(statement, (now, survey, now))

    def to_end(self, now: int) -> list[int]:
        with self.reading() as connection:
            return [key for (key,) in connection.execute(_TO_END, (now,)).fetchall()]

    def marks(self) -> list[tuple[str, int, int]]:
        with self.reading() as connection:
            return [(task, mark, step) for task, mark, step in connection.execute(_MARKS).fetchall()]

    def unfolded(self, *, final: bool) -> list[int]:
        with self.reading() as connection:
            found = connection.execute(f"{_UNFOLDED}{_FINAL if final else ''} ORDER BY key").fetchall()
        return [key for (key,) in found]

    def set_reading(self, survey: int, study: bytes) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE surveys SET study = ? WHERE key = ?", (study, survey))

    def tally(self, survey: int) -> StoredTally | None:
        with self.reading() as connection:
            statement = "SELECT encoded, sequence FROM tallies WHERE survey = ?"
            row = connection.execute(statement, (survey,)).fetchone()
        return None if row is None else _record(StoredTally, _bytes(row[0]), row[1])

    def save_tally(self, survey: int, tally: StoredTally, before: int | None, rows: int | None = None) -> bool:
        with self.writing() as connection:
            if rows is not None and self.stored_rows(connection, survey, tally.sequence) != rows:
                return False
            if before is None:
                connection.execute(_FIRST_TALLY, (survey, tally.sequence, tally.encoded))
                return True
            if before == 0:
                statement = (
                    "INSERT INTO tallies (survey, sequence, encoded) VALUES (?, ?, ?) ON CONFLICT (survey) DO NOTHING"
                )
                return connection.execute(statement, (survey, tally.sequence, tally.encoded)).rowcount == 1
            statement = "UPDATE tallies SET sequence = ?, encoded = ? WHERE survey = ? AND sequence = ?"
            return connection.execute(statement, (tally.sequence, tally.encoded, survey, before)).rowcount == 1

    def note_purged(self, connection: SqlConnection, survey: int) -> None:
        """Record that the reports of a survey are erased; the time of the first purge stays."""
        now = int(time.time())
        statement = "UPDATE surveys SET purged = coalesce(purged, ?), purging = coalesce(purging, ?) WHERE key = ?"
        connection.execute(statement, (now, now, survey))

    def note_purging(self, connection: SqlConnection, survey: int) -> None:
        """Record that the reports of a survey are being erased: a purge that is interrupted is finished later."""
        statement = "UPDATE surveys SET purging = coalesce(purging, ?) WHERE key = ?"
        connection.execute(statement, (int(time.time()), survey))

    def due_to_forget(self, now: int) -> list[int]:
        with self.reading() as connection:
            return [key for (key,) in connection.execute(_DUE, (now, now)).fetchall()]

    def counted(self, survey: int, asked: str) -> StoredTally | None:
        with self.reading() as connection:
            statement = "SELECT encoded, mark FROM counted WHERE survey = ? AND asked = ?"
            row = connection.execute(statement, (survey, asked)).fetchone()
        return None if row is None else _record(StoredTally, _bytes(row[0]), row[1])

    def save_counted(self, survey: int, asked: str, tally: StoredTally, now: int, keep: int) -> None:
        with self.writing() as connection:
            connection.execute(_COUNTED, (survey, asked, tally.sequence, tally.encoded, now))
            connection.execute(_FORGET_COUNTED, (survey, survey, keep))

    def note_asked(self, survey: int, asked: str, now: int) -> None:
        statement = "UPDATE counted SET used = ? WHERE survey = ? AND asked = ? AND used < ?"
        with self.writing() as connection:
            connection.execute(statement, (now, survey, asked, now))

    def create_study(self, study: StoredStudy) -> bool:
        statement = (
            "INSERT INTO studies (id, document, people, seconds) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
        )
        with self.writing() as connection:
            row = (study.id, study.document, study.people, study.seconds)
            return connection.execute(statement, row).rowcount == 1

    def find_study(self, id_: str) -> StoredStudy | None:
        with self.reading() as connection:
            row = connection.execute(f"{_STUDY} WHERE id = ?", (id_,)).fetchone()
        return None if row is None else _study(row)

    def study_of(self, task: str) -> StoredStudy | None:
        with self.reading() as connection:
            row = connection.execute(_STUDY_OF, (task,)).fetchone()
        return None if row is None else _study(row)

    def studies(self) -> list[StoredStudy]:
        with self.reading() as connection:
            return [_study(row) for row in connection.execute(f"{_STUDY} ORDER BY key").fetchall()]

    def under_way(self) -> list[tuple[str, str]]:
        with self.reading() as connection:
            return [(id_, task) for id_, task in connection.execute(_UNDER_WAY).fetchall()]

    def want_rounds(self, id_: str, wanted: int) -> None:
        with self.writing() as connection:
            statement = "UPDATE studies SET wanted = ? WHERE id = ? AND wanted < ?"
            connection.execute(statement, (wanted, id_, wanted))

    def finish_study(self, id_: str) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE studies SET finished = 1 WHERE id = ?", (id_,))

    def add_round(self, id_: str, number: int, share: Fraction, survey: StoredSurvey) -> bool:
        with self.writing() as connection:
            if self._create(connection, survey):
                statement = "INSERT INTO rounds (study, number, task, share) VALUES (?, ?, ?, ?)"
                connection.execute(statement, (id_, number, survey.task, str(share)))
                return True
            known = connection.execute("SELECT study, number FROM rounds WHERE task = ?", (survey.task,)).fetchone()
            return known is not None and tuple(known) == (id_, number)

    def rounds(self, id_: str) -> list[StoredRound]:
        statement = "SELECT number, task, share, opened FROM rounds WHERE study = ? ORDER BY number"
        with self.reading() as connection:
            rows = connection.execute(statement, (id_,)).fetchall()
        return [_round(row) for row in rows]

    def note_opened(self, id_: str, number: int, now: int) -> None:
        statement = "UPDATE rounds SET opened = ? WHERE study = ? AND number = ? AND opened IS NULL"
        with self.writing() as connection:
            connection.execute(statement, (now, id_, number))

    def take(self, run: str, mark: int, round_: int, index: int) -> bytes | None:
        statement = "SELECT data FROM takes WHERE run = ? AND mark = ? AND round = ? AND place = ?"
        with self.reading() as connection:
            row = connection.execute(statement, (run, mark, round_, index)).fetchone()
        return None if row is None else bytes(row[0])

    def save_take(self, run: str, mark: int, round_: int, index: int, data: bytes) -> None:
        statement = "INSERT INTO takes (run, mark, round, place, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self.writing() as connection:
            connection.execute(statement, (run, mark, round_, index, data))

    def note_missing(self, run: str, mark: int, round_: int, reports: int) -> None:
        with self.writing() as connection:
            connection.execute(_MISSING, (run, mark, round_, reports.to_bytes(8, "big")))

    def missing_in(self, run: str, mark: int) -> int:
        statement = "SELECT data FROM takes WHERE run = ? AND mark = ? AND place = -1"
        with self.reading() as connection:
            return sum(int.from_bytes(data, "big") for (data,) in connection.execute(statement, (run, mark)).fetchall())

    def forget_takes(self, run: str, mark: int, round_: int) -> None:
        with self.writing() as connection:
            connection.execute("DELETE FROM takes WHERE run = ? AND mark = ? AND round = ?", (run, mark, round_))

    def forget_marks_before(self, run: str, mark: int) -> None:
        with self.writing() as connection:
            connection.execute("DELETE FROM takes WHERE run = ? AND mark < ?", (run, mark))

    def add_token(self, token: TokenRecord) -> None:
        statement = (
            "INSERT INTO tokens (name, digest, scopes, task, note, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        row = (token.name, token.digest, " ".join(token.scopes), token.task, token.note, token.created, token.expires)
        with self.writing() as connection:
            connection.execute(statement, row)

    def tokens(self) -> list[TokenRecord]:
        with self.reading() as connection:
            return [_token(row) for row in connection.execute(f"{_TOKEN} ORDER BY key").fetchall()]

    def find_token(self, digest: bytes) -> TokenRecord | None:
        with self.reading() as connection:
            row = connection.execute(f"{_TOKEN} WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else _token(row)

    def revoke_token(self, name: str) -> bool:
        with self.writing() as connection:
            return connection.execute("UPDATE tokens SET revoked = 1 WHERE name = ?", (name,)).rowcount == 1

    def note(self, entry: AuditEntry) -> None:
        with self.writing() as connection:
            _add_entry(connection, entry)

    def audit(self, limit: int) -> list[AuditEntry]:
        statement = "SELECT at, token, action, task, parameters FROM audit ORDER BY key DESC LIMIT ?"
        with self.reading() as connection:
            return [_record(AuditEntry, *row) for row in connection.execute(statement, (limit,)).fetchall()]

    def prune_audit(self, before: str, entry: Callable[[int], AuditEntry]) -> int:
        statement = "DELETE FROM audit WHERE at < ? AND action <> ?"
        with self.writing() as connection:
            with self.unguarded_audit(connection):
                count = connection.execute(statement, (before, PRUNED)).rowcount
            _add_entry(connection, entry(count))
        return count

    def known(self, name: str) -> str | None:
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def fact(self, name: str, value: str) -> str:
        with self.writing() as connection:
            connection.execute("INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))
            return str(connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()[0])

    def set_fact(self, name: str, value: str) -> None:
        statement = (
            "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        with self.writing() as connection:
            connection.execute(statement, (name, value))

    def ping(self) -> None:
        with self.reading() as connection:
            connection.execute("SELECT 1 FROM surveys LIMIT 1").fetchone()

    def probe(self, size: int = 0) -> None:
        with self.writing() as connection:  # random, so that nothing compresses it
            connection.execute(_PROBE, (_PROBE_RUN, os.urandom(max(1, size))))
        with self.writing() as connection:
            connection.execute("DELETE FROM takes WHERE run = ?", (_PROBE_RUN,))


def _numbered(connection: SqlConnection, survey: StoredSurvey) -> StoredSurvey:
    """A survey with its wave: the one that it was given, or the next of its name."""
    if survey.name is None or survey.wave is not None:
        return survey
    last = connection.execute("SELECT max(wave) FROM surveys WHERE name = ?", (survey.name,)).fetchone()[0]
    return replace(survey, wave=1 + (last or 0))


def _add_entry(connection: SqlConnection, entry: AuditEntry) -> None:
    statement = "INSERT INTO audit (at, token, action, task, parameters) VALUES (?, ?, ?, ?, ?)"
    connection.execute(statement, (entry.at, entry.token, entry.action, entry.task, entry.parameters))


def _row(survey: StoredSurvey) -> tuple[Any, ...]:
    terms = (survey.opens, survey.closes, survey.precision, survey.minimum)
    about = (survey.keep_days, survey.name, survey.wave, survey.texts, survey.step)
    return (survey.task, survey.document, survey.state, *terms, survey.study, *about)


def _survey(row: Any) -> StoredSurvey:
    key, task, document, *terms, sequence, study = row[:10]
    return _record(StoredSurvey, key, task, _bytes(document), *terms, sequence, sequence, _bytes(study), *row[10:])


def _study(row: Any) -> StoredStudy:
    id_, document, people, seconds, wanted, finished = row
    return _record(StoredStudy, id_, _bytes(document), people, seconds, wanted, bool(finished))


def _round(row: Any) -> StoredRound:
    number, task, share, opened = row
    try:
        fraction = Fraction(share)
    except (TypeError, ValueError, ZeroDivisionError):
        raise _damaged("share", share) from None
    return _record(StoredRound, number, task, fraction, opened)


def _token(row: Any) -> TokenRecord:
    name, digest, scopes, task, note, created, revoked, expires = row
    names = tuple(scopes.split()) if isinstance(scopes, str) else None
    return _record(TokenRecord, name, _bytes(digest), names, task, note, created, bool(revoked), expires)


def _record(kind: type[RecordType], *values: Any) -> RecordType:
    """Return a record of a row's values, or raise `StoreDamagedError` for a value of another type than was written.

    SQLite keeps the type of each value beside it, so damage can change it.
    """
    types = _TYPES[kind]
    if not all(map(isinstance, values, types.values())):
        name, value = next(
            (n, v) for v, (n, each) in zip(values, types.items(), strict=False) if not isinstance(v, each)
        )
        raise _damaged(name, value)
    return kind(*values)


def _damaged(name: str, value: Any) -> StoreDamagedError:
    return StoreDamagedError(f"the database is damaged: {name}: unexpected value of type {type(value).__name__}")


def _bytes(value: Any) -> Any:
    """Copy the buffer of a driver to `bytes`. Other values stay: `bytes(n)` would allocate n zeros."""
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _types(kind: type) -> dict[str, tuple[type, ...]]:
    """Return the fields of a record in their order, with the types that each may have."""
    return {name: _plain(hint) for name, hint in get_type_hints(kind).items()}


def _plain(hint: Any) -> tuple[type, ...]:
    if get_origin(hint) is Literal:
        return (str,)
    inner = get_args(hint)
    if get_origin(hint) is tuple or not inner:
        return (get_origin(hint) or hint,)
    return tuple(one for part in inner for one in _plain(part))


_TYPES = {kind: _types(kind) for kind in _KINDS}
