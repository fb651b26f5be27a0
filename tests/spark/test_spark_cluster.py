"""On a real standalone cluster: a master and two workers as processes, some of which are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.spark_cluster import ROOT


def ran(case: str, folder: Path, people: int) -> str:
    """A case in a process of its own; what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    command = [sys.executable, "-m", "tests.spark.on_cluster", case, str(folder), str(people)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    return done.stdout


@pytest.mark.acceptance
def test_counting_on_a_cluster_while_workers_die(java: None, tmp_path: Path) -> None:
    said = ran("counting", tmp_path, 200_000)
    assert said.count("the same") == 8


@pytest.mark.acceptance
def test_20_million_reports_on_a_cluster(java: None, tmp_path: Path) -> None:
    assert ran("counting", tmp_path, 20_000_000).count("the same") == 8


@pytest.mark.acceptance
def test_nobody_gets_two_reports(java: None, tmp_path: Path) -> None:
    assert "0 people twice, 0 not at all" in ran("drawing", tmp_path, 1_600_000)


@pytest.mark.acceptance
@pytest.mark.parametrize("case", ["nobody", "other-version"])
def test_a_cluster_that_cannot_count_says_so(case: str, java: None, tmp_path: Path) -> None:
    assert "holds" in ran(case, tmp_path, 10_000)
