"""Distributions of numbers over people: incomes, wages, times of day, and laws that are known exactly.

Each is a histogram over equal buckets of [lo, hi) in its own unit. People lie evenly within a bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veil.tools.numbers import proportional
from veil_papers.datasets.counts import Counts
from veil_papers.datasets.files import check_integer, data_file, read_columns

Floats = NDArray[np.float64]

_FINE = 1 << 16  # buckets that keep drawn values apart
_INCOME, _INCOME_ARRAY = "dpbench_histograms.npz", "d1_INCOME_n4096"
_INCOME_BINS, _INCOME_WIDTH, _EARNERS, _NO_INCOME = 4_096, 400, 20_787_122, 0.12
_FLIGHTS, _MINUTES, _DEPARTURES = "us_flights2001_deptime_delay_joint.parquet", 1_440, 3_000_000
_WAGES, _WAGE_LIMIT, _WAGE_EARNERS = "cps_taxunits_taxcalc.parquet", 1 << 19, 177_714


@dataclass(frozen=True, eq=False)
class Numbers(Counts):
    """The number of people in each of equal buckets of [lo, hi), in some unit.

    >>> times = Numbers(np.array([1, 3]), "by hand", stand_in=False, name="waiting", lo=0.0, hi=10.0, unit="minutes")
    >>> times.histogram(4).tolist(), times.spread(4).round(2).tolist()
    ([0.125, 0.125, 0.375, 0.375], [2.5, 5.83, 7.5, 9.17])
    """

    name: str
    lo: float
    hi: float
    unit: str

    @property
    def frequencies(self) -> Floats:
        """The share of the people in each bucket."""
        return self.held / self.people

    def histogram(self, buckets: int) -> Floats:
        """Return the share of the people in each of `buckets` equal parts; buckets are divided in proportion."""
        places = np.arange(check_integer("buckets", buckets) + 1) * len(self.held) / buckets
        return np.diff(np.interp(places, np.arange(len(self.held) + 1), self._running())) / self.people

    def spread(self, n: int) -> Floats:
        """Return the values of n people who represent all, sorted: person j holds the quantile (j + 1/2) / n.

        Their distribution is within 1 / (2n) of the data's, so that no sampling error adds to the mechanism's.
        """
        return self._at((np.arange(check_integer("n", n), dtype=np.float64) + 0.5) * (self.people / n))

    def sample(self, n: int, seed: int) -> Floats:
        """Draw the values of n independent people."""
        return self._at(np.random.default_rng(seed).random(check_integer("n", n)) * self.people)

    def _at(self, ranks: Floats) -> Floats:
        """Return the values at these ranks among all people."""
        edges = np.linspace(self.lo, self.hi, len(self.held) + 1)
        return np.asarray(np.interp(ranks, self._running(), edges))

    def _running(self) -> Floats:
        """Return the number of people below each edge; exact, since people are fewer than 2^53."""
        return np.concatenate([[0.0], np.cumsum(self.held)])


def income(folder: str | Path | None = None, *, bins: int = _INCOME_BINS) -> Numbers:
    """Return yearly incomes of 20,787,122 people in the US (IPUMS, in DPBench's 4,096 bins), or the first bins of them.

    The file does not say how wide a bin is: 400 dollars, as the spikes at round thousands show, and the bottom codes
    of the census, -9,999 and -19,998, which lie 24 and 49 bins before the end. For negative incomes wrap around: the
    19,067 people in the last 49 bins made losses. Fewer bins leave them out: 512 bins are incomes below 204,800
    (98.7 % of the people), 1,024 are those below 409,600 (99.7 %). `income().histogram(1024)` sums all 4,096 by fours.

    Without a folder the stand-in is 12 % without an income, and a log-normal law (logarithm: mean 10, deviation 1.1)
    of which 47 % is on round thousands, three times as much on each fifth; nobody makes losses.

    >>> income().people, len(income(bins=512).held), income(bins=512).hi
    (20787122, 512, 204800.0)
    """
    check_integer("bins", bins, 1, _INCOME_BINS)
    path = data_file(folder, _INCOME)
    if path is None:
        shares = (1 - _NO_INCOME) * _earnings(_INCOME_BINS, _INCOME_WIDTH, 10.0, 1.1, round_ones=0.47)
        shares[0] += _NO_INCOME
        held, origin = proportional(shares, _EARNERS), "a stand-in: log-normal with spikes at round thousands"
    else:
        with np.load(path, allow_pickle=False) as arrays:
            held, origin = arrays[_INCOME_ARRAY].astype(np.int64), f"{_INCOME}, {_INCOME_ARRAY}"
    return Numbers(held[:bins], origin, path is None, "income", 0.0, float(bins * _INCOME_WIDTH), "dollars")


def wages(folder: str | Path | None = None, *, below: int = _WAGE_LIMIT) -> Numbers:
    """Return yearly wages of 177,714 people by the dollar, above 0 and below 2^19 (heads of tax units, 2012 to 2014).

    The cut is that of the Square Wave paper's incomes. Wages below 60,000 (140,499 people) stand for its retirement
    plans, which are cut there. Wages were scaled by year, so that their spikes are not at round thousands, but mostly
    a few per cent above; each tax unit counts once, without its weight.

    Without a folder the stand-in is a log-normal law (logarithm: mean 10.16, deviation 1.14), 20 % of it on round
    thousands; it has as many people below 2^19, and about as many below 60,000.

    >>> wages().people, len(wages(below=60_000).held)
    (177714, 60000)
    """
    check_integer("below", below, 1_000, _WAGE_LIMIT)
    path = data_file(folder, _WAGES)
    if path is None:
        held = proportional(_earnings(_WAGE_LIMIT, 1, 10.16, 1.14, round_ones=0.2), _WAGE_EARNERS)
        origin = "a stand-in: log-normal with spikes at round thousands"
    else:
        paid = read_columns(path, "wages_head")["wages_head"].to_numpy()
        held = np.bincount(paid[(paid > 0) & (paid < _WAGE_LIMIT)], minlength=_WAGE_LIMIT).astype(np.int64)
        origin = f"{_WAGES}, wages_head above 0"
    return Numbers(held[:below], origin, path is None, "wages", 0.0, float(below), "dollars")


def flight_times(folder: str | Path | None = None) -> Numbers:
    """Return departures of 3,000,000 US flights of 2001 by minute of the day, in place of taxi pick-up times.

    Many flights depart on a multiple of five minutes (33 %), and few between one and five (0.3 %). Without a folder
    the stand-in is smooth: 45 % normal around 9:00, 54 % around 17:00 (deviations 1.75 and 2.5 hours), 1 % uniform.

    >>> flight_times().people, len(flight_times().held)
    (3000000, 1440)
    """
    path = data_file(folder, _FLIGHTS)
    if path is None:
        day = (
            0.45 * _normal(_MINUTES, 9 / 24, 1.75 / 24) + 0.54 * _normal(_MINUTES, 17 / 24, 2.5 / 24) + 0.01 / _MINUTES
        )
        held, origin = proportional(day, _DEPARTURES), "a stand-in: two normal laws over the day"
    else:
        minute, count = (column.to_numpy() for column in read_columns(path, "dep_minute_of_day", "count").values())
        held, origin = np.bincount(minute, weights=count, minlength=_MINUTES).astype(np.int64), _FLIGHTS
    return Numbers(held, origin, path is None, "flight times", 0.0, float(_MINUTES), "minutes")


def beta_people(people: int = 100_000, seed: int = 0) -> Floats:
    """Draw the values of people from Beta(5, 2) over [0, 1]: the Square Wave paper's synthetic data (6.1).

    >>> beta_people(3).shape
    (3,)
    """
    return np.random.default_rng(seed).beta(5.0, 2.0, size=check_integer("people", people))


def beta_numbers(people: int = 100_000, seed: int = 0) -> Numbers:
    """Return the draws of `beta_people` in 65,536 buckets.

    >>> beta_numbers().people
    100000
    """
    fine = np.minimum(beta_people(people, seed) * _FINE, _FINE - 1).astype(np.int64)
    return _unit(np.bincount(fine, minlength=_FINE), "beta", f"Beta(5, 2), {people:,} draws, seed {seed}")


def uniform_numbers(buckets: int = 1_024, people: int = 1 << 20) -> Numbers:
    """Return the uniform law: bucket counts over [0, 1] differ by at most 1.

    >>> uniform_numbers(4, 8).held.tolist()
    [2, 2, 2, 2]
    """
    shares = np.ones(check_integer("buckets", buckets))
    return _unit(proportional(shares, check_integer("people", people)), "uniform", "the uniform law")


def bimodal_numbers(buckets: int = 1_024, people: int = 1 << 20) -> Numbers:
    """Return two separate peaks in [0, 1]: 60 % normal around 0.25, 40 % around 0.75, deviations 0.06 and 0.04.

    >>> bimodal_numbers(4, 1_000).held.tolist()
    [300, 300, 200, 200]
    """
    size = check_integer("buckets", buckets)
    shares = 0.6 * _normal(size, 0.25, 0.06) + 0.4 * _normal(size, 0.75, 0.04)
    return _unit(proportional(shares, check_integer("people", people)), "bimodal", "two normal laws")


def _unit(held: NDArray[np.int64], name: str, origin: str) -> Numbers:
    """Return a law over [0, 1]; it is exact, not a stand-in."""
    return Numbers(held.astype(np.int64), origin, stand_in=False, name=name, lo=0.0, hi=1.0, unit="")


def _normal(buckets: int, mean: float, deviation: float) -> Floats:
    """Return the masses of a normal law, truncated to [0, 1], in equal buckets."""
    from scipy.special import ndtr

    mass = np.diff(ndtr((np.linspace(0.0, 1.0, buckets + 1) - mean) / deviation))
    return np.asarray(mass / mass.sum())


def _earnings(buckets: int, width: int, mean: float, deviation: float, *, round_ones: float) -> Floats:
    """Return a log-normal law in buckets of `width` dollars, a share of it on thousands, triple on each fifth."""
    from scipy.special import ndtr

    ends = np.arange(1, buckets + 1) * float(width)
    body = np.diff(ndtr((np.log(ends) - mean) / deviation), prepend=0.0)
    thousands = np.arange(1_000, buckets * width, 1_000)
    logs = np.log(thousands)
    heights = np.exp(-(((logs - mean) / deviation) ** 2) / 2 - logs) * np.where(thousands % 5_000 == 0, 3.0, 1.0)
    spikes = np.bincount(thousands // width, weights=heights, minlength=buckets)
    return np.asarray((1 - round_ones) * body / body.sum() + round_ones * spikes / spikes.sum())
