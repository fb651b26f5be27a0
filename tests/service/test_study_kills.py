"""Studies go on after SIGKILL at any moment: a search in the middle of its reading, rounds between their steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.service.postgres import Server
from tests.service.study_kills import kills


@pytest.mark.parametrize("study", ["pem", "svim", "svsm"])
def test_a_few_kills(study: str, tmp_path: Path) -> None:
    assert kills(study, 2, tmp_path)["retries"]  # the kills did hit requests under way


def test_kills_on_postgres(postgres: Server, tmp_path: Path) -> None:
    kills("svim", 2, tmp_path, database=postgres.database)


@pytest.mark.acceptance
@pytest.mark.parametrize("study", ["pem", "svim", "svsm"])
def test_20_kills(study: str, tmp_path: Path) -> None:
    kills(study, 20, tmp_path, seed=1)
