"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_python_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    drinks = ["tea", "coffee", "water", "juice"]
    names: dict[str, Any] = {"answers": drinks * 500, "drinks": drinks, "dollars": range(0, 200_000, 40)}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert len(names["estimate"].top(3)) == 3
    assert (tmp_path / "ledger").exists()
    assert 80_000 < names["incomes"].mean() < 120_000


def test_the_python_about_numbers_runs() -> None:
    names: dict[str, Any] = {"values": range(0, 200_000, 40)}
    blocks = re.findall(r"```python\n(.*?)```", (README.parent / "docs" / "numeric.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "numeric.md", "exec"), names)
