"""TreeHist behind a shuffler: each person reports every prefix, and each level is shuffled separately (thesis 9.6.3).

Without a shuffler the people are divided among the levels, because splitting a local budget costs more. With one,
dividing the central epsilon and delta by six costs less than losing five sixths of the people.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from veil.accounting import Bound, largest_local
from veil.accounting.bounds import check_delta
from veil.accounting.rivals import solh_buckets
from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.rivals.prefixes import tree_hist
from veil.hitters.search import Oracle, PrefixSearch, Test  # noqa: F401  # hints of inherited fields resolve here
from veil.mechanisms import OLH, PureOracle
from veil.privacy import check_epsilon, split_epsilon
from veil.survey import AllOf, Survey


@dataclass(frozen=True)
class EveryPrefix(PrefixSearch):
    """A search through prefixes in which everybody reports the prefix of every length, all in one message.

    `epsilon` is of the whole message; each length has an equal part of it. Guarantee: the local one is of the whole
    message, and large. After a shuffle each length has a central promise of its own, and those add up (`together` of
    guarantees), if the shuffler takes messages apart and shuffles each length for itself: reports of several lengths
    that stay linked are not accounted for.

    >>> from veil import Bits
    >>> EveryPrefix(6.0, Bits(16), 4, 4, (8, 16), hash_range=20).survey.guarantee.within(6.0)
    True
    """

    hash_range: int | None = None
    kind: ClassVar[str] = "every-prefix"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.test is not None or self.last != 1 or self.oracle != "OLH":
            raise ParameterError("where everybody reports every prefix through OLH there is no test and no last group")

    @cached_property
    def survey(self) -> Survey:
        part = split_epsilon(self.epsilon, len(self.lengths))
        asked = [self._asked(part, level) for level in range(len(self.lengths))]
        return Survey(asked[0] if len(asked) == 1 else AllOf(*asked))

    def _mechanism(self, epsilon: float, shown: Bits, step: int) -> PureOracle:
        return OLH(epsilon, shown, self.hash_range)


def shuffled_tree_hist(
    epsilon: float,
    domain: Bits | Text,
    k: int,
    users: int,
    delta: float,
    *,
    step: int = 8,
    bound: Bound = "thesis",
    cap: float = 6.0,
) -> EveryPrefix:
    """TreeHist through SOLH whose shuffled messages keep (epsilon, delta): each length has an equal part of both.

    d' is the thesis's (9.4) for that part; the local epsilon of a length is the largest that the bound allows, up to
    the cap. The message as a whole has as many times that, as `epsilon` of the study says. With bound="blanket" the
    same promise leaves less noise.

    >>> from veil import Bits
    >>> found = shuffled_tree_hist(0.6, Bits(48), 32, 500_000, 1e-9)
    >>> found.lengths, found.hash_range
    ((8, 16, 24, 32, 40, 48), 6)
    """
    lengths = tree_hist(1.0, domain, k, step=step).lengths
    parts, epsilon, delta = len(lengths), check_epsilon(epsilon), check_delta(delta)
    buckets = solh_buckets(epsilon / parts, users, delta / parts)
    level = largest_local(lambda eps: OLH(eps, Bits(8), buckets), users, epsilon / parts, delta / parts, bound, cap)
    return EveryPrefix(level.epsilon * parts, domain, k, k, lengths, hash_range=buckets)
