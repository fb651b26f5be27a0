"""What a GPU counts a second, and that it counts the same: one command on a machine that has one.

    python bench/gpu.py FOLDER [--packages ARCHIVE ...] [--commit NAME] [--seconds 400]

Prints a table as it goes and writes FOLDER/gpu.json. An ARCHIVE is a tar of packages that the machine lacks. Every part
stands alone: what fails is printed, and the rest goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import numpy as np  # noqa: E402  (the paths above come first)

if TYPE_CHECKING:
    from veil.engines.gpu import Cupy
    from veil.kernels.parallel import HashedReports

HEADLINE = (1_000_000, 65_536)
SIZES = [(1_000_000, 1_024), HEADLINE, (1_000_000, 1 << 20), (10_000_000, 1_024), (10_000_000, 65_536)]
REQUIRED_KERNEL, REQUIRED_WHOLE, REQUIRED_PEM = 2.0e12, 1.0e12, 60.0


class Board:
    """Rows as they come, and the same as JSON."""

    def __init__(self, folder: Path, commit: str, seconds: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._end = folder / "gpu.json", time.monotonic() + seconds
        self.facts: dict[str, Any] = {"commit": commit, "rows": [], "problems": []}
        print("| what | found | required |\n| --- | --- | --- |", flush=True)

    def row(self, what: str, found: float | str, required: float | None = None, least: bool = True) -> None:
        text = found if isinstance(found, str) else f"{found:.4g}"
        verdict = ""
        if required is not None and not isinstance(found, str):
            reached = found >= required if least else found <= required
            verdict = f"{'>=' if least else '<='} {required:.3g}: {'reached' if reached else 'MISSED'}"
        print(f"| {what} | {text} | {verdict} |", flush=True)
        self.facts["rows"].append({"what": what, "found": found, "required": required})
        self._write()

    def part(self, name: str, work: Callable[[Board], None]) -> None:
        """Run one part; what goes wrong in it is said, and ends nothing else."""
        if time.monotonic() > self._end:
            self.row(name, "not run: no time left")
            return
        start = time.monotonic()
        try:
            work(self)
        except Exception as problem:
            self.facts["problems"].append({"part": name, "trace": traceback.format_exc()})
            self.row(name, f"FAILED: {type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}")
            traceback.print_exc()
        self.facts.setdefault("seconds", {})[name] = round(time.monotonic() - start, 1)
        self._write()

    def _write(self) -> None:
        self._file.write_text(json.dumps(self.facts, indent=1))


def made(n: int, buckets: int, candidates: int, seed: int = 0) -> HashedReports:
    """Random reports, of which every other one supports a candidate."""
    from tests.support.numpy_device import paired

    from veil.kernels.parallel import HashedReports

    rng = np.random.default_rng([seed, n, buckets, candidates])
    seeds, spread = (rng.integers(0, 2**64, size, dtype=np.uint64) for size in (n, candidates))
    reported = rng.integers(0, buckets, n).astype(np.uint64)
    if candidates:
        own = paired(seeds[::2], spread[np.arange(len(seeds[::2])) % candidates])
        reported[::2] = (own * np.uint64(buckets)) >> np.uint64(32)
    return HashedReports(seeds, reported.astype(np.min_scalar_type(buckets - 1)), buckets, spread)


def counter(code: str | None = None, threads: int = 256, blocks: int = 2100) -> tuple[Cupy, Any]:
    from veil.engines.gpu import Cupy, GpuCounter

    driver = Cupy(threads, code)
    return driver, GpuCounter(driver, blocks)


def on_device(work: Callable[[], object], repeats: int = 7) -> float:
    """The median time of work on the device, by its own clock, after two runs that warm it up."""
    import cupy

    times = []
    for turn in range(repeats + 2):
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        work()
        after.record()
        after.synchronize()
        if turn >= 2:
            times.append(cupy.cuda.get_elapsed_time(before, after) / 1e3)
    return median(times)


def on_the_clock(work: Callable[[], object], repeats: int = 5) -> float:
    """The median wall time, after one run that warms up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def kernel_time(
    driver: Cupy, device: Any, given: HashedReports, weights: Any = None, each: int | None = None, repeats: int = 7
) -> float:
    """Seconds of the counting kernel alone, its data on the device; `each` candidates per thread, or as it chooses."""
    padded, ready = device._ready(given, slice(0, len(given.seeds)))
    spread, candidates = driver.upload(given.spread), len(given.spread)
    own = ready
    if weights is not None:
        own = driver.upload(np.concatenate([weights, np.zeros(padded - len(weights), np.int64)]).view(np.uint64))
    found = driver.zeros(candidates, np.uint64)
    with only(each, weights is not None):
        return on_device(
            lambda: device._count(ready, own, padded, spread, candidates, found, weights is not None), repeats
        )


