"""The bias of a fixed random matrix, measured, and the ratios that the thesis prints."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from veil import BLH, GRR, OLH, OUE, SHE, SUE, RandomProjection


def correlations(oracle: RandomProjection, pairs: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How much of one value's frequency stands in another's estimate: the exact inner product of their columns."""
    rows = np.arange(oracle.rows, dtype=np.uint64)
    columns = [oracle.hash(rows, np.full(len(rows), v, np.uint64)).astype(np.int8) for v in range(pairs + 1)]
    return np.array([2 * np.mean(a == b) - 1 for a, b in pairwise(columns)])


def test_the_matrix_is_orthogonal_up_to_chance_and_no_better() -> None:
    oracle = RandomProjection(1.0, 2000, rows=1 << 12)
    found = correlations(oracle, 1000) * math.sqrt(oracle.rows)
    assert abs(np.mean(found)) < 7 / math.sqrt(1000)
    assert 0.8 < np.sqrt(np.mean(found**2)) < 1.2  # as said in docs/mechanisms/random-projection.md
    assert oracle.bias == 1 / 64
    few = RandomProjection(1.0, 2000, rows=1 << 8)
    assert np.sqrt(np.mean(correlations(few, 300) ** 2)) > 3 * np.sqrt(np.mean(correlations(oracle, 300) ** 2))


def test_ratios_of_variances_are_those_of_the_thesis() -> None:
    assert BLH(4.0, 9).variance(1) / OUE(4.0, 9).variance(1) == pytest.approx(14.15, abs=0.01)
    assert SUE(4.0, 9).variance(1) / OUE(4.0, 9).variance(1) == pytest.approx(2.38, abs=0.01)
    assert RandomProjection(1.0, 9).variance(1) == BLH(1.0, 9).variance(1)
    fine = {eps: SHE(eps, 9, grid=64).variance(1) / BLH(eps, 9).variance(1) for eps in (2.31, 2.33)}
    assert fine[2.31] > 1 > fine[2.33]  # SHE crosses BLH at eps = 2.32


def test_the_variance_of_grr_grows_with_the_domain() -> None:
    assert float(GRR(math.log(49), 2**16).p) == pytest.approx(0.00075, abs=5e-6)
    assert OLH(1.0, 2**16).variance(1) < GRR(1.0, 2**16).variance(1) / 1000
