"""Mining campaigns on simulated people, every person with a report: which protocols, and how well each did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from veil import Campaign, simulate
from veil.datasets import Transactions
from veil.domain import Items
from veil.itemsets import FIGURE_5_3, SVIM, SVSM, ItemMining, LDPMiner
from veil.metrics import found_mse, ncr
from veil_papers.common.exhibits import Advance, Setting
from veil_papers.common.sweep import Scores, Sweep, measure

Method = Callable[[int, float, Items], Campaign]
Data = Callable[[int], Transactions]
Mined = dict[str, Sweep]  # NCR and Var

HOW = (
    "Every person's set is randomized, sent and counted (`simulate`). NCR as in 5.4.1; Var is the squared error of "
    "counts, of those of the true k that were found."
)


class Plan:
    """How much is run."""

    def __init__(self, setting: Setting) -> None:
        pick, self.watch = setting.pick, setting.watch
        self.runs, self.few = pick(10, 1), pick(3, 1)  # few but at eps = 1 and 2 with k = 64 on POS, as claimed
        self.people, self.made = pick(515_597, 100_000), pick(300_000, 20_000)  # POS, and the generator's baskets
        self.epsilons, self.tops = pick((0.5, 1.0, 2.0, 4.0), (2.0,)), pick((32, 64, 128), (64,))


_ORIGINAL = partial(LDPMiner, improved=False, sizes="threshold")
SMALL, SMALL_ITEMS = "SVSM, sizes by the threshold", "SVIM, sizes by the threshold"
MINERS: dict[str, Method] = {name: partial(ItemMining, **parts) for name, parts in FIGURE_5_3.items()}
SETS: dict[str, Method] = {  # SVSM on SVIM, with our sizes and with the thesis's, and on LDPMiner
    "SVSM": SVSM,
    SMALL: partial(SVSM, sizes="threshold"),
    "LDPMiner, improved": lambda k, eps, held: SVSM(k, eps, held, items=LDPMiner(k, eps, held, sizes="threshold")),
    "LDPMiner": lambda k, eps, held: SVSM(k, eps, held, items=_ORIGINAL(k, eps, held)),
}
ITEMS: dict[str, Method] = {"SVIM": SVIM, SMALL_ITEMS: partial(SVIM, sizes="threshold")}


@dataclass(frozen=True)
class Both:
    """A data set's numbers by eps at k = 64, and by k at eps = 2."""

    name: str
    by_epsilon: Mined
    by_top: Mined


def both(
    name: str, data_of: Data, methods: Mapping[str, Method], runs: Callable[[float, int], int], plan: Plan
) -> Both:
    """All points of a data set; k = 64 is measured once."""
    tops = [k for k in plan.tops if k != 64]
    points = [(epsilon, epsilon, 64) for epsilon in plan.epsilons] + [(float(k), 2.0, k) for k in tops]
    with plan.watch(f"{name}: {next(iter(methods))}", None) as advance:
        found = _measure(data_of, points, methods, runs, advance)
    by_eps = {epsilon: i for i, epsilon in enumerate(plan.epsilons)}
    by_top = {64: by_eps[2.0]} | {k: len(by_eps) + i for i, k in enumerate(tops)}
    axes = (by_eps, {float(k): by_top[k] for k in sorted(by_top)})
    return Both(name, *({score: sweep.at_places(places) for score, sweep in found.items()} for places in axes))


def at_two(name: str, data_of: Data, methods: Mapping[str, Method], plan: Plan) -> Mined:
    """At eps = 2 and k = 64 alone, with all runs."""
    with plan.watch(f"{name}: {next(iter(methods))}, eps = 2", plan.runs) as advance:
        return _measure(data_of, [(2.0, 2.0, 64)], methods, lambda epsilon, k: plan.runs, advance)


def identified(data: Transactions, plan: Plan, seed: int) -> dict[int, tuple[int, int]]:
    """How many of the true k sets SVSM finds at eps = 2, as in the thesis and on LDPMiner."""
    found, column = {}, data.to_arrow()
    for k in plan.tops:
        truth, methods = set(data.top_itemsets(k)), (SETS[SMALL], SETS["LDPMiner"])
        made = [simulate(method(k, 2.0, data.domain), column, seed=seed).itemsets for method in methods]
        found[k] = (len(truth & set(made[0])), len(truth & set(made[1])))
    return found


def _measure(
    data_of: Data,
    points: Sequence[tuple[float, float, int]],
    methods: Mapping[str, Method],
    runs: Callable[[float, int], int],
    advance: Advance,
) -> Mined:
    """NCR and Var of every method at every point (x, eps, k), with so many runs there."""
    cut, largest = any(name in SETS for name in methods), max(k for *_, k in points)

    @lru_cache(maxsize=1)
    def people(run: int) -> tuple[Items, Any, list[tuple[Any, int]]]:
        data = data_of(run)
        truth = data.top_itemsets(largest) if cut else data.top_items(largest)
        return data.domain, data.to_arrow(), list(truth.items())

    def trial(place: int, run: int) -> Scores:
        (_, epsilon, k), (domain, column, ranking) = points[place], people(run)
        scores = Scores(NCR={}, Var={})
        for name, method in methods.items():
            rows = simulate(method(k, epsilon, domain), column, seed=run).rows
            counts = {row.items if cut else row.value: row.count for row in rows}
            scores["NCR"][name] = ncr(counts, [value for value, _ in ranking[:k]])
            scores["Var"][name] = found_mse(counts, dict(ranking[:k]))
        return scores

    return measure([x for x, *_ in points], [runs(epsilon, k) for _, epsilon, k in points], trial, advance)
