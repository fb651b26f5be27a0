"""GRR or OLH, whichever has the smaller variance: how hierarchies, bins, sizes of sets and Adap are asked."""

from __future__ import annotations

import math

from veil.domain import Domain
from veil.mechanisms.grr import GRR
from veil.mechanisms.olh import OLH
from veil.mechanisms.oracle import PureOracle

__all__ = ["better", "direct_or_hashed"]


def direct_or_hashed(epsilon: float, domain: Domain) -> PureOracle:
    """GRR or OLH, whichever has the smaller variance for a value that nobody holds (Li et al. 2020, section 4.1).

    >>> from veil import Integers
    >>> direct_or_hashed(1.0, Integers(1, 10)).name, direct_or_hashed(1.0, Integers(1, 11)).name
    ('GRR', 'OLH')
    """
    direct = GRR(epsilon, domain)
    if domain.size - 2 <= 3 * math.exp(epsilon):  # no hash range does better (thesis 3.4), and for some none is built
        return direct
    return better(direct, OLH(epsilon, domain))


def better(first: PureOracle, second: PureOracle) -> PureOracle:
    """The oracle with the smaller variance for a value that nobody holds; of equals, the first."""
    return first if first.variance(1) <= second.variance(1) else second
