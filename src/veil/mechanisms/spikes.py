"""smoothing="auto": how much to smooth, and whether there are spikes, by what held-out reports say.

EMS smooths away what people round to: salaries of 50,000, ages of 40; and with many people, or narrow data, it smooths
more than it need. The reports are split into halves, and each half is read with less and less smoothing, down to none,
as long as that explains the other half better. Fitted to half of the reports, a rough model fits more noise than it
will with all of them: so the choice leans to the smooth side. A smooth part plus a spiky one, which pays a penalty for
every spike, is taken if it is surely better still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms.reconstruction import Model, Stopping, run
from veil.mechanisms.waves import Wave

__all__ = ["LESS", "PENALTIES", "choose_model"]

Floats = NDArray[np.float64]

LESS = (1.0, 1 / 4, 1 / 16, 1 / 64, 1 / 256, 0.0)
PENALTIES = (10.0, 1.0)
"""What there is to choose from: EMS with its share, less of it and none (EM), then EMS with spikes; in people."""

_STANDARD_ERRORS = 2
"""By how many paired standard errors spikes have to be better: with none, they come into smooth data now and then."""
_PATIENCE = 2
"""Less smoothing is tried until so many steps in a row were not better."""
_SPLITTING_SEED = 0  # the result is a function of the reports alone


def choose_model(
    wave: Wave, counts: NDArray[Any], share: float, start: Floats, rules: Callable[[Model], Stopping]
) -> Model:
    """Runs at the collector: the share of smoothing, or spikes, that best explain reports which were held out."""
    whole = np.rint(counts).astype(np.int64)  # with weights, the reports are worth no whole number of people
    half = np.random.default_rng(_SPLITTING_SEED).binomial(whole, 0.5)
    halves = (whole - half, half)
    held_out = np.concatenate(halves[::-1])

    def score(model: Model) -> Floats:
        return np.concatenate([np.log(wave.reports(run(wave, one, model, start, rules(model))[0])) for one in halves])

    smooth, best = _walk([Model(share * less) for less in LESS], score, held_out)
    if smooth.share == share:
        return smooth
    spiky = [(Model(share, penalty), score(Model(share, penalty))) for penalty in PENALTIES]
    spikes, found = max(spiky, key=lambda scored: float(held_out @ scored[1]))
    return spikes if _surely_better(held_out, found - best) else smooth


def _walk(models: list[Model], score: Callable[[Model], Floats], held_out: NDArray[np.int64]) -> tuple[Model, Floats]:
    """The best of models that come in order, looking no further once it has gone by."""
    best, scored, missed = models[0], score(models[0]), 0
    for model in models[1:]:
        found = score(model)
        if held_out @ (found - scored) > 0:
            best, scored, missed = model, found, 0
        else:
            missed += 1
        if missed == _PATIENCE:
            break
    return best, scored


def _surely_better(reports: NDArray[np.int64], gained: Floats) -> bool:
    """Whether what reports gain adds up to more than its standard errors, one report being one draw."""
    total = float(reports @ gained)
    spread = float(reports @ (gained - total / reports.sum()) ** 2)
    return total > _STANDARD_ERRORS * float(np.sqrt(spread))
