"""The people of the Square Wave paper's experiments, how much is run, and the names of its methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veil.datasets import Numbers, beta_numbers, flight_times, income, wages
from veil.domain import Interval
from veil_papers.common.exhibits import Setting

Floats = NDArray[np.float64]

BETA, FLIGHTS, INCOME, WAGES = "Beta", "flights", "income", "wages"
_EARNERS, _RIDES = 2_308_374, 2_189_968  # people in the paper's income and taxi data


class M:
    """The methods, by the names of the paper and ours."""

    EMS, EM, AUTO = "SW-EMS", "SW-EM", "SW-auto (ours)"
    ADMM, EXACT, HH, HAAR = "HH-ADMM", "HH-exact (ours)", "HH", "HaarHRR"
    SR, PM, HM = "SR", "PM", "HM (ours)"
    BINS = ("CFO-16", "CFO-32", "CFO-64")
    DISTRIBUTIONS = (EMS, EM, ADMM, *BINS)  # the paper's methods whose results are probability distributions
    OURS = (AUTO, EXACT, HM)  # what is not in the paper's figures; drawn dashed


class Plan:
    """How much is run; numbers of runs are by data set."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch

        def by_set(full: tuple[int, ...], quick: tuple[int, ...]) -> dict[str, int]:
            return dict(zip((BETA, FLIGHTS, INCOME, WAGES), pick(full, quick), strict=True))

        self.epsilons = pick((0.5, 1.0, 1.5, 2.0, 2.5), (1.0, 2.5))
        self.runs = by_set((500, 100, 100, 100), (20, 3, 3, 3))
        self.auto = by_set((100, 20, 20, 20), (2, 1, 1, 1))
        """In how many of them smoothing="auto" is tried, which takes 26 fits instead of one."""
        self.wave_runs = by_set((100, 12, 12, 25), (4, 1, 1, 1))  # runs at a point of Figures 5 and 7
        self.width_runs = by_set((100, 40, 20, 60), (4, 1, 1, 1))
        """Runs at a point of Figure 6: the least of many means is too small by chance, where they are of few runs."""
        self.formula_runs = by_set((800, 60, 60, 125), (12, 2, 2, 2))
        """The same at the formula's b, which claims are about."""
        self.widths = pick((0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.34, 0.38), (0.05, 0.38))
        self.granularities = pick((256, 512, 1024, 2048), (256, 1024))


@dataclass(frozen=True, eq=False)
class People:
    """So many people who stand for a data set, and the buckets in which their distribution is asked for."""

    label: str
    numbers: Numbers
    buckets: int
    count: int

    @property
    def domain(self) -> Interval:
        """What they hold, on a grid so fine that a wave does not notice."""
        return Interval(self.numbers.lo, self.numbers.hi)

    @property
    def bucketed(self) -> Interval:
        """What they hold, to the bucket: for everything but waves."""
        return Interval(self.numbers.lo, self.numbers.hi, cells=self.buckets)

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """The fine cell of every person, in order."""
        return np.asarray(self.domain.encode(self.numbers.spread(self.count)))

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """How many people each bucket has."""
        return np.bincount(self.codes.astype(np.int64) * self.buckets // self.domain.cells, minlength=self.buckets)

    @cached_property
    def truth(self) -> Floats:
        """The distribution that is to be found."""
        return self.numbers.histogram(self.buckets)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance of the buckets' middles, as mechanisms for means see people; in units of [0, 1]."""
        shares, middles = self.held / self.count, (np.arange(self.buckets) + 0.5) / self.buckets
        mean = float(shares @ middles)
        return mean, float(shares @ (middles - mean) ** 2)

    def __str__(self) -> str:
        span = f"{self.numbers.lo:g} to {self.numbers.hi:,.0f} {self.numbers.unit}".strip()
        return f"{self.numbers.origin}; {self.count:,} people, {span}, {self.buckets:,} buckets"


def data_sets(setting: Setting) -> dict[str, People]:
    """The paper's synthetic data and what stands for its three real sets; a quick run has fewer people in the large."""
    share, paid = setting.pick(1, 10), wages(setting.data, below=60_000)
    made = (
        People(BETA, beta_numbers(), 256, 100_000),
        People(FLIGHTS, flight_times(setting.data), 1024, _RIDES // share),
        People(INCOME, income(setting.data, bins=1024), 1024, _EARNERS // share),
        People(WAGES, paid, 1024, paid.people),
    )
    return {people.label: people for people in made}
