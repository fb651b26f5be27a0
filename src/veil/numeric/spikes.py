"""smoothing="auto": a smooth distribution plus spikes, where held-out reports speak for spikes.

EMS smooths away what people round to: salaries of 50,000, ages of 40. Here the histogram is a smooth part, averaged as
in EMS, plus a spiky part that pays a penalty for every spike. How high the penalty is, and whether there are spikes at
all, is decided by the likelihood of reports that were held out: the simplest choice that is not worse than the best one
by more than three paired standard errors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.distribution import Fit
from veil.numeric.reconstruction import Stopping, run
from veil.numeric.waves import Wave

__all__ = ["PENALTIES", "with_spikes"]

Floats = NDArray[np.float64]

PENALTIES = (None, 10.0, 3.0, 1.0, 0.3)
"""What there is to choose from, the simplest first: EMS, then penalties in people."""

_FOLDS = 5
_STANDARD_ERRORS = 3
"""One lets spikes into smooth data now and then (errors up to 1.2 times EMS's); three lose nothing on spiky data."""
_SPLITTING_SEED = 0  # the result is a function of the reports alone


def with_spikes(wave: Wave, counts: NDArray[np.int64], start: Floats, rule: Stopping) -> tuple[Floats, Fit, str]:
    """Runs at the collector: the masses with the spikes that held-out reports justify, the fit, and its name."""
    chosen = choose_penalty(wave, counts, start, rule)
    masses, fit = _fitted(wave, counts, start, chosen, rule)
    return masses, fit, "EMS" if chosen is None else f"EMS with spikes (penalty {chosen:g})"


def choose_penalty(wave: Wave, counts: NDArray[np.int64], start: Floats, rule: Stopping) -> float | None:
    """The simplest penalty whose held-out likelihood is not surely worse than the best one's."""
    folds = _folds(counts)
    held_out = np.concatenate(folds)
    scores = [
        np.concatenate([np.log(wave.reports(_fitted(wave, counts - fold, start, penalty, rule)[0])) for fold in folds])
        for penalty in PENALTIES
    ]
    best = scores[int(np.argmax([held_out @ score for score in scores]))]
    worse = [_surely_worse(held_out, best - score) for score in scores]
    return PENALTIES[worse.index(False)]


def _surely_worse(reports: NDArray[np.int64], lost: Floats) -> bool:
    """Whether what reports lose adds up to more than its standard errors, one report being one draw."""
    total = float(reports @ lost)
    spread = float(reports @ (lost - total / reports.sum()) ** 2)
    return total > _STANDARD_ERRORS * float(np.sqrt(spread))


def _folds(counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Every report falls into one of the folds at random: the counts, thinned."""
    rng = np.random.default_rng(_SPLITTING_SEED)
    rest, folds = counts.copy(), []
    for left in range(_FOLDS, 1, -1):
        folds.append(rng.binomial(rest, 1 / left))
        rest = rest - folds[-1]
    return [*folds, rest]


def _fitted(
    wave: Wave, counts: NDArray[np.int64], start: Floats, penalty: float | None, rule: Stopping
) -> tuple[Floats, Fit]:
    if penalty is None:
        return run(wave, counts, start, np.zeros_like(start), 0.0, rule)
    return run(wave, counts, start / 2, start / 2, penalty, rule)
