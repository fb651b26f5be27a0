"""Binning: an oracle over a few wide bins, and an even spread within each (Li et al., SIGMOD 2020, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Interval, Numeric
from veil.errors import ParameterError
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.numeric.asking import MOST_BUCKETS, DistributionStudy, check_bands, numeric_domain, whole
from veil.numeric.levels import level_bands
from veil.post.consistency import norm_sub
from veil.privacy import check_epsilon, decimal_text
from veil.results.bands.levels import LevelBands
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.study import Collected
from veil.survey import Survey
from veil.tools.numbers import is_int
from veil.tree import Tree

__all__ = ["Binning"]


@dataclass(frozen=True, init=False)
class Binning(DistributionStudy):
    """GRR or OLH, whichever has the smaller variance, over `bins` equal parts of the domain.

    Fewer bins have less noise and more bias. Integers are asked about as the Interval from lo - 1/2 to hi + 1/2, each
    in the bin that holds it. Guarantee: the oracle's. Intervals are those of the bins, which are counted without bias:
    within a bin nothing is known. They need no simulated collections; `bands=0` leaves them out.

    >>> from veil import Interval, simulate
    >>> found = simulate(Binning(epsilon=2.0, domain=Interval(0.0, 1.0), bins=4), [0.1] * 3000 + [0.6] * 7000, seed=1)
    >>> found.masses.round(1).tolist(), found.proper
    ([0.3, 0.0, 0.7, 0.0], True)
    """

    epsilon: float
    domain: Numeric
    bins: int = 32
    bands: int = 200
    kind: ClassVar[str] = "binning"

    def __init__(self, epsilon: float, domain: Any, bins: int = 32, bands: int = 200) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        held = numeric_domain(domain)
        most = MOST_BUCKETS if isinstance(held, Interval) else min(held.size, MOST_BUCKETS)
        if not is_int(bins) or not 2 <= bins <= most:
            raise ParameterError(f"this domain is cut into 2 to {most} bins; a single one has nothing to ask")
        object.__setattr__(self, "domain", replace(held, cells=bins) if isinstance(held, Interval) else held)
        object.__setattr__(self, "bins", int(bins))
        object.__setattr__(self, "bands", check_bands(bands))

    @cached_property
    def _asked(self) -> Interval:
        """The domain as people are asked about it: a cell is a bin."""
        if isinstance(self.domain, Interval):
            return self.domain
        lo, hi = self.domain.ends
        return Interval(lo - 0.5, hi + 0.5, cells=self.bins)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where bins begin on the domain's own grid, and one past the last."""
        bins = np.arange(self.bins + 1)
        if isinstance(self.domain, Interval):
            return bins
        # Integer u is the first with (u + 1/2) * bins / size >= i, but for how a device rounds: its arithmetic decides.
        size = self.domain.size
        near = -((self.bins - 2 * bins * size) // (2 * self.bins))
        below, here = (self._asked.encode(self.domain.ends[0] + np.clip(near + step, 0, size - 1)) for step in (-1, 0))
        starts = np.where((below >= bins) & (near > 0), near - 1, near + (here < bins))
        return np.asarray(np.clip(starts, 0, size))

    @cached_property
    def survey(self) -> Survey:
        """One question: which bin."""
        return Survey(direct_or_hashed(self.epsilon, self._asked))

    def _bins(self, collected: Collected) -> Estimate:
        found = self.survey.estimate_question(whole(collected.tally()), 0, population=collected.population)
        assert isinstance(found, Estimate)
        return found

    def distribution(self, collected: Collected) -> Distribution:
        """Runs at the collector: the bins' frequencies by Norm-Sub, so that none is negative and they add up to 1."""
        found = self._bins(collected)
        return Distribution(
            self.domain,
            self._starts,
            norm_sub(found.frequencies, 1.0),
            n=found.n,
            population=found.population,
            effective=found.effective,
            lineage=(f"Binning(epsilon={decimal_text(self.epsilon)}, bins={self.bins})", *found.lineage, "norm-sub"),
        )

    def draw(self, collected: Collected, found: Distribution) -> LevelBands:
        """Runs at the collector: intervals from the bins before Norm-Sub, which are unbiased; nobody is simulated."""
        return level_bands(found, Tree(self.bins, self.bins), [self._bins(collected)])
