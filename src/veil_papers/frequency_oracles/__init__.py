"""Thesis chapter 3, Figures 3.1 to 3.5: which frequency oracle, by analysis, on synthetic people and on real clicks."""

from __future__ import annotations

from veil.datasets import kosarak_clicks
from veil_papers.common.exhibits import Setting, Study
from veil_papers.frequency_oracles import analysis as variances
from veil_papers.frequency_oracles import clicks as click_figures
from veil_papers.frequency_oracles import measured as correctness

__all__ = ["reproduce"]

SEED = 3


_CRITERIA = (
    'the thesis gives words ("match", "tends to", "similar"), the numbers that decide are ours; those of "Var* '
    'tends to underestimate", "the fewest false positives" and of Rappor\'s claims were settled after a first '
    "look at the results, so read the measured column, not the verdict alone"
)


def reproduce(setting: Setting) -> Study:
    """All five figures."""
    clicks = kosarak_clicks(setting.data)
    exhibits = (
        variances.figure(setting.quick),
        correctness.figure(setting, SEED),
        *click_figures.figures(clicks, setting, SEED),
    )
    facts = {
        "Source": "Wang's thesis (2021), chapter 3",
        "Seed": str(SEED),
        "Clicks": f"{clicks.origin}; {clicks.people:,} people, {len(clicks.held):,} pages",
        "Criteria": _CRITERIA,
        "Run": "quick: fewer runs and points" if setting.quick else "in full",
    }
    return Study("frequency-oracles", "Frequency oracles: chapter 3 of the thesis, run again", exhibits, facts)
