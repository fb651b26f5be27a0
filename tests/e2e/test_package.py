"""What `pip install .` and a package index get: built from a clean copy of the tree, checked and installed."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest

import veil

ROOT = Path(__file__).resolve().parents[2]
# of the repository, and of nobody who has only the archive
LEFT_OUT = {".gitignore", ".ci/run"}


@dataclass(frozen=True)
class Built:
    """A clean copy of the tree, the names of its files, and what was built from it."""

    tree: Path
    files: frozenset[str]
    wheel: Path
    archive: Path

    def metadata(self) -> Message:
        with ZipFile(self.wheel) as wheel:
            return email.message_from_bytes(wheel.read(f"veil_ldp-{veil.__version__}.dist-info/METADATA"))


def files_of_the_project() -> list[str]:
    """What git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this tree is no git repository: nothing says what belongs to it")
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    tree, files = tmp_path_factory.mktemp("package"), files_of_the_project()
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    # `build` makes the wheel from the source archive: that is how an archive which lacks something shows
    command = [sys.executable, "-m", "build", "--no-isolation", str(tree)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (wheel,), (archive,) = (tree / "dist").glob("*.whl"), (tree / "dist").glob("*.tar.gz")
    return Built(tree, frozenset(files), wheel, archive)


def test_a_package_index_would_take_it(built: Built) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", built.wheel, built.archive]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    with ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    assert {"veil/py.typed", "veil/engines/hashed.cu", "veil/cli/main.py", "veil_papers/__init__.py"} <= names
    assert {name.partition("/")[0] for name in names} == {
        "veil",
        "veil_papers",
        f"veil_ldp-{veil.__version__}.dist-info",
    }
    sources = {name.removeprefix("src/") for name in built.files if name.startswith("src/")}
    assert sources == {name for name in names if ".dist-info/" not in name}


def test_the_source_archive_is_complete(built: Built) -> None:
    with tarfile.open(built.archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if "/" in name}
    assert not built.files - LEFT_OUT - names
    own = re.compile(r"PKG-INFO|setup\.cfg|src/veil_ldp\.egg-info(/.*)?")  # what setuptools adds
    with tarfile.open(built.archive) as archive:
        added = {member.name.partition("/")[2] for member in archive if member.isfile()} - built.files
    assert not [name for name in added if not own.fullmatch(name)]


def test_the_readme_has_no_link_that_breaks_elsewhere(built: Built) -> None:
    metadata = built.metadata()
    text = metadata.get_payload()
    links = re.findall(r"\]\(([^)\s]+)\)", str(text))
    here = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) == len(here) > 30
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    for link, before in zip(links, here, strict=True):
        if before.startswith("https://"):
            assert link == before
            continue
        kind, version, path = re.fullmatch(rf"{re.escape(repository)}/(blob|tree)/v([^/]+)/(.+)", link).groups()  # type: ignore[union-attr]
        assert version == veil.__version__
        assert (ROOT / path).is_dir() if kind == "tree" else (ROOT / path).is_file()


def test_the_project_says_where_it_lives(built: Built) -> None:
    urls = dict(line.split(", ") for line in built.metadata().get_all("Project-URL", []))
    assert {"Repository", "Documentation", "Changelog", "Issues"} <= set(urls)
    for url in urls.values():
        assert urlsplit(url).scheme == "https"
        assert url.startswith(urls["Repository"]), "one address, written in one way"


def test_it_installs_from_a_clone_and_runs(built: Built, tmp_path: Path) -> None:
    where = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-compile"]
    done = subprocess.run([*command, "--target", where, built.tree], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    environment = os.environ | {"PYTHONPATH": str(where)}
    script = "import veil; print(veil.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert Path(found.stdout.strip()).is_relative_to(where)
    told = subprocess.run([where / "bin" / "veil", "--version"], env=environment, capture_output=True, text=True)
    assert told.stdout == f"veil {veil.__version__}\n"