@contextmanager
def only(each: int | None, weighted: bool) -> Iterator[None]:
    from veil.engines.gpu import KERNELS

    before = KERNELS[weighted]
    if each is not None:
        KERNELS[weighted] = {each: 1.0}
    try:
        yield
    finally:
        KERNELS[weighted] = before


def machine(board: Board) -> None:
    import cupy

    facts = cupy.cuda.runtime.getDeviceProperties(0)
    board.row("GPU", f"{facts['name'].decode()}, {facts['multiProcessorCount']} multiprocessors")
    board.row("CuPy, CUDA, driver", f"{cupy.__version__}, {cupy.cuda.runtime.runtimeGetVersion()}, "
              f"{cupy.cuda.runtime.driverGetVersion()}")  # fmt: skip
    host = np.random.default_rng(0).integers(0, 2**64, 1 << 25, dtype=np.uint64)
    took = on_the_clock(lambda: (cupy.asarray(host), cupy.cuda.get_current_stream().synchronize()))
    board.row("host to device, GB/s (pageable)", host.nbytes / took / 1e9)
    start = time.perf_counter()
    counter()
    board.row("compiling the kernels, s", time.perf_counter() - start)


def equal_counts(board: Board) -> None:
    """The grid of the tests, and sizes that fill the GPU, beside plain numpy and the compiled loops."""
    from tests.support.numpy_device import NumpyDevice

    device, twin, checked = counter()[1], NumpyDevice(), 0
    for buckets in (2, 3, 4, 56, 1_000_003, 2**31):
        for n, candidates in ((0, 3), (1, 1), (255, 0), (257, 333), (1001, 1), (3001, 1025), (999, 4099), (5000, 777)):
            given = made(n, buckets, candidates)
            for weights in (None, np.random.default_rng(n).integers(-(2**62), 2**62, n)):
                np.testing.assert_array_equal(device.count_hashed(given, weights), twin.count_hashed(given, weights))
                checked += 1
    board.row("counts equal to numpy's", f"{checked} of {checked}")


def equal_shapes(board: Board) -> None:
    """Every kernel and several shapes of a launch give the same."""
    from tests.support.numpy_device import NumpyDevice

    from veil.engines.gpu import KERNELS

    given, weights = made(5001, 4, 3001), np.random.default_rng(1).integers(-(2**62), 2**62, 5001)
    for own in (None, weights):
        expected = NumpyDevice().count_hashed(given, own)
        for each in KERNELS[own is not None]:
            for threads, blocks in ((32, 1), (128, 70), (256, 2100), (512, 5000)):
                with only(each, own is not None):
                    found = counter(None, threads, blocks)[1].count_hashed(given, own)
                np.testing.assert_array_equal(found, expected)
    board.row("every kernel in every shape", "equal")


def equal_large(board: Board) -> None:
    from veil.kernels.parallel import dispatch_count_hashed

    device = counter()[1]
    dispatch_count_hashed(made(9, 4, 9), None)  # compiles
    for n, candidates in (HEADLINE, (10_000_000, 1_024), (20_000_001, 333)):
        given = made(n, 4, candidates)
        start = time.perf_counter()
        expected = dispatch_count_hashed(given, None)
        took = time.perf_counter() - start
        np.testing.assert_array_equal(device.count_hashed(given, None), expected)
        board.row(
            f"n = {n:,}, d = {candidates:,}: equal to the loops, whose pairs/s on all cores", n * candidates / took
        )


