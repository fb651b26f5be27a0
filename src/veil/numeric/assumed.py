"""Which bands to show for a wave's distribution: by simulated surveys, unless the reports contradict a smooth one."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from veil.errors import ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.numbers.reconstruction import Model, neighbour_share, reconstruct
from veil.numeric.bands import SURVEYS, coarse_wave, found_model, wave_bands
from veil.numeric.free import free_bands
from veil.numeric.roughness import Roughness, roughness
from veil.reports.tally import Tally
from veil.results.bands.base import Bands
from veil.results.distribution import Distribution

__all__ = ["Assume", "assumed_bands", "check_assumption", "smoothness_doubt"]

Assume = Literal["smooth", "nothing"]

_STILL_SMOOTH = 1 / 16
"""A fit with less of EMS's share than this says nothing about smoothness."""
_BUCKETS = 256


def assumed_bands(
    mechanism: SquareWave,
    tally: Tally,
    found: Distribution,
    assume: Assume = "smooth",
    replicates: int = SURVEYS,
    seed: int = 0,
) -> Bands:
    """The bands to show for what `mechanism.estimate(tally, ...)` found; `replace(found, bands=...)` attaches them.

    With "smooth" they are drawn by simulated surveys (`wave_bands`), unless the reports contradict a smooth
    distribution; then, and with "nothing", they are the widest that the reports leave possible (`free_bands`).

    >>> from veil import Interval
    >>> from veil.entropy import SeededForExperiments
    >>> wave = SquareWave(4.0, Interval(0, 1), buckets=64)
    >>> people = np.random.default_rng(1).beta(5, 2, 50_000)
    >>> for values in (people, people.round(1)):
    ...     tally = wave.tally(wave.randomize(values, SeededForExperiments(1)))
    ...     assumed_bands(wave, tally, wave.estimate(tally), replicates=20).kind
    'smooth'
    'free'
    """
    if check_assumption(assume) == "nothing":
        return free_bands(mechanism, tally, found)
    doubt = smoothness_doubt(mechanism, tally, found)
    if doubt.rough():
        return replace(free_bands(mechanism, tally, found), because=_because(doubt))
    return wave_bands(mechanism, tally, found, replicates, seed)


def smoothness_doubt(mechanism: SquareWave, tally: Tally, found: Distribution) -> Roughness:
    """Test whether the reports contradict a smooth distribution: the one found, or EMS with a 16th of its share.

    A fit that hardly smooths, or has spikes, agrees with rough reports: what is asked is whether a smooth one would.
    """
    counts, model = mechanism.people_counts(mechanism.own(tally)), found_model(found)
    coarse = coarse_wave(mechanism, _BUCKETS)
    nested = np.isin(coarse.output_edges[:-1], mechanism.output_edges)
    if nested.all():  # reports are counted in fewer buckets, where their boundaries are among those of the tally
        counts = np.add.reduceat(counts, np.searchsorted(mechanism.output_edges, coarse.output_edges[:-1]))
    else:
        coarse = mechanism
    coarser = (coarse.buckets / mechanism.buckets) ** 2
    least = neighbour_share(mechanism.buckets) * _STILL_SMOOTH
    tested = Model(max(model.share, least) * coarser)
    masses = reconstruct(coarse, counts, smoothing=tested)[0]
    return roughness(coarse, counts, masses, tested)


def check_assumption(assume: Assume) -> Assume:
    """What bands rest on, if it is one of the two."""
    if assume not in ("smooth", "nothing"):
        raise ParameterError('bands assume "smooth" or "nothing"')
    return assume


def _because(doubt: Roughness) -> str:
    """What the reports say against a smooth distribution."""
    if doubt.step is None:
        return "The reports contradict a smooth distribution."
    return f"The reports contradict a smooth distribution: people seem to hold multiples of {doubt.step:,g}."
