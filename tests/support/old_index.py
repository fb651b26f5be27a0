"""The rival of the collector's store: a row per report and a unique index of their random ids, as schema 2 had them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg

_TABLE = """
CREATE TABLE reports (
  survey BIGINT NOT NULL, sequence BIGINT NOT NULL, report_id {bytes} NOT NULL, payload {bytes} NOT NULL,
  bucket BIGINT NOT NULL, PRIMARY KEY (survey, sequence)){end};
CREATE UNIQUE INDEX reports_by_id ON reports (survey, report_id);
"""
_SQLITE = """
INSERT INTO reports (survey, sequence, report_id, payload, bucket)
WITH RECURSIVE rows (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM rows WHERE i + 1 < :count)
SELECT 1, :sequence + i + 1, substr(:ids, 16 * i + 1, 16), substr(:payloads, :size * i + 1, :size), 0
FROM rows WHERE true ON CONFLICT (survey, report_id) DO NOTHING
"""


class OldSqlite:
    """Reports in SQLite, the way they were kept before."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "wal_autocheckpoint = 50000"):
            self._connection.execute(f"PRAGMA {setting}")
        self._connection.executescript(_TABLE.format(bytes="BLOB", end=" WITHOUT ROWID"))
        self._sequence = 0

    def append(self, ids: bytes, payloads: bytes) -> None:
        """Store reports once."""
        count = len(ids) // 16
        size = len(payloads) // count
        values = {"count": count, "sequence": self._sequence, "ids": ids, "payloads": payloads, "size": size}
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(_SQLITE, values)
        self._connection.execute("COMMIT")
        self._sequence += count

    def close(self) -> None:
        """Move what is in the log to its place."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()


class OldPostgres:
    """Reports in PostgreSQL, the way they were kept before."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(_TABLE.format(bytes="bytea", end="").encode())
        self._connection.execute("CREATE TEMPORARY TABLE incoming (place integer, report_id bytea, payload bytea)")
        self._sequence = 0

    def append(self, ids: bytes, payloads: bytes) -> None:
        """Store reports once."""
        count = len(ids) // 16
        size = len(payloads) // count
        with self._connection.transaction(), self._connection.cursor() as cursor:
            with cursor.copy("COPY incoming FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "bytea", "bytea"])
                for i in range(count):
                    copy.write_row((i + 1, ids[16 * i : 16 * i + 16], payloads[size * i : size * i + size]))
            statement = (
                b"INSERT INTO reports SELECT 1, %s + place, report_id, payload, 0 FROM incoming"
                b" ON CONFLICT (survey, report_id) DO NOTHING"
            )
            cursor.execute(statement, (self._sequence,))
            cursor.execute("TRUNCATE incoming")
        self._sequence += count

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()
