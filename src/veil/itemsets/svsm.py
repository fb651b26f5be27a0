"""SVSM: a study that finds the k most frequent itemsets (thesis 5.3.2).

Its candidates are guessed from the frequencies of single items.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from veil.domain import Items
from veil.errors import ParameterError
from veil.itemsets.mining import SVIM, TopItemsStudy
from veil.itemsets.result import FrequentItems, FrequentItemsets, MiningRound
from veil.itemsets.sampling import SizeRule
from veil.privacy import Guarantee
from veil.study import Rounds, Study
from veil.view import ItemSets

_LOWERED = 0.9  # so that adding the most frequent item to a set does not leave its guess as it was
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class SVSM(Study):
    """Set-value itemset mining (thesis 5.3.2): the k most frequent sets of items, single items among them.

    Half of the people go through SVIM. From its k items, 2k sets are guessed to be frequent; of the other half, a fifth
    say how many of those their own set contains, and the rest one of them, padded and updated as in SVIM. `items` is
    another way to mine items (LDPMiner, say), whose second phase and reading of sizes are then those for sets, too.

    Guarantee: each person answers once, with all of eps.

    >>> from veil import simulate
    >>> sets = [[0, 1]] * 20_000 + [[1, 2, 3]] * 9_000 + [[]] * 2_000
    >>> found = simulate(SVSM(4, epsilon=4.0, domain=9), sets, seed=1)
    >>> sorted(found.itemsets[:3])
    [(0,), (0, 1), (1,)]
    """

    k: int
    epsilon: float
    domain: Items
    _: KW_ONLY
    items: TopItemsStudy | None = None
    sizes: SizeRule = "continued"
    kind: ClassVar[str] = "svsm"

    def __post_init__(self) -> None:
        usual = SVIM(self.k, self.epsilon, self.domain, sizes=self.sizes)
        for name in ("k", "epsilon", "domain"):
            object.__setattr__(self, name, getattr(usual, name))
        same = (self.k, self.epsilon, self.domain)
        given = self.items
        if given is not None and (
            not isinstance(given, TopItemsStudy) or (given.k, given.epsilon, given.domain) != same
        ):
            raise ParameterError("items are mined for the same k, epsilon and domain")

    @cached_property
    def _mining(self) -> TopItemsStudy:
        return self.items or SVIM(self.k, self.epsilon, self.domain, sizes=self.sizes)

    @property
    def guarantee(self) -> Guarantee:
        return self._mining.guarantee

    def rounds(self) -> Rounds:
        singles: FrequentItems = yield from self._mining.mine(_HALF)
        frequencies = [row.frequency for row in singles.rows]
        codes = self.domain.universe.encode(singles.items).tolist()
        candidates = likely_sets(codes, frequencies, self.k)
        history: list[MiningRound] = list(singles.history)
        found = None
        if candidates:
            found = yield from self._mining.ask(self._mining.phases.estimate, candidates, _HALF, "itemsets", history)
        return FrequentItemsets(self.k, singles, candidates, found, tuple(history))


def likely_sets(codes: Sequence[int], frequencies: Sequence[float], k: int) -> ItemSets:
    """The 2k sets of two to `largest_size(k)` items with the highest guesses: the product of 0.9 f(x) / max f.

    Items that are not above 0 are in no set. Sets are found best first, from items sorted by frequency: each set has
    two successors that are not better, its last item exchanged for the next one, and the next one added.

    >>> likely_sets([7, 4, 9], [0.5, 0.4, 0.1], k=1)
    ((4, 7), (7, 9))
    """
    pairs = sorted(
        ((f, code) for f, code in zip(frequencies, codes, strict=True) if f > 0), key=lambda p: (-p[0], p[1])
    )
    if len(pairs) < 2:
        return ()
    logs = [math.log(_LOWERED * f / pairs[0][0]) for f, _ in pairs]
    most = largest_size(k)
    found: list[tuple[int, ...]] = []
    waiting: list[tuple[float, tuple[int, ...]]] = [(-logs[0], (0,))]
    while waiting and len(found) < 2 * k:
        cost, places = heapq.heappop(waiting)
        if len(places) > 1:
            found.append(tuple(sorted(pairs[place][1] for place in places)))
        following = places[-1] + 1
        if following < len(pairs):
            heapq.heappush(waiting, (cost + logs[places[-1]] - logs[following], (*places[:-1], following)))
            if len(places) < most:
                heapq.heappush(waiting, (cost - logs[following], (*places, following)))
    return tuple(found)


def largest_size(k: int) -> int:
    """The largest size of a set among the k most frequent: below log2 k, but at least 2.

    >>> largest_size(64), largest_size(65), largest_size(3)
    (5, 6, 2)
    """
    return max(2, math.ceil(math.log2(k)) - 1)
