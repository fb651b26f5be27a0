"""Chapter 7 of the thesis, SQL over private dimensions: Figures 7.3 to 7.10, Tables 7.2 and 7.3, and beyond."""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.datasets import census_like, online_retail
from veil_papers.sql.beyond import beyond
from veil_papers.sql.figures import figures
from veil_papers.sql.practice import practice
from veil_papers.sql.runs import SEED, SOURCES, Plan

__all__ = ["CRITERIA", "SEED", "reproduce"]

CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was asked of it. '
    "Relative errors are over the true answer; the thesis divides by the estimate"
)


def reproduce(setting: Setting) -> Reproduction:
    """All figures and tables, and what was asked for beyond them."""
    plan = Plan(setting)
    exhibits = (*figures(plan), *practice(plan), *beyond(plan))
    facts = {name: f"{census_like(setting.data, source=of).origin}, resampled" for name, of in SOURCES.items()}
    facts["Shop"] = f"{online_retail(setting.data).origin}, resampled"
    return Reproduction("SQL over data nobody may see: HIO and its rivals, run again", exhibits, facts)
