"""Rappor at the collector: tallies, decoding by regression, and what is refused because no noise law is known."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.exact.mechanisms.test_rappor import NeverClears
from tests.significance import frequency_fits

from veil import Rappor, Survey, Tally, Text, choose, simulate
from veil.entropy import SeededForExperiments
from veil.errors import InputError, MismatchError, WireError
from veil.mechanisms.longitudinal.rappor import positions
from veil.survey import SurveyTally
from veil.tools.messages import install_command
from veil.wire.tallies import decode_tally, encode_tally

PEOPLE, SIZE = 100_000, 500


def zipf(people: int, size: int, power: float, seed: int = 1) -> np.ndarray:
    shares = np.arange(1, size + 1) ** -power
    return np.random.default_rng(seed).choice(size, people, p=shares / shares.sum())


def set_bits(oracle: Rappor, value: int) -> tuple[int, int]:
    """How many of the held value's bits are set in permanent filters, and how many there are."""
    people = 20_000
    memo = oracle.permanent(np.full(people, value), SeededForExperiments(8)).columns
    spread = oracle.spread(np.full(people, value, dtype=np.uint64))
    places = positions(memo["cohort"], spread, oracle.bits, oracle.hashes)
    bits = np.unpackbits(memo["bits"], axis=1, bitorder="little")
    found = np.take_along_axis(bits, places.astype(np.int64), axis=1)
    first = found[:, 0]  # one a person: independent trials, also where positions coincide
    return int(first.sum()), people


def test_a_true_bit_is_cleared_as_often_as_declared() -> None:
    oracle = Rappor.with_f(0.5, SIZE)
    kept, trials = set_bits(oracle, 7)
    assert frequency_fits(kept, trials, 0.75)
    assert not frequency_fits(kept, trials, 1 - 1.1 * 0.25)
    # rival: the library that never clears a bit is rejected by the same test
    never, trials = set_bits(NeverClears(oracle.epsilon, SIZE), 7)
    assert never == trials
    assert not frequency_fits(never, trials, 0.75)


def test_decoding_finds_the_top_ten() -> None:
    values = zipf(PEOPLE, SIZE, 1.5)
    truth = np.bincount(values, minlength=SIZE) / PEOPLE
    oracle = Rappor.with_f(0.5, SIZE)
    assert oracle.epsilon == pytest.approx(4.39, abs=0.005)
    for seed in range(5):
        estimate = simulate(oracle, values, seed)
        best = [row.value for row in estimate.top(10)]
        # Ranks 9 to 12 lie closer together than the noise: all ten are found, the order at the edge may differ.
        assert (estimate.frequencies[:10] > 0).all()
        assert best[:4] == [0, 1, 2, 3]
        assert len(set(best) & set(range(10))) >= 8
        assert np.abs(estimate.frequencies - truth)[:10].max() < 0.008
        assert np.count_nonzero(estimate.frequencies) < 30
        assert np.count_nonzero(estimate.frequencies[50:]) <= 3
    # rival: the same counts, decoded under the hashes of other cohorts, are nothing like it
    counts = oracle.tally(oracle.randomize(values, SeededForExperiments(0))).counts.reshape(8, -1)
    wrong = oracle.shares(Tally(oracle.digest, counts[::-1].reshape(-1), PEOPLE, PEOPLE, PEOPLE))
    assert len(set(np.argsort(-wrong)[:10]) & set(range(10))) < 5


def test_the_instantaneous_step_is_undone_too() -> None:
    values = zipf(PEOPLE, SIZE, 1.5)
    truth = np.bincount(values, minlength=SIZE) / PEOPLE
    oracle = Rappor.with_f(0.25, SIZE, instant=(0.25, 0.75))
    memo = oracle.permanent(values, SeededForExperiments(3))
    reports = oracle.instant_reports(memo, SeededForExperiments(4))
    again = oracle.instant_reports(memo, SeededForExperiments(5))
    assert (reports.columns["cohort"] == again.columns["cohort"]).all()
    assert (reports.columns["bits"] != again.columns["bits"]).any(axis=1).mean() > 0.99
    found = oracle.estimate(oracle.tally(reports)).frequencies
    assert np.abs(found - truth)[:5].max() < 0.015
    # rival: an estimator that forgets the second step is far off
    plain = Rappor(oracle.epsilon, SIZE)
    naive = plain.estimate(plain.tally_columns(reports.columns, None)).frequencies
    assert np.abs(naive - truth)[:5].max() > 0.05
    with pytest.raises(MismatchError):
        plain.instant_reports(memo)


