"""Accuracy against theory, quick (the full numbers are in acceptance), each with a rival that must be rejected."""

from __future__ import annotations

import numpy as np
import pytest
from acceptance.accuracy import estimates, measure, population
from tests.significance import frequency_fits, mean_fits, variance_fits

from veil import GRR, MECHANISMS, OLH, Items, OneOf, Question, SubsetSelection, Survey, simulate
from veil.entropy import SeededForExperiments
from veil.mechanisms import PureOracle
from veil.tools.numbers import critical
from veil.view import SampleItem

ORACLES: list[type[PureOracle]] = [kind for kind in MECHANISMS.values() if issubclass(kind, PureOracle)]


def test_the_examples_contain_every_pure_oracle() -> None:
    assert len(ORACLES) >= 10


@pytest.mark.parametrize("kind", ORACLES)
def test_support_probabilities_on_a_million_people(kind: type[PureOracle]) -> None:
    people, size, epsilon = 1_000_000, 40, 1.0
    oracle, rival = kind(epsilon, size), kind(1.1 * epsilon, size)
    counts = oracle.support(oracle.randomize(np.full(people, 7), SeededForExperiments(11)).columns, None, None)
    held, others = int(counts[7]), int(np.delete(counts, 7).sum())
    assert frequency_fits(held, people, float(oracle.p))
    absent = int(counts[20])
    assert frequency_fits(absent, people, float(oracle.q))
    # A rival with eps off by ten per cent is rejected on the same sample, by the held or by the absent values.
    assert not (frequency_fits(held, people, float(rival.p)) and frequency_fits(absent, people, float(rival.q)))
    # And so are p and q swapped.
    assert not frequency_fits(held, people, float(oracle.q))
    assert others > 0


@pytest.mark.parametrize("kind", ORACLES)
def test_error_and_coverage(kind: type[PureOracle]) -> None:
    found = measure(kind.name, size=256, people=20_000, seeds=20)
    # 20 x 256 squared errors: a relative deviation of about 2 %; the full numbers hold 5 % at 1024 x 20
    assert abs(found.mse_over_theory - 1) < 0.10
    # an interval within 0 and 1 misses a value that nobody holds to one side only: in 2.5 % of the cases
    assert 0.93 < found.coverage < 0.98
    # rivals: theory for eps off by 10 %, and intervals 15 % too narrow
    off = kind(1.1, 256).variance(20_000) / kind(1.0, 256).variance(20_000)
    assert abs(found.mse_over_theory / off - 1) > 0.10


@pytest.mark.parametrize("kind", ORACLES)
def test_narrow_intervals_are_rejected(kind: type[PureOracle]) -> None:
    oracle, values = kind(1.0, 256), population(256, 20_000)
    truth = np.bincount(values, minlength=256) / len(values)
    inside, narrow = [], []
    for estimate in estimates(oracle, values, range(20)):
        distance = np.abs(estimate.frequencies - truth) / estimate.stderr
        inside.append(distance < critical(0.025))
        narrow.append(distance < 0.85 * critical(0.025))
    assert 0.93 < np.mean(inside) < 0.97
    assert not 0.93 < np.mean(narrow) < 0.97


@pytest.mark.parametrize("kind", ORACLES)
def test_totals_have_the_stated_variance(kind: type[PureOracle]) -> None:
    oracle, values, runs = kind(1.0, 16), population(16, 2_000), 400
    subset = list(range(8))
    share = float(np.mean(values < 8))
    found = estimates(oracle, values, range(runs))
    totals = np.array([estimate.total(subset).frequency for estimate in found])
    exact = oracle.noise.total_variance(8, share) / 2_000
    assert mean_fits(float(totals.mean()), share, np.sqrt(exact / runs))
    assert variance_fits(float(totals.var(ddof=1)), runs, exact)
    if kind in (GRR, SubsetSelection):  # rival: the values' variances simply added, which is wrong for these
        added = sum(oracle.variance(2_000, float(np.mean(values == v))) for v in subset)
        assert not variance_fits(float(totals.var(ddof=1)), runs, added)


def test_a_share_adds_its_sampling_variance() -> None:
    """At a large eps the error of a small share is almost all sampling: intervals without it are far too narrow."""
    survey = Survey(OneOf((1, Question(GRR(6.0, 2))), (9, Question(GRR(6.0, 2)))))
    values = np.repeat([0, 1], [2_500, 2_500])
    runs = [simulate(survey, values, seed=seed)[0] for seed in range(300)]
    errors = np.array([estimate.frequencies[0] - 0.5 for estimate in runs])
    honest = np.array([estimate.stderr[0] for estimate in runs])
    noise_only = np.sqrt([estimate.noise.variance(0.5) / estimate.n for estimate in runs])
    assert 0.90 < np.mean(np.abs(errors) < critical(0.025) * honest) < 0.985
    assert np.mean(np.abs(errors) < critical(0.025) * noise_only) < 0.6


def test_padding_and_sampling_has_the_stated_variance() -> None:
    view = SampleItem(Items(6), 3)
    survey = Survey(Question(GRR(4.0, view.domain), view))
    held = [[0, 1]] * 1_500 + [[0, 2, 3]] * 1_000 + [[]] * 500
    runs = [simulate(survey, held, seed=seed)[0] for seed in range(300)]
    truth = np.array([2_500, 1_500, 1_000, 1_000, 0, 0]) / 3_000
    shown = np.array([estimate.frequencies[:6] for estimate in runs])
    said = np.mean([estimate.variance[:6] for estimate in runs], axis=0)
    for item in range(6):
        assert mean_fits(float(shown[:, item].mean()), truth[item], np.sqrt(said[item] / len(runs)))
    spread = shown.var(axis=0, ddof=1)
    assert np.all(np.abs(spread / said - 1) < 0.35)
    without_sampling = 9 * np.array([runs[0].noise.variance(float(f) / 3) for f in truth]) / 3_000
    assert not variance_fits(float(spread[0]), len(runs), float(without_sampling[0]))


def test_significant_values_are_held_and_some_values_are_significant() -> None:
    oracle, values = OLH(2.0, 1024), population(1024, 100_000)
    truth = np.bincount(values, minlength=1024) / len(values)
    false_runs, found_values = 0, []
    for estimate in estimates(oracle, values, range(40)):
        found = estimate.significant(0.05)
        found_values.append(len(found))
        false_runs += any(truth[row.value] == 0 for row in found)
        floor = oracle.detection_floor(len(values))
        assert estimate.threshold(0.05) == pytest.approx(floor, rel=1e-9)
    assert false_runs <= 8  # 40 runs at 5 % at most: 2 expected
    assert min(found_values) >= 5
