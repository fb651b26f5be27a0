"""The tables of a collector's database, version by version: what each added to the one before.

SQLite and PostgreSQL differ in the words for types alone. Where data had to move as well, `migrating` does it.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BLOCKS", "CHECKED", "LATEST", "PER_SURVEY", "SHARED", "statements"]

_FIRST = """
CREATE TABLE surveys (
  key {key}, task TEXT NOT NULL UNIQUE, document {bytes} NOT NULL, state TEXT NOT NULL,
  opens {int}, closes {int}, precision {int} NOT NULL, minimum {int} NOT NULL,
  reports {int} NOT NULL DEFAULT 0, sequence {int} NOT NULL DEFAULT 0);
CREATE TABLE reports (
  survey {int} NOT NULL, sequence {int} NOT NULL, report_id {bytes} NOT NULL, payload {bytes} NOT NULL,
  bucket {int} NOT NULL, PRIMARY KEY (survey, sequence));
CREATE TABLE tallies (survey {int} PRIMARY KEY, sequence {int} NOT NULL, encoded {bytes} NOT NULL);
CREATE TABLE tokens (
  key {key}, name TEXT NOT NULL UNIQUE, digest {bytes} NOT NULL UNIQUE, scopes TEXT NOT NULL, task TEXT,
  note TEXT NOT NULL, created TEXT NOT NULL, revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE audit (
  key {key}, at TEXT NOT NULL, token TEXT NOT NULL, action TEXT NOT NULL, task TEXT, parameters TEXT NOT NULL);
"""
# A survey of version 1 has no study beside it: its bare task is its own.
_STUDIES = """
ALTER TABLE surveys ADD COLUMN study {bytes};
CREATE TABLE studies (
  key {key}, id TEXT NOT NULL UNIQUE, document {bytes} NOT NULL, people {int}, seconds {int},
  wanted {int} NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0);
CREATE TABLE rounds (
  study TEXT NOT NULL, number {int} NOT NULL, task TEXT NOT NULL UNIQUE, share TEXT NOT NULL, opened {int},
  PRIMARY KEY (study, number));
CREATE TABLE takes (
  run TEXT NOT NULL, mark {int} NOT NULL, round {int} NOT NULL, place {int} NOT NULL, data {bytes} NOT NULL,
  PRIMARY KEY (run, mark, round, place));
"""
# Reports in blocks, ids in runs. What changes with every commit is apart from the documents, which may be long.
_BLOCKS = """
CREATE TABLE counters (
  survey {int} PRIMARY KEY, sequence {int} NOT NULL DEFAULT 0, indexed {int} NOT NULL DEFAULT 0,
  folds {int} NOT NULL DEFAULT 0);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE counted (
  survey {int} NOT NULL, asked TEXT NOT NULL, mark {int} NOT NULL, encoded {bytes} NOT NULL, used {int} NOT NULL,
  PRIMARY KEY (survey, asked));
ALTER TABLE surveys ADD COLUMN closed {int};
ALTER TABLE surveys ADD COLUMN purged {int};
ALTER TABLE surveys ADD COLUMN keep_days {int};
ALTER TABLE surveys ADD COLUMN name TEXT;
ALTER TABLE surveys ADD COLUMN wave {int};
ALTER TABLE surveys ADD COLUMN texts TEXT;
CREATE UNIQUE INDEX surveys_by_name ON surveys (name, wave);
ALTER TABLE tokens ADD COLUMN expires TEXT;
"""
# Runs are no longer merged, and their filters are others. A collector of the version before that still runs would not
# know, and take reports twice: the column has another name so that it fails.
_FILTERS = "ALTER TABLE counters RENAME COLUMN folds TO changes"
# Blocks and pages of ids have checksums (`migrating` adds them), and a purge that has begun is on record. A collector
# of the version before would write rows without checksums: the renamed column makes it fail.
_CHECKED = """
ALTER TABLE counters RENAME COLUMN changes TO revision;
ALTER TABLE surveys ADD COLUMN purging {int};
"""
# Readings go in steps; a survey of before was published without one, and what is signed never changes. A collector of
# the version before would read every report: the renamed column makes it fail.
_STEPS = """
ALTER TABLE counters RENAME COLUMN revision TO edition;
ALTER TABLE surveys ADD COLUMN step {int} NOT NULL DEFAULT 1;
ALTER TABLE surveys ADD COLUMN ended {int};
"""
_VERSIONS = (_FIRST, _STUDIES, _BLOCKS, _FILTERS, _CHECKED, _STEPS)
LATEST = len(_VERSIONS)
BLOCKS = 1 + _VERSIONS.index(_BLOCKS)
"""The first version that has reports in blocks."""
CHECKED = 1 + _VERSIONS.index(_CHECKED)
"""The first version that has checksums."""

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
"""Tables of reports and of their ids, by their columns: each survey has its own."""
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


def statements(version: int, **words: str) -> Iterator[str]:
    """What brings the tables of the version before to this one, with a database's words for types."""
    for statement in _VERSIONS[version - 1].format(**words).split(";\n"):
        if statement.strip():
            yield statement
