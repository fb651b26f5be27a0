"""Binning: an oracle over a few wide bins, and an even spread within each (Li et al., SIGMOD 2020, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from veil.distribution import Distribution
from veil.domain import Integers, Interval
from veil.errors import ParameterError
from veil.numeric.asking import asked_again, better_oracle, numeric_domain, whole
from veil.post.consistency import norm_sub
from veil.privacy import check_epsilon, decimal_text
from veil.protocol import Protocol
from veil.survey import Survey, SurveyTally

__all__ = ["Binning"]


@dataclass(frozen=True, init=False)
class Binning(Protocol):
    """GRR or OLH, whichever has the smaller variance, over `bins` equal parts of the domain.

    Fewer bins have less noise and more bias. Integers lo .. hi are the Interval from lo - 1/2 to hi + 1/2, whose bins
    need not end between two of them. Guarantee: the oracle's.

    >>> from veil import Interval, simulate
    >>> found = simulate(Binning(epsilon=2.0, domain=Interval(0.0, 1.0), bins=4), [0.1] * 3000 + [0.6] * 7000, seed=1)
    >>> found.masses.round(1).tolist(), found.proper
    ([0.3, 0.0, 0.7, 0.0], True)
    """

    epsilon: float
    domain: Interval
    bins: int = 32

    def __init__(self, epsilon: float, domain: Any, bins: int = 32) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        held = numeric_domain(domain)
        if isinstance(held, Integers):
            held = Interval(held.lo - 0.5, held.hi + 0.5)
        if not isinstance(held, Interval):
            raise ParameterError("bins are cut from an Interval or Integers")
        object.__setattr__(self, "domain", replace(held, cells=bins))
        object.__setattr__(self, "bins", self.domain.cells)
        if self.bins < 2:
            raise ParameterError("a single bin has nothing to ask")

    @cached_property
    def survey(self) -> Survey:
        """One question: which bin."""
        return Survey(better_oracle(self.epsilon, self.domain))

    def estimate(self, tally: SurveyTally) -> Distribution:
        """Runs at the collector: the bins' frequencies by Norm-Sub, so that none is negative and they add up to 1."""
        (found,) = self.survey.estimate(whole(self.own(tally)))
        return Distribution(
            self.domain,
            np.arange(self.bins + 1),
            norm_sub(found.frequencies, 1.0),
            n=found.n,
            population=found.population,
            lineage=(f"Binning(epsilon={decimal_text(self.epsilon)}, bins={self.bins})", *found.lineage, "norm-sub"),
            again=asked_again(self.survey, self.estimate),
        )
