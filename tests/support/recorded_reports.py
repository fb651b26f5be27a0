"""Digests of seeded reports and of their tallies, and small report files: see docs/decisions/0042-guards.md."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.document_examples import TASKS

from veil import Items, Record, Survey
from veil.domain import Domain
from veil.entropy import SeededForExperiments
from veil.files import ReportWriter
from veil.files.reports import write_parquet
from veil.reports.columns import Reports
from veil.wire import encode_batch, encode_tally
from veil.wire.arrow import arrow_schema

_HOUSE = Path(__file__).parents[1] / "fixtures" / "house"
DIGESTS = _HOUSE / "reports.json"
REPORT_FILES = {"arrow": _HOUSE / "reports.arrow", "parquet": _HOUSE / "reports.parquet"}
_PEOPLE = 65_536 + 64  # reports are drawn in chunks of 65,536: these need a second one


def reports_of(survey: Survey, people: int) -> Reports:
    """Draw reports of made-up people from a seed."""
    public = {column.name: np.arange(people) - 3 for column in survey.public} or None
    values = _values(survey.domain, people)
    return survey.randomize(values, SeededForExperiments(7), public=public)


def digests_of(name: str, survey: Survey) -> dict[str, Any]:
    """Return the SHA-256 of a survey's batch and of its tally, and the columns of its report files."""
    reports = reports_of(survey, _PEOPLE)
    large = {i: [1, 2] for i, question in enumerate(survey.questions) if question.mechanism.domain.size > 1 << 12}
    return {
        "batch": hashlib.sha256(encode_batch(reports)).hexdigest(),
        "tally": hashlib.sha256(encode_tally(survey.tally(reports, candidates=large or None))).hexdigest(),
        "columns": [[field.name, str(field.type)] for field in arrow_schema(survey)],
    }


def _values(domain: Domain, people: int) -> Any:
    """Return a value for each person: the domain's values in turn."""
    if isinstance(domain, Record):
        columns = [_values(part, people) for part in domain.parts]
        return [dict(zip(domain.names, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(domain, Items):
        items = domain.universe.decode(np.arange(domain.universe.size, dtype=np.uint64))
        return [items[: person % (len(items) + 1)] for person in range(people)]
    return domain.decode(np.arange(people, dtype=np.uint64) * np.uint64(7) % np.uint64(domain.size))


def write_report_files() -> None:
    """Write the reports of a few people as Arrow and as Parquet."""
    survey = TASKS["public columns"]
    with ReportWriter(REPORT_FILES["arrow"], survey, seeded=True) as writer:
        writer.write(reports_of(survey, 20))
    write_parquet(REPORT_FILES["parquet"], survey, [reports_of(survey, 20)], seeded=True)
