"""Studies of items with fixed seeds: unbiased, stated variances, valid intervals, the order of the thesis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.significance import ALPHA, mean_fits, variance_fits

from veil import GRR, OLH, SUE, Items, simulate
from veil.itemsets import FIGURE_5_3, PSFO, SVIM, SVSM, ItemMining, LDPMiner
from veil.mechanisms import PureOracle
from veil.metrics import found_mse, ncr
from veil_papers.datasets import Transactions, pos_baskets, synthetic_baskets

PEOPLE, RUNS = 2_000, 300
SETS = Items(6).encode([[0, 1]] * 900 + [[1, 2, 4]] * 600 + [[3]] * 300 + [[]] * 200)
TRUTH = np.array([900, 1_500, 600, 300, 600, 0]) / PEOPLE
CANDIDATES = ((0, 1), (1,), (1, 2), (3,))
HELD = np.array([900, 1_500, 600, 300]) / PEOPLE


def estimates(asked: PSFO) -> NDArray[np.float64]:
    from veil.entropy import SeededForExperiments

    return np.array(
        [
            asked.read(asked.survey.tally(asked.survey.reports(SETS, SeededForExperiments(seed)))).frequencies
            for seed in range(RUNS)
        ]
    )


@pytest.mark.parametrize("kind", [GRR, OLH, SUE])
@pytest.mark.parametrize("candidates", [None, CANDIDATES], ids=["items", "candidates"])
def test_padding_and_sampling_is_unbiased_with_the_stated_variance(kind: type[PureOracle], candidates: Any) -> None:
    asked = PSFO(3, kind, 2.0, 6, candidates)
    truth = TRUTH if candidates is None else HELD
    found = estimates(asked)
    one = asked.read(asked.survey.tally(asked.survey.randomize([[1]] * PEOPLE)))
    variances = one.variance_at(truth)
    for value, variance in enumerate(variances):
        sample, spread = found[:, value], float(np.var(found[:, value], ddof=1))
        assert mean_fits(float(sample.mean()), truth[value], float(np.sqrt(variance / RUNS)))
        assert variance_fits(spread, RUNS, variance)
        assert not variance_fits(spread, RUNS, variance / 3)  # the rival: padding's factor forgotten once
    rival = found[:, 1] / 3  # the rival that forgets to multiply
    assert not mean_fits(float(rival.mean()), truth[1], float(np.std(rival, ddof=1) / np.sqrt(RUNS)))


def test_items_of_large_sets_are_under_counted_by_the_known_factor() -> None:
    found = estimates(PSFO(2, GRR, 2.0, 6))  # a set of three is sampled as it is: two thirds of it are seen
    stderr = found[:, 2].std(ddof=1) / np.sqrt(RUNS)
    assert mean_fits(float(found[:, 2].mean()), TRUTH[2] * 2 / 3, float(stderr))
    assert not mean_fits(float(found[:, 2].mean()), TRUTH[2], float(stderr))


# -- intervals ---------------------------------------------------------------------------------------------------------


def covers(inside: list[bool], level: float = 0.95) -> bool:
    """Whether intervals cover at least as often as they say."""
    return bool(stats.binomtest(sum(inside), len(inside), level, alternative="less").pvalue > ALPHA)


@pytest.mark.acceptance
def test_intervals_of_items_sets_and_rules_cover_the_truth() -> None:
    """Everybody holds at most three items of few, so that padding to L misses little and what is left is noise."""
    rng = np.random.default_rng(5)
    bundles = [[0, 1, 2], [0, 1], [0, 2], [1], [3, 4], [5], []]
    sets = [bundles[i] for i in rng.choice(len(bundles), 12_000, p=[0.3, 0.25, 0.1, 0.1, 0.1, 0.1, 0.05])]
    held = [set(one) for one in sets]

    def share(items: Any) -> float:
        return float(np.mean([set(items) <= one for one in held]))

    true: dict[Any, float] = {}
    singles, pairs, rules, lifts, narrow = [], [], [], [], []
    for seed in range(60):
        found = simulate(SVSM(6, 2.0, 20), sets, seed=seed)
        for row in found.rows:
            truth = true.setdefault(row.items, share(row.items))
            inside = row.low <= truth <= row.high
            (singles if len(row.items) == 1 else pairs).append(inside)
            narrow.append(abs(row.frequency - truth) <= 0.5 * 1.96 * row.stderr)
        for rule in found.rules(0.5):
            both = share(rule.given + rule.then)
            confidence = both / share(rule.given)
            rules.append(rule.confidence_interval[0] <= confidence <= rule.confidence_interval[1])
            lift = confidence / share(rule.then)
            lifts.append(rule.lift_interval[0] <= lift <= rule.lift_interval[1])
    assert len(rules) > 200
    assert covers(singles)
    assert covers(pairs)
    assert covers(rules)
    assert covers(lifts)
    assert not covers(narrow)  # the rival: half the standard error


def test_intervals_hold_where_holders_differ_in_the_sizes_of_their_sets() -> None:
    """Items 0 and 1 come alone, 2 and 3 in pairs, and the others only in sets that padding under-counts."""
    rng, people, items = np.random.default_rng(5), 20_000, 16
    sizes = np.minimum(2 + rng.geometric(0.15, people), 14)
    sets = [
        [int(rng.random() < 0.4)]
        if kind < 0.35
        else rng.permutation(4 if kind < 0.75 else items)[: 2 if kind < 0.75 else size].tolist()
        for kind, size in zip(rng.random(people), sizes, strict=True)
    ]
    truth = np.bincount(np.concatenate(sets), minlength=items) / people
    doubted, bare = [], []
    for seed in range(12):
        found = simulate(SVIM(items, 4.0, items), sets, seed=seed)
        for inside, interval in (
            (doubted, found.history[-1].widened(found.estimate, 0.95)),
            (bare, found.estimate.interval()),
        ):
            inside += ((interval[:, 0] <= truth) & (truth <= interval[:, 1])).tolist()
    assert covers(doubted)
    assert not covers(bare)  # the rival: noise and samplings alone


# -- the thesis's order ------------------------------------------------------------------------------------------------

K, EPSILON, SEEDS = 32, 4.0, 3


@pytest.fixture(scope="module")
def baskets() -> Transactions:
    return synthetic_baskets(100_000, 1_657, mean_size=6.9, exponent=1.0, seed=1)


def scores(study: Any, data: Transactions, truth: dict[Any, int], seeds: int = SEEDS) -> tuple[float, float]:
    """NCR and squared error of counts, the means over seeds."""
    column, found = data.to_arrow(), []
    for seed in range(seeds):
        rows = simulate(study, column, seed=seed).rows
        counts = {getattr(row, "items", None) or row.value: row.count for row in rows}
        found.append((ncr(counts, list(truth)), found_mse(counts, truth)))
    ranks, errors = np.array(found).mean(axis=0)
    return float(ranks), float(errors)


def test_each_change_from_ldpminer_to_svim_improves(baskets: Transactions) -> None:
    truth = baskets.top_items(K)
    order = [
        scores(ItemMining(K, EPSILON, baskets.domain, **parameters), baskets, truth)
        for parameters in FIGURE_5_3.values()
    ]
    ranks, errors = zip(*order, strict=True)
    assert ranks[0] < ranks[1] < ranks[2] < ranks[3]
    assert min(ranks[3:]) > 0.85
    assert ranks[3] > ranks[2] + 0.1  # the largest step is Adap
    assert ranks[4] == ranks[5]  # the update moves no rank
    assert min(errors) == errors[5]
    assert errors[0] > 50 * errors[5]
    svim = scores(SVIM(K, EPSILON, baskets.domain), baskets, truth)
    assert svim[0] > 1.2 * scores(LDPMiner(K, EPSILON, baskets.domain), baskets, truth)[0]


def test_falling_sizes_improve_itemsets(baskets: Transactions) -> None:
    truth = baskets.top_itemsets(K)
    falling = scores(SVSM(K, EPSILON, baskets.domain), baskets, truth)
    thesis = scores(SVSM(K, EPSILON, baskets.domain, sizes="threshold"), baskets, truth)
    miner = LDPMiner(K, EPSILON, baskets.domain)
    rival = scores(SVSM(K, EPSILON, baskets.domain, items=miner), baskets, truth)
    assert falling[0] > 0.8
    assert falling[1] < thesis[1]
    assert rival[0] < 0.7 * falling[0]
    assert rival[1] > 50 * falling[1]


def test_synthetic_baskets_resemble_the_data() -> None:
    """The 100,000 baskets have a mean of 6.9 items, a median of 5, and an item that 61 % of the people hold."""
    data = pos_baskets()
    if data.stand_in:
        assert np.median(data.sizes) == 5
        top = np.sort(data.held)[::-1] / data.people
        assert top[0] > 0.3
        assert 0.005 < top[127] < 0.02
