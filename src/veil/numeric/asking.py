"""What the studies of distributions share: their domain, and their bands."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, TypeVar

from veil.domain import Integers, Numeric
from veil.errors import MismatchError, ParameterError
from veil.numeric.bands import FEWEST, MOST
from veil.results.bands.base import Bands
from veil.results.distribution import Distribution
from veil.study import Collected, OneRound, Study
from veil.survey import SurveyTally
from veil.tools.numbers import is_int

__all__ = ["DistributionStudy", "check_bands", "numeric_domain", "whole", "without_bands", "worth"]

Asked = TypeVar("Asked", bound=Study)

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


def whole(tally: SurveyTally) -> SurveyTally:
    """The tally, if it counts whole domains and no chosen candidates."""
    if any(part.candidates is not None for part in tally.parts):
        raise MismatchError("expected a tally of all buckets; this one was made for chosen candidates")
    return tally


def worth(tally: SurveyTally) -> float:
    """How many people without weights the reports to all questions together are worth."""
    weight, square = (sum(getattr(part, name) for part in tally.parts) for name in ("weight", "square"))
    return float(weight**2 / square)


class DistributionStudy(OneRound[Distribution]):
    """A study of how a number is distributed. `bands` is by how many simulated collections its bands are drawn: 0 draws
    none.
    """

    bands: int

    @abstractmethod
    def distribution(self, collected: Collected) -> Distribution:
        """Runs at the collector: what the reports say, without bands."""

    def answer(self, collected: Collected) -> Distribution:
        found = self.distribution(collected)
        if not self.bands:
            return found
        return replace(found, bands=self.draw(collected, found))

    @abstractmethod
    def draw(self, collected: Collected, found: Distribution) -> Bands:
        """Runs at the collector: how far what was found may be off."""


def without_bands(study: Asked) -> Asked:
    """The same study, for trials of its estimate alone: to draw bands takes longer than all the rest.

    >>> from veil import Interval, SquareWave
    >>> from veil.numeric import WaveDistribution
    >>> without_bands(WaveDistribution(SquareWave(1.0, Interval(0, 1)))).bands
    0
    """
    # every study is a dataclass
    return replace(study, bands=0) if isinstance(study, DistributionStudy) else study  # type: ignore[type-var]


def check_bands(bands: Any) -> int:
    """A number of simulated collections: none, or enough for an error bar."""
    if not is_int(bands) or not (bands == 0 or FEWEST <= bands <= MOST):
        raise ParameterError(
            f"bands take {FEWEST} to {MOST} simulated collections; 0 draws no bands: at least {FEWEST}"
        )
    return int(bands)
