"""An invented next schema of the collector's database, for tests of migrations: a changed column and a new table.

`counters.edition` becomes `counters.changes`, which is what makes a running collector of the schema before fail. `days`
says how many reports of each survey have which coarse time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from veil.collector.store import backup
from veil.collector.store import postgres as postgres_store
from veil.collector.store import schema as migrating
from veil.collector.store.block_reading import unpack_buckets
from veil.collector.store.blocks import BlockStore
from veil.collector.store.sql import SqlConnection

_DAYS = """
CREATE TABLE days (
  survey {int} NOT NULL, bucket {int} NOT NULL, reports {int} NOT NULL, PRIMARY KEY (survey, bucket))
"""
_ADD = (
    "INSERT INTO days (survey, bucket, reports) VALUES (?, ?, ?) ON CONFLICT (survey, bucket) DO"
    " UPDATE SET reports = days.reports + excluded.reports"
)


def migrate(store: BlockStore, connection: SqlConnection, words: Mapping[str, str]) -> None:
    """Rename a column, and count the reports of every survey by their coarse times."""
    connection.execute("ALTER TABLE counters RENAME COLUMN edition TO changes")
    connection.execute(_DAYS.format(**words))
    for (survey,) in connection.execute("SELECT key FROM surveys ORDER BY key").fetchall():
        blocks = f"SELECT buckets FROM {store.table('blocks', survey)} WHERE survey = ? ORDER BY last"  # noqa: S608
        for (buckets,) in connection.execute(blocks, (survey,)).fetchall():
            for bucket, count in unpack_buckets(bytes(buckets)):
                connection.execute(_ADD, (survey, bucket, count))


def register(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Turn this process into the version of veil with the next schema; `replace` sets an attribute of a module."""
    replace(migrating, "MIGRATIONS", [migrate])
    replace(backup, "SHARED", (*backup.SHARED, "days"))
    replace(sqlite3, "connect", partial(sqlite3.connect, factory=_NextConnection))
    marked = postgres_store._Marked.execute

    def execute(self: Any, statement: str, parameters: Any = ()) -> Any:
        return marked(self, _as_next(statement), parameters)

    replace(postgres_store._Marked, "execute", execute)


class _NextConnection(sqlite3.Connection):
    """Runs the statements of today's code with the column's new name."""

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(_as_next(statement), *parameters)


def _as_next(statement: str) -> str:
    is_definition = statement.lstrip().startswith(("ALTER", "CREATE"))
    return statement if is_definition else statement.replace("edition", "changes")
