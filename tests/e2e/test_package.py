"""What `pip install .` and a package index get: built from a clean copy of the tree, checked and installed."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from email.message import Message
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
from jsonschema import Draft7Validator
from referencing import Registry, Resource
from setup import description as described
from tests.support.snippets import blocks
from tools import release

import veil

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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
    text = str(built.metadata().get_payload())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    here = re.findall(r"\]\(([^)\s]+)\)", readme)
    files = [link for link in here if not link.startswith("https://")]
    assert len(files) > 30
    repository = PROJECT.get("urls", {}).get("Repository")
    assert text.strip() == described(readme, repository, veil.__version__).strip()
    without = described(readme, None, "1")
    assert re.findall(r"\]\(([^)\s]+)\)", without) == [link for link in here if link not in files]
    assert all(f"`{link.partition('#')[0]}`" in without for link in files)
    absolute = re.findall(r"\]\(([^)\s]+)\)", described(readme, "https://a.place/veil", "1"))
    assert len(absolute) == len(here)
    for link, before in zip(absolute, here, strict=True):
        if before.startswith("https://"):
            assert link == before
            continue
        found = re.fullmatch(r"https://a\.place/veil/(blob|tree)/v1/(.+)", link)
        assert found is not None, link
        assert (ROOT / found[2]).is_dir() if found[1] == "tree" else (ROOT / found[2]).is_file()


def test_its_addresses_exist_and_are_written_in_one_way(built: Built) -> None:
    urls = dict(line.split(", ") for line in built.metadata().get_all("Project-URL", []))
    assert urls == PROJECT.get("urls", {})
    for url in urls.values():
        assert urlsplit(url).scheme == "https"
        assert url.startswith(urls["Repository"]), "one address, written in one way"


def test_a_release_with_placeholders_is_refused(tmp_path: Path) -> None:
    for name in release.CHECKED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (line,) = release.problems(tmp_path)
    assert re.fullmatch(r"SECURITY\.md:\d+: expected a contact .*, got SET-BEFORE-RELEASE", line)
    security = tmp_path / "SECURITY.md"
    security.write_text(security.read_text(encoding="utf-8").replace(release.PLACEHOLDER, "ann@veil.org"))
    assert release.problems(tmp_path) == []
    with (tmp_path / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write('[project.urls]\nRepository = "https://veil.example/veil"\n')
    (line,) = release.problems(tmp_path)
    assert line.endswith("expected an address that exists, got https://veil.example")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_dist_checks_first_and_describes_last() -> None:
    command = ["make", "--dry-run", "--no-print-directory", "dist"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    steps = re.findall(r"release\.py check|rm -rf dist|-m build|twine check|release\.py describe dist", done.stdout)
    assert steps == ["release.py check", "rm -rf dist", "-m build", "twine check", "release.py describe dist"]


def test_a_release_has_digests_and_lists_what_it_needs(built: Built) -> None:
    if find_spec("cyclonedx") is None:
        message = "cyclonedx-python-lib is not installed (make setup): the SBOM was NOT tested"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    dist = built.wheel.parent
    release.describe(ROOT, dist)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(": OK") == 3
    (bom,) = dist.glob("*.cdx.json")
    document = json.loads(bom.read_text(encoding="utf-8"))
    spec = find_spec("cyclonedx.schema")
    assert spec is not None
    assert spec.origin is not None
    schemas = {
        name: Resource.from_contents(json.loads((Path(spec.origin).parent / "_res" / name).read_text(encoding="utf-8")))
        for name in ("bom-1.6.SNAPSHOT.schema.json", "spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json")
    }
    registry = Registry().with_resources(
        [(f"http://cyclonedx.org/schema/{name}", one) for name, one in schemas.items()]
    )
    Draft7Validator(schemas["bom-1.6.SNAPSHOT.schema.json"].contents, registry=registry).validate(document)
    root = document["metadata"]["component"]
    assert (root["name"], root["version"]) == ("veil-ldp", veil.__version__)
    digests = {one["url"]: one["hashes"][0]["content"] for one in root["externalReferences"]}
    assert digests == {path.name: release.digest(path) for path in (built.wheel, built.archive)}
    parts = {one["name"]: one for one in document["components"]}
    named = release.tested_versions((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert {one["name"]: one["version"] for one in parts.values()} == {name: named[name] for name in parts}
    assert {"numpy", "llvmlite", "cffi"} <= {name for name, one in parts.items() if one["scope"] == "required"}
    assert {"uvicorn", "duckdb", "pyspark"} <= {name for name, one in parts.items() if one["scope"] == "optional"}
    assert not {"pytest", "ruff", "mypy", "cyclonedx-python-lib"} & set(parts)
    edges = {one["ref"]: one.get("dependsOn", []) for one in document["dependencies"]}
    assert parts["llvmlite"]["bom-ref"] in edges[parts["numba"]["bom-ref"]]
    assert {parts[name]["bom-ref"] for name in ("numpy", "uvicorn")} <= set(edges[root["bom-ref"]])


def test_a_clone_says_where_to_report_a_vulnerability(tmp_path: Path) -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert re.search(r"^Contact: \*\*\S+\*\*$", page, re.MULTILINE)
    for name in re.findall(r"`(\.github/[\w./-]+)`", page):
        assert (ROOT / name).is_file()
    files_of_the_project()  # skips where this is no clone
    (block,) = [one for one in blocks(page) if one.language == "sh"]
    said = subprocess.run(["sh", "-ec", block.code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert re.match(r".+ <[^<>@\s]+@[^<>@\s]+>\n", said)


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
