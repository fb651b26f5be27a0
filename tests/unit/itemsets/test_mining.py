"""Studies of frequent items and itemsets: results, candidates, restarts, significance, invalid parameters."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import veil
from veil import GRR, OLH, Bits, Items, StudyRun, simulate
from veil.entropy import SeededForExperiments
from veil.errors import DomainError, EmptyError, InputError, MismatchError, ParameterError, VeilError
from veil.itemsets import FIGURE_5_3, PSFO, SVIM, SVSM, ItemMining, LDPMiner, Phase, largest_size, likely_sets
from veil.metrics import found_mse
from veil.view import SampleItem


def test_uncertain_factor_widens_errors_and_keeps_estimates() -> None:
    found = simulate(SVIM(3, 2.0, 30), [[0, 1, 2, 3, 4][: 1 + i % 5] for i in range(6_000)], seed=1)
    step = found.history[-1]
    assert step.update_low <= step.update <= step.update_high
    noise = found.estimate.top(3)
    assert [row.frequency for row in found.rows] == [row.frequency for row in noise]
    for row, bare in zip(found.rows, noise, strict=True):
        assert row.stderr > bare.stderr
        assert 0 <= row.low < row.alone_low <= row.frequency <= row.alone_high <= row.high <= 1
    assert noise[2].alone_high < found.rows[2].alone_high < found.rows[2].high
    sure = replace(step, update=1.0, update_low=1.0, update_high=1.0)  # nothing was missed: no doubt, but for the cut
    assert sure.widened(found.estimate, 0.9) == pytest.approx(np.clip(found.estimate.interval(0.9), 0, 1))
    assert sure.errors(found.estimate) == pytest.approx(found.estimate.stderr)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 20])
def test_likely_sets_match_an_exhaustive_search(k: int) -> None:
    rng = np.random.default_rng(k)
    codes = rng.choice(99, 9, replace=False).tolist()
    frequencies = rng.uniform(-0.1, 0.6, 9).tolist()
    positive = {c: f for c, f in zip(codes, frequencies, strict=True) if f > 0}
    top = max(positive.values())
    every = {
        tuple(sorted(chosen)): math.prod(0.9 * positive[c] / top for c in chosen)
        for size in range(2, largest_size(k) + 1)
        for chosen in combinations(positive, size)
    }
    found = likely_sets(codes, frequencies, k)
    assert len(set(found)) == len(found) == min(2 * k, len(every))
    best = sorted(every.values(), reverse=True)[: 2 * k]
    assert [every[chosen] for chosen in found] == pytest.approx(best)


def test_no_sets_of_one_item() -> None:
    assert likely_sets([4], [0.5], 8) == ()
    assert likely_sets([4, 5], [0.5, -0.1], 8) == ()
    assert largest_size(1) == 2


BASKETS = [["bread", "milk"]] * 3_000 + [["bread", "beer", "milk"]] * 2_000 + [["beer"]] * 1_500 + [[]] * 500
WORDS = ["bread", "milk", "beer", "salt", "tea", "soap", "eggs", "rice", "fish"]


def test_items_are_found_with_their_labels_and_history() -> None:
    found = simulate(SVIM(2, 4.0, Items(WORDS)), BASKETS, seed=2)
    assert set(found.items) == {"bread", "milk"}
    assert found.rows[0].frequency == pytest.approx(5 / 7, abs=5 * found.rows[0].stderr)
    assert [step.name for step in found.history] == ["prune", "sizes to estimate", "estimate"]
    assert [step.people for step in found.history] == [3_500, 700, 2_800]
    assert found.history[-1].candidates == 4
    assert found.estimate.population == 7_000
    assert found.rows[0].count == pytest.approx(found.rows[0].frequency * 7_000)
    assert found.table().column("value").to_pylist() == found.items
    assert len(found) == 2
    assert "3 rounds of 7000 reports" in repr(found)


def test_a_small_universe_is_not_pruned() -> None:
    found = simulate(SVIM(5, 4.0, Items(WORDS)), BASKETS, seed=1)
    assert [step.people for step in found.history] == [1_400, 5_600]
    assert set(found.items[:3]) == {"bread", "milk", "beer"}
    everything = simulate(SVIM(20, 4.0, Items(WORDS)), BASKETS, seed=1)
    assert len(everything.items) == len(WORDS)


def test_protocols_of_figure_5_3_as_parameters() -> None:
    shares = {}
    for name, parameters in FIGURE_5_3.items():
        found = simulate(ItemMining(2, 4.0, Items(WORDS), **parameters), BASKETS, seed=1)
        shares[name] = [step.people / 7_000 for step in found.history]
    first, *_, last = shares.values()
    assert first == pytest.approx([0.1, 0.4, 0.5])
    assert shares["(OLH,1)(Adap,2k)"] == [0.5, 0.5]
    assert last == pytest.approx([0.5, 0.1, 0.4])
    original = LDPMiner(2, 4.0, Items(WORDS), improved=False)
    assert original.phases[:2] == tuple(FIGURE_5_3["(BLH,L)(SUE,2k)"].values())


def test_sets_of_items_and_rules() -> None:
    found = simulate(SVSM(6, 4.0, Items(WORDS)), BASKETS, seed=1)
    assert ("bread", "milk") in found.itemsets[:4]
    assert found.itemsets == [row.items for row in sorted(found.mined, key=lambda row: -row.frequency)[:6]]
    pair = found.at({"milk", "bread"})
    assert pair.frequency == pytest.approx(5 / 7, abs=5 * pair.stderr)
    rules = found.rules(confidence=0.7)
    assert [rule.confidence for rule in rules] == sorted((rule.confidence for rule in rules), reverse=True)
    rule = next(rule for rule in rules if (rule.given, rule.then) == (("milk",), ("bread",)))
    assert rule.confidence == pytest.approx(min(1.0, pair.frequency / found.at(["milk"]).frequency))
    assert rule.lift == pytest.approx(rule.confidence / found.at(["bread"]).frequency)
    assert rule.confidence <= 1.0
    assert rule.confidence_interval[0] < rule.confidence_interval[1] == 1.0
    assert rule.lift_interval[0] < 7 / 5 < rule.lift_interval[1]
    wide = found.rules(0.7, level=0.999)[0]
    assert wide.confidence_interval[0] < rules[0].confidence_interval[0]
    assert sum(step.people for step in found.history) == 7_000
    table = found.table()
    assert table.column_names == [
        *("items", "frequency", "count", "stderr", "low", "high", "alone_low", "alone_high", "significant")
    ]
    assert "FrequentItemsets(6 sets, 4 rounds" in repr(found)
    with pytest.raises(DomainError):
        found.at(["fish", "rice", "soap"])
    for confidence in (-0.1, True, "a", math.nan):
        with pytest.raises(ParameterError):
            found.rules(confidence)


def test_one_item_makes_no_sets() -> None:
    found = simulate(SVSM(1, 4.0, Items(WORDS)), BASKETS, seed=1)
    assert found.estimate is None
    assert found.itemsets in ([("bread",)], [("milk",)])
    assert found.rules() == []


def test_empty_sets_alone_are_an_answer() -> None:
    found = simulate(SVSM(4, 2.0, Items(WORDS)), [[]] * 3_000, seed=1)
    assert all(abs(row.frequency) < 6 * row.stderr for row in found.rows)


def test_results_do_not_depend_on_how_sets_are_given() -> None:
    rng = np.random.default_rng(1)
    sets = [rng.choice(30, rng.integers(0, 6), replace=False).tolist() for _ in range(4_000)]
    plain = simulate(SVSM(8, 2.0, 30), sets, seed=3)
    arrow = simulate(SVSM(8, 2.0, 30), pa.array(sets), seed=3)
    assert plain.rows == arrow.rows
    assert plain.rows != simulate(SVSM(8, 2.0, 30), sets, seed=4).rows


def collected(run: StudyRun, sets: Any, seed: int) -> Any:
    assert run.round is not None
    survey = run.round.survey
    return survey.tally(survey.randomize(sets, SeededForExperiments(seed)))


def test_a_study_goes_on_after_a_restart(tmp_path: Path) -> None:
    study = SVSM(2, 4.0, Items(WORDS))
    run = StudyRun(study, tmp_path)
    seed = 0
    while run.round is not None:
        seed += 1
        run.answer(collected(run, BASKETS[seed::5], seed))
        again = StudyRun(study, tmp_path)  # the process dies after every round
        assert again.finished == run.finished
        assert (again.round is None) == (run.round is None)
        assert again.round is None or (run.round is not None and again.round.survey == run.round.survey)
        run = again
    assert run.result.itemsets == StudyRun(study, tmp_path).result.itemsets
    assert run.finished == 5


def test_a_study_refuses_answers_of_another_survey(tmp_path: Path) -> None:
    run = StudyRun(SVIM(2, 4.0, Items(WORDS)), tmp_path)
    other = StudyRun(SVIM(2, 3.0, Items(WORDS)))
    with pytest.raises(MismatchError):
        run.answer(collected(other, BASKETS[:100], 1))
    assert list(tmp_path.iterdir()) == []
    run.answer(collected(run, BASKETS[::2], 1))
    with pytest.raises(MismatchError):  # another epsilon, universe or k in the same folder
        StudyRun(SVIM(2, 3.0, Items(WORDS)), tmp_path)
    with pytest.raises(MismatchError):
        StudyRun(SVIM(2, 4.0, Items([*WORDS, "oil"])), tmp_path)
    stale = collected(run, BASKETS[1::2], 2)
    run.answer(stale)
    with pytest.raises(MismatchError):  # the round before
        run.answer(stale)


def test_bad_studies_are_refused() -> None:
    for call in (
        lambda: SVIM(0, 1.0, 9),
        lambda: SVIM(-1, 1.0, 9),
        lambda: SVIM(True, 1.0, 9),
        lambda: SVIM(1.5, 1.0, 9),  # type: ignore[arg-type]  # that is the test
        lambda: SVIM(2, 0.0, 9),
        lambda: SVIM(2, 1.0, 1),
        lambda: SVIM(2, 1.0, Bits(30)),
        lambda: SVIM(40, 39.0, 99),  # amplified it would be above 40
        lambda: SVIM(2, 1.0, 9, sizes="isotonic"),  # type: ignore[arg-type]  # that is the test
        lambda: SVSM(0, 1.0, 9),
        lambda: SVSM(2, 1.0, 9, items=SVIM(3, 1.0, 9)),
        lambda: SVSM(2, 1.0, 9, items="SVIM"),  # type: ignore[arg-type]  # that is the test
        lambda: Phase("OLH", 1),  # type: ignore[arg-type]  # that is the test
        lambda: Phase(OLH, 0),
        lambda: Phase(OLH, "all"),  # type: ignore[arg-type]  # that is the test
        lambda: ItemMining(2, 1.0, 9, prune=Phase(OLH, "candidates"), estimate=Phase(OLH, 1)),
        lambda: ItemMining(2, 1.0, 9, prune=Phase(OLH, 1), estimate=Phase(OLH, 1), corrected=True),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(DomainError, match="no item"):
        simulate(SVIM(2, 1.0, 9), [[1], [9]])
    with pytest.raises(DomainError):
        simulate(SVIM(2, 1.0, 9), [1, 2])
    with pytest.raises(VeilError):
        simulate(SVIM(2, 1.0, 9), [])
    with pytest.raises(EmptyError):
        simulate(SVIM(2, 1.0, 9), [[1]])


def test_studies_compare_by_their_parameters() -> None:
    assert veil.itemsets.SVIM is SVIM
    assert SVIM(2, 1.0, 9) == SVIM(2, 1.0, Items(9))
    assert SVIM(2, 1.0, 9) != SVIM(3, 1.0, 9)
    assert hash(SVSM(2, 1.0, 9)) == hash(SVSM(2, 1.0, 9))
    assert isinstance(PSFO(2, GRR, 1.0, 9).view, SampleItem)


def test_the_error_of_what_was_found() -> None:
    assert found_mse({1: 5.0, 2: 9.0, 3: 1.0}, {1: 7, 2: 9}) == 2.0
    assert math.isnan(found_mse({3: 1.0}, {1: 7}))
    for wrong in ([], {}):
        with pytest.raises(InputError):
            found_mse({1: 1.0}, wrong)  # type: ignore[arg-type]  # that is the test


def test_significance_of_items_does_not_use_the_factor() -> None:
    found = simulate(SVIM(4, 2.0, 12), [[0, 1, 2][: 1 + i % 3] for i in range(6_000)], seed=2)
    threshold = found.estimate.threshold(0.05)
    assert found.table()["significant"].to_pylist() == [row.frequency > threshold for row in found.rows]


def test_rounds_of_itemsets_share_the_significance_level() -> None:
    found = simulate(SVSM(4, 3.0, 12), [[0, 1, 2][: 1 + i % 3] for i in range(9_000)], seed=2)
    assert found.estimate is not None
    both = len(found.estimate), len(found.singles.estimate)
    parts = found.estimate, found.singles.estimate
    limits = [part.threshold(0.05 * size / sum(both)) for part, size in zip(parts, both, strict=True)]
    expected = [row.frequency > limits[len(row.items) == 1] for row in found.rows]
    assert found.table()["significant"].to_pylist() == expected
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(ParameterError):
            found.table(level)