def equal_joint(board: Board) -> None:
    from tests.support.numpy_device import NumpyDevice

    device = counter()[1]
    for n, rows, columns in ((1, 1, 1), (1000, 3, 70), (5001, 37, 300)):
        first, second = made(n, 4, rows), made(n, 56, columns, seed=1)
        expected = NumpyDevice().joint_hashed(first, second)
        np.testing.assert_array_equal(device.joint_hashed(first, second), expected)
    board.row("joint counts equal to numpy's", "3 of 3")


def equal_cosets(board: Board) -> None:
    from tests.support.numpy_device import NumpyDevice

    device = counter()[1]
    fields = [(2, 5), (3, 2), (3, 7), (7, 3), (61, 2), (257, 1)]
    for prime, digits in fields:
        given = made(3001, prime, 5)
        kept = min(prime**digits, 1 << 9)

        def pieces(given: HashedReports = given) -> list[Any]:
            return [(given.seeds[:1000], given.reported[:1000]), (given.seeds[1000:], given.reported[1000:])]

        asked = (pieces, given.spread, prime, digits, kept)
        np.testing.assert_array_equal(list(device.cosets(*asked)), list(NumpyDevice().cosets(*asked)))
    board.row("cosets equal to numpy's", f"{len(fields)} of {len(fields)}")


def speeds(board: Board) -> None:
    driver, device = counter()
    for n, candidates in SIZES:
        given, head = made(n, 4, candidates), (n, candidates) == HEADLINE
        what = f"OLH, n = {n:,}, d = {candidates:,}: pairs/s"
        took = kernel_time(driver, device, given)
        board.row(f"{what}, kernel", n * candidates / took, REQUIRED_KERNEL if head else None)
        took = on_the_clock(lambda given=given: device.count_hashed(given, None))
        board.row(f"{what}, from host arrays", n * candidates / took, REQUIRED_WHOLE if head else None)
    given = made(*(HEADLINE[0], 4, HEADLINE[1]))
    weights = np.random.default_rng(0).integers(-(2**40), 2**40, HEADLINE[0])
    took = kernel_time(driver, device, given, weights)
    board.row("the same with weights, n = 1,000,000, d = 65,536: pairs/s, kernel", HEADLINE[0] * HEADLINE[1] / took)
    took = on_the_clock(lambda: device.count_hashed(given, weights))
    board.row("the same with weights: pairs/s, from host arrays", HEADLINE[0] * HEADLINE[1] / took)


def mechanism_speed(board: Board) -> None:
    """The whole way of a tally: from the columns of reports through the mechanism."""
    from veil import OLH
    from veil.engines.gpu import cuda

    oracle = OLH(1.0, HEADLINE[1])
    columns = oracle.randomize(np.arange(HEADLINE[0]) % HEADLINE[1]).columns
    with cuda():
        took = on_the_clock(lambda: oracle.support(columns, None, None))
    board.row("OLH.support under cuda(), n = 1,000,000, d = 65,536: pairs/s", HEADLINE[0] * HEADLINE[1] / took)


def pem_equal(board: Board) -> None:
    import veil
    from veil.engines import MemoryCollection
    from veil.engines.gpu import cuda
    from veil.hitters import PEM

    values = np.random.default_rng(3).zipf(1.3, 100_000) % (1 << 32)
    for oracle in ("OLH", "PGR"):
        study = PEM(4.0, veil.Bits(32), k=8, budget=1 << 16, oracle=oracle)
        collected = MemoryCollection(study.survey, study.survey.randomize(values))
        local = study.read(collected)
        with cuda():
            assert study.read(collected) == local
    board.row("PEM by OLH and by PGR, 100,000 people: results", "equal to the local engine's")


