"""Bands of a wave's distribution without assumptions: intervals over all distributions that reports allow.

A distribution is possible if, in each of some windows of the reports' grid, its expected share of reports lies within
an exact interval around the observed share. The smallest and the largest value of a linear answer (a share of the
people, a mean) over all possible distributions is one linear programme each. `binomial_ends` and `Programme` say why
the bounds always hold. They are wide where a wave cannot tell distributions apart.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Numeric
from veil.results.bands.base import Bands
from veil.tools.numbers import two_sided

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ROUNDING = 1e-6
"""What a bound gives away for the solver: it meets constraints to about 1e-7."""
_FINE = 256
_SOLVED = 64
_CENTRES = 9
_NOBODY = 1e-9


@dataclass(frozen=True, eq=False)
class FreeBands(Bands):
    """Intervals that hold whatever the people hold: the wave's reports and nothing else decide them.

    Guarantee: with a probability of at least `level`, all intervals of that level hold at once, for the distribution of
    the people who reported, wherever they lie within buckets. It is over the devices' coins alone: people are fixed.
    (Where a share of a larger population was asked, and people of it drawn independently, the same holds for that.)
    With weights it holds for weights that do not depend on the reports.

    `windows` are stretches of the grid of reports and `counts` the reports in them (with weights: their sums), chosen
    out of `tested` windows: 1 - level is shared out among all of these. How that is done: `veil.numeric.free_bands`.

    >>> from veil import Interval, SquareWave
    >>> from veil.entropy import SeededForExperiments
    >>> from veil.numeric import free_bands
    >>> wave = SquareWave(epsilon=2.0, domain=Interval(0, 100), buckets=64)
    >>> tally = wave.tally(wave.randomize(np.linspace(20, 60, 50_000), SeededForExperiments(1)))
    >>> low, high = free_bands(wave, tally, wave.estimate(tally)).cdf(40)
    >>> 0.3 < low < 0.5 < high < 0.7
    True
    """

    domain: Numeric
    cells: Ints
    masses: Floats
    outputs: int
    plateau: int
    ramp: int
    chance: Fraction
    """A report is any of `outputs` cells; with this chance the held one plus offsets below `plateau` and `ramp`."""
    windows: Ints
    counts: Ints
    tested: int
    reports: int
    """How many there are in all; with weights, their sum."""
    worth: float | None = None
    """Of how many reports without weights those with weights are worth."""
    because: str = ""
    """Why these are shown, where a smooth distribution was assumed first."""
    kind: ClassVar[str] = "free"

    @property
    def rests_on(self) -> str:
        held = "The errors hold for any distribution: they are the widest that the reports leave possible."
        return f"{self.because} {held}".strip()

    @property
    def rests_briefly(self) -> str:
        return "whatever the distribution"

    def runs(self, starts: Ints, level: float = 0.95) -> tuple[Floats, Floats]:
        """For the mass of runs of neighbouring buckets.

        Of more than 64 runs, `high` is that of 64 longer ones around them, and `low` is 0: both hold.
        """
        many, bounds = len(starts), self.cells[np.append(starts, len(self.masses))]
        longer = np.arange(min(many, _SOLVED) + 1) * many // min(many, _SOLVED)
        ends = [(int(first), int(end)) for first, end in zip(bounds[longer[:-1]], bounds[longer[1:]], strict=True)]
        high = np.array([self._share("most", first, end, level) for first, end in ends])
        if many > _SOLVED:
            return np.zeros(many), np.repeat(high, np.diff(longer))
        return np.array([self._share("least", first, end, level) for first, end in ends]), high

    def cdf(self, x: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the fraction of people at or below x, within a bucket as at its ends.

        Of more than 64 points, 64 are solved; the others have the low of the one before and the high of the one after.
        """
        sure, possible = self._cells_up_to(self.estimate.numbers_of(x))
        places, back = np.unique(sure, return_inverse=True)
        solved = places[_spread(len(places))]
        found = np.array([self._share("least", 0, int(end), level) for end in solved])
        low = np.maximum.accumulate(found)[np.searchsorted(solved, places, side="right") - 1][back]
        places, back = np.unique(possible, return_inverse=True)
        solved = places[_spread(len(places))]
        found = np.array([self._share("most", 0, int(end), level) for end in solved])
        high = np.minimum.accumulate(found[::-1])[::-1][np.searchsorted(solved, places, side="left")][back]
        return (float(low[0]), float(high[0])) if np.ndim(x) == 0 else (low, high)

    def quantile_numbers(self, q: Any, level: float = 0.95) -> tuple[Any, Any]:
        """For the value that a fraction q of the people does not exceed, by the cdf's bands at the buckets' ends."""
        self.estimate.quantile(q)  # refuses bad levels
        low, high = np.array([self._quantile(float(one), level) for one in np.atleast_1d(q)]).T
        return (float(low[0]), float(high[0])) if np.ndim(q) == 0 else (low, high)

    def range(self, lo: Any, hi: Any, level: float = 0.95) -> tuple[float, float]:
        self.estimate.range(lo, hi)  # refuses ends that are none
        (first,), (last,) = (self.estimate.numbers_of(end) for end in (lo, hi))
        inner, outer = self._cells_within(first, last)
        return self._share("least", *inner, level), self._share("most", *outer, level)

    def mean_numbers(self, level: float = 0.95) -> tuple[float, float]:
        low, high = self._possible(level).mean()
        return self._first_number(low), self._last_number(high)

    def variance(self, level: float = 0.95) -> tuple[float, float]:
        """For the variance, by mean squares about some centres that the mean can have.

        The variance is the least mean square about any centre: so the largest possible one about each centre is an
        upper bound. The root of a mean square changes at most by as much as its centre moves: so the smallest possible
        root about the nearest of the centres, less half of their distance, is a lower bound.
        """
        possible = self._possible(level)
        centres = np.linspace(*possible.mean(), _CENTRES)
        squares = np.array([possible.about(float(centre)) for centre in centres])
        # numbers lie anywhere in their cells, which changes a standard deviation by at most half a cell
        within = 0.0 if isinstance(self.domain, Integers) else 0.5
        least = np.sqrt(squares[:, 0].min()) - (centres[1] - centres[0]) / 2 - within
        most = np.sqrt(squares[:, 1].min()) + within
        cell = float(np.diff(self.domain.edges([0, 1]))[0])
        return (max(float(least), 0.0) * cell) ** 2, (float(most) * cell) ** 2

    def __repr__(self) -> str:
        return f"FreeBands(of {len(self.windows)} windows of the reports, {len(self.masses)} buckets)"

    # -- between numbers and cells -----------------------------------------------------------------------------------

    def _cells_up_to(self, numbers: Floats) -> tuple[Ints, Ints]:
        """How many of the first cells hold nobody above a number, and how many hold everybody up to it."""
        size, (lo, hi) = self.domain.size, self.domain.ends
        if isinstance(self.domain, Integers):
            whole = np.clip(np.floor(numbers) - lo + 1, 0, size).astype(np.int64)
            return whole, whole
        # the cell of a number as devices compute it: who holds no more than x is in the same cell, or in one before
        cells = np.clip(np.floor((numbers - lo) / (hi - lo) * size), 0, size - 1).astype(np.int64)
        outside = numbers < lo
        return np.where(outside, 0, np.where(numbers >= hi, size, cells)), np.where(outside, 0, cells + 1)

    def _cells_within(self, first: float, last: float) -> tuple[tuple[int, int], tuple[int, int]]:
        """From which to which cell all people lie between two numbers, and from which to which all of those lie."""
        if isinstance(self.domain, Integers):
            (start, end), _ = self._cells_up_to(np.array([np.ceil(first) - 1, last]))
            return (int(start), int(end)), (int(start), int(end))
        sure, possible = self._cells_up_to(np.array([first, last]))
        start = 0 if first <= self.domain.ends[0] else int(possible[0])
        return (start, int(sure[1])), (min(int(sure[0]), self.domain.size - 1), int(possible[1]))

    def _first_number(self, cell: float) -> float:
        """The smallest number of a cell; between cells, in proportion."""
        lo, _ = self.domain.ends
        return lo + cell if isinstance(self.domain, Integers) else float(self.domain.edges(cell))

    def _last_number(self, cell: float) -> float:
        """The largest number of a cell; between cells, in proportion."""
        lo, _ = self.domain.ends
        return lo + cell if isinstance(self.domain, Integers) else float(self.domain.edges(cell + 1))

    # -- what is solved ----------------------------------------------------------------------------------------------

    def _quantile(self, q: float, level: float) -> tuple[float, float]:
        """At least the first bucket below whose end q of the people can lie; at most the first where they must."""
        ends, wanted = self.cells[1:].tolist(), max(q, _NOBODY)
        first = bisect_left(ends, wanted, key=lambda end: self._share("most", 0, end, level))
        last = bisect_left(ends, wanted, key=lambda end: self._share("least", 0, end, level))
        return self._first_number(int(self.cells[first])), self._last_number(ends[min(last, len(ends) - 1)] - 1)

    def _share(self, which: Literal["least", "most"], first: int, end: int, level: float) -> float:
        """The least or the most people who can hold a cell from `first` on and before `end`."""
        asked = (which, first, end, level)
        if asked not in self._solved:
            possible = self._possible(level)
            solve = possible.least_share if which == "least" else possible.most_share
            self._solved[asked] = solve(first, end)
        return self._solved[asked]

    @cached_property
    def _solved(self) -> dict[tuple[str, int, int, float], float]:
        return {}

    def _possible(self, level: float) -> Programme:
        """All distributions that the reports do not rule out at this level."""
        two_sided(level)  # refuses bad levels
        alpha = (1 - level) / self.tested
        if self.worth is None:
            ends = binomial_ends(self.counts, self.reports, alpha)
        else:
            ends = hoeffding_ends(self.counts / self.reports, self.worth, alpha)
        wave = (self.outputs, self.plateau, self.ramp, float(self.chance))
        return Programme(self.domain.size, *wave, self.windows, *ends)


