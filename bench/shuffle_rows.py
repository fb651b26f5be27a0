"""Rows about the shuffler model: the accountant against limits, and its transform against adding up n laws in numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.timing import Row, Setting, local
from veil.accounting import amplify, blanket_of, delta_of
from veil.accounting.amplification import certified
from veil.accounting.designs import _designs, design
from veil.mechanisms import OLH

PEOPLE, AMPLIFY_SECONDS, DESIGN_SECONDS, FEW = 1_000_000, 2.0, 30.0, 1_000


def shuffle_rows(setting: Setting) -> Iterator[Row]:
    """Every row."""
    turns = min(setting.repeats, 5)
    what = f"central eps of OLH, {PEOPLE:,} people, with its certified bracket (best of {turns})"
    yield Row(what, f"a limit of {AMPLIFY_SECONDS:g} s", 1.0, local(_amplified, 1), AMPLIFY_SECONDS, turns)
    what = f"design of six oracles behind a shuffler, {PEOPLE:,} people (best of 1)"
    yield Row(what, f"a limit of {DESIGN_SECONDS:g} s", 1.0, local(_designed, 1), DESIGN_SECONDS, 1)
    blanket = blanket_of(OLH(1.0, 1000))
    what = f"delta of {FEW:,} people, between certified bounds (best of {min(turns, 2)})"
    ours, rival = local(lambda: delta_of(blanket, FEW, 1.1), 1), local(_one_by_one, 1)
    yield Row(what, "the same sum, one person after the other, numpy.convolve", None, ours, rival, min(turns, 2))


def _amplified() -> None:
    certified.cache_clear()
    amplify(OLH(1.0, 1000), PEOPLE, 1e-8)


def _designed() -> None:
    certified.cache_clear()
    _designs.cache_clear()
    design(PEOPLE, 1000, 0.1, 1e-9, 6)


def _one_by_one(step: float = 0.01) -> float:
    """The expectation on a lattice without any bounds, by adding one person at a time."""
    blanket = blanket_of(OLH(1.0, 1000))
    values = [float(held - 1.1 * float(other)) for _, held, other in blanket.atoms()] + [0.0]
    masses = [float(mass) for mass, _, _ in blanket.atoms()] + [float(1 - blanket.gamma)]
    places = np.rint(np.array(values) / step).astype(int)
    law = np.zeros(places.max() - places.min() + 1)
    np.add.at(law, places - places.min(), masses)
    total, low = law, int(places.min())
    for _ in range(FEW - 1):
        total = np.convolve(total, law)
    sums = (np.arange(len(total)) + FEW * low) * step
    return float(total @ np.maximum(sums, 0)) / FEW