def pem_large(board: Board) -> None:
    """2^26 candidates in one round for everybody, and over the rounds of a search of 64 bits."""
    import veil
    from veil.engines import MemoryCollection
    from veil.engines.gpu import cuda
    from veil.hitters import PEM

    rng = np.random.default_rng(4)
    for bits, asked in ((64, {"budget": 1 << 26}), (26, {"groups": 1, "budget": 1 << 40})):
        study = PEM(4.0, veil.Bits(bits), k=8, **asked)
        held = rng.integers(0, 1 << bits, 8, dtype=np.uint64)
        values = np.where(rng.random(1_000_000) < 0.5, rng.choice(held, 1_000_000),
                          rng.integers(0, 1 << bits, 1_000_000, dtype=np.uint64))  # fmt: skip
        collected = MemoryCollection(study.survey, study.survey.randomize(values))
        start = time.perf_counter()
        with cuda():
            found = study.read(collected)
        took = time.perf_counter() - start
        candidates = sum(step.candidates for step in found.history)
        right = len(set(map(int, found.values)) & set(map(int, held)))
        what = f"PEM by OLH, {bits} bits, lengths {study.lengths}, 1,000,000 reports, {candidates:,} candidates"
        board.row(f"{what}: s (found {right} of 8)", took, REQUIRED_PEM, least=False)


def joint_speed(board: Board) -> None:
    device = counter()[1]
    for candidates in (64, 512):
        first, second = made(1_000_000, 4, candidates), made(1_000_000, 4, candidates, seed=1)
        took = on_the_clock(lambda first=first, second=second: device.joint_hashed(first, second), 3)
        cells = candidates * candidates * 1e6
        board.row(f"joint counts, 1,000,000 people, {candidates} x {candidates}: s ({cells / took:.3g} cells/s)", took)


def coset_speed(board: Board) -> None:
    from veil import Bits
    from veil.kernels.parallel import counting_on
    from veil.mechanisms import LinearHashing

    device = counter()[1]
    for epsilon, suffix in ((1.0, 15), (2.0, 19), (4.0, 17)):
        oracle = LinearHashing(epsilon, Bits(suffix + 6), suffix=suffix)
        columns = oracle.randomize(np.arange(1_000_000) % oracle.domain.size).columns
        prefixes = np.arange(64, dtype=np.uint64)

        def decoded(count: int, oracle: Any = oracle, columns: Any = columns, prefixes: Any = prefixes) -> Any:
            return np.stack(list(oracle.cosets(lambda: [columns], prefixes[:count])))

        with counting_on(device):
            took = on_the_clock(lambda: decoded(64), 3)
            found = decoded(2)
        start = time.perf_counter()
        expected = decoded(2)
        there = (time.perf_counter() - start) / 2
        np.testing.assert_array_equal(found, expected)
        what = f"cosets, q = {oracle.hash_range}, suffix {suffix}, 1,000,000 reports: ms a prefix"
        board.row(f"{what} ({there * 1e3:.3g} on the cores, equal)", took / 64 * 1e3)


ADDING = "if (supports(low[k], high[k], report)) found[k] += added;"
BY_MAD = """{
    u32 x = hash32(low[k], high[k], report.x, report.y) + report.z;
    asm("{.reg .pred p; setp.lt.u32 p, %1, %2; @p mad.lo.u32 %0, %3, %3, %0;}"
        : "+r"(found[k]) : "r"(x), "r"(report.w), "r"(one));
}"""
ROOM = "__shared__ uint4 tile[TILE];\n    __shared__ u64 weight"
ONE = (ROOM, f"u32 one = gridDim.z;\n    {ROOM}")  # 1, and the compiler does not know it
PRODUCT = ("h ^= h >> 15;", "h ^= __umulhi(h, gridDim.z << 17);")
KERNEL = 'extern "C" __global__ void name('
VARIANTS: dict[str, list[tuple[str, str]]] = {
    "as shipped": [],
    "unroll 1": [("#pragma unroll 4", "#pragma unroll 1")],
    "unroll 2": [("#pragma unroll 4", "#pragma unroll 2")],
    "unroll 8": [("#pragma unroll 4", "#pragma unroll 8")],
    "adding by multiply-add": [(ADDING, BY_MAD), ONE],
    "adding by multiply-add, unroll 8": [(ADDING, BY_MAD), ONE, ("#pragma unroll 4", "#pragma unroll 8")],
    "the shift by a product": [PRODUCT],
    "both": [(ADDING, BY_MAD), ONE, PRODUCT],
    "bounds for two blocks": [(KERNEL, KERNEL.replace("name", "__launch_bounds__(256, 2) name"))],
    "bounds for three blocks": [(KERNEL, KERNEL.replace("name", "__launch_bounds__(256, 3) name"))],
}  # fmt: skip


