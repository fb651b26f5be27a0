"""Calibrate (Jia and Gong, INFOCOM 2019), Figures 4 to 9: does a prior help to estimate and to find heavy hitters?"""

from __future__ import annotations

from veil_papers.calibrate import figures
from veil_papers.calibrate.trials import SWEPT, Plan, collect
from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.datasets import Counts, kosarak_clicks, retail_sales

SEED = 4
_FULL = Plan(
    (1.0, 2.0, 3.0, SWEPT, 5.0), runs=30, added=10, factors=tuple(i / 8 for i in range(2, 17)), likely=(1.0, 5.0)
)
_QUICK = Plan((1.0, SWEPT), runs=5, added=1, factors=(0.5, 0.75, 1.0, 1.5, 2.0))
_THINNED = 4
CRITERIA = (
    'the paper gives words ("lower", "better", "negligible"), the numbers that decide are ours and were settled after '
    "a first look at the results, so read the measured column, not the verdict alone"
)


def reproduce(setting: Setting) -> Reproduction:
    """All six figures, from the same collections; a quick run takes every fourth value."""
    plan = setting.pick(_FULL, _QUICK)
    data = {"Kosarak": kosarak_clicks(setting.data), "Retail": retail_sales(setting.data)}
    if setting.quick:
        data = {name: Counts(of.held[::_THINNED], of.origin, of.stand_in) for name, of in data.items()}
    kosarak, retail = made = [
        collect(name, unit, data[name], plan, (SEED, place), setting.watch)
        for place, (name, unit) in enumerate((("Kosarak", "clicks"), ("Retail", "sales")))
    ]
    exhibits = (
        figures.noise(kosarak),
        figures.sweep(kosarak, 5),
        figures.sweep(retail, 6),
        figures.errors(made),
        figures.budgets(kosarak, 8),
        figures.budgets(retail, 9),
    )
    told = (f"{of.origin}; {of.people:,} people, {len(of.held):,}" for of in data.values())
    facts = {"Clicks": f"{next(told)} pages", "Sales": f"{next(told)} products"}
    return Reproduction("Calibrate: estimates with a prior, run again", exhibits, facts)
