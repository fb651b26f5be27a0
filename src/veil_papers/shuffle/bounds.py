"""Table 9.1: the closed bounds beside the clones of 2021 and the exact blanket; and what the exact one is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from veil.accounting import Method, amplify, design
from veil.errors import ParameterError
from veil.mechanisms import GRR, OLH, Mechanism, SubsetSelection
from veil_papers.common.claims import Says, by_point, each, span
from veil_papers.common.exhibits import Claim, Curve, Panel, Parts, brief, exhibit
from veil_papers.shuffle.plan import Plan

_PEOPLE, _DELTA = 1_000_000, 1e-8
_ROWS: dict[str, Method] = {
    "[50], eps_l < 1/2": "small-epsilon",
    "[49], binary": "binary",
    "[51]": "thesis",
    "clones of 2021": "clones",
    "exact blanket": "blanket",
}
_ADDED = ("clones of 2021", "exact blanket")
_CASES: dict[str, Callable[[float], Mechanism]] = {
    "GRR of 2 values": lambda epsilon: GRR(epsilon, 2),
    "GRR of 100 values": lambda epsilon: GRR(epsilon, 100),
    "OLH of any number of values": lambda epsilon: OLH(epsilon, 1_000),
}
Found = dict[str, dict[str, dict[float, float]]]
"""By case, row and local epsilon the central one, where there is one."""

# n, local eps and delta; d' of local hashing and the subset's size; eps of GRR, hashing and subset selection, d = 100
_BLANKETS = (
    (1_000_000, 1.0, 1e-8, 4, 27, (0.00087, 0.00343, 0.00349)),
    (100_000, 4.0, 1e-6, 56, 2, (0.06844, 0.08125, 0.08411)),
    (10_000, 1.0, 1e-6, 4, 27, (0.00719, 0.02934, 0.02992)),
)
_CLONES = ((100_000, 4.0, 1e-6, 0.53780), (1_000_000, 1.0, 1e-8, 0.02718))


def measure(plan: Plan) -> Found:
    """The central epsilon by each bound, where its condition holds and it is below the local one."""
    with plan.watch("Table 9.1: bounds", len(_CASES)) as advance:
        found = {}
        for case, make in _CASES.items():
            found[case] = {row: _points(make, method, plan.local_epsilons) for row, method in _ROWS.items()}
            advance(1)
    return found


def _points(make: Callable[[float], Mechanism], method: Method, epsilons: Sequence[float]) -> dict[float, float]:
    points = {}
    for epsilon in epsilons:
        try:
            central = amplify(make(epsilon), _PEOPLE, _DELTA, method)
        except ParameterError:  # the bound's condition fails
            continue
        if central.amplifies:
            points[epsilon] = central.epsilon
    return points


@exhibit
def table_1(found: Found) -> Parts:
    """Table 9.1: what a shuffle is worth, by every bound."""
    for letter, (case, rows) in zip("abc", found.items(), strict=True):
        curves = tuple(
            Curve(row, tuple(points), tuple(points.values()), faint=row in _ADDED)
            for row, points in rows.items()
            if points
        )
        yield Panel(f"({letter}) {case}", "local eps", "central eps", curves)
    yield (
        f"{_PEOPLE:,} people, delta = {_DELTA:g}. There is no point where a bound's condition fails, or where it gives "
        "no less than the local eps. Rows of the thesis with e^eps_l + 1 and e^eps_l + d - 1, where it prints "
        "e^(eps_l + 1) and e^(eps_l + d - 1). [51] is for GRR, and Theorem 9.3.2 for OLH, which has as many buckets as "
        "without a shuffler. Dashed lines are not in the thesis."
    )
    yield _strongest(found)
    yield _exact_is_least(found)
    yield from _numbers()
    yield from _in_closed_form()


def _strongest(found: Found) -> Claim:
    says = "[51] provides the strongest result: its central eps is the smallest of the three"
    lost = []
    for case, rows in found.items():
        for name in ("[50], eps_l < 1/2", "[49], binary"):
            both = [at for at in rows[name] if at in rows["[51]"]]
            better = [at for at in both if rows[name][at] < rows["[51]"][at]]
            if better:
                ratios = [rows[name][at] / rows["[51]"][at] for at in better]
                lost.append(f"{name} has {by_point(better, ratios, axis='eps_l')} of it, {case}")
    only = "; against [49] it is smaller everywhere" if not any("[49]" in one for one in lost) else ""
    return Says(says).exactly(("; ".join(lost) or "nowhere larger") + only, not lost)


def _exact_is_least(found: Found) -> Claim:
    ratios = [
        rows["exact blanket"][at] / central
        for rows in found.values()
        for row, points in rows.items()
        for at, central in points.items()
        if row != "exact blanket"
    ]
    says = "(ours) The exact blanket is below every bound in closed form"
    return Says(says).exactly(f"{span(ratios, '.3f')} of them, over {len(ratios)} cases", max(ratios) < 1)


def _numbers() -> Iterator[Claim]:
    """The exact blanket, as computed by another implementation."""
    for people, epsilon, delta, buckets, size, expected in _BLANKETS:
        mechanisms = GRR(epsilon, 100), OLH(epsilon, 100, buckets), SubsetSelection(epsilon, 100, size)
        central = [amplify(one, people, delta).epsilon for one in mechanisms]
        worst = max(abs(mine / theirs - 1) for mine, theirs in zip(central, expected, strict=True))
        listed = ", ".join(f"{number:.5f}" for number in expected)
        says = f"(goal) Exact blanket, n = {people:,}, eps_l = {epsilon:g}, delta = {delta:g}: {listed} (within 2 %)"
        names = "GRR", f"hashing into {buckets}", f"subsets of {size}"
        yield Says(says).exactly(each(dict(zip(names, central, strict=True)), ".5f"), worst <= 0.02)


def _in_closed_form() -> Iterator[Claim]:
    for people, epsilon, delta, expected in _CLONES:
        says = f"(goal) Clones, n = {people:,}, eps_l = {epsilon:g}, delta = {delta:g}: {expected:.5f}"
        central = amplify(GRR(epsilon, 100), people, delta, "clones").epsilon
        yield Says(says).exactly(f"{central:.5f}", abs(central - expected) < 1e-5)


@exhibit
def designs(plan: Plan) -> Parts:
    """Beyond 1: the best oracle for a central promise, by the thesis's bounds and by the exact blanket."""
    people, values, cap = 1_000_000, 1_000, 6.0
    ways = ("thesis", "blanket")
    with plan.watch("Beyond 1: designs", len(plan.designed)) as advance:
        found = {way: {} for way in ways}  # type: dict[str, dict[float, tuple[str, float]]]
        for epsilon in plan.designed:
            for way in ways:
                best = design(people, values, epsilon, 1e-9, cap, "thesis" if way == "thesis" else "blanket")
                found[way][epsilon] = best.oracle.name, best.variance
            advance(1)
    curves = tuple(Curve(way, tuple(of), tuple(variance for _, variance in of.values())) for way, of in found.items())
    yield Panel(f"{people:,} people, {values:,} values, local eps up to {cap:g}", "central eps", "variance", curves)
    yield (
        "`veil.accounting.design`, delta = 1e-9. "
        "The thesis chooses between GRR and SOLH, the blanket between six kinds."
    )
    pairs = {at: (found["thesis"][at], found["blanket"][at]) for at in plan.designed}
    told = "; ".join(
        f"{brief(theirs[1] / ours[1])} times (eps_c = {at:g}, {theirs[0]} and {ours[0]})"
        for at, (theirs, ours) in pairs.items()
    )
    gain = pairs[0.1][0][1] / pairs[0.1][1][1]
    says = "(goal) At eps_c = 0.1 the design by the exact blanket has at least 10 times less variance than the thesis's"
    yield Says(says).exactly(told, gain >= 10)