def test_people_outside_of_the_candidates_are_not_counted_as_candidates() -> None:
    """Half of the people hold one of very many values that nobody lists: the constant takes them up."""
    words = [f"word {i}" for i in range(20)]
    values = [words[i % 4] for i in range(20_000)] + [f"rare {i}" for i in range(20_000)]
    oracle = Rappor.with_f(0.25, Text(12))
    estimate = simulate(oracle, values, seed=2, candidates=words)
    assert estimate.values == words
    assert np.abs(estimate.frequencies[:4] - 0.125).max() < 0.012
    assert np.abs(estimate.frequencies[4:]).max() < 0.01


def test_tallies_add_up_and_are_read_back_with_their_candidates() -> None:
    survey = Survey(Rappor(4.0, Text(12), bits=32, cohorts=4))
    reports = survey.randomize(["tea", "milk", "water"] * 50, SeededForExperiments(1))
    whole = survey.tally(reports, {0: ["tea", "milk"]})
    assert whole.parts[0].counts.shape == (4 * 33,)
    halves = [survey.tally(part, {0: ["tea", "milk"]}) for part in (reports[:70], reports[70:])]
    assert halves[0] + halves[1] == whole == decode_tally(survey, encode_tally(whole))
    with pytest.raises(MismatchError):
        whole + survey.tally(reports, {0: ["tea"]})
    with pytest.raises(InputError, match="candidates"):
        survey.tally(reports)

    listed = Survey(Rappor(4.0, 5, bits=32, cohorts=4))
    tally = listed.tally(listed.randomize([0, 1, 2, 3], SeededForExperiments(1)))
    assert decode_tally(listed, encode_tally(tally)) == tally
    assert listed.estimate(tally)[0].frequencies.shape == (5,)
    one_a_value = Tally(tally.parts[0].task, np.zeros(5, np.int64), 4, 4, 4)
    with pytest.raises(WireError, match="counts"):
        decode_tally(listed, encode_tally(SurveyTally(tally.task, 4, (one_a_value,))))


def test_weights_count_and_estimates_do_not_depend_on_their_unit() -> None:
    oracle = Rappor(6.0, 20)
    values = np.arange(6000) % 3
    reports = oracle.randomize(values, SeededForExperiments(6))
    plain = oracle.estimate(oracle.tally(reports)).frequencies
    for unit in (5, -5):
        same = oracle.estimate(oracle.tally(reports, weights=np.full(6000, unit))).frequencies
        assert np.allclose(same, plain, atol=1e-9)
    heavier = oracle.estimate(oracle.tally(reports, weights=np.where(values == 0, 4, 1))).frequencies
    assert heavier[0] == pytest.approx(2 / 3, abs=0.06)


def test_without_a_noise_law_errors_are_refused_and_tables_left_open(tmp_path: Path) -> None:
    oracle = Rappor(5.0, ["red", "green", "blue"])
    estimate = simulate(oracle, ["red"] * 3000 + ["blue"] * 1000)
    refused = (
        lambda: estimate.variance,
        lambda: estimate.stderr,
        estimate.interval,
        estimate.significant,
        estimate.threshold,
        lambda: estimate.total(["red"]),
        lambda: oracle.variance(1000),
        lambda: oracle.detection_floor(1000),
    )
    for call in refused:
        with pytest.raises(InputError, match="Rappor has no known variance"):
            call()
    first = estimate.top(3)[0]
    assert (first.value, first.count) == ("red", pytest.approx(3000, abs=300))
    assert all(np.isnan(error) for error in (first.stderr, first.low, first.high))
    assert estimate.table().column("stderr").null_count == 3
    json.dumps(estimate.table().to_pylist(), allow_nan=False)
    estimate.plot().figure.savefig(tmp_path / "plot.svg")


def test_plans_list_rappor_last_and_never_choose_it() -> None:
    choice = choose(100, 4.0)
    last = choice.options[-1]
    assert last.name == "Rappor"
    assert not last.allowed
    assert np.isnan(last.error("standard error"))
    assert choice.oracle.name != "Rappor"


def test_every_rendering_says_that_errors_are_not_known() -> None:
    from rich.console import Console

    from veil.results.render.files import document
    from veil.results.render.terminal import render

    estimate = simulate(Rappor(5.0, ["red", "green", "blue"]), ["red"] * 3000 + ["blue"] * 1000)
    written = json.loads(json.dumps(document(estimate), allow_nan=False))
    assert written["rows"][0]["low"] is None
    screen = Console(record=True, width=100, file=io.StringIO())
    screen.print(render(estimate, title="colours"))
    shown = screen.export_text()
    assert "nan" not in shown
    assert "no intervals" in shown


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(InputError, match=re.escape(install_command("rappor"))):
        simulate(Rappor(1.0, 5), [1, 2, 3])


def test_estimates_where_nobody_or_everybody_holds_a_value() -> None:
    oracle = Rappor(8.0, 5, bits=16, cohorts=64)  # cohorts that nobody is in are left out
    assert simulate(oracle, [3]).frequencies.shape == (5,)
    assert simulate(oracle, [3] * 5000).frequencies[3] == pytest.approx(1, abs=0.1)
