"""The browser client as a package: what `npm pack` makes of it, installed and used like anybody's."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.patience import LIMIT, until
from tests.service.browser.javascript import CLIENT, ROOT, built_client
from tests.service.harness import running

import veil
from veil.study import study_from_json

MOST = 40_000
"""Bytes of the bundled file, gzipped."""

USED = """
import * as modules from "veil-client";
import * as bundle from "veil-client/veil.js";
const closed = await import("veil-client/build/environment.js").then(() => "open", ({ code }) => code);
const opened = [];
for (const { Client } of [modules, bundle]) {
  const options = { collector: "https://collector.test", key: "A".repeat(43), task: "0".repeat(64), budget: 1 };
  opened.push(await Client.open(options).then(() => "opened", ({ name, code }) => `${name} ${code}`));
}
console.log(JSON.stringify({ names: [modules, bundle].map((one) => Object.keys(one).sort()), closed, opened }));
"""

TYPED = """
import { BudgetError, Client, type Receipt } from "veil-client";
import { Client as Bundled } from "veil-client/veil.js";

export async function ask(): Promise<Receipt["state"] | string> {
  const client: Client = await Client.open({ collector: "", key: "", task: "", budget: { lifetime: 2 } });
  const other: Client = await Bundled.open({ collector: "", key: "", task: "", budget: 1 });
  try {
    return (await client.answer("tea", { week: 47 }, "2026-W47")).state;
  } catch (problem) {
    return problem instanceof BudgetError ? problem.code : (await other.account()).left;
  }
}
// @ts-expect-error: a budget is needed
void Client.open({ collector: "", key: "", task: "" });
"""


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    built_client()
    # built already: `prepack` would build again, while other tests read
    run("npm", "pack", "--ignore-scripts", "--pack-destination", folder, cwd=CLIENT)
    (packed,) = folder.glob("*.tgz")
    return packed


@pytest.fixture(scope="module")
def installed(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of somebody who has nothing but the tarball."""
    project = tmp_path_factory.mktemp("project")
    (project / "package.json").write_text(json.dumps({"name": "page", "private": True, "type": "module"}))
    run("npm", "install", "--offline", "--no-audit", "--no-fund", tarball, cwd=project)
    return project


def run(*command: str | Path, cwd: Path) -> str:
    ran = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def manifest() -> dict[str, Any]:
    return dict(json.loads((CLIENT / "package.json").read_text()))


def test_its_version_is_the_wheels() -> None:
    lock = json.loads((CLIENT / "package-lock.json").read_text())
    assert manifest()["version"] == lock["version"] == lock["packages"][""]["version"] == veil.__version__


def test_it_has_no_dependencies_and_can_be_published() -> None:
    package = manifest()
    assert not {"dependencies", "peerDependencies", "optionalDependencies", "private"} & set(package)
    assert "npm run" in package["scripts"]["prepack"]
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    stated = {"homepage", "repository", "bugs"} & set(package)
    assert stated == ({"homepage", "repository", "bugs"} if urls else set())  # none until the project has an address
    if urls:
        assert package["bugs"]["url"] == urls["Issues"]
        assert package["repository"]["url"] == f"git+{urls['Repository']}.git"
        assert package["homepage"].startswith(urls["Repository"])


def test_what_is_in_the_tarball(tarball: Path) -> None:
    assert tarball.name == f"veil-client-{veil.__version__}.tgz"
    with tarfile.open(tarball) as archive:
        names = {member.name.removeprefix("package/") for member in archive}
        file = archive.extractfile("package/dist/veil.js")
        assert file is not None
        bundle = file.read()
    assert names >= {"README.md", "LICENSE", "package.json", "dist/veil.js", "dist/index.d.ts", "build/index.js"}
    assert not any(name.startswith(("src", "test", "node_modules")) or "memory" in name for name in names)
    assert bundle.startswith(f"/*! veil-client {veil.__version__}, Apache-2.0 */".encode())
    assert b"import" not in bundle.replace(b"importKey", b"")
    assert len(gzip.compress(bundle, 9)) < MOST


