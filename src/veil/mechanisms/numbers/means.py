"""Mechanisms for means: Piecewise and StochasticRounding.

Piecewise reports an integer from a window that moves with the number, or one from outside of it. StochasticRounding
rounds the number to one of the two bounds at random, and reports that through a biased coin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veil.domain import DomainLike
from veil.entropy import Source
from veil.errors import ParameterError
from veil.mechanisms.numbers.moments import MeanMechanism
from veil.privacy import exp_near, inside_threshold
from veil.reports.layout import Field, Layout
from veil.tools.json_documents import Json
from veil.tools.numbers import is_int

_MOST_STEPS = 1 << 24  # squares of reports are tallied in two parts of 24 bits


@dataclass(frozen=True, init=False)
class Piecewise(MeanMechanism):
    """Report one of `steps` integers: with probability p one from a window of `window` that moves with the number, else
    one of the others. For means (Wang et al., ICDE 2019, "Collecting and Analyzing Multidimensional Data").

    Guarantee: a report has probability p / W in the window and (1 - p) / (K - W) outside, whatever is held, so the
    ratio is p (K - W) / ((1 - p) W) <= e^eps exactly, with p = T / 2^64 rounded down. All K reports are possible under
    every value. Of G cells, the window of cell u starts at u (K - W) / (G - 1), rounded up or down at random in exact
    proportion: the expected report is linear in u, and the estimate has no bias. W is K / (e^(eps / 2) + 1), rounded.
    Draws: `below(G - 1)` for the start, the coin, then `below(W)` or `below(K - W)`, which skips the window.

    >>> mechanism = Piecewise(epsilon=4.0, domain=101)
    >>> mechanism.guarantee.within(4.0), mechanism.layout.size, mechanism.window
    (True, 2, 7812)
    """

    steps: int
    window: int
    name: ClassVar[str] = "Piecewise"

    def __init__(self, epsilon: float, domain: DomainLike, steps: int = 1 << 16, window: int | None = None) -> None:
        super().__init__(epsilon, domain)
        if not is_int(steps) or not 2 <= steps <= _MOST_STEPS:
            raise ParameterError("Piecewise has between 2 and 2^24 steps")
        chosen = max(1, round(int(steps) / (exp_near(Fraction(self.epsilon) / 2) + 1))) if window is None else window
        if not is_int(chosen) or not 1 <= chosen < steps:
            raise ParameterError("a window has at least one step, and fewer than there are")
        object.__setattr__(self, "steps", int(steps))
        object.__setattr__(self, "window", int(chosen))

    def parameters(self) -> Json:
        return {"steps": self.steps, "window": self.window}

    @property
    def levels(self) -> int:
        return self.steps

    @property
    def width(self) -> int:
        return self.window

    @cached_property
    def inside(self) -> int:
        return inside_threshold(self.epsilon, self.window, self.travel)

    @property
    def thresholds(self) -> Mapping[str, int]:
        return {"inside": self.inside}

    @cached_property
    def layout(self) -> Layout:
        return Layout((Field("step", self.steps),))

    def draw(self, codes: NDArray[Any], source: Source) -> dict[str, NDArray[Any]]:
        starts = self.draw_starts(codes.astype(np.uint64), source)
        inside = source.coin(self.inside, len(codes))
        window, others = np.uint64(self.window), np.uint64(self.travel)
        drawn = source.below(np.where(inside, window, others), len(codes))
        shift = np.where(inside, starts, window * (drawn >= starts))
        return {"step": (drawn + shift).astype(self.layout.fields[0].dtype)}

    def draw_starts(self, codes: NDArray[np.uint64], source: Source) -> NDArray[np.uint64]:
        """Runs on the device: where windows start; a draw decides on the last step, in exact proportion."""
        last = np.uint64(self.cells - 1)
        way = codes * np.uint64(self.travel)  # below 2^32 * 2^24
        starts = way // last
        starts += source.below(int(last), len(codes)) < way - starts * last
        return starts


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
