"""The simulated people of the demo: which app they open first in the morning.

No real data, and the same people every time: only their reports are random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.entropy import SeededForExperiments

__all__ = ["APPS", "QUESTION", "made_up"]

QUESTION = "Which app do you open first in the morning?"

# An answer tells more than it seems to (a clinic, a dating app, a job search): that is why it needs a veil.
APPS = tuple(
    """
    messages, weather, mail, news, camera, music, calendar, maps, podcasts, photos, alarm clock, bank, fitness, games,
    notes, train times, shopping, recipes, video calls, e-books, radio, dating, job search, period tracker, meditation,
    sleep log, food delivery, crossword, language lessons, stock prices, football scores, bus tickets, taxi, calculator,
    clinic visits, prayer times, blood sugar, baby monitor, school portal, flat hunting, auctions, crypto wallet,
    betting, karaoke, chess, star map, bird songs, tide table, parking, translator, drawing, drum machine, gardening,
    dream diary, genealogy, knitting, home heating, scanner, compass, ski slopes, mushroom guide, sudoku, astrology,
    pedometer
    """.replace("\n", " ").split(",")
)
APPS = tuple(" ".join(app.split()) for app in APPS)

_UNIT = 1_000_000
_POPULATION_SEED = 64


def made_up(people: int) -> NDArray[np.int64]:
    """Return each simulated person's app as an index. The k-th app has a share proportional to 1 / (k + 2)."""
    ends = np.cumsum([_UNIT // (rank + 3) for rank in range(len(APPS))])
    drawn = SeededForExperiments(_POPULATION_SEED).below(int(ends[-1]), people).astype(np.int64)
    return np.searchsorted(ends, drawn, side="right")
