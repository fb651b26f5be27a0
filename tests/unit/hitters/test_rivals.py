"""Rivals of PEM: results, studies of several rounds, segments, invalid parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veil import Bits, StudyRun, Survey, Text, simulate
from veil.engines import DrawnCollection, MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import MismatchError, ParameterError
from veil.hitters import MultipleChannel, PrivTrie, SegmentPairs, pem1, tree_hist
from veil.view import ChannelSegment, view_from_json


@pytest.mark.parametrize("improved", [True, False])
@pytest.mark.parametrize("rival", [pem1, tree_hist, MultipleChannel, SegmentPairs], ids=lambda rival: rival.__name__)
def test_rivals_find_very_frequent_values(rival: Callable[..., Any], improved: bool) -> None:
    held = [1, 40_000, 65_000, 1] * 8000
    more = {"segments": 2} if rival is SegmentPairs else {"step": 4} if rival is MultipleChannel else {}
    made = rival(6.0, Bits(16), 3, improved=improved, **more)
    assert made.survey.guarantee.within(6.0)
    assert set(simulate(made, held, seed=1).values) == set(held)
    assert set(made.read(DrawnCollection(made.survey, held, 1)).values) == set(held)


@pytest.mark.parametrize("improved", [True, False])
def test_privtrie_finds_frequent_values_in_several_rounds(improved: bool) -> None:
    held = [1, 40_000, 65_000, 1] * 10_000
    found = simulate(PrivTrie(4.0, Bits(16), 3, people=len(held), improved=improved), held, seed=1)
    assert {1, 40_000} <= set(found.values)  # the paper's threshold also lets noise through
    assert not improved or set(found.values) == set(held)
    assert sum(step.people for step in found.history) <= len(held)
    nothing = simulate(PrivTrie(4.0, Bits(32), 3, people=20_000), np.arange(20_000, dtype=np.uint64) * 200_000, seed=1)
    assert len(nothing) < 3


def answered(study: PrivTrie, values: list[int], folder: Path) -> StudyRun:
    """All rounds of a study, a batch of the same people each: only the files matter here."""
    run = StudyRun(study, folder)
    while run.round is not None:
        survey = run.round.survey
        run.answer(MemoryCollection(survey, survey.randomize(values, SeededForExperiments(run.finished))))
    return run


def test_run_resumed_with_another_k_is_refused(tmp_path: Path) -> None:
    """The candidates of a trie do not stand in its task."""
    values = [0xABCDEF] * 400 + [0x123456] * 300 + [0x777777] * 200
    first = PrivTrie(6.0, Bits(24), 2, people=30_000, improved=True)
    found = answered(first, values, tmp_path).result
    assert StudyRun(first, tmp_path).result.values == found.values
    for k in (1, 3):
        with pytest.raises(MismatchError):
            StudyRun(PrivTrie(6.0, Bits(24), k, people=30_000, improved=True), tmp_path)


def test_privtrie_estimates_refer_to_all_people() -> None:
    found = simulate(PrivTrie(6.0, Bits(16), 2, people=20_000, improved=True), [0xABCD] * 10_000 + [0x1234] * 10_000)
    assert found.estimates.population == 20_000
    for row in found.rows:
        assert row.count == pytest.approx(10_000, rel=0.1)


def test_privtrie_without_frequent_prefixes_finds_no_values() -> None:
    words = ["".join(map(chr, row)) for row in np.random.default_rng(0).integers(33, 127, (40_000, 20))]
    found = simulate(PrivTrie(5.0, Text(20), 4, people=40_000), words)
    assert found.history[-1].length < 160
    assert (found.values, found.rows, found.truncated.tolist()) == ([], [], [])


@pytest.mark.parametrize("bits", [48, 128])
def test_segment_pairs_join_many_segments(bits: int) -> None:
    """k^segments values would not fit into memory."""
    held = [(0x5A << bits - 8) + 3, 2**bits - 7]
    search = SegmentPairs(12.0, Bits(bits), 2, segments=bits // 16)
    found = simulate(search, held * 15_000, seed=1)
    assert sorted(found.values) == sorted(held)


def test_segment_pairs_order_values_by_their_worst_pair() -> None:
    rng = np.random.default_rng(0)
    search = SegmentPairs(1.0, Bits(32), 5, segments=4)
    ranks = {pair: rng.permutation(25).reshape(5, 5) for pair in search.pairs}
    found = list(search._by_worst_rank(ranks))[:40]
    worst = np.zeros((5,) * 4, dtype=int)
    for (a, b), rank in ranks.items():
        shape = [1] * 4
        shape[a] = shape[b] = 5
        worst = np.maximum(worst, rank.reshape(shape))
    order = np.argsort(worst, axis=None, kind="stable")[:40]
    assert found == [tuple(int(i) for i in place) for place in zip(*np.unravel_index(order, worst.shape), strict=True)]


def test_channel_views_round_trip_as_documents() -> None:
    survey = MultipleChannel(1.0, Text(9), 4).survey
    assert Survey.from_json(survey.to_bytes()) == survey
    view = ChannelSegment(Bits(8), channels=4, start=0, stop=4)
    assert view_from_json(view.to_json()) == view
    for wrong in ({"channels": 1}, {"start": 5}, {"stop": 9}):
        with pytest.raises(ParameterError):
            view_from_json(view.to_json() | wrong)


@pytest.mark.parametrize("step", [0, 1.5, -3])
def test_bad_steps_are_refused(step: Any) -> None:
    with pytest.raises(ParameterError):
        tree_hist(1.0, Bits(16), 4, step=step)
