"""Proofs for SUE, THE, BLH and RandomProjection by enumeration on the code that ships."""

from __future__ import annotations

import pytest

from veil import BLH, SUE, THE, RandomProjection
from veil.checks import TabledOLH, enumerable, exact_supports, worst_ratio
from veil.errors import ParameterError
from veil.mechanisms import PureOracle
from veil.mechanisms.rivals.histogram_encoding import best_theta
from veil.privacy import exp_below

EPSILONS = (0.1, 0.5, 1.0, 2.5)


def settings(largest: int) -> list[tuple[float, int]]:
    """Every eps for small domains, one eps where there are many paths."""
    return [(epsilon, size) for size in range(2, largest + 1) for epsilon in (EPSILONS if size < 6 else (1.0,))]


@pytest.mark.parametrize(("epsilon", "size"), settings(7))
@pytest.mark.parametrize("kind", [SUE, THE])
def test_ratio_bias_and_variance_of_unary_encodings(kind: type[PureOracle], epsilon: float, size: int) -> None:
    oracle = kind(epsilon, size)
    assert worst_ratio(oracle.channel()) == oracle.guarantee.ratio <= exp_below(epsilon)
    single, _ = exact_supports(oracle)
    for held, row in enumerate(single):
        assert [(chance - oracle.q) / (oracle.p - oracle.q) for chance in row] == [v == held for v in range(size)]


@pytest.mark.parametrize(("epsilon", "size"), settings(8))
def test_ratio_bias_and_variance_of_binary_hashing_over_all_functions(epsilon: float, size: int) -> None:
    twin = enumerable(BLH(epsilon, size))
    assert isinstance(twin, TabledOLH)
    assert twin.guarantee == BLH(epsilon, size).guarantee
    assert worst_ratio(twin.channel()) == twin.guarantee.ratio <= exp_below(epsilon)
    single, _ = exact_supports(twin)
    assert all(single[held][v] == (twin.p if v == held else twin.q) for held in range(size) for v in range(size))


@pytest.mark.parametrize("rows", [2, 7, 16])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_public_matrix_keeps_the_ratio(epsilon: float, rows: int) -> None:
    oracle = RandomProjection(epsilon, 8, rows=rows)
    assert worst_ratio(oracle.channel()) == oracle.guarantee.ratio <= exp_below(epsilon)
    single, _ = exact_supports(oracle)
    assert all(single[v][v] == oracle.p for v in range(8))  # held values are always right; others carry the bias


@pytest.mark.parametrize("theta", [0.5, 0.6, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
def test_every_theta_keeps_the_ratio(epsilon: float, theta: float) -> None:
    assert THE(epsilon, 4, theta=theta).guarantee.within(epsilon)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_best_theta_has_the_least_variance(epsilon: float) -> None:
    best = THE(epsilon, 4).variance(1)
    assert best <= min(THE(epsilon, 4, theta=i / 100).variance(1) for i in range(50, 101)) * (1 + 1e-9)
    assert 0.5 <= best_theta(epsilon) <= 1


@pytest.mark.parametrize("bad", [0.4, 1.1, "1", True, float("nan")])
def test_theta_is_checked(bad: object) -> None:
    with pytest.raises(ParameterError):
        THE(1.0, 4, theta=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [1, 2**33, 2.5, True])
def test_rows_are_checked(bad: object) -> None:
    with pytest.raises(ParameterError):
        RandomProjection(1.0, 4, rows=bad)  # type: ignore[arg-type]
