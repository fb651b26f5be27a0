"""Simulated collections of numbers, by the distribution of what the collector counts.

People who hold the same cell are drawn together, which is exactly how counts over people are distributed:

- GRR and OLH: as in `clicks`.
- Stochastic rounding and Piecewise: a report is any at all with one probability, else from the window, whose start is
  rounded up or down: how many people do which is binomial a cell, and only where in the window is drawn a person.
- Square waves and HaarResponse: their own draws, a person each; those are quick.

Estimates come from the shipped protocols. Simulation only: numpy's generator protects nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.campaign import Campaign, CampaignRun
from veil.datasets import Numbers
from veil.domain import Interval
from veil.entropy import Seeded
from veil.mechanisms import MeanMechanism, PureOracle, SquareWave
from veil.survey import OneOf, Question, Survey, SurveyTally
from veil.tally import Tally
from veil.wire.layout import Columns
from veil_papers.common.asking import drawn_tally

__all__ = ["HOW", "People", "collect", "run_campaign", "wave_columns", "wave_tally"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOW = (
    "People who hold the same cell are drawn together, which equals simulating every person in distribution (OLH with "
    "an ideal hash); square waves and HaarHRR are drawn person by person. Estimates come from the shipped protocols."
)


@dataclass(frozen=True, eq=False)
class People:
    """So many people who stand for a data set, and the buckets in which their distribution is asked for."""

    label: str
    numbers: Numbers
    buckets: int
    count: int

    @property
    def domain(self) -> Interval:
        """What they hold, on a grid so fine that a wave does not notice."""
        return Interval(self.numbers.lo, self.numbers.hi)

    @property
    def bucketed(self) -> Interval:
        """What they hold, to the bucket: for everything but waves."""
        return Interval(self.numbers.lo, self.numbers.hi, cells=self.buckets)

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """The fine cell of every person, in order."""
        return np.asarray(self.domain.encode(self.numbers.spread(self.count)))

    @cached_property
    def held(self) -> Ints:
        """How many people each bucket has."""
        return np.bincount(self.codes.astype(np.int64) * self.buckets // self.domain.cells, minlength=self.buckets)

    @cached_property
    def truth(self) -> Floats:
        """The distribution that is to be found."""
        return self.numbers.histogram(self.buckets)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of the buckets' middles, as mechanisms for means see people; in units of [0, 1]."""
        shares, middles = self.held / self.count, (np.arange(self.buckets) + 0.5) / self.buckets
        mean = float(shares @ middles)
        return mean, float(shares @ (middles - mean) ** 2)


def wave_columns(wave: SquareWave, people: People, rng: np.random.Generator) -> Columns:
    """The reports of all people through a wave over their fine grid."""
    return wave.draw(people.codes, _source(rng))


def wave_tally(wave: SquareWave, people: People, rng: np.random.Generator) -> Tally:
    """What the collector counts of them."""
    return wave.tally_columns(wave_columns(wave, people, rng), None)


def collect(survey: Survey, held: Ints, rng: np.random.Generator) -> SurveyTally:
    """What the collector counts of a survey with one question a person, where so many people hold each code."""
    asked = survey.ask.branches if isinstance(survey.ask, OneOf) else ((1, survey.ask),)
    left, shares, parts = held, sum(share for share, _ in asked), []
    for share, question in asked:
        assert isinstance(question, Question), "AllOf is not drawn here"
        mine = rng.binomial(left, share / shares)
        left, shares = left - mine, shares - share
        parts.append(_part(question, mine, rng))
    return SurveyTally(survey.task, int(held.sum()), tuple(parts))


def run_campaign(campaign: Campaign, held: Ints, rng: np.random.Generator) -> Any:
    """The result of a campaign; every round asks people, drawn at random, that were not asked before."""
    run, left, people = CampaignRun(campaign), held, int(held.sum())
    while run.round is not None:
        asked = min(round(people * run.round.people), int(left.sum()))
        mine = rng.multivariate_hypergeometric(left, asked, method="marginals")
        left = left - mine
        run.answer(collect(run.round.survey, mine, rng))
    return run.result


def _part(question: Question, held: Ints, rng: np.random.Generator) -> Tally:
    mechanism, source = question.mechanism, _source(rng)
    shown = question.view.apply(np.arange(len(held), dtype=np.uint64), source)
    if isinstance(mechanism, PureOracle):
        nodes = np.bincount(shown.astype(np.int64), weights=held, minlength=mechanism.domain.size)
        return drawn_tally(mechanism, nodes.astype(np.int64), rng)
    if isinstance(mechanism, MeanMechanism):
        reports = _windowed(mechanism, shown.astype(np.int64), held, rng)
        return mechanism.tally_columns({mechanism.layout.names[0]: reports}, None)
    return mechanism.tally_columns(mechanism.draw(np.repeat(shown, held), source), None)


def _windowed(mechanism: MeanMechanism, cells: Ints, held: Ints, rng: np.random.Generator) -> NDArray[Any]:
    """Reports of a mechanism for means, in no order of people."""
    people, last = int(held.sum()), mechanism.cells - 1
    starts, rest = np.divmod(cells * mechanism.travel, last)
    later = rng.binomial(held, rest / last)
    # All reports are possible, with the probability of one outside; what is left to the window is drawn from it.
    outside = float((1 - mechanism.p) / mechanism.travel)
    near = float(mechanism.p) - outside * mechanism.width
    from_window = rng.binomial(np.concatenate([held - later, later]), near)
    moved = np.repeat(np.concatenate([starts, starts + 1]), from_window)
    dtype = mechanism.layout.fields[0].dtype
    moved += rng.integers(mechanism.width, size=len(moved))
    anywhere = rng.integers(mechanism.levels, size=people - len(moved))
    return np.concatenate([moved, anywhere]).astype(dtype)


def _source(rng: np.random.Generator) -> Seeded:
    return Seeded(int(rng.integers(1 << 62)))
