"""Drawing bands by simulated surveys: made-up people are asked, to see how far they come out from what they are.

Why this way and not by percentiles of replicates is told in `veil.results.bands.smooth`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import check_seed
from veil.errors import InputError, ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.numbers.reconstruction import Model, Smoothing, Stopping, Wave, neighbour_share, reconstruct
from veil.reports.tally import Tally
from veil.results.bands.smooth import SmoothBands
from veil.results.distribution import Distribution
from veil.tools.limits import admit
from veil.tools.numbers import is_int

__all__ = ["FEWEST", "MOST", "SURVEYS", "coarse_wave", "found_model", "wave_bands"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST, MOST, SURVEYS = 10, 1_000, 50
"""How many surveys may be simulated, and how many are unless told otherwise."""

_BUCKETS, _IN_HALF_A_WAVE = (128, 256), 32
"""Simulated surveys are reconstructed in at most so many buckets: in the fewer, if so many of them lie in half a wave.

Finer ones have the same errors, and take longer."""
_DIGITS = 7
_SECONDS_EACH = 5e-3
_NEARBY = 8
"""The largest error within an eighth of half a wave's width counts: see docs/numeric.md."""


def wave_bands(
    mechanism: SquareWave,
    tally: Tally,
    found: Distribution,
    replicates: int = SURVEYS,
    seed: int = 0,
    *,
    stopping: Stopping | None = None,
    start: Any = None,
) -> SmoothBands:
    """The bands of what `mechanism.estimate(tally, ...)` found; `stopping` and `start` as they were given there.

    Made-up people are distributed as plain EM has it, before anything is smoothed away, and each of their reports is an
    independent draw: so the counts of all reports are multinomial. (Where exactly these people are asked, and no others
    like them, that is a little more scatter than there is.) A model that was chosen (`smoothing="auto"`) is chosen anew
    in every simulated survey. The error at a place is the largest one within an eighth of half the wave's width: the
    reports tell how rough people may be, but not where the roughness lies.

    >>> from veil import Interval
    >>> from veil.entropy import SeededForExperiments
    >>> wave = SquareWave(2.0, Interval(0, 1), buckets=32)
    >>> tally = wave.tally(wave.randomize(np.linspace(0.2, 0.8, 20_000), SeededForExperiments(1)))
    >>> found = wave.estimate(tally)
    >>> low, high = wave_bands(wave, tally, found, replicates=20).mean()
    >>> bool(low < found.mean() < high)
    True
    """
    from veil.kernels.parallel import in_order

    few, many = _BUCKETS
    surveys = _surveys(replicates)
    admit(f"drawing bands by {surveys:,} simulated collections", 0, surveys * _SECONDS_EACH, "fewer bands")
    coarse = coarse_wave(mechanism, few if mechanism.b * few >= _IN_HALF_A_WAVE else many)
    coarser = (coarse.buckets / mechanism.buckets) ** 2  # a step smooths over as large a part of the domain
    share = neighbour_share(mechanism.buckets) * coarser
    model = found_model(found)
    smoothing: Smoothing = "auto" if "auto" in found.lineage else replace(model, share=model.share * coarser)
    counts = mechanism.people_counts(mechanism.own(tally))
    pilot = reconstruct(mechanism, counts, smoothing=False)[0]
    asked = _regroup(pilot, mechanism.input_edges, coarse.input_edges)
    begun = None if start is None else _regroup(start, mechanism.input_edges, coarse.input_edges)
    law, people = Wave.of(coarse).reports(asked), max(1, round(float(counts.sum())))

    def once(own: np.random.SeedSequence) -> Floats:
        drawn = np.random.default_rng(own).multinomial(people, law / law.sum())
        return reconstruct(coarse, drawn, smoothing=smoothing, stopping=stopping, start=begun, share=share)[0]

    replicated = in_order(once, np.random.SeedSequence(check_seed(seed)).spawn(surveys))
    return SmoothBands(
        found.domain,
        found.cells,
        found.masses,
        coarse.input_edges,
        _errors(np.array(replicated), asked),
        max(mechanism.half_width // _NEARBY, mechanism.cells // mechanism.buckets),
    )


def _surveys(replicates: Any) -> int:
    if not is_int(replicates) or replicates < FEWEST:
        raise ParameterError(f"bands need at least {FEWEST} replicates")
    return int(replicates)


def _errors(found: Floats, asked: Floats) -> Floats:
    """Of the people below each boundary, the fraction found less the true one; with as many digits as matter."""
    errors = np.cumsum(found - asked, axis=1)
    return np.asarray(np.round(np.pad(errors, ((0, 0), (1, 0))), _DIGITS), dtype=np.float64)


def found_model(found: Distribution) -> Model:
    """By which model these reports were reconstructed."""
    if found.fit is None or found.fit.share is None:
        raise InputError("this distribution was not reconstructed from a wave's reports")
    return Model(found.fit.share, found.fit.penalty)


def coarse_wave(mechanism: SquareWave, most: int) -> SquareWave:
    """The same wave, counted in fewer buckets."""
    fewer = min(mechanism.buckets, most)
    return SquareWave(mechanism.epsilon, mechanism.domain, fewer, half_width=mechanism.half_width, ramp=mechanism.ramp)


def _regroup(masses: Floats, cells: Ints, others: Ints) -> Floats:
    """The masses of other buckets, with people spread evenly within these."""
    below = np.interp(others, cells, np.concatenate([[0.0], np.cumsum(masses)]))
    return np.asarray(np.diff(below) / below[-1])
