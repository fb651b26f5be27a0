"""Questions about sets by enumeration: amplification, rounds of the studies, and (eps, delta)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from veil import BLH, GRR, OLH, OUE, SUE, Items, OneOf, Question, Study, StudyRun, Survey
from veil.checks import TabledOLH, enumerable, worst_ratio
from veil.entropy import SeededForExperiments, outcomes
from veil.itemsets import PSFO, SVIM, SVSM, Adap, ItemMining, LDPMiner, Phase, hashed_load
from veil.mechanisms import PureOracle
from veil.privacy import exp_below
from veil.reports.columns import Reports
from veil.view import CountContained, SampleContained, SampleItem, SetSize, View

Channel = dict[bytes, list[Fraction]]
CANDIDATES = ((0,), (1, 2), (0, 2))


def subsets(size: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(size), r) for r in range(size + 1)))


def channel(survey: Survey, held: Sequence[Any]) -> Channel:
    """Each report's exact probability under each held set: the shipped code, enumerated."""
    matrix: Channel = {}
    for i, value in enumerate(held):
        codes = survey.domain.encode([value])
        for report, chance in outcomes(lambda s, codes=codes: survey.reports(codes, s).to_bytes()).items():
            matrix.setdefault(report, [Fraction(0)] * len(held))[i] = chance
    return matrix


def enumerable_question(question: Question) -> Question:
    mechanism = enumerable(question.mechanism)
    return Question(mechanism, question.view)


# -- views -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 3])
def test_sampling_a_candidate_amplifies_grr_exactly(length: int) -> None:
    view = SampleContained(Items(3), CANDIDATES, length)
    inner = GRR(view.inner_epsilon(1.5, disjoint=True), view.domain)
    survey = Survey(Question(inner, view))
    found = worst_ratio(channel(survey, subsets(3)))
    assert found == survey.guarantee.ratio <= exp_below(1.5)
    assert float(found) == pytest.approx(np.exp(1.5), rel=1e-12)  # and nothing is given away
    if length > 1:  # the rival: one inner eps more than the theorem allows
        rival = Survey(Question(GRR(inner.epsilon + 0.01, view.domain), view))
        assert worst_ratio(channel(rival, subsets(3))) > exp_below(1.5)


@pytest.mark.parametrize("kind", [OUE, SUE])
def test_other_oracles_are_not_amplified(kind: type[PureOracle]) -> None:
    asked = PSFO(2, kind, 1.0, 2, ((0,), (1,)))
    assert asked.mechanism.epsilon == 1.0
    assert worst_ratio(channel(asked.survey, subsets(2))) == asked.guarantee.ratio == kind(1.0, 4).guarantee.ratio


def test_counts_and_sizes_keep_the_ratio_of_the_oracle() -> None:
    views: list[View] = [CountContained(Items(3), CANDIDATES, 2), SetSize(Items(3), 2)]
    for view in views:
        survey = Survey(Question(GRR(1.0, view.domain), view))
        assert worst_ratio(channel(survey, subsets(3))) == survey.guarantee.ratio == GRR(1.0, 3).guarantee.ratio


@pytest.mark.parametrize(
    ("asked", "contents"),
    [
        (PSFO(2, GRR, 1.0, 3), [(0,), (1,), (2,)]),
        (PSFO(2, GRR, 1.0, 3, CANDIDATES), CANDIDATES),
        (PSFO(2, SUE, 1.0, 3), [(0,), (1,), (2,)]),
    ],
    ids=["items", "candidates", "unary"],
)
def test_estimates_are_unbiased_up_to_the_padding_length(asked: PSFO, contents: Sequence[tuple[int, ...]]) -> None:
    """One person's expected estimate is 1 for what they hold, 0 for what not, and length / held where that is more."""
    oracle, held = asked.mechanism, subsets(3)
    codes = np.arange(len(contents), dtype=np.uint64)
    expected = [[Fraction(0)] * len(contents) for _ in held]
    for report, chances in channel(asked.survey, held).items():
        columns = Reports.from_bytes(asked.survey.task, asked.survey.layout, report).columns
        supported = oracle.incidence(columns, codes)[0]
        for i, chance in enumerate(chances):
            for j in range(len(contents)):
                expected[i][j] += chance * int(supported[j])
    for i, items in enumerate(held):
        has = [set(content) <= set(items) for content in contents]
        for j in range(len(contents)):
            share = asked.length * (expected[i][j] - oracle.q) / (oracle.p - oracle.q)
            assert share == (Fraction(asked.length, max(asked.length, sum(has))) if has[j] else 0)


# -- whole rounds ------------------------------------------------------------------------------------------------------


MINERS: list[Any] = [
    SVIM(1, 1.0, 4),
    SVIM(2, 0.7, 4),  # not pruned
    LDPMiner(1, 0.5, 3),
    LDPMiner(1, 0.5, 3, improved=False),
    SVSM(2, 1.5, 5),
    SVSM(2, 1.0, 5, items=ItemMining(2, 1.0, 5, prune=Phase(GRR, 2), estimate=Phase(OUE, 1))),
]


