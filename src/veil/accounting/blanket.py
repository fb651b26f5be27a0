"""The privacy blanket of a mechanism (Balle, Bell, Gascon and Nissim 2019), and a fast approximation of its delta.

With probability gamma, a person's report comes from one distribution that does not depend on the value held: the
blanket. After a shuffle nobody knows which reports these are, and the report of one person hides among them.

`rough_delta` approximates delta in microseconds by a saddlepoint, for searches whose result the accountant certifies.
The accountant tilts the distribution of the sum and transforms it; here the tilted distribution is taken to be normal,
which it almost is. Nothing is certified, and a delta of 1e-9 has an error of a few parts in a hundred.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from veil.errors import ParameterError

if TYPE_CHECKING:
    from veil.mechanisms import Mechanism, PureOracle, SquareWave


Kinds = tuple[tuple[float, float], ...]
Atoms = tuple[tuple[float, float], ...]
_MOST_STEPS = 60
_FAR = 1e18
"""More fakes than anybody would add."""

_CLOSE = 1e-9


@dataclass(frozen=True)
class Blanket:
    """The blanket of a mechanism whose reports each support a set of values, and are `ratio` times likelier for them.

    Drawn from the blanket, a report supports a given value with probability `share`, and two given values with
    probability `both`. Everything a shuffle is worth follows from these three numbers.

    >>> from veil import GRR
    >>> found = blanket_of(GRR(1.0, 4))
    >>> found.share, found.both, round(float(found.gamma), 4)
    (Fraction(1, 4), Fraction(0, 1), 0.6995)
    """

    ratio: Fraction
    share: Fraction
    both: Fraction

    def __post_init__(self) -> None:
        parts = (self.ratio, self.share, self.both)
        if not all(isinstance(part, (Fraction, int)) for part in parts):
            raise ParameterError("a blanket has a ratio, a share and a share of pairs, as exact fractions")
        if self.ratio <= 1 or not 0 < self.share < 1 or not 0 <= self.both <= self.share:
            raise ParameterError("a blanket has a ratio above 1, a share between 0 and 1, and pairs within the share")

    @property
    def gamma(self) -> Fraction:
        """The probability that a report is drawn from the blanket."""
        return 1 / (1 + self.share * (self.ratio - 1))

    @property
    def apart(self) -> Fraction:
        """The probability that a person's report is from the blanket and supports the first of two values alone."""
        return self.gamma * (self.share - self.both)

    def atoms(self) -> list[tuple[Fraction, Fraction, Fraction]]:
        """What a report from the blanket shows about two values, held and not: probability, and both likelihoods.

        Likelihoods are over that of the blanket's part. The probabilities add up to gamma.
        """
        neither = self.gamma * (1 - 2 * self.share + self.both)
        one, many = Fraction(1), self.ratio
        return [
            (self.apart, many, one),
            (self.apart, one, many),
            (self.gamma * self.both, many, many),
            (neither, one, one),
        ]

    @staticmethod
    def of_support(ratio: Fraction, p: Fraction, q: Fraction) -> Blanket:
        """The blanket of a pure oracle, by the probabilities that a report supports a held value and another one.

        p = ratio * share * gamma and q = gamma * (share - both) + ratio * gamma * both, solved for share and both.

        >>> Blanket.of_support(Fraction(3), Fraction(3, 5), Fraction(1, 3)).share
        Fraction(1, 3)
        """
        share = p / (ratio - p * (ratio - 1))
        both = (q * (1 + share * (ratio - 1)) - share) / (ratio - 1)
        return Blanket(ratio, share, both)


def blanket_of(mechanism: Mechanism) -> Blanket:
    """The blanket of GRR, local hashing, unary encoding, subset selection, Hadamard response, PGR or a square wave.

    Local hashing is taken at its word: hash functions that behave as random ones, two values at a time. Of a wave it is
    the blanket between the two values that overlap least; for any other two, a shuffle is worth more.

    >>> from veil import SubsetSelection
    >>> blanket_of(SubsetSelection(1.0, 100)).share
    Fraction(27, 100)
    """
    from veil.mechanisms import (
        BLH,
        GRR,
        OLH,
        PGR,
        HadamardResponse,
        LinearHashing,
        PureOracle,
        SquareWave,
        SubsetSelection,
    )
    from veil.mechanisms.oracles.unary import UnaryEncoding

    if isinstance(mechanism, SquareWave):
        return _of_wave(mechanism)
    # not every local hashing: the rows of RandomProjection are few and public, and some values share most of them
    known = (GRR, OLH, BLH, LinearHashing, UnaryEncoding, SubsetSelection, HadamardResponse, PGR)
    if isinstance(mechanism, known):
        assert isinstance(mechanism, PureOracle)
        return _of_oracle(mechanism)
    raise ParameterError(
        f"the blanket of {getattr(mechanism, 'name', 'this')} is not known: expected GRR, OLH, BLH, LinearHashing, "
        'unary encoding, SubsetSelection, HadamardResponse, PGR or SquareWave; method="clones" is for any mechanism'
    )


