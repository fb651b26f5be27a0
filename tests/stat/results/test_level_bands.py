"""Intervals of hierarchies cover on heaped data as they say; the ones that forget something are caught."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Integers, Interval
from veil.entropy import SeededForExperiments
from veil.numeric import Binning, HaarHierarchy, Hierarchy, LevelBands
from veil.post.selection import redraw_counts
from veil.reports.tally import Tally
from veil.results.distribution import Distribution
from veil.survey import SurveyTally

RUNS = 60
# heaps at every tenth number, a large one at 100, and hardly anybody elsewhere
HELD = np.full(256, 4)
HELD[::10] += 600
HELD[100] = 8_000
PEOPLE = int(HELD.sum())
BELOW = np.cumsum(HELD) / PEOPLE


def collected(study: Any, held: NDArray[np.int64], random: np.random.Generator) -> Distribution:
    """What people who hold each code in these numbers give: counts from their exact law, without reports."""
    questions, parts = study.survey.questions, []
    split = random.multinomial(held, np.full(len(questions), 1 / len(questions))).T
    for question, asked in zip(questions, split, strict=True):
        shown = question.view.apply(np.arange(len(held), dtype=np.uint64), None).astype(np.int64)
        mechanism, nodes = question.mechanism, np.bincount(shown, asked).astype(np.int64)
        counts = np.round(redraw_counts(mechanism.noise, nodes, random)).astype(np.int64)
        n = int(nodes.sum())
        parts.append(Tally(mechanism.digest, counts, n, n, n))
    found: Distribution = study.read(SurveyTally(study.survey.task, int(held.sum()), tuple(parts)))
    return found


@cache
def bands_of(epsilon: float) -> list[LevelBands]:
    study, random = Hierarchy(epsilon, Integers(0, 255)), np.random.default_rng(3)
    found = [collected(study, HELD, random).bands for _ in range(RUNS)]
    assert all(isinstance(one, LevelBands) for one in found)
    return found  # type: ignore[return-value]  # checked above


def covered(low: Any, high: Any, truth: Any) -> Any:
    return (low <= truth + 1e-12) & (truth - 1e-12 <= high)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_cover_heaped_integers(epsilon: float) -> None:
    found, numbers, levels = bands_of(epsilon), np.arange(255), np.linspace(0.05, 0.95, 19)
    cdf = np.mean([covered(*one.cdf(numbers), BELOW[:-1]) for one in found])
    assert 0.93 <= cdf <= 0.99
    buckets = np.mean([covered(*one.histogram(), HELD / PEOPLE) for one in found])
    assert 0.93 <= buckets <= 0.99
    quantiles = np.mean([covered(*one.quantile_numbers(levels), np.searchsorted(BELOW, levels)) for one in found])
    assert quantiles >= 0.93  # where a heap holds a quantile there is nothing between always and never
    spread = np.mean([covered(*one.range(95, 105), HELD[95:106].sum() / PEOPLE) for one in found])
    assert spread >= 0.85
    middle = HELD @ np.arange(256) / PEOPLE
    assert np.mean([covered(*one.mean_numbers(), middle) for one in found]) >= 0.85
    deviation = np.sqrt(HELD @ (np.arange(256) - middle) ** 2 / PEOPLE)
    assert np.mean([covered(*one.std(), deviation) for one in found]) >= 0.85
    at_90 = np.mean([covered(*one.cdf(numbers, 0.9), BELOW[:-1]) for one in found])
    assert 0.87 <= at_90 <= 0.95


def test_intervals_without_the_sampling_of_levels_cover_too_rarely() -> None:
    edges = np.arange(1, 256)
    rival, right = [], []
    for one in bands_of(6.0):
        sums, squares, held, held_squares = np.moveaxis(one._answers.of_ranges(0 * edges, edges)[:, 1:], -1, 0)
        alone, crossed, own, mixed = one.laws.T
        noise = alone * squares + crossed * sums**2 + own * held_squares + mixed * held * sums
        off = np.abs(np.cumsum(one.unbiased)[:-1] - BELOW[:-1])
        rival.append(off <= 1.96 * np.sqrt((noise / one.effective).sum(axis=-1)))
        right.append(off <= 1.96 * one.stderr(0 * edges, edges))
    assert np.mean(rival) < 0.7
    assert 0.92 <= np.mean(right) <= 0.98


def test_intervals_around_projected_masses_cover_too_rarely() -> None:
    """No negative masses: what would be below 0 elsewhere is missing at the heap."""
    found = bands_of(1.0)
    stderr = np.array([one.stderr([100], [101])[0] for one in found])
    projected, unbiased = (
        np.array([getattr(one, name)[100] - HELD[100] / PEOPLE for one in found]) / stderr
        for name in ("masses", "unbiased")
    )
    assert abs(unbiased.mean()) * np.sqrt(RUNS) < 3
    assert projected.mean() * np.sqrt(RUNS) < -4


def test_a_heap_within_a_bucket_is_covered_wherever_it_lies() -> None:
    """People at 0.35, in a bucket from 0.3 to 0.4: the fraction up to 0.349 is not that up to the bucket's end."""
    study, random = Hierarchy(4.0, Interval(0, 1), buckets=10), np.random.default_rng(5)
    held = np.full(10, 1_000)
    held[3] = 11_000
    found = [collected(study, held, random) for _ in range(RUNS)]
    before = np.mean([covered(*one.bands.cdf(0.349), 0.15) for one in found if one.bands])
    behind = np.mean([covered(*one.bands.cdf(0.351), 0.7) for one in found if one.bands])
    assert min(before, behind) >= 0.88  # one-sided, each
    assert np.mean([covered(one.cdf(0.349) - 0.02, one.cdf(0.349) + 0.02, 0.15) for one in found]) == 0.0
    assert all(one.bands.quantile(0.5) == pytest.approx((0.3, 0.4)) for one in found if one.bands)


