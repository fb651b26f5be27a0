"""The code in the README and on every page of the documentation runs as it stands, pasted in order."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.patience import LIMIT
from tests.service.browser.javascript import missing
from tests.support.everyday import everyday
from tests.support.snippets import DATA, NOT_RUN, RUN, Block, blocks, code_in_disguise, pasted
from tests.support.warm_start import program, warm_start

from veil.shuffle.rehearsal import free_addresses

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "reproduction" not in page.parts  # written by `veil reproduce`
)
MECHANISMS = [page for page in PAGES if page.startswith("docs/mechanisms/")]
SQL, DEVICES, BROWSER = "docs/sql.md", "docs/devices.md", "clients/js/README.md"
# Pages that a test of their own follows: what commands print, a collector, a browser.
INSTALL = "docs/collector/install.md"
ELSEWHERE = {
    SQL: "tests/e2e/test_sql_page.py",
    DEVICES: "tests/service/test_js_package.py",
    INSTALL: "tests/service/test_install_page.py",
}
FOLLOWED = [page for page in PAGES if page not in (*MECHANISMS, *ELSEWHERE)]
# Where something is not run: it needs a GPU, a database server, several machines or many minutes.
LEFT_OUT = {
    "docs/collector/deployment.md",
    INSTALL,
    "docs/collector/service.md",
    "docs/engines.md",
    "docs/peos.md",
    "docs/performance.md",
    "docs/sequential-shuffle.md",
    "docs/shuffle.md",
}
LONG = {"docs/cli.md", "docs/marginals.md", "docs/planning.md", "docs/shuffle.md"}
# What commands of veil import sooner or later. Pages of Python begin without it, as a reader does.
COMMANDS_IMPORT = (
    "veil.cli.main",
    "veil.cli.results",
    "veil.planning",
    "veil.simulation",
    "veil.sql",
    "veil.marginals",
)
# Commands that would change this machine, or take long: looked at, not run. The tests of each are elsewhere.
STAND_INS = {
    "make": f'exec /usr/bin/env -u MAKEFLAGS make --dry-run -C "{ROOT}" "$@" > /dev/null',
    "pip": f'exec "{sys.executable}" "{ROOT}/tests/support/extras.py" "$@"',
    "docker": '[ "$1" = compose ]',
}

Following = Callable[[list[str], Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def following() -> Iterator[Following]:
    """A way to follow pages in a folder, in an interpreter that has imported nothing of veil."""
    with tempfile.TemporaryDirectory() as name:
        folder, pages_at, commands_at = Path(name), Path(name) / "p", Path(name) / "c"
        commands = folder / "bin"
        commands.mkdir()
        program(commands / "veil", commands_at, "from veil.cli.main import run; run()", alone=("serve", "shuffler"))
        program(commands / "follow", pages_at, "from tests.support.snippets import main; main()")
        (commands / "python3").symlink_to(sys.executable)
        for command, does in STAND_INS.items():
            (commands / command).write_text(f"#!/bin/sh\nPATH={os.environ['PATH']}\n{does}\n")
            (commands / command).chmod(0o755)
        (place,) = free_addresses(1)
        path = f"{commands}:{os.environ['PATH']}"
        environment = os.environ | {
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "VEIL_PORT": str(place.port),
            "COLUMNS": "100",
        }

        def follow(pages: list[str], where: Path) -> subprocess.CompletedProcess[str]:
            asked = []
            for page in pages:
                found = [block for block in blocks((ROOT / page).read_text(encoding="utf-8")) if block.runs]
                asked.append(json.dumps([page, found]))
            command = [str(commands / "follow"), *asked]
            return subprocess.run(
                command, cwd=where, env=environment, capture_output=True, text=True, timeout=10 * LIMIT
            )

        with warm_start(pages_at), warm_start(commands_at, *COMMANDS_IMPORT):
            yield follow


def _quick(pages: list[str]) -> list[int]:
    """The places of those that take seconds; the others compare many ways to ask, and take half a minute each."""
    return [i for i, page in enumerate(pages) if page not in LONG]


def with_code(pages: list[str]) -> list[str]:
    return [page for page in pages if any(block.runs for block in blocks((ROOT / page).read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", everyday(with_code(FOLLOWED), *_quick(with_code(FOLLOWED))))
def test_a_page_can_be_followed(page: str, tmp_path: Path, following: Following) -> None:
    done = following([page], tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_pages_of_mechanisms_can_be_followed(tmp_path: Path, following: Following) -> None:
    pages = with_code(MECHANISMS)
    assert len(pages) == len(MECHANISMS)
    done = following(pages, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_code_is_marked_as_code(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == SQL:
        text = text[text.index("In Python:") :]
    assert not code_in_disguise(text)


@pytest.mark.parametrize("page", [*PAGES, BROWSER])
def test_a_language_is_one_that_somebody_runs(page: str) -> None:
    known = {*RUN, *DATA} | ({"js"} if page == DEVICES else {"js", "html"} if page == BROWSER else set())
    found = blocks((ROOT / page).read_text(encoding="utf-8"))
    assert {block.language for block in found} <= known
    for block in found:
        if block.language == "python":
            assert list(pasted(page, block))


@pytest.mark.parametrize("page", ELSEWHERE)
def test_a_page_that_is_followed_elsewhere_is(page: str) -> None:
    assert page.rpartition("/")[2] in (ROOT / ELSEWHERE[page]).read_text(encoding="utf-8")


def test_the_code_of_the_browsers_page_is_javascript(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        missing("node")
    for number, block in enumerate(blocks((ROOT / BROWSER).read_text(encoding="utf-8"))):
        script = re.search(r"<script type=.module.>(.*)</script>", block.code, re.DOTALL)
        if block.language in ("js", "html"):
            module = tmp_path / f"{number}.mjs"
            module.write_text(block.code if script is None else script[1], encoding="utf-8")
            done = subprocess.run(["node", "--check", str(module)], capture_output=True, text=True, timeout=LIMIT)
            assert done.returncode == 0, f"line {block.line}: {done.stderr}"


def test_little_is_left_out() -> None:
    found = [(page, block) for page in PAGES for block in blocks((ROOT / page).read_text(encoding="utf-8"))]
    left_out = {page for page, block in found if NOT_RUN in block.code}
    assert left_out == LEFT_OUT


def test_what_is_code_and_what_runs() -> None:
    assert Block("python", "import veil\n", 1).runs
    assert not Block("sh", f"# on two machines: {NOT_RUN}\nveil shuffler\n", 1).runs
    assert code_in_disguise("Text:\n\n    veil plan histogram\n\nText\n")
    assert not code_in_disguise("Text:\n\n    log Z = sum of p\n\nText\n")


def test_code_is_pasted_as_a_prompt_takes_it() -> None:
    (block,) = blocks("- In a list:\n\n  ```python\n  for i in (1, 2):\n      found = i\n\n  found += 1\n  ```\n")
    names: dict[str, object] = {}
    for statement in pasted("page", block):
        exec(statement, names)
    assert (block.line, names["found"]) == (4, 3)
    with pytest.raises(SyntaxError):  # in a file it would do
        list(pasted("page", Block("python", "for i in (1, 2):\n    found = i\nfound += 1\n", 1)))
    (wrong,) = list(pasted("page", Block("python", "1 / 0\n", 7)))[:1]
    with pytest.raises(ZeroDivisionError) as raised:
        exec(wrong, {})
    assert raised.traceback[-1].lineno + 1 == 7
