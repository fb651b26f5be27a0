"""Section 9.5 of the thesis, several shufflers that add fake reports (PEOS): which parameters three promises lead to.

Each part has its own module: `choices` and `buckets` are about parameters (9.5.3, 9.5.4). Costs (Table 9.3) belong here
as well, in a module `costs`.
"""

from __future__ import annotations

from veil_papers.common.exhibits import Reproduction, Setting
from veil_papers.peos import buckets, choices
from veil_papers.peos.plan import DELTA, SEED, VALUES, Plan

__all__ = ["CRITERIA", "SEED", "reproduce"]

CRITERIA = (
    'numbers in brackets that decide are ours; "(ours)" are claims of this project. Everything is computed, without '
    "any chance: the seed is not used. Settled after a first look at the results: where fakes are said to be "
    "necessary, and where the closed form for d' is held against all d'"
)


def reproduce(setting: Setting) -> Reproduction:
    """What three promises cost, by the thesis's corollaries and by the exact blanket."""
    plan = Plan(setting)
    found = choices.measure(plan)
    exhibits = (choices.fakes(found, plan), choices.errors(found, plan), buckets.best_buckets(plan))
    facts = {
        "Promises": "eps_1 towards the server, eps_2 towards it and all other users, eps_3 towards it and most "
        f"shufflers; delta = {DELTA:g}",
        "Values": f"{VALUES}, as many as the thesis has of US cities",
    }
    return Reproduction("Fake reports against collusion: section 9.5 of the thesis, computed again", exhibits, facts)
