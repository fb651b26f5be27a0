"""StochasticRounding: a number is rounded to one of the two ends at random, and the end goes through a biased coin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.entropy import Source
from veil.mechanisms.moments import MeanMechanism
from veil.privacy import inside_threshold
from veil.wire.layout import Field, Layout

__all__ = ["StochasticRounding"]


@dataclass(frozen=True, init=False)
class StochasticRounding(MeanMechanism):
    """Round the number to the high end with a probability in proportion to it, and report the end: kept with
    probability p, swapped otherwise. For means (Duchi, Jordan and Wainwright 2013, in one dimension).

    Guarantee: the report is binary randomized response of the rounded end, so p / (1 - p) <= e^eps exactly, with
    p = T / 2^64 rounded down; people at the two ends reach it. Of G cells, cell u is rounded up with probability
    u / (G - 1), exactly: the estimate t = (ones / n - (1 - p)) / (2 p - 1) has no bias. Better than Piecewise up to
    eps = 1.29 in the worst case. Draws: `below(G - 1)`, then the coin.

    >>> mechanism = StochasticRounding(epsilon=1.0, domain=101)
    >>> mechanism.guarantee.within(1.0), mechanism.layout.size
    (True, 1)
    >>> from veil.entropy import SeededForExperiments
    >>> mean = mechanism.estimate(mechanism.tally(mechanism.randomize([20] * 50_000, SeededForExperiments(1))))
    >>> abs(mean.value - 20) < 4 * mean.stderr
    True
    """

    name: ClassVar[str] = "StochasticRounding"

    @property
    def levels(self) -> int:
        return 2

    @property
    def width(self) -> int:
        return 1

    @cached_property
    def inside(self) -> int:
        return inside_threshold(self.epsilon, 1, 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"keep": self.inside}

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("sign", 2),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        high = source.below(self.cells - 1, len(codes)) < codes
        high ^= ~source.coin(self.inside, len(codes))
        return {"sign": high.astype(np.uint8)}
