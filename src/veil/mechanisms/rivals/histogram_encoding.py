"""Histogram encoding: SHE with summation, and THE with thresholding (thesis 3.3.2).

The noise of SHE comes from exact coins on a grid of integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import InputError, ParameterError
from veil.mechanisms.oracle import FrequencyOracle
from veil.mechanisms.oracles.unary import UnaryEncoding
from veil.privacy import WORD, Guarantee, coin_threshold, decimal_text, exp_below, exp_near, root_below
from veil.reports.layout import Columns, Field, Layout
from veil.reports.tally import Tally
from veil.results.laws import AdditiveNoise
from veil.tools.json_documents import Json, number
from veil.tools.numbers import is_int

_DRAWS_AT_ONCE = 1 << 17  # coordinates: their state of a few megabytes bounds the memory
_TAIL_BITS = 40
_MOST_LEVELS = 1 << 16  # a coordinate takes two bytes at most
_FINEST = 1024
_EXACT_BITS = 1024
_MOST = 2**63 - 1


@dataclass(frozen=True, init=False)
class SHE(FrequencyOracle):
    """A number for every value, 1 for the held one and 0 for the others, each with two-sided geometric noise.

    The noise lives on the integers, `grid` steps to one unit: x has probability proportional to alpha^|x|. It comes
    from coins alone (zero or not, the sign, then a run of heads), so no bit of a report is left over from floating
    point. A coordinate is clamped to -reach .. grid + reach. Thesis 3.3.2.

    Guarantee: one step changes a probability by at most 1 / alpha; two values differ in two coordinates by `grid` steps
    each, so the ratio is alpha^(-2 grid) <= e^eps exactly, with alpha = T / 2^64 rounded up. Clamping merges reports.

    >>> oracle = SHE(epsilon=1.0, domain=10)
    >>> oracle.guarantee.within(1.0), oracle.layout.size, round(oracle.variance(1), 2)
    (True, 10, 7.84)
    """

    grid: int
    reach: int
    name: ClassVar[str] = "SHE"

    def __init__(self, epsilon: float, domain: DomainLike, grid: int = 1, reach: int | None = None) -> None:
        super().__init__(epsilon, domain)
        if not self.domain.listable:
            raise ParameterError("SHE sends a number for every value: the domain must be listable (2^24 values)")
        if not is_int(grid) or not 1 <= grid <= _FINEST:
            raise ParameterError(f"a grid has between 1 and {_FINEST} steps")
        object.__setattr__(self, "grid", int(grid))
        widest = (_MOST_LEVELS - 1 - self.grid) // 2
        chosen = _reach_for(self._further, widest) if reach is None else reach
        if not is_int(chosen) or not 1 <= chosen <= widest:
            raise ParameterError(f"the noise reaches between 1 and {widest} steps")
        object.__setattr__(self, "reach", int(chosen))

    def parameters(self) -> Json:
        return {"grid": self.grid, "reach": self.reach}

    # -- the noise, exactly ----------------------------------------------------------------------------------------

    @cached_property
    def _further(self) -> int:
        return coin_threshold(1 / root_below(exp_below(self.epsilon), 2 * self.grid), up=True)

    @cached_property
    def _zero(self) -> int:
        # P(0) / P(1) = 2 z / ((1 - z) (1 - alpha)) is at most 1 / alpha just when z <= (1 - alpha) / (1 + alpha).
        return coin_threshold((1 - self.alpha) / (1 + self.alpha))

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"zero": self._zero, "further": self._further}

    @property
    def alpha(self) -> Fraction:
        """How much less likely one step further is."""
        return Fraction(self._further, WORD)

    def _tail(self, steps: int) -> Fraction:
        """The probability of noise of at least `steps` steps (at least one) to one side."""
        return (1 - Fraction(self._zero, WORD)) / 2 * _power(self._further, steps - 1)

    @cached_property
    def bias_bound(self) -> Fraction:
        """What clamping adds to the mean of a coordinate that is not held, and takes from one that is; in units.

        `shares` takes it out again, so estimates are unbiased; beyond 16 steps powers of alpha are rounded to 2^-1024,
        which leaves a bias below 2^-900.
        """
        # Clamping at t takes the sum of the tails beyond t: tail(t + 1) / (1 - alpha), at -reach and at grid + reach.
        near, far = self._tail(self.reach + 1), self._tail(self.grid + self.reach + 1)
        return (near - far) / (1 - self.alpha) / self.grid

    @cached_property
    def noise(self) -> AdditiveNoise:
        # Of the clamped noise, exactly; the same for a held coordinate, which is its mirror image. E[x^2] is the sum of
        # (2 m - 1) P(|x| >= m) over either side.
        square = self._second_moment(self.reach) + self._second_moment(self.grid + self.reach)
        spread = square / self.grid**2 - self.bias_bound**2
        # kurtosis of two-sided geometric noise before it is clamped, which only takes from it
        longer = 3 + (1 - self.alpha) ** 2 / (2 * self.alpha)
        return AdditiveNoise(spread / (1 - 2 * self.bias_bound) ** 2, longer)

    def _second_moment(self, limit: int) -> Fraction:
        """The sum of (2 m - 1) tail(m) for m = 1 .. limit, in closed form."""
        a, last = self.alpha, _power(self._further, limit)
        ones = (1 - last) / (1 - a)
        places = (1 - (limit + 1) * last + limit * a * last) / (1 - a) ** 2
        return self._tail(1) * (2 * places - ones)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(1 / self.alpha ** (2 * self.grid))

    # -- on the device ---------------------------------------------------------------------------------------------

    @property
    def levels(self) -> int:
        """How many values a coordinate can take."""
        return self.grid + 2 * self.reach + 1

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("histogram", self.levels, count=self.domain.size),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        columns = self.layout.empty(len(codes))
        for rows in self._blocks(len(codes)):
            held = codes[rows].astype(np.int64)
            noisy = self._draw_noise(len(held) * self.domain.size, source).reshape(len(held), self.domain.size)
            noisy[np.arange(len(held)), held] += self.grid
            columns["histogram"][rows] = np.clip(noisy, -self.reach, self.grid + self.reach) + self.reach
        return columns

    def _draw_noise(self, count: int, source: Source) -> NDArray[np.int64]:
        """Coins for all coordinates: zero or not; for those that are not, the signs; then rounds of "one step further".

        The run ends where no held or other coordinate shows it, so the number of tosses does not depend on the value.
        """
        steps = np.zeros(count, dtype=np.int64)
        running = np.flatnonzero(~source.coin(self._zero, count))
        signs = np.where(source.coin(WORD // 2, len(running)), -1, 1)
        for _ in range(self.grid + self.reach):
            steps[running] += signs
            further = source.coin(self._further, len(running))
            running, signs = running[further], signs[further]
            if not len(running):
                break
        return steps

    # -- at the collector ------------------------------------------------------------------------------------------

    def counts(
        self, columns: Columns, candidates: NDArray[Any] | None, weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """The sums of the coordinates, in steps of the grid."""
        histograms = columns["histogram"]
        if weights is not None and int(np.abs(weights).sum()) > _MOST // self.levels:
            raise InputError("these weights are too large: their products with the reports do not fit into 64 bits")
        chosen = slice(None) if candidates is None else candidates.astype(np.int64)
        total = np.zeros(self.tally_size(candidates), dtype=np.int64)
        for rows in self._blocks(len(histograms)):
            some = histograms[rows][:, chosen]
            total += some.sum(axis=0, dtype=np.int64) if weights is None else weights[rows] @ some.astype(np.int64)
        return total - self.reach * (len(histograms) if weights is None else int(weights.sum()))

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        # A coordinate has mean b where its value is not held and 1 - b where it is: clamping shifts both inwards.
        clamped = float(self.bias_bound)
        return np.asarray((tally.counts / (tally.weight * self.grid) - clamped) / (1 - 2 * clamped))

    def _blocks(self, rows: int) -> Iterator[slice]:
        step = max(1, _DRAWS_AT_ONCE // self.domain.size)
        return (slice(start, start + step) for start in range(0, rows, step))


def _power(threshold: int, exponent: int) -> Fraction:
    """(threshold / 2^64)^exponent in multiples of 2^-1024, rounded down: exact up to an exponent of 16."""
    result, square = 1 << _EXACT_BITS, threshold << _EXACT_BITS - 64
    while exponent:
        if exponent & 1:
            result = result * square >> _EXACT_BITS
        square = square * square >> _EXACT_BITS
        exponent >>= 1
    return Fraction(result, 1 << _EXACT_BITS)


def _reach_for(threshold: int, widest: int) -> int:
    """The fewest steps that noise exceeds with probability 2^-40 at most, or the most that two bytes have room for."""
    low, high = 1, widest
    while low < high:
        middle = (low + high) // 2
        if _power(threshold, middle) * 2**_TAIL_BITS <= 1:
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True, init=False)
class THE(UnaryEncoding):
    """Add Laplace(2 / eps) noise to the one-hot vector and report which coordinates exceed theta, one bit each.

    The comparison happens on the device, by exact coins with the probabilities that the noise has beyond the threshold:
    p = 1 - e^((theta - 1) eps / 2) / 2 for the held value and q = e^(-theta eps / 2) / 2 for the others. Reports of
    noisy numbers thresholded at the collector have the same distribution of bits, are 64 times longer, and leak through
    the low bits of doubles. Without `theta` the best one is taken. Thesis 3.3.2.

    Guarantee: p (1 - q) / (q (1 - p)) exactly, below e^eps: thresholding gives away less than the noisy numbers would,
    and the guarantee says how much.

    >>> round(THE(epsilon=1.0, domain=10, theta=1.0).variance(1), 2)
    5.46
    """

    theta: float
    name: ClassVar[str] = "THE"
    tight: ClassVar[bool] = False

    def __init__(self, epsilon: float, domain: DomainLike, theta: float | None = None) -> None:
        super().__init__(epsilon, domain)
        chosen = best_theta(self.epsilon) if theta is None else theta
        if isinstance(chosen, bool) or not isinstance(chosen, (int, float)) or not 0.5 <= chosen <= 1:
            raise ParameterError("theta lies between 0.5 and 1")
        object.__setattr__(self, "theta", float(chosen))
        if not self.guarantee.within(self.epsilon):  # true for all theta; the proof is in docs/mechanisms/the.md
            raise ParameterError("this theta breaks the promise of epsilon")

    @classmethod
    def read_parameters(cls, document: Json) -> dict[str, Any]:
        return {key: number(value) if key == "theta" else value for key, value in document.items()}

    def parameters(self) -> Json:
        return {"theta": decimal_text(self.theta)}

    @cached_property
    def held(self) -> int:
        return coin_threshold(1 - exp_near((Fraction(self.theta) - 1) * Fraction(self.epsilon) / 2) / 2)

    @cached_property
    def others(self) -> int:
        return coin_threshold(exp_near(-Fraction(self.theta) * Fraction(self.epsilon) / 2) / 2, up=True)


def best_theta(epsilon: float) -> float:
    """The theta between 1/2 and 1 with the smallest Var*, to four decimals.

    >>> 0.5 < best_theta(1.0) < 1
    True
    """

    def variance(theta: float) -> float:
        p = 1 - math.exp((theta - 1) * epsilon / 2) / 2
        q = math.exp(-theta * epsilon / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    return min((i / 10_000 for i in range(5_000, 10_001)), key=variance)
