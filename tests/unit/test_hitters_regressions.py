"""What reviews of the heavy hitters found, so that it does not come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veil import Bits, StudyRun, Survey, Text, simulate
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import MismatchError, ParameterError
from veil.hitters import PEM, MultipleChannel, PrivTrie, SegmentPairs, fewest_groups, pem1, tree_hist
from veil.mechanisms import LinearHashing
from veil.view import ChannelSegment, view_from_json


def answered(study: PrivTrie, values: list[int], folder: Path) -> StudyRun:
    """All rounds of a study, a batch of the same people each: only the files matter here."""
    run = StudyRun(study, folder)
    while run.round is not None:
        survey = run.round.survey
        run.answer(MemoryCollection(survey, survey.randomize(values, SeededForExperiments(run.finished))))
    return run


def test_a_study_resumed_over_other_candidates_is_refused(tmp_path: Path) -> None:
    """The candidates of a trie do not stand in its task."""
    values = [0xABCDEF] * 400 + [0x123456] * 300 + [0x777777] * 200
    first = PrivTrie(6.0, Bits(24), 2, people=30_000, improved=True)
    found = answered(first, values, tmp_path).result
    assert StudyRun(first, tmp_path).result.values == found.values
    for k in (1, 3):
        with pytest.raises(MismatchError):
            StudyRun(PrivTrie(6.0, Bits(24), k, people=30_000, improved=True), tmp_path)


def test_numpy_integers_are_integers() -> None:
    k = np.int64(16)
    assert PEM(1.0, Bits(64), k, keep=np.int64(32)) == PEM(1.0, Bits(64), 16, keep=32)
    assert fewest_groups(64, k, np.int64(32), 2**20) == fewest_groups(64, 16, 32, 2**20)
    assert pem1(1.0, Bits(8), np.int64(4)).lengths == pem1(1.0, Bits(8), 4).lengths
    channels = MultipleChannel(1.0, Bits(32), np.int64(4), step=np.int64(8))
    assert channels.survey.to_bytes() == MultipleChannel(1.0, Bits(32), 4, step=8).survey.to_bytes()


def test_a_trie_speaks_of_all_people() -> None:
    found = simulate(PrivTrie(6.0, Bits(16), 2, people=20_000, improved=True), [0xABCD] * 10_000 + [0x1234] * 10_000)
    assert found.estimates.population == 20_000
    for row in found.rows:
        assert row.count == pytest.approx(10_000, rel=0.1)


def test_a_trie_that_ends_early_finds_nothing_of_its_domain() -> None:
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


def test_the_best_values_come_in_the_order_of_their_worst_pair() -> None:
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


def test_cut_text_is_never_merged() -> None:
    domain = Text(3)
    labels = domain.decode(domain.encode(["\u00e9\u00e9", "\u00e9\u0159"]))
    assert len(set(labels)) == 2


def test_an_alphabet_is_what_devices_write() -> None:
    composed, decomposed = (PEM(2.0, Text(4), 2, alphabet=letters) for letters in ("\u00e9", "e\u0301"))
    assert composed == decomposed


def test_a_channel_travels_in_a_task() -> None:
    survey = MultipleChannel(1.0, Text(9), 4).survey
    assert Survey.from_json(survey.to_bytes()) == survey
    view = ChannelSegment(Bits(8), channels=4, start=0, stop=4)
    assert view_from_json(view.to_json()) == view
    for wrong in ({"channels": 1}, {"start": 5}, {"stop": 9}):
        with pytest.raises(ParameterError):
            view_from_json(view.to_json() | wrong)


def test_many_multiples_of_a_large_prime_are_made_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = LinearHashing(6.0, Bits(10), suffix=10)
    reports = mechanism.randomize(np.arange(500) % 1000, SeededForExperiments(1))
    whole = mechanism.tally(reports).counts
    monkeypatch.setattr("veil.mechanisms.oracles.linear_hashing._PLACES", 7 * mechanism.hash_range)
    assert (mechanism.tally(reports).counts == whole).all()


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": "a"},
        {"threshold": float("nan")},
        {"keep": float("nan")},
        {"keep": 1},
        {"alphabet": ["a"]},
        {"alphabet": b"ab"},
        {"alphabet": 7},
        {"alphabet": "\ud800"},
        {"alphabet": ""},
        {"last": 0},
        {"groups": 0},
        {"budget": 1},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        PEM(1.0, Text(4), 4, **options)


@pytest.mark.parametrize("step", [0, 1.5, -3])
def test_bad_steps_are_refused(step: Any) -> None:
    with pytest.raises(ParameterError):
        tree_hist(1.0, Bits(16), 4, step=step)
