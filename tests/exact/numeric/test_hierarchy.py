"""Hierarchies without chance: the ratio by enumeration, unbiased over every outcome, least squares against a solver."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Integers, Interval
from veil.checks import worst_ratio
from veil.entropy import SeededForExperiments, Source, outcomes
from veil.numeric.distributions import Binning
from veil.numeric.hierarchy import HaarHierarchy, Hierarchy, LevelStudy
from veil.privacy import exp_below
from veil.reports.columns import Reports
from veil.survey import SurveyTally
from veil.tree import Tree, from_differences

Floats = NDArray[np.float64]
BUCKETS = (2, 5, 17, 100, 1000)

SMALL = [
    Hierarchy(1.0, 2),
    Hierarchy(0.5, 5, branching=2),
    Hierarchy(1.0, Interval(0.0, 1.0), buckets=6, branching=3),
    Hierarchy(0.1, 4),
    HaarHierarchy(0.5, 2),
    HaarHierarchy(1.0, 5),
    HaarHierarchy(2.0, Interval(0.0, 1.0), buckets=6),
]


@pytest.mark.parametrize("protocol", [*SMALL, Binning(1.0, 6, bins=3)], ids=repr)
def test_the_ratio_of_the_whole_survey(protocol: LevelStudy | Binning) -> None:
    """The level that was asked is part of the report."""
    survey = protocol.survey
    size = survey.domain.size
    channel: dict[bytes, list[Fraction]] = {}
    for code in range(size):

        def report(source: Source, code: int = code) -> bytes:
            return survey.reports(np.array([code], dtype=np.uint64), source).to_bytes()

        for sent, chance in outcomes(report).items():
            channel.setdefault(sent, [Fraction(0)] * size)[code] = chance
    assert all(sum(chances[code] for chances in channel.values()) == 1 for code in range(size))
    assert worst_ratio(channel) <= exp_below(protocol.epsilon)
    assert survey.guarantee.within(protocol.epsilon)
    assert float(survey.guarantee.ratio or 0) > 0.999 * float(exp_below(protocol.epsilon))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 25.0])
@pytest.mark.parametrize("kind", [Hierarchy, HaarHierarchy, Binning])
def test_the_guarantee_at_full_size(kind: Any, epsilon: float) -> None:
    assert kind(epsilon, Interval(0.0, 1.0)).survey.guarantee.within(epsilon)


# -- bias: every outcome of one person a level -------------------------------------------------------------------------


def every_outcome(protocol: LevelStudy, code: int) -> Iterator[tuple[Fraction, SurveyTally]]:
    """One person a level, all of them holding the same value: each possible tally and its chance."""
    survey, none = protocol.survey, SeededForExperiments(0)
    answers = []
    for question in survey.questions:
        shown = int(question.view.apply(np.array([code], dtype=np.uint64), none)[0])
        asked = question.mechanism
        rows = []
        for report, chances in asked.channel().items():
            columns = Reports.from_bytes(asked.digest, asked.layout, report).columns
            rows.append((chances[shown], asked.tally_columns(columns, None)))
        answers.append(rows)
    for combination in itertools.product(*answers):
        chance = Fraction(1)
        for part, _ in combination:
            chance *= part
        yield chance, SurveyTally(survey.task, len(answers), tuple(tally for _, tally in combination))


def expected_masses(protocol: LevelStudy, code: int, **options: Any) -> Floats:
    mean = np.zeros(protocol.buckets)
    for chance, tally in every_outcome(protocol, code):
        mean += float(chance) * replace(protocol, **options).read(tally).masses
    return mean


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_linear_estimates_are_unbiased(protocol: LevelStudy) -> None:
    free = isinstance(protocol, Hierarchy)
    for code in range(protocol.buckets):
        held = np.eye(protocol.buckets)[code]
        for options in ({"method": "consistent"}, {"method": "consistent", "total": 1.0}) if free else ({},):
            assert expected_masses(protocol, code, **options) == pytest.approx(held, abs=1e-9)
    # the rival: without negative masses nobody can be unbiased about what nobody holds
    if free:
        assert np.abs(expected_masses(protocol, 0, method="exact") - np.eye(protocol.buckets)[0]).max() > 0.05


# -- least squares -----------------------------------------------------------------------------------------------------


def levels_of(tree: Tree) -> list[Floats]:
    """For each level, the matrix from leaves to nodes."""
    return [
        (np.arange(tree.leaves) // tree.width(level) == np.arange(size)[:, None]).astype(float)
        for level, size in enumerate(tree.sizes)
    ]


def some_tally(protocol: LevelStudy, seed: int = 1, people: int = 3000) -> SurveyTally:
    codes = np.random.default_rng(seed).binomial(protocol.buckets - 1, 0.3, people).astype(np.uint64)
    return protocol.survey.tally(protocol.survey.reports(codes, SeededForExperiments(seed)))


@pytest.mark.parametrize("branching", [2, 3, 4, 5])
@pytest.mark.parametrize("buckets", [2, 5, 17, 100])
def test_consistent_is_weighted_least_squares(buckets: int, branching: int) -> None:
    protocol = Hierarchy(0.8, buckets, branching=branching)
    tally = some_tally(protocol)
    found = protocol.levels(tally)
    rows, answers, weights = [], [], []
    for matrix, level in zip(levels_of(protocol.tree)[1:], found, strict=True):
        variance = level.noise.variance(0.0) / level.n
        rows.append(matrix / np.sqrt(variance))
        answers.append(level.frequencies / np.sqrt(variance))
        weights.append(variance)
    design, wanted = np.concatenate(rows), np.concatenate(answers)
    free = np.linalg.lstsq(design, wanted, rcond=None)[0]
    assert replace(protocol, method="consistent").read(tally).masses == pytest.approx(free, abs=1e-9)
    # with a total: what is missing is shared out along the inverse of the normal matrix
    direction = np.linalg.solve(design.T @ design, np.ones(buckets))
    fixed = free + direction * (1 - free.sum()) / direction.sum()
    assert replace(protocol, method="consistent", total=1.0).read(tally).masses == pytest.approx(fixed, abs=1e-9)
    if len(set(weights)) > 1:  # the rival: all levels alike
        plain = np.linalg.lstsq(
            np.concatenate(levels_of(protocol.tree)[1:]), np.concatenate([level.frequencies for level in found])
        )[0]
        assert np.abs(plain - free).max() > 1e-6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("branching", [2, 3, 4, 5])
@pytest.mark.parametrize("buckets", BUCKETS)
def test_exact_and_admm_solve_the_same_problem(buckets: int, branching: int, weighted: bool) -> None:
    protocol = Hierarchy(1.0, buckets, branching=branching)
    tally = some_tally(protocol)
    exact = replace(protocol, weighted=weighted).read(tally)
    paper = replace(protocol, method="admm", weighted=weighted).read(tally)
    for made in (exact, paper):
        assert made.masses.min() >= 0
        assert made.masses.sum() == pytest.approx(1, abs=1e-12)
        assert made.proper
    assert paper.fit is not None
    assert paper.fit.converged
    assert exact.masses == pytest.approx(paper.masses, abs=1e-7)
    found = protocol.levels(tally)
    scale = [1.0 if not weighted else 1 / (level.noise.variance(0.0) / level.n) for level in found]

    def loss(masses: Floats) -> float:
        nodes = protocol.tree.sums(masses)[1:]
        return sum(
            w * float(((level.frequencies - x) ** 2).sum()) for w, level, x in zip(scale, found, nodes, strict=True)
        )

    best = loss(exact.masses)
    for other in np.random.default_rng(3).dirichlet(np.ones(buckets), 20):  # no way to move makes it smaller
        for step in (1e-3, 1.0):
            assert loss(exact.masses + step * (other - exact.masses)) >= best * (1 - 1e-12)


def test_weights_of_levels_change_the_estimate() -> None:
    protocol = Hierarchy(1.0, 1000)
    tally = some_tally(protocol)
    assert np.abs(protocol.read(tally).masses - replace(protocol, weighted=True).read(tally).masses).max() > 1e-6


# -- Haar --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buckets", [*BUCKETS, 3, 64])
def test_exact_coefficients_give_the_exact_leaves(buckets: int) -> None:
    tree = Tree(buckets, 2)
    leaves = np.random.default_rng(buckets).dirichlet(np.ones(buckets))
    differences = []
    for nodes in tree.sums(leaves)[1:]:
        even = np.append(nodes, np.zeros(len(nodes) % 2))
        differences.append(even[::2] - even[1::2])
    assert from_differences(tree, differences) == pytest.approx(leaves, abs=1e-14)
    wrong = [-gaps for gaps in differences]  # the rival: sides swapped
    assert np.abs(from_differences(tree, wrong) - leaves).max() > 0.1 / buckets


def test_the_coefficient_of_a_lone_child_has_no_effect() -> None:
    tree = Tree(5, 2)
    gaps = [np.array([0.2]), np.array([0.1, 0.7]), np.array([0.0, 0.0, 0.4])]
    other = [gaps[0], np.array([0.1, -3.0]), np.array([0.0, 0.0, 9.0])]
    assert from_differences(tree, gaps).tolist() == from_differences(tree, other).tolist()


def test_the_estimate_at_a_large_epsilon_is_the_truth() -> None:
    """All people hold one value: which of them is asked about what does not matter either."""
    for method in ("exact", "admm", "consistent"):
        protocol = Hierarchy(40.0, Integers(1, 13))
        tally = protocol.survey.tally(protocol.survey.randomize([4] * 500, SeededForExperiments(1)))
        assert replace(protocol, method=method).read(tally).masses == pytest.approx(np.eye(13)[3], abs=1e-9)
