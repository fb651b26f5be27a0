"""Heavy hitters: the most frequent values of a domain too large to list, from one report per person.

    PEM                         longer and longer prefixes (thesis chapter 4): the one to take
    pem1, tree_hist             its rivals by prefixes, one bit or one byte per round
    shuffled_tree_hist          TreeHist behind a shuffler: everybody reports every prefix
    SegmentPairs                pairs of segments (SPM)
    MultipleChannel             one value per channel of a public hash (HASH)
    PrivTrie                    a trie that grows round by round: a study of many rounds
    Continuations, cut          the candidates that a search asks about
    sensitivity_threshold       how frequent a value must be to be found

What comes out is a `HeavyHitters`. docs/hitters.md says what to expect.
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
