"""The page about SQL: what its commands print is what they print, its truths are true, and its schema is one."""

from __future__ import annotations

import os
import re
import runpy
import sys
import textwrap
from pathlib import Path

import pytest
from docs.generate_sql import PAGE, page
from tests.support.snippets import blocks, follow

from veil.sql import read_schema

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")


@pytest.mark.acceptance
def test_the_page_shows_what_its_commands_print_and_the_rest_of_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    written = PAGE.read_text(encoding="utf-8")
    rest = [block for block in blocks(written) if block.runs]
    assert [block.language for block in rest] == ["python", "sh", "sh", "python", "python"]
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert written == page(written, then=lambda: follow("docs/sql.md", rest)), "run `python docs/generate_sql.py`"


def test_what_the_page_calls_true_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    code = text[text.index("    # people.py") : text.index("**Plan**")]
    (tmp_path / "people.py").write_text(textwrap.dedent(code))
    monkeypatch.chdir(tmp_path)
    people = runpy.run_path("people.py")
    age, salary, spent = (people[name] for name in ("age", "salary", "purchase"))
    meant = (age >= 30) & (age <= 40) & (salary >= 50_000) & (salary <= 149_999)
    told = f"In truth it is {spent[meant].sum():,.0f} by {meant.sum():,} people, {spent[meant].mean():.1f} each"
    assert told in text
    groups = [(people["os"] == os) & (people["state"] == "NY") & (age < 40) for os in ("Android", "Win", "iOS")]
    counts, means = [f"{one.sum():,}" for one in groups], [f"{spent[one].mean():.1f}" for one in groups]
    both = [f"{some[0]}, {some[1]} and {some[2]}" for some in (counts, means)]
    assert f"In truth {both[0]} people spent {both[1]} each." in text


def test_the_schema_of_the_page_is_one(tmp_path: Path) -> None:
    found = re.search(r"(?s)\n(    \[table\]\n.*?)\n\n## ", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    (tmp_path / "shop.toml").write_text(textwrap.dedent(found[1]))
    table = read_schema(tmp_path / "shop.toml")
    assert table.private.names == ("age", "salary", "born", "state")
    assert [column.name for column in table.public] == ["purchase", "os", "bought"]
