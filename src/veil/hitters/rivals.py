"""PEM's rivals that search by prefixes too: PEM1, one bit per round, and TreeHist, one byte per round.

Both are `PrefixSearch` with other lengths. `improved` is what section 4.4.1 of the thesis made of them: people are
split instead of everybody's budget; TreeHist has a tenth of them for a final test, PEM1's last group is its test. All
use OLH and return the k best.
"""

from __future__ import annotations

from veil.domain import Bits, Text
from veil.errors import ParameterError
from veil.hitters.search import PrefixSearch, as_held, check_k
from veil.tools.numbers import is_int

__all__ = ["pem1", "tree_hist"]


def pem1(epsilon: float, domain: Bits | Text, k: int, *, improved: bool = True) -> PrefixSearch:
    """Bassily et al. 2017, as in thesis 4.2.3: each group reports one bit more, from ceil(log2 k) + 1 bits on.

    >>> pem1(1.0, Bits(8), 4).lengths
    (3, 4, 5, 6, 7, 8)
    """
    check_k(k, as_held(domain))
    first = min((int(k) - 1).bit_length() + 1, domain.bits)
    lengths = tuple(range(first, domain.bits + 1))
    return PrefixSearch(epsilon, domain, k, k, lengths, test=None if improved else "budget")


def tree_hist(epsilon: float, domain: Bits | Text, k: int, *, step: int = 8, improved: bool = True) -> PrefixSearch:
    """TreeHist (Bassily et al. 2017) with `step` bits per round: prefixes by one part, a final test by the other.

    >>> tree_hist(1.0, Bits(20), 4).lengths
    (8, 16, 20)
    """
    check_k(k, as_held(domain))
    if not is_int(step) or step < 1:
        raise ParameterError("a step has at least one bit")
    first = max(int(step), (int(k) - 1).bit_length() + 1)
    lengths = (*range(min(first, domain.bits), domain.bits, step), domain.bits)
    return PrefixSearch(epsilon, domain, k, k, lengths, test="people" if improved else "budget")
