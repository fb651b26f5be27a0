"""Which of a list of small sets each of many sets contains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veil.kernels.compiling import compiled

__all__ = ["contained"]

I64 = np.int64


@compiled()
def contained(
    offsets: NDArray[I64],
    ids: NDArray[I64],
    relevant: int,
    starts: NDArray[I64],
    order: NDArray[I64],
    wanted_offsets: NDArray[I64],
    wanted: NDArray[I64],
) -> tuple[NDArray[I64], NDArray[I64]]:
    """The wanted sets that each held set contains, as offsets and increasing indices.

    `ids` are the held items, -1 where no wanted set has them, otherwise below `relevant`. Wanted set w has the items
    wanted[wanted_offsets[w] : wanted_offsets[w + 1]]; order[starts[i] : starts[i + 1]] are the wanted sets whose first
    item is i.
    """
    people = len(offsets) - 1
    holder = np.full(relevant, -1, I64)  # the last person seen with each item
    ends = np.zeros(people + 1, I64)
    found = np.empty(max(16, people), I64)
    size = 0
    for person in range(people):
        for place in range(offsets[person], offsets[person + 1]):
            if ids[place] >= 0:
                holder[ids[place]] = person
        begin = size
        for place in range(offsets[person], offsets[person + 1]):
            if ids[place] < 0:
                continue
            for at in range(starts[ids[place]], starts[ids[place] + 1]):
                candidate = order[at]
                whole = True
                for item in range(wanted_offsets[candidate] + 1, wanted_offsets[candidate + 1]):
                    if holder[wanted[item]] != person:
                        whole = False
                        break
                if not whole:
                    continue
                if size == len(found):
                    larger = np.empty(2 * size, I64)
                    larger[:size] = found
                    found = larger
                found[size] = candidate
                size += 1
        if size - begin > 1:
            found[begin:size].sort()
        ends[person + 1] = size
    return ends, found[:size].copy()
