"""How many candidates people hold: the length L to pad to, and what is missed by it (thesis 5.3.1, steps 2 and 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veil.errors import ParameterError
from veil.results.estimate import Estimate
from veil.tools.numbers import critical

__all__ = ["SIZES", "SizeRule", "Sizes", "read_sizes"]

Floats = NDArray[np.float64]
SizeRule = Literal["falling", "continued", "threshold"]
SIZES: tuple[SizeRule, ...] = ("falling", "continued", "threshold")

_ALPHA = 0.05
_PERCENTILE = 0.9
_CLEAR = 2.0  # standard errors above 0 that a pool of the tail needs
_SLOWEST = 0.98  # a tail falls at least by so much from size to size


@dataclass(frozen=True)
class Sizes:
    """The share of people with each size of 1, 2, ...; those with nothing are left out."""

    shares: tuple[float, ...]

    @property
    def length(self) -> int:
        """L, the smallest size with a cumulative share above 0.9; 1 where nothing stood out of the noise.

        >>> Sizes((0.3, 0.1, 0.05, 0.01)).length
        3
        """
        running = np.cumsum(self.shares)
        return int(np.argmax(running > _PERCENTILE * running[-1])) + 1 if running[-1] > 0 else 1

    def update(self, length: int) -> float:
        """u'(L): all items held over those that a sample padded to L stands for (5.5).

        >>> Sizes((0.5, 0.0, 0.5)).update(1)
        2.0
        """
        sizes = np.arange(1, len(self.shares) + 1)
        whole = float(np.dot(sizes, self.shares))
        missed = float(np.dot(np.maximum(sizes - length, 0), self.shares))
        return whole / (whole - missed) if whole > missed else 1.0


def read_sizes(estimate: Estimate, rule: SizeRule = "falling") -> Sizes:
    """Runs at the collector: sizes from an estimate over 0, 1, ... most, unbiased and noisy.

    "threshold" is the thesis's: estimates below the significance threshold (3.13) become 0. That loses the long tail
    that sizes have, so that L is too short, and one false size far out spoils u'(L).

    "falling" takes it that shares fall from the most frequent size on. It fits the closest such shares
    (isotonic regression), which pools neighbours until they fall, up to the first pool whose mean is not two of its own
    standard errors above 0: m pooled sizes have an error smaller by sqrt(m). Sizes before the most frequent one go by
    the threshold; where none is significant, shares are taken to fall from size 1 on.

    What lies beyond is too faint to see, and may still be much of what people hold. "continued" adds a geometric tail,
    at the rate at which the fitted shares fell last, as far as the estimates there leave room. "falling" has the
    smaller error for items, "continued" for sets of them, of which some people contain very many. How far u'(L)
    is in doubt by any reading: `veil.itemsets.missed`.

    >>> from veil import GRR, simulate
    >>> read_sizes(simulate(GRR(2.0, 6), [1] * 5_000 + [2] * 2_000 + [3] * 2_000 + [0] * 1_000, seed=1)).length
    3
    """
    if rule not in SIZES:
        raise ParameterError(f"sizes are read by one of {', '.join(SIZES)}")
    found = estimate.frequencies[1:]
    noise = float(np.sqrt(estimate.noise.variance(0.0) / estimate.effective))
    kept = np.where(found > critical(_ALPHA / len(found)) * noise, found, 0.0)
    mode = int(np.argmax(kept))
    if rule == "threshold":
        return Sizes(tuple(kept.tolist()))
    body, tail = _falling(found[mode:], noise)
    return Sizes((*kept[:mode].tolist(), *(body if rule == "falling" else body + tail).tolist()))


def _falling(found: Floats, noise: float) -> tuple[Floats, Floats]:
    """The closest shares that do not rise, while they stand out of the noise; and a geometric tail where not."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(found, increasing=False)
    shares: Floats = fit.x.copy()
    tail = np.zeros(len(found))
    weak = np.flatnonzero(shares[fit.blocks[:-1]] < _CLEAR * noise / np.sqrt(np.diff(fit.blocks)))
    if len(weak):
        end = int(fit.blocks[weak[0]])
        beyond = found[end:]
        room = float(beyond.sum()) + noise * math.sqrt(len(beyond))
        shares[end:], tail[end:] = 0.0, _continued(shares[:end], len(beyond))
        tail *= min(1.0, max(room, 0.0) / float(tail.sum() or 1.0))
    return shares, tail


def _continued(shares: Floats, count: int) -> Floats:
    """`count` more shares, falling as the last third of these does after the middle one."""
    third = len(shares) // 3
    if not third:
        return np.zeros(count)
    last, before = float(shares[-third:].mean()), float(shares[-2 * third : -third].mean())
    rate = min((last / before) ** (1 / third), _SLOWEST)
    steps = np.arange(1, count + 1) + (third - 1) / 2  # from the middle of the last third
    return np.asarray(last * rate**steps)
