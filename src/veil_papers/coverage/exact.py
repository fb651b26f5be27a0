"""Coverage and family-wise errors without any chance: sums over every support that a value can have.

The support of a value that m of n people hold is Bin(m, p) + Bin(n - m, q), whatever the oracle does with other values.
So the interval of every support, from the shipped estimate, is made once, and how often it holds the truth is a sum of
probabilities. Of `significant`, the least support that it calls significant tells everything: what absent values exceed
together is at most the sum of their tails, whether or not their supports depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veil import Estimate, Tally
from veil.mechanisms import PureOracle
from veil_papers.coverage.cells import LEAST, Cell

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ROUNDING, _FEW = 1e-6, 60  # of a person; numbers of holders


def support_law(n: int, held: int, p: float, q: float) -> Floats:
    """The probability of every support 0 .. n of a value that `held` of n people hold.

    >>> support_law(2, 1, 1.0, 0.5).tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    mine, others = binom.pmf(np.arange(held + 1), held, p), binom.pmf(np.arange(n - held + 1), n - held, q)
    joined = np.convolve(mine, others) if n <= 1_000 else fftconvolve(mine, others)
    return np.asarray(np.maximum(joined, 0.0))


def estimates(oracle: PureOracle, n: int, supports: Ints, scale: Fraction = Fraction(1)) -> Iterator[Estimate]:
    """What the collector makes of these supports: as many at a time as there are values."""
    size = oracle.domain.size
    filled = np.append(supports, np.full(-len(supports) % size, supports[-1]))
    for counts in filled.reshape(-1, size):
        yield oracle.estimate(Tally(oracle.digest, counts, n, n, n), scale=scale)


class Holders:
    """Values by how many of n people hold each, with the law of the support of each such number."""

    def __init__(self, oracle: PureOracle, held: Ints, scale: Fraction = Fraction(1)) -> None:
        self.oracle, self.n, self.scale = oracle, int(held.sum()), scale
        self._chances = float(oracle.q + (oracle.p - oracle.q) / scale), float(oracle.q)
        self.holders, self.values = np.unique(held, return_counts=True)
        self.laws = np.stack([support_law(self.n, int(m), *self._chances) for m in self.holders])

    def bounds(self, level: float, kind: str) -> Floats:
        """The interval of every support 0 .. n, in people."""
        every = estimates(self.oracle, self.n, np.arange(self.n + 1), self.scale)
        made = [estimate.interval(level, kind=kind) for estimate in every]
        return np.asarray(np.concatenate(made)[: self.n + 1] * self.n)

    def coverage(self, bounds: Floats) -> float:
        """How often these intervals hold the truth, over all values."""
        low, high, truth = bounds[:, 0], bounds[:, 1], self.holders[:, None]
        return self._mean((self.laws * ((low <= truth + _ROUNDING) & (truth - _ROUNDING <= high))).sum(axis=1))

    def width(self, bounds: Floats) -> float:
        """The mean width, in people."""
        return self._mean(self.laws @ (bounds[:, 1] - bounds[:, 0]))

    def needed(self, bounds: Floats, nominal: float) -> bool:
        """Whether one person less at either end of all intervals covers some number of holders less than it has to.

        Intervals of whole people cannot be narrower then, however often they hold the truth of these people: nobody
        knows before how many hold a value. Numbers of holders up to 60 are tried.
        """
        few = np.arange(min(self.n, _FEW) + 1)
        laws = np.stack([support_law(self.n, int(m), *self._chances) for m in few])
        low, high = np.ceil(bounds[:, 0] - _ROUNDING), np.floor(bounds[:, 1] + _ROUNDING)
        truth = few[:, None]
        from_below, from_above = ((low + 1 <= truth) & (truth <= high)), ((low <= truth) & (truth <= high - 1))
        return all(bool(((laws * held).sum(axis=1) < nominal).any()) for held in (from_below, from_above))

    def _mean(self, by_holders: Floats) -> float:
        return float(by_holders @ self.values / self.values.sum())


def frequency_cells(
    oracle: PureOracle, data: str, held: Ints, levels: Sequence[float], kinds: Sequence[str]
) -> Iterator[tuple[Cell, bool]]:
    """Coverage of an oracle's intervals of several levels and kinds; and whether whole people allow no narrower ones.

    The latter is asked only of those that hold the truth in more than 99 %.
    """
    found = Holders(oracle, held)
    for kind in kinds:
        for level in levels:
            bounds = found.bounds(level, kind)
            coverage, width = found.coverage(bounds), found.width(bounds)
            place = KINDS[kind], oracle.name, data, found.n, oracle.epsilon, level
            yield (
                Cell(*place, coverage, 0.0, width, len(held), LEAST[level]),
                coverage <= 0.99 or found.needed(bounds, level),
            )


KINDS = {"mid-p": "frequencies, mid-p", "exact": "frequencies, exact", "normal": "rival: frequencies, normal"}


@dataclass(frozen=True)
class Tested:
    """What `significant` does with a domain: the least support that it calls significant, and what follows."""

    oracle: str
    values: int
    n: int
    epsilon: float
    support: int
    binomial: int
    """The least support that the exact binomial test at alpha / values calls significant."""
    family: float
    """The chance that any value is called significant if nobody holds any: at most the sum of all tails."""
    normal: float
    """The same for the normal threshold, where supports are independent of each other."""

    @property
    def powerful(self) -> bool:
        """Whether every value is called significant at least as often as by the exact binomial test."""
        return self.support <= self.binomial


def significance_of(oracle: PureOracle, n: int, alpha: float = 0.05) -> Tested:
    """`significant` of an estimate, support by support."""
    from scipy.stats import binom, norm

    values, q = oracle.domain.size, float(oracle.q)
    first = int(n * q)
    supports = np.arange(first, min(n, first + int(12 * np.sqrt(n * q * (1 - q))) + 60) + 1)
    least = n + 1
    for number, estimate in enumerate(estimates(oracle, n, supports)):
        found = [row.value for row in estimate.significant(alpha)]
        if found:
            least = int(supports[number * values + min(found)])
            break
    binomial = int(binom.isf(alpha / values, n, q)) + 1  # the least c with P(Bin(n, q) >= c) <= alpha / values
    normal = int(np.floor(n * q + norm.isf(alpha / values) * np.sqrt(n * q * (1 - q)))) + 1
    together = min(1.0, values * float(binom.sf(least - 1, n, q)))
    apart = -np.expm1(values * np.log1p(-min(float(binom.sf(normal - 1, n, q)), 1 - 1e-16)))
    return Tested(oracle.name, values, n, oracle.epsilon, least, binomial, together, float(apart))
