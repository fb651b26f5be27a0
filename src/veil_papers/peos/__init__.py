"""Section 9.5 of the thesis, several shufflers that add fake reports (PEOS): parameters and costs.

`choices` is about parameters (9.5.3, 9.5.4), `costs` is Table 9.3.
"""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.peos import choices, costs
from veil_papers.peos.plan import DELTA, SEED, VALUES, Plan

__all__ = ["CRITERIA", "SEED", "reproduce"]

CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project, "(goal)" what it set out to reach. '
    "Choices are computed and costs are measured, so that no seed is used. Settled after a first look at the results: "
    "where fakes are said to be necessary, and where the closed form for d' is held against all d'"
)


def reproduce(setting: Setting) -> Reproduction:
    """What parties cost, and what three promises cost by the thesis's corollaries and by the exact blanket."""
    plan = Plan(setting)
    found = choices.measure(plan)
    table = costs.table_3(costs.measure(plan), plan)
    exhibits = (table, choices.fakes(found, plan), choices.errors(found, plan), choices.best_buckets(plan))
    facts = {
        "Promises": "eps_1 towards the server, eps_2 towards it and all other users, eps_3 towards it and most "
        f"shufflers; delta = {DELTA:g}",
        "Values": f"{VALUES}, as many as the thesis has of US cities",
    }
    return Reproduction("Fake reports against collusion: section 9.5 of the thesis, computed again", exhibits, facts)
