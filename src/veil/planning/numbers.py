"""How numbers are distributed: what each way to ask would cost and reach, before anybody is asked.

The error of a range on smooth data is measured: the root mean square error over all ranges of a tenth of the domain, on
made-up people who are distributed like Beta(5, 2) (a smooth hill, steeper on its right), at most a million of them,
three to ten times. The error on any data is that of the same people, where nothing is taken for granted: see `rough`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError
from veil.mechanisms import SquareWave
from veil.numeric import Binning, HaarHierarchy, Hierarchy, WaveDistribution, without_bands
from veil.planning.base import Goal, Measure, Option, Row, Ways, Wishes, byte_text
from veil.planning.mean import held_numbers
from veil.planning.rough import banded_error, wave_error
from veil.reports.tally import merge
from veil.results.distribution import Distribution
from veil.study import OneRound, Study
from veil.survey import Survey, SurveyTally
from veil.tools.json_documents import Json

__all__ = ["NumbersGoal"]

Floats = NDArray[np.float64]

_MOST_PEOPLE = 1_000_000
_ALL_PEOPLE = 3_000_000  # of all runs: fewer people are made up more often
_MOST_BUCKETS = 4096  # a made-up survey over more would take longer than people wait for a table
_SMOOTH, _ROUGH = "range's error", "range's error on any data"
_FOR_ROUGH = "Hierarchy"
_POINTS = 1024  # where all options are judged, unless more buckets are asked for


class NumbersGoal(Goal):
    """SquareWave, unless another is named, its report is too long or data may be rough: then Hierarchy."""

    name = "numbers"
    summary = "How a number is distributed: ranges, quantiles and the mean."
    takes = ("range", "integers", "buckets", "rough")
    about = (
        "Errors: of the share of people in a range of a tenth of the domain. The first is measured on smooth data, "
        "made-up people like Beta(5, 2); the second holds however people are distributed, also if they are heaped."
    )
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
        smooth, rough = _range_errors(study, wishes)
        return {_SMOOTH: Measure(smooth, "share"), _ROUGH: Measure(rough, "share")}

    def notes(self, study: Study) -> tuple[str, ...]:
        if isinstance(study, Binning):
            return (f"it tells {study.bins} bins apart, and nothing within them",)
        return ("no quantiles, because masses may be negative",) if isinstance(study, HaarHierarchy) else ()

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        if wishes.rough:
            return self._on_any_data(allowed)
        taken, size = allowed[0], byte_text(allowed[0].report_bytes)
        if taken.name == self.usual:
            return taken, f"SquareWave answers everything, from one question, in reports of {size}."
        return taken, f"{taken.name} is the first whose report of {size} fits."

    def _on_any_data(self, allowed: Sequence[Option]) -> tuple[Option, str]:
        known = [option for option in allowed if math.isfinite(option.error(_ROUGH))] or list(allowed)
        fine = [option for option in known if option.name == _FOR_ROUGH]
        taken = min(fine or known, key=lambda option: option.error(_ROUGH))
        size = byte_text(taken.report_bytes)
        what = "tells all buckets apart, with errors" if fine else "has errors"
        return taken, f"{taken.name} {what} that hold on any data, rough data too, in reports of {size}."

    def facts(self, study: Study, wishes: Wishes) -> Json:
        return {"simulated_users": min(wishes.users, _MOST_PEOPLE)}


def _range_errors(study: OneRound[Any], wishes: Wishes) -> tuple[float | None, float | None]:
    """On smooth data, and on any; None where it would take too long, or the people are too few."""
    points = min(held_numbers(wishes).size, max(_POINTS, wishes.buckets or 0))
    if points > _MOST_BUCKETS:
        return None, None
    people = min(wishes.users, _MOST_PEOPLE)
    runs = min(max(_ALL_PEOPLE // people, 3), 10)
    plain = without_bands(study)
    squares, rough = [], None
    try:
        for seed in range(runs):
            drawn = np.random.default_rng(seed).beta(5, 2, people)
            tally = _tally(study.survey, drawn, seed)
            squares.append(_squared_error(plain.read(tally), drawn, points))
            if rough is None and not isinstance(study, WaveDistribution):
                rough = banded_error(study.read(tally))
    except EmptyError:
        return None, None
    if isinstance(study, WaveDistribution):
        rough = wave_error(study.mechanism, people)
    return math.sqrt(sum(squares) / runs), rough


def _tally(survey: Survey, drawn: Floats, seed: int) -> SurveyTally:
    size = survey.domain.size
    codes = np.minimum(drawn * size, size - 1).astype(np.uint64)
    parts = (
        survey.tally(survey.reports(codes[rows], stream))
        for rows, stream in SeededForExperiments(seed).chunks(len(drawn))
    )
    whole: SurveyTally = merge(parts)
    return whole


def _squared_error(found: Distribution, drawn: Floats, points: int) -> float:
    at = np.arange(points + 1) / points
    cumulative = np.interp(at, found.cells / found.cells[-1], np.concatenate([[0.0], np.cumsum(found.masses)]))
    truth = np.searchsorted(np.sort(drawn), at) / len(drawn)
    return float(np.mean((_tenths(cumulative) - _tenths(truth)) ** 2))


def _tenths(cumulative: Any) -> Any:
    """The mass of every range of a tenth of the domain."""
    reach = max(1, (len(cumulative) - 1) // 10)
    return cumulative[reach:] - cumulative[:-reach]
