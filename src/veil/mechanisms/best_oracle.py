"""The frequency oracle with the smallest variance, for hierarchies, bins, sizes of sets, Adap and marginals."""

from __future__ import annotations

import math

from veil.domain import Domain
from veil.mechanisms.oracle import PureOracle
from veil.mechanisms.oracles.grr import GRR
from veil.mechanisms.oracles.local_hashing import OLH
from veil.mechanisms.oracles.subset import SubsetSelection
from veil.mechanisms.oracles.unary import OUE

_MOST_BITS = 4096
_MOST_DIRECT = 1 << 32  # values that GRR takes


def direct_or_hashed(epsilon: float, domain: Domain) -> PureOracle:
    """GRR or OLH, whichever has the smaller variance for a value that nobody holds (Li et al. 2020, section 4.1).

    >>> from veil import Integers
    >>> direct_or_hashed(1.0, Integers(1, 10)).name, direct_or_hashed(1.0, Integers(1, 11)).name
    ('GRR', 'OLH')
    """
    if domain.size > _MOST_DIRECT:
        return OLH(epsilon, domain)
    direct = GRR(epsilon, domain)
    if domain.size - 2 <= 3 * math.exp(epsilon):  # no hash range does better (thesis 3.4), and for some none is built
        return direct
    return better(direct, OLH(epsilon, domain))


def least_variance(epsilon: float, domain: Domain) -> PureOracle:
    """GRR, OUE or SubsetSelection, whichever has the smallest variance for a value that nobody holds.

    Of equals the first. SubsetSelection is never worse than the others; of size 1 it is GRR, with longer reports. Above
    4,096 values, where reports of one bit per value grow long, it is GRR or OLH.

    >>> from veil import Categories
    >>> [least_variance(1.0, Categories.range(size)).name for size in (4, 16, 10_000)]
    ['GRR', 'SubsetSelection', 'OLH']
    """
    if domain.size > _MOST_BITS:
        return direct_or_hashed(epsilon, domain)
    return min((kind(epsilon, domain) for kind in (GRR, OUE, SubsetSelection)), key=lambda one: one.variance(1))


def better(first: PureOracle, second: PureOracle) -> PureOracle:
    """The oracle with the smaller variance for a value that nobody holds; of equals, the first."""
    return first if first.variance(1) <= second.variance(1) else second
