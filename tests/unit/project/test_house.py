"""Figures of wording and complexity stay below their ceilings; `python -m tests.support.house` shows all figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.house.ceilings import ROOT, excess, recorded
from tests.support.house.changes import against
from tests.support.house.figures import LIMITED, TREES, Place, Source, by_file, concepts, limited, read, sizes

SAMPLE = '''"""What is told of a sample."""

from abc import (
    abstractmethod,
)


class First:
    # nobody reads this

    @abstractmethod
    def found(self, a, b):
        """Return so many."""
        made = [x for x in a if x and b]
        return "one or two"


class _Second: ...


READERS = {"first": First, "second": _Second}
MODULES = {"first": "veil.first:First"}
LABELS = {"first": "one", "second": "two"}
'''
SOURCE = Source("sample.py", SAMPLE)


def test_figures_are_below_their_ceilings() -> None:
    problem = excess(limited(read(ROOT / TREES[0])), recorded())
    assert not problem, f"\n{problem}"


def test_wording_and_names_of_a_sample() -> None:
    places = limited([SOURCE])
    assert [place.line for place in places["clause_docstrings"]] == [1]
    # a docstring of one line counts as a docstring and as a text
    assert sorted(place.line for place in places["vague_texts"]) == [1, 1, 9, 12, 13]
    assert [(place.line, place.text) for place in places["odd_names"]] == [(12, "found"), (14, "made")]


@pytest.mark.parametrize(("branches", "count"), [(11, 0), (12, 1)])
def test_complex_functions_have_more_than_twelve_points(branches: int, count: int) -> None:
    body = "".join(f"    if x == {i}:\n        pass\n" for i in range(branches))
    assert len(limited([Source("a.py", f"def f(x):\n{body}")])["complex_functions"]) == count


def test_size_and_concepts_of_a_sample() -> None:
    assert sizes([SOURCE]) == {"files": 1, "files_under_80": 1, "lines": 23, "code_lines": 12, "import_lines": 3}
    assert {name: [place.text for place in places] for name, places in concepts([SOURCE]).items()} == {
        "classes": ["First", "_Second"],
        "abstract_methods": ["found"],
        "registries": ["READERS", "MODULES"],
    }


def test_an_excess_names_the_file_and_the_places() -> None:
    empty: dict[str, list[Place]] = {name: [] for name in LIMITED}
    before = by_file(empty | {"odd_names": [Place("a.py", 1, "found"), Place("b.py", 2, "made")]})
    moved = empty | {"odd_names": [Place("c.py", 1, "found"), Place("b.py", 2, "made")]}
    assert excess(moved, before) == ""
    more = empty | {"odd_names": [*moved["odd_names"], Place("b.py", 9, "told")]}
    problem = excess(more, before)
    assert "odd names: expected at most 2, got 3" in problem
    assert "src/veil/b.py: 1 before, 2 now" in problem
    assert "line 9: told" in problem
    assert "python -m tests.support.house -v" in problem


def test_changes_of_two_trees(tmp_path: Path) -> None:
    body = "def f(x):\n    y = x + 1\n    return y\n"
    for side, files in (("old", {"a.py": body + "\nz = 1\n"}), ("new", {"b.py": "import os\n" + body})):
        for name, text in files.items():
            path = tmp_path / side / "src" / "veil" / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
    rows = {name: (old, new, change) for name, old, new, change in against(tmp_path / "old", tmp_path / "new")}
    assert rows["lines of src/veil"] == (5, 4, -1)
    assert rows["moved lines"] == ("", "", 3)
    assert rows["removed lines, without moved and blank"] == ("", "", -1)
    assert rows["added lines, without moved and blank"] == ("", "", 1)