def variant(changes: list[tuple[str, str]]) -> str:
    """The kernels with pieces replaced; those with weights are left out, for which not every variant makes sense."""
    from veil.engines.gpu import source

    code = "\n".join(line for line in source().splitlines() if not line.startswith("COUNTING(count_weighted"))
    for old, new in changes:
        assert old in code, f"no longer in the source: {old}"
        code = code.replace(old, new)
    return code


def variants(board: Board) -> None:
    """Other ways to write the inner loop; what is faster here may be shipped."""
    given = made(HEADLINE[0], 4, HEADLINE[1])
    expected = counter()[1].count_hashed(given, None)
    for name, changes in VARIANTS.items():
        try:
            driver, device = counter(variant(changes))
            same = np.array_equal(device.count_hashed(given, None), expected)
            took = kernel_time(driver, device, given, repeats=5)
            board.row(f"variant: {name}: pairs/s{'' if same else ' WRONG COUNTS'}", HEADLINE[0] * HEADLINE[1] / took)
        except Exception as problem:
            board.row(f"variant: {name}", f"FAILED: {str(problem)[:300]}")


def shapes(board: Board) -> None:
    """Launch shapes, at many and at few candidates."""
    for n, candidates in (HEADLINE, (1_000_000, 1_024), (1_000_000, 10_000)):
        given = made(n, 4, candidates)
        found = {}
        for threads in (128, 256, 512):
            for blocks in (528, 1056, 2100, 4224, 8448):
                driver, device = counter(None, threads, blocks)
                for each in (16, 8, 4, 1):
                    took = kernel_time(driver, device, given, each=each, repeats=3)
                    found[f"{threads} threads, {blocks} blocks, {each} each"] = n * candidates / took
        board.facts.setdefault("shapes", {})[f"n={n}, d={candidates}"] = found
        for shape, pairs in sorted(found.items(), key=lambda item: -item[1])[:5]:
            board.row(f"d = {candidates:,}: {shape}: pairs/s", pairs)
        board.row(f"d = {candidates:,}: as shipped: pairs/s", n * candidates / kernel_time(*counter(), given))


PARTS = [
    machine, equal_counts, equal_joint, equal_cosets, speeds, mechanism_speed, equal_large, pem_equal, pem_large,
    joint_speed, coset_speed, variants, equal_shapes, shapes,
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--packages", type=Path, nargs="*", default=[], help="tars of packages that this machine lacks")
    parser.add_argument("--commit", default="", help="where there is no git to ask")
    parser.add_argument("--seconds", type=float, default=400.0, help="no part begins later")
    parser.add_argument("--only", nargs="*", help="the parts to run")
    given = parser.parse_args()
    os.environ.setdefault("CUPY_CACHE_DIR", tempfile.mkdtemp(prefix="veil-cupy-"))
    os.environ.setdefault("NUMBA_CACHE_DIR", tempfile.mkdtemp(prefix="veil-numba-"))
    packages = tempfile.mkdtemp(prefix="veil-packages-")
    for file in given.packages:
        with tarfile.open(file) as archive:
            archive.extractall(packages, filter="data")
    sys.path.append(packages)  # behind the machine's own
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    board = Board(given.folder, given.commit or asked.stdout.strip(), given.seconds)
    for part in PARTS:
        if not given.only or part.__name__ in given.only:
            board.part(part.__name__, part)
    return 1 if board.facts["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
