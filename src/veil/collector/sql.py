"""What SQLite and PostgreSQL share: every statement but those that append and read reports in bulk.

Statements are constants; whatever comes from outside is a parameter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, Protocol

from veil.collector.store import (
    AuditEntry,
    Phase,
    Store,
    StoredRound,
    StoredStudy,
    StoredSurvey,
    StoredTally,
    TokenRecord,
)

__all__ = ["Connection", "SqlStore"]

_SURVEY = "SELECT key, task, document, state, opens, closes, precision, minimum, reports, sequence, study FROM surveys"
_CREATE = (
    "INSERT INTO surveys (task, document, state, opens, closes, precision, minimum, study)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task) DO NOTHING"
)
_STUDY = "SELECT id, document, people, seconds, wanted, finished FROM studies"
_STUDY_OF = f"{_STUDY} WHERE id = (SELECT study FROM rounds WHERE task = ?)"  # noqa: S608  # our own constant
_TOKEN = "SELECT name, digest, scopes, task, note, created, revoked FROM tokens"  # noqa: S105  # columns, no secret
_FIRST_TALLY = (
    "INSERT INTO tallies (survey, sequence, encoded) VALUES (?, ?, ?) ON CONFLICT (survey) DO"
    " UPDATE SET sequence = excluded.sequence, encoded = excluded.encoded"
)


class Cursor(Protocol):
    """The part of a database's cursor that is used here."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...


