"""Durations of tests, recorded with `--record-durations`: which files come first, and which unit tests are slow.

`tests/durations.json` has the seconds of each file, and of each slow test in `tests/unit`. CI records it. A file that
is missing in it counts as the mean of its folder. Without the record all tests run; only order and marks differ.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

RECORD = Path(__file__).resolve().parents[1] / "durations.json"
SLOW_SECONDS = 0.1
UNIT = "tests/unit/"
GUESSES = {"tests/spark": 60.0, "tests/e2e": 20.0, "tests/service": 10.0, "tests/stat": 5.0, "tests/exact": 3.0}
"""Seconds of a file in folders that the record does not have."""


@dataclass(frozen=True)
class Durations:
    """Seconds by file, and by slow test."""

    files: Mapping[str, float] = field(default_factory=dict)
    slow: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, record: Path = RECORD) -> Durations:
        """Read a record; one that is missing or damaged says nothing."""
        try:
            document = json.loads(record.read_text(encoding="utf-8"))
            files, slow = ({str(k): float(v) for k, v in document[name].items()} for name in ("files", "slow"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return cls(files, slow)

    def of_scope(self, file: str) -> float:
        """Return the seconds of what one worker runs together: a file, or all files about Spark."""
        if file.startswith("tests/spark/"):
            known = [seconds for name, seconds in self.files.items() if name.startswith("tests/spark/")]
            return sum(known) if known else GUESSES["tests/spark"]
        return self.files.get(file, self._folders.get(str(PurePosixPath(file).parent), 0.0))

    def arrange(self, items: list[pytest.Item], root: Path) -> None:
        """Put the tests of long files first, in the order that they have within a file, and mark slow ones."""
        seconds = {path: self.of_scope(path.relative_to(root).as_posix()) for path in {item.path for item in items}}
        items.sort(key=lambda item: -seconds[item.path])
        for item in items:
            if item.nodeid in self.slow:
                item.add_marker("slow")

    @property
    def _folders(self) -> dict[str, float]:
        """The mean seconds of a file of each folder."""
        folders = defaultdict[str, list[float]](list)
        for name, seconds in self.files.items():
            folders[str(PurePosixPath(name).parent)].append(seconds)
        return GUESSES | {folder: sum(several) / len(several) for folder, several in folders.items()}


class Recorder:
    """A plugin that records how long tests took; files that did not run keep their seconds."""

    def __init__(self, record: Path = RECORD) -> None:
        self._record, self._tests = record, defaultdict[str, float](float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        before, files = Durations.load(self._record), defaultdict[str, float](float)
        for test, seconds in self._tests.items():
            files[test.partition("::")[0]] += seconds
        slow = {test: seconds for test, seconds in before.slow.items() if test.partition("::")[0] not in files}
        slow |= {test: s for test, s in self._tests.items() if s >= SLOW_SECONDS and test.startswith(UNIT)}
        document = {"files": {**before.files, **files}, "slow": slow}
        rounded = {name: {key: round(each[key], 2) for key in sorted(each)} for name, each in document.items()}
        self._record.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
