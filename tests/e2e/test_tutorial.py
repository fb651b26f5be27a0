"""The tutorial runs from its first cell to its last, and prints what is stored in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from docs import generate_tutorial
from docs.generate_tutorial import PAGE, printed


def read(path: Path = PAGE) -> Any:
    return nbformat.read(path, as_version=4)


def test_the_tutorial_runs_and_prints_what_is_stored(tmp_path: Path) -> None:
    made = tmp_path / "made.ipynb"
    subprocess.run([sys.executable, generate_tutorial.__file__, made], check=True, capture_output=True)
    told = printed(read())
    assert printed(read(made)) == told, "run `python docs/generate_tutorial.py`"
    everything = "".join(text for cell in told for text in cell)
    assert "error:" not in everything
    assert "Decision: light the other stops." in everything
    assert "the interval covers it" in everything
    # April is another wave: who says the same again sends another report, within what the last section promises
    assert "the same again in March: True" in everything
    assert "the same in April: False; paid so far: eps = 2 of 2" in everything
    assert "'March': 'wave 1, 40,000 people', 'April': 'wave 2, 40,000 people'" in everything


def test_the_tutorial_is_stored_with_its_pictures() -> None:
    shown = [output.get("data", {}) for cell in read().cells for output in cell.get("outputs", ())]
    pictures = [data["image/png"] for data in shown if "image/png" in data]
    assert len(pictures) == 3
    assert all(len(picture) > 10_000 for picture in pictures)
    assert PAGE.stat().st_size < 500_000
