"""Drawing bands: made-up people are asked, the whole way, to see how far they come out from what they are.

Why this way and not by percentiles of replicates is told in `veil.results.smooth_bands`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.entropy import CHUNK_ROWS, Seeded, Source, check_seed
from veil.errors import EmptyError, InputError, ParameterError
from veil.mechanisms import SquareWave
from veil.mechanisms.reconstruction import Model, Stopping, reconstruct
from veil.results.distribution import Distribution
from veil.results.smooth_bands import SmoothBands
from veil.tally import Tally, merge
from veil.tools.arguments import is_int
from veil.tools.shares import proportional

__all__ = ["FEWEST", "MOST", "Again", "draw_bands", "wave_again", "wave_bands", "wave_pilot"]

Floats = NDArray[np.float64]
Again = Callable[[Iterable[NDArray[np.uint64]], Source], Distribution]
"""The whole way once more for other people: chunks of their codes and a source in, their distribution out."""

FEWEST, MOST = 10, 1_000


def draw_bands(
    found: Distribution, again: Again, pilot: Floats | None = None, replicates: int = 200, seed: int = 0
) -> SmoothBands:
    """Simulate `replicates` collections; the same seed gives the same bands. `replace(found, bands=...)` attaches them.

    `pilot` are the masses that made-up people are drawn from, where they are not the found ones: before anything was
    smoothed away.

    >>> from veil import Interval, simulate
    >>> from veil.numeric import Binning
    >>> asked = Binning(epsilon=2.0, domain=Interval(0.0, 1.0), bins=4)
    >>> found = simulate(asked, [0.1] * 3000 + [0.6] * 7000, seed=1)
    >>> low, high = draw_bands(found, asked.again(found), replicates=20).mean()
    >>> bool(low < found.mean() < high)
    True
    """
    if not is_int(replicates) or replicates < FEWEST:
        raise ParameterError(f"bands need at least {FEWEST} replicates")
    seeds = np.random.default_rng(check_seed(seed)).integers(0, 2**62, size=(replicates, 2))
    before = found if pilot is None else replace(found, masses=pilot)
    asked = replace(before, masses=before.normal)  # nobody is made up from negative masses
    try:
        drawn = [again(_people(asked, int(who)), Seeded(int(how))).masses for who, how in seeds]
    except EmptyError:
        raise EmptyError("too few people for bands: asked again, nobody might answer some question") from None
    return SmoothBands(found.domain, found.cells, found.masses, asked.masses, np.array(drawn))


def wave_bands(
    mechanism: SquareWave, tally: Tally, found: Distribution, replicates: int = 200, seed: int = 0, **options: Any
) -> SmoothBands:
    """The bands of what `mechanism.estimate(tally, ...)` found; `stopping` and `start` as they were given there.

    >>> from veil import Interval
    >>> wave = SquareWave(2.0, Interval(0, 1), buckets=32)
    >>> tally = wave.tally(wave.randomize(np.linspace(0.2, 0.8, 20_000), Seeded(1)))
    >>> found = wave.estimate(tally)
    >>> low, high = wave_bands(wave, tally, found, replicates=20).mean()
    >>> bool(low < found.mean() < high)
    True
    """
    return draw_bands(found, wave_again(mechanism, found, **options), wave_pilot(mechanism, tally), replicates, seed)


def wave_pilot(mechanism: SquareWave, tally: Tally) -> Floats:
    """The masses before anything is smoothed away: by plain EM."""
    return reconstruct(mechanism, mechanism.people_counts(tally), smoothing=False)[0]


def wave_again(
    mechanism: SquareWave, found: Distribution, *, stopping: Stopping | None = None, start: Any = None
) -> Again:
    """Report through the same wave, and reconstruct by the model that was found: it is chosen once."""
    if found.fit is None or found.fit.share is None:
        raise InputError("this distribution was not reconstructed from a wave's reports")
    model = Model(found.fit.share, found.fit.penalty)

    def again(people: Iterable[NDArray[np.uint64]], source: Source) -> Distribution:
        parts = (mechanism.draw(codes, stream) for codes in people for _, stream in source.chunks(len(codes)))
        drawn = merge(mechanism.tally_columns(part, None) for part in parts)
        return mechanism.estimate(drawn, smoothing=model, stopping=stopping, start=start)

    return again


def _people(asked: Distribution, seed: int) -> Iterator[NDArray[np.uint64]]:
    """As many made-up people as reported, distributed like this; a chunk of their codes at a time."""
    rng = np.random.default_rng(seed)
    many = max(1, round(asked.n if asked.effective is None else asked.effective))
    # where only a share was asked, who they are is left to chance, too
    counts = proportional(asked.masses, many) if many == asked.population else rng.multinomial(many, asked.masses)
    ends = np.cumsum(counts)
    for first in range(0, many, CHUNK_ROWS):
        buckets = np.searchsorted(ends, np.arange(first, min(first + CHUNK_ROWS, many)), side="right")
        yield rng.integers(asked.cells[:-1][buckets], asked.cells[1:][buckets]).astype(np.uint64)
