"""The distribution is `veil-ldp`: no text installs `veil`, a name on the public index that belongs to others."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_INSTALLERS = r"(?:pip[0-9.x]*|pipx|uv|uvx|poetry|pdm|conda|mamba|easy_install|\$\(INSTALL\)|\$INSTALL)"
_INSTALL = re.compile(
    rf"(?<![\w.-]){_INSTALLERS}\b(?:\s+[\w./=-]+)*?\s+(?:install|add|inject|run|download)\s([^\n`|;&]*)"
)
_OTHERS_NAME = re.compile(r"veil(?:\[.*|[=<>~!@].*)?")
_EXTRA = re.compile(r"(?<![\w./\[-])veil\[[a-z]")


def bare_installs(text: str) -> list[str]:
    """Return the installs of `veil` in a text: by a command, or as a requirement with an extra."""
    found = [match[0] for match in _EXTRA.finditer(text)]
    for match in _INSTALL.finditer(text):
        words = [word.strip("'\"(),") for word in match[1].split()]
        found += [match[0].strip() for word in words if _OTHERS_NAME.fullmatch(word)]
    return found


@pytest.mark.parametrize(
    "text",
    [
        "pip install veil",
        "pip3 install --upgrade 'veil'",
        "python -m pip install veil==1.0 numpy",
        "env/bin/pip install 'veil[spark,sql]' venv-pack",
        "uv pip install veil",
        "uv add veil",
        "uv tool install veil",
        "pipx install veil",
        "Needs `veil[plot]`.",
        'dev = ["veil[plot]"]',
    ],
)
def test_an_install_of_the_other_distribution_is_found(text: str) -> None:
    assert bare_installs(text)


@pytest.mark.parametrize(
    "text",
    ["pip install veil-ldp", "pip install 'veil-ldp[sql]'", "pip install -e '.[plot]'", "`pip install .` of veil"],
)
def test_other_installs_are_not_found(text: str) -> None:
    assert not bare_installs(text)


def test_no_text_of_the_repository_installs_the_other_distribution() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this tree is no git repository: nothing says what belongs to it")
    problems = {}
    for name in listed:
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            text = path.read_bytes().decode(errors="ignore")
            if found := bare_installs(text):
                problems[name] = found
    assert not problems


def test_the_distribution_has_its_own_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "veil-ldp"
    assert set(project["scripts"]) == {"veil"}
