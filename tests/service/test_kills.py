"""Nothing lost, nothing doubled: SIGKILL at random moments under load. `make acceptance` does it 25 times a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.service.harness import running
from tests.service.kills import kill_under_load


def test_five_kills_on_sqlite(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.1") as collector:
        happened = kill_under_load(collector, kills=5)
        assert happened["retries"]  # the kills did hit requests under way


@pytest.mark.acceptance
def test_25_kills_on_sqlite(tmp_path: Path) -> None:
    with running(tmp_path / "data", VEIL_TALLY_SECONDS="0.1") as collector:
        assert kill_under_load(collector, kills=25, seed=1)["retries"]
