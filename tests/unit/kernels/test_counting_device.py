"""Where integers are counted is chosen for a while, and shows in no result."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
import warnings
from typing import Any

import numpy as np
import pytest
from tests.support.compiled_kernels import compiled
from tests.support.numpy_device import NumpyDevice

from veil import BLH, OLH, Bits, Survey
from veil.engines import MemoryCollection, gpu
from veil.errors import EngineError, EngineWarning
from veil.hitters import PEM
from veil.hitters.rivals.segments import SegmentPairs
from veil.kernels.parallel import HashedReports, ahead, counting_on, current_device, in_order
from veil.mechanisms import LinearHashing, RandomProjection
from veil.tools.messages import install_command
from veil.wire.tallies import encode_tally

VALUES = np.random.default_rng(1).geometric(0.05, 4000) % 64


class Wrong(NumpyDevice):
    """Counts one person too many."""

    def count_hashed(self, given: HashedReports, weights: Any) -> Any:
        return super().count_hashed(given, weights) + 1


@pytest.mark.parametrize("weights", [None, np.arange(4000) - 2000])
@pytest.mark.parametrize(
    "oracle",
    [OLH(1.0, 64), OLH(1.0, 64, seed_bytes=4), BLH(1.0, 64), RandomProjection(1.0, 64), LinearHashing(1.0, 64)],
)
def test_tallies_are_the_same_bytes(oracle: Any, weights: Any) -> None:
    survey = Survey(oracle)
    reports = survey.randomize(VALUES)
    local, twin = encode_tally(survey.tally(reports, weights=weights)), NumpyDevice()
    with counting_on(twin):
        assert encode_tally(survey.tally(reports, weights=weights)) == local
    assert twin.asked or (isinstance(oracle, LinearHashing) and weights is not None)
    with counting_on(compiled()):
        assert encode_tally(survey.tally(reports, weights=weights)) == local
    if twin.asked == ["count_hashed"]:
        with counting_on(Wrong()):
            assert encode_tally(survey.tally(reports, weights=weights)) != local


@pytest.mark.parametrize(
    ("study", "asked"),
    [
        (PEM(4.0, Bits(16), k=3, budget=2**10), "count_hashed"),
        (PEM(4.0, Bits(16), k=3, budget=2**10, oracle="PGR"), "cosets"),
        (SegmentPairs(6.0, Bits(16), k=2), "joint_hashed"),
    ],
)
def test_searches_are_the_same(study: Any, asked: str) -> None:
    collected = MemoryCollection(study.survey, study.survey.randomize(VALUES * 1021))
    local, twin = study.read(collected), NumpyDevice()
    with counting_on(twin):
        assert study.read(collected) == local
    assert asked in twin.asked
    with counting_on(compiled()):
        assert study.read(collected) == local


def test_weighted_joints_and_other_mechanisms_stay_on_the_cores() -> None:
    study = SegmentPairs(6.0, Bits(16), k=2)
    reports = study.survey.randomize(VALUES * 1021)
    candidates = {1: [3, 4], 2: [5]}
    weights = np.arange(4000)
    local = study.survey.joint(reports, candidates, weights)
    twin = NumpyDevice()
    with counting_on(twin):
        np.testing.assert_array_equal(study.survey.joint(reports, candidates, weights), local)
        assert not twin.asked
        study.survey.joint(reports, candidates)
    assert twin.asked == ["joint_hashed"]


def test_a_choice_belongs_to_its_thread_and_ends() -> None:
    outer, inner = NumpyDevice(), NumpyDevice()
    seen: list[Any] = []
    with counting_on(outer):
        with counting_on(inner):
            assert current_device() is inner
        assert current_device() is outer
        other = threading.Thread(target=lambda: seen.append(current_device()))
        other.start()
        other.join()
        with pytest.raises(ZeroDivisionError), counting_on(None):
            1 / 0  # noqa: B018
        assert current_device() is outer
    assert seen == [None]
    assert current_device() is None


def test_our_threads_count_where_the_caller_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEIL_THREADS", "2")
    device = NumpyDevice()

    def where(_: int) -> bool:
        return current_device() is device

    with counting_on(device):
        assert in_order(where, [1, 2, 3]) == [True] * 3
        assert [found for _, found in ahead(where, [1, 2, 3])] == [True] * 3
    assert in_order(where, [1, 2, 3]) == [False] * 3


class NoDriverError(Exception):
    """What CuPy raises where there is no driver."""


def cupy_that(count: int | None) -> types.ModuleType:
    """CuPy on a machine with so many GPUs; None is one without a driver."""

    def devices() -> int:
        if count is None:
            raise NoDriverError("cudaErrorInsufficientDriver")
        return count

    made: Any = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(getDeviceCount=devices, CUDARuntimeError=NoDriverError)
    made.cuda = types.SimpleNamespace(runtime=runtime)
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize("count", [0, None])
def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy_that(count))
    gpu.device.cache_clear()
    assert not gpu.available()
    with pytest.raises(EngineError, match=r"^there is no engine 'cuda' here: CuPy finds no CUDA device"), gpu.cuda():
        pass
    with pytest.warns(EngineWarning, match="cores count instead of a GPU: CuPy finds no"), gpu.cuda(or_local=True):
        assert current_device() is None


def test_without_cupy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    gpu.device.cache_clear()
    assert install_command("gpu") in (gpu.why_not() or "")
    with pytest.raises(EngineError, match="needs CuPy"):
        gpu.device()


def test_with_a_gpu_it_counts_there(monkeypatch: pytest.MonkeyPatch) -> None:
    device = NumpyDevice()
    monkeypatch.setitem(sys.modules, "cupy", cupy_that(1))
    monkeypatch.setattr(gpu, "device", lambda: device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gpu.cuda(or_local=True):
            assert current_device() is device
        with gpu.cuda():
            assert current_device() is device


def test_nothing_heavy_is_loaded_for_it() -> None:
    code = "import sys, veil.kernels.parallel, veil.engines.gpu; print({'cupy', 'numba', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
