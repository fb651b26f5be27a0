"""Variances of hierarchies' intervals are exact: by dense matrices, and by enumerating all that may be reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Integers
from veil.mechanisms import GRR, HaarResponse
from veil.numeric import Binning, HaarHierarchy, Hierarchy, LevelBands
from veil.reports.tally import Tally
from veil.survey import SurveyTally
from veil.tools.numbers import two_sided
from veil.tree import Levels, Tree, TreeAnswers, consistent, from_differences

Floats = NDArray[np.float64]

SHAPES = [(2, 2), (3, 2), (8, 2), (11, 2), (23, 3), (16, 4), (17, 4), (61, 4), (64, 4), (7, 16), (100, 16)]


def all_ranges(leaves: int) -> tuple[Any, Any]:
    los, his = zip(*((lo, hi) for lo in range(leaves + 1) for hi in range(lo, leaves + 1)), strict=True)
    return np.array(los), np.array(his)


def sums_of(coefficients: Floats, masses: Floats) -> list[float]:
    a = coefficients
    return [a.sum(), (a**2).sum(), (masses * a).sum(), (masses * a**2).sum()]


@pytest.mark.parametrize(("leaves", "branching"), SHAPES)
def test_weights_of_levels_in_ranges_equal_the_linear_map(leaves: int, branching: int) -> None:
    tree, random = Tree(leaves, branching), np.random.default_rng(leaves)
    leaf_masses, variances = random.dirichlet(np.ones(leaves)), random.uniform(0.5, 3.0, tree.height)
    levels = [np.inf, *variances]
    unit = np.eye(tree.nodes)
    columns = [consistent(tree, np.split(row, tree.offsets[1:-1]), levels, total=0.0)[-1] for row in unit]
    answers, masses = TreeAnswers(tree, leaf_masses, variances), np.concatenate(tree.sums(leaf_masses))
    los, his = all_ranges(leaves)
    weights = random.normal(size=leaves)
    inside = [(np.arange(leaves) >= lo) & (np.arange(leaves) < hi) for lo, hi in zip(los, his, strict=True)]
    cases = [*zip(answers.of_ranges(los, his), inside, strict=True)][::7]
    for found, weight in [*cases, (answers.of_leaves(weights), weights)]:
        a = np.array([(weight * column).sum() for column in columns])
        for level in range(1, tree.height + 1):
            nodes = slice(*tree.offsets[level : level + 2])
            assert found[level] == pytest.approx(sums_of(a[nodes], masses[nodes]), abs=1e-12)
    assert answers.of_leaves(inside[leaves // 2].astype(float)) == pytest.approx(
        answers.of_ranges(los, his)[leaves // 2], abs=1e-12
    )


@pytest.mark.parametrize("leaves", [2, 3, 5, 8, 11])
def test_weights_of_pairs_in_ranges_equal_the_linear_map(leaves: int) -> None:
    tree, leaf_masses = Tree(leaves, 2), np.random.default_rng(leaves).dirichlet(np.ones(leaves))
    pairs = [-(-size // 2) for size in tree.sizes[1:]]
    answers, masses = TreeAnswers(tree, leaf_masses, None), tree.sums(leaf_masses)

    def of(level: int, pair: int) -> Floats:
        found: Levels = [np.zeros(size) for size in pairs]
        found[level - 1][pair] = 1.0
        return from_differences(tree, found, 0.0)

    los, his = all_ranges(leaves)
    for lo, hi, found in zip(los, his, answers.of_ranges(los, his), strict=True):
        inside = np.zeros(leaves)
        inside[lo:hi] = 1.0
        assert answers.of_leaves(inside) == pytest.approx(found, abs=1e-12)
        for level in range(1, tree.height + 1):
            w = np.array([of(level, pair)[lo:hi].sum() for pair in range(pairs[level - 1])])
            sides = np.append(masses[level], 0.0)[: 2 * len(w)].reshape(-1, 2)
            expected = [0.0, (w**2).sum(), (w * (sides[:, 0] - sides[:, 1])).sum(), (w**2 * sides.sum(axis=1)).sum()]
            assert found[level] == pytest.approx(expected, abs=1e-12)


# -- all that may be reported -----------------------------------------------------------------------------------------


def answers_of(mechanism: Any, held: int) -> list[tuple[float, NDArray[np.int64]]]:
    """What one person may add to a tally, with its probability."""
    if isinstance(mechanism, GRR):
        size = mechanism.domain.size
        return [
            (float(mechanism.p if said == held else mechanism.q), np.eye(size, dtype=int)[said]) for said in range(size)
        ]
    assert isinstance(mechanism, HaarResponse)
    found = []
    for row in range(mechanism.order):
        sign = (-1) ** ((row & held >> 1).bit_count() + (held & 1))
        for kept in (True, False):
            chance = float(mechanism.p if kept else 1 - mechanism.p) / mechanism.order
            found.append((chance, np.eye(mechanism.order, dtype=int)[row] * (sign if kept else -sign)))
    return found


def everything(study: Any, people: list[int], in_level: int) -> Iterator[tuple[float, SurveyTally]]:
    """All tallies that these people may give, where each level asks as many of them, with their probabilities."""
    questions = study.survey.questions
    splits = list(_splits(list(range(len(people))), len(questions), in_level))
    for split in splits:
        asked = [
            (q, int(questions[q].view.apply(np.array([people[i]], np.uint64), None)[0]))
            for q in range(len(split))
            for i in split[q]
        ]
        for said in product(*(answers_of(questions[q].mechanism, code) for q, code in asked)):
            parts = []
            for q, question in enumerate(questions):
                counts = sum(added for (where, _), (_, added) in zip(asked, said, strict=True) if where == q)
                parts.append(Tally(question.mechanism.digest, np.array(counts, np.int64), in_level, in_level, in_level))
            chance = prod(chance for chance, _ in said) / len(splits)
            yield chance, SurveyTally(study.survey.task, len(people), tuple(parts))


def _splits(people: list[int], levels: int, size: int) -> Iterator[list[tuple[int, ...]]]:
    if levels == 1:
        yield [tuple(people)]
        return
    for first in combinations(people, size):
        for rest in _splits([one for one in people if one not in first], levels - 1, size):
            yield [first, *rest]


CASES: list[tuple[Any, list[int], int]] = [
    (Hierarchy(2.0, Integers(0, 3), branching=2), [0, 0, 1, 3], 2),
    (Hierarchy(1.0, Integers(0, 2), branching=2, method="consistent"), [0, 2, 2, 2], 2),
    (HaarHierarchy(1.5, Integers(0, 3)), [0, 1, 1, 3], 2),
    (HaarHierarchy(1.0, Integers(0, 2)), [0, 2, 2, 1], 2),
    (Binning(1.0, Integers(0, 2), bins=3), [0, 2, 2], 3),
]


@pytest.mark.parametrize(("study", "people", "in_level"), CASES)
def test_standard_errors_are_exact(study: Any, people: list[int], in_level: int) -> None:
    outcomes = list(everything(study, people, in_level))
    found = [study.read(tally).bands for _, tally in outcomes]
    assert isinstance(found[0], LevelBands)
    chances = np.array([chance for chance, _ in outcomes])
    assert chances.sum() == pytest.approx(1.0)
    leaves = len(found[0].masses)
    truth = np.bincount(people, minlength=leaves) / len(people)
    bands = replace(found[0], likely=truth)
    below = np.array([[*np.cumsum(one.unbiased)] for one in found])
    assert chances @ below == pytest.approx(np.cumsum(truth), abs=1e-12)  # without bias
    los, his = all_ranges(leaves)
    masses = np.pad(below, ((0, 0), (1, 0)))[:, his] - np.pad(below, ((0, 0), (1, 0)))[:, los]
    exact = chances @ masses**2 - (chances @ masses) ** 2
    assert bands.stderr(los, his) ** 2 == pytest.approx(exact, abs=1e-12)
    if len(bands.laws) > 1:
        # rivals: levels that ask everybody, and levels whose people have nothing to do with each other
        everybody = replace(bands, effective=bands.effective * 1e9, laws=bands.laws * 1e9, population=1e30)
        strangers = replace(bands, population=1e30)
        for rival in (everybody, strangers):
            assert np.abs(rival.stderr(los, his) ** 2 - exact).max() > 0.02


def test_a_mean_has_its_exact_error() -> None:
    study, people, in_level = CASES[0]
    outcomes = list(everything(study, people, in_level))
    found = [study.read(tally).bands for _, tally in outcomes]
    chances, means = (
        np.array([chance for chance, _ in outcomes]),
        np.array([one.unbiased @ np.arange(4) for one in found]),
    )
    middle = found[int(np.abs(means - 1.5).argmin())]  # far from where an interval is cut
    low, high = replace(middle, masses=middle.unbiased, likely=np.bincount(people) / 4).mean_numbers(0.1)
    stderr = np.sqrt(chances @ means**2 - (chances @ means) ** 2)
    assert (high - low) / 2 / two_sided(0.1) == pytest.approx(stderr, rel=1e-9)
