"""Bands from unbiased estimates of the levels of a tree: they hold for any distribution of people.

The best linear estimate of a tree is unbiased, and its variance is known exactly: the noise of every level's reports,
and that each level asked other people, drawn at random from all. A person is in the sample of one level only, so an
excess in one level is missing in the others. With an answer's coefficients a, A that of the node which holds a person,
S a variance between people, n of them in a level and N in all,

    Var = sum over levels of (noise(a) + S(A)) / n  -  S(what each person adds to the answer) / N.

Within a bucket nothing is known: an interval inside one reaches from the lower bound before it to the upper bound
behind it. Where the bucket is heavy, the truth cannot be near both ends, and each bound needs to hold on its own only
(Imbens and Manski, Econometrica 2004). `veil.numeric` estimates the levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.results.bands.base import Bands
from veil.results.laws import SupportNoise
from veil.tools.numbers import two_sided
from veil.tree import Tree, TreeAnswers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def support_law(noise: SupportNoise) -> list[float]:
    """n times the variance of a sum of coefficients a times estimated frequencies f, as factors of four sums.

    Of a^2, of a (squared), of f a^2, and of f a (times that of a). Exact, from how often a report supports two values.

    >>> from veil import GRR
    >>> law = support_law(GRR(1.0, 4).noise)
    >>> bool(abs(law[0] + law[1] - GRR(1.0, 4).noise.variance(0.0)) < 1e-12)  # one value that nobody holds
    True
    """
    p, q = noise.p, noise.q
    both, none = noise.hit - p * q, noise.miss - q * q
    factors = (q * (1 - q) - none, none, p * (1 - p) - q * (1 - q) - 2 * both + 2 * none, 2 * both - 2 * none)
    return [float(factor / (p - q) ** 2) for factor in factors]


def differences_law(moment: float) -> list[float]:
    """The same for estimated differences of pairs, one report of which adds `moment` in square to each of them."""
    return [moment, 0.0, -1.0, 0.0]


@dataclass(frozen=True, eq=False)
class LevelBands(Bands):
    """Intervals from the unbiased levels of a tree over the buckets; cut to what can be, and reaching to what is shown.

    `domain`, `cells` and `masses` are the distribution's.

    >>> from veil import Interval, simulate
    >>> from veil.numeric import Hierarchy
    >>> found = simulate(Hierarchy(2.0, Interval(0, 10), buckets=16), [2.0] * 6000 + [7.0] * 14000, seed=1)
    >>> low, high = found.bands.range(5.0, 10.0)
    >>> bool(low < 0.7 < high), round(high - low, 2)
    (True, 0.03)
    """

    domain: Numeric
    cells: Ints
    masses: Floats
    branching: int
    """Of the tree over the buckets."""
    unbiased: Floats
    """The buckets' masses by the linear estimate: they add up to 1, and may be negative."""
    likely: Floats
    """Masses without negative ones: what variances are computed at."""
    variances: Floats
    """What least squares weighed the levels by; none where pairs of a binary tree were compared."""
    laws: Floats
    """The noise of each level: see `support_law`."""
    effective: Floats
    """How many people without weights the reports of each level are worth."""
    population: float
    """How many people all of this is about, in the same measure."""
    kind: ClassVar[str] = "levels"

    @property
    def rests_on(self) -> str:
        return "Intervals from unbiased counts: they hold however people are distributed."

    def __repr__(self) -> str:
        return f"LevelBands(of {len(self.laws)} levels, {len(self.masses)} buckets)"

    # -- answers -----------------------------------------------------------------------------------------------------

    def runs(self, starts: Ints, level: float = 0.95) -> tuple[Floats, Floats]:
        ends = np.append(starts[1:], len(self.masses))
        low, high = self._within(starts, ends, starts, ends, level)
        return _stretched(low, high, np.add.reduceat(self.masses, starts))

    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        shown = np.atleast_1d(self.estimate.cdf(x))  # refuses what is no number
        sure, maybe = self._up_to(self._numbers(x))
        none = np.zeros_like(sure)
        low, high = _stretched(*self._within(none, sure, none, maybe, level), shown)
        return (float(low[0]), float(high[0])) if np.ndim(x) == 0 else (low, high)

    def quantile_numbers(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """From the first to the last bucket whose bounds leave room for q: below it at its start, above it at its end.

        The bucket that holds the quantile is one of them whenever its own two bounds hold, whatever the others do.
        """
        self._of(self.likely).quantile(q)  # refuses bad levels
        wanted = np.atleast_1d(np.asarray(q, dtype=np.float64))
        reach = self._reaches(level)
        first, last = _crossed(self._running, reach * self._errors[:-1], reach * self._errors[1:], wanted)
        lows, highs = self._ends
        low, high = lows[first], highs[np.maximum(first, last)]
        if self.estimate.proper:
            low, high = _stretched(low, high, self.estimate.quantile_numbers(wanted))
        return (float(low[0]), float(high[0])) if np.ndim(q) == 0 else (low, high)

    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[float, float]:
        shown = self.estimate.range(lo, hi)  # refuses bad ends
        low, high = self._within(*self._inner_outer(lo, hi), level)
        return _pair(*_stretched(low, high, np.array([shown])))

    def width(self, lo: Any, hi: Any, level: float = 0.95) -> float:
        """How wide the interval of a range is before it is cut to what can be: what planning compares."""
        low, high = self._uncut(*self._inner_outer(lo, hi), level)
        return float(high[0] - low[0])

    def mean_numbers(self, level: float = 0.95) -> tuple[float, float]:
        lows, highs = self._ends
        low, high = self._sum_between(lows, highs, level)
        low, high = _stretched(low, high, self.estimate.mean_number)
        return _pair(np.maximum(low, lows[0]), np.minimum(high, highs[-1]))

    def variance(self, level: float = 0.95) -> tuple[float, float]:
        """Of squares around the mean; the mean's own doubt is taken off below, so that it holds at least as often."""
        lows, highs = self._ends
        middle = float(self.unbiased @ (lows + highs)) / 2
        most = np.maximum((lows - middle) ** 2, (highs - middle) ** 2)
        least = np.where(
            (lows <= middle) & (middle <= highs), 0.0, np.minimum((lows - middle) ** 2, (highs - middle) ** 2)
        )
        low, high = self._sum_between(least, most, level)
        least_mean, most_mean = self.mean_numbers(level)
        low = low - max(middle - least_mean, most_mean - middle) ** 2
        low, high = _stretched(low, high, self.estimate.variance())
        return _pair(np.maximum(low, 0.0), np.minimum(high, (highs[-1] - lows[0]) ** 2 / 4))

    # -- how they come about -----------------------------------------------------------------------------------------

    @cached_property
    def _answers(self) -> TreeAnswers:
        asked = self.variances if len(self.variances) else None
        return TreeAnswers(Tree(len(self.masses), self.branching), self.likely, asked)

    @cached_property
    def _running(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.unbiased)])

    @cached_property
    def _running_likely(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.likely)])

    @property
    def _discrete(self) -> bool:
        return isinstance(self.domain, Integers)

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """The smallest and the largest value of each bucket."""
        inner = 0.5 if self._discrete else 0.0
        return self.estimate.edges[:-1] + inner, self.estimate.edges[1:] - inner

    def stderr(self, los: Any, his: Any) -> Floats:
        """The standard error of the unbiased mass of the buckets [lo, hi), for each pair."""
        masses = self._running_likely[his] - self._running_likely[los]
        return self._stderr(self._answers.of_ranges(los, his), masses * (1 - masses))

    def _stderr(self, moments: Floats, scatter: Any) -> Floats:
        """From sums by level; `scatter` is the variance between people of what each adds to the answer."""
        sums, squares, held, held_squares = np.moveaxis(moments[..., 1:, :], -1, 0)
        alone, crossed, own, mixed = self.laws.T
        noise = alone * squares + crossed * sums**2 + own * held_squares + mixed * held * sums
        among = max(self.population / max(self.population - 1, 1.0), 1.0)
        sampled = among * (((held_squares - held**2) / self.effective).sum(axis=-1) - scatter / self.population)
        return np.asarray(np.sqrt(np.maximum((noise / self.effective).sum(axis=-1) + sampled, 0.0)))

    def _numbers(self, x: Any) -> Floats:
        if self._discrete:
            return np.atleast_1d(np.asarray(x, dtype=np.float64))
        return self.domain.numbers([x] if np.ndim(x) == 0 else x)

    def _up_to(self, numbers: Floats) -> tuple[Ints, Ints]:
        """How many buckets lie at or below each number for sure, and how many in part.

        A bucket holds its lower end: people at an edge are in the bucket behind it. The last one holds both ends.
        """
        edges = self.estimate.edges
        if self._discrete:
            numbers = np.floor(numbers) + 0.5
        sure = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(self.masses))
        whole = (numbers < edges[0]) | (numbers >= edges[-1]) | ((edges[sure] == numbers) & self._discrete)
        return sure, np.where(whole, sure, sure + 1)

    def _inner_outer(self, lo: Any, hi: Any) -> tuple[Ints, Ints, Ints, Ints]:
        """Which buckets [first, end) lie between two values for sure, and which in part."""
        first, last = (self._numbers(end) for end in (lo, hi))
        sure, maybe = self._up_to(last)
        if self._discrete:
            maybe_not, surely_not = self._up_to(np.ceil(first) - 1)
        else:
            edges, most = self.estimate.edges, len(self.masses)
            maybe_not = np.clip(np.searchsorted(edges, first, side="right") - 1, 0, most)
            surely_not = np.clip(np.searchsorted(edges, first, side="left"), 0, most)
        return np.minimum(surely_not, sure), sure, np.minimum(maybe_not, sure), maybe

    def _within(self, los: Ints, his: Ints, outer_los: Ints, outer_his: Ints, level: float) -> tuple[Floats, Floats]:
        """The same as `_uncut`, cut to what can be."""
        low, high = self._uncut(los, his, outer_los, outer_his, level)
        return np.clip(np.minimum(low, high), 0.0, 1.0), np.clip(np.maximum(low, high), 0.0, 1.0)

    def _uncut(self, los: Ints, his: Ints, outer_los: Ints, outer_his: Ints, level: float) -> tuple[Floats, Floats]:
        """For masses between those of [lo, hi) and of the outer buckets around it, which reach at most one further."""
        inner = self._running[his] - self._running[los]
        outer = self._running[outer_his] - self._running[outer_los]
        low_error, high_error = self.stderr(los, his), self.stderr(outer_los, outer_his)
        ends = np.hypot(self.stderr(outer_los, los), self.stderr(his, outer_his))
        gap = np.maximum(outer - inner - two_sided(level) * ends, 0.0)  # what surely lies between
        reach = _reach(level, gap / np.maximum(np.maximum(low_error, high_error), 1e-300))
        # what is far below 0, or above 1, is taken for one standard error away: else next to nothing would be left
        least, most = np.minimum(inner, 1 + low_error), np.maximum(outer, -high_error)
        return least - reach * low_error, most + reach * high_error

    @cached_property
    def _errors(self) -> Floats:
        """Standard errors of the fraction below each edge."""
        edges = np.arange(len(self.masses) + 1)
        return self.stderr(np.zeros_like(edges), edges)

    def _reaches(self, level: float) -> Floats:
        """How many standard errors the bounds at the two ends of each bucket need."""
        edges = np.arange(len(self.masses) + 1)
        sure = np.maximum(self.unbiased - two_sided(level) * self.stderr(edges[:-1], edges[1:]), 0.0)
        return np.asarray(_reach(level, sure / np.maximum(np.maximum(self._errors[:-1], self._errors[1:]), 1e-300)))

    def _sum_between(self, lows: Floats, highs: Floats, level: float) -> tuple[Any, Any]:
        """For a sum over people of something that lies between a bucket's two coefficients."""
        ends, errors = [], []
        for coefficients in (lows, highs):
            likely = float(self.likely @ coefficients)
            scatter = float(self.likely @ (coefficients - likely) ** 2)
            ends.append(float(self.unbiased @ coefficients))
            errors.append(float(self._stderr(self._answers.of_leaves(coefficients), scatter)))
        reach = _reach(level, np.maximum(ends[1] - ends[0], 0.0) / max(*errors, 1e-300))
        return ends[0] - reach * errors[0], ends[1] + reach * errors[1]


