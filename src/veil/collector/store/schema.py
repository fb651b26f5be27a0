"""The tables of a collector's database, and migrations from earlier schemas.

SQLite and PostgreSQL have the same tables and differ in the words for types. A migration is a function in `MIGRATIONS`:
it changes the tables and moves their rows, with statements that both databases understand. All migrations that a
database needs run in the transaction that also writes its new number, so a killed process leaves the database as it
was. A new database begins with the tables of schema `FIRST` and takes the same migrations.

A collector of the earlier schema may still run. So that it fails instead of writing old rows, a migration renames a
column that every commit reads (`counters.edition`). A new table that is not one of a survey's own is also listed in
`SHARED`, or backups would lack it. `tests/support/next_schema.py` has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from veil.errors import InputError, StoreError

if TYPE_CHECKING:
    from veil.collector.store.blocks import BlockStore, OldSchema
    from veil.collector.store.sql import SqlConnection

# What changes with every commit is in `counters`, apart from the documents, which may be long.
_TABLES = """
CREATE TABLE surveys (
  key {key}, task TEXT NOT NULL UNIQUE, document {bytes} NOT NULL, state TEXT NOT NULL, opens {int}, closes {int},
  precision {int} NOT NULL, minimum {int} NOT NULL, study {bytes}, closed {int}, purged {int}, purging {int},
  keep_days {int}, name TEXT, wave {int}, texts TEXT, step {int} NOT NULL, ended {int});
CREATE UNIQUE INDEX surveys_by_name ON surveys (name, wave);
CREATE TABLE counters (
  survey {int} PRIMARY KEY, sequence {int} NOT NULL DEFAULT 0, indexed {int} NOT NULL DEFAULT 0,
  edition {int} NOT NULL DEFAULT 0);
CREATE TABLE tallies (survey {int} PRIMARY KEY, sequence {int} NOT NULL, encoded {bytes} NOT NULL);
CREATE TABLE counted (
  survey {int} NOT NULL, asked TEXT NOT NULL, mark {int} NOT NULL, encoded {bytes} NOT NULL, used {int} NOT NULL,
  PRIMARY KEY (survey, asked));
CREATE TABLE studies (
  key {key}, id TEXT NOT NULL UNIQUE, document {bytes} NOT NULL, people {int}, seconds {int},
  wanted {int} NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0);
CREATE TABLE rounds (
  study TEXT NOT NULL, number {int} NOT NULL, task TEXT NOT NULL UNIQUE, share TEXT NOT NULL, opened {int},
  PRIMARY KEY (study, number));
CREATE TABLE takes (
  run TEXT NOT NULL, mark {int} NOT NULL, round {int} NOT NULL, place {int} NOT NULL, data {bytes} NOT NULL,
  PRIMARY KEY (run, mark, round, place));
CREATE TABLE tokens (
  key {key}, name TEXT NOT NULL UNIQUE, digest {bytes} NOT NULL UNIQUE, scopes TEXT NOT NULL, task TEXT,
  note TEXT NOT NULL, created TEXT NOT NULL, revoked INTEGER NOT NULL DEFAULT 0, expires TEXT);
CREATE TABLE audit (
  key {key}, at TEXT NOT NULL, token TEXT NOT NULL, action TEXT NOT NULL, task TEXT, parameters TEXT NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
PER_SURVEY = {
    "blocks": (
        "survey {int} NOT NULL, last {int} NOT NULL, count {int} NOT NULL, checks {bytes} NOT NULL,"
        " buckets {bytes} NOT NULL, ids {bytes} NOT NULL, payloads {bytes} NOT NULL, PRIMARY KEY (survey, last)"
    ),
    "runs": (
        "survey {int} NOT NULL, run {int} NOT NULL, page {int} NOT NULL, checks {bytes} NOT NULL,"
        " data {bytes} NOT NULL, PRIMARY KEY (survey, run, page)"
    ),
}
"""The tables of reports and of their ids, by their columns: each survey has its own."""
SHARED = (
    "surveys",
    "counters",
    "tallies",
    "counted",
    "studies",
    "rounds",
    "takes",
    "tokens",
    "audit",
    "facts",
)
"""All other tables."""
FIRST = 6
"""The schema of the first published version. Numbers below it were used in development and are refused."""
Migration = Callable[["BlockStore", "SqlConnection", Mapping[str, str]], None]
"""Moves a database to the next schema; the last argument has the database's words for types (`schema.statements`)."""
MIGRATIONS: list[Migration] = []
"""The migration at index i leads from schema `FIRST` + i to the next one."""


def statements(**words: str) -> Iterator[str]:
    """Yield the statements that make the shared tables, with a database's words for types."""
    for statement in _TABLES.format(**words).split(";\n"):
        if statement.strip():
            yield statement


def latest() -> int:
    """Return the number of today's schema."""
    return FIRST + len(MIGRATIONS)


def bring_up_to_date(
    store: BlockStore, connection: SqlConnection, version: int, old: OldSchema, *, make: bool = True, **words: str
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
