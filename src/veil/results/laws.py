"""How estimates scatter: variances in closed form, and intervals by inversion, from exact probabilities.

A report of a pure oracle supports the held value with probability p and any other with probability q (thesis 3.2). Sums
over several values need two more numbers: how often a report supports two given values at once. A `Noise` holds these
probabilities.

Of n reports, m are of people who hold a value. Its support is Bin(m, p) + Bin(n - m, q) exactly. So an interval is the
set of all m for which the support is not too surprising: no normal approximation, no variance at an estimated share,
and nothing below 0 or above n. Behind a view with a scale L a holder shows the value with probability 1/L, which is the
same law with q + (p - q) / L in the place of p. Where n_r uniform fakes are among the reports, each supporting a value
with probability u, Bin(n_r, u) is added. `SupportLaw` has these intervals, and the support that a value which nobody
holds does not exceed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args, overload

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError, ParameterError
from veil.tools.numbers import critical, two_sided

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FakeLaw:
    """Uniformly random reports that shufflers added, and how often one supports a value (`support`) or two (`pair`).

    >>> FakeLaw(2000, Fraction(1, 4), Fraction(0)).variance(), FakeLaw(2000, Fraction(1, 4), Fraction(0)).removed
    (375.0, '2,000 uniform fakes removed')
    """

    count: int
    support: Fraction
    pair: Fraction

    @property
    def removed(self) -> str:
        """Their removal as a step of the lineage."""
        return f"{self.count:,} uniform fake{'' if self.count == 1 else 's'} removed"

    @property
    def expected(self) -> float:
        """How many of them support a given value, in expectation: what is taken off its support."""
        return float(self.count * self.support)

    def variance(self, values: int = 1) -> float:
        """Variance of how often they support any of so many values, added up."""
        u = self.support
        return float(self.count * values * (u * (1 - u) + (values - 1) * (self.pair - u * u)))


class Noise(ABC):
    """How an oracle's estimates scatter, a person at a time."""

    kind: ClassVar[str]
    known: ClassVar[bool] = True
    """Whether there is a law at all."""

    @overload
    def variance(self, frequency: float) -> float: ...
    @overload
    def variance(self, frequency: Floats) -> Floats: ...
    @abstractmethod
    def variance(self, frequency: float | Floats) -> float | Floats:
        """n times the variance of an estimated frequency."""

    @abstractmethod
    def total_variance(self, values: int, frequency: float) -> float:
        """n times the variance of an estimated sum over `values` values that `frequency` of the people hold."""

    def upper(self, people: int, tail: float) -> float:
        """How many standard errors the noise of so many people exceeds with probability `tail`."""
        return critical(tail)


@dataclass(frozen=True)
class AdditiveNoise(Noise):
    """The same noise on every value, whatever is held, independent between values (histogram encoding).

    >>> AdditiveNoise(Fraction(8)).total_variance(3, 0.5)
    24.0
    """

    kind: ClassVar[str] = "additive"
    per_value: Fraction
    excess: Fraction = Fraction(0)
    """The excess kurtosis of one person's noise: 3 for Laplace's, 0 for a normal one."""

    @overload
    def variance(self, frequency: float) -> float: ...
    @overload
    def variance(self, frequency: Floats) -> Floats: ...
    def variance(self, frequency: float | Floats) -> float | Floats:
        return float(self.per_value) + 0 * frequency

    def total_variance(self, values: int, frequency: float) -> float:
        return values * float(self.per_value)

    def upper(self, people: int, tail: float) -> float:
        """The normal quantile, and Cornish and Fisher's correction (1937) for tails that are longer than normal."""
        normal = critical(tail)
        return normal + (normal**3 - 3 * normal) * float(self.excess) / people / 24


@dataclass(frozen=True)
class UnknownNoise(Noise):
    """No law is known: variances and intervals are refused rather than made up."""

    kind: ClassVar[str] = "unknown"
    known: ClassVar[bool] = False
    oracle: str

    @overload
    def variance(self, frequency: float) -> float: ...
    @overload
    def variance(self, frequency: Floats) -> Floats: ...
    def variance(self, frequency: float | Floats) -> float | Floats:
        raise InputError(f"{self.oracle} has no known variance: measure it by simulation")

    def total_variance(self, values: int, frequency: float) -> float:
        return self.variance(frequency)


