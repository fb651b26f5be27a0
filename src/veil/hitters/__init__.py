"""Heavy hitters: the most frequent values of a domain too large to list, from one report a person.

    PEM                      longer and longer prefixes (thesis chapter 4)
    draw_search              the same search on drawn supports, for experiments
    sensitivity_threshold    how frequent a value must be to be found
"""

from veil.hitters.drawn import draw_search
from veil.hitters.pem import PEM
from veil.hitters.planning import fewest_groups, prefix_lengths, sensitivity_threshold
from veil.hitters.result import HeavyHitters, SearchRound
from veil.hitters.search import PrefixSearch

__all__ = [
    "PEM",
    "HeavyHitters",
    "PrefixSearch",
    "SearchRound",
    "draw_search",
    "fewest_groups",
    "prefix_lengths",
    "sensitivity_threshold",
]
