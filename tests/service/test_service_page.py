"""The page of routes: its curl lines run against a collector, and the content types that it names are right."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.patience import LIMIT
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running, values
from tests.support.snippets import Block, blocks

from veil.collector import problems
from veil.collector.http.openapi import document
from veil.collector.http.routes import ROUTES
from veil.collector.surveys.catalogue import _KEYS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "collector" / "service.md").read_text(encoding="utf-8")


def curls() -> Block:
    """The block with the curl lines: the only one on the page."""
    (found,) = [block for block in blocks(PAGE) if re.search(r"^curl ", block.code, re.MULTILINE)]
    return found


def content_types() -> list[list[str]]:
    section = PAGE.partition("### Content types\n")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_each_code_of_a_refusal_is_on_the_page() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(problems.__file__).parent.rglob("*.py")]
    codes = {code for text in sources for code in re.findall(r'\(\s*\d{3}, "([a-z-]+)"', text)}
    codes |= {code for _, code in problems._CODES} | set(problems._HTTP.values())
    assert {"internal", "no-token", "survey-closed", "wrong-wave"} <= codes
    section = PAGE.partition("\n## Refusals\n")[2].partition("\n## ")[0]
    assert sorted(code for code in codes if f"`{code}`" not in section) == []


def test_the_options_of_a_survey_are_those_of_the_description() -> None:
    (row,) = re.findall(r"^\| `POST /v1/surveys` \|.*$", PAGE, re.MULTILINE)
    body = document()["paths"]["/v1/surveys"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(re.findall(r'"([a-z_]+)"', row)) == set(body["properties"])
    options = {*_KEYS, "survey", "allow_fine_times", "allow_weak_privacy", "people", "round_seconds"}
    assert set(body["properties"]) == options


def test_each_curl_line_fails_the_page_if_it_is_refused() -> None:
    block = curls()
    assert block.runs  # tests/e2e/test_snippets.py follows the page
    lines = [line for line in block.code.splitlines() if line.startswith("curl ")]
    assert len(lines) == PAGE.count("\ncurl ") >= 15
    for line in lines:
        assert "--fail-with-body" in line
        words = shlex.split(line)
        if any(word.startswith("--data") for word in words):  # else curl says that it is a form
            assert words[words.index("-H") + 1].startswith("Content-Type: application/")


def follow(folder: Path, collector: Collector, change: Callable[[str], str] = str) -> subprocess.CompletedProcess[str]:
    """Run the section against a collector that runs already, with changed code."""
    section = blocks(PAGE.partition("### With curl\n")[2].partition("\n## ")[0])
    plan, devices, curl = (change(block.code) for block in section)
    curl = re.sub(r"^(veil serve .*|url=.*)$", "", curl, flags=re.MULTILINE).replace("--folder by-curl", "")
    (folder / "devices.py").write_text(devices)
    script = f"set -euo pipefail\nurl={collector.url}\n{plan}\n'{sys.executable}' devices.py\n{curl}"
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VEIL_FOLDER": str(collector.folder),
    }
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT
    )


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: the curl lines were NOT run here")
def test_the_curl_lines_work_and_other_content_types_are_refused(tmp_path: Path) -> None:
    with running(tmp_path / "collector") as collector:
        right = tmp_path / "right"
        right.mkdir()
        done = follow(right, collector)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count('{"acknowledged":5}') == 2
        assert (right / "reports.parquet").read_bytes()[:4] == b"PAR1"
        wrong = tmp_path / "wrong"
        wrong.mkdir()
        rival = follow(wrong, collector, wrong_type)
        assert rival.returncode == 22, rival.stdout + rival.stderr
        assert '"wrong-type"' in rival.stdout


def wrong_type(code: str) -> str:
    """Change the content type of the framed reports, which go to another survey."""
    code = code.replace("tea,coffee,water", "tea,coffee,milk")
    return code.replace("Content-Type: application/vnd.veil.reports", "Content-Type: application/octet-stream")


def test_the_table_names_every_route_that_takes_a_body() -> None:
    named = " ".join(row[0] for row in content_types())
    for route in ROUTES:
        if route.method == "POST":
            assert re.search(
                rf"POST (\.\.\.|{re.escape(route.path.rpartition('/')[0])})/{route.path.rpartition('/')[2]}`", named
            )


def test_answers_have_the_content_types_of_the_table(tmp_path: Path) -> None:
    said = {re.sub(r"^`|`$", "", row[0]): row[2] for row in content_types()}
    with running(tmp_path) as collector, httpx.Client(base_url=collector.url) as client:
        path, token = collector.open_survey(), collector.token()

        def kind(method: str, where: str, **more: Any) -> str:
            done = client.request(method, where, **{"headers": token, **more})
            assert done.status_code < 400, done.text
            return str(done.headers["content-type"])

        assert kind("POST", f"{path}/reports", content=framed(SURVEY, values(40)), headers=FRAMED) == "application/json"
        assert kind("POST", f"{path}/close") == "application/json"
        for form in ("json", "csv", "arrow"):
            assert f"`{kind('GET', f'{path}/answer?format={form}')}`" in said["GET .../answer"]
        assert f"`{kind('GET', f'{path}/export')}`" == said["GET .../export"]
        assert f"`{kind('GET', '/metrics')}`" == said["GET /metrics"]
        for where in ("/v1/surveys", f"{path}/state", "/v1/audit", "/healthz", "/readyz", "/openapi.json"):
            assert kind("GET", where) == "application/json"
        for headers in (token, {**token, "Content-Type": "application/json", "Content-Encoding": "gzip"}):
            refused = client.post("/v1/surveys", content=b"{}", headers=headers)
            assert refused.status_code == 415
            assert refused.headers["content-type"] == "application/json"
