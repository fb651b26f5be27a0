"""The tables of a collector's database. SQLite and PostgreSQL differ in the words for types alone."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["PER_SURVEY", "SHARED", "statements"]

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


def statements(**words: str) -> Iterator[str]:
    """Yield the statements that make the shared tables, with a database's words for types."""
    for statement in _TABLES.format(**words).split(";\n"):
        if statement.strip():
            yield statement
