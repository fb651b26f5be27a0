"""Studies of a distribution: their base class, Square Wave, and Binning.

`WaveDistribution` asks one question, through Square Wave. `Binning` uses an oracle over a few wide bins, with an even
spread within each (Li et al., SIGMOD 2020, section 4.1).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Interval, Numeric
from veil.errors import MismatchError, ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.mechanisms.numbers.reconstruction import Smoothing
from veil.numeric.bands import FEWEST, MOST, SURVEYS, Assume, assumed_bands, check_assumption, level_bands
from veil.post.consistency import norm_sub
from veil.privacy import check_epsilon, decimal_text
from veil.results.bands.base import Bands
from veil.results.bands.levels import LevelBands
from veil.results.distribution import Distribution
from veil.results.estimate import Estimate
from veil.study import Collection, OneRound, Study
from veil.survey import Survey, SurveyTally
from veil.tools.numbers import is_int
from veil.tree import Tree

Asked = TypeVar("Asked", bound=Study)
MOST_BUCKETS = 1 << 24
"""A reconstruction goes through all buckets."""
_SMOOTHINGS: dict[str, Smoothing] = {"ems": True, "em": False, "auto": "auto"}


class DistributionStudy(OneRound[Distribution]):
    """A study of how a number is distributed. `bands` is by how many simulated collections its bands are drawn: 0 draws
    none.
    """

    bands: int

    @abstractmethod
    def distribution(self, collected: Collection) -> Distribution:
        """Runs at the collector: what the reports say, without bands."""

    def answer(self, collected: Collection) -> Distribution:
        found = self.distribution(collected)
        if not self.bands:
            return found
        return replace(found, bands=self.draw(collected, found))

    @abstractmethod
    def draw(self, collected: Collection, found: Distribution) -> Bands:
        """Runs at the collector: how far what was found may be off."""


@dataclass(frozen=True)
class WaveDistribution(DistributionStudy):
    """How a number is distributed, through Square Wave. Guarantee: the wave's.

    `smoothing` is "ems", "em" (none), "auto", which smooths as little as held-out reports ask for, or what a bucket
    gives to each neighbour: up to 1/4. `bands` is by how many simulated surveys the bands are drawn; 0 draws none.
    They `assume` that people are distributed smoothly, unless the reports contradict that; or "nothing", which is wide
    and always holds.

    >>> from veil import Interval, simulate
    >>> import numpy as np
    >>> wave = SquareWave(2.0, Interval(0, 1), buckets=16)
    >>> simulate(WaveDistribution(wave, smoothing="em"), np.linspace(0, 1, 1000), seed=1).lineage
    ('SquareWave(epsilon=2)', 'EM')
    """

    mechanism: SquareWave
    smoothing: Literal["ems", "em", "auto"] | float = "ems"
    bands: int = SURVEYS
    assume: Assume = "smooth"
    kind: ClassVar[str] = "square-wave"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, SquareWave):
            raise ParameterError("this study asks through SquareWave")
        check_bands(self.bands)
        check_assumption(self.assume)

    @cached_property
    def survey(self) -> Survey:
        return Survey(self.mechanism)

    def distribution(self, collected: Collection) -> Distribution:
        chosen = _SMOOTHINGS[self.smoothing] if isinstance(self.smoothing, str) else self.smoothing
        part = collected.tally().part(0)
        return self.mechanism.estimate(part, population=collected.population, smoothing=chosen)

    def draw(self, collected: Collection, found: Distribution) -> Bands:
        tally = collected.tally().part(0)
        return assumed_bands(self.mechanism, tally, found, self.assume, self.bands)


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

    def _bins(self, collected: Collection) -> Estimate:
        found = self.survey.estimate_question(whole(collected.tally()), 0, population=collected.population)
        assert isinstance(found, Estimate)
        return found

    def distribution(self, collected: Collection) -> Distribution:
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

    def draw(self, collected: Collection, found: Distribution) -> LevelBands:
        """Runs at the collector: intervals from the bins before Norm-Sub, which are unbiased; nobody is simulated."""
        return level_bands(found, Tree(self.bins, self.bins), [self._bins(collected)])


def without_bands(study: Asked) -> Asked:
    """The same study, for trials of its estimate alone: to draw bands takes longer than all the rest.

    >>> from veil import Interval, SquareWave
    >>> from veil.numeric import WaveDistribution
    >>> without_bands(WaveDistribution(SquareWave(1.0, Interval(0, 1)))).bands
    0
    """
    # every study is a dataclass
    return replace(study, bands=0) if isinstance(study, DistributionStudy) else study  # type: ignore[type-var]


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


def check_bands(bands: Any) -> int:
    """A number of simulated collections: none, or enough for an error bar."""
    if not is_int(bands) or not (bands == 0 or FEWEST <= bands <= MOST):
        raise ParameterError(
            f"bands take {FEWEST} to {MOST} simulated collections; 0 draws no bands: at least {FEWEST}"
        )
    return int(bands)
