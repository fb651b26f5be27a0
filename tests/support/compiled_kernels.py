"""The GPU's kernels compiled for this machine, and a driver that launches them: the same source, the same host code."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import threading
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.engines.gpu import GpuCounter, source

_SHIM = Path(__file__).with_name("cuda_shim.h")
_KERNEL = re.compile(r'(?:extern "C" __global__ void|^COUNTING\()\s*(?!name)(\w+)', re.MULTILINE)


@cache
def library(changed: tuple[str, str] | None = None) -> ctypes.CDLL:
    """The kernels as a shared library; `changed` replaces a piece of their source, for rivals that must fail."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++: the GPU's kernels are not compiled for this machine")
    code = source()
    if changed is not None:
        assert changed[0] in code
        code = code.replace(*changed)
    names = _KERNEL.findall(code)
    assert {"ready_reports", "count_16", "count_weighted_1", "fold_digit"} <= set(names)
    folder = Path(mkdtemp(prefix="veil-kernels-"))
    text = folder / "kernels.cpp"
    text.write_text("\n".join([f'#include "{_SHIM}"', code, *(f"LAUNCHED({name})" for name in names)]))
    built = folder / "kernels.so"
    options = ["-O3" if changed is None else "-O1", "-march=native", "-std=c++20", "-shared", "-fPIC", "-pthread", "-w"]
    subprocess.run([compiler, *options, "-o", built, text], check=True)
    loaded = ctypes.CDLL(str(built))
    shutil.rmtree(folder)
    return loaded


class Compiled:
    """A driver that counts its launches; `threads` are real ones, that wait for each other where a block's do."""

    name = "compiled"
    _lock = threading.Lock()  # shared memory is static: one launch at a time

    def __init__(self, threads: int = 1, changed: tuple[str, str] | None = None) -> None:
        self.threads, self.launched = threads, list[str]()
        self._library = library(changed)

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array, order="C")

    def empty(self, count: int, dtype: type[np.generic]) -> NDArray[Any]:
        return np.full(count, 0x5A, dtype)  # nobody may rely on zeros

    def zeros(self, count: int, dtype: type[np.generic]) -> NDArray[Any]:
        return np.zeros(count, dtype)

    def launch(self, kernel: str, grid: tuple[int, int, int], *arguments: NDArray[Any] | np.generic) -> None:
        assert all(0 < size < 2**31 for size in grid)
        assert max(grid[1:]) <= 65535
        places = [ctypes.c_void_p(held.ctypes.data) if isinstance(held, np.ndarray) else held for held in arguments]
        kept = [place if isinstance(place, ctypes.c_void_p) else np.array([place]) for place in places]
        pointers = [ctypes.addressof(one) if isinstance(one, ctypes.c_void_p) else one.ctypes.data for one in kept]
        with self._lock:
            getattr(self._library, f"launch_{kernel}")(*grid, self.threads, (ctypes.c_void_p * len(kept))(*pointers))
        self.launched.append(kernel)

    def download(self, held: NDArray[Any]) -> NDArray[Any]:
        return held.copy()


def compiled(threads: int = 1, changed: tuple[str, str] | None = None, **settings: Any) -> GpuCounter:
    """A device that counts by the compiled kernels."""
    return GpuCounter(Compiled(threads, changed), **settings)
