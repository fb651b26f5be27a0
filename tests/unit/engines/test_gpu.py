"""The kernels for GPUs, compiled for this machine, give the integers of the compiled loops, bit for bit."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.compiled_kernels import Compiled, compiled
from tests.support.numpy_device import NumpyDevice, paired

from veil import OLH, Bits
from veil.engines import gpu
from veil.engines.gpu import KERNELS, TILE, GpuCounter, source
from veil.kernels.parallel import CountingDevice, HashedReports, counting_on, dispatch_count_hashed
from veil.mechanisms import LinearHashing

RANGES = [2, 3, 4, 56, 1_000_003, 2**31]


def made(n: int, buckets: int, candidates: int, seed: int = 0) -> HashedReports:
    """Random reports; a third support a candidate for sure, a third report the bucket before a candidate's.

    In a wide range random buckets are nobody's, and the ends of intervals never come up by themselves.
    """
    rng = np.random.default_rng([seed, n, buckets, candidates])
    seeds, spread = (rng.integers(0, 2**64, size, dtype=np.uint64) for size in (n, candidates))
    reported = rng.integers(0, buckets, n).astype(np.uint64)
    if candidates:
        near = np.arange(n) % 3
        own = paired(seeds, spread[np.arange(n) % candidates]) * np.uint64(buckets) >> np.uint64(32)
        reported = np.where(
            near < 2, (own + np.uint64(buckets) - near.astype(np.uint64)) % np.uint64(buckets), reported
        )
    return HashedReports(seeds, reported.astype(np.min_scalar_type(buckets - 1)), buckets, spread)


def weights_of(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(n).integers(-(2**62), 2**62, n)  # sums wrap, here as there


def graphics() -> CountingDevice:
    problem = gpu.why_not()
    if problem:
        pytest.skip(f"NOT TESTED ON A GPU: {problem}")
    return gpu.device()


@pytest.fixture(params=["one thread", "four threads", pytest.param("GPU", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> CountingDevice:
    if request.param == "GPU":
        return graphics()
    return compiled(1 if request.param == "one thread" else 4)


@pytest.mark.parametrize("buckets", RANGES)
@pytest.mark.parametrize(("n", "candidates"), [(1, 1), (TILE, 16), (TILE + 1, 333), (3001, 67)])
def test_counts_match_the_compiled_loops(device: CountingDevice, buckets: int, n: int, candidates: int) -> None:
    given, weights = made(n, buckets, candidates), weights_of(n)
    np.testing.assert_array_equal(device.count_hashed(given, None), dispatch_count_hashed(given, None))
    np.testing.assert_array_equal(device.count_hashed(given, weights), dispatch_count_hashed(given, weights))
    assert dispatch_count_hashed(given, None).sum() >= n // 3


@pytest.mark.parametrize("buckets", [3, 1_000_003])
def test_supports_of_held_values(device: CountingDevice, buckets: int) -> None:
    # random candidates of a wide range support nothing: here every report supports its own
    oracle = OLH(3.0, 5000, hash_range=buckets)
    values = np.arange(700) % 50
    columns = oracle.randomize(values).columns
    with counting_on(device):
        found = oracle.support(columns, None, None)
    np.testing.assert_array_equal(found, oracle.support(columns, None, None))
    assert found.sum() > 0


def test_counts_without_reports_or_candidates_are_empty(device: CountingDevice) -> None:
    for n, candidates in ((0, 5), (5, 0), (0, 0)):
        given = made(n, 4, candidates)
        assert device.count_hashed(given, None).tolist() == [0] * candidates
        assert device.count_hashed(given, weights_of(n)).dtype == np.int64
        assert device.joint_hashed(given, made(n, 4, 3)).shape == (candidates, 3, 2, 2)


def test_counts_with_short_seeds(device: CountingDevice) -> None:
    oracle = OLH(1.0, 1001, seed_bytes=4)
    columns = oracle.randomize(np.arange(2000) % 1001).columns
    with counting_on(device):
        found = oracle.support(columns, None, None)
    np.testing.assert_array_equal(found, oracle.support(columns, None, None))


@pytest.mark.parametrize("weighted", [False, True])
def test_every_kernel_is_used_and_right(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    given, weights = made(600, 4, 150), weights_of(600) if weighted else None
    for each in KERNELS[weighted]:
        monkeypatch.setitem(KERNELS, weighted, {each: 1.0})
        driver = Compiled(threads=2)
        np.testing.assert_array_equal(
            GpuCounter(driver).count_hashed(given, weights), dispatch_count_hashed(given, weights)
        )
        assert driver.launched[-1].endswith(f"_{each}")


def test_counts_in_pieces_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given, weights = made(3000, 4, 100), weights_of(3000)
    monkeypatch.setattr(gpu, "_REPORTS", 1024)
    monkeypatch.setattr(gpu, "_CANDIDATES", 33)
    monkeypatch.setattr(gpu, "_BITS", 100_000)
    monkeypatch.setattr(gpu, "_CELLS", 200)
    monkeypatch.setattr(gpu, "_COUNTER", 2500)
    device = compiled(blocks=7)
    np.testing.assert_array_equal(device.count_hashed(given, None), dispatch_count_hashed(given, None))
    np.testing.assert_array_equal(device.count_hashed(given, weights), dispatch_count_hashed(given, weights))
    other = made(3000, 7, 21, seed=1)
    np.testing.assert_array_equal(device.joint_hashed(given, other), NumpyDevice().joint_hashed(given, other))
    np.testing.assert_array_equal(*cosets(device, LinearHashing(1.0, Bits(5), hash_range=3, suffix=3), 4))


@pytest.mark.parametrize(("n", "rows", "columns"), [(1, 1, 1), (1000, 3, 70), (5000, 37, 9)])
def test_joint_counts(device: CountingDevice, n: int, rows: int, columns: int) -> None:
    first, second = made(n, 4, rows), made(n, 56, columns, seed=1)
    np.testing.assert_array_equal(device.joint_hashed(first, second), NumpyDevice().joint_hashed(first, second))


def cosets(device: CountingDevice, oracle: LinearHashing, prefixes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values = np.random.default_rng(5).integers(0, oracle.domain.size, 3000)
    columns = [oracle.randomize(some).columns for some in np.split(values, [1000, 1001])]
    asked = np.arange(prefixes, dtype=np.uint64)

    def counted() -> NDArray[np.int64]:
        return np.stack(list(oracle.cosets(lambda: columns, asked)))

    with counting_on(device):
        found = counted()
    return found, counted()


@pytest.mark.parametrize(("prime", "suffix"), [(2, 5), (3, 1), (3, 7), (7, 6), (61, 7), (257, 3)])
def test_coset_counts_match_the_transform(device: CountingDevice, prime: int, suffix: int) -> None:
    oracle = LinearHashing(1.0, Bits(suffix + 2), hash_range=prime, suffix=suffix)
    found, expected = cosets(device, oracle, 4)
    np.testing.assert_array_equal(found, expected)
    assert found.sum(axis=1).all()


def test_a_field_too_large_for_the_device_stays_on_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled().decodes(7, 7**7)
    assert not compiled().decodes(65521, 65521)
    monkeypatch.setattr(gpu, "_CELLS", 60)
    driver = Compiled()
    np.testing.assert_array_equal(*cosets(GpuCounter(driver), LinearHashing(1.0, Bits(5), hash_range=3, suffix=4), 2))
    assert not driver.launched


RIVALS = [
    ("h ^= h >> 15;", "h ^= h >> 16;"),  # another hash
    ("+ report.z < report.w", "+ report.z <= report.w"),  # a bucket wider by one hash
    ("if (i < n) {", "if (true) {"),  # reports that are only padding count
    ("u32 j = base + k * blockDim.x;\n        u64 z", "u32 j = base + k;\n        u64 z"),  # neighbours' candidates
    ("typedef u64 Sum;", "typedef u32 Sum;"),  # weights in 32 bits
]


@pytest.mark.parametrize("changed", RIVALS)
def test_changed_kernels_are_caught(changed: tuple[str, str]) -> None:
    device = compiled(4, changed)
    same = []
    for buckets in (4, 2**31):
        given, weights = made(1001, buckets, 333), weights_of(1001)
        same += [
            np.array_equal(device.count_hashed(given, w), dispatch_count_hashed(given, w)) for w in (None, weights)
        ]
    assert not all(same)


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_kernels_compile_for_gpus(compiler: str, chip: str, tmp_path: Path) -> None:
    if compiler == "nvrtc":
        assert compiled_by_nvrtc(chip)
        return
    found = shutil.which("nvcc")
    if found is None:
        pytest.skip("no nvcc")
    code = tmp_path / "hashed.cu"
    code.write_text(source())
    done = subprocess.run(
        [found, f"-arch={chip}", "-cubin", "-Xptxas", "-v", "-o", tmp_path / "out", code],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "spill" in done.stderr
    assert all(" 0 bytes spill stores" in line for line in done.stderr.splitlines() if "spill" in line)


def compiled_by_nvrtc(chip: str) -> bytes:
    """What NVRTC makes of the source as CuPy gives it: it comes as a wheel, and needs no driver."""
    found = importlib.util.find_spec("nvidia")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    libraries = [file for folder in folders for file in Path(folder).rglob("libnvrtc.so*")]
    if not libraries:
        pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    nvrtc, program, size = ctypes.CDLL(str(libraries[0])), ctypes.c_void_p(), ctypes.c_size_t()
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), source().encode(), b"hashed.cu", 0, None, None)
    options = [f"--gpu-architecture={chip}".encode(), b"--std=c++14"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    kind = "ProgramLog" if failed else "CUBIN"
    assert not getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    assert not getattr(nvrtc, f"nvrtcGet{kind}")(program, room)
    assert not failed, room.value.decode()
    return room.raw
