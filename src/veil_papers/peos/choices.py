"""What three promises need: fakes and error by `design_peos`, and the best number of buckets by Corollary 9.5.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from veil.accounting import PeosDesign, design_peos
from veil_papers.common.claims import Says, by_point, span
from veil_papers.common.exhibits import Claim, Curve, Panel, Parts, brief, exhibit
from veil_papers.peos.plan import DELTA, VALUES, Goal, Plan

BOUNDS = ("thesis", "blanket")
_SERVER = 0.2
Found = dict[str, dict[tuple[int, Goal], PeosDesign]]
"""By bound, number of people and promises."""


def measure(plan: Plan) -> Found:
    """The best design for each of the promises."""
    goals = plan.goals
    found: Found = {bound: {} for bound in BOUNDS}
    with plan.watch("Designs for three promises", len(goals) * len(plan.people)) as advance:
        for people in plan.people:
            for goal in goals:
                for bound, of in found.items():
                    exact = bound == "blanket"
                    of[people, goal] = design_peos(
                        *goal, users=people, domain=VALUES, delta=DELTA, bound="blanket" if exact else "thesis"
                    )
                advance(1)
    return found


def _panels(found: Found, plan: Plan, y_label: str, value: Callable[[PeosDesign], float]) -> Iterator[Panel]:
    """One panel for each number of people and eps_3, one curve for each bound and eps_1, over eps_2."""
    for people in plan.people:
        for local in plan.local:
            curves = []
            for bound in BOUNDS:
                for server in plan.server:
                    points = {
                        goal[1]: value(one)
                        for (many, goal), one in found[bound].items()
                        if (many, goal[0], goal[2]) == (people, server, local)
                    }
                    shown = {at: y for at, y in points.items() if y > 0}
                    if shown:
                        name = f"{bound}, eps_1 = {server:g}"
                        curves.append(Curve(name, tuple(shown), tuple(shown.values()), faint=bound == "thesis"))
            yield Panel(f"{people:,} people, eps_3 = {local:g}", "eps_2", y_label, tuple(curves))


@exhibit
def fakes(found: Found, plan: Plan) -> Parts:
    """Choice 1: how many fakes three promises need."""
    yield from _panels(found, plan, "fakes", lambda one: one.fakes)
    yield (
        "`veil.accounting.design_peos`: the least variance over the number of fakes, the local eps, GRR and OLH with "
        f"any number of buckets; {VALUES} values, delta = {DELTA:g}, at most 10 fakes for each user. No point where no "
        "fakes are needed. Dashed: by Corollaries 9.5.2 and 9.5.3, which need an eps of at most 1."
    )
    every = [(goal, one) for of in found.values() for (_, goal), one in of.items()]
    needing = [one.fakes for goal, one in every if goal[1] < goal[2]]
    says = (
        "To achieve eps_2 when other users collude, noise from the auxiliary servers is necessary (here: eps_2 < eps_3)"
    )
    without = len(needing) - sum(map(bool, needing))
    told = f"{without} of {len(needing)} designs have no fakes, but a local eps of at most eps_2"
    yield Says(says).exactly(told, not without)
    yield _promises(found)
    yield from _fewer(found)
    yield _more_for_less(found)


def _promises(found: Found) -> Claim:
    used = [
        (one.server.epsilon / goal[0], one.server_and_users.epsilon / goal[1], one.local.epsilon / goal[2])
        for of in found.values()
        for (_, goal), one in of.items()
    ]
    told = "; ".join(
        f"eps_{number} used to {span([100 * row[number - 1] for row in used], '.0f')} %" for number in (1, 2, 3)
    )
    says = "PEOS provides eps_c <= eps_1, eps_s <= eps_2 and eps_l <= eps_3 (here: certified, in every design)"
    return Says(says).exactly(told, max(max(row) for row in used) <= 1)


def _fewer(found: Found) -> Iterator[Claim]:
    pairs = [(found["thesis"][at].fakes, one.fakes) for at, one in found["blanket"].items() if one.fakes]
    ratios = sorted(theirs / ours for theirs, ours in pairs)
    middle = ratios[len(ratios) // 2]
    says = "(ours) The exact blanket needs at least 5 times fewer fakes than the corollaries, in the median case"
    yield Says(says).exactly(f"{brief(middle)} times fewer; {span(ratios, brief)}", middle >= 5)


def _more_for_less(found: Found) -> Claim:
    """Of the same eps_1 and eps_3, fakes by rising eps_2."""
    rising = falling = 0
    for (people, goal), one in found["blanket"].items():
        larger = [
            other
            for (many, wish), other in found["blanket"].items()
            if (many, wish[0], wish[2]) == (people, goal[0], goal[2]) and wish[1] > goal[1]
        ]
        rising += sum(other.fakes > one.fakes for other in larger)
        falling += sum(other.fakes <= one.fakes for other in larger)
    says = "(ours) A smaller eps_2 needs more fakes, or as many (here: in at least 9 of 10 pairs; oracles may change)"
    return Says(says).exactly(f"{falling} of {rising + falling} pairs", falling >= 9 * (rising + falling) / 10)


@exhibit
def errors(found: Found, plan: Plan) -> Parts:
    """Choice 2: the standard error that is left."""
    yield from _panels(found, plan, "standard error", lambda one: math.sqrt(one.mean_variance))
    yield "Of the designs of Choice 1: the root of the variance of a frequency, the mean over all values."
    blanket = found["blanket"]
    ratios = [found["thesis"][at].mean_variance / one.mean_variance for at, one in blanket.items()]
    says = "(ours) By the exact blanket the variance is never larger than by the corollaries"
    yield Says(says).exactly(f"the corollaries' is {span(ratios, brief)} times as large", min(ratios) > 0.999)
    wrong = [
        (weak, strong)
        for weak in blanket
        for strong in blanket
        if weak[0] == strong[0]
        and all(w >= s for w, s in zip(weak[1], strong[1], strict=True))
        and blanket[weak].mean_variance > 1.005 * blanket[strong].mean_variance
    ]
    says = "(ours) Stronger promises never have a smaller variance (here: by half a percent, what the search leaves)"
    yield Says(says).exactly(f"{len(wrong)} pairs where they do", not wrong)
    names = [one.oracle.name for one in blanket.values()]
    says = "One can choose to use either GRR or SOLH, by comparing variances (here: each is the better one somewhere)"
    told = f"GRR in {names.count('GRR')}, OLH in {names.count('OLH')} of {len(names)} cases"
    yield Says(says).given(told, {"GRR", "OLH"} <= set(names))


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
