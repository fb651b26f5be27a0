"""How far an estimate may be off: variances in closed form, from exact probabilities.

A report of a pure oracle supports the value that is held with probability p and any other with probability q (thesis
3.2). For sums over several values two more numbers matter: how often a report supports two given values at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from veil.errors import InputError
from veil.results.laws import least_support
from veil.tools.numbers import critical

__all__ = ["NOISES", "AdditiveNoise", "Fakes", "Noise", "SupportNoise", "UnknownNoise"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fakes:
    """Uniformly random reports that shufflers added, and how often one supports a value (`support`) or two (`pair`).

    >>> Fakes(2000, Fraction(1, 4), Fraction(0)).variance(), Fakes(2000, Fraction(1, 4), Fraction(0)).removed
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

    def floor(self, people: int, tail: float, fakes: Fakes | None = None) -> float:
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
