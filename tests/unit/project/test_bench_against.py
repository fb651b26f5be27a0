"""`make bench ARGS='--against COMMIT'`: two checkouts measured in turns, and the verdict on their difference."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
from bench.against import Comparison, Side, Wanted, compare, table
from bench.timing import Contestant, Row, Setting, local, once
from rich.console import Console

ROOT = Path(__file__).resolve().parents[3]
ROWS = """
import time
from bench.timing import Contestant, NotRunError, Row, local, once

def rows(setting):
    work = local(lambda: time.sleep({seconds}), 10)
    yield Row("work", "a limit", 1.0, work, 1.0, 2)
    yield Row("work", "a rival", None, work, lambda: 1 / 0, 2)
    yield Row("memory", "a limit", 1.0, once(lambda: {megabytes}), 1.0, 1)
    yield Row("for orientation", "a limit", None, Contestant(lambda: {orientation}, 2), 1.0, 1)
    yield Row("{name}", "a limit", 1.0, Contestant(lambda: 1.0, 2), 1.0, 1)
    def missing():
        raise NotRunError("no compiler")
    yield Row("cannot run", "a limit", 1.0, once(missing), 1.0, 1)
"""


def checkout(folder: Path, **parts: object) -> Side:
    (folder / "bench").mkdir(parents=True)
    for name in ("__init__", "side", "timing"):
        shutil.copy(ROOT / "bench" / f"{name}.py", folder / "bench")
    groups = (ROOT / "bench" / "groups.py").read_text()
    start, end = groups.index("GROUPS = {"), groups.index("}\n")
    groups = groups[:start] + 'GROUPS = {"toy": "bench.toy:rows", "gone": "bench.gone:rows"' + groups[end:]
    (folder / "bench" / "groups.py").write_text(groups)
    (folder / "bench" / "toy.py").write_text(ROWS.format(**parts))
    return Side(folder, sys.executable)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Side, Side]:
    fast = checkout(tmp_path / "a", seconds=0, megabytes=300.0, orientation=1.0, name="before only")
    slow = checkout(tmp_path / "b", seconds=0.2, megabytes=300.0, orientation=1.5, name="after only")
    return fast, slow


def test_slower_side_is_worse(sides: tuple[Side, Side]) -> None:
    rows = {row.what: row for row in compare(*sides, [Wanted("toy")], Setting())}
    assert {what: row.verdict for what, row in rows.items()} == {
        "work": "worse",
        "memory": "the same",
        "for orientation": "worse",
        "cannot run": "not compared: no compiler",
        "before only": "not compared: only before",
        "after only": "not compared: only after",
    }
    assert len(rows["work"].ratios) == 5
    assert rows["memory"].ratios == [1.0] * 5
    assert rows["for orientation"].ratios == [1 / 1.5] * 5
    assert rows["work"].required
    assert not rows["for orientation"].required
    console = Console(width=200, record=True, quiet=True)
    console.print(table(list(rows.values()), "abc1234"))


def test_faster_side_is_better(sides: tuple[Side, Side]) -> None:
    wanted = [Wanted.parse("toy:wor"), Wanted.parse("toy:orient")]
    rows = compare(*reversed(sides), wanted, Setting(), runs=2)
    assert [(row.what, row.verdict) for row in rows] == [("work", "better"), ("for orientation", "better")]


def test_rows_of_a_group_that_cannot_be_imported_are_not_compared(sides: tuple[Side, Side]) -> None:
    shutil.copy(sides[1].checkout / "bench" / "toy.py", sides[1].checkout / "bench" / "gone.py")
    rows = compare(*sides, [Wanted("gone", "memory")], Setting())
    assert [(row.what, row.verdict) for row in rows] == [("memory", "not compared: only after")]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.96, 0.96, 0.96, 0.96, 1.2], "worse"),
        ([0.96, 0.96, 0.96, 1.0, 1.0], "the same"),
        ([0.975] * 5, "the same"),
        ([1.04, 1.04, 1.04, 1.04, 0.5], "better"),
    ],
)
def test_worse_means_three_per_cent_in_four_of_five_runs(ratios: list[float], verdict: str) -> None:
    assert Comparison("toy", "work", True, ratios).verdict == verdict


def test_rows_are_measured_lazily() -> None:
    runs = list[str]()

    def run(name: str, cost: float) -> float:
        runs.append(name)
        return cost

    ours, rival = (Contestant(partial(run, name, cost), 2) for name, cost in (("a", 1.0), ("b", 3.0)))
    row = Row("work", "a rival", 2.0, ours, rival, 2)
    assert not runs
    assert row.outcome().ratio == 3.0
    assert runs == ["a", "b"] * 3
    assert Row("work", "a limit", 2.0, once(lambda: 4.0), 1.0, 1).outcome().missed
    assert Row("work", "a limit", None, local(lambda: None, 1), 1.0, 1).outcome().verdict == "for orientation"
