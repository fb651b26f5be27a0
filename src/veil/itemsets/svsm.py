"""SVSM: frequent sets of items, from frequent items (thesis 5.3.2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from veil.domain import Items
from veil.errors import ParameterError
from veil.itemsets.guessing import likely_sets
from veil.itemsets.mining import SVIM, Mining
from veil.itemsets.result import FrequentItems, FrequentItemsets, Step
from veil.itemsets.sizes import SizeRule
from veil.privacy import Guarantee
from veil.study import Rounds, Study

__all__ = ["SVSM"]

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
    items: Mining | None = None
    sizes: SizeRule = "continued"
    kind: ClassVar[str] = "svsm"

    def __post_init__(self) -> None:
        usual = SVIM(self.k, self.epsilon, self.domain, sizes=self.sizes)
        for name in ("k", "epsilon", "domain"):
            object.__setattr__(self, name, getattr(usual, name))
        same = (self.k, self.epsilon, self.domain)
        given = self.items
        if given is not None and (not isinstance(given, Mining) or (given.k, given.epsilon, given.domain) != same):
            raise ParameterError("items are mined for the same k, epsilon and domain")

    @cached_property
    def _mining(self) -> Mining:
        return self.items or SVIM(self.k, self.epsilon, self.domain, sizes=self.sizes)

    @property
    def guarantee(self) -> Guarantee:
        return self._mining.guarantee

    def rounds(self) -> Rounds:
        singles: FrequentItems = yield from self._mining.mine(_HALF)
        frequencies = [row.frequency for row in singles.rows]
        codes = self.domain.universe.encode(singles.items).tolist()
        candidates = likely_sets(codes, frequencies, self.k)
        history: list[Step] = list(singles.history)
        found = None
        if candidates:
            found = yield from self._mining.ask(self._mining.phases.estimate, candidates, _HALF, "itemsets", history)
        return FrequentItemsets(self.k, singles, candidates, found, tuple(history))
