"""Delta of the privacy blanket, computed by a Fourier transform between two certified bounds.

After a shuffle of n reports, for a ratio E = e^eps between two neighbouring populations,

    delta(E) <= E[(Z_1 + ... + Z_n)+] / n,    Z = a - E a' with the probabilities of `Blanket.atoms`, and 0 otherwise

(Balle, Bell, Gascon and Nissim 2019, Lemma 5.3, divided by gamma). The right side is what is computed here:

- Z is moved to a lattice without changing its mean, each value to its two neighbours. That is a spread in the convex
  order, and (.)+ is convex: the lattice gives an upper bound. How much it may give too much is bounded below.
- The law of the sum is tilted by e^(theta z), so that its middle lies at 0: digits are then relative to the answer,
  however small delta is.
- What the transform leaves out (tails), folds in (wrap-around) and rounds is bounded and goes to the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.shuffle.blanket import Blanket
from veil.shuffle.bounds import check_users
from veil.tools.arguments import is_number

__all__ = ["Bracket", "delta_of"]

Floats = NDArray[np.float64]

_UNIT = 2.0**-53
_TAIL = 1e-18
"""What the tilted sum may exceed the window with: far below the rounding of doubles."""
_LEFT_OUT = -90.0
"""Powers below e^-90 are not worth computing."""
_LEAST = -600.0
"""Below e^-600 delta is not told."""
_MOST_WINDOWS = 60
_MOST_POINTS = 1 << 22
_CLOSE = 0.05
"""Bounds within 5 % of each other are close enough."""


@dataclass(frozen=True)
class Bracket:
    """A number that lies between two certified bounds.

    >>> Bracket(0.9, 1.0).spread
    0.1
    """

    low: float
    high: float

    @property
    def spread(self) -> float:
        """How far the bounds are apart, as a share of the upper one."""
        return 0.0 if self.high == 0 else round(1 - self.low / self.high, 15)


def delta_of(blanket: Blanket, users: int, ratio: float, points: int | None = None) -> Bracket:
    """Bounds on the blanket's delta for n shuffled reports and a ratio of e^eps between neighbouring populations.

    `points` is the size of the transform; without it, it grows until the bounds are within 5 % of each other.

    >>> from veil import GRR
    >>> from veil.shuffle.blanket import blanket_of
    >>> found = delta_of(blanket_of(GRR(1.0, 100)), 10_000, 1.00722)
    >>> 0.9e-6 < found.low < found.high < 1e-6
    True
    """
    users = check_users(users)
    if not is_number(ratio) or ratio < 1:
        raise ParameterError("a ratio between two probabilities, e^eps, is a number of at least 1")
    if ratio >= blanket.ratio:
        return Bracket(0.0, 0.0)
    if points is not None:
        return _Sum(blanket, users, ratio, max(points, _points(users, 64))).bracket
    for size in sorted({_points(users, fine) for fine in (1024, 4096, 16384)}):
        found = _Sum(blanket, users, ratio, size).bracket
        if found.spread <= _CLOSE:
            break
    return found


def _points(users: int, fine: int) -> int:
    """A power of two of about `fine` times the root of n: steps stay small beside Z, whose sum grows with that root."""
    return min(max(1 << math.ceil(math.log2(fine * math.sqrt(users))), 64 * fine), _MOST_POINTS)


@dataclass(frozen=True)
class _Sum:
    """The sum of n copies of Z on a lattice, tilted."""

    blanket: Blanket
    users: int
    ratio: float
    points: int

    # -- Z -----------------------------------------------------------------------------------------------------------

    @property
    def _slack(self) -> float:
        return 8 * _UNIT * float(self.blanket.ratio)

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """The values of Z, 0 last, and their probabilities.

        The ratio is taken a little smaller than it is. Every value of Z falls in it, by at least as much as rounding
        may have moved it: 4 units of ratio * e^eps_l. Values below -n times the largest are taken for that: one of
        them is enough for a sum below 0.
        """
        used = self.ratio * (1 - self._slack)
        atoms = self.blanket.atoms()
        values = np.array([*(float(held) - used * float(other) for _, held, other in atoms), 0.0])
        masses = np.array([*(float(b) for b, _, _ in atoms), float(1 - self.blanket.gamma)])
        return np.maximum(values, -self.users * values.max()), masses

    def _cumulant(self, theta: float, values: Floats, masses: Floats) -> tuple[float, float, float]:
        """ln E[e^(theta Z)] and its first two derivatives."""
        top = float((values * theta).max())
        weights = masses * np.exp(values * theta - top)
        total = float(weights.sum())
        mean = float(weights @ values) / total
        return top + math.log(total), mean, float(weights @ (values - mean) ** 2) / total

    @cached_property
    def _tilt(self) -> float:
        """The theta at which the tilted Z has mean 0; above 0, because Z has mean 1 - E."""
        values, masses = self._law
        low, high = 0.0, 1.0 / float(values.max())
        while self._cumulant(high, values, masses)[1] < 0:
            low, high = high, 2 * high
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if self._cumulant(middle, values, masses)[1] < 0 else (low, middle)
        return high

    # -- the lattice -------------------------------------------------------------------------------------------------

    @cached_property
    def _window(self) -> tuple[float, float] | None:
        """Half of the lattice's length, and a bound on the tilted probability of lying outside, if there is one."""
        values, masses = self._law
        deviation = math.sqrt(self.users * self._cumulant(self._tilt, values, masses)[2])
        half = 10 * deviation
        for _ in range(_MOST_WINDOWS):
            step = 2 * half / self.points
            most = self.users * (float(np.abs(values).max()) + step)
            if half > most + step:
                return most + 2 * step, 0.0
            places, weights = self._lattice(step)
            outside = self._outside(places.astype(np.float64) * step, weights, half, deviation)
            if outside <= _TAIL:
                return half, outside
            half *= 1.25
        return None

    def _outside(self, values: Floats, masses: Floats, half: float, deviation: float) -> float:
        """Chernoff's bound on the tilted probability that the lattice's sum lies outside -half .. half."""
        middle = self._cumulant(self._tilt, values, masses)[0]

        def bound(further: float) -> float:
            return self.users * (self._cumulant(self._tilt + further, values, masses)[0] - middle) - abs(further) * half

        steps = np.geomspace(0.01, 50, 48) / deviation
        above, below = (min(bound(sign * float(step)) for step in steps) for sign in (1, -1))
        return math.exp(min(above, 0.0)) + math.exp(min(below, 0.0))

    def _lattice(self, step: float) -> tuple[NDArray[np.int64], Floats]:
        """Z on the lattice: places and probabilities, with the same mean; 0 stays where it is."""
        values, masses = self._law
        below = np.floor(values / step)
        up = values / step - below
        places = np.concatenate([below, below + 1]).astype(np.int64)
        return places, np.concatenate([masses * (1 - up), masses * up])

    # -- the sum -----------------------------------------------------------------------------------------------------

    @cached_property
    def bracket(self) -> Bracket:
        """Bounds on delta."""
        n, theta, count = self.users, self._tilt, self.points
        least, most = self._simple
        if n * self._cumulant(theta, *self._law)[0] < _LEAST:  # z e^(-theta z) is at most 1 / (theta e)
            return Bracket(0.0, min(math.exp(_LEAST) / (theta * math.e * n), most))
        if self._window is None:
            return Bracket(least, most)
        half, outside = self._window
        step = 2 * half / count
        places, masses = self._lattice(step)
        cumulant = self._cumulant(theta, places.astype(np.float64) * step, masses)[0]
        tilted = np.zeros(count)
        np.add.at(tilted, places % count, masses * np.exp(theta * step * places - cumulant))
        law, rounding = self._power(tilted)
        sums = step * np.arange(1, count // 2)
        weights = sums * np.exp(-theta * sums)
        scale = math.exp(n * cumulant)
        middle, off = float(np.maximum(law[1 : count // 2], 0) @ weights), rounding * float(weights.sum())
        farther = max(half, 1 / theta)
        tail = outside * farther * math.exp(-theta * farther)
        high = scale * (middle + off + tail) * (1 + 64 * n * _UNIT)
        low = scale * (middle - off - outside / (theta * math.e)) * (1 - 64 * n * _UNIT)
        low -= self._added(law + rounding, step, scale, high)
        low -= n * self._slack * self.ratio  # of the ratio: likelihoods have mean 1
        return Bracket(max(low / n, least), min(high / n, most))

    @property
    def _simple(self) -> tuple[float, float]:
        """Bounds that need no transform: reports that speak against the value are as if there were none; or are none.

        (sum)+ is at most the sum of the values above 0, and at least the value of a report that is the only one drawn
        from the blanket.
        """
        values, masses = self._law
        most = float(values[0] * masses[0]) * (1 + 64 * _UNIT)
        gamma = float(self.blanket.gamma)
        alone = (self.users - 1) * math.log1p(-gamma) if gamma < 1 else -math.inf
        # the law has the ratio a little too small, which the least bound must not use
        value = float(self.blanket.ratio) * (1 - 4 * _UNIT) - self.ratio
        return max(value * float(masses[0]) * math.exp(alone) * (1 - 64 * self.users * _UNIT), 0.0), most

    def _power(self, law: Floats) -> tuple[Floats, float]:
        """The law of the sum of n, on a circle, and what rounding may have moved any of its probabilities by.

        A transform of N numbers is off by less than 8 log2(N) units of their norm, by which one coefficient may be off;
        n-th powers multiply a relative error by n; the transform back is off by so many units again. Coefficients
        whose power is below e^-90 are left out.
        """
        from scipy.fft import irfft, rfft

        n, count = self.users, self.points
        spectrum = rfft(law)
        units = 8 * math.log2(count) * _UNIT
        off = units * math.sqrt(count)
        largest = np.minimum(np.abs(spectrum) + off, 1.0)
        kept = np.flatnonzero(largest > math.exp(_LEFT_OUT / n))
        powers = np.zeros_like(spectrum)
        powers[kept] = np.exp(n * np.log(spectrum[kept]))
        forth = 2 * n * (off + 64 * _UNIT) * float(np.exp((n - 1) * np.log(largest[kept])).sum()) / count
        back = units * math.sqrt(2 * float((np.abs(powers[kept]) ** 2).sum()) / count)
        return irfft(powers, count), forth + back + math.exp(_LEFT_OUT)

    def _added(self, law: Floats, step: float, scale: float, high: float) -> float:
        """What moving Z to the lattice may have added to E[(sum)+].

        It adds noise U of mean 0 given the sum S, at most a step for each report from the blanket, of which there are
        at most m (Bernstein): E[(S + U)+] - E[S+] is at most E[|U|; |S| < |U|]. With v = m step^2 / 4, Hoeffding's
        bound on U, that is at most sqrt(v) P(|S + U| < 2 r), and what |U| > r or more reports may bring.
        """
        drawn = self.users * float(self.blanket.gamma)
        rare = math.log(max(1e6 * self.users * step / high, 10.0))
        many = min(drawn + math.sqrt(2 * drawn * rare) + rare, self.users)
        v = many * step**2 / 4
        far = math.sqrt(2 * v * math.log(max(1e4 * math.sqrt(v) / high, 10.0)))
        beyond = 2 * (far + v / far) * math.exp(-(far**2) / (2 * v))
        reach = math.ceil(2 * far / step)
        close = 1.0
        if reach < self.points // 2:
            near = np.arange(-reach, reach + 1)
            weights = np.exp(-self._tilt * step * near)
            close = scale * float(np.maximum(law[near % self.points], 0) @ weights)
        left = self.users * step * math.exp(-rare) if many < self.users else 0.0
        return math.sqrt(v) * (min(close, 1.0) + 2 * math.exp(-(far**2) / (2 * v))) + beyond + left
