"""Steps that run tests: how many passed, or which did not and why."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

_SHOWN = 12_000  # characters at the end of what pytest said
_NAMED = 8


def ran(root: Path, path: str, what: str, *options: str) -> tuple[list[tuple[str, str, str]], bool]:
    """Run the tests of a path in the repository; one row, and whether there were any and all of them passed.

    What is missing on this machine fails, and is not skipped. Of what fails, the row has the names, and all of the rest
    goes to standard error.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "junit.xml"
        command = [sys.executable, "-m", "pytest", "-q", path, f"--junitxml={log}", *options]
        strict = {**os.environ, "CI": "true"}
        done = subprocess.run(command, cwd=root, env=strict, check=False, capture_output=True, text=True)
        cases = list(ElementTree.parse(log).iter("testcase")) if log.exists() else []  # noqa: S314 - written above
    passed = done.returncode == 0 and bool(cases)
    if not passed:
        print((done.stdout + done.stderr)[-_SHOWN:], file=sys.stderr)
    return [(what, f"{len(cases)} passed" if passed else _failed(cases), "all")], passed


def _failed(cases: list[ElementTree.Element]) -> str:
    names = list(_failing(cases))
    if not names:
        return "failed before any test" if not cases else "failed beside the tests"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} of {len(cases)} failed: {', '.join(names[:_NAMED])}{more}"


def _failing(cases: list[ElementTree.Element]) -> Iterator[str]:
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            yield case.get("name", "?")
