"""Proofs by enumeration on the code that ships: ratio <= e^eps, no bias, the variance formula. Fractions only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil.checks import TabledOLH, exact_supports, worst_ratio
from veil.mechanisms import GRR, OLH, OUE, PureOracle, SubsetSelection
from veil.mechanisms.oracles.subset import best_size
from veil.privacy import exp_below

EPSILONS = (0.1, 0.5, 1.0, 2.5)
SIZES = range(2, 9)


def oracles() -> list[PureOracle]:
    made: list[PureOracle] = []
    for size in SIZES:
        for epsilon in EPSILONS:
            made += [GRR(epsilon, size), SubsetSelection(epsilon, size)]
        made += [OUE(epsilon, size) for epsilon in (EPSILONS if size < 7 else (1.0,))]
        if size < 6:
            made += [SubsetSelection(1.0, size, subset_size=w) for w in range(1, size)]
    # OLH over all g^d hash functions, as long as these can be gone through
    for size, hash_range in [(2, 2), (4, 2), (8, 2), (3, 3), (5, 3), (3, 4), (4, 4), (2, 8), (3, 8)]:
        made += [TabledOLH(epsilon, size, hash_range) for epsilon in (0.5, 1.0)]
    return made


@pytest.mark.parametrize("oracle", oracles(), ids=repr)
def test_the_ratio_is_within_epsilon_and_estimates_are_unbiased(oracle: PureOracle) -> None:
    channel = oracle.channel()
    for held in range(oracle.domain.size):
        assert sum(chances[held] for chances in channel.values()) == 1
    assert worst_ratio(channel) == oracle.guarantee.ratio <= exp_below(oracle.epsilon)
    assert oracle.guarantee.epsilon <= oracle.epsilon
    single, pair = exact_supports(oracle)
    noise = oracle.noise
    for held, row in enumerate(single):
        for value, chance in enumerate(row):
            # (3.1) is linear in the support: this is E[estimate] = 1 for the held value and 0 for the others
            assert (chance - oracle.q) / (oracle.p - oracle.q) == (value == held)
            for other in range(oracle.domain.size):
                if other != value:
                    joint = noise.hit if held in (value, other) else noise.miss
                    assert pair.get((held, value, other), Fraction(0)) == joint


@pytest.mark.parametrize("oracle", [GRR(1.0, 5), OUE(1.0, 4), SubsetSelection(1.0, 5), TabledOLH(1.0, 4, 3)], ids=repr)
def test_variance_formula_is_exact(oracle: PureOracle) -> None:
    """(3.2) and the variance of a total, against the variance of the enumerated estimator."""
    single, pair = exact_supports(oracle)
    gap = oracle.p - oracle.q
    held, absent = single[0][0], single[1][0]
    # one person holds value 0, three do not: n = 4, frequency 1/4
    by_hand = (held * (1 - held) + 3 * absent * (1 - absent)) / (4 * gap) ** 2
    assert oracle.variance(4, 0.25) == pytest.approx(float(by_hand), rel=1e-13)

    def covariance(value: int, other: int, holder: int) -> Fraction:
        both = pair.get((holder, value, other), Fraction(0))
        return both - single[holder][value] * single[holder][other]

    def total(holder: int) -> Fraction:
        spread = sum((single[holder][v] * (1 - single[holder][v]) for v in (0, 1, 2)), Fraction(0))
        return spread + sum((covariance(v, u, holder) for v in (0, 1, 2) for u in (0, 1, 2) if u != v), Fraction(0))

    by_hand = (2 * total(0) + 2 * total(3)) / (4 * gap) ** 2  # two people inside the set {0, 1, 2}, two outside
    assert oracle.noise.total_variance(3, 0.5) / 4 == pytest.approx(float(by_hand), rel=1e-12)


@dataclass(frozen=True, init=False)
class OneSeedOLH(OLH):
    """The shipped hash under one given seed: the seed never depends on the value, so each one is a proof of its own."""

    @property
    def seeds(self) -> int:
        return 1

    def hash(self, seeds: NDArray[np.uint64], codes: NDArray[Any]) -> NDArray[np.uint64]:
        return super().hash(seeds + np.uint64(self.SEED), codes)

    SEED = 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("seed", [0, 1, 0xDEADBEEF, 2**64 - 1, 0x0123456789ABCDEF])
def test_olh_with_its_own_hash_keeps_the_ratio_for_every_seed(
    size: int, epsilon: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneSeedOLH, "SEED", seed)
    oracle = OneSeedOLH(epsilon, size)
    assert worst_ratio(oracle.channel()) <= oracle.guarantee.ratio <= exp_below(epsilon)


def test_the_seed_is_drawn_before_the_value_is_used() -> None:
    drawn = []
    for value in range(8):
        source = _FirstDraw()
        OLH(1.0, 8).draw(np.array([value], dtype=np.uint64), source)
        drawn.append(source.bounds[0])
    assert drawn == [2**64] * 8


class _FirstDraw:
    def __init__(self) -> None:
        self.bounds: list[int] = []

    def below(self, bound: int, count: int) -> NDArray[np.uint64]:
        self.bounds.append(bound)
        return np.zeros(count, dtype=np.uint64)

    def coin(self, threshold: int, count: int) -> NDArray[np.bool_]:
        return np.ones(count, dtype=np.bool_)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 1.7, 3.0, 5.0])
@pytest.mark.parametrize("size", [2, 3, 5, 8, 20, 57])
def test_subset_size_is_the_best_of_all(epsilon: float, size: int) -> None:
    variances = {w: SubsetSelection(epsilon, size, subset_size=w).noise for w in range(1, size)}
    star = {w: noise.q * (1 - noise.q) / (noise.p - noise.q) ** 2 for w, noise in variances.items()}
    assert star[best_size(epsilon, size)] == min(star.values())


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("size", [2, 3, 10, 100, 1024, 10_000])
def test_subset_selection_is_never_worse(epsilon: float, size: int) -> None:
    rivals = [GRR(epsilon, size), OUE(epsilon, size), OLH(epsilon, size)]
    best = SubsetSelection(epsilon, size).variance(1)
    assert all(best <= rival.variance(1) * (1 + 1e-12) for rival in rivals)
