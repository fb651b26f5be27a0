"""Bands without assumptions for Square Wave: which counts of its reports they rest on."""

from __future__ import annotations

import numpy as np

from veil.mechanisms import SquareWave
from veil.results.distribution import Distribution
from veil.results.free_bands import FreeBands
from veil.tally import Tally

__all__ = ["free_bands"]

_FEWEST, _MOST = 64, 256
_LEAVES_PER_WAVE = 8


def free_bands(mechanism: SquareWave, tally: Tally, found: Distribution) -> FreeBands:
    """Bands that hold for any distribution: the widest that a wave's reports leave possible; see `FreeBands`.

    Reports are counted in 64 to 256 leaves of equal width, about eight in a wave: finer ones do not narrow the bands,
    and coarser ones widen them. With a wave narrower than 1/32 of the domain (eps above 4 or so) shares are told apart
    to 1/256 of the domain. `dataclasses.replace(found, bands=free_bands(...))` attaches them.
    """
    worth = float(mechanism.people_counts(mechanism.own(tally)).sum())
    edges = mechanism.output_edges
    wanted = _LEAVES_PER_WAVE * mechanism.outputs // mechanism.plateau
    leaves = min(max(_FEWEST, 1 << (wanted - 1).bit_length()), _MOST, len(edges) - 1)
    picked = np.arange(leaves + 1) * (len(edges) - 1) // leaves
    return FreeBands(
        domain=found.domain,
        cells=found.cells,
        masses=found.masses,
        leaves=edges[picked],
        counts=np.add.reduceat(tally.counts, picked[:-1]),
        plateau=mechanism.plateau,
        ramp=mechanism.ramp,
        chance=mechanism.chance,
        worth=worth,
        weighted=(tally.weight, tally.square) != (tally.people, tally.people),
    )
