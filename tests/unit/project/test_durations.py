"""The recorded durations of tests: how a run updates them, and how they order files and mark slow tests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.durations import SLOW_SECONDS, Durations, Recorder


def record(path: Path, seconds: dict[str, float]) -> Durations:
    recorder = Recorder(path)
    for test, each in seconds.items():
        for part in (0.25, 0.75):  # set-up and call
            report: Any = SimpleNamespace(nodeid=test, duration=part * each)
            recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    return Durations.load(path)


def test_a_run_replaces_the_files_that_it_ran(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    first = record(path, {"tests/unit/test_a.py::test_x": 1.0, "tests/unit/test_b.py::test_y[1]": 2.0})
    assert first == Durations(
        {"tests/unit/test_a.py": 1.0, "tests/unit/test_b.py": 2.0},
        {"tests/unit/test_a.py::test_x": 1.0, "tests/unit/test_b.py::test_y[1]": 2.0},
    )
    second = record(path, {"tests/unit/test_a.py::test_x": SLOW_SECONDS / 2, "tests/e2e/test_c.py::test_z": 9.0})
    assert second == Durations(
        {"tests/unit/test_a.py": SLOW_SECONDS / 2, "tests/unit/test_b.py": 2.0, "tests/e2e/test_c.py": 9.0},
        {"tests/unit/test_b.py::test_y[1]": 2.0},
    )


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{}", '{"files": [], "slow": {}}', '{"files": {"a": "b"}, "slow": {}}']
)
def test_missing_or_damaged_record_is_empty(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "durations.json"
    if text is not None:
        path.write_text(text)
    assert Durations.load(path) == Durations()
    assert Durations.load(path).of_scope("tests/unit/test_a.py") == 0.0
    assert record(path, {"tests/unit/test_a.py::test_x": 1.0}).files == {"tests/unit/test_a.py": 1.0}


def test_unknown_files_count_as_their_folder_and_spark_is_one() -> None:
    files = {"tests/unit/test_a.py": 1.0, "tests/unit/test_b.py": 3.0, "tests/spark/test_c.py": 20.0}
    durations = Durations({**files, "tests/spark/test_d.py": 30.0})
    assert durations.of_scope("tests/unit/test_new.py") == 2.0
    assert durations.of_scope("tests/spark/test_new.py") == durations.of_scope("tests/spark/test_c.py") == 50.0
    assert durations.of_scope("src/veil/reports/tally.py") == 0.0
    assert durations.of_scope("tests/e2e/test_e.py") > durations.of_scope("tests/unit/test_new.py")


def test_long_files_come_first_and_slow_tests_are_marked() -> None:
    root, marked = Path("/checkout"), list[str]()

    def item(test: str) -> Any:
        mark: Any = lambda name: marked.append(f"{test} {name}")  # noqa: E731
        return SimpleNamespace(path=root / test.partition("::")[0], nodeid=test, add_marker=mark)

    files = {"tests/unit/test_a.py": 1.0, "tests/unit/test_b.py": 3.0, "tests/spark/test_c.py": 2.0}
    tests = [
        "src/veil/reports/tally.py::f",
        "tests/unit/test_a.py::x",
        "tests/unit/test_b.py::y",
        "tests/unit/test_b.py::x",
    ]
    items = [item(test) for test in [*tests, "tests/spark/test_c.py::z", "tests/e2e/test_new.py::z"]]
    Durations(files, {"tests/unit/test_b.py::x": 2.0, "tests/unit/test_gone.py::x": 2.0}).arrange(items, root)
    assert [one.nodeid for one in items] == [
        "tests/e2e/test_new.py::z",
        "tests/unit/test_b.py::y",
        "tests/unit/test_b.py::x",
        "tests/spark/test_c.py::z",
        "tests/unit/test_a.py::x",
        "src/veil/reports/tally.py::f",
    ]
    assert marked == ["tests/unit/test_b.py::x slow"]
