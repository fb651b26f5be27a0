"""Populations whose truth is known to the person: six of numbers, and values, names and sets that people hold.

Each of numbers is a finite list of values with how many people hold each, so that the fraction of people at or below
any number, every quantile and every bucket is known exactly. Four have heaps: many people hold the same round number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Interval
from veil_papers.datasets import (
    Numbers,
    Strings,
    Transactions,
    beta_numbers,
    emoji_uses,
    flight_times,
    income,
    kosarak_sets,
    online_invoices,
    pos_baskets,
    proportional,
    wages,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SEED = 13
_PEOPLE = 1 << 20


@dataclass(frozen=True, eq=False)
class Population:
    """How many people hold each of a finite number of values; `values` increase. `rounds` are numbers that users ask.

    >>> ages = Population("ages", Integers(18, 21), np.array([18.0, 20.0]), np.array([1, 3]), (18.0, 20.0), "by hand")
    >>> ages.cdf(19).tolist(), ages.below(20).tolist(), ages.quantile([0.25, 0.5]).tolist()
    (0.25, 0.25, [18.0, 20.0])
    >>> ages.spread(2).held.tolist()
    [1, 1]
    """

    label: str
    domain: Interval | Integers
    values: Floats
    held: Ints
    rounds: tuple[float, ...]
    origin: str

    @property
    def people(self) -> int:
        """All people together."""
        return int(self.held.sum())

    def cdf(self, x: float | Floats) -> Floats:
        """The fraction of people at or below x."""
        return self._running[np.searchsorted(self.values, x, side="right")] / self.people

    def below(self, x: float | Floats) -> Floats:
        """The fraction of people below x, without those at x: what all buckets up to an edge at x hold."""
        return self._running[np.searchsorted(self.values, x, side="left")] / self.people

    def quantile(self, q: float | list[float] | Floats) -> Floats:
        """The smallest value that a fraction q of the people does not exceed."""
        needed = np.ceil(np.asarray(q, dtype=np.float64) * self.people - 1e-6)
        return self.values[np.clip(np.searchsorted(self._running[1:], needed, side="left"), 0, len(self.values) - 1)]

    @property
    def mean(self) -> float:
        """The mean."""
        return float(self.values @ self.held / self.people)

    def spread(self, people: int) -> Population:
        """So many people who stand for all: person j holds the quantile (j + 1/2) / people."""
        ranks = (np.arange(people) + 0.5) * (self.people / people)
        places = np.searchsorted(self._running[1:], ranks, side="left")
        held = np.bincount(places, minlength=len(self.values))
        return Population(self.label, self.domain, self.values, held, self.rounds, self.origin)

    @cached_property
    def _running(self) -> Floats:
        """How many people hold one of the first values: none, one, two ..."""
        return np.concatenate([[0.0], np.cumsum(self.held)])


def beta(folder: str | Path | None = None) -> Population:
    """100,000 draws of Beta(5, 2), each to the 65,536th: smooth."""
    return _fine("Beta", beta_numbers(), tuple(tenth / 10 for tenth in range(1, 10)))


def flights(folder: str | Path | None = None) -> Population:
    """Minutes of the day at which flights departed; many on multiples of five minutes, and an edge at 6:00."""
    hours = tuple(60.0 * hour for hour in range(6, 23, 2))
    return _fine("flights", flight_times(folder), hours)


def paid_wages(folder: str | Path | None = None) -> Population:
    """Yearly wages below 2^19 dollars, to the dollar; uneven, with heaps that are mostly not at round numbers."""
    asked = (5_000.0, 10_000.0, 15_000.0, 20_000.0, 30_000.0, 40_000.0, 50_000.0, 75_000.0, 100_000.0)
    return _fine("wages", wages(folder), asked)


def incomes(folder: str | Path | None = None) -> Population:
    """Yearly incomes below 204,800 dollars: one in eight without, and many at round thousands.

    The source has buckets of 400 dollars. Where one holds a round thousand, the people whom it has beyond the mean of
    its neighbours are put there; the others lie evenly, at every tenth dollar.
    """
    source = income(folder, bins=512)
    width, held = 400, source.held.astype(np.int64)
    starts = np.arange(len(held)) * width
    thousands = -(-starts // 1_000) * 1_000
    hit = thousands < starts + width
    around = (np.append(held[1:], held[-1]) + np.insert(held[:-1], 0, held[0])) // 2
    heap = np.where(hit, np.maximum(held - around, 0), 0)
    heap[0] = held[0] - min(held[0], held[1])  # nobody earns between 0 and 400 dollars more often than 400 to 800
    steps = 40
    even = np.repeat((held - heap) // steps, steps)
    even[::steps] += (held - heap) % steps
    counts = np.bincount(np.arange(len(held) * steps) * 10, weights=even, minlength=len(held) * width).astype(np.int64)
    counts[thousands[hit]] += heap[hit]
    asked = (0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0, 25_000.0, 30_000.0, 40_000.0, 50_000.0, 60_000.0, 100_000.0)
    return _made("income with spikes", Interval(0, source.hi), counts, asked, source.origin)


def limits(folder: str | Path | None = None) -> Population:
    """Credit limits between 0 and 500,000: 60 % on multiples of 10,000, 25 % on other thousands, the rest anywhere."""
    end = 500_000
    value = np.arange(1, end, dtype=np.float64)
    law = np.exp(-((np.log(value) - np.log(110_000.0)) ** 2) / (2 * 0.9**2)) / value
    whole = np.arange(1, end)
    bumps = np.exp(0.35 * np.random.default_rng(_SEED).standard_normal(end - 1))  # some limits are favourites
    ten, one = whole % 10_000 == 0, (whole % 1_000 == 0) & (whole % 10_000 != 0)
    favourite = np.where(whole % 50_000 == 0, 3.0, 1.0) * bumps * law
    shares = 0.15 * law / law.sum()
    shares += 0.6 * np.where(ten, favourite, 0) / favourite[ten].sum()
    shares += 0.25 * np.where(one, law, 0) / law[one].sum()
    asked = (10_000.0, 20_000.0, 30_000.0, 50_000.0, 80_000.0, 100_000.0, 150_000.0, 200_000.0, 250_000.0, 300_000.0)
    made = "made: log-normal limits, heaped at multiples of 10,000 and 1,000"
    return _made("limits", Interval(0, end), np.insert(proportional(shares, _PEOPLE), 0, 0), asked, made)


def weights(folder: str | Path | None = None) -> Population:
    """Body weights in whole pounds from 80 to 400: 30 % said to the next ten, 20 % to the next five."""
    lo, hi = 80, 400
    whole = np.arange(lo, hi + 1)
    law = np.exp(-((np.log(whole - 60.0) - np.log(115.0)) ** 2) / (2 * 0.36**2)) / (whole - 60.0)
    law /= law.sum()

    def told_to_next(step: int) -> Floats:
        at = np.clip((whole + step // 2) // step * step, lo, hi) - lo
        return np.bincount(at, weights=law, minlength=len(whole)).astype(np.float64)

    shares = 0.5 * law + 0.3 * told_to_next(10) + 0.2 * told_to_next(5)
    held, asked = proportional(shares, _PEOPLE), tuple(float(pounds) for pounds in range(110, 271, 20))
    return Population("weights", Integers(lo, hi), whole.astype(np.float64), held, asked, "made: heaped at 5 and 10")


NUMBERS: dict[str, Callable[[str | Path | None], Population]] = {
    "Beta": beta,
    "flights": flights,
    "wages": paid_wages,
    "income with spikes": incomes,
    "limits": limits,
    "weights": weights,
}
"""The six populations of numbers: Beta, flights, wages, income, limits heaped at round numbers, integers with heaps."""


def seventy(people: int, folder: str | Path | None = None) -> dict[str, Ints]:
    """How many of so many people hold each of 70 values: by Zipf's law, and as the 70 emoji that are used most."""
    zipf = 1.0 / np.arange(1, 71)
    emoji = np.sort(emoji_uses(folder).held)[::-1][:70]
    return {"Zipf": proportional(zipf, people), "emoji": proportional(emoji / emoji.sum(), people)}


