"""`significant` on real reports: how often it calls anything significant that nobody holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from veil import GRR, OLH, OUE, PGR, SHE, SubsetSelection, simulate
from veil.mechanisms import FrequencyOracle
from veil_papers.coverage.cells import Case, Generator, Seen, never
from veil_papers.datasets import proportional

_HELD = 20
_REPORTED: tuple[type[FrequencyOracle], ...] = (GRR, OLH, OUE, PGR, SubsetSelection, SHE)


def reported(points: Iterable[tuple[int, float, int]], runs: int) -> Iterator[Case]:
    """The oracles that `choose` takes, at points (n, eps, values): every person's report is drawn and counted."""
    for n, epsilon, values in points:
        for kind in _REPORTED:
            oracle = kind(epsilon, values)
            few = runs if kind is not SHE else max(runs // 10, 2)
            run = partial(_absent, oracle, n)
            yield Case(f"{oracle.name}, {values:,} values", "20 held", n, epsilon, run, few, {0.95: 0.95})


def _absent(oracle: FrequencyOracle, n: int, rng: Generator) -> Iterator[Seen]:
    held = proportional(1.0 / np.arange(1, _HELD + 1), n)
    estimate = simulate(oracle, np.repeat(np.arange(_HELD), held), seed=int(rng.integers(1 << 32)))
    false = any(row.value >= _HELD for row in estimate.significant())
    yield never("significant: nothing is held by nobody", false)
