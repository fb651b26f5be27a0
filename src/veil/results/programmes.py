"""What reports of a wave rule out: linear programmes over all distributions that people could have.

A distribution is possible if, in each of some windows of the reports' grid, the share of reports that it makes expect
lies within an exact interval around the share that came. The smallest and the largest value of anything linear (a share
of the people, a mean) over all possible distributions is one linear programme each. Nothing is assumed about how people
are distributed. `windows`, `binomial_ends` and `Programme` say why the bounds always hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Programme", "below", "binomial_ends", "hoeffding_ends", "windows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-6
"""What a bound gives away for the solver: it meets constraints to about 1e-7."""
_FINE = 256


def windows(leaves: int) -> Ints:
    """First and last boundary of every window: each of the leaves, pairs of neighbours, fours and so on, but not all.

    Narrow windows hold few reports, so that their shares vary little and tell details; wide ones keep the sum of many
    from drifting. Which windows there are depends on the leaves' number alone, never on the reports.

    >>> windows(4).tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4], [0, 2], [2, 4]]
    """
    widths = [1 << k for k in range((leaves - 1).bit_length())]
    pairs = dict.fromkeys((a, min(a + width, leaves)) for width in widths for a in range(0, leaves, width))
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def binomial_ends(counts: Ints, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Clopper and Pearson's interval for each expected share, when so many of n reports came; all hold at once.

    Reports are independent, but people differ, so a count is a sum of n coins with different chances. Its tails beyond
    the mean are at most those of the binomial law with the same mean (Hoeffding 1956, theorem 4), so that the binomial
    interval holds for the mean chance. alpha is shared out among the counts: all hold together with 1 - alpha.

    >>> low, high = binomial_ends(np.array([0, 50]), 100, 0.1)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.387], [0.036, 0.613])
    """
    from scipy.special import betaincinv

    tail = alpha / (2 * max(len(counts), 1))
    k = counts.astype(np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1.0), n - k + 1, tail), 0.0)
    high = np.where(k < n, 1 - betaincinv(np.maximum(n - k, 1.0), k + 1, tail), 1.0)
    return low, high


def hoeffding_ends(shares: Floats, worth: float, alpha: float) -> tuple[Floats, Floats]:
    """The same for shares of weighted reports: by Hoeffding's inequality (1963), which holds for any fixed weights.

    `worth` is the squared sum of the weights over the sum of their squares.
    """
    reach = math.sqrt(math.log(2 * max(len(shares), 1) / alpha) / (2 * worth))
    return np.maximum(shares - reach, 0.0), np.minimum(shares + reach, 1.0)


def below(edges: Ints, held: Ints, plateau: int, ramp: int, chance: float) -> Floats:
    """The probability that a report lies below each edge (rows), when each of these cells is held (columns).

    A report is any cell of the grid up to the last edge, or, with this chance, the held cell plus two uniform offsets
    below `plateau` and below `ramp`.
    """
    distance = (edges[:, None] - held[None, :]).astype(np.float64)

    def pairs(s: Floats) -> Floats:
        """How many pairs of offsets have a sum below s, if there is no end to them."""
        return np.where(s > 0, s * (s + 1) / 2, 0.0)

    inside = pairs(distance) - pairs(distance - plateau) - pairs(distance - ramp) + pairs(distance - plateau - ramp)
    return np.asarray((1 - chance) * (edges / edges[-1])[:, None] + chance * inside / (plateau * ramp))


@dataclass(frozen=True, eq=False)
class Programme:
    """All distributions over the cells of a domain whose expected reports lie within `low` and `high` in every window.

    `leaves` are the boundaries of the windows' leaves on the grid of reports, from 0 to its end.

    A programme has masses at some cells only ("atoms"), and its bounds hold for people at any cell. Of a square wave,
    the probability of a window is a function of the held cell that is linear but for bends, where the cell or the end
    of its wave passes a boundary of a leaf; all these cells are atoms. Between two neighbouring atoms everything is
    linear, so that the mass at a cell between them can be moved to the two, in shares that keep its mean, and no
    window's probability changes. What is bounded only has to follow: a share of people changes in one step, so the two
    cells at each step are atoms too; a linear function stays; a convex one can only grow. Trapezoids bend
    everywhere: there atoms lie close, and the windows are widened by the most that moving can change (`bend`).

    >>> leaves = np.array([0, 2, 4, 6])  # 4 cells are held, a wave of 3 cells around the held one or any of 6
    >>> shares = np.array([0.5, 0.25, 0.25])
    >>> exact = Programme(4, leaves, 3, 1, 0.5, shares, shares)
    >>> round(exact.least_share(0, 2), 3), round(exact.most_share(0, 2), 3)
    [0.833, 1.0]
    """

    size: int
    leaves: Ints
    plateau: int
    ramp: int
    chance: float
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
        square = (atoms - centre) ** 2
        # between two atoms, the square lies below the line that joins them by at most a quarter of their squared gap
        under = float(np.diff(atoms).max(initial=0)) ** 2 / 4
        return max(self.least(atoms, square, 0.0) - under, 0.0), -self.least(atoms, -square, -float(square.max()))

    def atoms(self, *further: int) -> Ints:
        """The cells that have masses."""
        bends = [self.leaves, self.leaves - self.plateau, np.array([0, self.size - 1, *further])]
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
        pairs = windows(len(self.leaves) - 1)
        cumulated = below(self.leaves, atoms, self.plateau, self.ramp, self.chance)
        # all masses add up to 1: what every cell has in common can be subtracted, which leaves few entries
        common = cumulated - (1 - self.chance) * (self.leaves / self.leaves[-1])[:, None]
        floor = (1 - self.chance) * np.diff((self.leaves / self.leaves[-1])[pairs], axis=1)[:, 0]
        rows = common[pairs[:, 1]] - common[pairs[:, 0]]
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
