"""The matrix of a wave, as an operator: what a histogram of people becomes as reports, and the way back.

The dense matrix is never built. Within a bucket people are spread evenly over its cells; then its columns are sums of
cumulative sums, exact on whole cells whether or not the wave's ends fall on a bucket's boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import SquareWave

__all__ = ["Wave"]

Floats = NDArray[np.float64]
Corners = tuple[Floats, NDArray[np.uint64], Floats]


@dataclass(frozen=True, eq=False)
class Wave:
    """M of section 5.5: M[j, i] is the probability that a report lands in bucket j when the value is in bucket i.

    >>> wave = Wave.of(SquareWave(epsilon=1.0, domain=100, buckets=10))
    >>> chances = wave.reports(np.full(10, 0.1))
    >>> round(float(chances.sum()), 12), len(chances)
    (1.0, 15)
    """

    held: Corners
    seen: Corners
    floor: float
    """The probability of a cell outside the wave."""
    lift: float
    """What the wave adds, divided by the pairs of offsets that lead there."""

    @classmethod
    @lru_cache(maxsize=8)  # simulated surveys reconstruct through the same wave again and again
    def of(cls, mechanism: SquareWave) -> Wave:
        """The operator of a mechanism."""
        held, seen = mechanism.input_edges, mechanism.output_edges
        long, short = mechanism.plateau, mechanism.ramp
        # Sums over offsets below `long` (and below `short`) telescope to these ends (or corners), see kernels.waves.
        if short == 1:
            forth = [seen + 1, seen + 1 - long]
            back = [held + long, held]
        else:
            forth = [seen + 2, seen + 2 - long, seen + 2 - short, seen + 2 - long - short]
            back = [held + long + short, held + long, held + short, held]
        chance = mechanism.chance
        return cls(
            held=(_binomials(np.diff(held)), *_places(forth, held)),
            seen=(_binomials(np.diff(seen)), *_places(back, seen)),
            floor=float((1 - chance) / mechanism.outputs),
            lift=float(chance / (long * short)),
        )

    def reports(self, masses: Floats) -> Floats:
        """M x: the probability of each bucket of reports, when people are distributed like this."""
        from veil.kernels.waves import box_sums

        widths, index, binomials = self.held
        waves = box_sums(masses / widths[0], widths, index, binomials)
        return np.asarray(self.floor * masses.sum() * self.seen[0][0] + self.lift * waves)

    def people(self, weights: Floats) -> Floats:
        """M^T r: for each bucket of people, the expected weight of a report."""
        from veil.kernels.waves import box_sums

        widths, index, binomials = self.seen
        waves = box_sums(np.asarray(weights, dtype=np.float64), widths, index, binomials)
        return np.asarray(self.floor * float(weights @ widths[0]) + self.lift * waves / self.held[0][0])

    def log_likelihood(self, masses: Floats, counts: NDArray[Any]) -> float:
        """The logarithm of the reports' probability, when people are distributed like this."""
        seen = counts > 0
        return float(counts[seen] @ np.log(self.reports(masses)[seen]))


def _binomials(distance: NDArray[np.int64]) -> Floats:
    """distance over 1, 2 and 3: Newton's form of cumulative sums."""
    t = distance.astype(np.float64)
    return np.stack([t, t * (t - 1) / 2, t * (t - 1) * (t - 2) / 6])


def _places(corners: list[NDArray[np.int64]], edges: NDArray[np.int64]) -> tuple[NDArray[np.uint64], Floats]:
    """For every corner, the bucket it falls into and the binomials of its distance from that bucket's start."""
    index, binomials = [], []
    for corner in corners:
        inside = np.maximum(corner, 0)  # before the first bucket all sums are zero, as at its start
        bucket = np.searchsorted(edges, inside, side="right") - 1
        index.append(bucket)
        binomials.append(_binomials(inside - edges[bucket]))
    return np.array(index, dtype=np.uint64), np.array(binomials)
