"""PEM, the prefix extending method, and its parameters (thesis 4.2 and 4.3).

Each person reports the prefix of one length. `prefix_lengths` and `fewest_groups` choose the lengths and the number of
groups; `sensitivity_threshold` is the frequency that a value needs to be found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.search import Oracle, PrefixSearch, Test, as_alphabet, as_held, check_k, per_letter, words
from veil.privacy import check_epsilon
from veil.tools.numbers import critical, is_int

_LAST_FROM = 1.0  # from this eps on a last group twice as large ranks better; below, the rounds before need people
_FIT_FROM = 1.25  # below this eps the upper levels are too noisy to help


@dataclass(frozen=True, init=False)
class PEM(PrefixSearch):
    """Find the k most frequent strings of a domain too large to list, from one report per person.

    Guarantee: a person reports the prefix of one length, drawn independently of the value, through one oracle: eps
    exactly, whatever the collector looks for later (Theorem 4.2.1).

    The number of groups is the smallest that keeps the oracle's queries, keep 2^step groups, within `budget`. `keep` is
    2k for bits and 4k for text, where popular prefixes crowd out the hitters. From eps = 1 on the last group is twice
    as large as the others (`last`), and from 1.25 on the kept trie of bits is fitted by non-negative least squares to
    rank the last round (`fit`). The thesis has keep=k, last=1, fit=False. What people are asked follows from `lengths`
    and `last`; `replace(study, k=5)` keeps those, and looks for another number of values in the same reports. (Through
    PGR the first round's mechanism follows from k too: another k may be another task, whose reports are refused.)

    `oracle="PGR"` asks through `LinearHashing`, projective geometry response in affine coordinates: as accurate as OLH,
    and all continuations of a prefix are decoded by one transform, so that a budget of 2^27 takes seconds.

    >>> PEM(epsilon=1.0, domain=Bits(64), k=16).lengths
    (16, 28, 40, 52, 64)
    >>> import veil
    >>> found = veil.simulate(PEM(epsilon=4.0, domain=Bits(32), k=2, budget=2**12), [7] * 6000 + [2**31] * 4000)
    >>> found.values
    [7, 2147483648]
    """

    kind: ClassVar[str] = "pem"

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
        test: Test | None = None,
        lengths: tuple[int, ...] | None = None,
    ) -> None:
        epsilon, domain = check_epsilon(epsilon), as_held(domain)
        check_k(k, domain)
        if not is_int(budget) or budget < 2:
            raise ParameterError("a budget is a number of queries to the oracle, at least 2")
        if groups is not None and (not is_int(groups) or not 1 <= groups <= domain.bits):
            raise ParameterError("the number of groups lies between 1 and the number of bits")
        if keep is not None and not is_int(keep):
            raise ParameterError("a search keeps at least k prefixes from round to round")
        kept = min((4 if isinstance(domain, Text) else 2) * int(k), domain.size) if keep is None else int(keep)
        letters = as_alphabet(alphabet)
        super().__init__(
            epsilon,
            domain,
            int(k),
            kept,
            lengths or _lengths(domain, int(k), kept, letters, groups, int(budget)),
            test=test,
            threshold=threshold,
            alphabet=letters,
            fit=(isinstance(domain, Bits) and epsilon >= _FIT_FROM) if fit is None else bool(fit),
            last=(2 if epsilon >= _LAST_FROM else 1) if last is None else last,
            oracle=oracle,
        )


def prefix_lengths(bits: int, k: int, groups: int) -> tuple[int, ...]:
    """The prefix that each group reports: ceil(log2 k) bits and equal steps from there on (Algorithm 1).

    >>> prefix_lengths(64, 16, 5)
    (16, 28, 40, 52, 64)
    """
    first = _first(bits, k)
    return tuple(first + -(-i * (bits - first) // groups) for i in range(1, groups + 1))


def fewest_groups(bits: int, k: int, keep: int, budget: int) -> int:
    """The fewest groups whose keep 2^step candidates, over all groups, stay within the budget of queries (4.3).

    Few groups are more accurate: larger groups outweigh more candidates, and a value is filtered less often.

    >>> fewest_groups(64, 16, 16, 2**20)
    5
    """
    rest, keep = max(bits - _first(bits, k), 1), int(keep)
    for groups in range(1, rest + 1):
        if keep * groups << -(-rest // groups) <= budget:
            return groups
    raise ParameterError("this budget of queries is too small even for one bit per round: raise it, or keep fewer")


def sensitivity_threshold(sigma: float, candidates: float, people: int, false_positives: float = 1.0) -> float:
    """Psi: the frequency above which `false_positives` absent candidates come out by chance (4.3.2).

    It is sigma Phi^-1(1 - T/d) / sqrt(n). `sigma` is the oracle's standard deviation for one person, sqrt(n Var*).

    >>> import math
    >>> sigma = math.sqrt(4 * math.e) / (math.e - 1)
    >>> round(sensitivity_threshold(sigma, 2**32, 10**6), 6)
    0.011956
    """
    if not is_int(people) or people < 1 or not sigma > 0:
        raise ParameterError("a threshold needs at least one person and a positive standard deviation")
    if not 0 < false_positives < candidates:
        raise ParameterError("expected more candidates than false positives, and some of these")
    return sigma * critical(false_positives / candidates) / math.sqrt(people)


def _first(bits: int, k: int) -> int:
    """ceil(log2 k): prefixes so short that all of them are kept."""
    return min((int(k) - 1).bit_length(), bits)


def _lengths(
    domain: Bits | Text, k: int, keep: int, alphabet: str | None, groups: int | None, budget: int
) -> tuple[int, ...]:
    """What each group reports: as few groups as the budget allows."""
    if alphabet is None or not isinstance(domain, Text):
        return prefix_lengths(domain.bits, k, int(groups or fewest_groups(domain.bits, k, keep, budget)))
    if groups is not None:
        return per_letter(domain, int(groups))
    for few in range(-(-domain.max_bytes // 7), domain.max_bytes + 1):
        if keep * few * words(alphabet.encode(), -(-domain.max_bytes // few)) <= budget:
            return per_letter(domain, few)
    raise ParameterError("this budget of queries is too small even for one letter per round: raise it, or keep fewer")
