"""Seeded reports, their tallies and report files are as recorded, and simulations give the recorded numbers.

`python -m tests.support.record_house` records them; docs/decisions/0042-guards.md says when that is allowed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.document_examples import TASKS
from tests.support.documents import read_lines
from tests.support.recorded_reports import DIGESTS, REPORT_FILES, digests_of, reports_of
from tests.support.result_examples import results, studies

from veil import STUDIES
from veil.files import is_seeded, read_reports
from veil.wire import encode_batch

TEXTS = ("because", "lineage", "said")
"""Sentences in results: a change of wording is no change of numbers."""
RECORDED = json.loads(DIGESTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TASKS)
def test_seeded_reports_and_their_tally_have_the_recorded_digests(name: str) -> None:
    assert digests_of(name, TASKS[name]) == RECORDED[name]


@pytest.mark.parametrize("form", REPORT_FILES)
def test_a_recorded_report_file_holds_the_recorded_reports(form: str) -> None:
    survey = TASKS["public columns"]
    (reports,) = read_reports(REPORT_FILES[form], survey)
    assert encode_batch(reports) == encode_batch(reports_of(survey, 20))
    assert is_seeded(REPORT_FILES[form])


def test_every_kind_of_study_is_read() -> None:
    assert {study.kind for study, _ in studies().values()} == set(STUDIES)


def test_simulated_results_have_the_recorded_numbers() -> None:
    recorded = {line["name"]: line["document"] for line in read_lines() if line["family"] == "result"}
    found = {name: result.to_json() for name, result in results().items()}
    assert set(found) == set(recorded)
    assert [name for name in found if not close(found[name], recorded[name])] == []


def close(one: Any, other: Any) -> bool:
    """True if two documents are equal but for texts and the last digits of floats, which differ between machines."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9, abs=1e-12)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(name in TEXTS or close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return type(one) is type(other) and one == other
