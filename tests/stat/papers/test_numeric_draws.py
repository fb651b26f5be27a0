"""Direct draws of counts in the experiments with numbers: they are distributed like the counts of single people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.significance import mean_fits, variance_fits

from veil import Interval, Piecewise, StochasticRounding
from veil.entropy import SeededForExperiments
from veil.numeric.hierarchy import HaarHierarchy, Hierarchy
from veil.numeric.means import HybridMean, TwoPhaseVariance
from veil.simulation import simulate
from veil.survey import Survey
from veil_papers.common.asking import collect, run_study
from veil_papers.datasets import Numbers
from veil_papers.numeric.methods import People

DOMAIN = Interval(0.0, 1.0, cells=8)
HELD = np.array([400, 250, 100, 50, 0, 0, 100, 0])
RUNS = 300


def asked(kind: Any, epsilon: float) -> Survey:
    """A small survey: for Piecewise so few steps that starts are drawn at random almost always."""
    more = {Piecewise: {"steps": 16}, Hierarchy: {"buckets": 8}, HaarHierarchy: {"buckets": 8}}.get(kind, {})
    made = kind(epsilon, DOMAIN, **more)
    return Survey(made) if isinstance(made, (Piecewise, StochasticRounding)) else made.survey


def drawn(survey: Survey) -> NDArray[np.int64]:
    tallies = [collect(survey, HELD, np.random.default_rng(seed)) for seed in range(RUNS)]
    return np.array([np.concatenate([[part.people, *part.counts] for part in tally.parts]) for tally in tallies])


@pytest.mark.parametrize("kind", [StochasticRounding, Piecewise, HybridMean, Hierarchy, HaarHierarchy])
def test_counts_are_distributed_like_those_of_people(kind: Any) -> None:
    survey, codes = asked(kind, 2.0), np.repeat(np.arange(8, dtype=np.uint64), HELD)
    tallies = [survey.tally(survey.reports(codes, SeededForExperiments(seed))) for seed in range(RUNS)]
    real = np.array([np.concatenate([[part.people, *part.counts] for part in tally.parts]) for tally in tallies])
    moving = real.var(axis=0) > 0
    mine = drawn(survey)
    assert (mine[:, ~moving] == real[:, ~moving]).all()
    for ours, theirs in zip(mine.T[moving], real.T[moving], strict=True):
        spread = float(np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / RUNS))
        assert mean_fits(float(ours.mean()), float(theirs.mean()), spread)
        assert variance_fits(float(ours.var(ddof=1)), RUNS // 2, float(theirs.var(ddof=1)))
    rival = drawn(asked(kind, 1.0))
    if rival.shape == real.shape:  # at another eps a level may be asked through another oracle
        off = (rival.mean(axis=0) - real.mean(axis=0))[moving] / np.sqrt(real.var(axis=0, ddof=1)[moving] / RUNS)
        assert np.abs(off).max() > 10


def test_a_study_asks_every_person_once_and_finds_the_variance() -> None:
    study, values = TwoPhaseVariance(Piecewise, 2.0, DOMAIN), np.repeat((np.arange(8) + 0.5) / 8, HELD)
    found = [run_study(study, HELD, np.random.default_rng(seed)) for seed in range(RUNS)]
    real = [simulate(study, values, seed=seed) for seed in range(RUNS)]
    assert {(result.mean.n, result.variance.n) for result in found} == {(450, 450)}
    ours, theirs = (np.array([result.variance.value for result in results]) for results in (found, real))
    spread = float(np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / RUNS))
    assert mean_fits(float(ours.mean()), float(theirs.mean()), spread)
    assert not mean_fits(float(ours.mean()) + 8 * spread, float(theirs.mean()), spread)
    odd = run_study(study, HELD + 3 * np.eye(8, dtype=np.int64)[0], np.random.default_rng(0))
    assert (odd.mean.n, odd.variance.n) == (452, 451)  # halves of 903 are rounded up, and nobody is asked twice


def test_people_follow_their_data() -> None:
    numbers = Numbers(np.array([1, 3]), "by hand", stand_in=False, name="waiting", lo=10.0, hi=20.0, unit="minutes")
    people = People("waiting", numbers, 4, 8_000)
    assert people.held.tolist() == [1000, 1000, 3000, 3000]
    assert people.truth.tolist() == [0.125, 0.125, 0.375, 0.375]
    mean, variance = people.moments
    middles = np.repeat([0.125, 0.375, 0.625, 0.875], people.held)
    assert (mean, variance) == (pytest.approx(middles.mean()), pytest.approx(middles.var()))
