"""How long `make demo` takes somebody who has just cloned the repository: from nothing to a picture of the result.

What pip would download is fetched before, by another clone: a network is not what is measured.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

MOST_SECONDS = 60.0


def measure(root: Path) -> dict[str, float]:
    """Seconds of `make demo` in a clone of its own, with a warm cache of pip, and the load of the machine before."""
    with tempfile.TemporaryDirectory() as folder:
        _make(_clone(root, Path(folder) / "warm"), ".venv/.demo-ready")
        fresh = _clone(root, Path(folder) / "fresh")
        load, start = os.getloadavg()[0], time.perf_counter()
        _make(fresh, "demo")
        return {"seconds": time.perf_counter() - start, "load": load}


def judge(found: dict[str, float]) -> tuple[list[tuple[str, str, str]], bool]:
    """Rows of what was measured and required."""
    what = f"`make demo` in a fresh clone, seconds (load average {found['load']:.1f} before)"
    return [(what, f"{found['seconds']:.1f}", f"<= {MOST_SECONDS:.0f}")], found["seconds"] <= MOST_SECONDS


def _clone(root: Path, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(root), str(folder)], check=True)
    return folder


def _make(folder: Path, goal: str) -> None:
    """Run make as a newcomer would: without what an environment of Python or an outer make has set."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "VIRTUAL_ENV")}
    subprocess.run(["make", goal], cwd=folder, env=inherited, check=True, capture_output=True)
