"""The best number of buckets with fakes by Corollary 9.5.2, beside what the thesis prints (9.5.3)."""

from __future__ import annotations

import math
from itertools import pairwise

from veil_papers.common.claims import Says, by_point
from veil_papers.common.exhibits import Curve, Panel, Parts, brief, exhibit
from veil_papers.peos.plan import DELTA, Plan

_SERVER = 0.2


def needed(epsilon: float) -> float:
    """How many random reports there have to be at each bucket."""
    return 14 * math.log(2 / DELTA) / epsilon**2


def best(people: int, fakes: float, epsilon: float) -> int:
    """The d' of least variance, by trying all for which some m = e^eps_l + d' - 1 keeps eps_1 (9.5.3)."""

    def variance(buckets: int) -> float:
        left = needed(epsilon) - fakes / buckets
        m = (people - 1) / left if left > 0 else math.inf  # fakes alone are enough, whatever eps_l is
        if m <= buckets:
            return math.inf
        return (1 if math.isinf(m) else (m / (m - buckets)) ** 2) / (buckets - 1)

    return min(range(2, int((people + fakes) / needed(epsilon)) + 2), key=variance)


def printed(people: int, fakes: float, epsilon: float, sign: int) -> float:
    """The closed form, with the fakes subtracted (the thesis) or added (its derivation)."""
    return epsilon**2 * (people - 1 + sign * fakes) / (42 * math.log(2 / DELTA)) + 2 / 3


@exhibit
def best_buckets(plan: Plan) -> Parts:
    """Choice 3: the best number of buckets for a number of fakes."""
    people = plan.people[0]
    counts = [share * people for share in plan.fake_shares]
    tried = [float(best(people, fakes, _SERVER)) for fakes in counts]
    minus, plus = ([printed(people, fakes, _SERVER, sign) for fakes in counts] for sign in (-1, 1))
    curves = (
        Curve("all tried", tuple(plan.fake_shares), tuple(tried)),
        Curve("as printed", tuple(plan.fake_shares), tuple(minus), faint=True),
        Curve("as derived", tuple(plan.fake_shares), tuple(plus), faint=True),
    )
    yield Panel(f"{people:,} people, eps_1 = {_SERVER:g}", "fakes for each user", "d'", curves, y_log=False)
    yield "Corollary 9.5.2 decides, with a free local eps: m = e^eps_l + d' - 1 follows from d' and the fakes."
    told = by_point(plan.fake_shares, tried, brief, "n_r / n")
    yield Says("Introducing n_r will reduce the optimal d'").exactly(told, tried[-1] < tried[0])
    says = (
        "(ours) It raises it, as the derivation above that sentence says: (n - 1 + n_r) in place of minus (here: "
        "within one bucket, while n_r / d' is below the 14 ln(2 / delta) / eps_1^2 that the closed form divides by)"
    )
    meant = [i for i, fakes in enumerate(counts) if fakes / plus[i] < needed(_SERVER)]
    rises = all(one < other for one, other in pairwise(tried))
    yield Says(says).exactly(
        f"derived {by_point(plan.fake_shares, plus, brief, 'n_r / n')}, of which the first {len(meant)} are meant",
        rises and all(abs(tried[i] - plus[i]) <= 1 for i in meant),
    )
