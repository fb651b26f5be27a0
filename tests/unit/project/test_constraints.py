"""constraints.txt has a tested version of every dependency, and all installations use it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.make_constraints import lines

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13")


def constraints(python: str | None = None) -> dict[str, str]:
    """The versions of the file for a Python, or for the one that runs this."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate({"python_version": python} if python else None):
                assert one.name == canonicalize_name(one.name)
                assert one.name not in found, line
                (specifier,) = one.specifier
                assert specifier.operator == "=="
                found[one.name] = specifier.version
    return found


def of_the_project() -> list[Requirement]:
    """What pyproject.toml asks for, with all extras but `gpu`."""
    extras = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"], *(line for name in extras if name != "gpu" for line in extras[name])]
    return [one for one in map(Requirement, listed) if one.name != PROJECT["name"]]


def wanted(one: Requirement, extras: set[str]) -> bool:
    return one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def installed() -> dict[str, list[Requirement]]:
    """All installed distributions that the project needs, directly or not, with the requirements that name them."""
    found: dict[str, list[Requirement]] = {}
    waiting = [(one, set[str]()) for one in of_the_project()]
    seen = set()
    while waiting:
        one, extras = waiting.pop()
        if not wanted(one, extras):
            continue
        name = canonicalize_name(one.name)
        try:
            inner = requires(name) or []
        except PackageNotFoundError:
            continue  # of another platform or Python
        found.setdefault(name, []).append(one)
        if (name, frozenset(one.extras)) not in seen:
            seen.add((name, frozenset(one.extras)))
            waiting += [(Requirement(line), set(one.extras)) for line in inner]
    return found


def test_every_dependency_has_a_version_in_its_range() -> None:
    named, needed = constraints(), installed()
    assert {"numpy", "starlette", "pyspark", "pytest", "markupsafe"} <= set(needed)
    assert not set(needed) - set(named), "run `make constraints`"
    for name, asked in needed.items():
        for one in asked:
            assert one.specifier.contains(named[name], prereleases=True), f"{one}: run `make constraints`"


@pytest.mark.parametrize("python", PYTHONS)
def test_direct_dependencies_have_versions_for_every_python(python: str) -> None:
    named = constraints(python)
    for one in of_the_project():
        assert one.specifier.contains(named[canonicalize_name(one.name)], prereleases=True), one


@pytest.mark.skipif(not os.environ.get("CI"), reason="a laptop may have newer versions installed")
def test_ci_tests_the_versions_of_the_file() -> None:
    named = constraints()
    assert {name: version(name) for name in installed()} == {name: named[name] for name in installed()}


def test_listed_pythons_match_the_project() -> None:
    classified = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: Python :: 3\.", line)]
    assert tuple(classified) == PYTHONS


def test_versions_that_differ_between_pythons_get_markers() -> None:
    found = lines({"3.11": {"a": "1", "b": "1"}, "3.12": {"a": "1", "b": "2", "c": "1"}, "3.13": {"a": "1", "b": "2"}})
    assert found == [
        "a==1",
        'b==1 ; python_version < "3.12"',
        'b==2 ; python_version >= "3.12"',
        'c==1 ; python_version == "3.12"',
    ]
    assert all(Marker(line.partition(" ; ")[2]) for line in found[1:])


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("given", "said"), [([], True), (["CONSTRAINTS="], False)])
def test_make_installs_with_the_constraints_file(tmp_path: Path, given: list[str], said: bool) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "setup", f"VENV={tmp_path}", *given]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert (" --constraint constraints.txt --editable '.[dev]'" in done.stdout) is said


def test_ci_and_image_install_with_the_constraints_file() -> None:
    assert "make test CONSTRAINTS=constraints.txt ARGS=--record-durations\n" in (ROOT / ".ci/run").read_text(
        encoding="utf-8"
    )
    assert "--constraint constraints.txt '.[collector,sql]'" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