def _reach(level: float, gap: Any) -> Any:
    """How many standard errors both ends need, so that the worst place between them is covered with this level.

    `gap` is how far the ends are apart, in standard errors: from the two-sided reach at 0 to the one-sided one.

    >>> _reach(0.95, np.array([0.0, 1.0, 10.0])).round(3).tolist()
    [1.96, 1.681, 1.645]
    """
    from scipy.special import ndtr

    gaps, reach = np.atleast_1d(gap), np.full(np.size(gap), two_sided(level))
    apart = np.flatnonzero(gaps > 0)
    low, high = np.zeros(len(apart)), reach[apart]
    for _ in range(40):
        middle = (low + high) / 2
        enough = ndtr(middle + gaps[apart]) - ndtr(-middle) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    reach[apart] = high
    return reach if np.ndim(gap) else float(reach[0])


def _crossed(below: Floats, low_errors: Floats, high_errors: Floats, wanted: Floats) -> tuple[Ints, Ints]:
    """The first and the last bucket that may hold each quantile: whose bounds leave room for it."""
    lows, highs = below[:-1] - low_errors, below[1:] + high_errors
    first, last = [], []
    for level in wanted:
        may = np.flatnonzero((lows <= level) & (level <= highs))
        near = int(np.argmin(np.abs((lows + highs) / 2 - level)))
        first.append(int(may[0]) if len(may) else near)
        last.append(int(may[-1]) if len(may) else near)
    return np.array(first), np.array(last)


def _stretched(low: Any, high: Any, shown: Any) -> tuple[Any, Any]:
    """The interval, and what is shown with it: where masses were made possible ones, it need not lie within."""
    return np.minimum(low, shown), np.maximum(high, shown)


def _pair(low: Any, high: Any) -> tuple[float, float]:
    return float(np.ravel(low)[0]), float(np.ravel(high)[0])