@dataclass(frozen=True)
class SupportNoise(Noise):
    """Probabilities that a report supports a value (p: held, q: not) and two values (`hit`: one is held, `miss`: none).

    >>> SupportNoise(p=Fraction(1, 2), q=Fraction(1, 4), hit=Fraction(1, 8), miss=Fraction(1, 16)).variance(0.0)
    3.0
    """

    kind: ClassVar[str] = "support"
    p: Fraction
    q: Fraction
    hit: Fraction
    miss: Fraction

    @property
    def alone(self) -> bool:
        """Whether values are supported independently, up to the rounding of hash buckets to intervals of 32 bits."""
        pairs = (self.hit, self.p * self.q), (self.miss, self.q**2)
        return all(abs(chance - other) < Fraction(1, 10**6) * other for chance, other in pairs)

    def floor(self, people: int, tail: float, fakes: FakeLaw | None = None) -> float:
        """The frequency that a value which nobody holds exceeds with probability `tail` at most; exact.

        >>> round(SupportNoise(Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 16)).floor(1000, 1e-3), 4)
        0.174
        """
        # half a report above what it may be, so that rounding never decides
        among = (0, 0.0) if fakes is None else (fakes.count, float(fakes.support))
        support = least_support(people, float(self.q), tail, *among) + 0.5 - (0.0 if fakes is None else fakes.expected)
        return (support / people - float(self.q)) / float(self.p - self.q)

    @overload
    def variance(self, frequency: float) -> float: ...
    @overload
    def variance(self, frequency: Floats) -> Floats: ...
    def variance(self, frequency: float | Floats) -> float | Floats:
        """n times the variance of an estimated frequency: (3.2) of the thesis; (3.3), Var*, at frequency 0."""
        gap = self.p - self.q
        base = float(self.q * (1 - self.q) / gap**2)
        slope = float((1 - self.p - self.q) / gap)
        return base + frequency * slope

    def total_variance(self, values: int, frequency: float) -> float:
        """n times the variance of an estimated sum over `values` values that `frequency` of the people hold.

        Exact: the supports of different values in one report are correlated through `hit` and `miss`.
        """
        p, q, k = self.p, self.q, values
        pairs_miss = self.miss - q * q
        held_inside = p * (1 - p) + (k - 1) * (q * (1 - q) + 2 * (self.hit - p * q) + (k - 2) * pairs_miss)
        held_outside = k * (q * (1 - q) + (k - 1) * pairs_miss)
        gap = float((p - q) ** 2)
        return (frequency * float(held_inside) + (1 - frequency) * float(held_outside)) / gap


NOISES: dict[str, type[Noise]] = {law.kind: law for law in (AdditiveNoise, SupportNoise, UnknownNoise)}


Inversion = Literal["mid-p", "exact", "normal"]
"""How intervals are made. "mid-p" counts the observed support half: it covers its level on average, and is the default.
"exact" counts it in full: it covers its level always, and is wider. "normal" is the estimate and standard errors to
either side, to compare with: it may go below 0, and does not hold for few people or rare values.
"""

_MOST_SOLVED = 1 << 13  # different supports; of more, the rest is interpolated
_ALIKE = 1e-6  # reports, or a share of a tail: too little to tell
_SURE = 1e-14  # p and q stay this far from 0 and 1, where logarithms end


def check_inversion(kind: Any) -> Inversion:
    """The kind of interval, if there is one of that name."""
    if kind not in get_args(Inversion):
        raise ParameterError(f"an interval's kind is one of {', '.join(get_args(Inversion))}")
    found: Inversion = kind
    return found


