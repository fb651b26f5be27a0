"""What reports of a wave rule out: linear programmes over all distributions that people could have.

A distribution is possible if, in each of some windows of the reports' grid, the share of reports that it makes expect
lies within an exact interval around the share that came. The smallest and the largest value of anything linear (a share
of the people, a mean) over all possible distributions is one linear programme each. Nothing is assumed about how people
are distributed. `binomial_ends` and `Programme` say why the bounds always hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Programme", "below", "binomial_ends", "hoeffding_ends"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-6
"""What a bound gives away for the solver: it meets constraints to about 1e-7."""
_FINE = 256


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
