"""The core is enough: toy versions of later protocols, each in under 40 lines on it, and each one works."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from veil import (
    GRR,
    OLH,
    AllOf,
    Bits,
    Categories,
    Items,
    OneOf,
    Question,
    Record,
    Round,
    Study,
    StudyRun,
    Survey,
    simulate,
)
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import MismatchError, ParameterError
from veil.metrics import f1
from veil.privacy import Guarantee, split_epsilon
from veil.study import Rounds
from veil.survey import SurveyTally
from veil.view import Ancestor, Project, SampleItem, Segment

MOST_LINES = 40


# -- SPM: segment pairs for heavy hitters (thesis 4.1.1) ---------------------------------------------------------------


def segment_pairs(values: list[int], bits: Bits, segments: int, epsilon: float, k: int) -> list[int]:
    """AllOf(whole value, OneOf over pairs of segments (AllOf(a, b))), each third of the budget."""
    step = bits.bits // segments
    view = [Segment(bits, i * step, (i + 1) * step) for i in range(segments)]
    third = split_epsilon(epsilon, 3)
    part = [Question(GRR(third, v.domain), v) for v in view]
    pairs = list(itertools.combinations(range(segments), 2))
    whole = Question(OLH(third, bits))
    survey = Survey(AllOf(whole, OneOf(*((1, AllOf(part[a], part[b])) for a, b in pairs))))
    assert survey.guarantee.within(epsilon)
    reports = survey.randomize(values, SeededForExperiments(1))
    frequent: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for i, pair in enumerate(pairs):
        left, right = part[pair[0]].pure, part[pair[1]].pure
        counts = survey.joint(reports, {2 * i + 1: range(2**step), 2 * i + 2: range(2**step)})
        answered = counts[0, 0].sum()
        score = np.einsum("abst,s,t->ab", counts / answered, *(weights(o) for o in (left, right)))
        best = np.argsort(-score, axis=None)[: 2 * k]
        frequent[pair] = {(int(a), int(b)) for a, b in zip(*np.unravel_index(best, score.shape), strict=True)}
    candidates = [
        sum(s << (step * (segments - 1 - i)) for i, s in enumerate(parts))
        for parts in itertools.product(range(2**step), repeat=segments)
        if all((parts[a], parts[b]) in frequent[a, b] for a, b in pairs)
    ]
    tally = whole.pure.tally_columns(next(survey.parts(reports))[2], bits.encode(candidates))
    return [row.value for row in whole.pure.estimate(tally).top(k)]


def weights(oracle: Any) -> list[float]:
    """What a report adds to an unbiased estimate: without support, with support."""
    p, q = float(oracle.p), float(oracle.q)
    return [-q / (p - q), (1 - q) / (p - q)]


def test_segment_pairs_find_the_heavy_hitters() -> None:
    rng = np.random.default_rng(0)
    heavy = [int(v) for v in rng.choice(2**9, 4, replace=False)]
    values = np.concatenate([np.repeat(heavy, 20_000), rng.integers(0, 2**9, 20_000)])
    assert f1(segment_pairs([int(v) for v in values], Bits(9), 3, 6.0, 4), heavy) == 1.0


# -- SC: split and conjunction for SQL (thesis 7.4.3) ------------------------------------------------------------------


def conjunction(table: dict[str, list[int]], record: Record, epsilon: float, box: dict[str, list[int]], w: Any) -> Any:
    """SUM(w) over the rows inside a box: one answer an attribute, then one product of inverse channels a person."""
    half = split_epsilon(epsilon, 2)
    survey = Survey(AllOf(*(Question(GRR(half, part), Project(record, (name,))) for name, part in record.attributes)))
    assert survey.guarantee.within(epsilon)
    reports = survey.randomize(table, SeededForExperiments(3))
    counts = survey.joint(reports, dict(enumerate(box.values())), weights=w)
    inverse = [weights(question.mechanism) for question in survey.questions]
    return np.einsum("abst,s,t->", counts, *inverse)


def test_conjunction_estimates_a_weighted_box() -> None:
    rng = np.random.default_rng(1)
    n = 60_000
    x = rng.integers(0, 4, n)
    y = np.where(rng.random(n) < 0.7, x, rng.integers(0, 4, n))
    pay = rng.integers(1, 10, n)
    truth = pay[np.isin(x, [0, 1]) & (y == 1)].sum()
    table = {"x": x.tolist(), "y": y.tolist()}
    found = conjunction(table, Record.of(x=4, y=4), 4.0, {"x": [0, 1], "y": [1]}, pay)
    independent = pay.sum() * np.mean(np.isin(x, [0, 1])) * np.mean(y == 1)
    assert abs(found - truth) < 0.05 * truth
    assert abs(independent - truth) > 0.2 * truth  # the rival that ignores the joint distribution


# -- PSFO: padding and sampling with GRR (thesis 5.2) ------------------------------------------------------------------


def padding_and_sampling(sets: list[list[int]], universe: int, length: int, epsilon: float) -> Any:
    """Sample one item of the padded set; GRR may use the amplified epsilon ln(l (e^eps - 1) + 1)."""
    view = SampleItem(Items(universe), length)
    survey = Survey(Question(GRR(view.inner_epsilon(epsilon, disjoint=True), view.domain), view))
    assert survey.guarantee.within(epsilon)
    assert survey.guarantee.epsilon > epsilon * (1 - 1e-12)
    return simulate(survey, sets, seed=5)[0]


def test_padding_and_sampling_counts_items() -> None:
    sets = [[0, 1]] * 30_000 + [[1]] * 20_000 + [[]] * 10_000 + [[2, 3, 1]] * 10_000
    estimate = padding_and_sampling(sets, 5, 3, 2.0)
    truth = np.array([30_000, 60_000, 10_000, 10_000, 0]) / 70_000
    assert np.all(np.abs(estimate.frequencies[:5] - truth) < 5 * estimate.stderr[:5])
    assert np.all(estimate.stderr[:5] < 0.03)


# -- HI: hierarchical intervals (thesis 7.3) ---------------------------------------------------------------------------


def hierarchical_range(values: Any, domain: Categories, branching: int, epsilon: float, lo: int, hi: int) -> Any:
    """The share of [lo, hi): every level answered with its part of the budget, a range from few large nodes."""
    height = Ancestor(domain, branching, 1).height
    views = [Ancestor(domain, branching, level) for level in range(1, height + 1)]
    survey = Survey(AllOf(*(Question(OLH(split_epsilon(epsilon, height), v.domain), v) for v in views)))
    assert survey.guarantee.within(epsilon)
    levels = simulate(survey, values, seed=7)
    total, start = 0.0, lo
    while start < hi:  # the largest aligned node that fits
        level = next(i for i in range(height) if _fits(start, hi, branching ** (height - 1 - i)))
        size = branching ** (height - 1 - level)
        total += levels[level].frequencies[start // size]
        start += size
    return total


def _fits(start: int, hi: int, size: int) -> bool:
    return start % size == 0 and start + size <= hi


def test_hierarchy_answers_a_range() -> None:
    values = np.clip(np.random.default_rng(2).normal(40, 12, 80_000), 0, 63).astype(int)
    truth = float(np.mean((values >= 16) & (values < 53)))
    assert abs(hierarchical_range(values, Categories.range(64), 4, 6.0, 16, 53) - truth) < 0.03


# -- a study of two rounds: the first half finds the frequent values, the second half counts them ----------------------


@dataclass(frozen=True)
class TwoSteps(Study):
    """Prune with half of the people, then ask the others about what is left."""

    size: int
    k: int
    epsilon: float
    kind: ClassVar[str] = "two-steps"

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.of(self.epsilon)

    def rounds(self) -> Rounds:
        survey = Survey(OLH(self.epsilon, self.size))
        collected = yield Round(survey, Fraction(1, 2))
        found = survey.estimate_question(collected.tally(), 0, collected.population)
        kept = sorted(row.value for row in found.top(self.k))
        collected = yield Round(survey, Fraction(1, 2))
        tally = collected.tally(candidates={0: kept})
        return survey.estimate_question(tally, 0, collected.population)


def people(first: int, count: int) -> Any:
    return np.repeat([3, 11, 500, 7], [count // 2, count // 4, count // 8, count - 7 * (count // 8)])[first::2]


def collected(survey: Survey, values: Any, seed: int) -> SurveyTally:
    return survey.tally(survey.randomize(values, SeededForExperiments(seed)))


def test_a_study_is_simulated() -> None:
    values = np.random.default_rng(0).permutation(np.repeat([3, 11, 500, 7], [20_000, 10_000, 8_000, 6_000]))
    found = simulate(TwoSteps(1000, 4, 2.0), values, seed=1)
    assert [row.value for row in found.top(4)] == [3, 11, 500, 7]
    assert found.population == len(values)


def test_a_study_goes_on_after_a_restart(tmp_path: Path) -> None:
    study = TwoSteps(1000, 3, 2.0)
    run = StudyRun(study, tmp_path)
    assert run.round is not None
    run.answer(collected(run.round.survey, people(0, 40_000), 1))
    second = run.round
    del run  # the process dies here

    again = StudyRun(study, tmp_path)
    assert again.finished == 1
    assert again.round == second
    assert again.round is not None
    asked = again.round.survey
    again.answer(MemoryCollection(asked, asked.randomize(people(1, 40_000), SeededForExperiments(2))))
    assert again.round is None
    assert [row.value for row in again.result.top(2)] == [3, 11]
    assert StudyRun(study, tmp_path).result.top(3) == again.result.top(3)


def test_a_study_refuses_foreign_answers_and_impure_replays(tmp_path: Path) -> None:
    run = StudyRun(TwoSteps(1000, 3, 2.0), tmp_path)
    with pytest.raises(MismatchError):
        run.answer(collected(Survey(OLH(2.0, 999)), [1, 2], 1))
    assert list(tmp_path.iterdir()) == []
    assert run.round is not None
    run.answer(collected(run.round.survey, people(0, 4_000), 1))
    with pytest.raises(MismatchError):  # another study in the same folder, or one that changed its mind
        StudyRun(TwoSteps(1001, 3, 2.0), tmp_path)


def test_a_study_asks_everybody_once() -> None:
    @dataclass(frozen=True)
    class Greedy(Study):
        kind: ClassVar[str] = "greedy"

        @property
        def guarantee(self) -> Guarantee:
            return Guarantee.of(1.0)

        def rounds(self) -> Rounds:
            yield Round(Survey(GRR(1.0, 2)), Fraction(2, 3))
            yield Round(Survey(GRR(1.0, 2)), Fraction(2, 3))

    with pytest.raises(ParameterError, match="once"):
        simulate(Greedy(), [0, 1] * 50)


@pytest.mark.parametrize(
    "toy",
    [segment_pairs, conjunction, padding_and_sampling, hierarchical_range, TwoSteps],
    ids=lambda toy: toy.__name__,
)
def test_each_toy_is_short(toy: Callable[..., Any]) -> None:
    assert len(inspect.getsource(toy).splitlines()) < MOST_LINES
