"""How far a range may be off if nothing is known about how people are distributed: for planning, as a standard error.

Half the width of a 95 % interval that assumes nothing, over 1.96, so that it stands beside a standard error. Ways that
count without bias (hierarchies, bins) have such intervals by themselves. A wave's reports leave many distributions
possible: the interval goes from the smallest to the largest mass that one of them gives to the range, by two linear
programmes, for people who are distributed like Beta(5, 2) and reports as they are expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from veil.domain import Integers, Numeric
from veil.mechanisms import SquareWave
from veil.mechanisms.numbers.reconstruction import Wave
from veil.numeric.bands import free_bands
from veil.reports.tally import Tally
from veil.results.bands.levels import LevelBands
from veil.results.distribution import Distribution
from veil.tools.numbers import proportional, two_sided

__all__ = ["banded_error", "wave_error"]

_LEVEL = 0.95


def banded_error(found: Distribution) -> float:
    """The root mean square over ranges of a tenth of the domain, by the intervals that the distribution has."""
    assert isinstance(found.bands, LevelBands)
    return _as_stderr([found.bands.width(lo, hi, _LEVEL) for lo, hi in _ranges(found.domain)])


def wave_error(wave: SquareWave, people: int) -> float:
    """The same for a square wave and so many people, for the same ranges: by bands that assume nothing.

    >>> wide, narrow = (wave_error(SquareWave(epsilon, 1024), 100_000) for epsilon in (1.0, 4.0))
    >>> bool(wide > 2 * narrow > 0.01)
    True
    """
    from scipy.stats import beta

    masses = np.diff(beta.cdf(wave.input_edges / wave.cells, 5, 2))
    counts = proportional(Wave.of(wave).reports(masses), people)
    found = Distribution(wave.domain, wave.input_edges, masses, n=people, population=people)
    bands = free_bands(wave, Tally(wave.digest, counts, people, people, people), found)
    sides = [bands.range(lo, hi, _LEVEL) for lo, hi in _ranges(found.domain)]
    return _as_stderr([high - low for low, high in sides])


def _as_stderr(widths: list[float]) -> float:
    return math.sqrt(sum(width**2 for width in widths) / len(widths)) / 2 / two_sided(_LEVEL)


def _ranges(domain: Numeric) -> Iterator[tuple[object, object]]:
    """The second tenth of the domain, the fourth, ...; of few integers, every second of them."""
    if isinstance(domain, Integers):
        parts = min(10, domain.size)
        starts = np.array([domain.lo + domain.size * part // parts for part in range(parts + 1)])
        ends = list(zip(starts[:-1], starts[1:] - 1, strict=True))
    else:
        starts = domain.values_of(np.linspace(*domain.ends, 11))
        ends = list(pairwise(starts))
    yield from ends[1::2]
