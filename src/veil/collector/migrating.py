"""Make the tables of a collector's database, and move a database of an earlier schema to today's.

A change of the schema is a function in `MIGRATIONS`: it changes the tables and moves their rows, with the statements
that both databases share. All migrations that a database needs run in the one transaction that also writes its new
number, so that a process that is killed meanwhile leaves the database as it was. A new database goes the same way: it
begins with the tables of `FIRST`.

A collector of the schema before may still run. So that it fails instead of writing rows as it knows them, a migration
renames a column that every commit reads (`counters.edition`). A table that is not a survey's own also goes into
`schema.SHARED`, or backups would lack it. `tests/support/next_schema.py` has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from veil.collector.schema import statements
from veil.errors import InputError, StoreError

if TYPE_CHECKING:
    from veil.collector.blocks import BlockStore, Old
    from veil.collector.sql import Connection

__all__ = ["FIRST", "MIGRATIONS", "Migration", "bring_up_to_date", "latest"]

FIRST = 6
"""The schema of the first published version. Numbers below it were used in development and are refused."""
Migration = Callable[["BlockStore", "Connection", Mapping[str, str]], None]
"""Moves a database to the next schema; the last argument has the database's words for types (`schema.statements`)."""
MIGRATIONS: list[Migration] = []
"""The migration at index i leads from schema `FIRST` + i to the next one."""


def latest() -> int:
    """Return the number of today's schema."""
    return FIRST + len(MIGRATIONS)


def bring_up_to_date(
    store: BlockStore, connection: Connection, version: int, old: Old, *, make: bool = True, **words: str
) -> int:
    """Move a database from schema `version` to the latest one, and return the schema that it has then.

    Version 0 is an empty database, which is refused unless `make` is true. A schema that no migration starts from is
    refused. `old` says what to do with an earlier one. Runs within a transaction of the caller, who writes the number.
    """
    newest = latest()
    if version == 0:
        if not make:
            raise InputError(
                "database: expected the collector's, got an empty one: check the settings, or make it (--new)"
            )
        for statement in statements(**words):
            connection.execute(statement)
        store.guard_audit(connection)
        version = FIRST
    elif not FIRST <= version <= newest:
        expected = str(newest) if newest == FIRST else f"{FIRST} to {newest}"
        raise StoreError(f"database: expected schema {expected}, got {version}: another version of veil wrote it")
    elif version < newest and old == "keep":
        return version
    elif version < newest and old == "refuse":
        raise StoreError(
            f"database: expected schema {newest}, got {version} of an earlier version of veil: veil serve brings it up"
            " to date, and veil backup copies it as it is before that"
        )
    for migrate in MIGRATIONS[version - FIRST :]:
        migrate(store, connection, words)
    return newest
