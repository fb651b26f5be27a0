"""The examples run as they stand, and say what they should."""

from __future__ import annotations

import os
import re
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


def test_the_shop_example_answers_in_sql_beside_the_truth(tmp_path: Path) -> None:
    picture, folder = tmp_path / "shop.svg", tmp_path / "shop"
    script = [sys.executable, EXAMPLES / "sql_ecommerce.py", "--out", picture, "--folder", folder, "--people", "60000"]
    environment = {name: value for name, value in os.environ.items() if name != "VEIL_DATA"}
    done = subprocess.run(script, check=True, capture_output=True, text=True, env=environment)
    found = re.search(r"(\d+) of (\d+) true answers lie in their 95 % interval", done.stdout)
    assert found is not None
    assert int(found[1]) >= 0.8 * int(found[2])
    assert "every report keeps a ratio of e^2 over region, category and price together" in done.stdout
    assert "predicted standard error" in done.stdout
    assert "Great Britain" in done.stdout
    assert list(folder.glob("part-*.parquet"))
    assert "<svg" in picture.read_text()
