"""Coverage and family-wise errors without any chance: sums over every support that a value can have.

The support of a value that m of n people hold is Bin(m, p) + Bin(n - m, q), whatever the oracle does with other values.
So the interval of every support, from the shipped estimate, is made once, and how often it holds the truth is a sum of
probabilities. Of `significant`, the least support that it calls significant tells everything: what absent values exceed
together is at most the sum of their tails, whether or not their supports depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veil import Estimate, Tally
from veil.mechanisms import PureOracle
from veil_papers.coverage.cells import LEAST, Cell

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["mid-p", "exact", "normal"]
_ROUNDING = 1e-6  # of a person
_FEW, _OFTEN = 301, 0.99


def support_law(n: int, held: int, p: float, q: float) -> Floats:
    """The probability of every support 0 .. n of a value that `held` of n people hold.

    >>> support_law(2, 1, 1.0, 0.5).round(6).tolist()
    [0.0, 0.5, 0.5]
    """
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    mine, others = binom.pmf(np.arange(held + 1), held, p), binom.pmf(np.arange(n - held + 1), n - held, q)
    joined = np.convolve(mine, others) if n <= 1_000 else fftconvolve(mine, others)
    return np.asarray(np.maximum(joined, 0.0))


def estimates(oracle: PureOracle, n: int, supports: Ints) -> Iterator[Estimate]:
    """What the collector makes of these supports: as many at a time as there are values."""
    size = oracle.domain.size
    every = np.arange(size, dtype=np.uint64)  # named, as some oracles keep the whole domain in another form
    filled = np.append(supports, np.full(-len(supports) % size, supports[-1]))
    for counts in filled.reshape(-1, size):
        yield oracle.estimate(Tally(oracle.digest, counts, n, n, n, every))


class Supports:
    """Every support 0 .. n that a value can have, with the law of each number of holders that is asked for."""

    def __init__(self, oracle: PureOracle, n: int) -> None:
        self.oracle, self.n = oracle, n
        self._laws: dict[int, Floats] = {}

    def laws(self, holders: Ints) -> Floats:
        """The probabilities of all supports, one row for each of these numbers of holders."""
        for m in holders.tolist():
            if m not in self._laws:
                self._laws[m] = support_law(self.n, m, float(self.oracle.p), float(self.oracle.q))
        return np.stack([self._laws[m] for m in holders.tolist()])

    def bounds(self, level: float, kind: Kind) -> Floats:
        """The interval of every support, in people."""
        every = estimates(self.oracle, self.n, np.arange(self.n + 1))
        made = [estimate.interval(level, kind=kind) for estimate in every]
        return np.asarray(np.concatenate(made)[: self.n + 1] * self.n)

    def coverage(self, bounds: Floats, holders: Ints) -> Floats:
        """How often these intervals hold the truth, for each number of holders.

        A sum of probabilities may be a rounding above 1, on some processors: no interval covers more than always.
        """
        low, high, truth = bounds[:, 0], bounds[:, 1], holders[:, None]
        held = (low <= truth + _ROUNDING) & (truth - _ROUNDING <= high)
        return np.asarray(np.minimum((self.laws(holders) * held).sum(axis=1), 1.0))

    def width(self, bounds: Floats, holders: Ints) -> Floats:
        """The mean width in people, for each number of holders."""
        return np.asarray(self.laws(holders) @ (bounds[:, 1] - bounds[:, 0]))

    def needed(self, bounds: Floats, nominal: float) -> bool:
        """Whether one person less at either end of all intervals covers some number of holders less than it has to.

        Intervals of whole people cannot be narrower then, however often they hold the truth of these people: nobody
        knows before how many hold a value.
        """
        tried = np.unique(np.append(np.arange(min(self.n, _FEW)), np.linspace(0, self.n, _FEW).astype(np.int64)))
        low, high = np.ceil(bounds[:, 0] - _ROUNDING), np.floor(bounds[:, 1] + _ROUNDING)
        shorter = np.stack([low + 1, high], axis=1), np.stack([low, high - 1], axis=1)
        return all(bool((self.coverage(one, tried) < nominal).any()) for one in shorter)


def frequency_cells(
    oracle: PureOracle, data: Mapping[str, Ints], levels: Sequence[float], kinds: Sequence[Kind]
) -> Iterator[tuple[Cell, bool]]:
    """Coverage of an oracle's intervals of several levels and kinds; and whether whole people allow no narrower ones.

    The latter is asked of mid-p intervals of 95 % that hold the truth in more than 99 %. All data sets have as many
    people.
    """
    n = int(next(iter(data.values())).sum())
    found = Supports(oracle, n)
    for kind in kinds:
        for level in levels:
            bounds = found.bounds(level, kind)
            for label, held in data.items():
                holders, values = np.unique(held, return_counts=True)
                coverage, width = (
                    float(of(bounds, holders) @ values / len(held)) for of in (found.coverage, found.width)
                )
                place = KINDS[kind], oracle.name, label, n, oracle.epsilon, level
                cell = Cell(*place, coverage, 0.0, width, len(held), LEAST[level])
                asked = kind == "mid-p" and level == 0.95 and coverage > _OFTEN
                yield cell, not asked or found.needed(bounds, level)


KINDS: dict[Kind, str] = {
    "mid-p": "frequencies, mid-p",
    "exact": "frequencies, exact",
    "normal": "rival: frequencies, normal",
}


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
    """The least support that `significant` calls significant, by bisection; n + 1 where there is none."""
    from scipy.stats import binom, norm

    values, q = oracle.domain.size, float(oracle.q)
    least, most = 0, n + 1  # one value has the support that is tried, the others have none
    while least < most:
        tried = (least + most) // 2
        (estimate,) = estimates(oracle, n, np.append(tried, np.zeros(values - 1, dtype=np.int64)))
        least, most = (least, tried) if estimate.significant(alpha) else (tried + 1, most)
    binomial = int(binom.isf(alpha / values, n, q)) + 1  # the least c with P(Bin(n, q) >= c) <= alpha / values
    normal = int(np.floor(n * q + norm.isf(alpha / values) * np.sqrt(n * q * (1 - q)))) + 1
    together = min(1.0, values * float(binom.sf(least - 1, n, q)))
    apart = -np.expm1(values * np.log1p(-min(float(binom.sf(normal - 1, n, q)), 1 - 1e-16)))
    return Tested(oracle.name, values, n, oracle.epsilon, least, binomial, together, float(apart))