@dataclass(frozen=True)
class SupportLaw:
    """How support scatters: `people` reports, supporting a value with p where it is held and q where not.

    `fakes` reports more are nobody's, and support it with u. `fixed` is 1 where these people are all that a share is
    about: who holds the value is fixed then. Where they are a random sample it is smaller, down to 0 in a large
    population: see `kernels.tails.shares_at`.
    """

    people: int
    p: float
    q: float
    fixed: float = 1.0
    fakes: int = 0
    u: float = 0.0

    def supports(self, shares: Floats) -> Floats:
        """The supports that these shares were estimated from."""
        return np.rint(self.people * (self.q + (self.p - self.q) * shares) + self.fakes * self.u)

    def shares(self, supports: Floats, level: float, kind: Inversion) -> tuple[Floats, Floats]:
        """The ends of intervals for the share of holders, one for each support.

        A support that is unusually low even for a value that nobody holds would leave an interval of next to nothing.
        It is taken for one that is one standard deviation low, which can only make the interval wider (the
        power-constrained limits of Cowan, Cranmer, Gross and Vitells, 2011); likewise at the other end.

        >>> law = SupportLaw(people=100, p=0.5, q=0.1)
        >>> low, high = law.shares(np.array([30.0]), 0.95, "mid-p")
        >>> low.tolist(), high.tolist()
        ([0.32], [0.72])
        """
        two_sided(level)  # refuses a bad level
        tail, n = (1 - level) / 2, self.people
        added, scatter = self.fakes * self.u, self.fakes * self.u * (1 - self.u)
        few = n * self.q + added - math.sqrt(n * self.q * (1 - self.q) + scatter)
        many = n * self.p + added + math.sqrt(n * self.p * (1 - self.p) + scatter)
        part = 0.5 if kind == "mid-p" else 1.0
        low = self._solve(np.minimum(supports, math.floor(many)), part, tail)
        high = self._solve(np.maximum(supports, math.ceil(few)), 1 - part, 1 - tail)
        if self.fixed == 1.0:  # whole people: the least and the most that are not too surprising
            low, high = np.ceil(np.maximum(low * n - 1e-3, 0.0)) / n, np.floor(high * n + 1e-3) / n
        return low, np.maximum(low, high)

    def _solve(self, supports: Floats, part: float, target: float) -> Floats:
        """The shares at which the tails of these supports are the target, each different support once."""
        from veil.kernels.tails import shares_at

        different, where = np.unique(supports.astype(np.int64), return_inverse=True)
        solved = different
        if len(different) > _MOST_SOLVED:
            solved = different[np.linspace(0, len(different) - 1, _MOST_SOLVED).astype(np.int64)]
        p, q, u = (min(max(chance, _SURE), 1 - _SURE) for chance in (self.p, self.q, self.u))
        reports = float(self.people), p, q, float(self.fakes), u
        shares = shares_at(solved.astype(np.float64), *reports, self.fixed, part, target)
        if len(solved) < len(different):
            from scipy.interpolate import PchipInterpolator

            shares = PchipInterpolator(solved, shares)(different)
        return np.asarray(shares[where])


def least_support(people: int, q: float, tail: float, fakes: int = 0, u: float = 0.0) -> int:
    """The least support k that a value which nobody holds exceeds with probability `tail` at most.

    Its support is Bin(people, q) + Bin(fakes, u).

    >>> least_support(1000, 0.1, 0.05 / 70), least_support(1000, 0.1, 0.05 / 70, fakes=500, u=0.1)
    (131, 188)
    """
    from scipy.special import bdtrc, betainc, gammaln, xlog1py, xlogy

    if not fakes:
        return _least(lambda k: float(betainc(k + 1, people - k, q)) <= tail, -1, people)
    every = people + fakes
    if fakes * abs(u - q) <= _ALIKE:  # one binomial, with the larger of the two chances
        return least_support(every, max(q, u), tail)
    # between the binomials in which all reports have the smaller or the larger chance
    low, high = (least_support(every, chance, tail) for chance in (min(q, u), max(q, u)))
    most = least_support(fakes, u, tail * _ALIKE)  # what is left beyond counts as if it always exceeded
    j = np.arange(most + 1, dtype=np.float64)
    level = gammaln(fakes + 1) - gammaln(j + 1) - gammaln(fakes - j + 1)
    chances = np.exp(level + xlogy(j, u) + xlog1py(fakes - j, -u))
    kept = chances > 0.0
    j, chances = j[kept], chances[kept]

    def rare(k: int) -> bool:
        needed = k - j  # of people's reports, more than so many
        beyond = np.where(needed < 0, 1.0, bdtrc(np.clip(needed, 0, people), people, q))
        return float(chances @ beyond) + tail * _ALIKE <= tail

    return _least(rare, low - 1, high + 1)


