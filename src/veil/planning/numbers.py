"""Plans for numbers: distributions, means, and means with variances.

The error of a range on smooth data is measured: the root mean square error over all ranges of a tenth of the domain, on
simulated people who are distributed like Beta(5, 2) (a smooth hill, steeper on its right), at most a million of them,
three to ten times.

The error of a range on any data is half the width of a 95 % interval that assumes nothing, over 1.96, so that it
compares with a standard error. Methods that count without bias (hierarchies, bins) have such intervals by themselves. A
wave's reports leave many distributions possible: the interval goes from the smallest to the largest mass that one of
them gives to the range, by two linear programmes, for people who are distributed like Beta(5, 2) and reports as they
are expected.

For means, mechanisms are compared by their error in the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.domain.text_values import is_time
from veil.entropy import SeededForExperiments
from veil.errors import EmptyError, InputError
from veil.mechanisms import MeanMechanism, Piecewise, SquareWave, StochasticRounding
from veil.mechanisms.numbers.reconstruction import Wave
from veil.numeric import (
    Binning,
    HaarHierarchy,
    Hierarchy,
    HybridMean,
    MeanOf,
    TwoPhaseVariance,
    WaveDistribution,
    without_bands,
)
from veil.numeric.bands import free_bands
from veil.planning.base import Goal, Option, Quantity, Row, Ways, Wishes, byte_text
from veil.reports.tally import Tally, merge
from veil.results.bands.levels import LevelBands
from veil.results.distribution import Distribution
from veil.study import OneRound, Study
from veil.survey import Survey, SurveyTally
from veil.tools.json_documents import Json
from veil.tools.numbers import proportional, two_sided
from veil.view import SquaredDistance

Floats = NDArray[np.float64]
Asking = type[MeanMechanism] | type[HybridMean]
_ASKING: dict[str, Asking] = {
    "StochasticRounding": StochasticRounding,
    "Piecewise": Piecewise,
    "HybridMean": HybridMean,
}
_LEVEL = 0.95
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
        return {_SMOOTH: Quantity(smooth, "share"), _ROUGH: Quantity(rough, "share")}

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


class MeanGoal(Goal):
    """The mechanism whose mean has the smallest standard error in the worst case, from exact moments."""

    name = "mean"
    summary = "The mean of a number, and nothing else."
    takes = ("range", "integers")
    about = "Error: the standard error in the worst case, exact."
    judged = "mean's error"

    def ways(self, wishes: Wishes) -> Ways:
        held = held_numbers(wishes)
        return {name: self._asking(kind, wishes.epsilon, held) for name, kind in _ASKING.items()}

    def _asking(self, kind: Asking, epsilon: float, held: Numeric) -> Callable[[], Study]:
        def build() -> Study:
            asked = kind(epsilon, held)
            return asked if isinstance(asked, HybridMean) else MeanOf(asked)

        return build

    def errors(self, study: Study, wishes: Wishes) -> Row:
        asked = study.mechanism if isinstance(study, MeanOf) else study
        assert isinstance(asked, (MeanMechanism, HybridMean))
        return {self.judged: _error(asked, held_numbers(wishes), wishes.users)}

    def best(self, allowed: Sequence[Option], wishes: Wishes) -> tuple[Option, str]:
        # rounded: where HybridMean is StochasticRounding alone, the first of them in the order of the table is taken
        errors = {option.name: float(f"{option.error(self.judged):.9e}") for option in allowed}
        taken = min(allowed, key=lambda option: errors[option.name])
        others = sorted(errors[option.name] for option in allowed if option is not taken)
        better = f", {others[0] / errors[taken.name]:.2f} times smaller than the next" if others else ""
        size = byte_text(taken.report_bytes)
        return taken, f"{taken.name} has the smallest error in the worst case{better}, in reports of {size}."


class VarianceGoal(MeanGoal):
    """The same in two rounds: a mean from one half of the people, and squared distances to it from the other."""

    name = "variance"
    summary = "The mean and the variance of a number, in two rounds."
    about = (
        "Errors: the standard errors in the worst case, exact; each from one half of the people. A variance is in"
        " squared units; of times, in squared seconds."
    )
    judged = "variance's error"

    def _asking(self, kind: Asking, epsilon: float, held: Numeric) -> Callable[[], Study]:
        return lambda: TwoPhaseVariance(kind, epsilon, held)

    def errors(self, study: Study, wishes: Wishes) -> Row:
        assert isinstance(study, TwoPhaseVariance)
        half = max(wishes.users // 2, 1)
        squares = SquaredDistance(study.domain, study.domain.ends[0]).domain  # the farthest centre: the largest squares
        assert isinstance(squares, Numeric)
        return {
            "mean's error": _error(study.mechanism(study.epsilon, study.domain), study.domain, half),
            self.judged: Quantity(math.sqrt(study.mechanism(study.epsilon, squares).variance(half)), "length"),
        }


def held_numbers(wishes: Wishes) -> Numeric:
    """What people hold, if it is numbers."""
    if not isinstance(wishes.held, Numeric):
        raise InputError("people hold numbers here: expected --range LO HI")
    return wishes.held


def _error(asked: MeanMechanism | HybridMean, held: Numeric, people: int) -> Quantity:
    return Quantity(math.sqrt(asked.variance(people)), "duration" if is_time(held) else "length")


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


def banded_error(found: Distribution) -> float:
    """The root mean square over ranges of a tenth of the domain, by the intervals that the distribution has."""
    assert isinstance(found.bands, LevelBands)
    return _as_stderr([found.bands.width(lo, hi, _LEVEL) for lo, hi in _ranges(found.domain)])


def wave_error(wave: SquareWave, people: int) -> float:
    """The same for a square wave and so many people, for the same ranges: by bands that assume nothing.

    >>> wide, narrow = (wave_error(SquareWave(epsilon, 1024), 100_000) for epsilon in (1.0, 4.0))
    >>> bool(wide > 2 * narrow > 0.01)
    True
    """
    from scipy.stats import beta

    masses = np.diff(beta.cdf(wave.input_edges / wave.cells, 5, 2))
    counts = proportional(Wave.of(wave).reports(masses), people)
    found = Distribution(wave.domain, wave.input_edges, masses, n=people, population=people)
    bands = free_bands(wave, Tally(wave.digest, counts, people, people, people), found)
    sides = [bands.range(lo, hi, _LEVEL) for lo, hi in _ranges(found.domain)]
    return _as_stderr([high - low for low, high in sides])


def _as_stderr(widths: list[float]) -> float:
    return math.sqrt(sum(width**2 for width in widths) / len(widths)) / 2 / two_sided(_LEVEL)


def _ranges(domain: Numeric) -> Iterator[tuple[object, object]]:
    """The second tenth of the domain, the fourth, ...; of few integers, every second of them."""
    if isinstance(domain, Integers):
        parts = min(10, domain.size)
        starts = np.array([domain.lo + domain.size * part // parts for part in range(parts + 1)])
        ends = list(zip(starts[:-1], starts[1:] - 1, strict=True))
    else:
        starts = domain.values_of(np.linspace(*domain.ends, 11))
        ends = list(pairwise(starts))
    yield from ends[1::2]
