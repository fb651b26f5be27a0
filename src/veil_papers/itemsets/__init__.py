"""Chapter 5 of the thesis, frequent items and itemsets: Figures 5.3, 5.4 and 5.6 to 5.8."""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.datasets import Transactions, kosarak_sets, online_invoices, pos_baskets, synthetic_baskets
from veil_papers.itemsets import figures
from veil_papers.itemsets.figures import ITEMS, MINERS, SETS, Both, Data, Plan, at_two, both, identified

SEED = 8
CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was asked of it'
)
_CLAIMED = (1.0, 2.0)
_MADE_ITEMS = 1_000


def reproduce(setting: Setting) -> Reproduction:
    """All figures, and what was asked for beyond them."""
    plan, folder = Plan(setting), setting.data
    file, kosarak, online = pos_baskets(folder), kosarak_sets(folder), online_invoices(folder)
    made = synthetic_baskets(plan.made, _MADE_ITEMS, mean_size=5.0, exponent=0.8, seed=SEED, patterns=1)

    def pos(run: int) -> Transactions:
        return file.resample(plan.people, 1_000 * SEED + run)

    def fixed(data: Transactions) -> Data:
        return lambda run: data

    def claimed(epsilon: float, k: int) -> int:
        return plan.runs if epsilon in _CLAIMED and k == 64 else plan.few

    def others(*names: str, sets: bool) -> list[Both]:
        data = {"Kosarak": kosarak, "Online": online, "Synthesize": made}
        methods = SETS if sets else MINERS
        return [both(name, fixed(data[name]), methods, lambda epsilon, k: plan.few, plan) for name in names]

    items, sets = (both("POS", pos, methods, claimed, plan) for methods in (MINERS, SETS))
    ours = at_two("SVIM", pos, ITEMS, plan)
    own = [at_two("the file", fixed(file), methods, plan) for methods in (ITEMS, MINERS, SETS)]
    more = others("Kosarak", "Online", "Synthesize", sets=False)
    exhibits = (
        figures.singletons(items, ours, own, plan),
        figures.itemsets(sets, identified(pos(0), plan, SEED), plan),
        figures.more_items(more, "5.6: finding", "NCR", plan),
        figures.more_items(more, "5.7: estimating", "Var", plan),
        figures.more_itemsets(others("Kosarak", "Online", sets=True), plan),
    )
    facts = {
        "POS": f"{file.origin}, resampled to {plan.people:,} people; the thesis has 515,597",
        "Kosarak": f"{kosarak.origin}; {kosarak.people:,} people. The thesis has 990,002",
        "Online": f"{online.origin}; {online.people:,} people",
        "Synthesize": f"{made.origin}, {_MADE_ITEMS:,} items, mean size 5; the thesis has 1.8 million",
    }
    return Reproduction("Frequent items and itemsets, run again", exhibits, facts)
