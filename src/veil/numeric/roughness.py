"""A test whether a wave's reports contradict the smooth distribution fitted to them, by simulated surveys.

It looks for two kinds of roughness. Any kind: the gain in likelihood by some steps of plain EM, which does not smooth.
Heaps at round numbers: whether the reports lean towards what they would be if some people rounded their values to
multiples of 10, of 1,000, and so on. The second looks in a few directions only, and finds heaps that a wave blurs so
much that the first misses them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veil.domain import Integers, Interval, Numeric
from veil.errors import ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.numbers.reconstruction import Model, Stopping, Wave, run
from veil.results.bands.free import below
from veil.tools.numbers import is_int

Floats = NDArray[np.float64]

ROUGH = 0.05
"""At which p-value a distribution is taken for rough: a false alarm only widens its bands, so it is not a small one."""

_STEPS_OF_EM = 50
_FEWEST, _MOST = 8, 200
_MOST_WINDOWS = 1024
_TIMES = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800)


@dataclass(frozen=True)
class Roughness:
    """How well a smooth fit agrees with the reports: `p` is small where they contradict it.

    `step` is the round number to whose multiples people seem to round, where that stands out most; in the domain's
    units (times: seconds).
    """

    p: float
    step: float | None = None

    def rough(self, level: float = ROUGH) -> bool:
        """Whether the reports contradict the smooth fit."""
        return self.p <= level


def roughness(
    mechanism: SquareWave,
    counts: NDArray[np.float64],
    masses: Floats,
    model: Model,
    *,
    surveys: int = 39,
    seed: int = 0,
    simulated: Iterable[tuple[Floats, Floats]] | None = None,
) -> Roughness:
    """Runs at the collector: test whether reports, in people, come from the masses that `model` fitted to them.

    What is looked at is compared with the same in surveys whose people are distributed as fitted, and whose reports are
    fitted by the same model: so it is allowed for that the fit was made from these very reports. `simulated` are the
    counts and fits of such surveys, where there are some already; else `surveys` of them are drawn. Each statistic is
    standardized over all surveys, the real one among them, and the largest counts: p is the share of surveys in
    which it is as large, exact but for what fitting changes in the masses.

    >>> wave = SquareWave(epsilon=2.0, domain=Interval(0, 100), buckets=128)
    >>> rng = np.random.default_rng(1)
    >>> rounded = wave.tally(wave.randomize(np.round(rng.beta(5, 2, 50_000), 1) * 100)).counts.astype(float)
    >>> from veil.mechanisms.numbers.reconstruction import reconstruct
    >>> masses, _, model = reconstruct(wave, rounded)
    >>> roughness(wave, rounded, masses, model).rough()
    True
    """
    if not is_int(surveys) or surveys < 1:
        raise ParameterError("a test of roughness takes at least one simulated survey")
    wave, heaps = Wave.of(mechanism), _Heaps.of(mechanism)
    again = Stopping.paper(mechanism.epsilon, smoothing=model.share > 0)
    if simulated is None:
        rng, chances = np.random.default_rng(seed), wave.reports(masses)
        drawn = rng.multinomial(max(1, round(float(counts.sum()))), chances / chances.sum(), surveys)
        simulated = ((one, run(wave, one, model, masses, again)[0]) for one in drawn.astype(np.float64))
    found = [_statistics(wave, heaps, counts, run(wave, counts, model, masses, again)[0])]
    found += [_statistics(wave, heaps, *one) for one in simulated]
    every = np.array(found)
    spread = every.std(axis=0)
    standard = (every - every.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    largest = standard.max(axis=1)
    which = int(standard[0].argmax())
    return Roughness(float((largest >= largest[0]).mean()), heaps.steps[which - 1] if which else None)


def round_steps(domain: Numeric, most: int = _MOST) -> list[float]:
    """The steps to whose multiples people may round: 1, 2, 2.5 and 5 times powers of ten; of times, minutes to weeks.

    Between 8 and `most` multiples lie in the domain.

    >>> round_steps(Interval(0, 500_000)), round_steps(Integers(18, 99))
    ([2500.0, 5000.0, 10000.0, 20000.0, 25000.0, 50000.0], [2.0, 5.0, 10.0])
    """
    lo, hi = domain.ends
    if isinstance(domain, Interval) and domain.unit == "time":
        steps = [float(step) for step in _TIMES]
    else:
        power = math.floor(math.log10((hi - lo) or 1.0))
        steps = [digit * 10.0**k for k in range(power - 4, power + 1) for digit in (1.0, 2.0, 2.5, 5.0)]
    if isinstance(domain, Integers):
        steps = [step for step in steps if step > 1 and step.is_integer()]
    return [step for step in steps if _FEWEST <= (hi - lo) / step <= most]


def _statistics(wave: Wave, heaps: _Heaps, counts: Floats, masses: Floats) -> Floats:
    """How much plain EM improves on a fit, and how much reports lean towards heaps at each step."""
    free, _ = run(wave, counts, Model(0.0), masses, Stopping(most=_STEPS_OF_EM))
    gain = wave.log_likelihood(free, counts) - wave.log_likelihood(masses, counts)
    return np.array([gain, *heaps.scores(counts, masses, wave.reports(masses))])


@dataclass(frozen=True, eq=False)
class _Heaps:
    """What reports would be like if everybody rounded to multiples of each step."""

    places: NDArray[np.int64]
    """Where each window of the reports starts among the buckets that they are counted in."""
    edges: Floats
    steps: list[float]
    halfway: list[Floats]
    """Numbers from which on people round to the next multiple."""
    chances: list[Floats]
    """The probability of each window (rows) for people who hold each multiple (columns)."""

    @classmethod
    def of(cls, mechanism: SquareWave) -> _Heaps:
        domain = mechanism.domain
        counted = len(mechanism.output_edges) - 1
        windows = min(counted, _MOST_WINDOWS)
        places = np.arange(windows + 1) * counted // windows
        wave = (mechanism.outputs, mechanism.plateau, mechanism.ramp, float(mechanism.chance))
        lo, hi = domain.ends
        steps = round_steps(domain, min(_MOST, mechanism.buckets // 2))
        halfway, chances = [], []
        for step in steps:
            multiples = np.arange(np.ceil(lo / step), np.floor(hi / step) + 1) * step
            held = domain.encode(domain.values_of(np.clip(multiples, lo, hi))).astype(np.int64)
            halfway.append(multiples[:-1] + step / 2)
            chances.append(np.diff(below(mechanism.output_edges[places], held, *wave), axis=0))
        return cls(places[:-1], domain.edges(mechanism.input_edges), steps, halfway, chances)

    def scores(self, counts: Floats, masses: Floats, expected: Floats) -> list[float]:
        """Score statistics of the share of people who round, at a share of zero: in standard errors of a known fit."""
        inside, chance = np.add.reduceat(counts, self.places), np.add.reduceat(expected, self.places)
        running = np.concatenate([[0.0], np.cumsum(masses)])
        found = []
        for halfway, chances in zip(self.halfway, self.chances, strict=True):
            rounded = np.diff(np.concatenate([[0.0], np.interp(halfway, self.edges, running), running[-1:]]))
            lean = chances @ rounded / chance - 1
            found.append(float(inside @ lean / np.sqrt(inside.sum() * (chance @ lean**2))))
        return found
