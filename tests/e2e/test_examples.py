"""The examples run as they stand, and say what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_the_income_example_draws_its_picture(tmp_path: Path) -> None:
    picture = tmp_path / "income.svg"
    script = [sys.executable, EXAMPLES / "income_distribution.py", "--out", picture]
    few = ["--people", "20000", "--replicates", "10"]
    done = subprocess.run([*script, *few], check=True, capture_output=True, text=True)
    assert "HH-ADMM" in done.stdout
    assert "95 % band" in done.stdout
    assert "<svg" in picture.read_text()


def test_the_joint_distribution_example_finds_what_goes_together(tmp_path: Path) -> None:
    picture = tmp_path / "people.svg"
    script = [sys.executable, EXAMPLES / "joint_distribution.py", "--out", picture, "--people", "60000"]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    said = {line.partition(":")[0]: line for line in done.stdout.splitlines()}
    assert "they go together" in said["shift and sleep"]
    assert "they go together" in said["age and smokes"]
    assert "nothing speaks for a tie" in said["sex and region"]
    assert "made up 60,000 people" in done.stdout
    assert "<svg" in picture.read_text()
