"""docs/compatibility.md names the versions that the code writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from veil.collector.store.schema import latest
from veil.device import ledger_file as journal
from veil.device import outbox
from veil.study import study
from veil.wire import frames

PAGE = Path(__file__).resolve().parents[3] / "docs" / "compatibility.md"


@pytest.mark.parametrize(
    ("row", "version", "written"),
    [
        ("the collector's database", r"its schema, now (\d+)", latest()),
        ("a report, a batch, a tally", r"the version byte, now (\d+)", frames.VERSION),
        ("a study file", r'"veil-study"`, version (\d+)', study.VERSION),
        ("what a device keeps", r'"veil-outbox"` version (\d+)', outbox._VERSION),
        ("what a device keeps", r"`(veil-ledger \d+)`", journal.HEADER),
    ],
)
def test_the_page_names_the_version_that_the_code_writes(row: str, version: str, written: object) -> None:
    (line,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {row}")]
    found = re.search(version, line)
    assert found is not None, line
    assert found[1] == str(written)