def _of_oracle(oracle: PureOracle) -> Blanket:
    ratio = oracle.guarantee.ratio
    assert ratio is not None
    return Blanket.of_support(ratio, oracle.p, oracle.q)


def _of_wave(wave: SquareWave) -> Blanket:
    if wave.ramp != 1:
        raise ParameterError("the blanket of a wave is known where the wave is square: expected ratio = 1")
    ratio = wave.guarantee.ratio
    assert ratio is not None
    overlap = max(0, wave.plateau - (wave.cells - 1))  # of the waves of the first and the last value
    return Blanket(ratio, Fraction(wave.plateau, wave.outputs), Fraction(overlap, wave.outputs))


def rough_delta(power: float, buckets: int, ratio: float, users: float, fakes: float, *, hashed: bool) -> float:
    """ln delta of GRR (or local hashing) with e^eps_l = `power`, n people, so many fakes and a ratio of e^eps.

    With `users` = 1 the one person hides among the fakes alone.

    >>> round(math.exp(rough_delta(math.exp(4), 16, math.exp(0.0777), 100_000, 50_000, hashed=True)) / 1e-9, 1)
    1.0
    """
    share, both = 1 / buckets, (1 / buckets**2 if hashed else 0.0)
    gamma = 1 / (1 + share * (power - 1))
    if ratio >= power:
        return -math.inf
    kinds = ((fakes + 1, 1.0),) if users == 1 else ((users, gamma), (fakes, 1.0))
    apart = share - both
    atoms = (
        (apart, power - ratio),
        (apart, 1 - ratio * power),
        (both, power * (1 - ratio)),
        (1 - 2 * share + both, 1 - ratio),
    )
    theta, level, spread = _tilted(kinds, atoms)
    weight = sum(count * drawn for count, drawn in kinds) / gamma
    return level + _positive_part(theta, spread) - math.log(weight)


def fewest_fakes(power: float, buckets: int, epsilon: float, users: float, delta: float, *, hashed: bool) -> float:
    """About how many fakes keep a promise of (epsilon, delta): towards the server, or with `users` = 1 all other users.

    >>> round(fewest_fakes(math.exp(4), 16, 0.0946, 1, 1e-9, hashed=True), -2)
    50000.0
    """
    from scipy.optimize import brentq

    ratio, aim = math.exp(epsilon), math.log(delta)
    if ratio >= power:
        return 0.0

    def over(place: float) -> float:
        return rough_delta(power, buckets, ratio, users, math.exp(place), hashed=hashed) - aim

    if users > 1 and rough_delta(power, buckets, ratio, users, 0.0, hashed=hashed) <= aim:
        return 0.0
    if over(0.0) <= 0:
        return 1.0
    if over(math.log(_FAR)) > 0:
        return math.inf
    return math.exp(brentq(over, 0.0, math.log(_FAR), xtol=1e-7))


def _tilted(kinds: Kinds, atoms: Atoms) -> tuple[float, float, float]:
    """The tilt at which the sum has mean 0, with its logarithm of the mean power, and its variance there."""
    top = atoms[0][1]
    low, high, theta = 0.0, math.inf, 0.0
    for _ in range(_MOST_STEPS):
        level, mean, spread = _cumulant(theta, kinds, atoms)
        if mean < 0:
            low = theta
        else:
            high = theta
        step = -mean / spread if spread > 0 else math.inf
        if abs(mean) <= _CLOSE * math.sqrt(spread):
            break
        moved = theta + step
        if not low < moved < high:
            moved = (low + high) / 2 if math.isfinite(high) else max(2 * low, 1 / top)
        theta = moved
    return theta, level, spread


def _cumulant(theta: float, kinds: Kinds, atoms: Atoms) -> tuple[float, float, float]:
    lift = theta * atoms[0][1]  # the largest power, taken out of all
    zeroth = first = second = 0.0
    for mass, value in atoms:
        weight = mass * math.exp(theta * value - lift)
        zeroth += weight
        first += weight * value
        second += weight * value * value
    none = math.exp(-lift) if lift < 700 else 0.0
    level = mean = spread = 0.0
    for count, drawn in kinds:
        total = (1 - drawn) * none + drawn * zeroth
        one = drawn * first / total
        level += count * (lift + math.log(total))
        mean += count * one
        spread += count * max(drawn * second / total - one * one, 0.0)
    return level, mean, spread


def _positive_part(theta: float, spread: float) -> float:
    """ln of E[S+ e^(-theta S)] for a normal S of mean 0: s (phi(0) - t Q(t) / phi(t) phi(0)), with t = theta s."""
    deviation = math.sqrt(max(spread, 1e-300))
    t = theta * deviation
    # t times Mills' ratio is below 1; far out, one less it is 1 / t^2 - 3 / t^4 + ...
    rest = 1 / t**2 - 3 / t**4 + 15 / t**6 if t > 30 else 1 - t * _mills(t)
    return math.log(deviation / math.sqrt(2 * math.pi)) + math.log(max(rest, 1e-300))


def _mills(t: float) -> float:
    return math.sqrt(math.pi / 2) * math.exp(t * t / 2) * math.erfc(t / math.sqrt(2))
