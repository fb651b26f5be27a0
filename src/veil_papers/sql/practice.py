"""Figures 7.8 to 7.10, Tables 7.2 and 7.3: relative errors on several dimensions, from real reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veil.sql import HIO, SC
from veil_papers.common.claims import Says, each
from veil_papers.common.exhibits import Curve, Exhibit, Grid, Panel, Parts, exhibit
from veil_papers.common.sweep import Sweep
from veil_papers.datasets import online_retail
from veil_papers.sql.asking import Collection
from veil_papers.sql.queries import AVG, COUNT, SUM, Asked, Drawn, Kind, Way, relative_errors
from veil_papers.sql.runs import SEED, M, Plan, census

Floats = NDArray[np.float64]
_TYPES = (Kind(1, 0), Kind(1, 1), Kind(2, 0), Kind(2, 2))
_MANY = (Kind(1, 0), Kind(1, 1), Kind(2, 0), Kind(2, 1))
_MEASURE = "hours"
_THESIS = HIO(5, "OLH")
_READ: dict[str, Way] = {M.HIO: (_THESIS, "plain"), M.OURS: (HIO(), "levels")}


@dataclass(frozen=True, eq=False)
class Measured:
    """Relative errors: by selectivity or size, kind of query, way and aggregate, a row per collection."""

    found: Mapping[tuple[float, str], dict[str, dict[str, Floats]]]

    def sweep(self, kind: Kind, what: str) -> Sweep:
        """Return the mean over queries by collection, for each way."""
        points = [x for x, of in self.found if of == str(kind)]
        names = next(iter(self.found.values()))
        runs = {name: [np.nanmean(self.found[x, str(kind)][name][what], axis=1) for x in points] for name in names}
        return Sweep(tuple(points), runs)

    def at(self, x: float, kind: Kind, what: str, way: str, middle: bool = False) -> float:
        """The mean, or the median over all queries and collections."""
        return float((np.nanmedian if middle else np.nanmean)(self.found[x, str(kind)][way][what]))

    def ratio(self, x: float, kind: Kind, what: str, way: str, other: str) -> float:
        """A way's mean over another's, of the queries that both answered."""
        mine, theirs = (self.found[x, str(kind)][name][what] for name in (way, other))
        both = np.isfinite(mine) & np.isfinite(theirs)
        return float(mine[both].mean() / theirs[both].mean())


def _errors(
    drawn: Drawn, epsilon: float, ways: Mapping[str, Way], kinds: Sequence[Kind],
    points: Sequence[float], plan: Plan, title: str, place: int,
) -> Measured:  # fmt: skip
    """Errors at several selectivities, of all kinds of queries for which there are any."""
    found = {}
    chosen = [(s, kind, drawn.queries(kind, s, plan.queries)) for kind in kinds for s in points]
    chosen = [one for one in chosen if len(one[2]) >= min(plan.queries, 5)]
    every = [query for *_, queries in chosen for query in queries]
    with plan.watch(title, plan.collections) as advance:
        made = relative_errors(
            drawn, epsilon, ways, every, plan.collections, lambda run: SEED * 10_000 + place * 100 + run, advance,
            {M.SC: plan.sc_one_in},
        )  # fmt: skip
    start = 0
    for selectivity, kind, queries in chosen:
        columns = slice(start, start + len(queries))
        found[selectivity, str(kind)] = {
            name: {what: rows[:, columns] for what, rows in of.items()} for name, of in made.items()
        }
        start += len(queries)
    return Measured(found)


# -- Figure 7.8 --------------------------------------------------------------------------------------------------------


def selectivities(plan: Plan) -> dict[float, Measured]:
    """2+2 dimensions, m = 5^4: by selectivity, for each eps."""
    drawn = Drawn(census(plan, "Adult", (625, 625), 2), _MEASURE, [SEED, 50])
    return {
        eps: _errors(drawn, eps, _READ, _TYPES, plan.selectivities, plan, f"Figure 7.8, eps = {eps:g}", 50 + i)
        for i, eps in enumerate(plan.practice_epsilons)
    }


@exhibit
def figure_8(found: Mapping[float, Measured], plan: Plan) -> Parts:
    """Figure 7.8: relative error by selectivity, 2+2 dimensions."""
    for what in (SUM, AVG):
        for eps, measured in found.items():
            curves = []
            for kind in _TYPES:
                one = measured.sweep(kind, what)
                if one.x:
                    curves.append(replace(one.curve(M.HIO), name=f"{kind}"))
                    curves.append(replace(one.curve(M.OURS, faint=True), name=f"{kind}, all levels (ours)"))
            yield Panel(f"{what}, eps = {eps:g}", "selectivity", "MRE", tuple(curves), y_log=True)
    yield _how(plan)
    at_2 = found[2.0]
    high = [x for x in plan.selectivities if x >= 0.8]
    for way in (M.HIO, M.OURS):
        counts = {f"{x:g}": at_2.at(x, Kind(1, 0), COUNT, way) for x in high}
        yield Says(
            f"(goal) {way}, eps = 2: COUNT with one dimension at selectivity 0.8 and more errs by less than 5 %"
        ).given(each(counts, ".2%"), max(counts.values()) < 0.05)
        middle = {str(kind): at_2.at(0.5, kind, AVG, way, middle=True) for kind in (Kind(1, 0), Kind(2, 0))}
        yield Says(
            f"(goal) {way}, eps = 2: AVG of a measure with coefficient of variation 0.3, one and two dimensions, "
            "selectivity 0.5, errs by less than 5 % in the median"
        ).given(each(middle, ".2%"), max(middle.values()) < 0.05)
    sums = {f"{kind}, eps = {eps:g}": one.sweep(kind, SUM) for eps, one in found.items() for kind in _TYPES[:3]}
    yield Says("The relative error falls as selectivity rises").moves(sums, M.HIO, rises=False)


# -- Figure 7.9 --------------------------------------------------------------------------------------------------------


def domains(plan: Plan) -> Measured:
    """Sums at selectivity 0.1 by domain size."""
    found = {}
    for i, power in enumerate(plan.powers):
        drawn = Drawn(census(plan, "Adult", (5**power, 5**power), 2), _MEASURE, [SEED, 60, power])
        ways = _READ | ({M.SC: (SC(), "plain")} if power == 4 else {})
        one = _errors(drawn, 2.0, ways, _TYPES, (0.1,), plan, f"Figure 7.9, m = 5^{power}", 60 + i)
        for (_, kind), made in one.found.items():
            found[float(5**power), kind] = made
    return Measured(found)


@exhibit
def figure_9(found: Measured, plan: Plan) -> Parts:
    """Figure 7.9: relative error of sums by domain size and type, 2+2 dimensions, eps = 2, selectivity 0.1."""
    curves = []
    by_kind = {}
    for kind in _TYPES:
        points = [x for x, of in found.found if of == str(kind)]
        means = {way: tuple(found.at(x, kind, SUM, way) for x in points) for way in _READ}
        by_kind[kind] = means[M.HIO]
        curves.append(Curve(str(kind), tuple(points), means[M.HIO]))
        curves.append(Curve(f"{kind}, all levels (ours)", tuple(points), means[M.OURS], faint=True))
    yield Panel("SUM", "m", "MRE", tuple(curves), x_log=5)
    yield _how(plan)
    yield Says(
        "Errors are larger where domains are larger (here: from the smallest to the largest, mean of types)"
    ).given(
        f"{np.mean([of[0] for of in by_kind.values()]):.3f} to {np.mean([of[-1] for of in by_kind.values()]):.3f}",
        np.mean([of[0] for of in by_kind.values()]) < np.mean([of[-1] for of in by_kind.values()]),
    )
    worst = {str(kind): float(np.mean(of)) for kind, of in by_kind.items()}
    yield Says("1+0 and 1+1 are answered more accurately than 2+0 and 2+2 (here: mean over domain sizes)").given(
        each(worst, ".3f"), max(worst["1+0"], worst["1+1"]) < min(worst["2+0"], worst["2+2"])
    )
    if 4 in plan.powers:
        ratios = {
            str(kind): found.ratio(625.0, kind, SUM, M.SC, M.HIO)
            for kind in _TYPES
            if (625.0, str(kind)) in found.found
        }
        yield Says("SC is worse than HIO in almost all types (here: in all but one)").given(
            f"SC over HIO: {each(ratios)}", sum(ratio > 1 for ratio in ratios.values()) >= len(ratios) - 1
        )


# -- Figure 7.10 -------------------------------------------------------------------------------------------------------


def many(plan: Plan) -> Measured:
    """4+4 dimensions at eps = 5: plain HIO, SC and ours."""
    drawn = Drawn(census(plan, "Adult", (625,) * 4, 4, plan.many_people), _MEASURE, [SEED, 70])
    ways: dict[str, Way] = {**_READ, M.SC: (SC(), "plain")}
    return _errors(drawn, 5.0, ways, _MANY, (0.3,), plan, "Figure 7.10", 70)


@exhibit
def figure_10(found: Measured, plan: Plan) -> Parts:
    """Figure 7.10: relative error of sums on 4+4 dimensions, eps = 5, selectivity 0.3."""
    kinds = [kind for kind in _MANY if (0.3, str(kind)) in found.found]
    numbers = {way: tuple(found.at(0.3, kind, SUM, way) for kind in kinds) for way in (M.HIO, M.SC, M.OURS)}
    yield Grid(
        "SUM", "MRE", tuple(numbers), tuple(map(str, kinds)), tuple(numbers.values()),
        tuple((False,) * len(kinds) for _ in numbers), low=1.0, high=0.0,
    )  # fmt: skip
    yield _how(plan)
    over, ours = ({str(kind): found.ratio(0.3, kind, SUM, way, M.HIO) for kind in kinds} for way in (M.SC, M.OURS))
    yield Says("(goal) 1+0: SC (budget over all levels) has at most half of plain HIO's error").given(
        f"SC over HIO: {over['1+0']:.2f}", over["1+0"] <= 0.5
    )
    yield Says("(goal) 1+1: SC has not (the thesis says it has)").given(
        f"SC over HIO: {over['1+1']:.2f}", over["1+1"] > 0.5
    )
    yield Says("(goal) 1+0: HIO read from all levels has at most half of plain HIO's error").given(
        f"ours over HIO: {ours['1+0']:.2f}; {each(ours)}", ours["1+0"] <= 0.5
    )


# -- Tables 7.2 and 7.3 ------------------------------------------------------------------------------------------------


def _one_run(drawn: Drawn, queries: Mapping[str, Asked], plan: Plan, place: int) -> dict[str, list[float]]:
    """The average of each query in one collection for each eps, and the truth at the end."""
    found: dict[str, list[float]] = {name: [] for name in queries}
    with plan.watch(f"Table 7.{place}", len(plan.table_epsilons)) as advance:
        for number, epsilon in enumerate(plan.table_epsilons):
            made = Collection(drawn.data, epsilon, HIO(), SEED * 1_000 + place * 10 + number, drawn.measure)
            for name, one in queries.items():
                count, total = made.sums(one.box)
                found[name].append(total / count)
            advance(1)
    for name, one in queries.items():
        found[name].append(one.truth[AVG])
    return found


def averages(plan: Plan) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Table 7.2: three averages, ever more selective."""
    drawn = Drawn(census(plan, "Adult", (625, 625), 2), _MEASURE, [SEED, 80])
    asked = {
        name: drawn.queries(kind, selectivity, 1)[0]
        for name, kind, selectivity in (("Q1", Kind(1, 0), 0.5), ("Q2", Kind(1, 1), 0.25), ("Q3", Kind(2, 1), 0.08))
    }
    shares = {name: one.count / drawn.data.people for name, one in asked.items()}
    return _one_run(drawn, asked, plan, 2), shares


