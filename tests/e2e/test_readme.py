"""What the README's Python finds is what it should find; that all of its code runs is seen in test_snippets.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.snippets import blocks

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_python_in_the_readme_finds_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    code = [block.code for block in blocks(README.read_text(encoding="utf-8")) if block.language == "python"]
    assert len(code) >= 3
    for block in code:
        exec(compile(block, "README.md", "exec"), names)
    assert len(names["estimate"].top(3)) == 3
    assert (tmp_path / "ledger").exists()
    assert 50_000 < names["incomes"].mean() < 75_000
