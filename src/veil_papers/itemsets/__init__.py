"""Chapter 5 of the thesis, frequent items and itemsets: Figures 5.3, 5.4 and 5.6 to 5.8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from veil.datasets import Transactions, kosarak_sets, online_invoices, pos_baskets, synthetic_baskets
from veil.simulation import simulate
from veil_papers.common.exhibits import Setting, Study, Watch
from veil_papers.heavy_hitters.searching import Sweep
from veil_papers.itemsets import figures as figures
from veil_papers.itemsets import goals as goals
from veil_papers.itemsets.figures import Both, Mined
from veil_papers.itemsets.runs import FULL, ITEMS, MINERS, QUICK, SETS, Plan, measure

__all__ = ["reproduce"]

SEED = 8
_CLAIMED = (1.0, 2.0)
_MADE_ITEMS = 1_000

Data = Callable[[int], Transactions]


def reproduce(setting: Setting) -> Study:
    """All figures, and what was asked for beyond them."""
    plan, watch, folder = (QUICK if setting.quick else FULL), setting.watch, setting.data
    file, kosarak, online = pos_baskets(folder), kosarak_sets(folder), online_invoices(folder)
    made = synthetic_baskets(plan.made, _MADE_ITEMS, mean_size=5.0, exponent=0.8, seed=SEED, patterns=1)

    def pos(run: int) -> Transactions:
        return file.resample(plan.people, 1_000 * SEED + run)

    def fixed(data: Transactions) -> Data:
        return lambda run: data

    def claimed(epsilon: float, k: int) -> int:
        return plan.runs if epsilon in _CLAIMED and k == 64 else plan.few

    def few(epsilon: float, k: int) -> int:
        return plan.few

    items = _both("POS", pos, MINERS, claimed, plan, watch)
    sets = _both("POS", pos, SETS, claimed, plan, watch)
    ours = _at_two("SVIM", pos, ITEMS, plan, watch)
    own = [_at_two("the file", fixed(file), methods, plan, watch) for methods in (ITEMS, MINERS, SETS)]
    others = [
        _both(name, fixed(data), MINERS, few, plan, watch)
        for name, data in (("Kosarak", kosarak), ("Online", online), ("Synthesize", made))
    ]
    other_sets = [
        _both(name, fixed(data), SETS, few, plan, watch) for name, data in (("Kosarak", kosarak), ("Online", online))
    ]
    exhibits = (
        figures.singletons(items, (*goals.item_goals(items.by_epsilon, ours), goals.as_it_is(*own)), plan),
        figures.itemsets(sets, _identified(pos(0), plan), goals.set_goals(sets.by_epsilon), plan),
        figures.more_items(others, "NCR", "5.6", plan),
        figures.more_items(others, "Var", "5.7", plan),
        figures.more_itemsets(other_sets, plan),
    )
    facts = {
        "Source": "Wang's thesis (2021), 5.4 and 5.5.2",
        "Seed": str(SEED),
        "POS": f"{file.origin}, resampled to {plan.people:,} people; the thesis has 515,597",
        "Kosarak": f"{kosarak.origin}; {kosarak.people:,} people. The thesis has 990,002",
        "Online": f"{online.origin}; {online.people:,} people",
        "Synthesize": f"{made.origin}, {_MADE_ITEMS:,} items, mean size 5; the thesis has 1.8 million",
        "Criteria": 'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was '
        "asked of it",
        "Run": "quick: fewer people, runs and points" if setting.quick else "in full",
    }
    return Study("itemsets", "Frequent items and itemsets, run again", exhibits, facts)


def _both(
    name: str,
    data_of: Data,
    methods: Mapping[str, Any],
    runs: Callable[[float, int], int],
    plan: Plan,
    watch: Watch,
) -> Both:
    by_epsilon = [(epsilon, epsilon, 64) for epsilon in plan.epsilons]
    by_top = [(float(k), 2.0, k) for k in plan.tops if k != 64]
    with watch(f"{name}: {next(iter(methods))}", None) as advance:
        first = measure(data_of, by_epsilon, methods, runs, advance)
        second = measure(data_of, by_top, methods, runs, advance) if by_top else {}
    return Both(name, first, _joined(first, second))


def _joined(first: Mined, second: Mined) -> Mined:
    """The points by k, with k = 64 taken from those by eps."""
    found = {}
    for score, sweep in first.items():
        rows: dict[str, dict[float, Any]] = {}
        for name, values in sweep.values.items():
            rows[name] = {64.0: values[sweep.x.index(2.0)]}
            for x, more in zip(second[score].x, second[score].values[name], strict=True) if second else ():
                rows[name][x] = np.pad(more, (0, values.shape[1] - len(more)), constant_values=np.nan)
        order = sorted(next(iter(rows.values())))
        found[score] = Sweep(tuple(order), {name: np.stack([row[x] for x in order]) for name, row in rows.items()})
    return found


def _at_two(name: str, data_of: Data, methods: Mapping[str, Any], plan: Plan, watch: Watch) -> Mined:
    with watch(f"{name}: {next(iter(methods))}, eps = 2", plan.runs) as advance:
        return measure(data_of, [(2.0, 2.0, 64)], methods, lambda epsilon, k: plan.runs, advance)


def _identified(data: Transactions, plan: Plan) -> dict[int, tuple[float, float]]:
    """How many of the true k sets SVSM finds at eps = 2, as in the thesis and on LDPMiner."""
    found, column = {}, data.to_arrow()
    for k in plan.tops:
        truth = set(data.top_itemsets(k))
        methods = (SETS["SVSM, sizes by the threshold"], SETS["LDPMiner"])
        ours, rival = (len(truth & set(simulate(m(k, 2.0, data.domain), column, seed=SEED).itemsets)) for m in methods)
        found[k] = (float(ours), float(rival))
    return found
