"""Write constraints.txt: the tested version of every direct and indirect dependency of all extras except `gpu`.

    make constraints

Each Python that pyproject.toml names resolves the dependencies in a fresh environment, the oldest one first. The others
take the same versions where these exist for them; else they resolve anew, and the lines get markers. Nothing is
installed outside of temporary folders. The versions are those of this platform: what only another one needs is free.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"gpu"}  # its packages are for one generation of CUDA each
HEADER = """\
# Made by `make constraints`: the tested version of every dependency, direct or not, of all extras except gpu.
# The Makefile, CI and the Dockerfile install with it; `make test CONSTRAINTS=` takes the newest versions instead.
"""

Versions = dict[str, str]
"""Versions by normalised name."""


def main() -> None:
    """Resolve for every Python, and write the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(sorted(set(project["optional-dependencies"]) - LEFT_OUT))
    pythons = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r":: Python :: 3\.\d+$", line)]
    commands = {python: command_of(python) for python in pythons}
    found: dict[str, Versions] = {}
    for python, command in commands.items():
        before = next(iter(found.values()), None)
        print(f"resolving for Python {python}", file=sys.stderr)
        found[python] = resolved(command, f"{ROOT}[{extras}]", before)
        del found[python][project["name"]]
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(lines(found)) + "\n", encoding="utf-8")


def command_of(python: str) -> str:
    """Return the command of a Python; it has to be there, because the versions have to suit it."""
    command = shutil.which(f"python{python}")
    if command is None or subprocess.run([command, "-c", ""], capture_output=True, check=False).returncode:
        sys.exit(f"make constraints: expected a command python{python} that runs (with pyenv: set PYENV_VERSION)")
    return command


def resolved(python: str, requirement: str, before: Versions | None) -> Versions:
    """Return what pip would install into a fresh environment, with the versions in `before` if that is possible."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        subprocess.run([python, "-m", "venv", work / "env"], check=True)
        pip = [work / "env/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        dry = [*pip, "--dry-run", "--ignore-installed", "--report", work / "report.json", requirement]
        if before is not None:
            (work / "before.txt").write_text("\n".join(f"{name}=={version}" for name, version in before.items()))
            # a version without a wheel for this Python would be built from its sources, by whoever installs it
            binary = ["--only-binary", ",".join(sorted(name for name in before if name != "pyspark"))]
            done = subprocess.run([*dry, "--constraint", work / "before.txt", *binary], check=False)
            if done.returncode == 0:
                return versions_in(work / "report.json")
        subprocess.run(dry, check=True)
        return versions_in(work / "report.json")


def versions_in(report: Path) -> Versions:
    """Return the versions in a report of pip."""
    installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {normalised(one["metadata"]["name"]): one["metadata"]["version"] for one in installs}


def normalised(name: str) -> str:
    """Return a distribution's name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(found: Mapping[str, Versions]) -> list[str]:
    """Return the lines of the file: without a marker where a version is for every Python.

    >>> lines({"3.11": {"a": "1", "b": "1", "c": "1"}, "3.12": {"a": "1", "b": "2"}, "3.13": {"a": "1", "b": "2"}})
    ['a==1', 'b==1 ; python_version < "3.12"', 'b==2 ; python_version >= "3.12"', 'c==1 ; python_version < "3.12"']
    """
    written = []
    for name in sorted({name for versions in found.values() for name in versions}):
        by_version: dict[str, list[str]] = {}
        for python, versions in found.items():
            if name in versions:
                by_version.setdefault(versions[name], []).append(python)
        for version, pythons in by_version.items():
            written.append(f"{name}=={version}{marker(pythons, list(found))}")
    return written


def marker(pythons: Sequence[str], known: Sequence[str]) -> str:
    """Return the marker for some of the known Pythons, which are in their order."""
    if len(pythons) == len(known):
        return ""
    if pythons == known[: len(pythons)]:
        return f' ; python_version < "{known[len(pythons)]}"'
    if pythons == known[-len(pythons) :]:
        return f' ; python_version >= "{pythons[0]}"'
    return " ; " + " or ".join(f'python_version == "{python}"' for python in pythons)


if __name__ == "__main__":
    main()
