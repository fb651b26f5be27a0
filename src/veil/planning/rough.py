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
from veil.results.distribution import Distribution
from veil.results.level_bands import LevelBands
from veil.tools.normal import two_sided

__all__ = ["banded_error", "wave_error"]

_LEVEL = 0.95
_CELLS = 120  # of a wave's domain; twelve make a tenth
_EDGES = 90  # where cumulated reports are compared
_TENTHS = range(1, 10, 2)


def banded_error(found: Distribution) -> float:
    """The root mean square over ranges of a tenth of the domain, by the intervals that the distribution has."""
    assert isinstance(found.bands, LevelBands)
    return _as_stderr([found.bands.width(lo, hi, _LEVEL) for lo, hi in _ranges(found.domain)])


def wave_error(wave: SquareWave, people: int) -> float:
    """The same for a square wave and so many people, for the same ranges.

    The cumulated reports of all people stay within sqrt(ln(2 / 0.05) / (2 n)) of what is expected with 95 % (Dvoretzky,
    Kiefer and Wolfowitz 1956, with Massart's constant).

    >>> wide, narrow = (wave_error(SquareWave(epsilon, 1024), 100_000) for epsilon in (1.0, 4.0))
    >>> bool(wide > 2 * narrow > 0.01)
    True
    """
    from scipy.optimize import linprog
    from scipy.stats import beta

    held = (np.arange(_CELLS) + 0.5) / _CELLS
    masses = np.diff(beta.cdf(np.arange(_CELLS + 1) / _CELLS, 5, 2))
    reach, whole = wave.plateau / wave.cells, wave.outputs / wave.cells
    edges = np.linspace(0.0, whole, _EDGES + 1)[1:-1]
    near = np.clip((edges[:, None] - held) / reach, 0.0, 1.0)
    below = float(wave.chance) * near + (1 - float(wave.chance)) * (edges / whole)[:, None]
    slack = math.sqrt(math.log(2 / (1 - _LEVEL)) / (2 * people))
    limits = np.concatenate([below @ masses + slack, -(below @ masses) + slack])
    widths = []
    for tenth in _TENTHS:
        inside = (held * 10 // 1 == tenth).astype(np.float64)
        ends = [
            linprog(
                sign * inside,
                A_ub=np.concatenate([below, -below]),
                b_ub=limits,
                A_eq=np.ones((1, _CELLS)),
                b_eq=[1.0],
                method="highs",
            ).fun
            for sign in (1.0, -1.0)
        ]
        widths.append(-ends[1] - ends[0])
    return _as_stderr(widths)


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