@pytest.mark.parametrize("bins", [4, 32])
def test_intervals_of_bins_cover(bins: int) -> None:
    study, random = Binning(2.0, Integers(0, 255), bins=bins), np.random.default_rng(7)
    held = np.add.reduceat(HELD, study._starts[:-1])
    found = [collected(study, held, random) for _ in range(RUNS)]
    inside = np.mean([covered(*one.bands.cdf(np.arange(255)), BELOW[:-1]) for one in found if one.bands])
    assert inside >= 0.93
    ends = study._starts[1:-1] - 1
    at_ends = np.mean([covered(*one.bands.cdf(ends), BELOW[ends]) for one in found if one.bands])
    assert 0.9 <= at_ends <= 0.99


def test_haar_covers_heaped_integers() -> None:
    study = HaarHierarchy(2.0, Integers(0, 255))
    people = np.repeat(np.arange(256), HELD)
    found = [
        study.read(study.survey.tally(study.survey.randomize(people, SeededForExperiments(seed)))).bands
        for seed in range(20)
    ]
    cdf = np.mean([covered(*one.cdf(np.arange(255)), BELOW[:-1]) for one in found if one])
    assert 0.9 <= cdf <= 0.99


@pytest.mark.acceptance
def test_quantiles_beside_a_gap_are_covered_and_not_by_sorted_bounds() -> None:
    """Two humps far apart: on the plateau between them the smallest of many noisy bounds is far too small."""
    held = np.zeros(256, dtype=np.int64)
    held[26:52], held[180:206] = 175, 210
    study, random, wanted = Hierarchy(1.0, Integers(0, 255)), np.random.default_rng(4), 0.45
    truth = int(np.searchsorted(np.cumsum(held) / held.sum(), wanted))
    hits, rival = [], []
    for _ in range(60):
        bands = collected(study, held, random).bands
        assert isinstance(bands, LevelBands)
        low, high = bands.quantile(wanted)
        hits.append(low <= truth <= high)
        lows, highs = (np.sort([bands.cdf(x)[side] for x in range(256)]) for side in (0, 1))
        rival.append(np.searchsorted(highs, wanted) <= truth <= np.searchsorted(lows, wanted, side="right"))
    assert np.mean(hits) >= 0.93
    assert np.mean(rival) < 0.9
