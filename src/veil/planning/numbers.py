"""How to ask for a number: what each mechanism and protocol would cost and reach, before anybody is asked.

Two errors are told. Of a mean: the standard error in the worst case, from exact moments. Of a range: the root mean
square error over all ranges of a tenth of the domain, measured on made-up people who are distributed like Beta(5, 2)
(a smooth hill, steeper on its right), at most a million of them, three to ten times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.domain import Numeric
from veil.entropy import Seeded
from veil.errors import EmptyError, InputError, ParameterError
from veil.mechanisms import MeanMechanism, Piecewise, SquareWave, StochasticRounding
from veil.numeric.asking import numeric_domain
from veil.numeric.haar import HaarHierarchy
from veil.numeric.hierarchy import Hierarchy, LevelProtocol
from veil.numeric.means import HybridMean
from veil.numeric.reading import Reading
from veil.protocol import Protocol
from veil.survey import Survey
from veil.tally import merge
from veil.tools.arguments import is_int

__all__ = ["NumericChoice", "NumericOption", "choose_numeric"]

Way = SquareWave | LevelProtocol | MeanMechanism | HybridMean

_DISTRIBUTIONS: dict[str, type[SquareWave] | type[Hierarchy] | type[HaarHierarchy]] = {
    "SquareWave": SquareWave,
    "Hierarchy": Hierarchy,
    "HaarHierarchy": HaarHierarchy,
}
_MEANS: dict[str, type[StochasticRounding] | type[Piecewise] | type[HybridMean]] = {
    "StochasticRounding": StochasticRounding,
    "Piecewise": Piecewise,
    "HybridMean": HybridMean,
}
_FIRST = "SquareWave"
_ANSWERS = {
    "SquareWave": ("distribution", "ranges", "mean"),
    "Hierarchy": ("distribution", "ranges", "mean"),
    "HaarHierarchy": ("ranges", "mean"),  # its masses may be negative: no quantiles
}
_MOST_PEOPLE = 1_000_000
_MOST_BUCKETS = 4096  # a made-up survey over more would take longer than people wait for a table
_ALL_PEOPLE = 3_000_000  # of all runs: fewer people are made up more often


@dataclass(frozen=True)
class NumericOption:
    """One way to ask for a number: its survey, what it answers, and its errors where they are known."""

    name: str
    survey: Survey
    answers: tuple[str, ...]
    mean_stderr: float | None = None
    """In units of the domain (times: seconds), whatever people hold."""
    range_error: float | None = None
    """As a fraction of the people."""

    @property
    def report_bytes(self) -> int:
        return self.survey.layout.size


@dataclass(frozen=True)
class NumericChoice:
    """The way to take, why in one sentence, and what else there was."""

    taken: NumericOption
    why: str
    options: tuple[NumericOption, ...]
    simulated: int
    """How many made-up people the errors of ranges are for."""


def choose_numeric(
    domain: Any,
    epsilon: float,
    users: int = 1_000_000,
    *,
    buckets: int | None = None,
    mean: bool = False,
    name: str | None = None,
    max_report_bytes: int | None = None,
) -> NumericChoice:
    """SquareWave unless another is named; for a `mean` alone, the one with the smallest error in the worst case.

    >>> from veil import Interval
    >>> [choose_numeric(Interval(0, 100), eps, mean=True).taken.name for eps in (0.5, 2.0)]
    ['StochasticRounding', 'HybridMean']
    """
    held = numeric_domain(domain)
    if not is_int(users) or users < 1:
        raise ParameterError("a number of people is at least 1")
    named = _known(name)
    if mean and named in _DISTRIBUTIONS:
        raise InputError(f"{named} asks for a distribution: leave the mean out, it answers that as well")
    if buckets is not None and (mean or named in _MEANS):
        raise InputError("a mean alone has no buckets")
    people = min(users, _MOST_PEOPLE)
    wanted = _MEANS if mean else {**_DISTRIBUTIONS, **_MEANS}
    ways = {kind: _build(kind, held, epsilon, buckets, must=(named or _FIRST) == kind) for kind in wanted}
    options = tuple(_option(kind, way, users, people) for kind, way in ways.items() if way is not None)
    fitting = [option for option in options if max_report_bytes is None or option.report_bytes <= max_report_bytes]
    allowed = [option for option in fitting if named is None or option.name == named]
    if not allowed:
        sizes = ", ".join(f"{option.name} {option.report_bytes}" for option in options if named in (None, option.name))
        raise InputError(f"no report fits into {max_report_bytes} bytes; reports take: {sizes}")
    taken = min(allowed, key=_worst) if mean and named is None else allowed[0]
    return NumericChoice(taken, _why(taken, allowed, named, mean), options, people)


def _known(name: str | None) -> str | None:
    if name is None:
        return None
    every = {**_DISTRIBUTIONS, **_MEANS}
    found = {known.lower(): known for known in every}.get(name.lower())
    if found is None:
        raise InputError(f"numbers are asked for by {', '.join(every)}; there is none of that name")
    return found


def _build(name: str, domain: Numeric, epsilon: float, buckets: int | None, *, must: bool) -> Way | None:
    """One way to ask, or None where the domain is beyond it and it need not be taken."""
    if name in _MEANS:
        return _MEANS[name](epsilon, domain)
    try:
        return _DISTRIBUTIONS[name](epsilon, domain, buckets)
    except ParameterError:
        if must:
            raise
        return None


def _option(name: str, way: Way, users: int, people: int) -> NumericOption:
    if isinstance(way, (MeanMechanism, HybridMean)):
        return NumericOption(name, _survey(way), ("mean",), mean_stderr=math.sqrt(way.variance(users)))
    return NumericOption(name, _survey(way), _ANSWERS[name], range_error=_range_error(way, people))


def _survey(way: Way) -> Survey:
    return way.survey if isinstance(way, Protocol) else Survey(way)


def _worst(option: NumericOption) -> float:
    # rounded: where HybridMean is StochasticRounding alone, the first of them in the order of the table is taken
    return float(f"{option.mean_stderr or 0.0:.9e}")


def _why(taken: NumericOption, allowed: Sequence[NumericOption], named: str | None, mean: bool) -> str:
    size = f"{taken.report_bytes} byte{'s' if taken.report_bytes != 1 else ''}"
    if named is not None:
        return f"{taken.name}, as asked for, in reports of {size}."
    if mean:
        others = sorted(_worst(option) for option in allowed if option is not taken)
        better = f", {others[0] / _worst(taken):.2f} times smaller than the next" if others else ""
        return f"{taken.name} has the smallest standard error in the worst case{better}, in reports of {size}."
    if taken.name == _FIRST:
        return f"SquareWave answers everything, from one question, in reports of {size}."
    return f"{taken.name} is the first whose report of {size} fits."


def _range_error(way: SquareWave | LevelProtocol, people: int) -> float | None:
    """Root mean square over ranges and runs; None where it would take too long, or the people are too few."""
    survey = _survey(way)
    if way.buckets > _MOST_BUCKETS:
        return None
    runs = min(max(_ALL_PEOPLE // people, 3), 10)
    try:
        return math.sqrt(sum(_squared_error(survey, people, seed) for seed in range(runs)) / runs)
    except EmptyError:
        return None


def _squared_error(survey: Survey, people: int, seed: int) -> float:
    size = survey.domain.size
    drawn = np.random.default_rng(seed).beta(5, 2, people)
    codes = np.minimum(drawn * size, size - 1).astype(np.uint64)
    tally = merge(survey.tally(survey.reports(codes[rows], stream)) for rows, stream in Seeded(seed).chunks(len(codes)))
    ((_, found),) = Reading().everything(survey, tally)
    truth = np.searchsorted(np.sort(codes), found.cells.astype(np.uint64)) / people
    cumulative = np.concatenate([[0.0], np.cumsum(found.masses)])
    return float(np.mean((_tenths(cumulative) - _tenths(truth)) ** 2))


def _tenths(cumulative: Any) -> Any:
    """The mass of every range of a tenth of the buckets."""
    reach = max(1, (len(cumulative) - 1) // 10)
    return cumulative[reach:] - cumulative[:-reach]