def _least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least integer above `low` for which something holds that holds for `high`, and from some point on."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def heaviest(people: int, effective: float) -> float:
    """The largest weight that these sums allow, where the mean weight is 1 (Samuelson's inequality, 1968).

    >>> heaviest(100, 100.0), round(heaviest(100, 50.0), 2)
    (1.0, 10.95)
    """
    return 1 + math.sqrt(max((people - 1) * (people / effective - 1), 0.0))


def weighted_interval(
    found: Floats, people: int, effective: float, p: float, q: float, rest: float, level: float
) -> tuple[Floats, Floats]:
    """Intervals of weighted shares, whoever carries the weight: the score, with the largest variance there can be.

    How much of the squared weights the holders of a value have is not known: at most all of it, and at most the
    heaviest weight times their sum. `rest` is how much of a sample's own scatter there is: 0 where all were asked.

    >>> low, high = weighted_interval(np.array([0.1]), 1000, 800.0, 0.5, 0.1, 0.0, 0.95)
    >>> float(low[0].round(2)), float(high[0].round(2))
    (0.03, 0.2)
    """
    noise, gap = q * (1 - q) / effective, (p - q) ** 2
    own = p * (1 - p) + rest * gap
    alone, shared = heaviest(people, effective) / people, 1 / effective
    ends = []
    for held in ((0.0, alone / 2, alone), (shared, shared, shared)):
        variances = [np.full(len(found), (own * most + noise) / gap) for most in held]
        ends.append(score_interval(found, (variances[0], variances[1], variances[2]), level))
    low, high = np.maximum(ends[0][0], ends[1][0]), np.minimum(ends[0][1], ends[1][1])
    return np.minimum(low, high), np.maximum(low, high)


def heaviest_deviation(people: int, effective: float, q: float, tail: float) -> float:
    """How far above its mean a weighted support of an absent value may be, per person of mean weight, but for `tail`.

    A bound for all weights that are not negative and have these sums: Bennett's inequality (1962), and the sum of
    convex functions in it is largest where one person has all the weight that the sum of squares allows and the others
    have equal weights (the equal variable theorem, Cirtoaje 2007).

    >>> plain = heaviest_deviation(10_000, 10_000.0, 0.25, 0.001)
    >>> heavy = heaviest_deviation(10_000, 5_000.0, 0.25, 0.001)
    >>> round(plain, 4), round(heavy, 4)
    (0.0163, 0.0327)
    """
    from scipy.optimize import minimize_scalar

    largest = heaviest(people, effective)
    others = (people - largest) / max(people - 1, 1)

    def deviation(log_rate: float) -> float:
        rate = math.exp(log_rate) * (1 - q)
        exponents = sum(
            count * (math.expm1(rate * weight) - rate * weight)
            for count, weight in ((1, largest), (people - 1, others))
        )
        return (q / (1 - q) * exponents - math.log(tail)) * (1 - q) / rate / people

    most = math.log(500 / largest / (1 - q))  # beyond, the exponential overflows
    return float(minimize_scalar(deviation, bounds=(most - 40, most), method="bounded").fun)


def score_interval(found: Floats, parabola: tuple[Floats, Floats, Floats], level: float) -> tuple[Floats, Floats]:
    """All shares f of 0 to 1 from which the found ones are at most so many standard errors away, as they are at f.

    `parabola` has the variance at the shares 0, 1/2 and 1, through which it is a parabola. Wilson's interval (1927):
    unlike one with the variance at the found share it holds near 0 and 1.

    >>> found, flat = np.array([0.3]), tuple(np.array([0.01]) for _ in range(3))
    >>> [round(float(end[0]), 3) for end in score_interval(found, flat, 0.95)]
    [0.104, 0.496]
    """
    square = two_sided(level) ** 2
    none, half, all_of_them = parabola
    second, first = 2 * (none - 2 * half + all_of_them), 4 * half - 3 * none - all_of_them
    low = _score_end(np.minimum(found, 1 + np.sqrt(all_of_them)), square, none, first, second, -1)
    high = _score_end(np.maximum(found, -np.sqrt(none)), square, none, first, second, +1)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _score_end(found: Floats, square: float, none: Floats, first: Floats, second: Floats, side: int) -> Floats:
    """An end of (found - f)^2 = square (none + first f + second f^2)."""
    a, b, c = 1 - square * second, -(2 * found + square * first), found**2 - square * none
    return np.asarray((-b + side * np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))) / (2 * a))
