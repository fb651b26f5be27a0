"""Bands without assumptions for Square Wave: which counts of its reports they rest on."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from veil.mechanisms import SquareWave
from veil.reports.tally import Tally
from veil.results.bands.free import FreeBands
from veil.results.distribution import Distribution

__all__ = ["free_bands"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAVES = 256
_KEPT = 64


def free_bands(mechanism: SquareWave, tally: Tally, found: Distribution) -> FreeBands:
    """Bands that hold for any distribution: the widest that a wave's reports leave possible; see `FreeBands`.

    The grid of reports is halved again and again, down to 256 leaves; every window of that tree may be used, and the
    level is shared out among all of them. Narrow windows hold few reports, so that their shares vary little and tell
    details; wide ones keep the sum of many from drifting. Programmes take the windows that tell most: one is halved
    further where the waves of many people begin or end, by `found`, which guides this choice and nothing else.
    """
    people = mechanism.people_counts(mechanism.own(tally))
    edges = mechanism.output_edges
    leaves = min(_LEAVES, len(edges) - 1)
    places = np.arange(leaves + 1) * (len(edges) - 1) // leaves
    held = np.concatenate([[0.0], np.cumsum(found.normal)])
    starts, ends = (np.interp(edges[places] - far, found.cells, held) for far in (0, mechanism.plateau))
    windows = places[_windows(leaves, starts + ends)]
    total = np.concatenate([[0], np.cumsum(tally.counts)])
    return FreeBands(
        domain=found.domain,
        cells=found.cells,
        masses=found.masses,
        outputs=mechanism.outputs,
        plateau=mechanism.plateau,
        ramp=mechanism.ramp,
        chance=mechanism.chance,
        windows=edges[windows],
        counts=total[windows[:, 1]] - total[windows[:, 0]],
        tested=2 * leaves - 2,
        reports=tally.weight,
        worth=None if tally.weight == tally.square == tally.people else float(people.sum()),
    )


def _windows(leaves: int, telling: Floats) -> Ints:
    """The windows that come from halving those that tell most, until there are 64 that were not halved.

    A window goes from one leaf's boundary to another's. `telling` grows over the boundaries by what the leaves tell.

    >>> _windows(4, np.array([0.0, 1.0, 1.0, 1.0, 1.0])).tolist()
    [[0, 2], [2, 4], [0, 1], [1, 2], [2, 3], [3, 4]]
    """
    found: list[tuple[int, int]] = []
    waiting = [(0.0, 0, leaves)] if leaves > 1 else []
    while waiting and len(found) < 2 * (_KEPT - 1):
        _, first, end = heapq.heappop(waiting)
        middle = first + (1 << ((end - first - 1).bit_length() - 1))
        for half in ((first, middle), (middle, end)):
            found.append(half)
            if half[1] - half[0] > 1:
                heapq.heappush(waiting, (telling[half[0]] - telling[half[1]], *half))
    return np.array(found, dtype=np.int64).reshape(-1, 2)
