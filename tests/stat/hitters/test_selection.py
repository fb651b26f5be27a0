"""Selected results of searches on flat data, where most values found are noise: significance and intervals hold.

The rival corrects for the k values found only, not for all candidates that were tested; it fails.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from veil import Bits, StudyRun, Text
from veil.engines import DrawnCollection
from veil.hitters import PEM, HeavyHitters, MultipleChannel, PrefixSearch, PrivTrie, SegmentPairs, tree_hist

PEOPLE, NAMES, RUNS = 200_000, 20_000, 10


@cache
def flat_names() -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Different names of six letters, the one of rank r with weight r^-0.7: as flat as surnames are."""
    rng = np.random.default_rng(13)
    codes = np.unique(rng.integers(97, 123, (NAMES + 100, 6), dtype=np.uint8), axis=0)
    weights = np.arange(1, NAMES + 1) ** -0.7
    return rng.permutation(codes)[:NAMES], weights / weights.sum()


@cache
def searched(test: str | None) -> list[tuple[HeavyHitters, NDArray[np.float64]]]:
    """What PEM finds in each run, and how frequent that truly is."""
    codes, weights = flat_names()
    made = []
    for run in range(RUNS):
        counts = np.random.default_rng([13, run]).multinomial(PEOPLE, weights)
        search = PEM(2.0, Text(6), 16, test=test)  # type: ignore[arg-type]
        found = search.read(DrawnCollection.of_codes(search.survey, codes, counts, [13, run]))
        shares = dict(zip((row.tobytes() for row in codes), counts / PEOPLE, strict=True))
        assert found.estimates.candidates is not None
        truth = [shares.get(row.tobytes(), 0.0) for row in found.estimates.candidates]
        made.append((found, np.array(truth)))
    return made


def false_runs(runs: list[tuple[HeavyHitters, NDArray[np.float64]]]) -> int:
    """In how many runs something is called significant that nobody holds."""
    return sum(bool((found.significant(0.05) & (truth == 0)).any()) for found, truth in runs)


def cover(bounds: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean())


@pytest.mark.parametrize("test", [None, "people"])
def test_absent_values_are_not_significant(test: str | None) -> None:
    runs = searched(test)
    assert sum(int((truth == 0).sum()) for _, truth in runs) > 0.9 * 16 * RUNS  # nearly all of it is noise
    assert false_runs(runs) <= 1
    assert sum(int(found.significant(0.05).sum()) for found, _ in runs) > 0  # and yet it says something


def test_correction_for_the_values_found_only_fails() -> None:
    rival = [
        (replace(found, estimates=replace(found.estimates, tested=len(found))), truth)
        for found, truth in searched(None)
    ]
    assert false_runs(rival) == RUNS
    # the last round alone was tried with tens of thousands of candidates; a search answers for all rounds
    assert all(found.tested == sum(step.candidates for step in found.history) for found, _ in searched(None))
    assert all(found.tested > 100_000 for found, _ in searched(None))


@pytest.mark.parametrize("test", [None, "people"])
def test_selected_intervals_cover_and_plain_ones_do_not(test: str | None) -> None:
    runs = searched(test)
    assert np.mean([cover(found.selected_interval(), truth) for found, truth in runs]) >= 0.93
    for found, truth in runs:
        table = found.table()
        bounds = np.column_stack([table["low"], table["high"]])
        assert np.array_equal(bounds, found.selected_interval())
        assert cover(bounds, truth) >= cover(found.estimates.interval(), truth)
    if test is None:  # the rival: intervals that know nothing of the selection
        assert np.mean([cover(found.estimates.interval(), truth) for found, truth in runs]) < 0.5


def test_number_of_tests_of_each_search() -> None:
    held, counts = np.array([5, 70, 9_000, 60_000]), [4000, 3000, 2000, 1000]
    plain = PrefixSearch(4.0, Bits(16), 2, 4, (8, 16))
    found = plain.read(DrawnCollection(plain.survey, held, 1, counts))
    assert found.tested == found.estimates.tested == sum(step.candidates for step in found.history) > 256
    tested: list[tuple[HeavyHitters, int]] = []
    for search, many in (
        (replace(plain, test="people"), 4),
        (replace(plain, test="budget"), 4),
        (tree_hist(4.0, Bits(16), 2), 2),
        (SegmentPairs(4.0, Bits(16), 2, segments=2), 3),
    ):
        tested.append((search.read(DrawnCollection(search.survey, held, 1, counts)), many))
    assert [found.tested for found, _ in tested] == [
        many for _, many in tested
    ]  # the candidates of their last question
    channels = MultipleChannel(4.0, Bits(16), 2)
    assert channels.read(DrawnCollection(channels.survey, held, 1, counts)).tested <= channels.channels
    for improved in (True, False):
        trie = PrivTrie(4.0, Bits(16), 2, people=10_000, improved=improved)
        run = StudyRun(trie)
        while run.round is not None:
            size = round(10_000 * float(run.round.people))
            run.answer(DrawnCollection(run.round.survey, held, 1, np.array([4, 3, 2, 1]) * size // 10))
        assert isinstance(run.result, HeavyHitters)
        looks = 1 if improved else trie.batches  # it may stop after any batch: each look is a test
        assert run.result.tested == looks * sum(step.candidates for step in run.result.history)
