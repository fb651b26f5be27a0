"""Recorded numbers of all SQL answers and plans: see `tests/support/sql_records.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import CliRunner
from tests.support.sql_records import (
    BAD,
    DESIGNS,
    EVERYDAY,
    GOOD,
    MANY_GROUPS,
    READINGS,
    SAMPLE,
    TEXTS,
    WHAT,
    Asked,
    column,
    difference,
    plan_record,
    read_records,
    replay,
    replay_bad,
    result_record,
    table,
    tolerance,
    written_texts,
)

import veil.sql
from veil.cli.main import app
from veil.engines import FileCollection, MemoryCollection

pytest.importorskip("duckdb")

OTHERWISE = ("average", "group-by-private-labels", "order-and-limit")
"""Queries that are asked in other ways, too."""

records = cache(read_records)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(EVERYDAY, tmp_path_factory.mktemp("sql"))


def check(asked: Asked, queries: Iterable[str]) -> dict[str, list[str]]:
    """Compare what a design's queries give with the records, and return the texts beside them."""
    texts, different = {}, []
    for name, record, said in replay(asked, queries):
        found = json.loads(json.dumps(record))
        place = difference(records()[name], found, tolerance(name))
        different += [] if place is None else [f"{name} {place}"]
        if written_texts(name):
            texts[name] = said
    assert not different, f"{len(different):,} records differ: {different[:5]}"
    return texts


def test_all_queries_give_the_recorded_numbers_and_texts(asked: Asked) -> None:
    assert check(asked, GOOD) == json.loads(TEXTS.read_text())


@pytest.mark.parametrize("design", [name for name in DESIGNS if name != EVERYDAY])
def test_a_sample_of_queries_gives_the_recorded_numbers(design: str, tmp_path: Path) -> None:
    check(Asked(design, tmp_path), SAMPLE)


@pytest.mark.acceptance
@pytest.mark.parametrize("design", [name for name in DESIGNS if name != EVERYDAY])
def test_all_queries_give_the_recorded_numbers(design: str, tmp_path: Path) -> None:
    check(Asked(design, tmp_path), [query for query in GOOD if query not in SAMPLE])


def test_bad_queries_raise_the_recorded_errors(asked: Asked) -> None:
    found = dict(replay_bad(asked))
    assert found == {name: record for name, record in records().items() if name.startswith("bad | ")}
    assert all(record["error"] for record in found.values())


@pytest.mark.parametrize("query", ["count", "more-than-200-rows"])
def test_a_table_without_rows_has_the_recorded_plan(tmp_path: Path, query: str) -> None:
    empty = veil.sql.create(tmp_path / "empty", table(DESIGNS[EVERYDAY]))
    with veil.sql.open(empty.path) as rows:
        found = json.loads(json.dumps(plan_record(rows.explain(GOOD[query]))))
    name = f"{EVERYDAY} | levels | {query} | plan without rows"
    assert difference(records()[name], found, tolerance(name)) is None


def test_all_designs_and_readings_are_recorded() -> None:
    asked = product(DESIGNS, READINGS, GOOD, WHAT)
    assert {name for name in records() if not name.startswith("bad | ")} == {*DESIGNS, *map(" | ".join, asked)}


def recorded(query: str) -> Any:
    return records()[f"{EVERYDAY} | levels | {query} | answer"]


def check_result(query: str, result: Any) -> None:
    assert difference(recorded(query), json.loads(json.dumps(result_record(result)))) is None


def check_rows(query: str, rows: Sequence[dict[str, Any]]) -> None:
    """Compare rows, by the names of columns, with the record of an answer."""
    assert column([row["reports"] for row in rows]) == recorded(query)["people"]
    for output, (values, errors, _) in recorded(query)["outputs"].items():
        name = output.partition(" ")[2]
        assert column([row[name] for row in rows]) == values
        assert column([row[f"{name}_stderr"] for row in rows]) == errors


@pytest.mark.parametrize("query", OTHERWISE)
def test_dbapi_gives_the_recorded_numbers(asked: Asked, query: str) -> None:
    with veil.sql.connect(asked.folder) as connection:
        cursor = connection.cursor().execute(GOOD[query])
        assert cursor.description is not None
        names = [one[0] for one in cursor.description]
        check_result(query, cursor.answer)
        check_rows(query, [dict(zip(names, row, strict=True)) for row in cursor.fetchall()])


@pytest.mark.parametrize("query", OTHERWISE)
def test_the_command_gives_the_recorded_numbers(asked: Asked, query: str) -> None:
    done = CliRunner().invoke(app, ["sql", str(asked.folder), GOOD[query], "--json"])
    assert done.exit_code == 0
    check_rows(query, json.loads(done.stdout)["rows"])


@pytest.mark.parametrize("query", OTHERWISE)
def test_reports_in_memory_and_in_files_give_the_recorded_numbers(asked: Asked, query: str) -> None:
    table = replace(asked.table, query=GOOD[query])
    check_result(query, table.read(MemoryCollection(table.survey, [asked.reports[400:], asked.reports[:400]])))
    check_result(query, table.read(FileCollection(table.survey, sorted(asked.folder.glob("*.parquet")))))


@pytest.mark.parametrize(
    ("folder", "query", "error"),
    [
        ("T", BAD["attach"], "SqlError"),
        ("T", BAD["copy"], "SqlError"),
        ("T", MANY_GROUPS, "InputError"),
        ("study.json", GOOD["count"], "InputError"),
        ("nowhere", GOOD["count"], "InputError"),
    ],
)
def test_the_command_refuses_with_the_recorded_exit_code(asked: Asked, folder: str, query: str, error: str) -> None:
    done = CliRunner().invoke(app, ["sql", str(asked.folder.with_name(folder)), query, "--json"])
    assert done.exit_code == 3
    assert json.loads(done.stdout or done.stderr)["error"]["kind"] == error
