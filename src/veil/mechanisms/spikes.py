"""smoothing="auto": how much to smooth, and whether there are spikes, by what held-out reports say.

EMS smooths away what people round to: salaries of 50,000, ages of 40; and with many people it smooths more than it
need. Here it is compared with less smoothing, and with a smooth part plus a spiky one that pays a penalty for every
spike. The simplest model is taken that is not worse than the best one by more than three paired standard errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms.reconstruction import Model, Stopping, run
from veil.mechanisms.waves import Wave

__all__ = ["LESS", "PENALTIES", "choose_model"]

Floats = NDArray[np.float64]

LESS = (1.0, 1 / 4, 1 / 16)
PENALTIES = (10.0, 3.0, 1.0, 0.3)
"""What there is to choose from: EMS with its share and less of it, then EMS with spikes; penalties are in people."""

_FOLDS = 5
_STANDARD_ERRORS = 3
"""One lets spikes into smooth data now and then (errors up to 1.2 times EMS's); three lose nothing on spiky data."""
_SPLITTING_SEED = 0  # the result is a function of the reports alone


def choose_model(wave: Wave, counts: NDArray[Any], share: float, start: Floats, rule: Stopping) -> Model:
    """Runs at the collector: the simplest model whose held-out likelihood is not surely worse than the best one's."""
    models = [*(Model(share * less) for less in LESS), *(Model(share, penalty) for penalty in PENALTIES)]
    whole = np.rint(counts).astype(np.int64)  # with weights, the reports are worth no whole number of people
    folds = _folds(whole)
    held_out = np.concatenate(folds)
    scores = [
        np.concatenate([np.log(wave.reports(run(wave, whole - fold, model, start, rule)[0])) for fold in folds])
        for model in models
    ]
    best = scores[int(np.argmax([held_out @ score for score in scores]))]
    worse = [_surely_worse(held_out, best - score) for score in scores]
    return models[worse.index(False)]


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
