"""Heavy hitters: the most frequent values of a domain too large to list, from one report a person.

    PEM                         longer and longer prefixes (thesis chapter 4): the one to take
    pem1, tree_hist             its rivals by prefixes, one bit or one byte a round
    SegmentPairs                pairs of segments (SPM)
    MultipleChannel             one value a channel of a public hash (HASH)
    PrivTrie                    a trie that grows round by round: a campaign
    draw_search                 a search on supports drawn without reports, for experiments
    Drawn, split_people         what it is made of; Continuations and cut are the candidates that it asks about
    sensitivity_threshold       how frequent a value must be to be found

What comes out is a `HeavyHitters`. docs/hitters.md says what to expect.
"""

from veil.hitters.channels import MultipleChannel
from veil.hitters.continuations import Continuations, cut
from veil.hitters.drawn import Drawn, draw_search, split_people
from veil.hitters.pem import PEM
from veil.hitters.planning import fewest_groups, prefix_lengths, sensitivity_threshold
from veil.hitters.privtrie import PrivTrie
from veil.hitters.result import HeavyHitters, SearchRound
from veil.hitters.rivals import pem1, tree_hist
from veil.hitters.search import HitterSearch, PrefixSearch
from veil.hitters.segments import SegmentPairs
from veil.protocol import Stored

__all__ = [
    "PEM",
    "Continuations",
    "Drawn",
    "HeavyHitters",
    "HitterSearch",
    "MultipleChannel",
    "PrefixSearch",
    "PrivTrie",
    "SearchRound",
    "SegmentPairs",
    "Stored",
    "cut",
    "draw_search",
    "fewest_groups",
    "pem1",
    "prefix_lengths",
    "sensitivity_threshold",
    "split_people",
    "tree_hist",
]
