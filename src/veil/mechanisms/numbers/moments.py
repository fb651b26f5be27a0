"""Base classes of mechanisms for numbers, and exact moments of their reports.

The domain of a `NumericMechanism` is a range of numbers, whose codes are cells of a grid in increasing order. A
`MeanMechanism` gives one unbiased mean. Its reports are integers 0 .. steps - 1, and a window of them is more likely
than the rest. The start of the window moves with the value, by whole steps and a random last one, so that the expected
report is linear in the value; the estimator inverts this, in fractions. Stochastic rounding is the case of two reports
and a window of one.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike, Integers, Numeric
from veil.errors import EmptyError, InputError, MismatchError, ParameterError
from veil.mechanisms.base import Mechanism
from veil.privacy import WORD, Guarantee
from veil.reports.layout import Columns
from veil.reports.tally import Tally
from veil.results.mean import Mean
from veil.tools.numbers import is_int

_HALF = 24  # bits: a square is kept as two integers of so many, so that sums of squares stay within 64
_MOST = 2**63 - 1


@dataclass(frozen=True, init=False)
class NumericMechanism(Mechanism):
    """A mechanism that asks for a number. Its domain is an Interval or Integers; an int d stands for 0 .. d - 1."""

    domain: Numeric
    name: ClassVar[str]

    def __init__(self, epsilon: float, domain: DomainLike) -> None:
        held: Any = Integers(0, domain - 1) if is_int(domain) and 1 <= domain <= 2**32 else domain
        super().__init__(epsilon, held)
        if not isinstance(self.domain, Numeric):
            raise ParameterError(f"{self.name} asks for a number: its domain is an Interval or Integers")
        if self.domain.size > 2**32:
            raise ParameterError(f"{self.name} takes a grid of at most 2^32 cells")

    @property
    def cells(self) -> int:
        """How many cells the device's grid has."""
        return self.domain.size


