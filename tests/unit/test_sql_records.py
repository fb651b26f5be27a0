"""Every number that SQL answers, as it was recorded: see `tests/support/sql_records.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from tests.support.sql_records import (
    DESIGNS,
    EVERYDAY,
    GOOD,
    SAMPLE,
    TEXTS,
    Asked,
    difference,
    read_records,
    replay,
    replay_bad,
    tolerance,
    written_texts,
)

pytest.importorskip("duckdb")

records = cache(read_records)


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


def test_all_queries_give_the_recorded_numbers_and_texts(tmp_path: Path) -> None:
    assert check(Asked(EVERYDAY, tmp_path), GOOD) == json.loads(TEXTS.read_text())


@pytest.mark.parametrize("design", [name for name in DESIGNS if name != EVERYDAY])
def test_a_sample_of_queries_gives_the_recorded_numbers(design: str, tmp_path: Path) -> None:
    check(Asked(design, tmp_path), SAMPLE)


def test_what_is_refused_has_the_recorded_error(tmp_path: Path) -> None:
    found = dict(replay_bad(Asked(EVERYDAY, tmp_path)))
    assert found == {name: record for name, record in records().items() if name.startswith("bad | ")}
    assert all(record["error"] for record in found.values())
