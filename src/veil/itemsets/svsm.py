"""SVSM: frequent sets of items, from frequent items (thesis 5.3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from veil.campaign import Campaign, Rounds
from veil.domain import DomainLike, Items
from veil.errors import ParameterError
from veil.itemsets.guessing import likely_sets
from veil.itemsets.mining import SVIM, ItemMining
from veil.itemsets.result import FrequentItems, FrequentItemsets, Step
from veil.itemsets.sizes import SizeRule

__all__ = ["SVSM"]

_HALF = Fraction(1, 2)


@dataclass(frozen=True, init=False)
class SVSM(Campaign):
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

    items: ItemMining

    def __init__(
        self,
        k: int,
        epsilon: float,
        domain: DomainLike,
        *,
        items: ItemMining | None = None,
        sizes: SizeRule = "continued",
    ) -> None:
        mining: ItemMining = SVIM(k, epsilon, domain, sizes=sizes)
        if items is not None:
            if not isinstance(items, ItemMining) or (items.k, items.epsilon, items.domain) != (
                mining.k,
                mining.epsilon,
                mining.domain,
            ):
                raise ParameterError("items are mined for the same k, epsilon and domain")
            mining = items
        object.__setattr__(self, "items", mining)

    @property
    def k(self) -> int:
        """How many sets are looked for."""
        return self.items.k

    @property
    def epsilon(self) -> float:
        """What each person's one report costs."""
        return self.items.epsilon

    @property
    def domain(self) -> Items:
        """What a person holds."""
        return self.items.domain

    def rounds(self) -> Rounds:
        singles: FrequentItems = yield from self.items.mine(_HALF)
        frequencies = [row.frequency for row in singles.rows]
        codes = self.domain.universe.encode(singles.items).tolist()
        candidates = likely_sets(codes, frequencies, self.k)
        history: list[Step] = list(singles.history)
        found = None
        if candidates:
            found = yield from self.items.ask(self.items.estimate, candidates, _HALF, "itemsets", history)
        return FrequentItemsets(self.k, singles, candidates, found, tuple(history))
