"""What the protocols for distributions share: their domain, the oracle they ask through, and asking once more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.domain import Domain, Integers, Numeric
from veil.entropy import Source
from veil.errors import MismatchError, ParameterError
from veil.mechanisms import GRR, OLH, PureOracle
from veil.numeric.bands import Again
from veil.results.distribution import Distribution
from veil.survey import Survey, SurveyTally
from veil.tally import merge
from veil.tools.arguments import is_int

__all__ = ["asked_again", "better_oracle", "numeric_domain", "whole", "worth"]

MOST_BUCKETS = 1 << 24
"""A reconstruction goes through all buckets."""


def numeric_domain(domain: Any) -> Numeric:
    """An Interval or Integers as it is; an int d as 0 .. d - 1.

    >>> numeric_domain(5)
    Integers(lo=0, hi=4)
    """
    held = Integers(0, domain - 1) if is_int(domain) and 1 <= domain <= MOST_BUCKETS else domain
    if not isinstance(held, Numeric):
        raise ParameterError(f"a distribution is over an Interval, Integers or 0 .. d - 1, with d up to {MOST_BUCKETS}")
    return held


def better_oracle(epsilon: float, domain: Domain) -> PureOracle:
    """GRR or OLH, whichever has the smaller variance for a value that nobody holds (Li et al. 2020, section 4.1).

    >>> better_oracle(1.0, Integers(1, 10)).name, better_oracle(1.0, Integers(1, 11)).name
    ('GRR', 'OLH')
    """
    direct = GRR(epsilon, domain)
    if domain.size - 2 <= 3 * math.exp(epsilon):  # no hash range does better (thesis 3.4), and for some none is built
        return direct
    hashed = OLH(epsilon, domain)
    return direct if direct.variance(1) <= hashed.variance(1) else hashed


def whole(tally: SurveyTally) -> SurveyTally:
    """The tally, if it counts whole domains and no chosen candidates."""
    if any(part.candidates is not None for part in tally.parts):
        raise MismatchError("expected a tally of all buckets; this one was made for chosen candidates")
    return tally


def worth(tally: SurveyTally) -> float:
    """How many people without weights the reports to all questions together are worth."""
    weight, square = (sum(getattr(part, name) for part in tally.parts) for name in ("weight", "square"))
    return float(weight**2 / square)


def asked_again(survey: Survey, read: Callable[[SurveyTally], Distribution]) -> Again:
    """The survey and its reading for other people: what a distribution's bands are drawn by."""

    def again(people: Iterable[NDArray[np.uint64]], source: Source) -> Distribution:
        tallies = (
            survey.tally(survey.reports(codes[rows], stream))
            for codes in people
            for rows, stream in source.chunks(len(codes))
        )
        return read(merge(tallies))

    return again
