"""Thesis chapter 3, Figures 3.1 to 3.5: which frequency oracle, by analysis, on synthetic people and on real clicks."""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.datasets import kosarak_clicks
from veil_papers.frequency_oracles import analysis, clicks

SEED = 3
CRITERIA = (
    'the thesis gives words ("match", "tends to", "similar"), the numbers that decide are ours; those of "Var* '
    'tends to underestimate", "the fewest false positives" and of Rappor\'s claims were settled after a first '
    "look at the results, so read the measured column, not the verdict alone"
)


def reproduce(setting: Setting) -> Reproduction:
    """All five figures."""
    data = kosarak_clicks(setting.data)
    exhibits = (analysis.variances(setting), analysis.measured(setting, SEED), *clicks.figures(data, setting, SEED))
    facts = {"Clicks": f"{data.origin}; {data.people:,} people, {len(data.held):,} pages"}
    return Reproduction("Frequency oracles: chapter 3 of the thesis, run again", exhibits, facts)
