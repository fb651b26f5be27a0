"""Searches for heavy hitters with fixed seeds: drawn supports against reports, the linear hash, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.significance import ALPHA, frequency_fits, mean_fits, variance_fits

from veil import OLH, Bits, LinearHashing, OneOf, Question, Survey
from veil.engines import DrawnCollection, MemoryCollection
from veil.engines.drawn import top_of_absent
from veil.entropy import SeededForExperiments
from veil.hitters import PEM, HitterSearch, MultipleChannel, SegmentPairs, pem1
from veil.metrics import f1
from veil.study import Collection
from veil.study.continuations import Continuations, start
from veil.view import prefix
from veil_papers.datasets import exponential_bits

PEOPLE, RUNS = 3_000, 120
HELD = np.repeat(np.array([3, 200, 201], dtype=np.uint64), [600, 400, 2000])
SURVEY = Survey(
    OneOf((1, Question(OLH(1.0, Bits(4)), prefix(Bits(8), 4))), (2, Question(OLH(1.0, Bits(8)), prefix(Bits(8), 8))))
)


def counted(seed: int) -> Collection:
    return MemoryCollection(SURVEY, SURVEY.randomize(HELD, SeededForExperiments(seed)))


def drawn(seed: int) -> Collection:
    return DrawnCollection(SURVEY, HELD, seed)


# -- drawn supports are equal in distribution --------------------------------------------------------------------------


@pytest.mark.parametrize("make", [counted, drawn], ids=["reports", "drawn"])
def test_supports_have_the_stated_distribution(make: Callable[[int], Collection]) -> None:
    """Mean and variance of a held value's and of an absent value's estimate, over groups drawn anew each time."""
    codes = np.array([201, 3, 77], dtype=np.uint64)
    estimates, groups = [], []
    for seed in range(RUNS):
        made = make(seed)
        counts = made.support((1,), codes).counts
        groups.append(made.answered(1))
        estimates.append(counts / groups[-1] - float(OLH(1.0, Bits(8)).q))
    found = np.array(estimates)
    oracle = OLH(1.0, Bits(8))
    gap = float(oracle.p - oracle.q)
    for column, share in zip(found.T, (2 / 3, 0.2, 0.0), strict=True):
        variance = gap**2 * (oracle.variance(2 * PEOPLE // 3, share) + share * (1 - share) / PEOPLE / 2)
        assert mean_fits(float(column.mean()), share * gap, np.sqrt(variance / RUNS))
        assert variance_fits(float(column.var(ddof=1)), RUNS, variance)
        assert not mean_fits(float(column.mean()), share * gap + 0.03 * gap, np.sqrt(variance / RUNS))
        assert not variance_fits(float(column.var(ddof=1)), RUNS, 3 * variance)
    assert frequency_fits(sum(groups), RUNS * PEOPLE, 2 / 3)
    assert not frequency_fits(sum(groups), RUNS * PEOPLE, 1 / 2)


def _tops(make: Callable[[int], Collection]) -> NDArray[np.float64]:
    every = Continuations(start(), 0, 8)
    rows = []
    for seed in range(RUNS):
        made = make(seed)
        rows.append(made.estimate((1,), made.best((1,), every, 6)).frequencies)
    return np.array(rows)


def test_best_candidates_have_the_same_distribution_when_drawn() -> None:
    """Each rank's estimate, real against drawn; the rival draws as if the candidates were a hundred times as many."""
    real, made = _tops(counted), _tops(drawn)
    for rank in range(6):
        assert stats.ks_2samp(real[:, rank], made[:, rank]).pvalue > ALPHA
    absent = OLH(1.0, Bits(8))
    rng = np.random.default_rng(0)
    many = [top_of_absent(25_300, 1, 2000, float(absent.q), rng)[0] / 2000 for _ in range(RUNS)]
    wrong = (np.array(many) - float(absent.q)) / float(absent.p - absent.q)
    assert stats.ks_2samp(real[:, 3], wrong).pvalue < ALPHA


def test_top_order_statistics_are_those_of_independent_binomials() -> None:
    rng = np.random.default_rng(1)
    direct = np.sort(rng.binomial(1000, 0.25, (4000, 50)), axis=1)[:, ::-1][:, :3]
    made = np.array([top_of_absent(50, 3, 1000, 0.25, rng) for _ in range(4000)])
    fewer = np.array([top_of_absent(25, 3, 1000, 0.25, rng) for _ in range(4000)])
    for rank in range(3):
        assert stats.ks_2samp(direct[:, rank], made[:, rank]).pvalue > ALPHA
        assert stats.ks_2samp(direct[:, rank], fewer[:, rank]).pvalue < ALPHA  # the rival


