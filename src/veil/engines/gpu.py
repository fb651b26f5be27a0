"""Counting hashed reports against many candidates on a GPU (extra `veil-ldp[gpu]`).

    with veil.engines.gpu.cuda():
        study.read(collected)

The integers are those of the processor, to the last bit; docs/engines.md says what is counted here. `GpuCounter` cuts
the work into launches of the kernels of `hashed.cu`, and knows no GPU library: a `Driver` moves arrays and launches
kernels. `Cupy` is the driver of GPUs, imported when one is asked for; tests drive the same kernels compiled for this
machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veil.errors import EngineError, EngineWarning
from veil.kernels.parallel import CountingDevice, HashedReports, Ints, Pieces, Words, counting_on
from veil.tools.messages import install_command

TILE = 256
"""Reports that a block keeps in shared memory: reports are padded to a multiple of it."""
KERNELS = {False: {16: 1.0, 8: 1.05, 4: 1.15, 1: 2.2}, True: {8: 1.0, 4: 1.1, 1: 2.0}}
"""Candidates per thread that there is a kernel for, without and with weights, and what a pair costs by it."""
_REPORTS = 1 << 23  # of one launch: 128 MiB on the device, and far below the 2^32 that its counters hold
_CANDIDATES = 1 << 24  # of one launch
_BLOCKS = 2100  # of one launch: many more than a GPU runs at once, so that the last ones do not leave it idle
_BITS = 1 << 31  # packed bits of a joint count, a quarter of a GiB
_CELLS = 1 << 27  # of linear hashing's histograms, half a GiB
_COUNTER = (1 << 32) - 1
_LINE = 65535  # what a grid may have along its second and third axis
Held = Any
"""An array on the device."""


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


def available() -> bool:
    """Whether a GPU can count on this machine."""
    return why_not() is None


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


@cache
def device() -> CountingDevice:
    """The GPU of this machine; refused where there is none."""
    problem = why_not()
    if problem:
        raise EngineError(f"there is no engine 'cuda' here: {problem}")
    return GpuCounter(Cupy())


class Driver(Protocol):
    """What moves arrays to a device and launches kernels there, one after the other."""

    name: str
    threads: int
    """Threads of a block."""

    def upload(self, array: NDArray[Any]) -> Held:
        """A copy on the device."""

    def empty(self, count: int, dtype: type[np.generic]) -> Held:
        """Room on the device."""

    def zeros(self, count: int, dtype: type[np.generic]) -> Held:
        """Zeros on the device."""

    def launch(self, kernel: str, grid: tuple[int, int, int], *arguments: Held | np.generic) -> None:
        """Run a kernel over a grid of blocks; scalars have the width that the kernel has for them."""

    def download(self, held: Held) -> NDArray[Any]:
        """A copy on this machine, when all that was launched is done."""


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


@cache
def source() -> str:
    """The kernels, as CUDA C++."""
    return files("veil.engines").joinpath("hashed.cu").read_text(encoding="utf-8")


class GpuCounter:
    """A device of `veil.kernels.parallel` that counts by these kernels; it holds no data between two calls."""

    def __init__(self, driver: Driver, blocks: int = _BLOCKS) -> None:
        self.name = driver.name
        self._driver = driver
        self._blocks = blocks

    def count_hashed(self, given: HashedReports, weights: Ints | None) -> Ints:
        counts = np.zeros(len(given.spread), dtype=np.int64)
        if not len(counts):
            return counts
        for some in _cut(len(given.seeds), _REPORTS):
            padded, ready = self._ready(given, some)
            weighed = ready if weights is None else self._driver.upload(_padded(weights[some], padded))
            for block in _cut(len(counts), _CANDIDATES):
                spread = self._driver.upload(given.spread[block])
                found = self._driver.zeros(len(counts[block]), np.uint64)
                self._count(ready, weighed, padded, spread, len(counts[block]), found, weights is not None)
                counts[block] += self._driver.download(found).view(np.int64)
        return counts

    def _ready(self, given: HashedReports, some: slice) -> tuple[int, Held]:
        """Reports as `hashed.cu` counts them, made on the device: nine bytes of each travel, not sixteen."""
        seeds, reported = given.seeds[some], given.reported[some]
        padded = _up(len(seeds), TILE) * TILE
        ready = self._driver.empty(4 * padded, np.uint32)
        arguments = (np.uint32(len(seeds)), np.uint32(padded), ready)
        size, buckets = np.uint32(reported.dtype.itemsize), np.uint64(given.buckets)
        held = self._driver.upload(seeds), self._driver.upload(reported)
        self._launch("ready_reports", padded, 1, *held, size, buckets, *arguments)
        return padded, ready

    def _count(
        self, ready: Held, weights: Held, padded: int, spread: Held, candidates: int, found: Held, weighted: bool
    ) -> None:
        threads, costs = self._driver.threads, KERNELS[weighted]
        # Threads whose candidates do not exist work all the same: fewer candidates per thread may be less work.
        each = min(costs, key=lambda k: _up(candidates, threads * k) * k * costs[k])
        across = _up(candidates, threads * each)
        slice_ = _up(padded // TILE, _up(self._blocks, across)) * TILE
        self._driver.launch(
            f"count_weighted_{each}" if weighted else f"count_{each}",
            (across, _up(padded, slice_), 1),
            *(ready, weights, np.uint32(padded), np.uint32(slice_), spread, np.uint32(candidates), found),
        )

    def joint_hashed(self, first: HashedReports, second: HashedReports) -> Ints:
        rows, columns, people = len(first.spread), len(second.spread), len(first.seeds)
        total = np.zeros((rows, columns, 2, 2), dtype=np.int64)
        if not total.size:
            return total
        both = self._driver.zeros(rows * columns, np.uint64)
        spreads = self._driver.upload(first.spread), self._driver.upload(second.spread)
        at_once = max(1, min(_REPORTS, _BITS // (rows + columns)) // TILE) * TILE
        for some in _cut(people, at_once):
            packed = [self._packed(given, some, held) for given, held in zip((first, second), spreads, strict=True)]
            words = packed[0][0]
            grid = _up(columns, self._driver.threads), _up(rows, 8)
            slice_ = max(8, _up(words, _up(self._blocks, grid[0] * grid[1])))
            sides = packed[0][1], np.uint32(rows), packed[1][1], np.uint32(columns)
            cut = np.uint32(words), np.uint32(slice_)
            self._driver.launch("count_pairs", (*grid, _up(words, slice_)), *sides, *cut, both)
        total[:, :, 1, 1] = self._driver.download(both).view(np.int64).reshape(rows, columns)
        total[:, :, 1, 0] = self.count_hashed(first, None)[:, None] - total[:, :, 1, 1]
        total[:, :, 0, 1] = self.count_hashed(second, None) - total[:, :, 1, 1]
        total[:, :, 0, 0] = people - total[:, :, 1, 1] - total[:, :, 1, 0] - total[:, :, 0, 1]
        return total

    def _packed(self, given: HashedReports, some: slice, spread: Held) -> tuple[int, Held]:
        """Which reports support each candidate, as bits, and how many words of 32 reports there are."""
        padded, ready = self._ready(given, some)
        words, candidates = padded // 32, len(given.spread)
        bits = self._driver.empty(words * candidates, np.uint32)
        self._launch("pack_bits", candidates, padded // TILE, ready, spread, np.uint32(candidates), bits)
        return words, bits

    def decodes(self, prime: int, cells: int) -> bool:
        return prime * cells <= _CELLS

    def cosets(self, pieces: Pieces, prefixes: Words, prime: int, digits: int, kept: int) -> Iterator[Ints]:
        cells = prime**digits
        for behind in _cut(len(prefixes), min(_LINE, max(1, _CELLS // (prime * cells)))):
            held = self._driver.upload(prefixes[behind])
            counts = self._driver.zeros(len(prefixes[behind]) * kept, np.uint64)
            for histograms in self._histograms(pieces, held, len(prefixes[behind]), prime, cells):
                self._fold(*histograms, len(prefixes[behind]), prime, digits, kept, counts)
            yield from self._driver.download(counts).view(np.int64).reshape(-1, kept)

    def _histograms(
        self, pieces: Pieces, prefixes: Held, count: int, prime: int, cells: int
    ) -> Iterator[tuple[Held, Held]]:
        """Histograms of all reports, one for every prefix, and as much room again; anew before a counter is full."""
        there, room = (make(count * cells * prime, np.uint32) for make in (self._driver.zeros, self._driver.empty))
        people = 0
        for seeds, reported in pieces():
            for some in _cut(len(seeds), _REPORTS):
                size = len(seeds[some])
                if people + size > _COUNTER:
                    yield there, room
                    there, people = self._driver.zeros(count * cells * prime, np.uint32), 0
                held = self._driver.upload(seeds[some]), self._driver.upload(reported[some])
                sizes = np.uint32(reported.dtype.itemsize), np.uint32(size), np.uint64(cells), np.uint32(prime)
                self._launch("add_linear", size, count, *held, *sizes, prefixes, there)
                people += size
        yield there, room

    def _fold(self, there: Held, room: Held, count: int, prime: int, digits: int, kept: int, counts: Held) -> None:
        """Add what histograms say of each suffix to the counts."""
        cells, q = prime**digits, np.uint32(prime)
        total = count * cells * prime
        for digit in range(digits):
            self._launch("fold_digit", total, 1, there, room, np.uint64(total), np.uint64(prime**digit), q)
            there, room = room, there
        self._launch("take_linear", kept, count, there, np.uint64(cells), q, np.uint64(kept), counts)

    def _launch(self, kernel: str, work: int, lines: int, *arguments: Held | np.generic) -> None:
        """One thread for each piece of work, in so many lines."""
        self._driver.launch(kernel, (_up(work, self._driver.threads), lines, 1), *arguments)


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def _up(count: int, size: int) -> int:
    """How many pieces of a size hold so many."""
    return -(-count // size)


def _cut(count: int, most: int) -> Iterator[slice]:
    return (slice(first, min(first + most, count)) for first in range(0, count, most))


def _padded(weights: Ints, size: int) -> Words:
    out = np.zeros(size, dtype=np.uint64)
    out[: len(weights)] = weights.view(np.uint64)
    return out
