"""Central guarantees: golden values, designs, rivals, studies with a shuffler, invalid parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.significance import mean_fits, variance_fits
from tests.support.golden import golden_rows

from veil import GRR, OLH, OUE, SHE, SUE, Bits, HadamardResponse, SquareWave, SubsetSelection, Text, simulate
from veil.accounting import (
    AUE,
    Blanket,
    Laplace,
    Shuffler,
    UniformGuess,
    amplify,
    blanket_of,
    bounds,
    delta_of,
    design,
    designs,
    largest_local,
    rap,
    rap_removal,
    solh_buckets,
)
from veil.device import Ledger
from veil.entropy import SeededForExperiments
from veil.errors import BudgetError, ParameterError
from veil.histogram import Histogram
from veil.hitters import shuffled_tree_hist
from veil.mechanisms import Mechanism, RandomProjection, StochasticRounding
from veil.planning import Central, Wishes, plan
from veil.study import study_from_json

TABLE = golden_rows("table_9_2_solh.csv")
BLANKETS: list[tuple[int, float, Mechanism, float]] = [
    (1_000_000, 1e-8, GRR(1.0, 100), 0.00087),
    (1_000_000, 1e-8, OLH(1.0, 1000, 4), 0.00343),
    (1_000_000, 1e-8, SubsetSelection(1.0, 100, 27), 0.00349),
    (100_000, 1e-6, GRR(4.0, 100), 0.06844),
    (100_000, 1e-6, OLH(4.0, 1000, 56), 0.08125),
    (100_000, 1e-6, SubsetSelection(4.0, 100, 2), 0.08411),
    (10_000, 1e-6, GRR(1.0, 100), 0.00719),
    (10_000, 1e-6, OLH(1.0, 1000, 4), 0.02934),
    (10_000, 1e-6, SubsetSelection(1.0, 100, 27), 0.02992),
]


@pytest.mark.parametrize(("users", "delta", "mechanism", "expected"), BLANKETS)
def test_blanket_epsilon_matches_golden_values(users: int, delta: float, mechanism: Mechanism, expected: float) -> None:
    found = amplify(mechanism, users, delta)
    assert found.epsilon == pytest.approx(expected, rel=0.02)
    assert found.low <= found.epsilon
    assert found.bracket.spread <= 0.05
    assert found.central.needs_shuffler
    assert delta_of(blanket_of(mechanism), users, math.exp(found.epsilon)).high <= delta
    assert delta_of(blanket_of(mechanism), users, math.exp(found.low)).low >= delta  # it is as small as it can be told


def test_clones_match_the_closed_form_of_2021() -> None:
    assert bounds.clones(4.0, 100_000, 1e-6) == pytest.approx(0.53780, abs=5e-6)
    assert bounds.clones(1.0, 1_000_000, 1e-8) == pytest.approx(0.02718, abs=5e-6)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["epsilon_c"])
def test_designs_match_table_9_2(row: dict[str, str]) -> None:
    users, epsilon, delta = int(row["n"]), float(row["epsilon_c"]), float(row["delta"])
    found = design(users, 42_178, epsilon, delta, epsilon_local_cap=20, bound="thesis")
    assert isinstance(found.oracle, OLH)
    assert found.oracle.hash_range == int(row["d_prime"]) == solh_buckets(epsilon, users, delta)
    assert found.variance == pytest.approx(float(row["variance_solh"]), rel=0.005)
    removal = rap_removal(42_178, users, epsilon, delta)
    assert removal.variance(users) == pytest.approx(float(row["variance_rap_r"]), rel=0.005)
    assert found.amplified.epsilon == pytest.approx(epsilon, rel=1e-4)


def test_the_blanket_allows_ten_times_less_variance_than_the_thesis() -> None:
    thesis, blanket = (design(1_000_000, 1000, 0.1, 1e-9, 6, bound) for bound in ("thesis", "blanket"))  # type: ignore[arg-type]
    assert thesis.variance >= 10 * blanket.variance
    for found in (thesis, blanket):
        assert found.oracle.epsilon <= 6
        assert found.amplified.epsilon <= 0.1


def test_the_blanket_is_never_above_the_closed_forms() -> None:
    for mechanism in (GRR(1.0, 10), OLH(2.0, 100), SUE(2.0, 50)):
        blanket = amplify(mechanism, 1_000_000, 1e-9).epsilon
        assert all(blanket < amplify(mechanism, 1_000_000, 1e-9, method).epsilon for method in ("clones", "thesis"))


def test_epsilon_falls_with_people_and_rises_for_smaller_delta() -> None:
    by_people = [amplify(OLH(2.0, 100), users, 1e-6).epsilon for users in (1_000, 10_000, 100_000)]
    assert by_people[0] > 3 * by_people[1] > 9 * by_people[2]
    by_delta = [amplify(OLH(2.0, 100), 10_000, delta).epsilon for delta in (1e-3, 1e-6, 1e-12, 1e-40)]
    assert by_delta == sorted(by_delta)


def test_local_epsilon_stands_without_amplification() -> None:
    found = amplify(GRR(1.0, 2), 10, 1e-9)
    assert found.central.ratio == found.local.ratio
    assert found.central.delta == 0
    assert not found.amplifies
    assert amplify(GRR(15.0, 5), 10_000, 1e-6).epsilon <= 15.0


@pytest.mark.parametrize("method", ["blanket", "clones", "thesis"])
def test_the_largest_local_epsilon_keeps_the_central_one(method: Any) -> None:
    found = largest_local(lambda eps: OLH(eps, 1000, 20), 100_000, 0.5, 1e-6, method, cap=8.0)
    assert amplify(found, 100_000, 1e-6, method).epsilon <= 0.5
    more = OLH(found.epsilon * 1.01, 1000, 20)
    assert amplify(more, 100_000, 1e-6, method).epsilon > 0.5


def test_without_amplification_the_local_epsilon_is_the_central_one() -> None:
    found = largest_local(lambda eps: GRR(eps, 10_000), 10_000, 0.5, 1e-9, "thesis")
    assert found.epsilon == 0.5
    assert largest_local(lambda eps: GRR(eps, 4), 10_000, 0.5, 1e-9, cap=0.3).epsilon == 0.3


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.5, 8.0, 11.5])
def test_central_epsilon_is_certified(epsilon: float) -> None:
    """At a delta that three people cannot reach the local promise stands, and not one a few digits below it."""
    found = amplify(GRR(epsilon, 4), 3, 1e-22)
    assert found.central == found.local


def test_epsilon_is_0_for_a_large_delta() -> None:
    found = amplify(GRR(1.0, 10), 10, 0.4)
    assert (found.epsilon, found.low) == (0.0, 0.0)


def test_closed_form_improves_with_fakes() -> None:
    assert bounds.responses(1.0, 10, 100_000, 1e-9, fakes=10_000) < bounds.responses(1.0, 10, 100_000, 1e-9)
    assert bounds.hashing(1.0, 10, 100_000, 1e-9, 5_000) == bounds.responses(1.0, 10, 100_000, 1e-9, 5_000)


def test_a_wave_is_worth_more_between_values_that_overlap() -> None:
    wave = blanket_of(SquareWave(1.0, 100))
    closer = Blanket(wave.ratio, wave.share, wave.share / 2)
    assert delta_of(closer, 1_000, 1.02).high < delta_of(wave, 1_000, 1.02).low


def test_designs_are_within_the_cap_and_keep_the_promise() -> None:
    found = designs(100_000, 50, 0.5, 1e-6, epsilon_local_cap=3.0)
    assert {one.oracle.name for one in found} == {"GRR", "OLH", "SubsetSelection", "SUE", "OUE", "HadamardResponse"}
    for one in found:
        assert one.oracle.guarantee.within(3.0)
        assert one.amplified.epsilon <= 0.5
        assert amplify(one.oracle, 100_000, 1e-6).epsilon <= 0.5


def test_aue_is_unbiased_with_the_stated_variance() -> None:
    oracle, held = AUE(1.0, 5, users=20_000, delta=1e-6), np.repeat(np.arange(5), [4000, 3000, 2000, 1000, 0])
    errors = []
    for seed in range(40):
        found = oracle.estimate(oracle.tally(oracle.randomize(held, SeededForExperiments(seed))))
        errors.append(found.frequencies - np.bincount(held, minlength=5) / len(held))
    sigma = math.sqrt(oracle.variance(len(held)))
    mean, stderr = float(np.mean(errors)), sigma / math.sqrt(np.size(errors))
    assert mean_fits(mean, 0.0, stderr)
    assert not mean_fits(mean + float(oracle.p), 0.0, stderr)  # without taking off what is raised
    spread = float(np.mean(np.square(errors)))
    assert variance_fits(spread, np.size(errors), sigma**2)
    assert not variance_fits(spread, np.size(errors), 3 * sigma**2)


def test_aue_weighs_candidates_like_the_whole() -> None:
    oracle = AUE(1.0, 4, users=20_000, delta=1e-6)
    reports = oracle.randomize([0, 1, 1, 3], SeededForExperiments(1))
    weights = np.array([1, 2, 3, 4])
    whole = oracle.tally(reports, weights=weights).counts
    assert oracle.tally(reports, candidates=[3, 1], weights=weights).counts.tolist() == [whole[3], whole[1]]
    assert int(oracle.tally(reports).counts.sum()) >= 4


def test_rap_is_half_of_rap_removal() -> None:
    """One is for replacing, the other for removing a person: twice the epsilon, up to the delta of two bits."""
    replace, remove = rap(100, 1_000_000, 0.8, 2e-9), rap_removal(100, 1_000_000, 0.4, 1e-9)
    assert replace.epsilon == pytest.approx(remove.epsilon, rel=1e-9)
    assert amplify(replace, 1_000_000, 2e-9, "thesis").epsilon == pytest.approx(0.8, rel=1e-6)


def test_errors_of_baselines() -> None:
    counts = np.array([600, 300, 100])
    rng = np.random.default_rng(9)
    errors = [Laplace(0.5).frequencies(counts, rng) - counts / 1000 for _ in range(4000)]
    assert np.mean(np.square(errors)) == pytest.approx(Laplace(0.5).variance(1000), rel=0.1)
    assert UniformGuess().error(counts) == pytest.approx(np.mean((counts / 1000 - 1 / 3) ** 2))


def test_tree_hist_behind_a_shuffler_finds_what_is_frequent() -> None:
    words = ["monday", "friday", "sunday", "summer", "winter"]
    held = np.repeat(words, [30_000, 25_000, 20_000, 15_000, 10_000])
    study = shuffled_tree_hist(1.0, Text(6), 5, 100_000, 1e-6, bound="blanket")
    found = simulate(study, held, seed=9)
    assert {row.value for row in found} == set(words)
    assert study_from_json(study.to_bytes()) == study
    assert sum(amplify(asked.mechanism, 100_000, 1e-6 / 6).epsilon for asked in study.survey.questions) <= 1.0


def test_histogram_with_a_shuffler() -> None:
    study = Histogram(GRR(2.0, 4), shuffler=Shuffler(10_000, 1e-6))
    plain = Histogram(GRR(2.0, 4))
    assert study.survey == plain.survey  # devices see no difference
    assert study.guarantee == plain.guarantee
    assert plain.central is None
    assert study.central is not None
    assert study.central.epsilon < 0.11
    assert study_from_json(study.to_bytes()) == study
    found = simulate(study, [0] * 6_000 + [1] * 6_000, seed=1)
    assert found.lineage == ("GRR(epsilon=2)", f"shuffled: {study.central.central}")
    assert found.guarantee == plain.guarantee
    assert found.remarks() == []
    alone = simulate(study, [0], seed=1)  # there is nobody to hide among
    assert alone.lineage[1] == "shuffled, with 1 people instead of 10,000: eps = 2, exactly"
    fewer = simulate(study, [0] * 100, seed=1)  # the shuffler could mix no more than that
    less = f"shuffled, with 100 people instead of 10,000: {amplify(GRR(2.0, 4), 100, 1e-6).central}"
    assert fewer.lineage[1] == less
    assert less in fewer.remarks()[0]


def test_a_plan_behind_a_shuffler() -> None:
    found = plan("histogram", Wishes(4.0, GRR(1.0, 20).domain, 50_000, central=Central(0.5, 1e-6)))
    study = found.study
    assert isinstance(study, Histogram)
    assert study.shuffler == Shuffler(50_000, 1e-6)
    assert study.central is not None
    assert study.central.epsilon <= 0.5 < study.oracle.epsilon <= 4.0
    assert found.facts["central_epsilon"] == pytest.approx(study.central.epsilon, rel=1e-5)
    assert found.facts["epsilon"] == study.oracle.epsilon
    assert found.facts["epsilon_central"] == 0.5
    assert "if the shuffler tells" in found.about
    best = min(found.options, key=lambda option: option.error("standard error"))
    assert found.taken.error("standard error") <= 1.05**0.5 * best.error("standard error")


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "nobody": (lambda: amplify(GRR(1.0, 2), 1, 1e-6), "at least|2 to 10"),
    "half a person": (lambda: amplify(GRR(1.0, 2), 10.5, 1e-6), "integer"),  # type: ignore[arg-type]
    "no delta": (lambda: amplify(GRR(1.0, 2), 100, 0.0), "delta"),
    "a delta of nothing": (lambda: amplify(GRR(1.0, 2), 100, math.nan), "delta"),
    "another method": (lambda: amplify(GRR(1.0, 2), 100, 1e-6, "magic"), "blanket, clones, thesis"),  # type: ignore[arg-type]
    "clones of few": (
        lambda: amplify(GRR(5.0, 2), 1000, 1e-6, "clones"),
        r"n / \(16 ln\(4 / delta\)\).*at least [\d,]+ users",
    ),
    "a thesis of few": (
        lambda: amplify(GRR(1.0, 100), 1000, 1e-6, "thesis"),
        "central epsilon of at most 1.*more users",
    ),
    "a small epsilon that is large": (lambda: amplify(GRR(1.0, 2), 10_000, 1e-6, "small-epsilon"), "below 1/2"),
    "small epsilon of few": (lambda: amplify(GRR(0.4, 2), 100, 1e-6, "small-epsilon"), "1,000 users"),
    "binary of three": (lambda: amplify(GRR(1.0, 3), 10_000, 1e-6, "binary"), "2 values"),
    "binary of few": (lambda: amplify(GRR(1.0, 2), 100, 1e-6, "binary"), "more users"),
    "no theorem": (lambda: amplify(OUE(1.0, 3), 10_000, 1e-6, "thesis"), "no theorem for OUE"),
    "no blanket": (lambda: amplify(SHE(1.0, 3), 10_000, 1e-6), "blanket of SHE is not known"),
    "no blanket of a mean": (lambda: amplify(StochasticRounding(1.0, 10), 10_000, 1e-6), "is not known"),
    "a triangle": (lambda: amplify(SquareWave(1.0, 100, ratio=0.0), 10_000, 1e-6), "square"),
    "AUE on its own": (lambda: Histogram(AUE(0.5, 4, 1_000_000, 1e-9)), "needs a shuffler"),
    "AUE amplified": (lambda: amplify(AUE(0.5, 4, 1_000_000, 1e-9), 1_000_000, 1e-9), "nothing on its own"),
    "AUE of few": (lambda: AUE(0.5, 4, 1_000, 1e-9), r"at least 400 ln\(4 / delta\) / epsilon\^2 = 35,"),
    "AUE beyond 1": (lambda: AUE(1.5, 4, 10**6, 1e-9), "at most 1"),
    "RAP of few": (lambda: rap(10, 1_000, 0.5, 1e-9), "too few users"),
    "rows that are shared": (
        lambda: amplify(RandomProjection(1.0, 8, rows=2), 100, 1e-6),
        "RandomProjection is not known",
    ),
    "a typing error": (lambda: largest_local(lambda e: GRR(e, 2), 100, 0.5, 1e-6, "typo"), "blanket, clones"),  # type: ignore[arg-type]
    "a ratio below 1": (lambda: delta_of(blanket_of(GRR(1.0, 2)), 10, 0.5), "at least 1"),
    "a ratio of nothing": (lambda: delta_of(blanket_of(GRR(1.0, 2)), 10, math.nan), "at least 1"),
    "no mechanism": (lambda: amplify("GRR", 10, 1e-6), "expected a mechanism"),  # type: ignore[arg-type]
    "no values": (lambda: bounds.responses(1.0, 0, 100, 1e-6), "values"),
    "an epsilon beyond doubles": (lambda: rap(10, 1_000, 10**400, 1e-9), "epsilon"),
    "a delta beyond doubles": (lambda: rap(10, 1_000, 0.5, 10**400), "delta"),
    "a delta of almost nothing": (lambda: amplify(GRR(1.0, 2), 10, 1e-300), "delta"),
    "a shuffler without an accountant": (lambda: Histogram(SHE(1.0, 4), shuffler=Shuffler(10, 0.1)), "not known"),
    "AUE with a shuffler": (lambda: Histogram(AUE(0.5, 4, 10**6, 1e-9), shuffler=Shuffler(10, 0.1)), "its own kind"),
    "a number for a shuffler": (lambda: Histogram(GRR(1.0, 4), shuffler=10_000), "said as Shuffler"),  # type: ignore[arg-type]
    "a mechanism instead of a maker": (lambda: largest_local(GRR(1.0, 2), 100, 0.5, 1e-6), "for each local eps"),  # type: ignore[arg-type]
    "a cap below": (lambda: design(1_000, 10, 0.5, 1e-6, 0.1), "cap"),
    "thesis beyond 1": (lambda: design(1_000, 10, 1.5, 1e-6, 4, "thesis"), "at most 1"),
    "another bound": (lambda: design(1_000, 10, 1.5, 1e-6, 4, "luck"), "blanket"),  # type: ignore[arg-type]
    "no epsilon": (lambda: design(1_000, 10, 0.0, 1e-6), "epsilon"),
    "fakes": (lambda: bounds.responses(1.0, 10, 1_000, 1e-6, fakes=-1), "fake"),
    "a shuffler of nobody": (lambda: Shuffler(0, 1e-6), "2 to 10"),
    "a test of budgets": (lambda: shuffled_tree_hist(0.0, Bits(16), 2, 1_000, 1e-6), "epsilon"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_parameters_are_refused_with_a_reason(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises(ParameterError, match=words):
        call()


def test_a_ledger_refuses_what_needs_a_shuffler() -> None:
    with pytest.raises(BudgetError, match="needs a shuffler"):
        Ledger(lifetime=10.0).spend("a task", AUE(0.5, 4, 1_000_000, 1e-9).guarantee)


def test_blanket_of_hadamard_response() -> None:
    found = blanket_of(HadamardResponse(1.0, 8))
    assert (found.share, found.both) == (1 / 2, 1 / 4)
