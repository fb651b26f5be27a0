"""The versions of uvicorn that the edge extends: their bounds, the refusal of others, and what is used of them."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from tests.patience import LIMIT
from uvicorn.protocols.http import httptools_impl
from uvicorn.server import ServerState

from veil.collector.edge import ingest
from veil.collector.edge import protocol as edge
from veil.collector.edge.ingest import IngestRequest
from veil.collector.serve import FIRST, NEXT, check_uvicorn
from veil.errors import ExtraError

ROOT = Path(__file__).parents[2]


def test_bounds_are_those_of_the_package() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["collector"]
    assert "uvicorn>={}.{},<{}.{}".format(*FIRST, *NEXT) in extra
    check_uvicorn()
    for version in ("0.30.0", "0.41.0.post1", "0.54.9"):
        check_uvicorn(version)


@pytest.mark.parametrize("version", ["0.29.0", "0.55.0", "0.55rc1", "1.0.0", "1.40.0", "0", "", "main"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(ExtraError, match=f"expected version 0.30 or later and before 0.55, got {version}: pip"):
        check_uvicorn(version)


def test_serve_refuses_another_version_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "uvicorn-0.99.0.dist-info").mkdir()
    (tmp_path / "uvicorn-0.99.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: uvicorn\nVersion: 0.99.0\n"
    )
    (tmp_path / "uvicorn").mkdir()
    (tmp_path / "uvicorn" / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(tmp_path / "data")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 3
    assert re.fullmatch(r"error: uvicorn: expected version 0\.30 .* got 0\.99\.0: pip install .*\n", done.stderr)
    assert not (tmp_path / "data").exists()


def used(module: Any, pattern: str) -> set[str]:
    return set(re.findall(pattern, inspect.getsource(module)))


def test_the_protocol_has_what_the_edge_uses() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async def connection() -> Any:
        config = uvicorn.Config(app, interface="asgi3", log_config=None, ws="none")
        protocol = httptools_impl.HttpToolsProtocol(config, ServerState(), {})
        protocol.connection_made(SimpleNamespace(get_extra_info=lambda name, default=None: default))  # type: ignore[arg-type]
        protocol.on_message_begin()
        return protocol

    protocol = asyncio.run(connection())
    ours = {*vars(edge.HttpConnection), *edge.HttpConnection.__annotations__}
    needed = used(edge.HttpConnection, r"\bself\.(\w+)") | used(edge.Edge, r"\bconnection\.(\w+)")
    needed |= used(ingest, r"\b(?:connection|_of)\.(\w+)")
    missing = {name for name in needed - ours if not hasattr(protocol, name)}
    assert not missing
    assert {"parser", "pipeline", "cycle", "_unset_keepalive_if_required"} <= needed - ours
    shared = set(vars(edge.HttpConnection)) & set(vars(httptools_impl.HttpToolsProtocol))
    for name in shared - {"__module__", "__doc__"}:
        theirs = inspect.signature(getattr(httptools_impl.HttpToolsProtocol, name)).parameters
        assert list(inspect.signature(getattr(edge.HttpConnection, name)).parameters) == list(theirs), name
    parameters = inspect.signature(httptools_impl.HttpToolsProtocol).parameters
    assert list(parameters)[:3] == ["config", "server_state", "app_state"]


def test_a_report_on_the_short_way_looks_like_a_request() -> None:
    taken = IngestRequest(*[SimpleNamespace() for _ in range(3)], b"", True)  # type: ignore[arg-type]
    by_uvicorn = used(httptools_impl.HttpToolsProtocol, r"\b(?:self\.|existing_)cycle\.(\w+)") - {"run_asgi"}
    assert {"body", "response_complete", "keep_alive", "message_event"} <= by_uvicorn
    assert {name for name in by_uvicorn if not hasattr(taken, name)} == set()
    cycle = inspect.getsource(httptools_impl.RequestResponseCycle)
    for name in used(edge.HttpConnection, r"\bself\.cycle\.(\w+)") - {"begin", "hold", "release"}:
        assert re.search(rf"\bself\.{name}\b", cycle), name


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "wanted", ["uvicorn=={}.{}.0 httptools==0.6.4".format(*FIRST), f"uvicorn=={NEXT[0]}.{NEXT[1] - 1}.*"]
)
def test_the_edge_holds_with_the_first_and_the_last_version(tmp_path: Path, wanted: str) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    done = subprocess.run([*install, *wanted.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"pip cannot install {wanted}: the edge was NOT tested with it"
        pytest.fail(message + done.stderr) if os.environ.get("CI") == "true" else pytest.skip(message)
    tests = [f"tests/service/test_{name}.py" for name in ("connections", "framing", "ingest", "versions")]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not acceptance", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-2_000:]