def _spread(many: int) -> Ints:
    """At most 64 of so many places, the first and the last among them."""
    return np.unique(np.linspace(0, many - 1, min(many, _SOLVED)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Programme:
    """All distributions over the cells of a domain whose expected reports lie between `low` and `high` in each window.

    `windows` are the first cell and the end of each on the grid of reports, which has `outputs` cells.

    A programme has masses at some cells only ("atoms"), but its bounds hold for people at any cell. Of a square wave,
    the probability of a window is linear in the held cell but for bends, where the cell or the end of its wave passes
    an end of a window; all these cells are atoms. So between two neighbouring atoms it is linear, and mass at a cell
    between them can be moved to both, in shares that keep its mean, without a change in any window. What is to be
    bounded only has to follow: a share of people changes in one step, so the two cells at each step are atoms too; a
    mean stays; a convex function's mean grows by a known amount. Trapezoids bend everywhere: there atoms lie close, and
    windows are widened by the most that such a move can change (`bend`).

    >>> halves = np.array([[0, 3], [3, 6]])  # 4 cells are held; reports: 3 cells around the held one, or any of 6
    >>> exact = Programme(4, 6, 3, 1, 0.5, halves, np.array([0.75, 0.25]), np.array([0.75, 0.25]))
    >>> round(exact.least_share(0, 1), 3), round(exact.most_share(0, 2), 3)
    (1.0, 1.0)
    """

    size: int
    outputs: int
    plateau: int
    ramp: int
    chance: float
    windows: Ints
    low: Floats
    high: Floats

    def least_share(self, first: int, end: int) -> float:
        """The smallest share of people who hold a cell from `first` on and before `end`."""
        atoms, inside = self._inside(first, end)
        return self.least(atoms, inside, float(first <= 0 and end >= self.size))

    def most_share(self, first: int, end: int) -> float:
        """The largest share of people who hold a cell from `first` on and before `end`."""
        atoms, inside = self._inside(first, end)
        return -self.least(atoms, -inside, -float(first < end))

    def mean(self) -> tuple[float, float]:
        """The smallest and the largest mean of the held cell."""
        atoms = self.atoms()
        held = atoms.astype(np.float64)
        return self.least(atoms, held, 0.0), -self.least(atoms, -held, 1.0 - self.size)

    def about(self, centre: float) -> tuple[float, float]:
        """The smallest and the largest mean square of the held cell's distance from a centre."""
        atoms = self.atoms()
        square = (atoms.astype(np.float64) - centre) ** 2
        # between two atoms, the square lies below the line that joins them by at most a quarter of their squared gap
        under = float(np.diff(atoms).max(initial=0)) ** 2 / 4
        return max(self.least(atoms, square, 0.0) - under, 0.0), -self.least(atoms, -square, -float(square.max()))

    def atoms(self, *further: int) -> Ints:
        """The cells that have masses."""
        ends = self.windows.ravel()
        bends = [ends, ends - self.plateau, np.array([0, self.size - 1, *further])]
        if self.ramp > 1:
            bends.append(np.arange(_FINE + 1) * (self.size - 1) // _FINE)
        cells = np.unique(np.concatenate(bends))
        return np.asarray(cells[(cells >= 0) & (cells < self.size)], dtype=np.int64)

    def _inside(self, first: int, end: int) -> tuple[Ints, Floats]:
        """Atoms for a share of people, and which of them count."""
        atoms = self.atoms(first - 1, first, end - 1, end)
        return atoms, ((atoms >= first) & (atoms < end)).astype(np.float64)

    def bend(self, atoms: Ints) -> float:
        """How far a window's probability may be from a line between two atoms: 0 for a square wave."""
        if self.ramp == 1:
            return 0.0
        # second differences of a window are those of its two ends, each at most chance / (plateau * ramp)
        gap = float(np.diff(atoms).max(initial=0))
        return 2 * self.chance / (self.plateau * self.ramp) * gap**2 / 8

    def least(self, atoms: Ints, objective: Floats, otherwise: float) -> float:
        """The smallest mean of an objective over all possible distributions; `otherwise` is the least that can be.

        That one is returned, too, where no distribution is possible: reports that contradict the mechanism rule out
        nothing.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        size = float(np.abs(objective).max())
        if not size:
            return 0.0
        edges, places = np.unique(self.windows, return_inverse=True)
        first, end = places.reshape(self.windows.shape).T
        # masses add up to 1, so what all cells have in common can go to the other side, which leaves few entries
        common = (1 - self.chance) * edges / self.outputs
        waves = below(edges, atoms, self.outputs, self.plateau, self.ramp, self.chance) - common[:, None]
        rows, floor = waves[end] - waves[first], common[end] - common[first]
        slack = self.bend(atoms) + 1e-12
        found = milp(
            objective / size,
            constraints=[
                LinearConstraint(csr_array(rows), self.low - floor - slack, self.high - floor + slack),
                LinearConstraint(np.ones((1, len(atoms))), 1.0, 1.0),
            ],
            bounds=Bounds(0.0, 1.0),
        )
        return max(otherwise, size * (float(found.fun) - _ROUNDING)) if found.status == 0 else otherwise


def binomial_ends(counts: Ints, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's interval for the expected share of each count of n reports; each fails with at most alpha.

    Reports are independent, but people differ, so that a count is a sum of n coins with different chances. Beyond its
    mean its tails are at most those of the binomial law with the same mean (Hoeffding 1956, theorem 4), and the
    binomial interval holds for the mean of the chances.

    >>> low, high = binomial_ends(np.array([0, 50]), 100, 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.398], [0.036, 0.602])
    """
    from scipy.special import betaincinv

    k = counts.astype(np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1.0), n - k + 1, alpha / 2), 0.0)
    high = np.where(k < n, 1 - betaincinv(np.maximum(n - k, 1.0), k + 1, alpha / 2), 1.0)
    return low, high


def hoeffding_ends(shares: Floats, worth: float, alpha: float) -> tuple[Floats, Floats]:
    """The same for shares of weighted reports: by Hoeffding's inequality (1963), which holds for any fixed weights.

    `worth` is the squared sum of the weights over the sum of their squares.
    """
    reach = math.sqrt(math.log(2 / alpha) / (2 * worth))
    return np.maximum(shares - reach, 0.0), np.minimum(shares + reach, 1.0)


def below(edges: Ints, held: Ints, outputs: int, plateau: int, ramp: int, chance: float) -> Floats:
    """The probability that a report lies below each edge (rows), when each of these cells is held (columns).

    A report is any of the `outputs` cells of its grid or, with this chance, the held cell plus two uniform offsets:
    below `plateau` and below `ramp`.
    """
    distance = (edges[:, None] - held[None, :]).astype(np.float64)

    def pairs(s: Floats) -> Floats:
        """How many pairs of offsets have a sum below s, if there is no end to them."""
        return np.where(s > 0, s * (s + 1) / 2, 0.0)

    inside = pairs(distance) - pairs(distance - plateau) - pairs(distance - ramp) + pairs(distance - plateau - ramp)
    return np.asarray((1 - chance) * (edges / outputs)[:, None] + chance * inside / (plateau * ramp))