def test_installed_it_is_modules_one_file_and_nothing_else(installed: Path) -> None:
    (installed / "use.mjs").write_text(USED)
    used = json.loads(run("node", "use.mjs", cwd=installed))
    names = ["BudgetError", "Client", "CollectorError", "DomainError", "StorageError", "SurveyError", "VeilError"]
    assert used == {
        "names": [names, names],
        "closed": "ERR_PACKAGE_PATH_NOT_EXPORTED",  # no way to its entropy, clock or store
        "opened": ["StorageError storage"] * 2,  # plain node has no IndexedDB: it refuses, and nothing is spent
    }


def test_installed_it_has_types(installed: Path) -> None:
    """By the strictest of the ways to find them; the client's own tests compile against the others."""
    (installed / "page.ts").write_text(TYPED)
    compiler = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"
    options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"]
    run("node", compiler, *options, "page.ts", cwd=installed)
    types = sorted((installed / "node_modules" / "veil-client" / "dist").glob("*.d.ts"))
    assert len(types) > 3
    for file in types:  # what a type refers to is there: the compiler would take what is missing for anything
        for needed in re.findall(r'from "\./(\w+)\.js"', file.read_text()):
            assert file.with_name(f"{needed}.d.ts") in types


def test_the_page_about_devices_runs_as_it_stands(installed: Path, tmp_path: Path) -> None:
    """Shell, Python, shell, browser, and again by name: one collector, and the people of the page arrive there."""
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(sh|python|js)\n(.*?)```", page, re.DOTALL)
    assert [kind for kind, _ in blocks] == [*["sh", "python", "sh", "js"] * 2, "python", "sh", "sh"]
    asking, python, shell, browser, *waves, caps, raising, clock = [code for _, code in blocks]
    *before, serving = asking.strip().splitlines()
    assert serving.startswith("veil serve --port 8321 ")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    script = ["bash", "-euo", "pipefail", "-c"]
    subprocess.run([*script, "\n".join(before)], cwd=tmp_path, env=environment, check=True, capture_output=True)
    with running(tmp_path / "veil-collector") as collector:
        survey = json.loads((tmp_path / "survey.json").read_text())

        def here(text: str) -> str:
            filled = text.replace("http://127.0.0.1:8321", collector.url)
            return filled.replace("KEY", survey["key"]).replace("TASK", survey["task"])

        def counted(study: str, wave: int = 1) -> int:
            asked = study_from_json((tmp_path / study).read_bytes()).survey
            return len(collector.stored_ids(veil.Survey(asked.ask, asked.public, wave)))

        def in_python(code: str) -> str:
            return run(sys.executable, "-W", "error", "-c", here(code), cwd=tmp_path)

        def in_shell(code: str) -> None:
            subprocess.run([*script, here(code)], cwd=tmp_path, env=environment, check=True, capture_output=True)

        def in_browser(code: str) -> str:
            (installed / "page.mjs").write_text(here(code))
            database = (CLIENT / "node_modules" / "fake-indexeddb" / "auto" / "index.mjs").as_uri()
            return run("node", "--import", database, "page.mjs", cwd=installed)

        assert (in_python(python), counted("study.json")) == ("delivered\n", 1)
        in_shell(shell)
        assert counted("study.json") == 1  # the same person, by the same ledger
        assert (in_browser(browser), counted("study.json")) == ("delivered\n", 2)

        told = in_python(caps).splitlines()
        assert told[0].startswith("lifetime: expected at most 0.5")
        assert told[1] == "['created 1', 'lowered 0.5', 'raised 2']"
        in_shell(raising)
        assert float(veil.Ledger(tmp_path / "capped").lifetime) == 3

        naming, first, second, page_by_name = waves
        in_shell(naming)
        assert (in_python(first), counted("november.json")) == ("1 Was trinken Sie?\ndelivered\n", 1)
        opening, answering = second.strip().splitlines()
        by_name = f"{collector.url}/v1/surveys/by-name/drinks"
        before = httpx.get(by_name).json()
        in_shell(opening)
        until(lambda: httpx.get(by_name).json() != before)  # the collector looks for new waves once a second
        in_shell(answering)
        assert (counted("november.json"), counted("november.json", wave=2)) == (1, 1)
        assert float(veil.Ledger(tmp_path / "two-waves", lifetime=1.0).left) == 0  # both waves were paid for
        assert (in_browser(page_by_name), counted("november.json", wave=2)) == ("2 Was trinken Sie?\n", 2)
        in_shell(clock)