def asked_of(study: Study, people: int = 4_000) -> list[tuple[Fraction, Survey]]:
    """The rounds that a study asks when people's sets are these."""
    run, asked, seed = StudyRun(study), [], 0
    while run.round is not None:
        survey, seed = run.round.survey, seed + 1
        asked.append((run.round.people, survey))
        size = survey.domain.universe.size  # type: ignore[attr-defined]  # all of them hold Items
        sets = [[0, 1]] * (people // 2) + [[0, 1, 2]] * (people // 4) + [[size - 1]] * (people // 4) + [[]]
        run.answer(survey.tally(survey.randomize(sets, SeededForExperiments(seed))))
    return asked


@pytest.mark.parametrize("study", MINERS, ids=lambda study: type(study).__name__)
def test_every_round_keeps_its_guarantee_independent_of_the_group(study: Any) -> None:
    rounds = asked_of(study)
    assert sum(share for share, _ in rounds) == 1
    size = study.domain.universe.size
    few = [(), (0, 1), tuple(range(size))]
    held = subsets(size) if isinstance(study, SVIM) else [*few, (0,), (size - 1,)]
    questions = []
    for _, survey in rounds:
        question = enumerable_question(survey.questions[0])
        twin = Survey(question)
        assert twin.guarantee.ratio == survey.guarantee.ratio
        assert worst_ratio(channel(twin, held)) <= exp_below(study.epsilon)
        assert survey.guarantee.within(study.epsilon)
        questions.append(question)
    # One person in all of it: a round drawn by its share, then that round's report, as one survey.
    whole = math.lcm(*(share.denominator for share, _ in rounds))
    branches = [(int(share * whole), question) for (share, _), question in zip(rounds, questions, strict=True)]
    tree = Survey(OneOf(*branches))
    found = channel(tree, few)
    assert worst_ratio(found) <= exp_below(study.epsilon)
    for choice, (share, _) in enumerate(rounds):
        mine = [chances for report, chances in found.items() if report[0] == choice]
        assert [sum(column) for column in zip(*mine, strict=True)] == [share] * len(few)


def test_hashed_rounds_keep_their_guarantee_over_all_functions() -> None:
    view = SampleItem(Items(2), 2)
    for oracle in (OLH(1.0, view.domain), BLH(1.0, view.domain)):
        assert isinstance(enumerable_question(Question(oracle, view)).mechanism, TabledOLH)


# -- (eps, delta) ------------------------------------------------------------------------------------------------------


def excess(found: Channel, ratio: Fraction) -> Fraction:
    """The smallest delta that goes with a ratio: the mass of reports above it, for the worst two values."""
    people = range(len(next(iter(found.values()))))
    gaps = [sum(max(Fraction(0), c[i] - ratio * c[j]) for c in found.values()) for i in people for j in people]
    return Fraction(max(gaps))


@pytest.mark.parametrize("universe", [2, 3])
def test_a_delta_lets_hashing_use_a_larger_epsilon(universe: int) -> None:
    """Theorem 5.5.1 over all hash functions; three items are above the padding length, where its proof is silent."""
    asked = PSFO(2, OLH, 0.5, universe, delta=0.26)
    oracle = asked.mechanism
    assert isinstance(oracle, OLH)
    assert oracle.hash_range == int(np.ceil(np.exp(oracle.epsilon) + 1)) == 4
    assert isinstance(enumerable_question(asked.survey.questions[0]).mechanism, TabledOLH)
    twin = Survey(enumerable_question(asked.survey.questions[0]))
    held = [(), (0, 1), (1,)] if universe == 2 else [(), (0, 1, 2)]
    found = channel(twin, held)
    promise = asked.guarantee
    assert promise == twin.guarantee == asked.survey.guarantee  # four buckets of 2^32 hashes are equal
    assert promise.ratio is not None
    assert promise.ratio <= exp_below(0.5)
    assert 0 < promise.delta <= Fraction(26, 100)
    assert worst_ratio(found) == oracle.guarantee.ratio > exp_below(0.5)  # not eps alone
    assert 0 < excess(found, promise.ratio) <= promise.delta


@pytest.mark.parametrize(
    ("view", "buckets", "held"),
    [
        (SampleItem(Items(2), 2, load=1), 3, [(), (0,), (0, 1)]),
        (SampleItem(Items(3), 3, load=2), 2, [(), (0, 1, 2)]),
        (SampleItem(Items(3), 3, load=2), 3, [(), (0, 1, 2)]),
        (SampleContained(Items(3), CANDIDATES, 2, load=1), 3, [(), (0, 2), (0, 1, 2)]),
    ],
    ids=["one of two", "two of three, in two buckets", "two of three, in three", "candidates"],
)
def test_delta_of_a_load_is_not_too_small(view: SampleItem | SampleContained, buckets: int, held: Any) -> None:
    """The exact delta at the promised ratio, over all hash functions; its rival, no delta at all, is false."""
    survey = Survey(Question(TabledOLH(2.0, view.domain, buckets), view))
    promise, inner = survey.guarantee, survey.questions[0].mechanism.guarantee.ratio
    assert promise.ratio is not None
    assert inner is not None
    assert view.load is not None
    assert promise.ratio == 1 + (inner - 1) * Fraction(view.load, view.length)
    assert promise.delta == math.comb(view.length, view.load + 1) * Fraction(1, buckets**view.load)
    found = channel(survey, held)
    assert worst_ratio(found) == inner > promise.ratio
    assert 0 < excess(found, promise.ratio) <= promise.delta


def test_without_a_delta_hashing_gains_nothing() -> None:
    asked = PSFO(5, OLH, 2.0, 40)
    assert asked.mechanism == OLH(2.0, 45)
    assert asked.guarantee == asked.survey.guarantee
    assert asked.guarantee.delta == 0
    assert hashed_load(2.0, 5, 0.0) == 5


def test_adap_keeps_the_guarantee_of_its_oracle() -> None:
    small, large = PSFO(2, Adap, 1.0, 5), PSFO(2, Adap, 1.0, 500)
    assert isinstance(small.mechanism, GRR)
    assert isinstance(large.mechanism, OLH)
    assert small.guarantee.within(1.0)
    assert large.guarantee.within(1.0)
