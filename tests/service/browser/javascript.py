"""The browser client, installed and built once for all tests; missing node is a loud skip, and an error in CI."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
from tests.patience import LIMIT

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "clients" / "js"


def missing(what: str) -> NoReturn:
    """Skip on a laptop, fail in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs what is not here: {what}")
    pytest.skip(f"SKIPPED LOUDLY: {what}")


@functools.cache
def built_client() -> Path:
    """The folder of the built client. Several processes may ask at once: one builds, the others wait for it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("node and npm are missing, so the browser client was not tested")
    with (CLIENT / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = _digest(CLIENT / "package.json", CLIENT / "package-lock.json")
        settings = (CLIENT / name for name in ("package.json", "package-lock.json", "tsconfig.json"))
        sources = _digest(*settings, *sorted(CLIENT.glob("src/**/*.ts")))
        if problem := _once(CLIENT / "node_modules" / ".veil", packages, "npm", "ci", "--no-audit", "--no-fund"):
            missing(f"npm cannot install what the browser client is built with, so it was not tested: {problem}")
        if problem := _once(CLIENT / "build" / ".veil", sources, "npm", "run", "build"):
            pytest.fail(f"the browser client does not build: {problem}")
    return CLIENT


def run_node(*arguments: str | Path) -> str:
    """What a script of the client's prints; its errors are shown where it fails."""
    built_client()
    ran = subprocess.run(["node", *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _once(stamp: Path, wanted: str, *command: str) -> str:
    """Run a command unless its stamp says that it ran on the same files. Returns what it says where it fails."""
    if stamp.exists() and stamp.read_text() == wanted:
        return ""
    ran = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    if ran.returncode:
        return (ran.stdout + ran.stderr)[-2000:] or "without a word"
    stamp.write_text(wanted)
    return ""


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
