"""The first two commands of a new clone: the demo installs what it needs and nothing else; `make test` the rest."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

# Stands in the way of every package that was not named: as if it were not installed, in every process of the demo.
GUARD = """
import sys

class Guard:
    refused = {refused}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.refused:
            raise ModuleNotFoundError(f"No module named {{name!r}}: the demo must not need it", name=name)
        return None

sys.meta_path.insert(0, Guard)
"""


def would_run(target: str, environment: Path) -> list[str]:
    """The commands of a target of the Makefile for a clone whose environment is not there yet, or is."""
    command = ["make", "--dry-run", "--no-print-directory", target, f"VENV={environment}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of `make test` itself
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=clean)
    return done.stdout.splitlines()


def installed_by(target: str, environment: Path) -> list[str]:
    """What pip is asked for: the last word of its commands."""
    return [line.split()[-1].strip("'") for line in would_run(target, environment) if " pip install " in line]


def needed(requirements: list[str]) -> set[str]:
    """The names of everything that these requirements bring with them."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue  # for another platform or an older Python
        inner = [Requirement(line) for line in lines]
        extras = [{"extra": extra} for extra in (*one.extras, "")]
        wanted = [r for r in inner if r.marker is None or any(r.marker.evaluate(e) for e in extras)]
        waiting += [r for r in wanted if canonicalize_name(r.name) not in found]
        found.add(name)
    return found


def test_the_demo_installs_only_what_it_needs(tmp_path: Path) -> None:
    assert installed_by("demo", tmp_path / "none") == [".[collector]"]
    assert installed_by("test", tmp_path / "none") == [".[dev]"]
    assert not any("--upgrade" in line for line in would_run("test", tmp_path / "none"))


def test_nothing_is_installed_twice(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("bin/pip", ".demo-ready"):
        (tmp_path / name).touch()
    assert installed_by("demo", tmp_path) == []
    assert installed_by("test", tmp_path) == [".[dev]"]  # on top of what is there
    assert not any(" -m venv " in line for line in would_run("test", tmp_path))
    (tmp_path / ".ready").touch()
    assert installed_by("test", tmp_path) == installed_by("demo", tmp_path) == []


@pytest.mark.parametrize("old", [True, False])
def test_an_environment_with_the_old_name_loses_it_before_the_new_one_comes(tmp_path: Path, old: bool) -> None:
    """The distribution was named `veil`: two entries would leave two sets of metadata, and one could be stale."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/python3.11/site-packages/veil_ldp-0.2.0.dist-info").mkdir(parents=True)
    if old:
        (tmp_path / "lib/python3.11/site-packages/veil-0.2.0.dist-info").mkdir()
    for name, text in (("pip", ""), ("python", f'#!/bin/sh\necho "$@" >> {shlex.quote(str(tmp_path / "log"))}\n')):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "setup", f"VENV={tmp_path}"], check=True, capture_output=True, cwd=ROOT, env=clean)
    *before, last = (tmp_path / "log").read_text().splitlines()
    assert before == (["-m pip uninstall --quiet --yes veil"] if old else [])
    assert last.endswith(".[dev]")


def test_workers_take_whole_files_and_the_longest_first(tmp_path: Path) -> None:
    (command,) = [line for line in would_run("test", tmp_path / "none") if "/pytest " in line]
    assert "--dist loadfile --no-loadscope-reorder" in command
    assert "slow" not in command


def test_quick_runs_linters_and_unit_tests_that_are_not_slow(tmp_path: Path) -> None:
    commands = would_run("quick", tmp_path / "none")
    (command,) = [line for line in commands if "/pytest " in line]
    assert "--dist loadfile --no-loadscope-reorder" in command
    assert command.endswith("-m 'not acceptance and not slow' tests/unit")
    for linter in ("ruff check .", "ruff format --check .", "lint-imports"):
        assert any(linter in line for line in commands)


def test_the_demo_runs_on_what_it_installs(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = needed([*project["dependencies"], *project["optional-dependencies"]["collector"]]) | {"veil-ldp"}
    assert {"numba", "starlette", "psycopg-binary"} <= allowed
    refused = {
        module
        for module, owners in packages_distributions().items()
        if not allowed & {canonicalize_name(owner) for owner in owners}
    }
    assert {"pytest", "matplotlib", "httpx", "pandas", "sklearn"} <= refused
    (tmp_path / "sitecustomize.py").write_text(GUARD.format(refused=refused))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    blocked = subprocess.run([sys.executable, "-c", "import httpx"], capture_output=True, text=True, env=environment)
    assert "the demo must not need it" in blocked.stderr
    command = [sys.executable, "-m", "veil.cli", "demo", "--people", "500"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of 64 intervals contain the true share" in done.stdout
