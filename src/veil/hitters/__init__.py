"""Heavy hitters: the most frequent values of a domain that is too large to enumerate.

Every person sends one report. The searches return a `HeavyHitters`; docs/hitters.md describes their accuracy.

    PEM                            the prefix extending method (thesis chapter 4): the recommended search
    pem1, tree_hist, PrivTrie      other searches by prefixes
    SegmentPairs, MultipleChannel  searches by pairs of segments (SPM) and by channels of a public hash (HASH)
    shuffled_tree_hist             TreeHist behind a shuffler: each person reports every prefix, as `EveryPrefix`
    PrefixSearch, HitterSearch     base classes of searches
    HeavyHitters, SearchRound      the result, and one round of a search
    Continuations, cut             the candidates of a round, and prefixes of codes
    prefix_lengths, fewest_groups  the lengths of prefixes, and the number of groups of people
    sensitivity_threshold          the frequency that a value needs to be found
"""

from veil.hitters.pem import PEM, fewest_groups, prefix_lengths, sensitivity_threshold
from veil.hitters.result import HeavyHitters, SearchRound
from veil.hitters.rivals.prefixes import PrivTrie, pem1, tree_hist
from veil.hitters.rivals.segments import MultipleChannel, SegmentPairs
from veil.hitters.search import HitterSearch, PrefixSearch
from veil.hitters.shuffled import EveryPrefix, shuffled_tree_hist
from veil.study.continuations import Continuations, cut

__all__ = [
    "PEM",
    "Continuations",
    "EveryPrefix",
    "HeavyHitters",
    "HitterSearch",
    "MultipleChannel",
    "PrefixSearch",
    "PrivTrie",
    "SearchRound",
    "SegmentPairs",
    "cut",
    "fewest_groups",
    "pem1",
    "prefix_lengths",
    "sensitivity_threshold",
    "shuffled_tree_hist",
    "tree_hist",
]
