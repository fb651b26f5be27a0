"""How long prefixes are, how many groups there are, and how frequent a value must be to be found (thesis 4.3)."""

from __future__ import annotations

import math

from veil.errors import ParameterError
from veil.tools.numbers import critical, is_int

__all__ = ["fewest_groups", "prefix_lengths", "sensitivity_threshold"]


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
