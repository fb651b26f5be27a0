"""Mining campaigns on simulated people, every person with a report: which protocols, and how well each did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veil.campaign import Campaign
from veil.datasets import Transactions
from veil.domain import Items
from veil.itemsets import FIGURE_5_3, SVIM, SVSM, ItemMining, LDPMiner
from veil.metrics import found_mse, ncr
from veil.simulation import simulate
from veil_papers.common.exhibits import Advance
from veil_papers.heavy_hitters.searching import Sweep

__all__ = ["FULL", "HOW", "MINERS", "QUICK", "SETS", "Plan", "measure", "protocol"]

Method = Callable[[int, float, Items], Campaign]
HOW = (
    "Every person's set is randomized, sent and counted (`simulate`). NCR as in 5.4.1; Var is the squared error of "
    "counts, of those of the true k that were found."
)


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    runs: int
    """At eps = 1 and 2 with k = 64 on POS, which the claims are about."""
    few: int
    people: int
    """POS, resampled."""
    made: int
    """The generator's baskets."""
    epsilons: tuple[float, ...]
    tops: tuple[int, ...]


FULL = Plan(runs=10, few=3, people=515_597, made=300_000, epsilons=(0.5, 1.0, 2.0, 4.0), tops=(32, 64, 128))
QUICK = Plan(runs=1, few=1, people=100_000, made=20_000, epsilons=(2.0,), tops=(64,))


def protocol(name: str) -> Method:
    """One of the six of Figure 5.3."""
    return lambda k, epsilon, domain: ItemMining(k, epsilon, domain, **FIGURE_5_3[name])


MINERS: dict[str, Method] = {name: protocol(name) for name in FIGURE_5_3}
SETS: dict[str, Method] = {
    "SVSM": lambda k, epsilon, domain: SVSM(k, epsilon, domain),
    "SVSM, sizes by the threshold": lambda k, epsilon, domain: SVSM(k, epsilon, domain, sizes="threshold"),
    "LDPMiner, improved": lambda k, epsilon, domain: SVSM(
        k, epsilon, domain, items=LDPMiner(k, epsilon, domain, sizes="threshold")
    ),
    "LDPMiner": lambda k, epsilon, domain: SVSM(
        k, epsilon, domain, items=LDPMiner(k, epsilon, domain, improved=False, sizes="threshold")
    ),
}
"""SVSM on SVIM, with our sizes and with the thesis's, and on LDPMiner."""
ITEMS: dict[str, Method] = {
    "SVIM": lambda k, epsilon, domain: SVIM(k, epsilon, domain),
    "SVIM, sizes by the threshold": lambda k, epsilon, domain: SVIM(k, epsilon, domain, sizes="threshold"),
}


def measure(
    data_of: Callable[[int], Transactions],
    points: Sequence[tuple[float, float, int]],
    methods: Mapping[str, Method],
    runs: Callable[[float, int], int],
    advance: Advance,
) -> dict[str, Sweep]:
    """NCR and Var of every method at every point (x, eps, k), with so many runs there; NaN beyond them."""
    most = max(runs(epsilon, k) for _, epsilon, k in points)
    shape, largest = (len(points), most), max(k for *_, k in points)
    found = {score: {name: np.full(shape, np.nan) for name in methods} for score in ("NCR", "Var")}
    for run in range(most):
        data = data_of(run)
        column, cut = data.to_arrow(), any(name in SETS for name in methods)
        truth = list((data.top_itemsets(largest) if cut else data.top_items(largest)).items())
        for place, (_, epsilon, k) in enumerate(points):
            if run >= runs(epsilon, k):
                continue
            true: dict[Any, int] = dict(truth[:k])
            for name, method in methods.items():
                rows = simulate(method(k, epsilon, data.domain), column, seed=run).rows
                counts = {row.items if cut else row.value: row.count for row in rows}
                found["NCR"][name][place, run] = ncr(counts, list(true))
                found["Var"][name][place, run] = found_mse(counts, true)
            advance(1)
    x = tuple(point[0] for point in points)
    return {score: Sweep(x, values) for score, values in found.items()}