def test_joint_supports_of_pairs_are_drawn_alike() -> None:
    """What segment pairs read: the share of people who support both parts of a held pair, real and drawn."""
    made = SegmentPairs(3.0, Bits(8), 2, segments=2, improved=False)
    codes = np.array([12, 0], dtype=np.uint64), np.array([9, 3], dtype=np.uint64)  # 201 is (12, 9), 3 is (0, 3)
    shares: dict[str, list[NDArray[np.float64]]] = {"real": [], "drawn": []}
    for seed in range(40):
        reports = made.survey.randomize(HELD, SeededForExperiments(seed))
        for name, collected in (
            ("real", MemoryCollection(made.survey, reports)),
            ("drawn", DrawnCollection(made.survey, HELD, seed)),
        ):
            shares[name].append(collected.joint({1: codes[0], 2: codes[1]})[:, :, 1, 1] / PEOPLE)
    real, drew = np.array(shares["real"]), np.array(shares["drawn"])
    spread = np.sqrt(real.var(axis=0) / 40 + drew.var(axis=0) / 40)
    apart = np.abs(real.mean(axis=0) - drew.mean(axis=0)) / spread
    assert (2 * stats.norm.sf(apart) > ALPHA).all()
    product = drew.mean(axis=0)[::-1]  # the rival: the pairs exchanged
    assert (np.abs(real.mean(axis=0) - product) / spread > 6).any()


# -- the linear hash ---------------------------------------------------------------------------------------------------

PAIRS = [(0, 1), (1, 2), (5, 5 << 10), (0x4142, 0x4143), (0x414243 << 8, 0x414244 << 8), (2**19, 2**20), (7, 2**40 + 7)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("suffix", [8, 19])
def test_two_values_collide_with_probability_1_over_q(pair: tuple[int, int], suffix: int) -> None:
    oracle = LinearHashing(1.0, Bits(48), suffix=suffix)
    seeds = SeededForExperiments(9).below(2**64, 200_000)
    a, b = (oracle.hash(seeds, np.full(len(seeds), value, dtype=np.uint64)) for value in pair)
    together = int((a == b).sum())
    assert frequency_fits(together, len(seeds), 1 / oracle.hash_range)
    assert not frequency_fits(together, len(seeds), 1 / oracle.hash_range + 0.01)
    for bucket in range(oracle.hash_range):
        assert frequency_fits(int(((a == bucket) & (b == 0)).sum()), len(seeds), 1 / oracle.hash_range**2)


# -- who finds more ----------------------------------------------------------------------------------------------------

SEEDS = 5


def score(make: Callable[[], HitterSearch]) -> float:
    """F1 of the 16 most frequent of the thesis's synthetic data, a million people, drawn supports."""
    made, found = make(), []
    for seed in range(SEEDS):
        held, ranking = exponential_bits(1_000_000, 64, seed)
        found.append(f1(made.read(DrawnCollection(made.survey, held, seed)).values, ranking[:16]))
    return float(np.mean(found))


@pytest.mark.acceptance
def test_pem_finds_more_than_its_rivals() -> None:
    """At eps = 1; a run scatters by 0.05."""
    ours = score(lambda: PEM(1.0, Bits(64), 16))
    thesis = score(lambda: PEM(1.0, Bits(64), 16, keep=16, last=1))
    assert ours > 0.88
    assert thesis > 0.8
    assert ours > score(lambda: MultipleChannel(1.0, Bits(64), 16)) + 0.05
    assert ours > score(lambda: pem1(1.0, Bits(64), 16)) + 0.25
    assert ours > score(lambda: SegmentPairs(1.0, Bits(64), 16)) + 0.25


def test_longer_steps_find_more() -> None:
    found = [
        score(lambda g=groups: PEM(1.0, Bits(64), 16, keep=16, groups=g, last=1, fit=False)) for groups in (30, 10, 3)
    ]
    assert found[0] + 0.1 < found[1] < found[2] - 0.05


def test_fitted_trie_ranks_better_than_the_mean_over_levels() -> None:
    plain = score(lambda: PEM(2.0, Bits(64), 16, fit=False, last=1))
    fitted = score(lambda: PEM(2.0, Bits(64), 16, last=1))
    assert fitted > 0.95
    assert fitted >= plain - 0.01


def test_real_reports_find_as_much_as_drawn_supports() -> None:
    """The whole corridor at a smaller size, by both oracles."""
    held, ranking = exponential_bits(60_000, 24, 1, scale=0.2)

    def found(oracle: Any) -> float:
        made = PEM(3.0, Bits(24), 8, budget=2**14, oracle=oracle)
        reports = made.survey.randomize(held, SeededForExperiments(1))
        return f1(made.read(MemoryCollection(made.survey, reports)).values, ranking[:8])

    def drew(epsilon: float) -> float:
        made = PEM(epsilon, Bits(24), 8, budget=2**14)
        return f1(made.read(DrawnCollection(made.survey, held, 1)).values, ranking[:8])

    assert found("OLH") >= 0.85
    assert found("PGR") >= 0.85
    assert (
        f1(
            PEM(3.0, Bits(24), 8, budget=2**14)
            .read(DrawnCollection(PEM(3.0, Bits(24), 8, budget=2**14).survey, held, 1))
            .values,
            ranking[:8],
        )
        >= 0.85
    )
    assert (
        f1(
            PEM(0.2, Bits(24), 8, budget=2**14)
            .read(DrawnCollection(PEM(0.2, Bits(24), 8, budget=2**14).survey, held, 1))
            .values,
            ranking[:8],
        )
        < 0.5
    )  # the rival
