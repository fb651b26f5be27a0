"""A GPU for the counting that dominates everything: hashed reports against many candidates (extra `veil-ldp[gpu]`).

    with veil.engines.gpu.cuda():
        study.read(collected)

What is counted there and what is not is in docs/engines.md; the integers are those of the processor, to the last bit.
CuPy is imported when a GPU is asked for, and not before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.engines.launching import Driver, Launched, source
from veil.errors import EngineError, EngineWarning
from veil.kernels.parallel import CountingDevice, counting_on
from veil.tools.messages import install_command

__all__ = ["Cupy", "available", "cuda", "device", "why_not"]


def why_not() -> str | None:
    """Why no GPU counts on this machine, as one sentence; None where one does."""
    try:
        import cupy
    except ImportError:
        return f"counting on a GPU needs CuPy: {install_command('gpu')}, or cupy-cuda13x[ctk] beside CUDA 13"
    try:
        devices = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:  # no driver, or one that is older than CuPy
        devices = 0
    return None if devices else "CuPy finds no CUDA device on this machine"


def available() -> bool:
    """Whether a GPU can count on this machine."""
    return why_not() is None


@cache
def device() -> CountingDevice:
    """The GPU of this machine; refused where there is none."""
    problem = why_not()
    if problem:
        raise EngineError(f"there is no engine 'cuda' here: {problem}")
    return Launched(Cupy())


@contextmanager
def cuda(or_local: bool = False) -> Iterator[None]:
    """Count on this machine's GPU while this lasts.

    Where there is none it is refused; with `or_local` this machine's cores count, and a warning says so.
    """
    problem = why_not() if or_local else None
    if problem:
        warnings.warn(f"this machine's cores count instead of a GPU: {problem}", EngineWarning, stacklevel=3)
    with counting_on(None if problem else device()):
        yield


class Cupy(Driver):
    """CuPy's arrays, and our kernels compiled by it for the GPU at hand."""

    name = "cuda"

    def __init__(self, threads: int = 256, code: str | None = None) -> None:
        import cupy

        self.threads = threads
        self._cupy = cupy
        try:
            self._module = cupy.RawModule(code=code or source(), options=("--std=c++14",))
            self._module.compile()
        except (cupy.cuda.compiler.CompileException, OSError, RuntimeError) as problem:
            raise EngineError(f"the kernels could not be compiled for this GPU: {_first_line(problem)}") from problem

    def upload(self, array: NDArray[Any]) -> Any:
        return self._made(lambda: self._cupy.asarray(np.ascontiguousarray(array)))

    def empty(self, count: int, dtype: type[np.generic]) -> Any:
        return self._made(lambda: self._cupy.empty(count, dtype))

    def zeros(self, count: int, dtype: type[np.generic]) -> Any:
        return self._made(lambda: self._cupy.zeros(count, dtype))

    def launch(self, kernel: str, grid: tuple[int, int, int], *arguments: Any) -> None:
        self._module.get_function(kernel)(grid, (self.threads, 1, 1), arguments)

    def download(self, held: Any) -> NDArray[Any]:
        return np.asarray(self._cupy.asnumpy(held))

    def _made(self, make: Any) -> Any:
        try:
            return make()
        except self._cupy.cuda.memory.OutOfMemoryError:
            raise EngineError("the GPU has too little memory left for these counts: others may be using it") from None


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]
