"""People who answer, by the distribution of what the collector counts; every use of veil's studies stands here.

Counts are drawn, which is exactly how counts over people are distributed, not an approximation:

- Pure oracles, OLH and BLH with a random function as hash: given a report, other values are supported independently of
  each other with probability q, so that counts are independent, Bin(n_v, p) + Bin(n - n_v, q).
- Rappor: people choose cohorts uniformly (multinomial by value), and every bit of every filter is flipped
  independently: a bit that m of a cohort's N people have set is reported by Bin(m, 1 - f/2) + Bin(N - m, f/2) of them.
- Stochastic rounding and Piecewise: a report is any at all with one probability, else from the window, whose start is
  rounded up or down: how many people do which is binomial for each cell, and only where in the window is drawn for
  each person.
- Square waves and HaarResponse: their own draws, one for each person; those are quick.

Estimates come from the shipped estimators. Simulation only: numpy's generator protects nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil import Estimate, OneRound, Study, StudyRun, Tally
from veil.entropy import SeededForExperiments
from veil.mechanisms import FrequencyOracle, MeanMechanism, Mechanism, PureOracle, Rappor, SquareWave, design_matrix
from veil.numeric import Distribution
from veil.post import redraw_counts
from veil.survey import OneOf, Question, Survey, SurveyTally

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Ints = NDArray[np.int64]
Generator = np.random.Generator

DRAWN = (
    "Support counts are drawn as binomials, Bin(n_v, p) + Bin(n - n_v, q) for each value, which equals simulating "
    "every person in distribution (with an ideal hash); estimates come from the shipped oracle."
)


def estimate(oracle: FrequencyOracle, held: Ints, rng: Generator) -> Estimate:
    """What is estimated from one simulated collection, where so many people hold each value."""
    if isinstance(oracle, Rappor):
        return oracle.estimate(rappor_tally(oracle, held, rng))
    assert isinstance(oracle, PureOracle)
    return oracle.estimate(drawn_tally(oracle, held, rng))


def significance(oracle: FrequencyOracle, people: int, alpha: float = 0.05) -> float:
    """How many people a value that nobody holds exceeds with probability alpha, over all values (3.13)."""
    return -NormalDist().inv_cdf(alpha / oracle.domain.size) * float(np.sqrt(oracle.noise.variance(0.0) * people))


def drawn_tally(oracle: PureOracle, held: Ints, rng: Generator) -> Tally:
    """What the collector counts of a pure oracle."""
    people = int(held.sum())
    return Tally(oracle.digest, redraw_counts(oracle.noise, held, rng).astype(np.int64), people, people, people)


def rappor_tally(oracle: Rappor, held: Ints, rng: Generator) -> Tally:
    """What the collector counts of Rappor: for every cohort its people, then how many report each bit."""
    assert oracle.instant is None, "the instantaneous step is off in the thesis's experiments"
    people, flip = int(held.sum()), float(oracle.f) / 2
    chosen = rng.multinomial(held, np.full(oracle.cohorts, 1 / oracle.cohorts))
    counts = np.empty((oracle.cohorts, oracle.bits + 1), dtype=np.int64)
    matrix = _filters(oracle.cohorts, oracle.bits, oracle.hashes, len(held))
    for cohort in range(oracle.cohorts):
        rows = matrix[cohort * oracle.bits : (cohort + 1) * oracle.bits]
        size, filled = int(chosen[:, cohort].sum()), np.rint(rows @ chosen[:, cohort]).astype(np.int64)
        counts[cohort, 0] = size
        counts[cohort, 1:] = rng.binomial(filled, 1 - flip) + rng.binomial(size - filled, flip)
    return Tally(oracle.digest, counts.reshape(-1), people, people, people)


@lru_cache(maxsize=4)
def _filters(cohorts: int, bits: int, hashes: int, values: int) -> csr_matrix:
    """Which bits each value sets in each cohort: public, and the same for every eps."""
    spread = Rappor(1.0, values).spread(np.arange(values, dtype=np.uint64))
    return design_matrix(np.arange(cohorts), spread, bits, hashes).tocsr()


def read_waves(
    waves: Sequence[SquareWave], codes: NDArray[np.uint64], rng: Generator, smoothing: Sequence[Any] = (True,)
) -> list[Distribution]:
    """What each wave reads, with each way of smoothing, from the same reports of all people, who hold these codes."""
    columns = waves[0].draw(codes, SeededForExperiments(int(rng.integers(1 << 62))))
    tallies = [(wave, wave.tally_columns(columns, None)) for wave in waves]
    return [wave.estimate(tally, smoothing=smooth) for wave, tally in tallies for smooth in smoothing]


def read(study: OneRound[Any] | Mechanism, held: Ints, rng: Generator, *ways: dict[str, Any]) -> list[Any]:
    """What a study reads from one simulated collection, once for each of the ways; or a mechanism alone."""
    if isinstance(study, Mechanism):
        survey = Survey(study)
        return [survey.estimate(collect(survey, held, rng))[0]]
    tally = collect(study.survey, held, rng)
    return [replace(study, **way).read(tally) for way in ways or ({},)]  # type: ignore[type-var]  # a dataclass


def collect(survey: Survey, held: Ints, rng: Generator) -> SurveyTally:
    """What the collector counts of a survey of which everybody answers one question, where so many hold each code."""
    asked = survey.ask.branches if isinstance(survey.ask, OneOf) else ((1, survey.ask),)
    left, shares, parts = held, sum(share for share, _ in asked), []
    for share, question in asked:
        assert isinstance(question, Question), "AllOf is not drawn here"
        chosen = rng.binomial(left, share / shares)
        left, shares = left - chosen, shares - share
        parts.append(_part(question, chosen, rng))
    return SurveyTally(survey.task, int(held.sum()), tuple(parts))


def run_study(study: Study, held: Ints, rng: Generator) -> Any:
    """The result of a study; every round asks people, drawn at random, that were not asked before."""
    run, left, people = StudyRun(study), held, int(held.sum())
    while run.round is not None:
        asked = min(round(people * run.round.people), int(left.sum()))
        chosen = rng.multivariate_hypergeometric(left, asked, method="marginals")
        left = left - chosen
        run.answer(collect(run.round.survey, chosen, rng))
    return run.result


def _part(question: Question, held: Ints, rng: Generator) -> Tally:
    mechanism, source = question.mechanism, SeededForExperiments(int(rng.integers(1 << 62)))
    shown = question.view.apply(np.arange(len(held), dtype=np.uint64), source)
    if isinstance(mechanism, PureOracle):
        nodes = np.bincount(shown.astype(np.int64), weights=held, minlength=mechanism.domain.size)
        return drawn_tally(mechanism, nodes.astype(np.int64), rng)
    if isinstance(mechanism, MeanMechanism):
        reports = _windowed(mechanism, shown.astype(np.int64), held, rng)
        return mechanism.tally_columns({mechanism.layout.names[0]: reports}, None)
    return mechanism.tally_columns(mechanism.draw(np.repeat(shown, held), source), None)


def _windowed(mechanism: MeanMechanism, cells: Ints, held: Ints, rng: Generator) -> NDArray[Any]:
    """Reports of a mechanism for means, in no order of people."""
    people, last = int(held.sum()), mechanism.cells - 1
    starts, rest = np.divmod(cells * mechanism.travel, last)
    later = rng.binomial(held, rest / last)
    # All reports are possible, with the probability of one outside; what is left to the window is drawn from it.
    outside = float((1 - mechanism.p) / mechanism.travel)
    near = float(mechanism.p) - outside * mechanism.width
    from_window = rng.binomial(np.concatenate([held - later, later]), near)
    moved = np.repeat(np.concatenate([starts, starts + 1]), from_window)
    moved += rng.integers(mechanism.width, size=len(moved))
    anywhere = rng.integers(mechanism.levels, size=people - len(moved))
    return np.concatenate([moved, anywhere]).astype(mechanism.layout.fields[0].dtype)
