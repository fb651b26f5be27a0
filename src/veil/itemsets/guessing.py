"""Which sets of items may be frequent, guessed from the frequencies of their items alone (thesis 5.3.2)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from veil.view import ItemSets

__all__ = ["largest_size", "likely_sets"]

_LOWERED = 0.9  # so that adding the most frequent item to a set does not leave its guess as it was


def largest_size(k: int) -> int:
    """The largest size of a set among the k most frequent: below log2 k, but at least 2.

    >>> largest_size(64), largest_size(65), largest_size(3)
    (5, 6, 2)
    """
    return max(2, math.ceil(math.log2(k)) - 1)


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