@dataclass(frozen=True, init=False)
class MeanMechanism(NumericMechanism):
    """A mechanism whose reports estimate the mean of a number, unbiased, and nothing else.

    Of `levels` reports, each of the `width` in the window has probability p / width, each other (1 - p) / travel: all
    reports are possible under all values, and the ratio of the two is the guarantee. The window starts `travel` steps
    further for the last cell than for the first, and in proportion between.
    """

    @property
    @abstractmethod
    def levels(self) -> int:
        """How many reports there are: 0 .. levels - 1."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many of them are in the window."""

    @property
    @abstractmethod
    def inside(self) -> int:
        """The coin's threshold out of 2^64: whether a report is in the window."""

    # -- exact probabilities ---------------------------------------------------------------------------------------

    @property
    def travel(self) -> int:
        """By how many steps the window of the last cell starts after that of the first."""
        return self.levels - self.width

    @cached_property
    def p(self) -> Fraction:
        """The probability that a report is in its window."""
        return Fraction(self.inside, WORD)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.p / self.width / self._low)

    @cached_property
    def _low(self) -> Fraction:
        """The probability of one report outside of the window."""
        return (1 - self.p) / self.travel

    @cached_property
    def _more(self) -> Fraction:
        """How much likelier a report is inside."""
        return self.p / self.width - self._low

    def _first_moment(self, start: Fraction) -> Fraction:
        """The expected report, where a window starts; linear, so it holds for a mean start as well."""
        every, window = self.levels * (self.levels - 1), self.width * (self.width - 1)
        return self._low * Fraction(every, 2) + self._more * (self.width * start + Fraction(window, 2))

    def _second_moment(self, start: int) -> Fraction:
        """The expected square of a report, where a window starts: sums of squares over all reports and the window."""
        window = self.width * start**2 + self.width * (self.width - 1) * start + _squares(self.width)
        return self._low * _squares(self.levels) + self._more * window

    @cached_property
    def _gain(self) -> Fraction:
        """By how much the expected report of the last cell exceeds that of the first."""
        return self._more * self.width * self.travel

    def spread(self, place: Fraction) -> Fraction:
        """The variance of one unbiased report of a person at a place between the first cell (0) and the last (1)."""
        start = place * self.travel
        whole = min(math.floor(start), self.travel - 1)
        here, next_ = self._second_moment(whole), self._second_moment(whole + 1)
        square = here + (start - whole) * (next_ - here)
        return (square - self._first_moment(start) ** 2) / self._gain**2

    @cached_property
    def least_spread(self) -> Fraction:
        """The smallest variance of a report, whatever people hold: at the middle, where no start is drawn at random.

        Between whole starts the variance is concave in the place, over whole starts it is convex and symmetric.
        """
        return self.spread(Fraction(self.travel // 2, self.travel))

    @cached_property
    def _at(self) -> tuple[Fraction, Fraction, Fraction]:
        """The variance of a report of people at the places 0, 1/2 and 1.

        People of this mean place who differ have a larger one: where it is convex by Jensen's inequality, and of two
        reports, where it is concave, their own scatter makes up for it exactly.
        """
        ends, middle = self.spread(Fraction(0)), self.spread(Fraction(1, 2))
        return ends, middle, ends

    @cached_property
    def most_spread(self) -> Fraction:
        """The largest variance of a report of a random person: half of the people at each end, 1/4 of it their own."""
        return self.spread(Fraction(0)) + Fraction(1, 4)

    @cached_property
    def worst_spread(self) -> Fraction:
        """The largest variance of a report of one person, over all places: not below that of any cell."""
        # As far into a step of the start as one likes, the variance is convex and symmetric over the steps: the largest
        # is in the first. There it is a parabola, open below.
        base = self._first_moment(Fraction(0))
        slope = self._second_moment(1) - self._second_moment(0)
        rise = self._gain / self.travel
        vertex = min(max((slope - 2 * base * rise) / (2 * rise**2), Fraction(0)), Fraction(1))
        return self.spread(vertex / self.travel)

    def variance(self, n: int, value: Any = None) -> float:
        """Variance of the mean estimated from n people that hold `value`; without it, the largest of any value.

        From exact moments. Of people with different values it is the mean of their variances.

        >>> from veil import Piecewise, StochasticRounding
        >>> [round(kind(2.0, 101).variance(10_000), 2) for kind in (StochasticRounding, Piecewise)]
        [0.43, 0.31]
        """
        return self.in_numbers(self.worst_spread if value is None else self.spread(self.place_of(value)), n)

    def in_numbers(self, spread: Fraction, n: int) -> float:
        """The variance in numbers of the domain of a mean of n places that each have this variance."""
        if not is_int(n) or n < 1:
            raise ParameterError("a number of people is at least 1")
        first, last = self.line
        return float(spread / n) * (last - first) * (last - first)

    @cached_property
    def line(self) -> tuple[float, float]:
        """What the first and the last cell stand for, as numbers: places 0 and 1."""
        first, last = self.domain.edges(np.array([0.5, self.cells - 0.5])).tolist()
        return first, last

    def place_of(self, value: Any) -> Fraction:
        """Where a value's cell lies between the first (0) and the last (1)."""
        return Fraction(int(self.domain.encode([value])[0]), self.cells - 1)

    # -- at the collector ------------------------------------------------------------------------------------------

    def tally_size(self, candidates: NDArray[Any] | None) -> int:
        """Three: the sum of the reports, and of their squares in a low and a high part."""
        return 3

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        reports = next(iter(columns.values())).astype(np.int64)
        largest = max(self.levels - 1, min((self.levels - 1) ** 2, 2**_HALF - 1))
        if weights is not None and int(np.abs(weights).sum()) > _MOST // largest:
            raise InputError("these weights are too large: their products with the reports do not fit into 64 bits")
        squares = reports * reports
        parts = (reports, squares & (2**_HALF - 1), squares >> _HALF)
        return np.array([part.sum() if weights is None else weights @ part for part in parts], dtype=np.int64)

    def own(self, tally: Tally) -> Tally:
        total, low, high = (int(count) for count in super().own(tally).counts)
        most = (self.levels - 1) ** 2 * tally.people * tally.square  # Cauchy and Schwarz
        if total**2 > most or (low + (high << _HALF)) ** 2 > (self.levels - 1) ** 2 * most:
            raise MismatchError("this tally's sums are larger than its reports can be")
        return tally

    def moments(self, tally: Tally) -> ReportMoments:
        """Runs at the collector: the tally's sums, as unbiased places; of a tally that may be empty."""
        total, low, high = (int(count) for count in tally.counts)
        square = low + (high << _HALF)
        base = self._first_moment(Fraction(0))
        return ReportMoments(
            tally.people,
            tally.weight,
            tally.square,
            first=(total - base * tally.weight) / self._gain,
            second=(square - 2 * base * total + base**2 * tally.weight) / self._gain**2,
            least=self.least_spread * tally.people,
            most=self.most_spread * tally.people,
            at=(self._at[0] * tally.people, self._at[1] * tally.people, self._at[2] * tally.people),
        )

    def estimate(
        self, tally: Tally, *, population: int | None = None, scale: Fraction = Fraction(1), lineage: str = ""
    ) -> Mean:
        """Runs at the collector: the mean, unbiased and never clipped, with its standard error.

        `scale` changes nothing: views of numbers do not scale.
        """
        return self.moments(self.own(tally)).mean(self, lineage or self.signature, population)


@dataclass(frozen=True)
class ReportMoments:
    """Sums over reports, each turned into an unbiased place t between the first cell (0) and the last (1).

    Exact, and they add up over mechanisms: each report is unbiased on its own, so their mean is too.
    """

    people: int
    weight: int
    square: int
    first: Fraction
    second: Fraction
    least: Fraction
    """What the variance of these reports adds up to at least, were every weight 1; `most`: at most."""
    most: Fraction
    at: tuple[Fraction, Fraction, Fraction]
    """What it adds up to at least where people's mean place is 0, 1/2 and 1: through these it is a parabola."""

    def __add__(self, other: ReportMoments) -> ReportMoments:
        if not isinstance(other, ReportMoments):
            return NotImplemented
        return ReportMoments(
            self.people + other.people,
            self.weight + other.weight,
            self.square + other.square,
            self.first + other.first,
            self.second + other.second,
            self.least + other.least,
            self.most + other.most,
            (self.at[0] + other.at[0], self.at[1] + other.at[1], self.at[2] + other.at[2]),
        )

    @property
    def place(self) -> Fraction:
        """The mean place of all reports, unbiased and never clipped."""
        if not self.people:
            raise EmptyError("expected at least one report to estimate from")
        if not self.weight:
            raise EmptyError("the reports' weights add up to zero")
        return self.first / self.weight

    @property
    def spread(self) -> Fraction:
        """The variance of the mean place, from the scatter of the reports.

        The scatter is held within what the mechanism allows: a few reports may agree by chance, and one alone, or
        weights that nearly cancel, say nothing about it and get the most.
        """
        effective = Fraction(self.weight**2, self.square)
        least, most = self.least / self.people, self.most / self.people
        if effective <= 1:
            return most / effective
        scatter = (self.second / self.weight - self.place**2) * effective / (effective - 1)
        return min(max(scatter, least), most) / effective

    def mean(self, asked: MeanMechanism, lineage: str, population: int | None = None) -> Mean:
        """The mean in numbers of the domain that was asked about."""
        first, last = asked.line
        worth = self.people * Fraction(self.weight**2, self.square)
        low, middle, high = (math.sqrt(least / worth) * (last - first) for least in self.at)
        return Mean(
            value=first + float(self.place) * (last - first),
            stderr=math.sqrt(self.spread) * (last - first),
            least=(low, middle, high),
            n=self.people,
            domain=asked.domain,
            lineage=(lineage,),
            population=population or self.people,
        )


def _squares(count: int) -> int:
    """0^2 + 1^2 + ... + (count - 1)^2."""
    return (count - 1) * count * (2 * count - 1) // 6