def flat_names() -> Strings:
    """Names of six letters, the one of rank r with weight r^-0.7: as flat as surnames are, so that few stand out."""
    rng, different = np.random.default_rng(_SEED), 100_000
    syllables = ["".join(pair) for pair in product("bcdfghjklmnprstvz", "aeiou")]
    every = len(syllables) ** 3
    names = []
    for number in rng.choice(every, different, replace=False).tolist():
        rest, last = divmod(number, len(syllables))
        first, middle = divmod(rest, len(syllables))
        names.append(syllables[first] + syllables[middle] + syllables[last])
    held = proportional(np.arange(1, different + 1, dtype=np.float64) ** -0.7, 10**9)
    return Strings(names, held, f"made: {different:,} names of six letters, r^-0.7", stand_in=False)


def transactions(folder: str | Path | None = None) -> dict[str, Transactions]:
    """The three sets of transactions: baskets, clicks and invoices."""
    return {"POS": pos_baskets(folder), "Kosarak": kosarak_sets(folder), "Online": online_invoices(folder)}


def _fine(label: str, source: Numbers, asked: tuple[float, ...]) -> Population:
    """People of fine buckets, each at the start of theirs."""
    values = np.linspace(source.lo, source.hi, len(source.held) + 1)[:-1]
    kept = source.held > 0
    domain = Interval(source.lo, source.hi)
    return Population(label, domain, values[kept], source.held[kept].astype(np.int64), asked, source.origin)


def _made(label: str, domain: Interval, counts: Ints, asked: tuple[float, ...], origin: str) -> Population:
    """People by the whole number that they hold."""
    values = np.flatnonzero(counts)
    return Population(label, domain, values.astype(np.float64), counts[values], asked, origin)
