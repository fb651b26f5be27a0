"""The distribution of a number through Square Wave, as a study: one question, and how its reports are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from veil.errors import ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.numbers.reconstruction import Smoothing
from veil.numeric.asking import DistributionStudy, check_bands
from veil.numeric.assumed import Assume, assumed_bands, check_assumption
from veil.numeric.bands import SURVEYS
from veil.results.bands.base import Bands
from veil.results.distribution import Distribution
from veil.study import Collected
from veil.survey import Survey

__all__ = ["WaveDistribution"]

_SMOOTHINGS: dict[str, Smoothing] = {"ems": True, "em": False, "auto": "auto"}


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

    def distribution(self, collected: Collected) -> Distribution:
        chosen = _SMOOTHINGS[self.smoothing] if isinstance(self.smoothing, str) else self.smoothing
        part = collected.tally().part(0)
        return self.mechanism.estimate(part, population=collected.population, smoothing=chosen)

    def draw(self, collected: Collected, found: Distribution) -> Bands:
        tally = collected.tally().part(0)
        return assumed_bands(self.mechanism, tally, found, self.assume, self.bands)