def shop(plan: Plan) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Table 7.3: the postage of order lines, by region, category and price."""
    data = online_retail(plan.data).resample(plan.lines, SEED)
    drawn = Drawn(data, "postage", [SEED, 90])
    boxes = {"Q4": ((0, 1), (2, 3), (10, 25)), "Q5": ((1, 2), None, (5, 25))}
    asked = {name: drawn.asked(box) for name, box in boxes.items()}
    shares = {name: one.count / data.people for name, one in asked.items()}
    return _one_run(drawn, asked, plan, 3), shares


def _table(title: str, found: Mapping[str, list[float]], plan: Plan, shares: Mapping[str, float]) -> Iterator[Grid]:
    columns = (*(f"eps = {eps:g}" for eps in plan.table_epsilons), "true", "selectivity")
    numbers = tuple((*of, shares[name]) for name, of in found.items())
    top = max(max(row) for row in numbers)
    fails = tuple((False,) * len(columns) for _ in numbers)
    yield Grid(title, "average", tuple(found), columns, numbers, fails, low=0.0, high=top)


def _off(found: Mapping[str, list[float]], at: int) -> dict[str, float]:
    return {name: abs(of[at] - of[-1]) / abs(of[-1]) for name, of in found.items()}


@exhibit
def table_2(found: Mapping[str, list[float]], shares: Mapping[str, float], plan: Plan) -> Parts:
    """Table 7.2: averages of working hours in one run."""
    yield from _table("AVG(hours)", found, plan, shares)
    yield _how(plan)
    within = [off < 0.05 for at in range(len(plan.table_epsilons)) for off in _off(found, at).values()]
    yield Says("Relative errors are within 5 % most of the time").given(
        f"in {sum(within)} of {len(within)} answers", 2 * sum(within) > len(within)
    )


@exhibit
def table_3(found: Mapping[str, list[float]], shares: Mapping[str, float], plan: Plan) -> Parts:
    """Table 7.3: average postage in one run, Online Retail."""
    yield from _table(f"AVG(postage), {plan.lines:,} lines", found, plan, shares)
    yield (
        "Every order line stands for one person. Region, category and price are private, postage is public. Q4: Great "
        "Britain, the third category, 2 to 5 pounds; Q5: other Europe, 1 to 5 pounds."
    )
    last = _off(found, len(plan.table_epsilons) - 1)
    yield Says(f"At eps = {plan.table_epsilons[-1]:g} errors are small (here: below 5 %)").given(
        each(last, ".2%"), max(last.values()) < 0.05
    )


def practice(plan: Plan) -> Iterator[Exhibit]:
    """All five."""
    yield figure_8(selectivities(plan), plan)
    yield figure_9(domains(plan), plan)
    yield figure_10(many(plan), plan)
    yield table_2(*averages(plan), plan)
    yield table_3(*shop(plan), plan)


def _how(plan: Plan) -> str:
    return (
        f"Real reports of {plan.people:,} people, read by `veil.sql`: {plan.collections} collections, {plan.queries} "
        "random queries per point; errors over the true answer. HIO has fan-out 5, OLH, and the plain reading of the "
        "thesis; ours is what `veil.sql` does if nothing is said. Of SC, which takes longest, one query in "
        f"{plan.sc_one_in} is asked."
    )
