"""How numbers are distributed: what each way to ask would cost and reach, before anybody is asked.

The error of a range is measured: the root mean square error over all ranges of a tenth of the domain, on made-up people
who are distributed like Beta(5, 2) (a smooth hill, steeper on its right), at most a million of them, three to ten
times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from veil.domain import Integers
from veil.entropy import Seeded
from veil.errors import EmptyError
from veil.mechanisms import SquareWave
from veil.numeric import Binning, HaarHierarchy, Hierarchy, WaveDistribution, without_bands
from veil.planning.base import Goal, Measure, Option, Row, Ways, Wishes, byte_text
from veil.planning.mean import held_numbers
from veil.results.distribution import Distribution
from veil.study import OneRound, Study
from veil.tally import merge
from veil.tools.canonical import Json

__all__ = ["NumbersGoal"]

_MOST_PEOPLE = 1_000_000
_ALL_PEOPLE = 3_000_000  # of all runs: fewer people are made up more often
_MOST_BUCKETS = 4096  # a made-up survey over more would take longer than people wait for a table
_POINTS = 1024  # where all options are judged, unless more buckets are asked for


class NumbersGoal(Goal):
    """SquareWave, unless another is named or its report is too long."""

    name = "numbers"
    summary = "How a number is distributed: ranges, quantiles and the mean."
    takes = ("range", "integers", "buckets")
    about = "Error: of the people in a range of a tenth of the domain, measured on made-up people like Beta(5, 2)."
    usual = "SquareWave"

    def ways(self, wishes: Wishes) -> Ways:
        held, epsilon, buckets = held_numbers(wishes), wishes.epsilon, wishes.buckets
        few = min(32, held.size if isinstance(held, Integers) else buckets or 32)
        return {
            "SquareWave": lambda: WaveDistribution(SquareWave(epsilon, held, buckets)),
            "Hierarchy": lambda: Hierarchy(epsilon, held, buckets),
            "HaarHierarchy": lambda: HaarHierarchy(epsilon, held, buckets),
            "Binning": lambda: Binning(epsilon, held, few),
        }

    def errors(self, study: Study, wishes: Wishes) -> Row:
        assert isinstance(study, OneRound)
        return {"range's error": Measure(_range_error(without_bands(study), wishes), "share")}

    def notes(self, study: Study) -> tuple[str, ...]:
        if isinstance(study, Binning):
            return (f"it tells {study.bins} bins apart, and nothing within them",)
        return ("no quantiles, because masses may be negative",) if isinstance(study, HaarHierarchy) else ()

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        taken, size = allowed[0], byte_text(allowed[0].report_bytes)
        if taken.name == self.usual:
            return taken, f"SquareWave answers everything, from one question, in reports of {size}."
        return taken, f"{taken.name} is the first whose report of {size} fits."

    def facts(self, study: Study, wishes: Wishes) -> Json:
        return {"simulated_users": min(wishes.users, _MOST_PEOPLE)}


def _range_error(study: OneRound[Any], wishes: Wishes) -> float | None:
    """Root mean square over ranges and runs; None where it would take too long, or the people are too few."""
    points = min(held_numbers(wishes).size, max(_POINTS, wishes.buckets or 0))
    if points > _MOST_BUCKETS:
        return None
    people = min(wishes.users, _MOST_PEOPLE)
    runs = min(max(_ALL_PEOPLE // people, 3), 10)
    try:
        return math.sqrt(sum(_squared_error(study, points, people, seed) for seed in range(runs)) / runs)
    except EmptyError:
        return None


def _squared_error(study: OneRound[Any], points: int, people: int, seed: int) -> float:
    survey = study.survey
    size = survey.domain.size
    drawn = np.random.default_rng(seed).beta(5, 2, people)
    codes = np.minimum(drawn * size, size - 1).astype(np.uint64)
    tally = merge(survey.tally(survey.reports(codes[rows], stream)) for rows, stream in Seeded(seed).chunks(people))
    found = study.read(tally)
    assert isinstance(found, Distribution)
    at = np.arange(points + 1) / points
    cumulative = np.interp(at, found.cells / found.cells[-1], np.concatenate([[0.0], np.cumsum(found.masses)]))
    truth = np.searchsorted(np.sort(drawn), at) / people
    return float(np.mean((_tenths(cumulative) - _tenths(truth)) ** 2))


def _tenths(cumulative: Any) -> Any:
    """The mass of every range of a tenth of the domain."""
    reach = max(1, (len(cumulative) - 1) // 10)
    return cumulative[reach:] - cumulative[:-reach]
