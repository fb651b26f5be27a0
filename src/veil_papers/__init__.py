"""The papers' experiments, run again: each gives tables, figures and the papers' claims with a verdict.

`EXPERIMENTS` is the catalogue; `veil reproduce NAME` runs one. Nothing here is needed to use veil.
"""

from __future__ import annotations

from typing import Protocol

from veil_papers import calibrate as calibrate
from veil_papers import consistency as consistency
from veil_papers import frequency_oracles as frequency_oracles
from veil_papers import heavy_hitters as heavy_hitters
from veil_papers import itemsets as itemset_mining
from veil_papers import splitting as splitting
from veil_papers import square_wave as numeric
from veil_papers.common.exhibits import Setting, Study

__all__ = ["EXPERIMENTS", "Experiment"]


class Experiment(Protocol):
    """What every experiment is: a function of its setting."""

    def __call__(self, setting: Setting) -> Study: ...


EXPERIMENTS: dict[str, Experiment] = {
    "calibrate": calibrate.reproduce,
    "consistency": consistency.reproduce,
    "frequency-oracles": frequency_oracles.reproduce,
    "heavy-hitters": heavy_hitters.reproduce,
    "itemsets": itemset_mining.reproduce,
    "numeric": numeric.reproduce,
    "splitting": splitting.reproduce,
}