class Connection(Protocol):
    """The part of a connection that is used here; parameters are marked with `?`."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...


class SqlStore(Store):
    """Surveys, studies and what they took, tokens, tallies and the audit log in SQL."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """A connection to read with; database errors become StoreErrors."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """A connection within a transaction that is durable once the block is left."""

    def create(self, survey: StoredSurvey) -> bool:
        with self.writing() as connection:
            return connection.execute(_CREATE, _row(survey)).rowcount == 1

    def find(self, task: str) -> StoredSurvey | None:
        with self.reading() as connection:
            row = connection.execute(f"{_SURVEY} WHERE task = ?", (task,)).fetchone()
        return None if row is None else _survey(row)

    def surveys(self) -> list[StoredSurvey]:
        with self.reading() as connection:
            return [_survey(row) for row in connection.execute(f"{_SURVEY} ORDER BY key").fetchall()]

    def move(self, survey: int, before: str, after: str) -> bool:
        with self.writing() as connection:
            statement = "UPDATE surveys SET state = ? WHERE key = ? AND state = ?"
            return connection.execute(statement, (after, survey, before)).rowcount == 1

    def set_reading(self, survey: int, study: bytes) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE surveys SET study = ? WHERE key = ?", (study, survey))

    def phase_of(self, connection: Connection, survey: int, now: int, *, lock: str = "") -> tuple[Phase, StoredSurvey]:
        """The phase of a survey within a transaction, and the survey; `lock` locks its row, where that is needed."""
        found = _survey(connection.execute(f"{_SURVEY} WHERE key = ?{lock}", (survey,)).fetchone())
        return found.phase(now), found

    def count(self, connection: Connection, survey: int, numbers: int, new: int) -> None:
        """Move a survey's counters on by so many sequence numbers and so many new reports."""
        statement = "UPDATE surveys SET sequence = sequence + ?, reports = reports + ? WHERE key = ?"
        connection.execute(statement, (numbers, new, survey))

    def export(self, survey: int, after: bytes, rows: int) -> list[tuple[bytes, bytes, int]]:
        statement = (
            "SELECT report_id, payload, bucket FROM reports WHERE survey = ? AND report_id > ?"
            " ORDER BY report_id LIMIT ?"
        )
        with self.reading() as connection:
            found = connection.execute(statement, (survey, after, rows)).fetchall()
        return [(bytes(name), bytes(payload), bucket) for name, payload, bucket in found]

    def tally(self, survey: int) -> StoredTally | None:
        with self.reading() as connection:
            statement = "SELECT encoded, sequence FROM tallies WHERE survey = ?"
            row = connection.execute(statement, (survey,)).fetchone()
        return None if row is None else StoredTally(bytes(row[0]), row[1])

    def save_tally(self, survey: int, tally: StoredTally, before: int | None, rows: int | None = None) -> bool:
        with self.writing() as connection:
            if rows is not None:
                statement = "SELECT count(*) FROM reports WHERE survey = ? AND sequence <= ?"
                if connection.execute(statement, (survey, tally.sequence)).fetchone()[0] != rows:
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

    def purge(self, survey: int) -> int:
        with self.writing() as connection:
            return connection.execute("DELETE FROM reports WHERE survey = ?", (survey,)).rowcount

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

    def want_rounds(self, id_: str, wanted: int) -> None:
        with self.writing() as connection:
            statement = "UPDATE studies SET wanted = ? WHERE id = ? AND wanted < ?"
            connection.execute(statement, (wanted, id_, wanted))

    def finish_study(self, id_: str) -> None:
        with self.writing() as connection:
            connection.execute("UPDATE studies SET finished = 1 WHERE id = ?", (id_,))

    def add_round(self, id_: str, number: int, share: Fraction, survey: StoredSurvey) -> bool:
        with self.writing() as connection:
            if connection.execute(_CREATE, _row(survey)).rowcount == 1:
                statement = "INSERT INTO rounds (study, number, task, share) VALUES (?, ?, ?, ?)"
                connection.execute(statement, (id_, number, survey.task, str(share)))
                return True
            known = connection.execute("SELECT study, number FROM rounds WHERE task = ?", (survey.task,)).fetchone()
            return known is not None and tuple(known) == (id_, number)

    def rounds(self, id_: str) -> list[StoredRound]:
        statement = "SELECT number, task, share, opened FROM rounds WHERE study = ? ORDER BY number"
        with self.reading() as connection:
            rows = connection.execute(statement, (id_,)).fetchall()
        return [StoredRound(number, task, Fraction(share), opened) for number, task, share, opened in rows]

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

    def forget_takes(self, run: str, mark: int, round_: int) -> None:
        with self.writing() as connection:
            connection.execute("DELETE FROM takes WHERE run = ? AND mark = ? AND round = ?", (run, mark, round_))

    def forget_marks_before(self, run: str, mark: int) -> None:
        with self.writing() as connection:
            connection.execute("DELETE FROM takes WHERE run = ? AND mark < ?", (run, mark))

    def add_token(self, token: TokenRecord) -> None:
        statement = "INSERT INTO tokens (name, digest, scopes, task, note, created) VALUES (?, ?, ?, ?, ?, ?)"
        row = (token.name, token.digest, " ".join(token.scopes), token.task, token.note, token.created)
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
        statement = "INSERT INTO audit (at, token, action, task, parameters) VALUES (?, ?, ?, ?, ?)"
        with self.writing() as connection:
            connection.execute(statement, (entry.at, entry.token, entry.action, entry.task, entry.parameters))

    def audit(self, limit: int) -> list[AuditEntry]:
        statement = "SELECT at, token, action, task, parameters FROM audit ORDER BY key DESC LIMIT ?"
        with self.reading() as connection:
            return [AuditEntry(*row) for row in connection.execute(statement, (limit,)).fetchall()]

    def ping(self) -> None:
        with self.reading() as connection:
            connection.execute("SELECT 1 FROM surveys LIMIT 1").fetchone()


def _row(survey: StoredSurvey) -> tuple[Any, ...]:
    terms = (survey.opens, survey.closes, survey.precision, survey.minimum)
    return (survey.task, survey.document, survey.state, *terms, survey.study)


def _survey(row: Any) -> StoredSurvey:
    key, task, document, *rest, study = row
    rest.append(None if study is None else bytes(study))
    return StoredSurvey(key, task, bytes(document), *rest)


def _study(row: Any) -> StoredStudy:
    id_, document, people, seconds, wanted, finished = row
    return StoredStudy(id_, bytes(document), people, seconds, wanted, bool(finished))


def _token(row: Any) -> TokenRecord:
    name, digest, scopes, task, note, created, revoked = row
    return TokenRecord(name, bytes(digest), tuple(scopes.split()), task, note, created, bool(revoked))
