"""PEM: the prefix extending method (thesis 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.planning import fewest_groups, prefix_lengths
from veil.hitters.search import PrefixSearch, as_alphabet, as_held, check_k, per_letter, words
from veil.mechanisms import OLH, LinearHashing, PureOracle
from veil.mechanisms.linear_hashing import aligned_suffix
from veil.privacy import check_epsilon
from veil.tools.arguments import is_int

__all__ = ["PEM", "Oracle"]

Oracle = Literal["OLH", "PGR"]
_LAST_FROM = 1.0  # from this eps on a last group twice as large ranks better; below, the rounds before need people
_FIT_FROM = 1.25  # below this eps the upper levels are too noisy to help


@dataclass(frozen=True, init=False)
class PEM(PrefixSearch):
    """Find the k most frequent strings of a domain too large to list, from one report a person.

    Guarantee: a person reports the prefix of one length, drawn independently of the value, through one oracle: eps
    exactly, whatever the collector looks for later (Theorem 4.2.1).

    The number of groups is the smallest that keeps the oracle's queries, keep 2^step groups, within `budget`. `keep` is
    2k for bits and 4k for text, where popular prefixes crowd out the hitters. From eps = 1 on the last group is twice
    as large as the others (`last`), and from 1.25 on the kept trie of bits is fitted by non-negative least squares to
    rank the last round (`fit`). The thesis has keep=k, last=1, fit=False.

    `oracle="PGR"` asks through `LinearHashing`, projective geometry response in affine coordinates: as accurate as OLH,
    and all continuations of a prefix are decoded by one transform, so that a budget of 2^27 takes seconds.

    >>> PEM(epsilon=1.0, domain=Bits(64), k=16).lengths
    (16, 28, 40, 52, 64)
    >>> import veil
    >>> found = veil.simulate(PEM(epsilon=4.0, domain=Bits(32), k=2, budget=2**12), [7] * 6000 + [2**31] * 4000)
    >>> found.values
    [7, 2147483648]
    """

    budget: int = 1 << 20
    kind: Oracle = "OLH"

    def __init__(
        self,
        epsilon: float,
        domain: Bits | Text,
        k: int,
        budget: int = 1 << 20,
        oracle: Oracle = "OLH",
        keep: int | None = None,
        groups: int | None = None,
        threshold: float | None = None,
        alphabet: str | None = None,
        fit: bool | None = None,
        last: int | None = None,
    ) -> None:
        epsilon, domain = check_epsilon(epsilon), as_held(domain)
        check_k(k, domain)
        if not is_int(budget) or budget < 2:
            raise ParameterError("a budget is a number of queries to the oracle, at least 2")
        if oracle not in ("OLH", "PGR"):
            raise ParameterError("the oracle is OLH or PGR")
        if oracle == "PGR" and alphabet is not None:
            raise ParameterError("PGR decodes all continuations at once: with an alphabet take OLH")
        if groups is not None and (not is_int(groups) or not 1 <= groups <= domain.bits):
            raise ParameterError("the number of groups lies between 1 and the number of bits")
        if keep is not None and not is_int(keep):
            raise ParameterError("a search keeps at least k prefixes a round")
        kept = min((4 if isinstance(domain, Text) else 2) * int(k), domain.size) if keep is None else int(keep)
        fields: dict[str, Any] = {
            "epsilon": epsilon,
            "domain": domain,
            "k": int(k),
            "keep": kept,
            "budget": int(budget),
        }
        fields |= {"test": None, "threshold": threshold, "alphabet": as_alphabet(alphabet), "kind": oracle}
        fields["fitted"] = (isinstance(domain, Bits) and epsilon >= _FIT_FROM) if fit is None else bool(fit)
        fields["last"] = (2 if epsilon >= _LAST_FROM else 1) if last is None else last
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "lengths", self._lengths(None if groups is None else int(groups)))
        self.__post_init__()

    def _lengths(self, groups: int | None) -> tuple[int, ...]:
        if self.alphabet is not None and isinstance(self.domain, Text):
            return per_letter(self.domain, groups or self._letter_groups(self.domain))
        groups = groups or fewest_groups(self.domain.bits, self.k, self.keep, self.budget)
        return prefix_lengths(self.domain.bits, self.k, groups)

    def _letter_groups(self, domain: Text) -> int:
        known = (self.alphabet or "").encode()
        for groups in range(-(-domain.max_bytes // 7), domain.max_bytes + 1):
            if self.keep * groups * words(known, -(-domain.max_bytes // groups)) <= self.budget:
                return groups
        raise ParameterError("this budget of queries is too small even for one letter a round: raise it, or keep fewer")

    def oracle(self, epsilon: float, shown: Bits, step: int) -> PureOracle:
        if self.kind == "OLH":
            return OLH(epsilon, shown)
        return LinearHashing(epsilon, shown, suffix=aligned_suffix(epsilon, step))
