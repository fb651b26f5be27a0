"""Kernels work wherever they can be kept, and where they cannot be kept at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SPLITMIX = 0xE220A8397B1DCDAF  # splitmix64(0)
CODE = """
import sys
from pathlib import Path
import veil.kernels
if len(sys.argv) > 1:
    veil.kernels.keep_compiled_in(Path(sys.argv[1]))
import numpy as np
from veil.kernels.hashing import splitmix64_each
print(splitmix64_each(np.arange(1, dtype=np.uint64))[0])
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A package beside which nothing can be written, not even by root."""
    package = tmp_path / "site" / "veil"
    shutil.copytree(ROOT / "src" / "veil", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").write_text("a file where the folder would be")
    return tmp_path / "site"


def spread(site: Path, *arguments: str, code: str = CODE, **environment: str) -> str:
    """What the kernel says, in a process without a home."""
    given = {**os.environ, "PYTHONPATH": str(site), "HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    given.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-B", "-c", code, *arguments]
    done = subprocess.run(command, env=given | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_without_any_place_kernels_are_compiled_in_memory(site: Path) -> None:
    assert int(spread(site)) == SPLITMIX
    assert not list(site.rglob("*.nbi"))


def test_a_plain_numba_cache_would_refuse(site: Path) -> None:
    rival = site / "veil" / "kernels" / "hashing.py"
    rival.write_text(rival.read_text().replace("@compiled()", "@numba.njit(cache=True)"))
    with pytest.raises(AssertionError, match="no locator available"):
        spread(site)


def test_a_given_folder_is_used_where_nothing_else_can_be(site: Path, tmp_path: Path) -> None:
    assert int(spread(site, str(tmp_path / "given"))) == SPLITMIX
    kept = list((tmp_path / "given").rglob("*.nbc"))
    assert kept
    before = {file: file.stat().st_mtime_ns for file in kept}
    assert int(spread(site, str(tmp_path / "given"))) == SPLITMIX
    assert {file: file.stat().st_mtime_ns for file in kept} == before  # read, not compiled again


def test_a_folder_that_can_be_written_comes_first(site: Path, tmp_path: Path) -> None:
    assert int(spread(site, str(tmp_path / "given"), NUMBA_CACHE_DIR=str(tmp_path / "named"))) == SPLITMIX
    assert list((tmp_path / "named").rglob("*.nbi"))
    assert not (tmp_path / "given").exists()
    # a place that was named but cannot be written to is no error, and no other is used behind the operator's back
    assert int(spread(site, str(tmp_path / "given"), NUMBA_CACHE_DIR="/dev/null/named")) == SPLITMIX
    assert not (tmp_path / "given").exists()


def test_damaged_files_are_compiled_again(site: Path, tmp_path: Path) -> None:
    spread(site, str(tmp_path / "given"))
    for file in (tmp_path / "given").rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[:7])  # as a power cut leaves it
    assert int(spread(site, str(tmp_path / "given"))) == SPLITMIX


def test_a_full_disk_stops_no_kernel(site: Path, tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    full += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    assert int(spread(site, str(tmp_path / "given"), code=full + CODE)) == SPLITMIX


def test_every_kernel_is_compiled_this_way() -> None:
    for file in (ROOT / "src" / "veil" / "kernels").glob("*.py"):
        if file.name != "compiling.py":
            assert not re.search(r"cache\"?[=:] ?True", file.read_text()), f"{file.name}: use veil.kernels.compiling"
