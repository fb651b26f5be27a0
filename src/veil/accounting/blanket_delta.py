"""Certified bounds on the delta of the privacy blanket, computed by a Fourier transform.

After a shuffle of n reports, for a ratio E = e^eps between two neighbouring populations,

    delta(E) <= E[(Z_1 + ... + Z_n)+] / n,    Z = a - E a' with the probabilities of `Blanket.atoms`, and 0 otherwise

(Balle, Bell, Gascon and Nissim 2019, Lemma 5.3, divided by gamma). This module computes the right side:

- Z is moved to a lattice without changing its mean, each value to its two neighbours. That is a spread in the convex
  order, and (.)+ is convex: the lattice gives an upper bound. A lower bound limits the excess.
- The distribution of the sum is tilted by e^(theta z), so that its middle lies at 0: digits are then relative to the
  result, however small delta is.
- The parts that the transform leaves out (tails), folds in (wrap-around) and rounds are bounded on the safe side.

With fake reports, drawn from the blanket with another probability, the report of one person hides among those too: it
is one of M = 1 + Bin(n - 1, gamma) + Bin(fakes, share) reports from the blanket, and delta(E) <= E[g(M)] with g(m) =
E[(L_1 + ... + L_m)+] / m, L = gamma Z given that the report is from the blanket. g falls: the mean of m values is the
expected mean of m of m + 1 values, and (.)+ is convex. Now let T be the expectation of the positive part of the sum
over n people and all fakes. By size-biasing, one of the reports from the blanket is a person's, or a fake:

    T = n gamma E[g(M)] + fakes share E[g(M')],    M' = 1 + Bin(n, gamma) + Bin(fakes - 1, share)

and where gamma <= share, M' is at most as large as M: E[g(M)] <= T / (n gamma + fakes share). One transform is enough.
The same expression for n - 1 people and one more fake has E[g(M)] in its second place, and bounds it from below. A
gamma above the share is replaced by the share: reports that do not count as blanket may be revealed to an attacker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veil.accounting.blanket import Blanket
from veil.accounting.bounds import check_users
from veil.errors import ParameterError
from veil.tools.numbers import is_int, is_number

Floats = NDArray[np.float64]
Groups = tuple[tuple[int, Fraction], ...]
"""How many reports there are of each kind, and how probably one of them is from the blanket."""

_MOST_FAKES = 10**11

_UNIT = 2.0**-53
_TAIL = 1e-18
"""What the tilted sum may exceed the window with: far below the rounding of doubles."""

_LEFT_OUT = -90.0
"""Powers below e^-90 are not worth computing."""

_LEAST = -600.0
"""Below e^-600 delta is not told."""

_TINY = 1e-300
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


@dataclass(frozen=True)
class Fakes:
    """Fake reports that are shuffled with the others, each drawn from the blanket with probability `share` or more.

    >>> Fakes(1000, Fraction(1)).count
    1000
    """

    count: int
    share: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not is_int(self.count) or not 0 <= self.count <= _MOST_FAKES:
            raise ParameterError("a number of fake reports is an integer from 0 to 10^11")
        if not isinstance(self.share, (Fraction, int)) or not 0 < self.share <= 1:
            raise ParameterError("the share of fake reports that are from the blanket is a fraction, above 0, up to 1")


def delta_of(
    blanket: Blanket, users: int, ratio: float, points: int | None = None, fakes: Fakes | None = None
) -> Bracket:
    """Bounds on the blanket's delta for n shuffled reports and a ratio of e^eps between neighbouring populations.

    `points` is the size of the transform; without it, it grows until the bounds are within 5 % of each other. With
    fakes there may be one user alone, who hides among them.

    >>> from veil import GRR
    >>> from veil.accounting.blanket import blanket_of
    >>> found = delta_of(blanket_of(GRR(1.0, 100)), 10_000, 1.00722)
    >>> 0.9e-6 < found.low < found.high < 1e-6
    True
    """
    groups = _groups(blanket, users, fakes)
    if not is_number(ratio) or ratio < 1:
        raise ParameterError("a ratio between two probabilities, e^eps, is a number of at least 1")
    if ratio >= blanket.ratio:
        return Bracket(0.0, 0.0)
    many = sum(count for count, _ in groups)

    def bracket(size: int) -> Bracket:
        found = _TiltedSum(blanket, groups, ratio, size).bracket
        if len(groups) == 1 or points is not None:
            return found if len(groups) == 1 else Bracket(0.0, found.high)
        return Bracket(
            min(_TiltedSum(blanket, _one_more_fake(groups), ratio, size).bracket.low, found.high), found.high
        )

    if points is not None:
        return bracket(max(points, _points(many, 64)))
    for size in sorted({_points(many, fine) for fine in (1024, 4096, 16384)}):
        found = bracket(size)
        if found.spread <= _CLOSE:
            break
    return found


def _groups(blanket: Blanket, users: int, fakes: Fakes | None) -> Groups:
    if fakes is None or not fakes.count:
        return ((check_users(users), blanket.gamma),)
    if users == 1:
        return ((fakes.count + 1, fakes.share),)
    return (check_users(users), min(blanket.gamma, fakes.share)), (fakes.count, fakes.share)


def _one_more_fake(groups: Groups) -> Groups:
    """What bounds delta from below: one of the people is taken for a fake."""
    (people, gamma), (fakes, share) = groups
    return (people - 1, gamma), (fakes + 1, share)


def _points(users: int, fine: int) -> int:
    """A power of two of about `fine` times the root of n: steps stay small beside Z, whose sum grows with that root."""
    return min(max(1 << math.ceil(math.log2(fine * math.sqrt(users))), 64 * fine), _MOST_POINTS)


@dataclass(frozen=True)
class _TiltedSum:
    """The sum of Z over all reports on a lattice, tilted."""

    blanket: Blanket
    groups: Groups
    ratio: float
    points: int

    # -- Z -----------------------------------------------------------------------------------------------------------

    @property
    def _slack(self) -> float:
        return 8 * _UNIT * float(self.blanket.ratio)

    @cached_property
    def _many(self) -> int:
        return sum(count for count, _ in self.groups)

    @cached_property
    def _drawn(self) -> float:
        """How many reports are from the blanket, on average."""
        return float(sum(count * drawn for count, drawn in self.groups))

    @cached_property
    def _weight(self) -> float:
        """What the expected positive part of the sum is divided by; n, where there are no fakes."""
        return float(sum(count * drawn for count, drawn in self.groups) / self.blanket.gamma)

    @cached_property
    def _law(self) -> tuple[Floats, list[Floats]]:
        """The values of Z, 0 last, and their probabilities for a report of each kind.

        The ratio is taken a little smaller than it is. Every value of Z falls in it, by at least as much as rounding
        may have moved it: 4 units of ratio * e^eps_l. Values below -n times the largest are taken for that: one of
        them is enough for a sum below 0.
        """
        used = self.ratio * (1 - self._slack)
        atoms, gamma = self.blanket.atoms(), self.blanket.gamma
        values = np.array([*(float(held) - used * float(other) for _, held, other in atoms), 0.0])
        masses = [
            np.array([*(float(mass * drawn / gamma) for mass, _, _ in atoms), float(1 - drawn)])
            for _, drawn in self.groups
        ]
        return np.maximum(values, -self._many * values.max()), masses

    def _cumulants(self, theta: float, values: Floats, masses: list[Floats]) -> list[tuple[float, float, float]]:
        """For a report of each kind, ln E[e^(theta Z)] and its first two derivatives."""
        powers = values * theta
        top = float(powers.max())
        raised = np.exp(powers - top)
        found = []
        for mass in masses:
            weights = mass * raised
            total = float(weights.sum())
            mean = float(weights @ values) / total
            found.append((top + math.log(total), mean, float(weights @ (values - mean) ** 2) / total))
        return found

    def _cumulant(self, theta: float, values: Floats, masses: list[Floats]) -> tuple[float, float, float]:
        """The same of the sum."""
        level = mean = spread = 0.0
        for (count, _), one in zip(self.groups, self._cumulants(theta, values, masses), strict=True):
            level, mean, spread = level + count * one[0], mean + count * one[1], spread + count * one[2]
        return level, mean, spread

    @cached_property
    def _tilt(self) -> float:
        """The theta at which the tilted sum has mean 0; above 0, because Z has mean 1 - E."""
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
        deviation = math.sqrt(self._cumulant(self._tilt, values, masses)[2])
        half = 10 * deviation
        for _ in range(_MOST_WINDOWS):
            step = 2 * half / self.points
            most = self._many * (float(np.abs(values).max()) + step)
            if half > most + step:
                return most + 2 * step, 0.0
            places, weights = self._lattice(step)
            outside = self._outside(places.astype(np.float64) * step, weights, half, deviation)
            if outside <= _TAIL:
                return half, outside
            half *= 1.25
        return None

    def _outside(self, values: Floats, masses: list[Floats], half: float, deviation: float) -> float:
        """Chernoff's bound on the tilted probability that the lattice's sum lies outside -half .. half."""
        middle = self._cumulant(self._tilt, values, masses)[0]

        def bound(further: float) -> float:
            return self._cumulant(self._tilt + further, values, masses)[0] - middle - abs(further) * half

        steps = np.geomspace(0.01, 50, 48) / deviation
        above, below = (min(bound(sign * float(step)) for step in steps) for sign in (1, -1))
        return math.exp(min(above, 0.0)) + math.exp(min(below, 0.0))

    def _lattice(self, step: float) -> tuple[NDArray[np.int64], list[Floats]]:
        """Z on the lattice: places and probabilities, with the same mean; 0 stays where it is."""
        values, masses = self._law
        below = np.floor(values / step)
        up = values / step - below
        places = np.concatenate([below, below + 1]).astype(np.int64)
        return places, [np.concatenate([mass * (1 - up), mass * up]) for mass in masses]

    # -- the sum -----------------------------------------------------------------------------------------------------

    @cached_property
    def bracket(self) -> Bracket:
        """Bounds on delta."""
        n, theta, count = self._many, self._tilt, self.points
        least, most = self._simple
        if self._cumulant(theta, *self._law)[0] < _LEAST:  # z e^(-theta z) is at most 1 / (theta e)
            return Bracket(0.0, min(math.exp(_LEAST) / (theta * math.e * self._weight), most))
        if self._window is None:
            return Bracket(least, most)
        half, outside = self._window
        step = 2 * half / count
        places, masses = self._lattice(step)
        levels = [one[0] for one in self._cumulants(theta, places.astype(np.float64) * step, masses)]
        laws = []
        for mass, level in zip(masses, levels, strict=True):
            tilted = np.zeros(count)
            np.add.at(tilted, places % count, mass * np.exp(theta * step * places - level))
            laws.append(tilted)
        law, rounding = self._power(laws)
        sums = step * np.arange(1, count // 2)
        weights = sums * np.exp(-theta * sums)
        scale = math.exp(sum(many * level for (many, _), level in zip(self.groups, levels, strict=True)))
        middle, off = float(np.maximum(law[1 : count // 2], 0) @ weights), rounding * float(weights.sum())
        farther = max(half, 1 / theta)
        tail = outside * farther * math.exp(-theta * farther)
        high = scale * (middle + off + tail) * (1 + 64 * n * _UNIT)
        low = scale * (middle - off - outside / (theta * math.e)) * (1 - 64 * n * _UNIT)
        low -= self._added(law + rounding, step, scale, high)
        low -= self._weight * self._slack * self.ratio  # of the ratio: likelihoods have mean 1
        return Bracket(max(low / self._weight, least), min(high / self._weight, most))

    @property
    def _simple(self) -> tuple[float, float]:
        """Bounds that need no transform: reports that speak against the value are as if there were none; or are none.

        (sum)+ is at most the sum of the values above 0, and at least the value of a report that is the only one drawn
        from the blanket.
        """
        apart = float(self.blanket.apart)
        most = float(self._law[0][0]) * apart * (1 + 64 * _UNIT)
        alone = 0.0
        for place, (count, drawn) in enumerate(self.groups):
            others = count - (place == 0)  # the one person's own report is of the first kind
            if others:
                alone += others * math.log1p(-float(drawn)) if float(drawn) < 1 else -math.inf
        # the law has the ratio a little too small, which the least bound must not use
        value = float(self.blanket.ratio) * (1 - 4 * _UNIT) - self.ratio
        return max(value * apart * math.exp(alone) * (1 - 64 * self._many * _UNIT), 0.0), most

    def _power(self, laws: list[Floats]) -> tuple[Floats, float]:
        """The law of the sum, on a circle, and what rounding may have moved any of its probabilities by.

        A transform of N numbers is off by less than 8 log2(N) units of their norm, by which one coefficient may be off;
        n-th powers multiply a relative error by n; the transform back is off by so many units again. Coefficients
        whose power is below e^-90 are left out.
        """
        from scipy.fft import irfft, rfft

        count = self.points
        units = 8 * math.log2(count) * _UNIT
        off = units * math.sqrt(count)
        spectra = [rfft(law) for law in laws]
        largest = [np.minimum(np.abs(spectrum) + off, 1.0) for spectrum in spectra]
        heights = sum(many * np.log(high) for (many, _), high in zip(self.groups, largest, strict=True))
        kept = np.flatnonzero(heights > _LEFT_OUT)
        exponents = np.zeros(len(kept), np.complex128)
        forth = 0.0
        for (many, _), spectrum, high in zip(self.groups, spectra, largest, strict=True):
            chosen = spectrum[kept]
            chosen[chosen == 0] = _TINY  # a logarithm; far within what it may be off by
            exponents += many * np.log(chosen)
            forth += 2 * many * (off + 64 * _UNIT) * float(np.exp(heights[kept] - np.log(high[kept])).sum()) / count
        powers = np.zeros_like(spectra[0])
        powers[kept] = np.exp(exponents)
        back = units * math.sqrt(2 * float((np.abs(powers[kept]) ** 2).sum()) / count)
        return irfft(powers, count), forth + back + math.exp(_LEFT_OUT)

    def _added(self, law: Floats, step: float, scale: float, high: float) -> float:
        """What moving Z to the lattice may have added to E[(sum)+].

        It adds noise U of mean 0 given the sum S, at most a step for each report from the blanket, of which there are
        at most m (Bernstein): E[(S + U)+] - E[S+] is at most E[|U|; |S| < |U|]. With v = m step^2 / 4, Hoeffding's
        bound on U, that is at most sqrt(v) P(|S + U| < 2 r), and what |U| > r or more reports may bring.
        """
        drawn = self._drawn
        rare = math.log(max(1e6 * self._many * step / high, 10.0))
        many = min(drawn + math.sqrt(2 * drawn * rare) + rare, self._many)
        v = many * step**2 / 4
        far = math.sqrt(2 * v * math.log(max(1e4 * math.sqrt(v) / high, 10.0)))
        beyond = 2 * (far + v / far) * math.exp(-(far**2) / (2 * v))
        reach = math.ceil(2 * far / step)
        close = 1.0
        if reach < self.points // 2:
            near = np.arange(-reach, reach + 1)
            weights = np.exp(-self._tilt * step * near)
            close = scale * float(np.maximum(law[near % self.points], 0) @ weights)
        left = self._many * step * math.exp(-rare) if many < self._many else 0.0
        return math.sqrt(v) * (min(close, 1.0) + 2 * math.exp(-(far**2) / (2 * v))) + beyond + left
